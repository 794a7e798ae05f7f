// Elements of a row as pairs of vectors.

namespace halfeven::HALFEVEN_ISA {

// Elements in a pair of vectors; four vectors of numbers are one of 8-bit codes.
inline constexpr int64_t kPair = 2 * kN, kWhole = 4 * kN;

template <bool kStream, class V>
[[gnu::always_inline]] inline void put_or_stream(char* p, V v) {
  if constexpr (kStream)
    stream(p, v);
  else
    put(p, v);
}

// kPair elements. Of float32 a has the first half. Of bfloat16 a has the even ones and b the odd ones, which takes one
// instruction each.
template <Dtype In>
struct Elements {
  Floats a, b;

  [[gnu::always_inline]] explicit Elements(const char* p) : a(first(p)), b(second(p)) {}

  [[gnu::always_inline]] static Floats first(const char* p) {
    if constexpr (In == Dtype::F32) return at<Floats>(p);
    return (Floats)(at<Unsigned>(p) << 16);
  }

  [[gnu::always_inline]] static Floats second(const char* p) {
    if constexpr (In == Dtype::F32) return at<Floats>(p + kVector);
    return (Floats)(at<Unsigned>(p) & 0xffff0000);
  }
};

// Puts n values in the order in which Elements<In> has them, the last one once more up to a multiple of kPair.
template <Dtype In>
void order_as_elements(const float* from, int64_t n, float* to) {
  const auto value = [&](int64_t i) { return from[i < n ? i : n - 1]; };
  for (int64_t i = 0; i < n; i += kPair)
    for (int64_t k = 0; k < kN; ++k) {
      to[i + k] = value(i + (In == Dtype::F32 ? k : 2 * k));
      to[i + kN + k] = value(i + (In == Dtype::F32 ? kN + k : 2 * k + 1));
    }
}

}  // namespace halfeven::HALFEVEN_ISA
