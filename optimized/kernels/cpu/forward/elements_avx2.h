// AVX2: loads, stores, and the order of elements in vectors.

namespace halfeven::HALFEVEN_ISA {

template <bool kStream>
[[gnu::always_inline]] inline void put(char* p, __m256i v) {
  if constexpr (kStream)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), v);
  else
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
}

// 16 elements as two vectors. Of float32 a has the first 8. Of bfloat16 a has the even ones and b the odd ones, which
// takes one instruction each.
template <Dtype In>
struct Elements {
  __m256 a, b;

  [[gnu::always_inline]] explicit Elements(const char* p) : a(first(p)), b(second(p)) {}

  [[gnu::always_inline]] static __m256 first(const char* p) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_castsi256_ps(In == Dtype::F32 ? v : _mm256_slli_epi32(v, 16));
  }

  [[gnu::always_inline]] static __m256 second(const char* p) {
    if constexpr (In == Dtype::F32) return first(p + 32);
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
  }
};

// Puts n values in the order in which Elements<In> has them, the last one once more up to a multiple of 16.
template <Dtype In>
void order_as_elements(const float* from, int64_t n, float* to) {
  const int64_t padded = (n + 15) / 16 * 16;
  std::copy(from, from + n, to);
  std::fill(to + n, to + padded, from[n - 1]);
  if constexpr (In == Dtype::F32) return;
  for (int64_t i = 0; i < padded; i += 16) {
    const __m256 a = _mm256_loadu_ps(to + i), b = _mm256_loadu_ps(to + i + 8);
    const __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    const __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
    _mm256_storeu_ps(to + i, _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8)));
    _mm256_storeu_ps(to + i + 8, _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8)));
  }
}

}  // namespace halfeven::HALFEVEN_ISA
