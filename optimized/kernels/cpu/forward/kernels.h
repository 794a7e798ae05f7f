// The kernels of every combination of dtypes: plain loops, which the compiler turns into vector instructions.
// Compiled once per instruction set, like arith.h.

namespace halfeven::HALFEVEN_ISA {

template <Operation op, Dtype In, Dtype T, Dtype Out, bool kColumns>
void generic(const ForwardSettings& settings, const ForwardJob& job) {
  using E = Element<op, In, T, Out>;
  using C = typename E::C;
  const C low = static_cast<C>(settings.low), high = static_cast<C>(settings.high);
  const C shift = Working<T>::round(static_cast<C>(settings.shift));
  const C* s = static_cast<const C*>(job.s);
  const C* o = static_cast<const C*>(job.o);
  constexpr bool kShifted = op == Operation::QuantizeDequantizeShifted;
  for (int64_t r = 0; r < job.rows; ++r) {
    const auto* x = reinterpret_cast<const typename E::X*>(job.x + r * job.x_row);
    auto* y = reinterpret_cast<typename E::Y*>(job.out + r * job.out_row);
    if constexpr (!kColumns) {
      const C s_r = s[r], o_r = o[r], back = kShifted ? Working<T>::round(o_r + shift) : o_r;
      const C nan = code_of_nan(o_r, low, high);
      // x and y are apart, or the same element by element.
#pragma GCC ivdep
      for (int64_t i = 0; i < job.len; ++i) y[i] = E::of(x[i], s_r, o_r, low, high, shift, back, nan);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < job.len; ++i) {
        const C back = kShifted ? Working<T>::round(o[i] + shift) : o[i];
        y[i] = E::of(x[i], s[i], o[i], low, high, shift, back, code_of_nan(o[i], low, high));
      }
    }
  }
}

template <Operation op, Dtype In, Dtype T, Dtype Out>
ForwardKernels pair() {
  return {generic<op, In, T, Out, false>, generic<op, In, T, Out, true>};
}

// Narrows the choice step by step: the dtype in memory, the one of the arithmetic, and the one of the result.
template <Operation op, Dtype In, Dtype T>
ForwardKernels by_out(Dtype out) {
  if constexpr (op == Operation::QuantizeDequantize || op == Operation::QuantizeDequantizeShifted) {
    return out == In ? pair<op, In, T, In>() : ForwardKernels{};
  } else if constexpr (op == Operation::Dequantize) {
    // Other results are rounded from this one: see forward.cpp.
    return out == T ? pair<op, In, T, T>() : ForwardKernels{};
  } else {
    switch (out) {
      case Dtype::I8: return pair<op, In, T, Dtype::I8>();
      case Dtype::U8: return pair<op, In, T, Dtype::U8>();
      case Dtype::I16: return pair<op, In, T, Dtype::I16>();
      case Dtype::U16: return pair<op, In, T, Dtype::U16>();
      case Dtype::I32: return pair<op, In, T, Dtype::I32>();
      default: return out == In ? pair<op, In, T, In>() : ForwardKernels{};
    }
  }
}

template <Operation op, Dtype In>
ForwardKernels by_compute(Dtype compute, Dtype out) {
  constexpr bool kAny = op == Operation::Dequantize;
  switch (compute) {
    case Dtype::F64: return by_out<op, In, Dtype::F64>(out);
    case Dtype::F32:
      if constexpr (kAny || In != Dtype::F64) return by_out<op, In, Dtype::F32>(out);
      return {};
    case Dtype::F16:
      if constexpr (kAny || In == Dtype::F16) return by_out<op, In, Dtype::F16>(out);
      return {};
    case Dtype::BF16:
      if constexpr (kAny || In == Dtype::BF16) return by_out<op, In, Dtype::BF16>(out);
      return {};
    default: return {};
  }
}

template <Operation op>
ForwardKernels by_in(Dtype in, Dtype compute, Dtype out) {
  constexpr bool kIntegers = op == Operation::Dequantize;
  switch (in) {
    case Dtype::F32: return by_compute<op, Dtype::F32>(compute, out);
    case Dtype::F64: return by_compute<op, Dtype::F64>(compute, out);
    case Dtype::F16: return by_compute<op, Dtype::F16>(compute, out);
    case Dtype::BF16: return by_compute<op, Dtype::BF16>(compute, out);
    default: break;
  }
  if constexpr (kIntegers) {
    switch (in) {
      case Dtype::I8: return by_compute<op, Dtype::I8>(compute, out);
      case Dtype::U8: return by_compute<op, Dtype::U8>(compute, out);
      case Dtype::I16: return by_compute<op, Dtype::I16>(compute, out);
      case Dtype::U16: return by_compute<op, Dtype::U16>(compute, out);
      case Dtype::I32: return by_compute<op, Dtype::I32>(compute, out);
      case Dtype::I64: return by_compute<op, Dtype::I64>(compute, out);
      default: break;
    }
  }
  return {};
}

inline ForwardKernels generic_kernels(Operation op, Dtype in, Dtype compute, Dtype out) {
  switch (op) {
    case Operation::Quantize: return by_in<Operation::Quantize>(in, compute, out);
    case Operation::QuantizeDequantize: return by_in<Operation::QuantizeDequantize>(in, compute, out);
    case Operation::QuantizeDequantizeShifted: return by_in<Operation::QuantizeDequantizeShifted>(in, compute, out);
    case Operation::Dequantize: return by_in<Operation::Dequantize>(in, compute, out);
  }
  return {};
}

}  // namespace halfeven::HALFEVEN_ISA
