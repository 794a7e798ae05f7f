// The functions of cpu/vector/native_*.h as plain loops, for vectors of any size: what the kernels compute with those of
// 64 bytes is tested so where no processor has them. Integers of 32 bits do not saturate, as on x86.

namespace halfeven::HALFEVEN_ISA {

inline constexpr bool kIntsSaturate = false;

inline Ints to_ints(Floats v) {
  Ints to;
  for (int i = 0; i < kN; ++i) {
    const float whole = __builtin_rintf(v[i]);
    to[i] = whole >= -0x1p31f && whole < 0x1p31f ? static_cast<int32_t>(whole) : INT32_MIN;
  }
  return to;
}

// In each lane of 128 bits first those of a, then those of b.
template <class To, class From>
To packed_in_lanes(From a, From b, int low, int high) {
  constexpr int kEach = 16 / sizeof(a[0]);
  To to;
  for (int i = 0; i < 2 * kEach * kLanes; ++i) {
    const int lane = i / (2 * kEach), place = i % kEach;
    const int v = (i / kEach % 2 ? b : a)[lane * kEach + place];
    to[i] = v < low ? low : v > high ? high : v;
  }
  return to;
}

inline Words pack(Ints a, Ints b) { return packed_in_lanes<Words>(a, b, -32768, 32767); }
template <bool kSigned>
Bytes pack(Words a, Words b) {
  return packed_in_lanes<Bytes>(a, b, kSigned ? -128 : 0, kSigned ? 127 : 255);
}

template <bool kSecond>
Ints after_zeros(Words v) {
  Words to = {};
  for (int i = 0; i < kN; ++i) to[2 * i + 1] = v[i / 4 * 8 + 4 * kSecond + i % 4];
  return (Ints)to;
}

inline Words saturating_difference(Words a, Words b) {
  Words to;
  for (int i = 0; i < 2 * kN; ++i) {
    const int v = a[i] - b[i];
    to[i] = v < -32768 ? -32768 : v > 32767 ? 32767 : v;
  }
  return to;
}

template <bool kSigned>
Floats widened(const void* p) {
  Floats to;
  for (int i = 0; i < kN; ++i)
    to[i] = kSigned ? static_cast<const int8_t*>(p)[i] : static_cast<const uint8_t*>(p)[i];
  return to;
}

inline Words to_float16(Floats a, Floats b) {
  Words to;
  for (int i = 0; i < kN; ++i) {
    to[i] = static_cast<int16_t>(narrow_f16(a[i]));
    to[kN + i] = static_cast<int16_t>(narrow_f16(b[i]));
  }
  return to;
}

template <class V>
bool any(V v) {
  const V none = {};
  return __builtin_memcmp(&v, &none, sizeof v);
}

template <class V>
void stream(void* p, V v) {
  put(p, v);
}
inline void fence() {}

inline Vector<double, 4> doubles(const float* p) { return Vector<double, 4>{p[0], p[1], p[2], p[3]}; }

}  // namespace halfeven::HALFEVEN_ISA
