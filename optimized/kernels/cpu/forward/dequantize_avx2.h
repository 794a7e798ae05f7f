// AVX2 kernels for dequantize: 8-bit codes to float32, bfloat16 and float16, computed in the dtype of the result.
//
// In 16 bits, q + o needs no rounding where o is an integer and the sum is one that the dtype holds: then the product
// is rounded once. Other offsets go to the generic kernel.

namespace halfeven::HALFEVEN_ISA {

// Integers up to this magnitude are exact.
template <Dtype T>
inline constexpr float kExact = T == Dtype::BF16 ? 256 : 2048;

template <Dtype In, Dtype T>
inline bool sums_are_exact(float o) {
  if constexpr (T == Dtype::F32) return true;
  constexpr float kLow = In == Dtype::I8 ? -128 : 0, kHigh = In == Dtype::I8 ? 127 : 255;
  return kLow + o >= -kExact<T> && kHigh + o <= kExact<T> && half_even(o) == o;
}

template <Dtype In>
[[gnu::always_inline]] inline __m256 codes_at(const char* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm256_cvtepi32_ps(In == Dtype::I8 ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
}

// 16 products in the dtype of the result. NaN in bfloat16 has zeros below, as in round_to_bf16.
template <Dtype In, Dtype T, bool kStream>
[[gnu::always_inline]] inline void scaled(const char* q, char* out, __m256 s0, __m256 s1, __m256 o0, __m256 o1) {
  const __m256 a = _mm256_mul_ps(_mm256_add_ps(codes_at<In>(q), o0), s0);
  const __m256 b = _mm256_mul_ps(_mm256_add_ps(codes_at<In>(q + 8), o1), s1);
  if constexpr (T == Dtype::F32) {
    put<kStream>(out, _mm256_castps_si256(a));
    put<kStream>(out + 32, _mm256_castps_si256(b));
  } else if constexpr (T == Dtype::BF16) {
    const __m256i first = _mm256_srli_epi32(round_to_bf16(a), 16), second = _mm256_srli_epi32(round_to_bf16(b), 16);
    put<kStream>(out, _mm256_permute4x64_epi64(_mm256_packus_epi32(first, second), 0xd8));
  } else {
    put<kStream>(out, _mm256_set_m128i(_mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT),
                                       _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT)));
  }
}

template <Dtype In, Dtype T, bool kStream>
void scaled_row(const char* q, char* out, int64_t n, float s, float o) {
  constexpr int64_t kOut = T == Dtype::F32 ? 4 : 2;
  const __m256 sv = _mm256_set1_ps(s), ov = _mm256_set1_ps(o);
  const auto skip = [&](int64_t done) { q += done, out += done * kOut, n -= done; };
  const auto part = [&](int64_t count) {
    alignas(32) char from[16] = {}, to[16 * kOut];
    __builtin_memcpy(from, q, count);
    scaled<In, T, false>(from, to, sv, sv, ov, ov);
    __builtin_memcpy(out, to, count * kOut);
    skip(count);
  };
  if constexpr (kStream)
    while (n && reinterpret_cast<uintptr_t>(out) % 32)
      part(std::min<int64_t>({n, 15, (32 - static_cast<int64_t>(reinterpret_cast<uintptr_t>(out) % 32)) / kOut}));
  for (; n >= 16; skip(16)) scaled<In, T, kStream>(q, out, sv, sv, ov, ov);
  if (n) part(n);
}

template <Dtype In, Dtype T, bool kColumns>
void fast_dequantize(const ForwardSettings& settings, const ForwardJob& job) {
  const float* s = static_cast<const float*>(job.s);
  const float* o = static_cast<const float*>(job.o);
  constexpr int64_t kOut = T == Dtype::F32 ? 4 : 2;
  bool exact = true;
  for (int64_t i = 0; i < (kColumns ? job.len : job.rows); ++i) exact &= sums_are_exact<In, T>(o[i]);
  if (!exact) return generic<Operation::Dequantize, In, T, T, kColumns>(settings, job);
  const bool stream = settings.stream && reinterpret_cast<uintptr_t>(job.out) % kOut == 0;
  for (int64_t r = 0; r < job.rows; ++r) {
    const char* q = job.x + r * job.x_row;
    char* out = job.out + r * job.out_row;
    if constexpr (!kColumns) {
      if (stream)
        scaled_row<In, T, true>(q, out, job.len, s[r], o[r]);
      else
        scaled_row<In, T, false>(q, out, job.len, s[r], o[r]);
    } else {
      int64_t i = 0;
      for (; i + 16 <= job.len; i += 16)
        scaled<In, T, false>(q + i, out + i * kOut, _mm256_loadu_ps(s + i), _mm256_loadu_ps(s + i + 8),
                             _mm256_loadu_ps(o + i), _mm256_loadu_ps(o + i + 8));
      for (; i < job.len; ++i) scaled_row<In, T, false>(q + i, out + i * kOut, 1, s[i], o[i]);
    }
  }
  if (stream) _mm_sfence();
}

template <Dtype In>
ForwardKernels fast_dequantize_from(Dtype t) {
  switch (t) {
    case Dtype::F32: return {fast_dequantize<In, Dtype::F32, false>, fast_dequantize<In, Dtype::F32, true>};
    case Dtype::BF16: return {fast_dequantize<In, Dtype::BF16, false>, fast_dequantize<In, Dtype::BF16, true>};
    case Dtype::F16: return {fast_dequantize<In, Dtype::F16, false>, fast_dequantize<In, Dtype::F16, true>};
    default: return {};
  }
}

// Null where there is no fast kernel.
inline ForwardKernels fast_dequantize_kernels(Dtype in, Dtype compute, Dtype out) {
  if (out != compute) return {};
  return in == Dtype::I8   ? fast_dequantize_from<Dtype::I8>(compute)
         : in == Dtype::U8 ? fast_dequantize_from<Dtype::U8>(compute)
                           : ForwardKernels{};
}

}  // namespace halfeven::HALFEVEN_ISA
