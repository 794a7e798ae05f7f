// The dtypes that the kernels know, and sets of them.
#pragma once

#include <cstdint>

namespace halfeven {

// The floats come first.
enum class Dtype : int8_t { F32, F64, F16, BF16, I8, U8, I16, U16, I32, U32, I64, None };

using DtypeSet = uint32_t;
template <int n>
constexpr DtypeSet set_of(const Dtype (&all)[n]) {
  DtypeSet bits = 0;
  for (Dtype d : all) bits |= 1u << static_cast<int>(d);
  return bits;
}
constexpr bool contains(DtypeSet set, Dtype d) { return set >> static_cast<int>(d) & 1; }

inline constexpr DtypeSet kReals = set_of({Dtype::F32, Dtype::F64, Dtype::F16, Dtype::BF16});
inline constexpr DtypeSet kCodes = set_of({Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16, Dtype::I32});
inline constexpr DtypeSet kScales = kReals;
inline constexpr DtypeSet kZeroPoints = kReals | kCodes | set_of({Dtype::U32, Dtype::I64});
inline constexpr DtypeSet kQuantized = kReals | kCodes | set_of({Dtype::I64});  // what dequantize reads

constexpr bool is_float(Dtype d) { return contains(kReals, d); }

}  // namespace halfeven
