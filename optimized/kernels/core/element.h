// One element of quantize, quantize_dequantize and dequantize. Compiled once per instruction set, like arith.h, which
// comes before.

namespace halfeven::HALFEVEN_ISA {

template <Operation op, Dtype In, Dtype T, Dtype Out>
struct Element {
  using W = Working<T>;
  using C = typename W::C;
  using X = typename Stored<In>::Memory;
  using Y = typename Stored<Out>::Memory;

  static Y of(X x, C s, C o, C low, C high, C shift, C back, C nan) {
    if constexpr (op == Operation::Dequantize) {
      return Stored<Out>::store(W::round(W::round(load_as<In, T>(x) + o) * s));
    } else {
      return of_quotient(W::round(load_as<In, T>(x) / s), s, o, low, high, shift, back, nan);
    }
  }

  // From the quotient v of x and s on.
  static Y of_quotient(C v, C s, C o, C low, C high, C shift, C back, C nan) {
    if constexpr (op == Operation::QuantizeDequantizeShifted) v = W::round(v - shift);
    const C r = W::round(half_even(v) - o);
    C q = limit(r, low, high);
    if constexpr (op != Operation::Quantize) {
      return Stored<Out>::store(W::round(W::round(q + back) * s));
    } else {
      if constexpr (!is_float(Out)) q = r == r ? q : nan;
      return Stored<Out>::store(q);
    }
  }
};

}  // namespace halfeven::HALFEVEN_ISA
