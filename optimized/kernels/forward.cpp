// The operators quantize, dequantize and quantize_dequantize, with and without `out`, for the CPU.
#include <algorithm>
#include <cstring>
#include <optional>

#include <torch/csrc/stable/library.h>

#include "forward.h"
#include "isa.h"

#define HALFEVEN_ISA baseline
#include "arith.h"

namespace halfeven {

namespace {

// Above this, operand and result do not stay in the caches of usual processors.
constexpr int64_t kFarBytes = int64_t{32} << 20;

// Rows shorter than this, and rows of fewer columns with parameters of their own, are computed several at once, with the
// parameters repeated for each element.
constexpr int64_t kShortRow = 16, kShortColumns = 32;

constexpr int kOut = 0, kX = 1, kScale = 2, kZero = 3;

struct Call {
  Operation op;
  Argument x, out, scale, zero;
  Dtype compute;
  bool is_offset = false;
  Grid grid = {};
};

Kernels kernels_of(Operation op, Dtype in, Dtype compute, Dtype out) {
  return isa() == Isa::Avx2 ? avx2::kernels(op, in, compute, out) : baseline::kernels(op, in, compute, out);
}

// n items between contiguous memory and places `step` bytes apart.
template <class M>
void copy_items(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_step, from + i * from_step, sizeof(M));
}

void copy_run(int64_t item, const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n) {
  switch (item) {
    case 1: return copy_items<uint8_t>(from, from_step, to, to_step, n);
    case 2: return copy_items<uint16_t>(from, from_step, to, to_step, n);
    case 4: return copy_items<uint32_t>(from, from_step, to, to_step, n);
    default: return copy_items<uint64_t>(from, from_step, to, to_step, n);
  }
}

// Rounds n numbers to another float dtype.
template <Dtype From, Dtype To>
void round_run(const char* from, char* to, int64_t n) {
  const auto* x = reinterpret_cast<const typename baseline::Stored<From>::Memory*>(from);
  auto* y = reinterpret_cast<typename baseline::Stored<To>::Memory*>(to);
  using C = typename baseline::Working<From>::C;
  for (int64_t i = 0; i < n; ++i) y[i] = baseline::Stored<To>::store(baseline::Stored<From>::template load<C>(x[i]));
}

template <Dtype From>
void round_from(Dtype out, const char* from, char* to, int64_t n) {
  switch (out) {
    case Dtype::F64: return round_run<From, Dtype::F64>(from, to, n);
    case Dtype::F16: return round_run<From, Dtype::F16>(from, to, n);
    case Dtype::BF16: return round_run<From, Dtype::BF16>(from, to, n);
    default: return round_run<From, Dtype::F32>(from, to, n);
  }
}

void round_to(Dtype compute, Dtype out, const char* from, char* to, int64_t n) {
  switch (compute) {
    case Dtype::F64: return round_from<Dtype::F64>(out, from, to, n);
    case Dtype::F16: return round_from<Dtype::F16>(out, from, to, n);
    case Dtype::BF16: return round_from<Dtype::BF16>(out, from, to, n);
    default: return round_from<Dtype::F32>(out, from, to, n);
  }
}

// What one region of a call needs to compute a rectangle of it.
struct Region {
  const Call& call;
  const Loops<4>& loops;
  Kernels kernels;
  Dtype written;  // by the kernel; another dtype than the result's is rounded to that afterwards

  bool constant_along_rows() const { return loops.col(kScale) == 0 && loops.col(kZero) == 0; }
  bool constant_along_columns() const { return loops.row(kScale) == 0 && loops.row(kZero) == 0; }

  // Contiguous along rows, and at multiples of their size, which loops over numbers in place rely on.
  bool dense(int operand, int64_t item) const {
    return loops.col(operand) == item && reinterpret_cast<uintptr_t>(loops.data[operand]) % item == 0;
  }

  void parameters(char* const* at, bool along_rows, int64_t n, void* s, void* o) const {
    const auto step = [&](int k) { return along_rows ? loops.col(k) : loops.row(k); };
    load_scales(at[kScale], call.scale.dtype, step(kScale), n, call.compute, s);
    load_offsets(at[kZero], call.zero.dtype, step(kZero), n, call.is_offset, call.compute, o);
  }

  void operator()(char* const* data, int64_t rows, int64_t cols) const {
    const bool straight = dense(kX, call.x.item) && dense(kOut, call.out.item) && written == call.out.dtype;
    if (straight && constant_along_rows() && (rows == 1 || cols >= kShortRow)) return by_rows(data, rows, cols);
    if (straight && !constant_along_rows() && constant_along_columns() && rows > 1) {
      if (cols >= kShortColumns) return by_columns(data, rows, cols);
      if (whole_rows(kX, call.x.item, cols) && whole_rows(kOut, call.out.item, cols))
        return by_repeated_columns(data, rows, cols);
    }
    by_tiles(data, rows, cols);
  }

  // Whether row follows row in memory.
  bool whole_rows(int operand, int64_t item, int64_t cols) const {
    return loops.col(operand) == item && loops.row(operand) == cols * item;
  }

  Job job(char* const* data, int64_t rows, int64_t len, const void* s, const void* o) const {
    return {data[kX], data[kOut], rows, len, loops.row(kX), loops.row(kOut), s, o};
  }

  void by_rows(char* const* data, int64_t rows, int64_t cols) const {
    alignas(32) double s[kTile], o[kTile];
    char* at[4];
    for (int64_t r = 0; r < rows; r += kTile) {
      for (int k = 0; k < 4; ++k) at[k] = data[k] ? data[k] + r * loops.row(k) : nullptr;
      const int64_t n = std::min(kTile, rows - r);
      parameters(at, false, n, s, o);
      kernels.per_row(call.grid, job(at, n, cols, s, o));
    }
  }

  void by_columns(char* const* data, int64_t rows, int64_t cols) const {
    alignas(32) double s[kWide], o[kWide];
    char* at[4];
    for (int64_t c = 0; c < cols; c += kWide) {
      for (int k = 0; k < 4; ++k) at[k] = data[k] ? data[k] + c * loops.col(k) : nullptr;
      const int64_t n = std::min(kWide, cols - c);
      parameters(at, true, n, s, o);
      kernels.per_column(call.grid, job(at, rows, n, s, o));
    }
  }

  // Few columns: the parameters of several rows, one after the other, belong to as many columns.
  void by_repeated_columns(char* const* data, int64_t rows, int64_t cols) const {
    alignas(32) double s[kTile], o[kTile];
    parameters(data, true, cols, s, o);
    const int64_t item = call.compute == Dtype::F64 ? 8 : 4;
    const int64_t times = std::min(kTile / cols, rows);
    for (int64_t i = 1; i < times; ++i) {
      std::memcpy(reinterpret_cast<char*>(s) + i * cols * item, s, cols * item);
      std::memcpy(reinterpret_cast<char*>(o) + i * cols * item, o, cols * item);
    }
    Job all = job(data, rows / times, times * cols, s, o);
    all.x_row *= times;
    all.out_row *= times;
    kernels.per_column(call.grid, all);
    const int64_t done = rows / times * times;
    if (done == rows) return;
    all.x += done * loops.row(kX);
    all.out += done * loops.row(kOut);
    all.rows = 1;
    all.len = (rows - done) * cols;
    kernels.per_column(call.grid, all);
  }

  // Any strides: elements are gathered, computed and scattered, up to kTile at a time.
  void by_tiles(char* const* data, int64_t rows, int64_t cols) const {
    alignas(64) char x[kTile * 8], y[kTile * 8], z[kTile * 8];
    alignas(32) double s[kTile], o[kTile];
    const bool single = constant_along_rows() && constant_along_columns();
    const int64_t item = call.compute == Dtype::F64 ? 8 : 4;
    const int64_t width = std::min(cols, kTile), height = std::min(kTile / width, rows);
    char* at[4];
    if (single) parameters(data, false, 1, s, o);
    for (int64_t r = 0; r < rows; r += height)
      for (int64_t c = 0; c < cols; c += width) {
        const int64_t h = std::min(height, rows - r), w = std::min(width, cols - c), n = h * w;
        for (int k = 0; k < 4; ++k) at[k] = data[k] ? data[k] + r * loops.row(k) + c * loops.col(k) : nullptr;
        if (!single) {
          for (int64_t i = 0; i < h; ++i) {
            char* row[4];
            for (int k = 0; k < 4; ++k) row[k] = at[k] ? at[k] + i * loops.row(k) : nullptr;
            parameters(row, true, w, reinterpret_cast<char*>(s) + i * w * item,
                       reinterpret_cast<char*>(o) + i * w * item);
          }
        }
        const auto in_one = [&](int k, int64_t bytes) {
          return dense(k, bytes) && (h == 1 || loops.row(k) == w * bytes);
        };
        Job tile{at[kX], at[kOut], 1, n, 0, 0, s, o};
        if (!in_one(kX, call.x.item)) {
          for (int64_t i = 0; i < h; ++i)
            copy_run(call.x.item, at[kX] + i * loops.row(kX), loops.col(kX), x + i * w * call.x.item, call.x.item, w);
          tile.x = x;
        }
        const bool in_place = in_one(kOut, call.out.item);
        if (!in_place) tile.out = y;
        char* result = tile.out;
        if (written != call.out.dtype) tile.out = z;
        (single ? kernels.per_row : kernels.per_column)(call.grid, tile);
        if (written != call.out.dtype) round_to(written, call.out.dtype, z, result, n);
        if (in_place) continue;
        for (int64_t i = 0; i < h; ++i)
          copy_run(call.out.item, y + i * w * call.out.item, call.out.item, at[kOut] + i * loops.row(kOut),
                   loops.col(kOut), w);
      }
  }
};

void run(Call& call, const int64_t* block) {
  if (call.x.numel == 0) return;
  const bool direct = call.op != Operation::Dequantize || call.compute == call.out.dtype;
  const Dtype written = direct ? call.out.dtype : call.compute;
  const Kernels kernels = kernels_of(call.op, call.x.dtype, call.compute, written);
  if (!kernels.per_row) fail("no kernel for " + name_of(call.x.dtype) + " to " + name_of(call.out.dtype));
  call.grid.far = call.x.numel >= kFarBytes / (call.x.item + call.out.item);
  // Into x itself: its lines are in the caches by then.
  call.grid.stream = call.grid.far && call.x.data != call.out.data;
  const Place elements[2] = {call.out, call.x}, parameters[2] = {call.scale, call.zero};
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
  call.zero = read("zero_point", given.zero_point, kZeroPoints);
  call.is_offset = given.offset;
  const int64_t* block = check_block_size(call.x, given.block_size);
  check_parameter(call.scale, call.x, block);
  check_parameter(call.zero, call.x, block);
  if (out) check_out(call.out, call.x, {&call.x, &call.scale, &call.zero});
  run(call, block);
}

void finish(Call& call, const Tensor& x, Dtype result, const Arguments& given, const Tensor* out, Tensor* made) {
  if (!out) *made = empty_like(x, result);
  call.out = read("out", out ? *out : *made, set_of({result}));
  with_parameters(call, given, out);
}

Dtype accepted(const char* name, const std::optional<int32_t>& torch, DtypeSet set, Dtype otherwise) {
  if (!torch) return otherwise;
  const Dtype d = dtype_of(*torch);
  if (d == Dtype::None || !contains(set, d))
    fail(std::string(name) + "=" + (d == Dtype::None ? "dtype number " + std::to_string(*torch) : name_of(d)) +
         " is not accepted: give None or one of " + names_of(set));
  return d;
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
  const Dtype codes = accepted("dtype", dtype, kCodes | set_of({call.x.dtype}), call.x.dtype);
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
  const Dtype reals = accepted("dtype", dtype, kReals, own);
  call.compute = accepted("compute", compute, kReals, reals);
  Tensor result;
  finish(call, q, reals, {scale, zero_point, block_size, offset}, nullptr, &result);
  return result;
}

void dequantize_out(const Tensor& q, const Tensor& scale, const std::optional<Tensor>& zero_point,
                    const BlockSize& block_size, std::optional<int32_t> compute, bool offset, const Tensor& out) {
  Call call = codes_call(q);
  const Dtype reals = dtype_in("out", out, kReals);
  call.compute = accepted("compute", compute, kReals, reals);
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
