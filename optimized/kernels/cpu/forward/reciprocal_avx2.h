// AVX2: x / s by multiplications, as core/reciprocal.h says. Scales and offsets that do not qualify go to the generic
// kernel, which divides.

namespace halfeven::HALFEVEN_ISA {

// Where 1/s in two parts serves.
[[gnu::always_inline]] inline __m256 scale_qualifies(__m256 s) {
  const __m256i significand = _mm256_and_si256(_mm256_castps_si256(s), _mm256_set1_epi32(0x7fffff));
  __m256i excepted = _mm256_setzero_si256();
  for (const uint32_t each : kExcepted)
    excepted = _mm256_or_si256(excepted, _mm256_cmpeq_epi32(significand, _mm256_set1_epi32(static_cast<int>(each))));
  const __m256 moderate = _mm256_and_ps(_mm256_cmp_ps(s, _mm256_set1_ps(kLeastScale), _CMP_GE_OQ),
                                        _mm256_cmp_ps(s, _mm256_set1_ps(kMostScale), _CMP_LE_OQ));
  return _mm256_andnot_ps(_mm256_castsi256_ps(excepted), moderate);
}

// 16 integers as words that saturate; in each half of the vector four of a, then four of b. NaN and what no int32
// holds become -32768.
[[gnu::always_inline]] inline __m256i pack_words(__m256 a, __m256 b) {
  return _mm256_packs_epi32(_mm256_cvtps_epi32(a), _mm256_cvtps_epi32(b));
}

// What 8 elements are computed with: parameters of columns, or 8 times one of a row.
struct Eight {
  __m256 inverse, correction, low, high, s, o;
};

// What the reciprocal y of s lost.
[[gnu::always_inline]] inline __m256 correction_of(__m256 s, __m256 y) {
  return _mm256_mul_ps(_mm256_fnmadd_ps(s, y, _mm256_set1_ps(1)), y);
}

struct Sixteen {
  Eight a, b;
  __m256i offsets;  // in words, as pack_words orders them
};

// The constants of kMost rows or columns at most.
template <int64_t kMost>
struct Constants {
  // Not of a power of two in size: arrays at such a distance compete for the same lines of a cache.
  static constexpr int64_t kSize = kMost + 16;
  alignas(32) float inverse[kSize], correction[kSize], low[kSize], high[kSize], s[kSize], o[kSize];
  alignas(32) int32_t offset_pairs[kSize];  // o in both halves
  alignas(32) int16_t offsets[kSize];       // only after pack_offsets
  __m256 span;                              // from low to high, in codes

  [[gnu::always_inline]] Sixteen of_row(int64_t i) const {
    const Eight all = {_mm256_set1_ps(inverse[i]), _mm256_set1_ps(correction[i]), _mm256_set1_ps(low[i]),
                       _mm256_set1_ps(high[i]),    _mm256_set1_ps(s[i]),          _mm256_set1_ps(o[i])};
    return {all, all, _mm256_set1_epi32(offset_pairs[i])};
  }

  // Two are computed anew: columns by the thousand, several rows at a time, leave little of the nearest cache to their
  // constants. A limit only has to be near enough to the end of the grid to round to it.
  [[gnu::always_inline]] Eight of_columns(int64_t i) const {
    const __m256 y = _mm256_load_ps(inverse + i), from = _mm256_load_ps(low + i), sv = _mm256_load_ps(s + i);
    return {y, correction_of(sv, y), from, _mm256_fmadd_ps(sv, span, from), sv, _mm256_load_ps(o + i)};
  }

  // Without the limits, which codes do not need.
  [[gnu::always_inline]] Sixteen of_16_columns(int64_t i) const {
    const auto quotients = [&](int64_t j) __attribute__((always_inline)) {
      return Eight{.inverse = _mm256_load_ps(inverse + j), .correction = _mm256_load_ps(correction + j)};
    };
    return {quotients(i), quotients(i + 8), _mm256_load_si256(reinterpret_cast<const __m256i*>(offsets + i))};
  }

  // Fills in those of n parameters, and says whether all of them qualify. `slack`: how far beyond the ends of the
  // grid, in codes, x is let through. s_ and o_ are readable up to a multiple of 8, which vectors go to.
  bool prepare(const ForwardSettings& settings, const float* s_, const float* o_, int64_t n, float slack) {
    const __m256 grid_low = _mm256_set1_ps(static_cast<float>(settings.low));
    const __m256 grid_high = _mm256_set1_ps(static_cast<float>(settings.high));
    const __m256 bound = _mm256_set1_ps(kBound), zero = _mm256_setzero_ps(), beyond = _mm256_set1_ps(slack);
    span = _mm256_sub_ps(_mm256_add_ps(grid_high, beyond), _mm256_sub_ps(grid_low, beyond));
    int bad = 0;
    for (int64_t i = 0; i < n; i += 8) {
      const __m256 sv = _mm256_loadu_ps(s_ + i), ov = _mm256_loadu_ps(o_ + i);
      // The ends for rne(x/s), exact where o qualifies, with 0 between them.
      const __m256 a = _mm256_add_ps(grid_low, ov), b = _mm256_add_ps(grid_high, ov);
      const __m256 rounded = _mm256_round_ps(ov, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      const __m256 whole = _mm256_cmp_ps(rounded, ov, _CMP_EQ_OQ);
      const __m256 below = _mm256_and_ps(_mm256_cmp_ps(a, zero, _CMP_LE_OQ),
                                         _mm256_cmp_ps(a, _mm256_sub_ps(zero, bound), _CMP_GE_OQ));
      const __m256 above = _mm256_and_ps(_mm256_cmp_ps(b, zero, _CMP_GE_OQ), _mm256_cmp_ps(b, bound, _CMP_LE_OQ));
      const __m256 good = _mm256_and_ps(_mm256_and_ps(scale_qualifies(sv), whole), _mm256_and_ps(below, above));
      const int missing = ~_mm256_movemask_ps(good) & 0xff;
      bad |= n - i >= 8 ? missing : missing & ((1 << (n - i)) - 1);
      const __m256 y = _mm256_div_ps(_mm256_set1_ps(1), sv);
      _mm256_store_ps(inverse + i, y);
      _mm256_store_ps(correction + i, correction_of(sv, y));
      _mm256_store_ps(low + i, _mm256_mul_ps(_mm256_sub_ps(a, beyond), sv));
      _mm256_store_ps(high + i, _mm256_mul_ps(_mm256_add_ps(b, beyond), sv));
      _mm256_store_ps(s + i, sv);
      _mm256_store_ps(o + i, ov);
      const __m256i integers = _mm256_cvtps_epi32(ov);
      _mm256_store_si256(reinterpret_cast<__m256i*>(offset_pairs + i),
                         _mm256_blend_epi16(integers, _mm256_slli_epi32(integers, 16), 0xaa));
    }
    return !bad;
  }

  // For of_16_columns, after prepare.
  void pack_offsets(int64_t n) {
    for (int64_t i = 0; i < n; i += 16)
      _mm256_store_si256(reinterpret_cast<__m256i*>(offsets + i),
                         pack_words(_mm256_load_ps(o + i), _mm256_load_ps(o + i + 8)));
  }
};

[[gnu::always_inline]] inline __m256 quotient(__m256 x, const Eight& c) {
  return _mm256_fmadd_ps(x, c.inverse, _mm256_mul_ps(x, c.correction));
}

// NaN passes through the limits by the order of their operands.
[[gnu::always_inline]] inline __m256 limited(__m256 x, __m256 low, __m256 high) {
  return _mm256_min_ps(high, _mm256_max_ps(low, x));
}

}  // namespace halfeven::HALFEVEN_ISA
