// Kernels for dequantize: 8-bit codes to float32, bfloat16 and float16, computed in the dtype of the result.
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

// A pair of vectors of products in the dtype of the result. NaN in bfloat16 has zeros below, as in round_to_bf16.
template <Dtype In, Dtype T, bool kStream>
[[gnu::always_inline]] inline void scaled(const char* q, char* out, Floats s0, Floats s1, Floats o0, Floats o1) {
  constexpr bool kSigned = In == Dtype::I8;
  const Floats a = (widened<kSigned>(q) + o0) * s0, b = (widened<kSigned>(q + kN) + o1) * s1;
  if constexpr (T == Dtype::F32) {
    put_or_stream<kStream>(out, a);
    put_or_stream<kStream>(out + kVector, b);
  } else if constexpr (T == Dtype::BF16) {
    put_or_stream<kStream>(out, packed_in_order(pack(round_to_bf16(a) >> 16, round_to_bf16(b) >> 16)));
  } else {
    put_or_stream<kStream>(out, to_float16(a, b));
  }
}

template <Dtype In, Dtype T, bool kStream>
void scaled_row(const char* q, char* out, int64_t n, float s, float o) {
  constexpr int64_t kOut = T == Dtype::F32 ? 4 : 2;
  const Floats sv = all(s), ov = all(o);
  const auto skip = [&](int64_t done) { q += done, out += done * kOut, n -= done; };
  const auto part = [&](int64_t count) {
    alignas(64) char from[kPair] = {}, to[kPair * kOut];
    __builtin_memcpy(from, q, count);
    scaled<In, T, false>(from, to, sv, sv, ov, ov);
    __builtin_memcpy(out, to, count * kOut);
    skip(count);
  };
  if constexpr (kStream)
    while (const int64_t beyond = reinterpret_cast<uintptr_t>(out) % kVector) {
      if (!n) break;
      part(std::min<int64_t>({n, kPair - 1, (kVector - beyond) / kOut}));
    }
  for (; n >= kPair; skip(kPair)) scaled<In, T, kStream>(q, out, sv, sv, ov, ov);
  if (n) part(n);
}

template <Dtype In, Dtype T, bool kColumns>
void fast_dequantize(const ForwardSettings& settings, const ForwardJob& job) {
  const float* s = static_cast<const float*>(job.s);
  const float* o = static_cast<const float*>(job.o);
  constexpr int64_t kOut = T == Dtype::F32 ? 4 : 2;
#ifdef HALFEVEN_NARROWER
  if (job.len < kPair) {
    const ForwardKernels narrower = HALFEVEN_NARROWER::forward_kernels(Operation::Dequantize, In, T, T);
    return (kColumns ? narrower.per_column : narrower.per_row)(settings, job);
  }
#endif
  bool exact = true;
  for (int64_t i = 0; i < (kColumns ? job.len : job.rows); ++i) exact &= sums_are_exact<In, T>(o[i]);
  if (!exact) return generic<Operation::Dequantize, In, T, T, kColumns>(settings, job);
  constexpr int64_t kLine = 64;  // of a cache: parts of one are streamed slowly
  const bool past = settings.stream && reinterpret_cast<uintptr_t>(job.out) % kOut == 0;
  for (int64_t r = 0; r < job.rows; ++r) {
    const char* q = job.x + r * job.x_row;
    char* out = job.out + r * job.out_row;
    if constexpr (!kColumns) {
      if (past)
        scaled_row<In, T, true>(q, out, job.len, s[r], o[r]);
      else
        scaled_row<In, T, false>(q, out, job.len, s[r], o[r]);
    } else {
      int64_t i = 0;
      const auto pairs = [&]<bool kStream>(std::bool_constant<kStream>) __attribute__((always_inline)) {
        for (; i + kPair <= job.len; i += kPair)
          scaled<In, T, kStream>(q + i, out + i * kOut, at<Floats>(s + i), at<Floats>(s + i + kN), at<Floats>(o + i),
                                 at<Floats>(o + i + kN));
      };
      if (past && reinterpret_cast<uintptr_t>(out) % kLine == 0)
        pairs(std::true_type{});
      else
        pairs(std::false_type{});
      for (; i < job.len; ++i) scaled_row<In, T, false>(q + i, out + i * kOut, 1, s[i], o[i]);
    }
  }
  if (past) fence();
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
