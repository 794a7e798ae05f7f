// The gradients of quantize, dequantize and quantize_dequantize: each in one pass over grad and input.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "backward_tile.h"
#include "isa.h"
#include "layout.h"
#include "reduce_items.h"
#include "tensor.h"

namespace halfeven {

namespace {

using Gradients = std::tuple<Tensor, Tensor, Tensor>;
using Needs = bool[3];

// What an operator is asked, besides its tensors.
struct Settings {
  Gradient op;
  Dtype t;  // of the arithmetic
  int64_t qmin = 0, qmax = 0;
  double shift = 0;
  bool offset = false;
};

enum Operand { kX, kG, kDx, kElements, kScale = kElements, kZeroPoint, kScaleSum, kZeroPointSum, kOperands };

Tensor empty(int64_t ndim, const int64_t* size, Dtype dtype) {
  std::vector<int64_t> stride(ndim);
  int64_t step = 1;
  for (int64_t d = ndim - 1; d >= 0; --d) {
    stride[d] = step;
    step *= std::max<int64_t>(size[d], 1);
  }
  AtenTensorHandle handle = nullptr;
  if (aoti_torch_empty_strided(ndim, size, stride.data(), torch_dtype(dtype), aoti_torch_device_type_cpu(), 0,
                               &handle) != AOTI_TORCH_SUCCESS)
    fail("torch has no memory for a gradient");
  return Tensor(handle);
}

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
    stride.resize(p.ndim);
    int64_t numel = 1;
    for (int64_t d = p.ndim - 1; d >= 0; --d) {
      stride[d] = numel;
      numel *= p.size[d];
    }
    values.assign(numel, -0.0);
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
    const auto finish = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (negate) values[i] = -values[i];
        if (!single) values[i] += 0.0;
      }
      save(values.data() + begin, to + begin * parameter.item, end - begin);
    };
    const int64_t n = static_cast<int64_t>(values.size());
    if (n <= kGrain)
      finish(0, n);
    else
      torch::stable::parallel_for(0, n, kGrain, finish);
    return result;
  }
};

// What the tiles of all items have in common.
struct Pass {
  const Settings& settings;
  TileKernel kernel;
  Load load_x, load_g, load_scale, load_zero_point;
  Save save_dx;
  bool x_as_is, g_as_is;  // in memory as the kernel takes it, where rows are contiguous
  bool need_x, sums, integer_zero_point;
  int64_t x_item, g_item;
  int64_t row[kOperands], col[kOperands];
};

// Where the sums of an item go.
struct Target {
  double* at;
  int64_t row, col;
};

template <class C>
class Item {
 public:
  Item(const Pass& pass, char* const* data, Target scale, Target zero_point)
      : pass_(pass), data_(data), scale_(scale), zero_point_(zero_point) {}

  void columns(int64_t rows, int64_t len) {
    parameters(0, pass_.col, len);
    if (pass_.sums)
      for (int64_t c = 0; c < len; ++c) ds_[c] = do_[c] = -0.0;
    const int64_t cols = std::min(len, kTileElements), step = kTileElements / cols;
    for (int64_t r = 0; r < rows; r += step)
      for (int64_t c = 0; c < len; c += cols) tile(r, c, std::min(rows - r, step), std::min(len - c, cols), c);
    flush(len, scale_.at, scale_.col, zero_point_.at, zero_point_.col);
  }

  void rows(int64_t rows, int64_t len, bool gathered) {
    const int64_t cols = std::min(len, kTileElements / (gathered ? std::min(rows, kGathered) : 1));
    const int64_t step = std::min(rows, kTileElements / cols);
    for (int64_t r = 0; r < rows; r += step) {
      const int64_t n = std::min(rows - r, step);
      parameters(r, pass_.row, n);
      for (int64_t c = 0; c < len; c += cols) {
        tile(r, c, n, std::min(len - c, cols), 0);
        flush(n, scale_.at + r * scale_.row, scale_.row, zero_point_.at + r * zero_point_.row, zero_point_.row);
      }
    }
  }

 private:
  void parameters(int64_t row, const int64_t* step, int64_t n) {
    pass_.load_scale(data_[kScale] + row * pass_.row[kScale], step[kScale], n, s_);
    if (!data_[kZeroPoint]) {
      std::fill(o_, o_ + n, C(0));
      return;
    }
    pass_.load_zero_point(data_[kZeroPoint] + row * pass_.row[kZeroPoint], step[kZeroPoint], n, o_);
    if (pass_.settings.offset) return;
    // An integer has no -0: its 0 is an offset of +0.0.
    if (pass_.integer_zero_point)
      for (int64_t i = 0; i < n; ++i) o_[i] = C(0) - o_[i];
    else
      for (int64_t i = 0; i < n; ++i) o_[i] = -o_[i];
  }

  // `first`: where its parameters and sums are.
  void tile(int64_t row, int64_t col, int64_t rows, int64_t len, int64_t first) {
    const auto at = [&](Operand k) { return data_[k] + (row * pass_.row[k] + col * pass_.col[k]); };
    Tile t{rows, len, nullptr, nullptr, dx_, 0, 0, len, s_ + first, o_ + first, static_cast<double>(pass_.settings.qmin),
           static_cast<double>(pass_.settings.qmax), pass_.settings.shift, ds_ + first, do_ + first};
    t.g = elements(pass_.g_as_is, pass_.load_g, kG, pass_.g_item, at(kG), rows, len, g_, &t.g_row);
    // The derivative with respect to codes does not depend on them.
    const bool unread = !pass_.sums && pass_.settings.op == Gradient::Dequantize;
    t.x = unread ? t.g : elements(pass_.x_as_is, pass_.load_x, kX, pass_.x_item, at(kX), rows, len, x_, &t.x_row);
    if (unread) t.x_row = t.g_row;
    const bool in_place = pass_.need_x && pass_.x_as_is && pass_.col[kDx] == pass_.x_item;
    if (in_place) {
      t.dx = at(kDx);
      t.dx_row = pass_.row[kDx] / pass_.x_item;
    }
    pass_.kernel(t);
    if (in_place || !pass_.need_x) return;
    if (pass_.row[kDx] == len * pass_.col[kDx]) return pass_.save_dx(dx_, at(kDx), pass_.col[kDx], rows * len);
    for (int64_t r = 0; r < rows; ++r) pass_.save_dx(dx_ + r * len, at(kDx) + r * pass_.row[kDx], pass_.col[kDx], len);
  }

  // The elements where they are, or a copy of them.
  const void* elements(bool as_is, Load load, Operand k, int64_t item, const char* from, int64_t rows, int64_t len,
                       C* copy, int64_t* row) const {
    if (as_is && pass_.col[k] == item) {
      *row = pass_.row[k] / item;
      return from;
    }
    *row = len;
    if (pass_.row[k] == len * pass_.col[k])
      load(from, pass_.col[k], rows * len, copy);
    else
      for (int64_t r = 0; r < rows; ++r) load(from + r * pass_.row[k], pass_.col[k], len, copy + r * len);
    return copy;
  }

  void flush(int64_t n, double* scale, int64_t scale_step, double* zero_point, int64_t zero_point_step) const {
    if (!pass_.sums) return;
    if (scale_.at)
      for (int64_t i = 0; i < n; ++i) scale[i * scale_step] += ds_[i];
    if (zero_point_.at)
      for (int64_t i = 0; i < n; ++i) zero_point[i * zero_point_step] += do_[i];
  }

  static constexpr int64_t kMost = std::max(kItemColumns, kTileElements);
  const Pass& pass_;
  char* const* data_;
  Target scale_, zero_point_;
  alignas(64) C g_[kTileElements];
  alignas(64) C x_[kTileElements];
  alignas(64) C dx_[kTileElements];
  alignas(64) C s_[kMost];
  alignas(64) C o_[kMost];
  alignas(64) double ds_[kMost];
  alignas(64) double do_[kMost];
};

template <class C>
void run(Pass& pass, const Items<kOperands>& items) {
  std::copy(items.loops.step[0], items.loops.step[0] + kOperands, pass.col);
  std::copy(items.loops.step[1], items.loops.step[1] + kOperands, pass.row);
  Results<double> scale(items, kScaleSum), zero_point(items, kZeroPointSum);
  items.parallel([&](int64_t item, char* const* data, int64_t rows, int64_t len) {
    Item<C> work(pass, data, {scale.at(item, data, -0.0), scale.row, scale.col},
                 {zero_point.at(item, data, -0.0), zero_point.row, zero_point.col});
    if (items.columns)
      work.columns(rows, len);
    else
      work.rows(rows, len, items.gathered);
  });
  const auto add = [](double& entry, double part) { entry += part; };
  scale.combine(items, add);
  zero_point.combine(items, add);
}

void check_need(bool needed, const char* need, const Argument& of) {
  if (needed && !is_float(of.dtype))
    fail(std::string(need) + "=True is not accepted for " + of.name + " of dtype " + name_of(of.dtype) +
         ": only floats have gradients");
}

Gradients gradients(const Settings& settings, const Argument& grad, const Argument& x, const Tensor& x_tensor,
                    const Argument& scale, const Argument& zero_point, const BlockSize& block_size, const Needs& needs) {
  const bool present = zero_point.dtype != Dtype::None;
  const bool need_x = needs[0], need_scale = needs[1], need_zero_point = needs[2] && present;
  if (grad.ndim != x.ndim || !std::equal(x.size, x.size + x.ndim, grad.size))
    fail("grad of shape " + shape_of(grad) + " is not accepted: give it in the shape " + shape_of(x) + " of " + x.name);
  const int64_t* block = check_block_size(x, block_size);
  check_parameter(scale, x, block);
  if (present) check_parameter(zero_point, x, block);
  check_need(need_x, x.name[0] == 'q' ? "need_q" : "need_x", x);
  if (need_zero_point) check_need(true, "need_zero_point", zero_point);

  const BackwardKernels kernels = isa() == Isa::Avx2 ? avx2::backward_kernels() : baseline::backward_kernels();
  const Dtype t = settings.t;
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
      const bool contiguous = std::equal(item, item + kElements, items.loops.step[0]);
      const bool narrow = contiguous && item_size(x.dtype) == 2 && as_is(settings.op, x.dtype, t);
      const auto usable = [&](Dtype in) { return narrow || (item_size(in) > 2 && as_is(settings.op, in, t)); };
      Pass pass{settings, kernels.tile(settings.op, narrow ? x.dtype : t, t, items.columns, sums),
                kernels.load(x.dtype, t), kernels.load(grad.dtype, t), kernels.load(scale.dtype, t),
                present ? kernels.load(zero_point.dtype, t) : nullptr, kernels.save(t, x.dtype),
                usable(x.dtype), usable(grad.dtype), need_x, sums,
                present && !is_float(zero_point.dtype), x.item, grad.item, {}, {}};
      if (t == Dtype::F64)
        run<double>(pass, items);
      else
        run<float>(pass, items);
    });
  }
  const auto result = [&](Sums& from, bool needed, bool negate) {
    if (!needed) return nothing(x.dtype);
    const Argument& p = from.parameter;
    bool single = p.ndim == x.ndim && std::equal(x.size, x.size + x.ndim, p.size) && x.numel;
    for (int64_t d = 0; block && d < x.ndim; ++d) single &= block[d] == 1;
    return from.result(negate, single, kernels.save_sums(t, p.dtype));
  };
  return {dx, result(scale_sums, need_scale, false), result(zero_point_sums, need_zero_point, !settings.offset)};
}

Gradients of_reals(Settings settings, const Tensor& grad, const Tensor& x, const Tensor& scale,
                   const std::optional<Tensor>& zero_point, const BlockSize& block_size, const Needs& needs) {
  const Argument x_ = read("x", x, kReals);
  check_grid(settings.qmin, settings.qmax);
  settings.t = compute_dtype(x_.dtype, settings.qmin, settings.qmax);
  return gradients(settings, read("grad", grad, set_of({x_.dtype})), x_, x, read("scale", scale, kScales),
                   read("zero_point", zero_point, kZeroPoints), block_size, needs);
}

Gradients quantize_backward(const Tensor& grad, const Tensor& x, const Tensor& scale,
                            const std::optional<Tensor>& zero_point, int64_t qmin, int64_t qmax,
                            const BlockSize& block_size, bool offset, bool need_x, bool need_scale,
                            bool need_zero_point) {
  return of_reals({Gradient::Quantize, Dtype::None, qmin, qmax, 0, offset}, grad, x, scale, zero_point, block_size,
                  {need_x, need_scale, need_zero_point});
}

Gradients quantize_dequantize_backward(const Tensor& grad, const Tensor& x, const Tensor& scale,
                                       const std::optional<Tensor>& zero_point, int64_t qmin, int64_t qmax,
                                       const BlockSize& block_size, double shift, bool offset, bool need_x,
                                       bool need_scale, bool need_zero_point) {
  return of_reals({Gradient::QuantizeDequantize, Dtype::None, qmin, qmax, shift, offset}, grad, x, scale, zero_point,
                  block_size, {need_x, need_scale, need_zero_point});
}

Gradients dequantize_backward(const Tensor& grad, const Tensor& q, const Tensor& scale,
                              const std::optional<Tensor>& zero_point, const BlockSize& block_size,
                              std::optional<torch::headeronly::ScalarType> compute, bool offset, bool need_q,
                              bool need_scale, bool need_zero_point) {
  const Argument q_ = read("q", q, kStored), grad_ = read("grad", grad, kReals);
  const Dtype t = compute ? dtype_of(static_cast<int32_t>(*compute)) : grad_.dtype;
  if (t == Dtype::None || !is_float(t))
    fail("compute of dtype " + (t == Dtype::None ? "number " + std::to_string(static_cast<int>(*compute)) : name_of(t)) +
         " is not accepted: give None or " + names_of(kReals));
  return gradients({Gradient::Dequantize, t, 0, 0, 0, offset}, grad_, q_, q, read("scale", scale, kScales),
                   read("zero_point", zero_point, kZeroPoints), block_size, {need_q, need_scale, need_zero_point});
}

}  // namespace

}  // namespace halfeven

STABLE_TORCH_LIBRARY_IMPL(halfeven, CPU, m) {
  m.impl("quantize_backward", TORCH_BOX(&halfeven::quantize_backward));
  m.impl("dequantize_backward", TORCH_BOX(&halfeven::dequantize_backward));
  m.impl("quantize_dequantize_backward", TORCH_BOX(&halfeven::quantize_dequantize_backward));
}
