// The operators quantize, dequantize and quantize_dequantize, with and without `out`, for the CPU.
#include <optional>

#include <torch/csrc/stable/library.h>

#include "forward_region.h"
#include "isa.h"

namespace halfeven {

namespace {

// Above this, operand and result do not stay in the caches of usual processors.
constexpr int64_t kFarBytes = int64_t{32} << 20;

Kernels kernels_of(Operation op, Dtype in, Dtype compute, Dtype out) {
  return isa() == Isa::Avx2 ? avx2::kernels(op, in, compute, out) : baseline::kernels(op, in, compute, out);
}

void run(Call& call, const int64_t* block) {
  if (call.x.numel == 0) return;
  const bool direct = call.op != Operation::Dequantize || call.compute == call.out.dtype;
  const Dtype written = direct ? call.out.dtype : call.compute;
  const Kernels kernels = kernels_of(call.op, call.x.dtype, call.compute, written);
  if (!kernels.per_row) fail("no kernel for " + name_of(call.x.dtype) + " to " + name_of(call.out.dtype));
  call.grid.far = call.x.numel >= kFarBytes / (call.x.item + call.out.item);
  // Into x itself: its lines are in the caches by then.
  call.grid.stream = call.grid.far && call.x.data != call.out.data;
  const Place elements[2] = {call.out, call.x}, parameters[2] = {call.scale, call.zero_point};
  for_each_region(call.x.ndim, call.x.size, block, elements, parameters, [&](Loops<4>& loops) {
    loops.normalize();
    parallel(loops, Region{call, loops, kernels, written});
  });
}

// Shared by the operators: reads what they have in common, checks, makes the result where none is given, and runs.
struct Arguments {
  const Tensor& scale;
  const std::optional<Tensor>& zero_point;
  const BlockSize& block_size;
  bool offset;
};

void with_parameters(Call& call, const Arguments& given, const Tensor* out) {
  call.scale = read("scale", given.scale, kScales);
  call.zero_point = read("zero_point", given.zero_point, kZeroPoints);
  call.is_offset = given.offset;
  const int64_t* block = check_block_size(call.x, given.block_size);
  check_parameter(call.scale, call.x, block);
  check_parameter(call.zero_point, call.x, block);
  if (out) check_out(call.out, call.x, {&call.x, &call.scale, &call.zero_point});
  run(call, block);
}

void finish(Call& call, const Tensor& x, Dtype result, const Arguments& given, const Tensor* out, Tensor* made) {
  if (!out) *made = empty_like(x, result);
  call.out = read("out", out ? *out : *made, set_of({result}));
  with_parameters(call, given, out);
}

Dtype dtype_in(const char* name, const Tensor& tensor, DtypeSet set) {
  int32_t dtype = 0;
  if (aoti_torch_get_dtype(tensor.get(), &dtype) != AOTI_TORCH_SUCCESS) fail(std::string(name) + " has no dtype");
  const Dtype d = dtype_of(dtype);
  if (d == Dtype::None || !contains(set, d))
    fail(std::string(name) + " of dtype " + (d == Dtype::None ? "number " + std::to_string(dtype) : name_of(d)) +
         " is not accepted: give " + names_of(set));
  return d;
}

Call grid_call(Operation op, const Tensor& x, int64_t qmin, int64_t qmax, double shift = 0) {
  Call call{op, read("x", x, kReals), {}, {}, {}, Dtype::None};
  check_grid(qmin, qmax);
  call.compute = compute_dtype(call.x.dtype, qmin, qmax);
  call.grid.low = static_cast<double>(qmin);
  call.grid.high = static_cast<double>(qmax);
  call.grid.shift = shift;
  return call;
}

Tensor quantize(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point, int64_t qmin,
                int64_t qmax, const BlockSize& block_size, std::optional<int32_t> dtype, bool offset) {
  Call call = grid_call(Operation::Quantize, x, qmin, qmax);
  const Dtype codes = read_dtype("dtype", dtype, kCodes | set_of({call.x.dtype}), call.x.dtype);
  check_codes_dtype(codes, qmin, qmax);
  Tensor result;
  finish(call, x, codes, {scale, zero_point, block_size, offset}, nullptr, &result);
  return result;
}

void quantize_out(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point, int64_t qmin,
                  int64_t qmax, const BlockSize& block_size, bool offset, const Tensor& out) {
  Call call = grid_call(Operation::Quantize, x, qmin, qmax);
  const Dtype codes = dtype_in("out", out, kCodes | set_of({call.x.dtype}));
  check_codes_dtype(codes, qmin, qmax);
  finish(call, x, codes, {scale, zero_point, block_size, offset}, &out, nullptr);
}

Call codes_call(const Tensor& q) { return {Operation::Dequantize, read("q", q, kStored), {}, {}, {}, Dtype::None}; }

Tensor dequantize(const Tensor& q, const Tensor& scale, const std::optional<Tensor>& zero_point,
                  const BlockSize& block_size, std::optional<int32_t> dtype, std::optional<int32_t> compute,
                  bool offset) {
  Call call = codes_call(q);
  const Dtype own = is_float(call.x.dtype) ? call.x.dtype : dtype_in("scale", scale, kScales);
  const Dtype reals = read_dtype("dtype", dtype, kReals, own);
  call.compute = read_dtype("compute", compute, kReals, reals);
  Tensor result;
  finish(call, q, reals, {scale, zero_point, block_size, offset}, nullptr, &result);
  return result;
}

void dequantize_out(const Tensor& q, const Tensor& scale, const std::optional<Tensor>& zero_point,
                    const BlockSize& block_size, std::optional<int32_t> compute, bool offset, const Tensor& out) {
  Call call = codes_call(q);
  const Dtype reals = dtype_in("out", out, kReals);
  call.compute = read_dtype("compute", compute, kReals, reals);
  finish(call, q, reals, {scale, zero_point, block_size, offset}, &out, nullptr);
}

Operation shifted(double shift) {
  return shift == 0 ? Operation::QuantizeDequantize : Operation::QuantizeDequantizeShifted;
}

Tensor quantize_dequantize(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point, int64_t qmin,
                           int64_t qmax, const BlockSize& block_size, double shift, bool offset) {
  Call call = grid_call(shifted(shift), x, qmin, qmax, shift);
  Tensor result;
  finish(call, x, call.x.dtype, {scale, zero_point, block_size, offset}, nullptr, &result);
  return result;
}

void quantize_dequantize_out(const Tensor& x, const Tensor& scale, const std::optional<Tensor>& zero_point,
                             int64_t qmin, int64_t qmax, const BlockSize& block_size, double shift, bool offset,
                             const Tensor& out) {
  Call call = grid_call(shifted(shift), x, qmin, qmax, shift);
  finish(call, x, call.x.dtype, {scale, zero_point, block_size, offset}, &out, nullptr);
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
