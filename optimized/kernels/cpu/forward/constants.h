// x / s by multiplications, as core/reciprocal.h says, and what vectors of elements are computed with. Scales and
// offsets that do not qualify go to the generic kernel, which divides.

namespace halfeven::HALFEVEN_ISA {

// Where 1/s in two parts serves.
[[gnu::always_inline]] inline Ints scale_qualifies(Floats s) {
  const Ints significand = (Ints)s & 0x7fffff;
  Ints excepted = {};
  for (const uint32_t each : kExcepted) excepted |= significand == static_cast<int32_t>(each);
  return (s >= kLeastScale) & (s <= kMostScale) & ~excepted;
}

// What a vector of elements is computed with: parameters of columns, or all the same of a row.
struct OfVector {
  Floats inverse, correction, low, high, s, o;
};

struct OfPair {
  OfVector a, b;
  Words offsets;  // as pack() orders them
};

// What the reciprocal y of s lost.
[[gnu::always_inline]] inline Floats correction_of(Floats s, Floats y) { return fused(-s, y, all(1.0f)) * y; }

// The constants of kMost rows or columns at most.
template <int64_t kMost>
struct Constants {
  // Not of a power of two in size: arrays at such a distance compete for the same lines of a cache.
  static constexpr int64_t kSize = kMost + kPair;
  alignas(64) float inverse[kSize], correction[kSize], low[kSize], high[kSize], s[kSize], o[kSize];
  alignas(64) int32_t offset_pairs[kSize];  // o in both halves
  alignas(64) int16_t offsets[kSize];       // only after pack_offsets
  Floats span;                              // from low to high, in codes

  [[gnu::always_inline]] OfPair of_row(int64_t i) const {
    const OfVector each = {all(inverse[i]), all(correction[i]), all(low[i]), all(high[i]), all(s[i]), all(o[i])};
    return {each, each, (Words)all(offset_pairs[i])};
  }

  // Two are computed anew: columns by the thousand, several rows at a time, leave little of the nearest cache to their
  // constants. A limit only has to be near enough to the end of the grid to round to it.
  [[gnu::always_inline]] OfVector of_columns(int64_t i) const {
    const Floats y = at<Floats>(inverse + i), from = at<Floats>(low + i), sv = at<Floats>(s + i);
    return {y, correction_of(sv, y), from, fused(sv, span, from), sv, at<Floats>(o + i)};
  }

  // Without the limits, which codes do not need.
  [[gnu::always_inline]] OfPair of_column_pair(int64_t i) const {
    const auto quotients = [&](int64_t j) __attribute__((always_inline)) {
      return OfVector{.inverse = at<Floats>(inverse + j), .correction = at<Floats>(correction + j)};
    };
    return {quotients(i), quotients(i + kN), at<Words>(offsets + i)};
  }

  // Fills in those of n parameters, and says whether all of them qualify. `slack`: how far beyond the ends of the
  // grid, in codes, x is let through. s_ and o_ are readable up to a multiple of kPair, which vectors go to.
  bool prepare(const ForwardSettings& settings, const float* s_, const float* o_, int64_t n, float slack) {
    const float grid_low = static_cast<float>(settings.low), grid_high = static_cast<float>(settings.high);
    span = all((grid_high + slack) - (grid_low - slack));
    Ints bad = {};
    for (int64_t i = 0; i < n; i += kN) {
      const Floats sv = at<Floats>(s_ + i), ov = at<Floats>(o_ + i);
      // The ends for rne(x/s), exact where o qualifies, with 0 between them.
      const Floats a = grid_low + ov, b = grid_high + ov;
      const Ints whole = half_even(ov) == ov;
      const Ints good = scale_qualifies(sv) & whole & (a <= 0) & (a >= -kBound) & (b >= 0) & (b <= kBound);
      const int64_t left = n - i;
      bad |= ~good & (counted() < static_cast<int32_t>(left < kN ? left : kN));
      const Floats y = 1.0f / sv;
      put(inverse + i, y);
      put(correction + i, correction_of(sv, y));
      put(low + i, (a - slack) * sv);
      put(high + i, (b + slack) * sv);
      put(s + i, sv);
      put(o + i, ov);
      const Ints integers = to_ints(ov);
      put(offset_pairs + i, (integers & 0xffff) | (integers << 16));
    }
    return !any(bad);
  }

  // For of_column_pair, after prepare.
  void pack_offsets(int64_t n) {
    for (int64_t i = 0; i < n; i += kPair)
      put(offsets + i, pack(to_ints(at<Floats>(o + i)), to_ints(at<Floats>(o + i + kN))));
  }
};

[[gnu::always_inline]] inline Floats quotient(Floats x, const OfVector& c) {
  return fused(x, c.inverse, x * c.correction);
}

}  // namespace halfeven::HALFEVEN_ISA
