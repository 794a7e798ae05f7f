// x / s by multiplications, on grids of up to about 10 bits. Compiled once per instruction set, like arith.h, which
// comes before.
//
// A divider is slower than the memory near it, so x / s is computed by multiplications here:
//     y = 1/s,  e = (1 - s*y) * y,  q = x*y + x*e        (each + a fused multiply-add)
// e is what the reciprocal y lost, so q is a rounding of x times nearly all of 1/s. It need not be the true quotient,
// only round to the same integer. That holds for every x and for every s but those of three significands, as long as
// the integer is at most 1023 in magnitude and the exponent of s is moderate: tried for all 2^23 significands and all
// of these integers at the floats around each tie, where alone it can fail, since between ties both quotients are
// monotonic in x; and powers of two scale each step exactly. Farther out q is still monotonic, so it stays beyond the
// ends of the grid; what becomes of infinities, NaN and overflow, each step says. Scales and offsets that do not
// qualify are divided by.

namespace halfeven::HALFEVEN_ISA {

inline constexpr float kBound = 1023, kLeastScale = 0x1p-60f, kMostScale = 0x1p60f;
inline constexpr uint32_t kExcepted[3] = {0x6e7ffe, 0x74fffe, 0x7fffff};

inline bool scale_qualifies(float s) {
  const uint32_t significand = bits_of(s) & 0x7fffff;
  const bool excepted = (significand == kExcepted[0]) | (significand == kExcepted[1]) | (significand == kExcepted[2]);
  return (s >= kLeastScale) & (s <= kMostScale) & !excepted;
}

// An integer that puts the ends of the grid where the bound has them, with 0 between them.
inline bool offset_qualifies(float o, float low, float high) {
  const float below = low + o, above = high + o;
  return (half_even(o) == o) & (below <= 0) & (below >= -kBound) & (above >= 0) & (above <= kBound);
}

// What the elements of one scale and offset, which qualify, are multiplied with.
struct Reciprocal {
  float inverse, correction, below, above;

  // x is limited to one step beyond the grid: so infinities and huge values keep to the bound, and what is beyond the
  // end stays there when a zero gets its sign.
  static Reciprocal of(float s, float o, float low, float high) {
    const float inverse = 1.0f / s;
    return {inverse, __builtin_fmaf(-s, inverse, 1.0f) * inverse, (low + o - 1) * s, (high + o + 1) * s};
  }

  // What rounds as x / s does, where that is on the grid, and is beyond the same end where it is not. NaN is kept.
  float quotient(float x) const {
    const float near = limit(x, below, above);
    const float q = __builtin_fmaf(near, inverse, near * correction);
    // A zero has the sign of x: the sum may have lost it.
    return float_of(bits_of(q) | (bits_of(x) & 0x80000000));
  }
};

}  // namespace halfeven::HALFEVEN_ISA
