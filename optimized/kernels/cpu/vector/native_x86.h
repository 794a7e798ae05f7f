// What AVX2 and AVX-512 have instructions for, of vectors of 32 or 64 bytes. HALFEVEN_MM(name) is the intrinsic of that
// width. Like vector.h, which comes before, compiled once per target.
//
// AVX-512's conversion to bfloat16 is not among them: it takes subnormals for 0.

namespace halfeven::HALFEVEN_ISA {

#if HALFEVEN_VECTOR == 64
#define HALFEVEN_MM(name) _mm512_##name
using Native = __m512i;
using NativeHalf = __m256i;
#else
#define HALFEVEN_MM(name) _mm256_##name
using Native = __m256i;
using NativeHalf = __m128i;
#endif

// As in vector.h.
[[gnu::always_inline]] inline Floats fused(Floats x, Floats y, Floats z) { return HALFEVEN_MM(fmadd_ps)(x, y, z); }
[[gnu::always_inline]] inline Floats half_even(Floats x) {
#if HALFEVEN_VECTOR == 64
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#endif
}

// Of operands that are not ordered these instructions give the second.
[[gnu::always_inline]] inline Floats limited(Floats x, Floats low, Floats high) {
  return HALFEVEN_MM(min_ps)(high, HALFEVEN_MM(max_ps)(low, x));
}

// To the nearest integer, ties to even. What no int32 holds, and NaN, become the least one.
[[gnu::always_inline]] inline Ints to_ints(Floats v) { return (Ints)HALFEVEN_MM(cvtps_epi32)(v); }
inline constexpr bool kIntsSaturate = false;

// Integers of half the size, which saturate; in each lane of 128 bits first those of a, then those of b.
[[gnu::always_inline]] inline Words pack(Ints a, Ints b) {
  return (Words)HALFEVEN_MM(packs_epi32)((Native)a, (Native)b);
}
template <bool kSigned>
[[gnu::always_inline]] inline Bytes pack(Words a, Words b) {
  return (Bytes)(kSigned ? HALFEVEN_MM(packs_epi16)((Native)a, (Native)b)
                         : HALFEVEN_MM(packus_epi16)((Native)a, (Native)b));
}

// Of each lane of 128 bits the first or the second half of the words, each after a word of 0.
template <bool kSecond>
[[gnu::always_inline]] inline Ints after_zeros(Words v) {
  if constexpr (kSecond) return (Ints)HALFEVEN_MM(unpackhi_epi16)(Native{}, (Native)v);
  return (Ints)HALFEVEN_MM(unpacklo_epi16)(Native{}, (Native)v);
}

[[gnu::always_inline]] inline Words saturating_difference(Words a, Words b) {
  return (Words)HALFEVEN_MM(subs_epi16)((Native)a, (Native)b);
}

// kN bytes as numbers.
template <bool kSigned>
[[gnu::always_inline]] inline Floats widened(const void* p) {
#if HALFEVEN_VECTOR == 64
  const __m128i v = at<__m128i>(p);
#else
  const __m128i v = _mm_loadl_epi64(static_cast<const __m128i*>(p));
#endif
  return (Floats)HALFEVEN_MM(cvtepi32_ps)(kSigned ? HALFEVEN_MM(cvtepi8_epi32)(v) : HALFEVEN_MM(cvtepu8_epi32)(v));
}

// As float16, a before b.
[[gnu::always_inline]] inline Words to_float16(Floats a, Floats b) {
  const NativeHalf both[2] = {HALFEVEN_MM(cvtps_ph)(a, _MM_FROUND_TO_NEAREST_INT),
                              HALFEVEN_MM(cvtps_ph)(b, _MM_FROUND_TO_NEAREST_INT)};
  return at<Words>(both);
}

// Whether some lane's bits are not all zero.
template <class V>
[[gnu::always_inline]] inline bool any(V v) {
#if HALFEVEN_VECTOR == 64
  return _mm512_test_epi32_mask((Native)v, (Native)v);
#else
  return !_mm256_testz_si256((Native)v, (Native)v);
#endif
}

// Past the caches, to a multiple of the vector's size.
template <class V>
[[gnu::always_inline]] inline void stream(void* p, V v) {
  HALFEVEN_MM(stream_ps)(static_cast<float*>(p), (Floats)v);
}
inline void fence() { _mm_sfence(); }

[[gnu::always_inline]] inline Vector<double, 4> fused(Vector<double, 4> x, Vector<double, 4> y, Vector<double, 4> z) {
  return (Vector<double, 4>)_mm256_fmadd_pd(x, y, z);
}

// Four floats in memory.
[[gnu::always_inline]] inline Vector<double, 4> doubles(const float* p) { return (Vector<double, 4>)_mm256_cvtps_pd(_mm_loadu_ps(p)); }

}  // namespace halfeven::HALFEVEN_ISA
