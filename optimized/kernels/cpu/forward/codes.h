// 8-bit codes of float32 and bfloat16.
//
// No limits are needed before the quotient: integers saturate on their way from 32 to 16 and to 8 bits. Where those of
// 32 bits do not saturate, what none of them holds, and NaN, come out as the least whatever their sign, and are found
// by the word that it becomes; where they do, a quotient that is NaN is found, which infinities give too. Such elements
// are divided by the generic kernel.

namespace halfeven::HALFEVEN_ISA {

// Whether some element has to be divided.
struct Doubt {
  Words least = {};     // of the words before the offset
  Ints unordered = {};  // where a quotient was NaN

  [[gnu::always_inline]] bool holds() const {
    if constexpr (kIntsSaturate) return any(unordered);
    return any((Words)(least == -32768));
  }
};

template <Dtype In, Dtype Out>
struct Codes {
  static constexpr int64_t kIn = In == Dtype::F32 ? 4 : 2, kOut = 1, kWidth = kWhole;
  static constexpr float kSlack = 0;
  static constexpr bool kStreams = false, kSigned = Out == Dtype::I8;
  using Code = std::conditional_t<kSigned, Bytes, Vector<uint8_t, kVector>>;

  Code low, high;  // the ends of the grid

  explicit Codes(const ForwardSettings& settings)
      : low(Code{} + static_cast<typename Stored<Out>::Memory>(settings.low)),
        high(Code{} + static_cast<typename Stored<Out>::Memory>(settings.high)) {}

  // Codes of a pair of vectors.
  [[gnu::always_inline]] static Words words(const Elements<In>& x, const OfPair& c, Doubt& doubt) {
    const Floats a = quotient(x.a, c.a), b = quotient(x.b, c.b);
    const Words v = pack(to_ints(a), to_ints(b));
    if constexpr (kIntsSaturate)
      doubt.unordered |= (a != a) | (b != b);
    else
      doubt.least = v < doubt.least ? v : doubt.least;
    return saturating_difference(v, c.offsets);
  }

  // Those of two pairs, or of one twice, in their order.
  [[gnu::always_inline]] Bytes bytes(Words first, Words second) const {
    const Bytes packed = (Bytes)limited_codes((Code)pack<kSigned>(first, second), low, high);
    if constexpr (In == Dtype::F32) {
      const Ints v = (Ints)packed;
      return (Bytes)shuffled(v, v, [](int k) { return k % kLanes * 4 + k / kLanes; });
    }
    const Bytes paired = shuffled(packed, packed, [](int k) { return k / 8 * 8 + k % 2 * 4 + k % 8 / 2; });
    return (Bytes)packed_in_order((Words)paired);
  }

  // kWhole elements that follow each other; false, and nothing written, where one is to be divided.
  template <bool>
  [[gnu::always_inline]] bool whole(const char* x, char* out, const OfPair& c) const {
    Doubt doubt;
    const Words first = words(Elements<In>(x), c, doubt), second = words(Elements<In>(x + kPair * kIn), c, doubt);
    if (doubt.holds()) [[unlikely]] return false;
    put(out, bytes(first, second));
    return true;
  }

  // kPair elements.
  [[gnu::always_inline]] bool half(const char* x, char* out, const OfPair& c) const {
    Doubt doubt;
    const Words pair = words(Elements<In>(x), c, doubt);
    if (doubt.holds()) [[unlikely]] return false;
    const Bytes twice = bytes(pair, pair);
    __builtin_memcpy(out, &twice, kPair);
    return true;
  }

  // kWidth elements of each of the rows, from element i on, with the constants from column c on.
  template <class Constants>
  [[gnu::always_inline]] bool columns(const Starts& starts, int64_t i, const Constants& constants, int64_t c) const {
    Words first[kPlaces], second[kPlaces];
    Doubt doubt;
    const OfPair of_first = constants.of_column_pair(c), of_second = constants.of_column_pair(c + kPair);
    for (int k = 0; k < kPlaces; ++k) first[k] = words(Elements<In>(starts.x[k] + i * kIn), of_first, doubt);
    for (int k = 0; k < kPlaces; ++k)
      second[k] = words(Elements<In>(starts.x[k] + (i + kPair) * kIn), of_second, doubt);
    if (doubt.holds()) [[unlikely]] return false;
    for (int k = 0; k < kPlaces; ++k) put(starts.out[k] + i, bytes(first[k], second[k]));
    return true;
  }
};

}  // namespace halfeven::HALFEVEN_ISA
