// Minima and maxima on a GPU, for one dtype: HALFEVEN_IN, and HALFEVEN_MAGNITUDES, 1 for amax. All is done on integers
// that have the order of the floats (core/keys.h), so that no order of the threads tells in the result. Grids may be of
// any size: every loop goes on in steps of all threads.

#include "cuda/device.h"
#include "cuda/reduce.h"
#include "cuda/shares.h"

#include "core/keys.h"

namespace halfeven::device {

using namespace reduce;

inline constexpr Dtype kIn = Dtype::HALFEVEN_IN;
inline constexpr bool kMagnitudes = HALFEVEN_MAGNITUDES;

template <int item>
struct KeyOf;
template <> struct KeyOf<2> { using K = int16_t; static constexpr int kStored = kIn == Dtype::F16 ? 10 : 7; };
template <> struct KeyOf<4> { using K = int32_t; static constexpr int kStored = 23; };
template <> struct KeyOf<8> { using K = int64_t; static constexpr int kStored = 52; };
using Of = KeyOf<sizeof(Stored<kIn>::Memory)>;
using K = Of::K;

inline constexpr int kSign = 8 * sizeof(K) - 1;
inline constexpr K kLeast = static_cast<K>(K(1) << kSign), kMost = static_cast<K>(~kLeast);
inline constexpr K kInfinity = static_cast<K>(kMost >> Of::kStored << Of::kStored);
inline constexpr K kNan = static_cast<K>(kInfinity | K(1) << (Of::kStored - 1));

inline K number(K key) { return static_cast<K>(key ^ ((key >> kSign) & kMost)); }

// Keys so far.
struct Ends {
  K low = kMost, high = kLeast;

  void take(K bits) {
    const K k = key<K, kMagnitudes>(bits);
    high = more(high, k);
    if constexpr (!kMagnitudes) low = less(low, k);
  }

  static Ends read(const CombineJob& job, int64_t at) {
    Ends ends;
    ends.high = reinterpret_cast<const K*>(job.high)[at];
    if constexpr (!kMagnitudes) ends.low = reinterpret_cast<const K*>(job.low)[at];
    return ends;
  }

  void join(const Ends& other) {
    high = more(high, other.high);
    if constexpr (!kMagnitudes) low = less(low, other.low);
  }

  void put(const ReduceResults& to, int64_t at) const {
    const bool nan = high > kInfinity || (!kMagnitudes && low < number(static_cast<K>(kInfinity | kLeast)));
    const K top = !to.last ? high : nan ? kNan : number(high), bottom = !to.last ? low : nan ? kNan : number(low);
    reinterpret_cast<K*>(to.high)[at] = top;
    if constexpr (!kMagnitudes) reinterpret_cast<K*>(to.low)[at] = bottom;
  }
};

// len is reduced. Threads along x share a row, those along y take other rows.
extern "C" __global__ void __launch_bounds__(256) rows(const ReduceJob job) {
  constexpr int n = kInAccess<K>;
  each_share<Ends>(job, [&](int64_t kept, int64_t first, int64_t t, int64_t threads, Ends& ends) {
    for (int64_t r = first; r < job.reduced; r += job.row_shares) {
      const K* x = reinterpret_cast<const K*>(job.x) + place(job.size, job.x_step, job.reduced_loops, job.loops, kept) +
                   place(job.size, job.x_step, 0, job.reduced_loops, r);
      const Cut cut = job.len_step == 1 ? Cut::of(x, x, job.len) : Cut{job.len, 0};
      const int64_t packed = cut.packs * n;
      for (int64_t p = t; p < cut.packs; p += threads) {
        K from[n];
        load_pack(x + cut.head + p * n, from);
#pragma unroll
        for (int k = 0; k < n; ++k) ends.take(from[k]);
      }
      for (int64_t i = t; i < job.len - packed; i += threads)
        ends.take(x[(i < cut.head ? i : i + packed) * job.len_step]);
    }
  });
}

// len is kept. Threads along x take columns, those along y share what is reduced.
extern "C" __global__ void __launch_bounds__(256) columns(const ReduceJob job) {
  for (int64_t y = first_of(blockIdx.y, blockDim.y, threadIdx.y); y < job.kept * job.row_shares;
       y += all_of(gridDim.y, blockDim.y)) {
    const int64_t kept = y / job.row_shares, share = y % job.row_shares;
    const K* x = reinterpret_cast<const K*>(job.x) + place(job.size, job.x_step, job.reduced_loops, job.loops, kept);
    for (int64_t c = first_of(blockIdx.x, blockDim.x, threadIdx.x); c < job.len; c += all_of(gridDim.x, blockDim.x)) {
      Ends ends;
      for (int64_t i = share; i < job.reduced; i += job.row_shares)
        ends.take(x[place(job.size, job.x_step, 0, job.reduced_loops, i) + c * job.len_step]);
      ends.put(job.to, job.to.last ? out_of(job, kept) + c * job.out_step : y * job.len + c);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) combine(const CombineJob job) { combine_shares<Ends>(job); }

}  // namespace halfeven::device
