// The kernels of minima and maxima: plain loops over integers, which the compiler turns into vector instructions.
// Compiled once per instruction set, like core/keys.h.

#include "core/keys.h"

namespace halfeven::HALFEVEN_ISA::reduce {

template <class K, bool kMagnitudes>
void per_row(const ReduceJob& job) {
  for (int64_t r = 0; r < job.rows; ++r) {
    const K* __restrict x = reinterpret_cast<const K*>(job.x + r * job.row);
    K high = key<K, kMagnitudes>(x[0]), low = high;
    for (int64_t i = 0; i < job.len; ++i) {
      const K k = key<K, kMagnitudes>(x[i]);
      high = more(high, k);
      if constexpr (!kMagnitudes) low = less(low, k);
    }
    K& to = static_cast<K*>(job.high)[r * job.high_step];
    to = more(to, high);
    if constexpr (!kMagnitudes) {
      K& to = static_cast<K*>(job.low)[r * job.low_step];
      to = less(to, low);
    }
  }
}

// Four rows at a time, so that the results so far are read and written less often.
template <class K, bool kMagnitudes>
void per_column(const ReduceJob& job) {
  K* __restrict high = static_cast<K*>(job.high);
  K* __restrict low = static_cast<K*>(job.low);
  for (int64_t r = 0; r < job.rows; r += 4) {
    const auto row = [&](int64_t i) { return reinterpret_cast<const K*>(job.x + (i < job.rows ? i : r) * job.row); };
    const K* __restrict a = row(r);
    const K* __restrict b = row(r + 1);
    const K* __restrict c = row(r + 2);
    const K* __restrict d = row(r + 3);
    for (int64_t i = 0; i < job.len; ++i) {
      const K ka = key<K, kMagnitudes>(a[i]), kb = key<K, kMagnitudes>(b[i]);
      const K kc = key<K, kMagnitudes>(c[i]), kd = key<K, kMagnitudes>(d[i]);
      high[i] = more(high[i], more(more(ka, kb), more(kc, kd)));
      if constexpr (!kMagnitudes) low[i] = less(low[i], less(less(ka, kb), less(kc, kd)));
    }
  }
}

template <class K>
ReduceKernel kernel_of(bool columns, bool magnitudes) {
  if (columns) return magnitudes ? per_column<K, true> : per_column<K, false>;
  return magnitudes ? per_row<K, true> : per_row<K, false>;
}

inline ReduceKernel kernel(int64_t item, bool columns, bool magnitudes) {
  switch (item) {
    case 2: return kernel_of<int16_t>(columns, magnitudes);
    case 4: return kernel_of<int32_t>(columns, magnitudes);
    default: return kernel_of<int64_t>(columns, magnitudes);
  }
}

// From anywhere: see Loops::dense.
template <class K>
void copy_of(const char* from, int64_t step, int64_t n, char* to) {
  K* __restrict out = reinterpret_cast<K*>(to);
  for (int64_t i = 0; i < n; ++i) __builtin_memcpy(out + i, from + i * step, sizeof(K));
}

inline void copy(int64_t item, const char* from, int64_t step, int64_t n, char* to) {
  switch (item) {
    case 2: return copy_of<int16_t>(from, step, n, to);
    case 4: return copy_of<int32_t>(from, step, n, to);
    default: return copy_of<int64_t>(from, step, n, to);
  }
}

}  // namespace halfeven::HALFEVEN_ISA::reduce
