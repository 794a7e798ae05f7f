// What NEON has instructions for: the counterpart of native_x86.h for vectors of 16 bytes.

namespace halfeven::HALFEVEN_ISA {

// As in vector.h.
[[gnu::always_inline]] inline Floats fused(Floats x, Floats y, Floats z) {
  return (Floats)vfmaq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y);
}
[[gnu::always_inline]] inline Floats half_even(Floats x) { return (Floats)vrndnq_f32((float32x4_t)x); }

// To the nearest integer, ties to even. What no int32 holds saturates, and NaN becomes 0.
[[gnu::always_inline]] inline Ints to_ints(Floats v) { return (Ints)vcvtnq_s32_f32((float32x4_t)v); }
inline constexpr bool kIntsSaturate = true;

[[gnu::always_inline]] inline Words pack(Ints a, Ints b) {
  return (Words)vqmovn_high_s32(vqmovn_s32((int32x4_t)a), (int32x4_t)b);
}
template <bool kSigned>
[[gnu::always_inline]] inline Bytes pack(Words a, Words b) {
  const int16x8_t first = (int16x8_t)a, second = (int16x8_t)b;
  if constexpr (kSigned) return (Bytes)vqmovn_high_s16(vqmovn_s16(first), second);
  return (Bytes)vqmovun_high_s16(vqmovun_s16(first), second);
}

// Of the words the first or the second half, each after a word of 0.
template <bool kSecond>
[[gnu::always_inline]] inline Ints after_zeros(Words v) {
  const int16x8_t none = {};
  return (Ints)(kSecond ? vzip2q_s16(none, (int16x8_t)v) : vzip1q_s16(none, (int16x8_t)v));
}

[[gnu::always_inline]] inline Words saturating_difference(Words a, Words b) {
  return (Words)vqsubq_s16((int16x8_t)a, (int16x8_t)b);
}

template <bool kSigned>
[[gnu::always_inline]] inline Floats widened(const void* p) {
  const int8x8_t v = (int8x8_t)(Vector<int32_t, 2>{at<int32_t>(p), 0});
  if constexpr (kSigned) return (Floats)vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(v))));
  return (Floats)vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8((uint8x8_t)v))));
}

[[gnu::always_inline]] inline Words to_float16(Floats a, Floats b) {
  return (Words)vcvt_high_f16_f32(vcvt_f16_f32((float32x4_t)a), (float32x4_t)b);
}

template <class V>
[[gnu::always_inline]] inline bool any(V v) {
  return vmaxvq_u32((uint32x4_t)v);
}

// No intrinsic stores past the caches.
template <class V>
[[gnu::always_inline]] inline void stream(void* p, V v) {
  put(p, v);
}
inline void fence() {}

[[gnu::always_inline]] inline Vector<double, 4> doubles(const float* p) {
  const float32x4_t v = vld1q_f32(p);
  const float64x2_t both[2] = {vcvt_f64_f32(vget_low_f32(v)), vcvt_high_f64_f32(v)};
  return at<Vector<double, 4>>(both);
}

}  // namespace halfeven::HALFEVEN_ISA
