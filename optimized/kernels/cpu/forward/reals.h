// Reals on the grid, and float codes, of float32 and bfloat16.

namespace halfeven::HALFEVEN_ISA {

// Rounds to bfloat16, which is then the upper half. NaN stays one: it comes from bfloat16 and has zeros below.
[[gnu::always_inline]] inline Ints round_to_bf16(Floats v) {
  const Unsigned u = (Unsigned)v;
  return (Ints)(u + ((u >> 16 & 1) + 0x7fff));
}

// The same, for products of moderate exponent, and -0.0 as +0.0. With p of 24 bits, N units: 65535 p is rounded to
// multiples of 65536 units, N - N/65536 of them (below the least power of two finer, where N/65536 is near an integer).
// N less that is N/65536, rounded: to the nearest, and at a tie, where N is even, to the even one.
[[gnu::always_inline]] inline Ints round_product_to_bf16(Floats p) {
  return (Ints)fused(p, all(65536.0f), -(p * 65535.0f));
}

// x is limited first to where the result lies on the grid, so that infinities and huge values keep to the bounds of
// quotient().
template <Dtype In, bool kCodes>
struct Reals {
  static constexpr int64_t kIn = In == Dtype::F32 ? 4 : 2, kOut = kIn;
  static constexpr int64_t kWidth = kVector / kOut;
  // A code of an element beyond the end is limited after its sign was set: it has to be beyond the end there too.
  static constexpr float kSlack = kCodes ? 1 : 0;
  static constexpr bool kStreams = true;

  Floats low, high;  // the ends of the grid

  explicit Reals(const ForwardSettings& settings)
      : low(all(static_cast<float>(settings.low))), high(all(static_cast<float>(settings.high))) {}

  [[gnu::always_inline]] Floats real(Floats x, const OfVector& c) const {
    const Floats r = half_even(quotient(limited(x, c.low, c.high), c));
    if constexpr (kCodes) {
      // A zero has the sign of x, which the quotient of -0.0 lost, or of an end: so the limits come last here.
      const Floats with_sign = (Floats)((Unsigned)r | ((Unsigned)x & 0x80000000));
      return limited(with_sign - c.o, low, high);
    } else {
      // (r - o) + o is r, but +0.0 where r is -0.0. Adding +0.0 to the product does that, and rounds nothing.
      return fused(r, c.s, Floats{});
    }
  }

  // To bfloat16. -0.0 is a code, but no product.
  [[gnu::always_inline]] static Words narrowed(Floats a, Floats b) {
    if constexpr (kCodes) return upper_halves(round_to_bf16(a), round_to_bf16(b));
    return upper_halves(round_product_to_bf16(a), round_product_to_bf16(b));
  }

  template <bool kStream>
  [[gnu::always_inline]] static void store(char* out, Floats a, Floats b) {
    if constexpr (In == Dtype::F32) {
      put_or_stream<kStream>(out, a);
      put_or_stream<kStream>(out + kVector, b);
    } else {
      put_or_stream<kStream>(out, narrowed(a, b));
    }
  }

  // kWhole elements that follow each other. Always true: none needs a division.
  template <bool kStream>
  [[gnu::always_inline]] bool whole(const char* x, char* out, const OfPair& c) const {
    const Elements<In> first(x), second(x + kPair * kIn);
    store<kStream>(out, real(first.a, c.a), real(first.b, c.b));
    store<kStream>(out + kPair * kOut, real(second.a, c.a), real(second.b, c.b));
    return true;
  }

  // kPair elements.
  [[gnu::always_inline]] bool half(const char* x, char* out, const OfPair& c) const {
    const Elements<In> pair(x);
    store<false>(out, real(pair.a, c.a), real(pair.b, c.b));
    return true;
  }

  // kWidth elements of each of the rows, from element i on, with the constants from column c on. All are loaded before
  // one is stored: a load whose address is like that of a store before it, but for a multiple of 4096, waits for it.
  template <class Constants>
  [[gnu::always_inline]] bool columns(const Starts& starts, int64_t i, const Constants& constants, int64_t c) const {
    Floats a[kPlaces], b[kPlaces];
    const OfVector of_a = constants.of_columns(c);
    for (int k = 0; k < kPlaces; ++k) a[k] = real(Elements<In>::first(starts.x[k] + i * kIn), of_a);
    if constexpr (In == Dtype::F32) {
      for (int k = 0; k < kPlaces; ++k) put(starts.out[k] + i * kOut, a[k]);
    } else {
      const OfVector of_b = constants.of_columns(c + kN);
      for (int k = 0; k < kPlaces; ++k) b[k] = real(Elements<In>::second(starts.x[k] + i * kIn), of_b);
      for (int k = 0; k < kPlaces; ++k) put(starts.out[k] + i * kOut, narrowed(a[k], b[k]));
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

  Floats inverse, low, high, s, less;

  Single(const ForwardSettings& settings, float inverse_, float s_, float o)
      : inverse(all(inverse_)),
        low(all(kMagic + (static_cast<float>(settings.low) + o))),
        high(all(kMagic + (static_cast<float>(settings.high) + o))),
        s(all(float_of((bits_of(s_) + 2) & ~3u))),
        less(-(kMagic * s)) {}

  // For codes of this magnitude at most, of a scale as scale_qualifies() has it. Edges are odd multiples of s/2, reals
  // multiples of s; a factor of 2 changes no bit below, so that odd multiples of s stand for all.
  static bool serves(float s, float most) {
    Floats odd = __builtin_convertvector(2 * counted() + 1, Floats);
    Ints near = {};
    float first = 1;
    // Where its bits beside those of bfloat16 are within `units` of a multiple of mask + 1.
    const auto look = [&](int mask, int units) __attribute__((always_inline)) {
      near |= (((Ints)(odd * s) + units) & mask) < 2 * units + 1;
      odd += static_cast<float>(kPair);
      first += static_cast<float>(kPair);
    };
    while (first <= most) look(0x7fff, 8);          // an edge near a bfloat16, or a real near the middle of two
    while (first <= 2 * most + 1) look(0xffff, 2);  // an edge
    return !any(near);
  }

  [[gnu::always_inline]] Ints real(Floats x) const {
    const Floats m = limited(fused(x, inverse, all(kMagic)), low, high);
    return (Ints)fused(m, s, less) + 0x8000;
  }

  template <bool kStream>
  [[gnu::always_inline]] bool whole(const char* x, char* out, const Single&) const {
    const Elements<Dtype::BF16> first(x), second(x + kVector);
    put_or_stream<kStream>(out, upper_halves(real(first.a), real(first.b)));
    put_or_stream<kStream>(out + kVector, upper_halves(real(second.a), real(second.b)));
    return true;
  }

  [[gnu::always_inline]] bool half(const char* x, char* out, const Single&) const {
    const Elements<Dtype::BF16> pair(x);
    put(out, upper_halves(real(pair.a), real(pair.b)));
    return true;
  }
};

}  // namespace halfeven::HALFEVEN_ISA
