// quantize, quantize_dequantize and dequantize on a GPU, for one combination of dtypes, which the compiler is given:
// HALFEVEN_OPERATION, HALFEVEN_IN, HALFEVEN_COMPUTE, HALFEVEN_OUT. Grids of threads and blocks may be of any size:
// every loop goes on in steps of all threads. x and out are apart, or the same element by element.

#include "cuda/device.h"
#include "cuda/forward.h"

namespace halfeven::device {

inline constexpr Operation kOperation = Operation::HALFEVEN_OPERATION;
inline constexpr Dtype kIn = Dtype::HALFEVEN_IN, kCompute = Dtype::HALFEVEN_COMPUTE, kOut = Dtype::HALFEVEN_OUT;
inline constexpr bool kShifted = kOperation == Operation::QuantizeDequantizeShifted;
// Where the reciprocal in two parts may serve.
inline constexpr bool kReciprocal =
    kCompute == Dtype::F32 && (kOperation == Operation::Quantize || kOperation == Operation::QuantizeDequantize);

using Of = Element<kOperation, kIn, kCompute, kOut>;
using C = Of::C;
using X = Of::X;
using Y = Of::Y;
inline constexpr int kWidth = kPack<X, Y>;

// The ends of the grid, as the arithmetic has them.
struct Ends {
  C low, high, shift;

  explicit Ends(const ForwardParameters& p)
      : low(static_cast<C>(p.low)), high(static_cast<C>(p.high)),
        shift(Working<kCompute>::round(static_cast<C>(p.shift))) {}
};

// What the elements of one scale and offset are computed with.
struct Constants {
  C s, o, back, nan;
  Reciprocal reciprocal;
  bool fast;

  Constants() = default;
  Constants(C scale, C offset, const Ends& ends)
      : s(scale),
        o(offset),
        back(kShifted ? Working<kCompute>::round(o + ends.shift) : o),
        nan(code_of_nan(o, ends.low, ends.high)),
        fast(false) {
    if constexpr (kReciprocal) {
      fast = scale_qualifies(s) && offset_qualifies(o, ends.low, ends.high);
      reciprocal = Reciprocal::of(s, o, ends.low, ends.high);
    }
  }

  Y divided(X x, const Ends& ends) const { return Of::of(x, s, o, ends.low, ends.high, ends.shift, back, nan); }

  // Only where it is fast.
  Y multiplied(X x, const Ends& ends) const {
    if constexpr (kReciprocal)
      return Of::of_quotient(reciprocal.quotient(load_as<kIn, kCompute>(x)), s, o, ends.low, ends.high, ends.shift,
                             back, nan);
    return Y();
  }

  Y of(X x, const Ends& ends) const { return fast ? multiplied(x, ends) : divided(x, ends); }
};

// Those of n parameters, of which the first ones are `s_at` and `o_at`.
template <int n>
void load_constants(const ForwardParameters& p, const Ends& ends, int64_t s_at, int64_t s_step, int64_t o_at,
                    int64_t o_step, Constants (&to)[n]) {
  C s[n], o[n];
  load_scales<kCompute>(p.s, p.s_dtype, s_at, s_step, s);
  load_offsets<kCompute>(p.o, p.o_dtype, p.is_offset, o_at, o_step, o);
#pragma unroll
  for (int k = 0; k < n; ++k) to[k] = Constants(s[k], o[k], ends);
}

inline int64_t first_of(uint32_t block, uint32_t threads, uint32_t thread) { return int64_t{block} * threads + thread; }
inline int64_t all_of(uint32_t blocks, uint32_t threads) { return int64_t{blocks} * threads; }

// A pack of one row.
inline void whole(const X* x, Y* out, const Constants& c, const Ends& ends) {
  X from[kWidth];
  Y to[kWidth];
  load_pack(x, from);
  if (c.fast)
#pragma unroll
    for (int k = 0; k < kWidth; ++k) to[k] = c.multiplied(from[k], ends);
  else
#pragma unroll
    for (int k = 0; k < kWidth; ++k) to[k] = c.divided(from[k], ends);
  store_pack(to, out);
}

// One scale and offset per row. Threads along x share a row.
extern "C" __global__ void __launch_bounds__(256) rows(const ForwardRows job) {
  const Ends ends(job.parameters);
  const int64_t first = first_of(blockIdx.x, blockDim.x, threadIdx.x), step = all_of(gridDim.x, blockDim.x);
  for (int64_t z = blockIdx.z; z < job.outer; z += gridDim.z)
    for (int64_t r = first_of(blockIdx.y, blockDim.y, threadIdx.y); r < job.rows; r += all_of(gridDim.y, blockDim.y)) {
      const X* x = reinterpret_cast<const X*>(job.x) + z * job.x_outer + r * job.x_row;
      Y* out = reinterpret_cast<Y*>(job.out) + z * job.out_outer + r * job.out_row;
      Constants constants[1];
      load_constants(job.parameters, ends, z * job.s_outer + r * job.s_step, 0, z * job.o_outer + r * job.o_step, 0,
                     constants);
      const Constants& c = constants[0];
      const Cut cut = Cut::of(x, out, job.len);
      for (int64_t p = first; p < cut.packs; p += step)
        whole(x + cut.head + p * kWidth, out + cut.head + p * kWidth, c, ends);
      const int64_t packed = cut.packs * kWidth;
      for (int64_t i = first; i < job.len - packed; i += step) {
        const int64_t at = i < cut.head ? i : i + packed;
        out[at] = c.of(x[at], ends);
      }
    }
}

// One scale and offset per column, which a thread keeps for all of its rows.
template <int n>
inline void column_pack(const ForwardRows& job, const Ends& ends, int64_t z, int64_t column) {
  Constants c[n];
  load_constants(job.parameters, ends, z * job.s_outer + column * job.s_step, job.s_step,
                 z * job.o_outer + column * job.o_step, job.o_step, c);
  bool fast = true;
#pragma unroll
  for (int k = 0; k < n; ++k) fast &= c[k].fast;
  for (int64_t r = first_of(blockIdx.y, blockDim.y, threadIdx.y); r < job.rows; r += all_of(gridDim.y, blockDim.y)) {
    const X* x = reinterpret_cast<const X*>(job.x) + z * job.x_outer + r * job.x_row + column;
    Y* out = reinterpret_cast<Y*>(job.out) + z * job.out_outer + r * job.out_row + column;
    X from[n];
    Y to[n];
    if constexpr (n == 1)
      from[0] = x[0];
    else
      load_pack(x, from);
    if (fast)
#pragma unroll
      for (int k = 0; k < n; ++k) to[k] = c[k].multiplied(from[k], ends);
    else
#pragma unroll
      for (int k = 0; k < n; ++k) to[k] = c[k].divided(from[k], ends);
    if constexpr (n == 1)
      out[0] = to[0];
    else
      store_pack(to, out);
  }
}

extern "C" __global__ void __launch_bounds__(256) columns(const ForwardRows job) {
  const Ends ends(job.parameters);
  const int64_t first = first_of(blockIdx.x, blockDim.x, threadIdx.x), step = all_of(gridDim.x, blockDim.x);
  // What is aligned in one row is in all.
  const bool alike = job.x_row % kInAccess<X> == 0 && job.x_outer % kInAccess<X> == 0 &&
                     job.out_row % kInAccess<Y> == 0 && job.out_outer % kInAccess<Y> == 0;
  const Cut cut = alike ? Cut::of(reinterpret_cast<const X*>(job.x), reinterpret_cast<const Y*>(job.out), job.len)
                        : Cut{job.len, 0};
  const int64_t packed = cut.packs * kWidth;
  for (int64_t z = blockIdx.z; z < job.outer; z += gridDim.z) {
    for (int64_t p = first; p < cut.packs; p += step) column_pack<kWidth>(job, ends, z, cut.head + p * kWidth);
    for (int64_t i = first; i < job.len - packed; i += step)
      column_pack<1>(job, ends, z, i < cut.head ? i : i + packed);
  }
}

// Any strides and blocks, element by element.
extern "C" __global__ void __launch_bounds__(256) strided(const ForwardStrided job) {
  const Ends ends(job.parameters);
  for (int64_t i = first_of(blockIdx.x, blockDim.x, threadIdx.x); i < job.numel; i += all_of(gridDim.x, blockDim.x)) {
    int64_t rest = i, x = 0, out = 0, s = 0, o = 0;
#pragma unroll
    for (int d = 0; d < kMostDimensions; ++d) {
      if (d >= job.ndim) break;
      const int64_t at = rest % job.size[d], block = at / job.block[d];
      rest /= job.size[d];
      x += at * job.x_step[d];
      out += at * job.out_step[d];
      s += block * job.s_step[d];
      o += block * job.o_step[d];
    }
    Constants c[1];
    load_constants(job.parameters, ends, s, 0, o, 0, c);
    reinterpret_cast<Y*>(job.out)[out] = c[0].of(reinterpret_cast<const X*>(job.x)[x], ends);
  }
}

}  // namespace halfeven::device
