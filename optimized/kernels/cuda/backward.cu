// The gradients of quantize, quantize_dequantize and dequantize on a GPU, for one combination of dtypes:
// HALFEVEN_GRADIENT, HALFEVEN_IN, HALFEVEN_GRAD, HALFEVEN_COMPUTE. Sums are in float64, in an order that shapes and
// strides alone fix: neither grids nor places in memory tell in them.

#include "cuda/device.h"
#include "cuda/backward.h"
#include "cuda/shares.h"

#include "core/gradient.h"

namespace halfeven::device {

using namespace backward;

inline constexpr Gradient kGradient = Gradient::HALFEVEN_GRADIENT;
inline constexpr Dtype kIn = Dtype::HALFEVEN_IN, kGrad = Dtype::HALFEVEN_GRAD, kCompute = Dtype::HALFEVEN_COMPUTE;
using C = Working<kCompute>::C;
using X = Stored<kIn>::Memory;
using G = Stored<kGrad>::Memory;
// Elements that a thread takes at a time, and whether by 16 bytes.
inline constexpr int kTogether = 16 / (sizeof(X) < sizeof(G) ? sizeof(G) : sizeof(X));
inline constexpr bool kAlike = sizeof(X) == sizeof(G);

// -0.0 + x is x, also where x is -0.0.
struct Sums {
  double ds = -0.0, d_o = -0.0;

  static Sums read(const CombineJob& job, int64_t at) {
    Sums sums;
    if (job.low) sums.ds = reinterpret_cast<const double*>(job.low)[at];
    if (job.high) sums.d_o = reinterpret_cast<const double*>(job.high)[at];
    return sums;
  }

  void join(const Sums& other) {
    ds += other.ds;
    d_o += other.d_o;
  }

  void put(const ReduceResults& to, int64_t at) const {
    if (to.low) reinterpret_cast<double*>(to.low)[at] = ds;
    if (to.high) reinterpret_cast<double*>(to.high)[at] = d_o;
  }
};

// What the elements of an entry are computed with.
struct Entry {
  C low, high, shift;
  Parameter<kCompute> parameter;

  Entry(const ForwardParameters& p, int64_t s_at, int64_t o_at)
      : low(static_cast<C>(p.low)), high(static_cast<C>(p.high)),
        shift(Working<kCompute>::round(static_cast<C>(p.shift))),
        parameter(of(p, s_at, o_at, low, high, shift)) {}

  static Parameter<kCompute> of(const ForwardParameters& p, int64_t s_at, int64_t o_at, C low, C high, C shift) {
    C s[1], o[1];
    load_scales<kCompute>(p.s, p.s_dtype, s_at, 0, s);
    load_offsets<kCompute>(p.o, p.o_dtype, p.is_offset, o_at, 0, o);
    return Parameter<kCompute>(s[0], o[0], low, high, shift);
  }

  // dx of an element, whose terms go to the sums.
  X take(X x, G g, Sums& sums) const {
    const Terms<kGradient, kCompute> terms(load_as<kGrad, kCompute>(g), load_as<kIn, kCompute>(x), parameter, low, high,
                                           shift);
    sums.ds += static_cast<double>(terms.ds);
    sums.d_o += static_cast<double>(terms.d_o);
    if constexpr (!is_float(kIn))
      return X();
    else if constexpr (kGradient == Gradient::Dequantize)
      return Stored<kIn>::store(terms.dx);
    else
      return stored<kGradient, kIn>(terms, g);
  }
};

inline bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// len is reduced. Threads along x share a row, those along y take other rows.
extern "C" __global__ void __launch_bounds__(256) rows(const BackwardJob job) {
  each_share<Sums>(job, [&](int64_t kept, int64_t first, int64_t t, int64_t threads, Sums& sums) {
    const auto begin = [&](const int64_t (&step)[kMostLoops]) {
      return place(job.size, step, job.reduced_loops, job.loops, kept);
    };
    const Entry entry(job.parameters, begin(job.s_step), begin(job.o_step));
    for (int64_t r = first; r < job.reduced; r += job.row_shares) {
      const auto at = [&](const int64_t (&step)[kMostLoops]) {
        return begin(step) + place(job.size, step, 0, job.reduced_loops, r);
      };
      const X* x = reinterpret_cast<const X*>(job.x) + at(job.x_step);
      const G* g = reinterpret_cast<const G*>(job.g) + at(job.g_step);
      X* dx = reinterpret_cast<X*>(job.dx) + (job.dx ? at(job.dx_step) : 0);
      const bool whole = kAlike && job.x_len == 1 && job.g_len == 1 && job.dx_len == 1 && job.dx && aligned(x) &&
                         aligned(g) && aligned(dx);
      for (int64_t i = t * kTogether; i < job.len; i += threads * kTogether) {
        if constexpr (kAlike)
          if (whole && i + kTogether <= job.len) {
            X of_x[kTogether], to[kTogether];
            G of_g[kTogether];
            load_pack(x + i, of_x);
            load_pack(g + i, of_g);
#pragma unroll
            for (int k = 0; k < kTogether; ++k) to[k] = entry.take(of_x[k], of_g[k], sums);
            store_pack(to, dx + i);
            continue;
          }
        for (int64_t k = i; k < i + kTogether && k < job.len; ++k) {
          const X to = entry.take(x[k * job.x_len], g[k * job.g_len], sums);
          if (job.dx) dx[k * job.dx_len] = to;
        }
      }
    }
  });
}

// len is kept. Threads along x take columns, those along y share what is reduced.
extern "C" __global__ void __launch_bounds__(256) columns(const BackwardJob job) {
  for (int64_t y = first_of(blockIdx.y, blockDim.y, threadIdx.y); y < job.kept * job.row_shares;
       y += all_of(gridDim.y, blockDim.y)) {
    const int64_t kept = y / job.row_shares, share = y % job.row_shares;
    for (int64_t c = first_of(blockIdx.x, blockDim.x, threadIdx.x); c < job.len; c += all_of(gridDim.x, blockDim.x)) {
      const auto at = [&](const int64_t (&step)[kMostLoops], int64_t len) {
        return place(job.size, step, job.reduced_loops, job.loops, kept) + c * len;
      };
      const auto along = [&](const int64_t (&step)[kMostLoops], int64_t i) {
        return place(job.size, step, 0, job.reduced_loops, i);
      };
      const X* x = reinterpret_cast<const X*>(job.x) + at(job.x_step, job.x_len);
      const G* g = reinterpret_cast<const G*>(job.g) + at(job.g_step, job.g_len);
      X* dx = reinterpret_cast<X*>(job.dx) + at(job.dx_step, job.dx_len);
      const Entry entry(job.parameters, at(job.s_step, job.s_len), at(job.o_step, job.o_len));
      Sums sums;
      for (int64_t i = share; i < job.reduced; i += job.row_shares) {
        const X to = entry.take(x[along(job.x_step, i)], g[along(job.g_step, i)], sums);
        if (job.dx) dx[along(job.dx_step, i)] = to;
      }
      sums.put(job.to, job.to.last ? out_of(job, kept) + c * job.out_step : y * job.len + c);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) combine(const CombineJob job) { combine_shares<Sums>(job); }

}  // namespace halfeven::device
