// Vectors of HALFEVEN_VECTOR bytes, in the compiler's own extension for them: operators work lane by lane, comparisons
// give integers of all ones where they hold, and `mask ? a : b` chooses. So the kernels are written once, whatever the
// width. What has instructions that no operator stands for, or that GCC misses in large functions, is in native_x86.h and
// native_neon.h: functions there go before those of the same name here.
//
// Compiled once per target, like core/arith.h, which comes before.

#ifndef HALFEVEN_VECTOR
#error "HALFEVEN_VECTOR is the size of a vector in bytes"
#endif

namespace halfeven::HALFEVEN_ISA {

template <class T, int n>
using Vector [[gnu::vector_size(sizeof(T) * n)]] = T;

// Bytes in a vector, and in it numbers of 32 bits and lanes of 128 bits.
inline constexpr int kVector = HALFEVEN_VECTOR, kN = kVector / 4, kLanes = kVector / 16;

using Floats = Vector<float, kN>;
using Ints = Vector<int32_t, kN>;
using Unsigned = Vector<uint32_t, kN>;
using Words = Vector<int16_t, 2 * kN>;
using Bytes = Vector<int8_t, 4 * kN>;
using Quads = Vector<int64_t, kN / 2>;

template <class V>
[[gnu::always_inline]] inline V at(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <class V>
[[gnu::always_inline]] inline void put(void* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// -0.0 less 0 is -0.0.
[[gnu::always_inline]] inline Floats all(float v) { return v - Floats{}; }
[[gnu::always_inline]] inline Ints all(int32_t v) { return v + Ints{}; }

// 0, 1, 2, ...
[[gnu::always_inline]] inline Ints counted() {
  Ints v;
  for (int i = 0; i < kN; ++i) v[i] = i;
  return v;
}

// x y + z, rounded once.
template <class V>
[[gnu::always_inline]] inline V fused(V x, V y, V z) {
  V v;
  for (unsigned i = 0; i < sizeof(V) / sizeof(x[0]); ++i) {
    if constexpr (sizeof(x[0]) == sizeof(float))
      v[i] = __builtin_fmaf(x[i], y[i], z[i]);
    else
      v[i] = __builtin_fma(x[i], y[i], z[i]);
  }
  return v;
}

// To the nearest integer, ties to even.
template <class V>
[[gnu::always_inline]] inline V half_even(V x) {
  V v;
  for (unsigned i = 0; i < sizeof(V) / sizeof(float); ++i) v[i] = __builtin_rintf(x[i]);
  return v;
}

// NaN passes through, by the order of the operands.
template <class V>
[[gnu::always_inline]] inline V limited(V x, V low, V high) {
  const V above = low > x ? low : x;
  return high < above ? high : above;
}

template <class V>
[[gnu::always_inline]] inline V limited_codes(V x, V low, V high) {
  const V above = x > low ? x : low;
  return above < high ? above : high;
}

template <class V, class From, int... k>
[[gnu::always_inline]] inline V shuffled_by(V a, V b, From from, std::integer_sequence<int, k...>) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, from(k)...);
#else
  using Index = decltype(a < b);
  return __builtin_shuffle(a, b, Index{static_cast<std::remove_cvref_t<decltype(Index{}[0])>>(from(k))...});
#endif
}

// Element k is element from(k) of a followed by b; `from` is known to the compiler.
template <class V, class From>
[[gnu::always_inline]] inline V shuffled(V a, V b, From from) {
  return shuffled_by(a, b, from, std::make_integer_sequence<int, sizeof(V) / sizeof(a[0])>{});
}

// pack() takes four 32-bit numbers of one vector and four of the other in turns: quads, eight bytes as words, which
// this puts in the order of the vectors.
[[gnu::always_inline]] inline Words packed_in_order(Words packed) {
  const Quads v = (Quads)packed;
  return (Words)shuffled(v, v, [](int q) { return q / kLanes + q % kLanes * 2; });
}

// Of 32-bit numbers the upper halves: those of a are even elements, those of b odd ones.
[[gnu::always_inline]] inline Words upper_halves(Ints a, Ints b) {
  return shuffled((Words)((Unsigned)a >> 16), (Words)b, [](int k) { return k % 2 ? 2 * kN + k : k; });
}

}  // namespace halfeven::HALFEVEN_ISA
