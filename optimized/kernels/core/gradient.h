// The gradient of one element: what it hands on, and its terms of the sums for scale and offset. The rounding has
// derivative 1, the clamp 0 beyond its ends. Compiled once per instruction set, like arith.h, which comes before.

namespace halfeven::HALFEVEN_ISA::backward {

// What an element needs of its parameters.
template <Dtype T>
struct Parameter {
  using W = Working<T>;
  using C = typename W::C;
  C s, o, below, above, clipped_shift;

  Parameter(C scale, C offset, C low, C high, C shift) : s(scale), o(offset) {
    below = W::round(low + o);
    above = W::round(high + o);
    // No shift is -0.0, which added to -0.0 keeps its sign. A NaN offset has no ends to compare with, and so comes in
    // here.
    clipped_shift = o == o ? (shift == 0 ? C(-0.0) : shift) : o;
  }
};

template <Gradient op, Dtype T>
struct Terms {
  using W = Working<T>;
  using C = typename W::C;
  C dx, ds, d_o;
  bool inside = true;

  // Everything is computed and then chosen from, as vectors do.
  Terms(C g, C x, const Parameter<T>& p, C low, C high, C shift) {
    if constexpr (op == Gradient::Dequantize) {
      dx = W::round(g * p.s);
      ds = W::round(g * W::round(x + p.o));
      d_o = dx;
    } else {
      C u = W::round(x / p.s);
      if constexpr (op == Gradient::QuantizeDequantize) u = W::round(u - shift);
      const C rounded = half_even(u), code = W::round(rounded - p.o);
      inside = (code >= low) & (code <= high);
      if constexpr (op == Gradient::Quantize) {
        const C kept = g * (inside ? C(1) : C(0));
        dx = W::round(kept / p.s);
        ds = W::round(-dx * u);
        d_o = -kept;
      } else {
        const C clipped = W::round(limit(rounded, p.below, p.above) + p.clipped_shift);
        const C residual = W::round(rounded - u), gs = W::round(g * p.s);
        dx = inside ? g : C(0);
        ds = W::round(g * (inside ? residual : clipped));
        d_o = inside ? C(0) : gs;
      }
    }
  }
};

// dx in memory, where a gradient that is handed on needs no rounding.
template <Gradient op, Dtype In, Dtype T>
typename Stored<In>::Memory stored(const Terms<op, T>& terms, typename Stored<In>::Memory g) {
  if constexpr (op == Gradient::QuantizeDequantize && In != T) return terms.inside ? g : 0;
  return Stored<In>::store(terms.dx);
}

}  // namespace halfeven::HALFEVEN_ISA::backward
