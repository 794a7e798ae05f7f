// Scalars as the kernels compute with them: loading, rounding and storing every dtype.
//
// Compiled once per instruction set, each in a namespace of its own (HALFEVEN_ISA), so that the linker cannot take a
// function compiled for AVX2 where the other is meant. Include only in files that set it. Everything is written so
// that a loop over it becomes vector instructions without any licence to change results.
//
// Headers of other libraries come before the pragma that sets a target. The compiler takes the target of a function,
// and of each instance of a template, from where it is declared: so what they declare is compiled for every processor,
// and may be linked into what runs on any.

#ifndef HALFEVEN_ISA
#error "HALFEVEN_ISA names the namespace"
#endif

// Whether there is an instruction that rounds to an integer. Before g++ 13 a target set by a pragma does not show in
// the compiler's own macros: files with such a pragma define HALFEVEN_SSE4.
#if defined(__aarch64__) || defined(__SSE4_1__) || defined(HALFEVEN_SSE4) || defined(__CUDACC__)
#define HALFEVEN_ROUNDS 1
#else
#define HALFEVEN_ROUNDS 0
#endif

namespace halfeven::HALFEVEN_ISA {

inline uint32_t bits_of(float v) { return __builtin_bit_cast(uint32_t, v); }
inline float float_of(uint32_t v) { return __builtin_bit_cast(float, v); }

// To the nearest integer, ties to even, in the rounding mode that every thread starts with.
inline float half_even(float v) {
#if HALFEVEN_ROUNDS
  return __builtin_rintf(v);
#else
  // Beside 2^23 floats are integers; above it, and for NaN, v is kept.
  const float magnitude = float_of(bits_of(v) & 0x7fffffff);
  const float rounded = (magnitude + 0x1p23f) - 0x1p23f;
  const float kept = magnitude < 0x1p23f ? rounded : magnitude;
  return float_of(bits_of(kept) | (bits_of(v) & 0x80000000));
#endif
}

inline double half_even(double v) {
#if HALFEVEN_ROUNDS
  return __builtin_rint(v);
#else
  const uint64_t bits = __builtin_bit_cast(uint64_t, v), sign = bits & 0x8000000000000000;
  const double magnitude = __builtin_bit_cast(double, bits ^ sign);
  const double rounded = (magnitude + 0x1p52) - 0x1p52;
  const double kept = magnitude < 0x1p52 ? rounded : magnitude;
  return __builtin_bit_cast(double, __builtin_bit_cast(uint64_t, kept) | sign);
#endif
}

inline float widen_bf16(uint16_t h) { return float_of(uint32_t{h} << 16); }

inline uint16_t narrow_bf16(float v) {
  const uint32_t u = bits_of(v);
  const uint32_t rounded = u + 0x7fff + (u >> 16 & 1);
  return static_cast<uint16_t>(((u & 0x7fffffff) > 0x7f800000 ? u | 0x400000 : rounded) >> 16);
}

inline float round_bf16(float v) {
  const uint32_t u = bits_of(v);
  const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000;
  // A NaN keeps no bits below: what narrows it later may add to them.
  return float_of((u & 0x7fffffff) > 0x7f800000 ? (u | 0x400000) & 0xffff0000 : rounded);
}

inline float widen_f16(uint16_t h) {
  const uint32_t sign = uint32_t{h} << 16 & 0x80000000, m = h & 0x7fffu;
  // Rebias the exponent by 112, once more for infinity and NaN. A subnormal is so many times 2^-24.
  const uint32_t normal = (m << 13) + 0x38000000 + (m >= 0x7c00 ? 0x38000000u : 0u);
  const uint32_t subnormal = bits_of(static_cast<float>(static_cast<int32_t>(m)) * 0x1p-24f);
  return float_of((m < 0x400 ? subnormal : normal) | sign);
}

inline uint16_t narrow_f16(float v) {
  const uint32_t u = bits_of(v), sign = u & 0x80000000, a = u ^ sign;
  const uint32_t normal = (a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13;
  // The float next to 1/2 is 2^-24 away, which is the least float16: adding rounds to a multiple of it.
  const uint32_t subnormal = bits_of(float_of(a) + 0.5f) - 0x3f000000;
  const uint32_t infinite = a > 0x7f800000 ? 0x7e00 : 0x7c00;
  const uint32_t finite = a < 0x38800000 ? subnormal : normal;
  return static_cast<uint16_t>((a >= 0x47800000 ? infinite : finite) | sign >> 16);
}

inline float round_f16(float v) {
  const uint32_t u = bits_of(v), sign = u & 0x80000000, a = u ^ sign;
  const uint32_t normal = (a + 0xfff + (a >> 13 & 1)) & 0xffffe000;
  const uint32_t subnormal = bits_of((float_of(a) + 0.5f) - 0.5f);
  const uint32_t finite = a < 0x38800000 ? subnormal : normal;
  const uint32_t infinite = a > 0x7f800000 ? a : 0x7f800000;
  return float_of((finite >= 0x47800000 ? infinite : finite) | sign);
}

// A double on its way to 16 bits, rounded to odd so that it is rounded once in effect: where float does not hold it,
// the odd one of its two neighbours. That one is on no tie of a narrower dtype, and on the side of it that v is on.
inline float round_to_odd(float v) { return v; }
inline float round_to_odd(double v) {
  const float near = static_cast<float>(v);
  const uint32_t u = bits_of(near);
  const bool inexact = static_cast<double>(near) != v && v == v;
  const bool below = __builtin_fabs(static_cast<double>(near)) < __builtin_fabs(v);
  return float_of(inexact && !(u & 1) ? (below ? u + 1 : u - 1) : u);
}

// A dtype in memory.
template <Dtype D>
struct Stored;
template <Dtype D, class M>
struct Number {
  using Memory = M;
  template <class C>
  static C load(M v) {
    return static_cast<C>(v);
  }
  template <class C>
  static M store(C v) {
    return static_cast<M>(v);
  }
};
template <Dtype D, class M>
struct Integer : Number<D, M> {
  // Of values in range. Through int32, which vectors convert to.
  template <class C>
  static M store(C v) {
    return static_cast<M>(static_cast<int32_t>(v));
  }
};
template <> struct Stored<Dtype::F32> : Number<Dtype::F32, float> {};
template <> struct Stored<Dtype::F64> : Number<Dtype::F64, double> {};
template <> struct Stored<Dtype::I8> : Integer<Dtype::I8, int8_t> {};
template <> struct Stored<Dtype::U8> : Integer<Dtype::U8, uint8_t> {};
template <> struct Stored<Dtype::I16> : Integer<Dtype::I16, int16_t> {};
template <> struct Stored<Dtype::U16> : Integer<Dtype::U16, uint16_t> {};
template <> struct Stored<Dtype::I32> : Integer<Dtype::I32, int32_t> {};
template <> struct Stored<Dtype::U32> : Number<Dtype::U32, uint32_t> {};
template <> struct Stored<Dtype::I64> : Number<Dtype::I64, int64_t> {};
template <float (*widen)(uint16_t), uint16_t (*narrow)(float)>
struct Half {
  using Memory = uint16_t;
  template <class C>
  static C load(uint16_t v) {
    return widen(v);
  }
  template <class C>
  static uint16_t store(C v) {
    return narrow(round_to_odd(v));
  }
};
template <> struct Stored<Dtype::F16> : Half<widen_f16, narrow_f16> {};
template <> struct Stored<Dtype::BF16> : Half<widen_bf16, narrow_bf16> {};

// A dtype to compute in: values are of type C, and round() is applied after each operation in C.
template <Dtype D>
struct Working {
  using C = float;
  static float round(float v) { return v; }
};
template <>
struct Working<Dtype::F64> {
  using C = double;
  static double round(double v) { return v; }
};
template <>
struct Working<Dtype::F16> {
  using C = float;
  static float round(float v) { return round_f16(v); }
};
template <>
struct Working<Dtype::BF16> {
  using C = float;
  static float round(float v) { return round_bf16(v); }
};

// Rounded to the working dtype T. An argument goes from float64 to 16 bits through float32, as torch's casts do; a
// result does not.
template <Dtype D, Dtype T>
typename Working<T>::C load_as(typename Stored<D>::Memory v) {
  return Working<T>::round(Stored<D>::template load<typename Working<T>::C>(v));
}

// As the comparisons say it: NaN and -0.0 are kept.
template <class C>
C limit(C v, C low, C high) {
  const C above = v < low ? low : v;
  return above > high ? high : above;
}

// The code of NaN: what the offset gives for 0, NaN taken as 0.
template <class C>
C code_of_nan(C o, C low, C high) {
  return limit(o == o ? C(0) - o : C(0), low, high);
}

}  // namespace halfeven::HALFEVEN_ISA
