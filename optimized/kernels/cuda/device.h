// The scalars of core/ for a GPU: the same functions, with the builtins by the names that they have there.
#pragma once

#include <cstdint>

#define __builtin_rintf rintf
#define __builtin_rint rint
#define __builtin_fabs fabs
#define __builtin_fmaf fmaf

#include "core/dtype.h"
#include "core/operation.h"

#define HALFEVEN_ISA device
#include "core/arith.h"
#include "core/element.h"
#include "core/reciprocal.h"

namespace halfeven::device {

// Elements of the widest access, 16 bytes.
template <class M>
inline constexpr int kInAccess = 16 / sizeof(M);

template <class M>
struct Access {
  M v[kInAccess<M>];
};

// As many elements as one access holds of the narrower of two dtypes.
template <class X, class Y>
inline constexpr int kPack = 16 / (sizeof(X) < sizeof(Y) ? sizeof(X) : sizeof(Y));

template <class M, int n>
void load_pack(const M* from, M (&to)[n]) {
#pragma unroll
  for (int i = 0; i < n / kInAccess<M>; ++i) {
    const auto part = __builtin_bit_cast(Access<M>, reinterpret_cast<const uint4*>(from)[i]);
#pragma unroll
    for (int k = 0; k < kInAccess<M>; ++k) to[i * kInAccess<M> + k] = part.v[k];
  }
}

template <class M, int n>
void store_pack(const M (&from)[n], M* to) {
#pragma unroll
  for (int i = 0; i < n / kInAccess<M>; ++i) {
    Access<M> part;
#pragma unroll
    for (int k = 0; k < kInAccess<M>; ++k) part.v[k] = from[i * kInAccess<M> + k];
    // In so many words: of an assignment the compiler may make a store for each element.
    const auto bits = __builtin_bit_cast(uint4, part);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to + i * kInAccess<M>)),
                 "r"(bits.x), "r"(bits.y), "r"(bits.z), "r"(bits.w)
                 : "memory");
  }
}

// How a row of `len` elements is cut: `head` elements up to where accesses of x and out are aligned, then packs. All of
// it is head where the two are never aligned together.
struct Cut {
  int64_t head, packs;

  template <class X, class Y>
  static Cut of(const X* x, const Y* out, int64_t len) {
    constexpr int n = kPack<X, Y>;
    const uint64_t at_x = reinterpret_cast<uintptr_t>(x), at_out = reinterpret_cast<uintptr_t>(out);
    const uint64_t place = sizeof(X) < sizeof(Y) ? at_x / sizeof(X) : at_out / sizeof(Y);
    const int64_t head = static_cast<int64_t>((0 - place) % n);
    const bool both = (at_x + head * sizeof(X)) % 16 == 0 && (at_out + head * sizeof(Y)) % 16 == 0;
    // Of a row shorter than the head no pack is left: the quotient is cut to 0.
    return both ? Cut{head, (len - head) / n} : Cut{len, 0};
  }
};

// n parameters from `at` on, `step` apart, of memory of any dtype, rounded to the dtype of the arithmetic.
template <Dtype D, class C, Dtype T, int n>
void parameters(const char* p, int64_t at, int64_t step, C (&to)[n]) {
  const auto* numbers = reinterpret_cast<const typename Stored<D>::Memory*>(p);
#pragma unroll
  for (int k = 0; k < n; ++k) to[k] = load_as<D, T>(numbers[at + k * step]);
}

template <Dtype T, class C, int n>
void load_scales(const char* p, Dtype dtype, int64_t at, int64_t step, C (&to)[n]) {
  switch (dtype) {
    case Dtype::F64: return parameters<Dtype::F64, C, T>(p, at, step, to);
    case Dtype::F16: return parameters<Dtype::F16, C, T>(p, at, step, to);
    case Dtype::BF16: return parameters<Dtype::BF16, C, T>(p, at, step, to);
    default: return parameters<Dtype::F32, C, T>(p, at, step, to);
  }
}

template <Dtype T, class C, int n>
void load_numbers(const char* p, Dtype dtype, int64_t at, int64_t step, C (&to)[n]) {
  switch (dtype) {
    case Dtype::I8: return parameters<Dtype::I8, C, T>(p, at, step, to);
    case Dtype::U8: return parameters<Dtype::U8, C, T>(p, at, step, to);
    case Dtype::I16: return parameters<Dtype::I16, C, T>(p, at, step, to);
    case Dtype::U16: return parameters<Dtype::U16, C, T>(p, at, step, to);
    case Dtype::I32: return parameters<Dtype::I32, C, T>(p, at, step, to);
    case Dtype::U32: return parameters<Dtype::U32, C, T>(p, at, step, to);
    case Dtype::I64: return parameters<Dtype::I64, C, T>(p, at, step, to);
    default: return load_scales<T>(p, dtype, at, step, to);
  }
}

// Minus the zero points, unless they are offsets already. An integer zero point of 0 gives +0.0, a missing one as well.
template <Dtype T, class C, int n>
void load_offsets(const char* p, Dtype dtype, bool is_offset, int64_t at, int64_t step, C (&to)[n]) {
  const bool negated = p && !is_offset && is_float(dtype), subtracted = p && !is_offset && !is_float(dtype);
  if (p) load_numbers<T>(p, dtype, at, step, to);
#pragma unroll
  for (int k = 0; k < n; ++k) to[k] = !p ? C(0) : negated ? -to[k] : subtracted ? C(0) - to[k] : to[k];
}

}  // namespace halfeven::device
