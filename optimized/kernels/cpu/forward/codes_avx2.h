// AVX2: 8-bit codes of float32 and bfloat16.
//
// No limits are needed before the quotient: integers saturate on their way from 32 to 16 and to 8 bits. Only what no
// int32 holds, and NaN, come out as the lowest int32 whatever their sign. They are found by the word that it becomes,
// and those elements are divided by the generic kernel.

namespace halfeven::HALFEVEN_ISA {

template <Dtype In, Dtype Out>
struct Codes {
  static constexpr int64_t kIn = In == Dtype::F32 ? 4 : 2, kOut = 1, kWidth = 32;
  static constexpr float kSlack = 0;
  static constexpr bool kStreams = false;

  __m256i low, high;  // the ends of the grid

  explicit Codes(const ForwardSettings& settings)
      : low(_mm256_set1_epi8(static_cast<char>(static_cast<int>(settings.low)))),
        high(_mm256_set1_epi8(static_cast<char>(static_cast<int>(settings.high)))) {}

  // Codes of 16 elements. `least` gathers the least of the words before the offset.
  [[gnu::always_inline]] static __m256i words(const Elements<In>& x, const Sixteen& c, __m256i& least) {
    const __m256i v = pack_words(quotient(x.a, c.a), quotient(x.b, c.b));
    least = _mm256_min_epi16(least, v);
    return _mm256_subs_epi16(v, c.offsets);
  }

  [[gnu::always_inline]] static bool unanswered(__m256i least) {
    return _mm256_movemask_epi8(_mm256_cmpeq_epi16(least, _mm256_set1_epi16(-32768)));
  }

  // Those of 32 elements, or of 16 twice, in their order.
  [[gnu::always_inline]] __m256i bytes(__m256i first, __m256i second) const {
    const __m256i packed =
        Out == Dtype::I8 ? _mm256_min_epi8(high, _mm256_max_epi8(low, _mm256_packs_epi16(first, second)))
                         : _mm256_min_epu8(high, _mm256_max_epu8(low, _mm256_packus_epi16(first, second)));
    if constexpr (In == Dtype::F32)
      return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    const __m256i paired = _mm256_shuffle_epi8(
        packed, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15)));
    return _mm256_permute4x64_epi64(paired, 0xd8);
  }

  // 32 elements that follow each other; false, and nothing written, where one is to be divided.
  template <bool>
  [[gnu::always_inline]] bool whole(const char* x, char* out, const Sixteen& c) const {
    __m256i least = _mm256_setzero_si256();
    const __m256i first = words(Elements<In>(x), c, least), second = words(Elements<In>(x + 16 * kIn), c, least);
    if (unanswered(least)) [[unlikely]] return false;
    put<false>(out, bytes(first, second));
    return true;
  }

  [[gnu::always_inline]] bool half(const char* x, char* out, const Sixteen& c) const {
    __m256i least = _mm256_setzero_si256();
    const __m256i all = words(Elements<In>(x), c, least);
    if (unanswered(least)) [[unlikely]] return false;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(bytes(all, all)));
    return true;
  }

  // kWidth elements of each of the rows, from element i on, with the constants from column c on.
  template <class Constants>
  [[gnu::always_inline]] bool columns(const Starts& at, int64_t i, const Constants& constants, int64_t c) const {
    __m256i first[kPlaces], second[kPlaces], least = _mm256_setzero_si256();
    const Sixteen first_16 = constants.of_16_columns(c), second_16 = constants.of_16_columns(c + 16);
    for (int k = 0; k < kPlaces; ++k) first[k] = words(Elements<In>(at.x[k] + i * kIn), first_16, least);
    for (int k = 0; k < kPlaces; ++k) second[k] = words(Elements<In>(at.x[k] + (i + 16) * kIn), second_16, least);
    if (unanswered(least)) [[unlikely]] return false;
    for (int k = 0; k < kPlaces; ++k) put<false>(at.out[k] + i, bytes(first[k], second[k]));
    return true;
  }
};

}  // namespace halfeven::HALFEVEN_ISA
