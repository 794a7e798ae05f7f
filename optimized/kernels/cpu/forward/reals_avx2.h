// AVX2: reals on the grid, and float codes, of float32 and bfloat16.

namespace halfeven::HALFEVEN_ISA {

// Rounds to bfloat16, which is then the upper half. NaN stays one: it comes from bfloat16 and has zeros below.
[[gnu::always_inline]] inline __m256i round_to_bf16(__m256 v) {
  const __m256i u = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  return _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
}

// The same, for products of moderate exponent, and -0.0 as +0.0. With p of 24 bits, N units: 65535 p is rounded to
// multiples of 65536 units, N - N/65536 of them (below the least power of two finer, where N/65536 is near an integer).
// N less that is N/65536, rounded: to the nearest, and at a tie, where N is even, to the even one.
[[gnu::always_inline]] inline __m256i round_product_to_bf16(__m256 p) {
  const __m256 rest = _mm256_mul_ps(p, _mm256_set1_ps(65535.0f));
  return _mm256_castps_si256(_mm256_fmsub_ps(p, _mm256_set1_ps(65536.0f), rest));
}

// In the order of Elements.
[[gnu::always_inline]] inline __m256i upper_halves(__m256i a, __m256i b) {
  return _mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xaa);
}

// x is limited first to where the result lies on the grid, so that infinities and huge values keep to the bounds of
// quotient().
template <Dtype In, bool kCodes>
struct Reals {
  static constexpr int64_t kIn = In == Dtype::F32 ? 4 : 2, kOut = kIn;
  static constexpr int64_t kWidth = 32 / kOut;
  // A code of an element beyond the end is limited after its sign was set: it has to be beyond the end there too.
  static constexpr float kSlack = kCodes ? 1 : 0;
  static constexpr bool kStreams = true;

  __m256 low, high;  // the ends of the grid

  explicit Reals(const ForwardSettings& settings)
      : low(_mm256_set1_ps(static_cast<float>(settings.low))),
        high(_mm256_set1_ps(static_cast<float>(settings.high))) {}

  [[gnu::always_inline]] __m256 real(__m256 x, const Eight& c) const {
    __m256 r = _mm256_round_ps(quotient(limited(x, c.low, c.high), c), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if constexpr (kCodes) {
      // A zero has the sign of x, which the quotient of -0.0 lost, or of an end: so the limits come last here.
      r = _mm256_or_ps(r, _mm256_and_ps(x, _mm256_set1_ps(-0.0f)));
      return limited(_mm256_sub_ps(r, c.o), low, high);
    } else {
      // (r - o) + o is r, but +0.0 where r is -0.0. Adding +0.0 to the product does that, and rounds nothing.
      return _mm256_fmadd_ps(r, c.s, _mm256_setzero_ps());
    }
  }

  // To bfloat16. -0.0 is a code, but no product.
  [[gnu::always_inline]] static __m256i narrowed(__m256 a, __m256 b) {
    if constexpr (kCodes) return upper_halves(round_to_bf16(a), round_to_bf16(b));
    return upper_halves(round_product_to_bf16(a), round_product_to_bf16(b));
  }

  template <bool kStream>
  [[gnu::always_inline]] static void store(char* out, __m256 a, __m256 b) {
    if constexpr (In == Dtype::F32) {
      put<kStream>(out, _mm256_castps_si256(a));
      put<kStream>(out + 32, _mm256_castps_si256(b));
    } else {
      put<kStream>(out, narrowed(a, b));
    }
  }

  // 32 elements that follow each other. Always true: none needs a division.
  template <bool kStream>
  [[gnu::always_inline]] bool whole(const char* x, char* out, const Sixteen& c) const {
    const Elements<In> first(x), second(x + 16 * kIn);
    store<kStream>(out, real(first.a, c.a), real(first.b, c.b));
    store<kStream>(out + 16 * kOut, real(second.a, c.a), real(second.b, c.b));
    return true;
  }

  [[gnu::always_inline]] bool half(const char* x, char* out, const Sixteen& c) const {
    const Elements<In> all(x);
    store<false>(out, real(all.a, c.a), real(all.b, c.b));
    return true;
  }

  // kWidth elements of each of the rows, from element i on, with the constants from column c on. All are loaded before
  // one is stored: a load whose address is like that of a store before it, but for a multiple of 4096, waits for it.
  template <class Constants>
  [[gnu::always_inline]] bool columns(const Starts& at, int64_t i, const Constants& constants, int64_t c) const {
    __m256 a[kPlaces], b[kPlaces];
    const Eight of_a = constants.of_columns(c);
    for (int k = 0; k < kPlaces; ++k) a[k] = real(Elements<In>::first(at.x[k] + i * kIn), of_a);
    if constexpr (In == Dtype::F32) {
      for (int k = 0; k < kPlaces; ++k) put<false>(at.out[k] + i * kOut, _mm256_castps_si256(a[k]));
    } else {
      const Eight of_b = constants.of_columns(c + 8);
      for (int k = 0; k < kPlaces; ++k) b[k] = real(Elements<In>::second(at.x[k] + i * kIn), of_b);
      for (int k = 0; k < kPlaces; ++k) put<false>(at.out[k] + i * kOut, narrowed(a[k], b[k]));
    }
    return true;
  }
};

// bfloat16 on the grid with half of the instructions, where no code comes near a tie:
// - the quotient by one product with 1/s, rounded to an integer by the sum with kMagic, whose unit is 1. Product and
//   true quotient, each within 2^-24 of x/s, round to the same integer unless a bfloat16 x is about as near to an edge
//   between two codes;
// - the real as m s - kMagic s, exact up to its one rounding, with 22 bits of s, so that kMagic s is exact; and
//   rounded half up. That is within 5 units of the product with all of s, and rounds as it does if the product is not
//   about as near to the middle of two bfloat16.
struct Single {
  static constexpr int64_t kIn = 2, kOut = 2;
  static constexpr float kMagic = 0x1.8p23f;

  __m256 inverse, low, high, s, origin;

  Single(const ForwardSettings& settings, float inverse_, float s_, float o)
      : inverse(_mm256_set1_ps(inverse_)),
        low(_mm256_set1_ps(kMagic + (static_cast<float>(settings.low) + o))),
        high(_mm256_set1_ps(kMagic + (static_cast<float>(settings.high) + o))),
        s(_mm256_set1_ps(float_of((bits_of(s_) + 2) & ~3u))),
        origin(_mm256_mul_ps(_mm256_set1_ps(kMagic), s)) {}

  // For codes of this magnitude at most, of a scale as scale_qualifies() has it. Edges are odd multiples of s/2, reals
  // multiples of s; a factor of 2 changes no bit below, so that odd multiples of s stand for all.
  static bool serves(float s, float most) {
    const __m256 all = _mm256_set1_ps(s), sixteen = _mm256_set1_ps(16);
    __m256 odd = _mm256_setr_ps(1, 3, 5, 7, 9, 11, 13, 15);
    __m256i near = _mm256_setzero_si256();
    float first = 1;
    // Where its bits beside those of bfloat16 are within `units` of a multiple of mask + 1.
    const auto look = [&](int mask, int units) {
      const __m256i bits = _mm256_castps_si256(_mm256_mul_ps(odd, all));
      const __m256i sums = _mm256_add_epi32(bits, _mm256_set1_epi32(units));
      const __m256i beside = _mm256_and_si256(sums, _mm256_set1_epi32(mask));
      near = _mm256_or_si256(near, _mm256_cmpgt_epi32(_mm256_set1_epi32(2 * units + 1), beside));
      odd = _mm256_add_ps(odd, sixteen);
      first += 16;
    };
    while (first <= most) look(0x7fff, 8);          // an edge near a bfloat16, or a real near the middle of two
    while (first <= 2 * most + 1) look(0xffff, 2);  // an edge
    return _mm256_testz_si256(near, near);
  }

  [[gnu::always_inline]] __m256i real(__m256 x) const {
    const __m256 m = limited(_mm256_fmadd_ps(x, inverse, _mm256_set1_ps(kMagic)), low, high);
    return _mm256_add_epi32(_mm256_castps_si256(_mm256_fmsub_ps(m, s, origin)), _mm256_set1_epi32(0x8000));
  }

  template <bool kStream>
  [[gnu::always_inline]] bool whole(const char* x, char* out, const Single&) const {
    const Elements<Dtype::BF16> first(x), second(x + 32);
    put<kStream>(out, upper_halves(real(first.a), real(first.b)));
    put<kStream>(out + 32, upper_halves(real(second.a), real(second.b)));
    return true;
  }

  [[gnu::always_inline]] bool half(const char* x, char* out, const Single&) const {
    const Elements<Dtype::BF16> all(x);
    put<false>(out, upper_halves(real(all.a), real(all.b)));
    return true;
  }
};

}  // namespace halfeven::HALFEVEN_ISA
