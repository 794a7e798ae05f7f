// The operators quantize, dequantize and quantize_dequantize, with and without `out`, for the CPU.
#include <optional>
#include <string>

#include <torch/csrc/stable/library.h>

#include "cpu/forward/region.h"
#include "cpu/isa.h"

namespace halfeven {

namespace {

using namespace forward;

constexpr ByIsa<decltype(&baseline::forward_kernels)> kKernels = {
    {baseline::forward_kernels, avx2::forward_kernels, avx512::forward_kernels, neon::forward_kernels}};

void compute_all(Call& call, const int64_t* block) {
  if (call.x.numel == 0) return;
  const bool direct = call.op != Operation::Dequantize || call.compute == call.out.dtype;
  const Dtype written = direct ? call.out.dtype : call.compute;
  const ForwardKernels kernels = kKernels.here()(call.op, call.x.dtype, call.compute, written);
  if (!kernels.per_row)
    fail(std::string(call.x.name) + " of dtype " + name_of(call.x.dtype) + " is not accepted for a result of dtype " +
         name_of(call.out.dtype) + ": no kernel computes it in " + name_of(call.compute));
  call.settings.far = call.x.numel >= cache_bytes() / (call.x.item + call.out.item);
  // Into x itself: its lines are in the caches by then.
  call.settings.stream = call.settings.far && call.x.data != call.out.data;
  const Place elements[kElements] = {call.out, call.x};
  const Place parameters[kOperands - kElements] = {call.scale, call.zero_point};
  for_each_region(call.x.ndim, call.x.size, block, elements, parameters, [&](Loops<kOperands>& loops) {
    loops.normalize();
    parallel(loops, Region{.call = call, .loops = loops, .kernels = kernels, .written = written});
  });
}

// What the operators have in common.
struct Given {
  const Tensor& scale;
  const std::optional<Tensor>& zero_point;
  const BlockSize& block_size;
  bool offset;
};

// Makes the result where none is given, reads what the operators have in common, checks, and computes.
void complete(Call& call, const Tensor& x, Dtype result, const Given& given, const Tensor* out, Tensor* made) {
  if (!out) *made = empty_like(x, result);
  call.out = read("out", out ? *out : *made, set_of({result}));
  call.scale = read("scale", given.scale, kScales);
  call.zero_point = read("zero_point", given.zero_point, kZeroPoints);
  call.is_offset = given.offset;
  const int64_t* block = check_block_size(call.x, given.block_size);
  check_parameter(call.scale, call.x, block);
  check_parameter(call.zero_point, call.x, block);
  if (out) check_out(call.out, call.x, {&call.x, &call.scale, &call.zero_point});
  compute_all(call, block);
}

Call grid_call(Operation op, const Tensor& x, int64_t qmin, int64_t qmax, double shift = 0) {
  const Argument x_ = read("x", x, kReals);
  check_grid(qmin, qmax);
  return {.op = op,
          .x = x_,
          .compute = compute_dtype(x_.dtype, qmin, qmax),
          .settings = {.low = static_cast<double>(qmin), .high = static_cast<double>(qmax), .shift = shift}};
}

Tensor quantize(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point, int64_t qmin,
                int64_t qmax, const BlockSize& block_size, std::optional<int32_t> dtype, bool offset) {
  Call call = grid_call(Operation::Quantize, x, qmin, qmax);
  const Dtype codes = read_dtype("dtype", dtype, kCodes | set_of({call.x.dtype}), call.x.dtype);
  check_codes_dtype(codes, qmin, qmax);
  Tensor result;
  complete(call, x, codes, {scale, zero_point, block_size, offset}, nullptr, &result);
  return result;
}

void quantize_out(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point, int64_t qmin,
                  int64_t qmax, const BlockSize& block_size, bool offset, const Tensor& out) {
  Call call = grid_call(Operation::Quantize, x, qmin, qmax);
  const Dtype codes = dtype_in("out", out, kCodes | set_of({call.x.dtype}));
  check_codes_dtype(codes, qmin, qmax);
  complete(call, x, codes, {scale, zero_point, block_size, offset}, &out, nullptr);
}

Call codes_call(const Tensor& q) { return {.op = Operation::Dequantize, .x = read("q", q, kQuantized)}; }

Tensor dequantize(const Tensor& q, const Tensor& scale, const std::optional<Tensor>& zero_point,
                  const BlockSize& block_size, std::optional<int32_t> dtype, std::optional<int32_t> compute,
                  bool offset) {
  Call call = codes_call(q);
  const Dtype own = is_float(call.x.dtype) ? call.x.dtype : dtype_in("scale", scale, kScales);
  const Dtype reals = read_dtype("dtype", dtype, kReals, own);
  call.compute = read_dtype("compute", compute, kReals, reals);
  Tensor result;
  complete(call, q, reals, {scale, zero_point, block_size, offset}, nullptr, &result);
  return result;
}

void dequantize_out(const Tensor& q, const Tensor& scale, const std::optional<Tensor>& zero_point,
                    const BlockSize& block_size, std::optional<int32_t> compute, bool offset, const Tensor& out) {
  Call call = codes_call(q);
  const Dtype reals = dtype_in("out", out, kReals);
  call.compute = read_dtype("compute", compute, kReals, reals);
  complete(call, q, reals, {scale, zero_point, block_size, offset}, &out, nullptr);
}

Operation shifted(double shift) {
  return shift == 0 ? Operation::QuantizeDequantize : Operation::QuantizeDequantizeShifted;
}

Tensor quantize_dequantize(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point, int64_t qmin,
                           int64_t qmax, const BlockSize& block_size, double shift, bool offset) {
  Call call = grid_call(shifted(shift), x, qmin, qmax, shift);
  Tensor result;
  complete(call, x, call.x.dtype, {scale, zero_point, block_size, offset}, nullptr, &result);
  return result;
}

void quantize_dequantize_out(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point,
                             int64_t qmin, int64_t qmax, const BlockSize& block_size, double shift, bool offset,
                             const Tensor& out) {
  Call call = grid_call(shifted(shift), x, qmin, qmax, shift);
  complete(call, x, call.x.dtype, {scale, zero_point, block_size, offset}, &out, nullptr);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(halfeven, CPU, m) {
  m.impl("quantize", TORCH_BOX(&quantize));
  m.impl("quantize_out", TORCH_BOX(&quantize_out));
  m.impl("dequantize", TORCH_BOX(&dequantize));
  m.impl("dequantize_out", TORCH_BOX(&dequantize_out));
  m.impl("quantize_dequantize", TORCH_BOX(&quantize_dequantize));
  m.impl("quantize_dequantize_out", TORCH_BOX(&quantize_dequantize_out));
}

}  // namespace halfeven
