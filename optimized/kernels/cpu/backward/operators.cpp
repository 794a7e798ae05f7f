// The gradients of quantize, dequantize and quantize_dequantize: each in one pass over grad and input.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "cpu/backward/items.h"
#include "cpu/backward/job.h"
#include "cpu/isa.h"
#include "cpu/memory/tensor.h"

namespace halfeven {

namespace {

using namespace backward;

using Gradients = std::tuple<Tensor, Tensor, Tensor>;
using Needs = bool[3];

Tensor nothing(Dtype dtype) {
  static constexpr int64_t kZero[1] = {0};
  return empty(1, kZero, dtype);
}

// The gradient of a parameter while it is summed up, in the order of its elements.
struct Sums {
  const Argument& parameter;
  std::vector<int64_t> stride;
  std::vector<double> values;  // empty where it is not wanted

  Sums(const Argument& p, bool wanted) : parameter(p) {
    if (!wanted) return;
    stride = contiguous_strides(p.ndim, p.size);
    values.assign(p.numel, kNoTerms);
  }

  Place place() {
    if (values.empty()) return {};
    return {reinterpret_cast<char*>(values.data()), sizeof(double), parameter.ndim, parameter.size, stride.data()};
  }

  // `single`: each is of one element, so that even the sign of a zero is kept.
  Tensor result(bool negate, bool single, SaveSums save) {
    const Tensor result = empty(parameter.ndim, parameter.size, parameter.dtype);
    if (values.empty()) return result;
    char* to = static_cast<char*>(result.data_ptr());
    const auto save_part = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (negate) values[i] = -values[i];
        if (!single) values[i] += 0.0;
      }
      save(values.data() + begin, to + begin * parameter.item, end - begin);
    };
    const int64_t n = static_cast<int64_t>(values.size());
    if (n <= kGrain)
      save_part(0, n);
    else
      torch::stable::parallel_for(0, n, kGrain, save_part);
    return result;
  }
};

void check_need(bool needed, const Argument& of) {
  if (needed && !is_float(of.dtype))
    fail(std::string("need_") + of.name + "=True is not accepted for " + of.name + " of dtype " + name_of(of.dtype) +
         ": only floats have gradients");
}

Gradients gradients(const Settings& settings, const Argument& grad, const Argument& x, const Tensor& x_tensor,
                    const Argument& scale, const Argument& zero_point, const BlockSize& block_size,
                    const Needs& needs) {
  const bool present = zero_point.dtype != Dtype::None;
  const bool need_x = needs[0], need_scale = needs[1], need_zero_point = needs[2] && present;
  if (grad.ndim != x.ndim || !std::equal(x.size, x.size + x.ndim, grad.size))
    fail("grad of shape " + shape_of(grad) + " is not accepted: give it in the shape " + shape_of(x) + " of " + x.name);
  const int64_t* block = check_block_size(x, block_size);
  check_parameter(scale, x, block);
  if (present) check_parameter(zero_point, x, block);
  check_need(need_x, x);
  check_need(need_zero_point, zero_point);

  constexpr ByIsa<decltype(&baseline::backward_kernels)> kKernels = {
      {baseline::backward_kernels, avx2::backward_kernels, avx512::backward_kernels, neon::backward_kernels}};
  const BackwardKernels kernels = kKernels.here()();
  const Dtype compute = settings.compute;
  const Tensor dx = need_x ? empty_like(x_tensor, x.dtype) : nothing(x.dtype);
  Sums scale_sums(scale, need_scale), zero_point_sums(zero_point, need_zero_point);
  const bool sums = need_scale || need_zero_point;
  if (x.numel && (need_x || sums)) {
    Place dx_place = x;  // not written where it is not wanted
    std::vector<int64_t> dx_stride;
    if (need_x) {
      for (int64_t d = 0; d < x.ndim; ++d) dx_stride.push_back(dx.stride(d));
      dx_place = {static_cast<char*>(dx.data_ptr()), x.item, x.ndim, x.size, dx_stride.data()};
    }
    const Place elements[kElements] = {x, grad, dx_place};
    const Place parameters[kOperands - kElements] = {scale, zero_point, scale_sums.place(), zero_point_sums.place()};
    const int64_t item[kElements] = {x.item, grad.item, x.item};
    for_each_region(x.ndim, x.size, block, elements, parameters, [&](const Loops<kOperands>& loops) {
      const Items<kOperands> items(loops, kElements, item);
      // Kernels that take 16-bit elements as they are take all operands so; copies are as wide as the arithmetic.
      const auto dense = [&](Operand k) { return items.loops.dense(k, item[k]); };
      const bool narrow = dense(kX) && dense(kG) && dense(kDx) && item_size(x.dtype) == 2 &&
                          as_is(settings.op, x.dtype, compute);
      const auto usable = [&](Dtype in) { return narrow || (item_size(in) > 2 && as_is(settings.op, in, compute)); };
      Pass pass{.settings = settings,
                .x = x,
                .grad = grad,
                .scale = scale,
                .zero_point = zero_point,
                .kernel = kernels.kernel(settings.op, narrow ? x.dtype : compute, compute, items.columns, sums),
                .load_x = kernels.load(x.dtype, compute),
                .load_g = kernels.load(grad.dtype, compute),
                .save_dx = kernels.save(compute, x.dtype),
                .x_as_is = usable(x.dtype) && dense(kX),
                .g_as_is = usable(grad.dtype) && dense(kG),
                .dx_as_is = usable(x.dtype) && dense(kDx) && need_x,
                .need_x = need_x,
                .sums = sums};
      if (compute == Dtype::F64)
        run_items<double>(pass, items);
      else
        run_items<float>(pass, items);
    });
  }
  const auto result = [&](Sums& from, bool needed, bool negate) {
    if (!needed) return nothing(x.dtype);
    const Argument& p = from.parameter;
    bool single = p.ndim == x.ndim && std::equal(x.size, x.size + x.ndim, p.size) && x.numel;
    for (int64_t d = 0; block && d < x.ndim; ++d) single &= block[d] == 1;
    return from.result(negate, single, kernels.save_sums(compute, p.dtype));
  };
  return {dx, result(scale_sums, need_scale, false), result(zero_point_sums, need_zero_point, !settings.is_offset)};
}

Gradients of_reals(Settings settings, const Tensor& grad, const Tensor& x, const Tensor& scale,
                   const std::optional<Tensor>& zero_point, const BlockSize& block_size, const Needs& needs) {
  const Argument x_ = read("x", x, kReals);
  check_grid(settings.qmin, settings.qmax);
  settings.compute = compute_dtype(x_.dtype, settings.qmin, settings.qmax);
  return gradients(settings, read("grad", grad, set_of({x_.dtype})), x_, x, read("scale", scale, kScales),
                   read("zero_point", zero_point, kZeroPoints), block_size, needs);
}

Gradients quantize_backward(const Tensor& grad, const Tensor& x, const Tensor& scale,
                            const std::optional<Tensor>& zero_point, int64_t qmin, int64_t qmax,
                            const BlockSize& block_size, bool offset, bool need_x, bool need_scale,
                            bool need_zero_point) {
  return of_reals({.op = Gradient::Quantize, .qmin = qmin, .qmax = qmax, .is_offset = offset}, grad, x, scale,
                  zero_point, block_size, {need_x, need_scale, need_zero_point});
}

Gradients quantize_dequantize_backward(const Tensor& grad, const Tensor& x, const Tensor& scale,
                                       const std::optional<Tensor>& zero_point, int64_t qmin, int64_t qmax,
                                       const BlockSize& block_size, double shift, bool offset, bool need_x,
                                       bool need_scale, bool need_zero_point) {
  return of_reals(
      {.op = Gradient::QuantizeDequantize, .qmin = qmin, .qmax = qmax, .shift = shift, .is_offset = offset}, grad, x,
      scale, zero_point, block_size, {need_x, need_scale, need_zero_point});
}

Gradients dequantize_backward(const Tensor& grad, const Tensor& q, const Tensor& scale,
                              const std::optional<Tensor>& zero_point, const BlockSize& block_size,
                              std::optional<int32_t> compute, bool offset, bool need_q, bool need_scale,
                              bool need_zero_point) {
  const Argument q_ = read("q", q, kQuantized), grad_ = read("grad", grad, kReals);
  const Dtype own = read_dtype("compute", compute, kReals, grad_.dtype);
  return gradients({.op = Gradient::Dequantize, .compute = own, .is_offset = offset}, grad_, q_, q,
                   read("scale", scale, kScales), read("zero_point", zero_point, kZeroPoints), block_size,
                   {need_q, need_scale, need_zero_point});
}

}  // namespace

}  // namespace halfeven

STABLE_TORCH_LIBRARY_IMPL(halfeven, CPU, m) {
  m.impl("quantize_backward", TORCH_BOX(&halfeven::quantize_backward));
  m.impl("dequantize_backward", TORCH_BOX(&halfeven::dequantize_backward));
  m.impl("quantize_dequantize_backward", TORCH_BOX(&halfeven::quantize_dequantize_backward));
}
