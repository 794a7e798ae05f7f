// AVX2 kernels of quantize and quantize_dequantize for float32 and bfloat16, computed in float32, on grids of up to
// about 10 bits.
//
// The divider of a processor is slower than the memory near it, so x / s is computed by multiplications here:
//     y = 1/s,  e = (1 - s*y) * y,  q = x*y + x*e        (each + a fused multiply-add)
// e is what the reciprocal y lost, so q is a rounding of x times nearly all of 1/s. It need not be the true quotient,
// only round to the same integer. That holds for every x and for every s but those of three significands, as long as
// the integer is at most 1023 in magnitude and the exponent of s is moderate: tried for all 2^23 significands and all
// of these integers at the floats around each tie, where alone it can fail, since between ties both quotients are
// monotonic in x; and powers of two scale each step exactly. x is limited beforehand to where the result lies on the
// grid, so that infinities and huge values keep to these bounds; NaN passes through the limits by the order of their
// operands. What does not qualify goes to the generic kernel, which divides.

namespace halfeven::HALFEVEN_ISA {

inline constexpr float kBound = 1023;

// Where 1/s in two parts serves: see above.
[[gnu::always_inline]] inline __m256 qualifies(__m256 s) {
  const __m256i significand = _mm256_and_si256(_mm256_castps_si256(s), _mm256_set1_epi32(0x7fffff));
  const __m256i a = _mm256_cmpeq_epi32(significand, _mm256_set1_epi32(0x6e7ffe));
  const __m256i b = _mm256_cmpeq_epi32(significand, _mm256_set1_epi32(0x74fffe));
  const __m256i c = _mm256_cmpeq_epi32(significand, _mm256_set1_epi32(0x7fffff));
  const __m256i excepted = _mm256_or_si256(a, _mm256_or_si256(b, c));
  const __m256 moderate = _mm256_and_ps(_mm256_cmp_ps(s, _mm256_set1_ps(0x1p-60f), _CMP_GE_OQ),
                                        _mm256_cmp_ps(s, _mm256_set1_ps(0x1p60f), _CMP_LE_OQ));
  return _mm256_andnot_ps(_mm256_castsi256_ps(excepted), moderate);
}

// 16 codes in 16 bits each: those of a in even places, those of b in odd ones. NaN becomes the lowest int32, whose
// lower half is 0.
[[gnu::always_inline]] inline __m256i interleave(__m256 a, __m256 b) {
  return _mm256_blend_epi16(_mm256_cvtps_epi32(a), _mm256_slli_epi32(_mm256_cvtps_epi32(b), 16), 0xaa);
}

// What 8 elements are computed with: parameters of columns, or 8 times one of a row.
struct Eight {
  __m256 inverse, correction, low, high, s, o;
};

struct Sixteen {
  Eight a, b;
  __m256i offsets;  // interleaved
};

// The constants of kMost rows or columns at most.
template <int64_t kMost>
struct Constants {
  // Not of a power of two in size: arrays at such a distance compete for the same lines of a cache.
  static constexpr int64_t kSize = kMost + 16;
  alignas(32) float inverse[kSize], correction[kSize], low[kSize], high[kSize], s[kSize], o[kSize];
  alignas(32) int16_t offsets[kSize];

  [[gnu::always_inline]] Sixteen of_row(int64_t i) const {
    const Eight all = {_mm256_set1_ps(inverse[i]), _mm256_set1_ps(correction[i]), _mm256_set1_ps(low[i]),
                       _mm256_set1_ps(high[i]),    _mm256_set1_ps(s[i]),          _mm256_set1_ps(o[i])};
    return {all, all, interleave(all.o, all.o)};
  }

  [[gnu::always_inline]] Eight of_columns(int64_t i) const {
    return {_mm256_load_ps(inverse + i), _mm256_load_ps(correction + i), _mm256_load_ps(low + i),
            _mm256_load_ps(high + i),    _mm256_load_ps(s + i),          _mm256_load_ps(o + i)};
  }

  [[gnu::always_inline]] Sixteen of_16_columns(int64_t i) const {
    return {of_columns(i), of_columns(i + 8), _mm256_load_si256(reinterpret_cast<const __m256i*>(offsets + i))};
  }

  // Fills in those of n parameters, and says whether all of them qualify. `slack`: how far beyond the ends of the
  // grid, in codes, x is let through. s_ and o_ are readable up to a multiple of 8, which vectors go to.
  bool prepare(const Grid& grid, const float* s_, const float* o_, int64_t n, float slack) {
    const __m256 grid_low = _mm256_set1_ps(static_cast<float>(grid.low));
    const __m256 grid_high = _mm256_set1_ps(static_cast<float>(grid.high));
    const __m256 bound = _mm256_set1_ps(kBound), zero = _mm256_setzero_ps(), beyond = _mm256_set1_ps(slack);
    const __m256 one = _mm256_set1_ps(1);
    int bad = 0;
    for (int64_t i = 0; i < n; i += 8) {
      const __m256 sv = _mm256_loadu_ps(s_ + i), ov = _mm256_loadu_ps(o_ + i);
      // The ends for rne(x/s), exact where o qualifies. 0 is between them, so that the code of NaN is that of 0.
      const __m256 a = _mm256_add_ps(grid_low, ov), b = _mm256_add_ps(grid_high, ov);
      const __m256 rounded = _mm256_round_ps(ov, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      const __m256 whole = _mm256_cmp_ps(rounded, ov, _CMP_EQ_OQ);
      const __m256 below = _mm256_and_ps(_mm256_cmp_ps(a, zero, _CMP_LE_OQ),
                                         _mm256_cmp_ps(a, _mm256_sub_ps(zero, bound), _CMP_GE_OQ));
      const __m256 above = _mm256_and_ps(_mm256_cmp_ps(b, zero, _CMP_GE_OQ), _mm256_cmp_ps(b, bound, _CMP_LE_OQ));
      const __m256 good = _mm256_and_ps(_mm256_and_ps(qualifies(sv), whole), _mm256_and_ps(below, above));
      const int missing = ~_mm256_movemask_ps(good) & 0xff;
      bad |= n - i >= 8 ? missing : missing & ((1 << (n - i)) - 1);
      const __m256 y = _mm256_div_ps(one, sv);
      _mm256_store_ps(inverse + i, y);
      _mm256_store_ps(correction + i, _mm256_mul_ps(_mm256_fnmadd_ps(sv, y, one), y));
      _mm256_store_ps(low + i, _mm256_mul_ps(_mm256_sub_ps(a, beyond), sv));
      _mm256_store_ps(high + i, _mm256_mul_ps(_mm256_add_ps(b, beyond), sv));
      _mm256_store_ps(s + i, sv);
      _mm256_store_ps(o + i, ov);
    }
    return !bad;
  }

  // For of_16_columns, after prepare.
  void interleave_offsets(int64_t n) {
    for (int64_t i = 0; i < n; i += 16)
      _mm256_store_si256(reinterpret_cast<__m256i*>(offsets + i),
                         interleave(_mm256_load_ps(o + i), _mm256_load_ps(o + i + 8)));
  }
};

[[gnu::always_inline]] inline __m256 quotient(__m256 x, const Eight& c) {
  x = _mm256_min_ps(c.high, _mm256_max_ps(c.low, x));
  return _mm256_fmadd_ps(x, c.inverse, _mm256_mul_ps(x, c.correction));
}

// Rounds to bfloat16, which is then the upper half. NaN stays one: it comes from bfloat16 and has zeros below.
[[gnu::always_inline]] inline __m256i round_to_bf16(__m256 v) {
  const __m256i u = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  return _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
}

template <bool kStream>
[[gnu::always_inline]] inline void put(char* p, __m256i v) {
  if constexpr (kStream)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), v);
  else
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
}

// 16 elements as two vectors. Of float32 a has the first 8. Of bfloat16 a has the even ones and b the odd ones, which
// takes one instruction each.
template <Dtype In>
struct Pair {
  __m256 a, b;

  [[gnu::always_inline]] explicit Pair(const char* p) {
    if constexpr (In == Dtype::F32) {
      a = _mm256_loadu_ps(reinterpret_cast<const float*>(p));
      b = _mm256_loadu_ps(reinterpret_cast<const float*>(p) + 8);
    } else {
      const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
      a = _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
      b = _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
    }
  }
};

// Computes 16 or 32 elements.
template <Dtype In, Dtype Out, bool kCodes>
struct Step {
  static constexpr int64_t kIn = In == Dtype::F32 ? 4 : 2;
  static constexpr int64_t kOut = Out == Dtype::F32 ? 4 : Out == Dtype::BF16 ? 2 : 1;

  __m256 grid_low, grid_high;

  explicit Step(const Grid& grid)
      : grid_low(_mm256_set1_ps(static_cast<float>(grid.low))),
        grid_high(_mm256_set1_ps(static_cast<float>(grid.high))) {}

  [[gnu::always_inline]] static __m256i codes(const Pair<In>& x, const Sixteen& c) {
    return _mm256_sub_epi16(interleave(quotient(x.a, c.a), quotient(x.b, c.b)), c.offsets);
  }

  [[gnu::always_inline]] static __m256i pack(__m256i first, __m256i second) {
    return Out == Dtype::I8 ? _mm256_packs_epi16(first, second) : _mm256_packus_epi16(first, second);
  }

  [[gnu::always_inline]] __m256 real(__m256 x, const Eight& c) const {
    __m256 r = _mm256_round_ps(quotient(x, c), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if constexpr (kCodes) {
      // A zero has the sign of x, which the quotient of -0.0 lost, or of an end: so the limits come last here.
      r = _mm256_or_ps(r, _mm256_and_ps(x, _mm256_set1_ps(-0.0f)));
      return _mm256_min_ps(grid_high, _mm256_max_ps(grid_low, _mm256_sub_ps(r, c.o)));
    } else {
      // (r - o) + o is r, but +0.0 where r is -0.0. Adding +0.0 to the product does that, and rounds nothing.
      return _mm256_fmadd_ps(r, c.s, _mm256_setzero_ps());
    }
  }

  template <bool kStream>
  [[gnu::always_inline]] void reals(const Pair<In>& x, char* out, const Sixteen& c) const {
    const __m256 a = real(x.a, c.a), b = real(x.b, c.b);
    if constexpr (In == Dtype::F32) {
      put<kStream>(out, _mm256_castps_si256(a));
      put<kStream>(out + 32, _mm256_castps_si256(b));
    } else {
      put<kStream>(out, _mm256_blend_epi16(_mm256_srli_epi32(round_to_bf16(a), 16), round_to_bf16(b), 0xaa));
    }
  }

  // 32 elements that follow each other.
  template <bool kStream>
  [[gnu::always_inline]] void whole(const char* x, char* out, const Sixteen& c) const {
    const Pair<In> first(x), second(x + 16 * kIn);
    if constexpr (kOut == 1) {
      __m256i packed = pack(codes(first, c), codes(second, c));
      if constexpr (In == Dtype::BF16) {
        packed = _mm256_permute4x64_epi64(packed, 0xd8);
      } else {
        const __m256i order = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
        packed = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(packed, order),
                                             _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
      }
      put<kStream>(out, packed);
    } else {
      reals<kStream>(first, out, c);
      reals<kStream>(second, out + 16 * kOut, c);
    }
  }

  // 16 elements at x, and 16 at x + x_row. Both are loaded before one is stored: a load of an address that is like
  // that of a store before it, but for a multiple of 4096, waits for it.
  [[gnu::always_inline]] void two(const char* x, char* out, int64_t x_row, int64_t out_row, const Sixteen& c) const {
    const Pair<In> first(x), second(x + x_row);
    if constexpr (kOut == 1) {
      __m256i packed = _mm256_permute4x64_epi64(pack(codes(first, c), codes(second, c)), 0xd8);
      if constexpr (In == Dtype::F32)
        packed = _mm256_shuffle_epi8(packed, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                                 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(packed));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + out_row), _mm256_extracti128_si256(packed, 1));
    } else {
      reals<false>(first, out, c);
      reals<false>(second, out + out_row, c);
    }
  }

  [[gnu::always_inline]] void half(const char* x, char* out, const Sixteen& c) const { two(x, out, 0, 0, c); }

  // Fewer than 16 elements, through a copy of them.
  [[gnu::noinline]] void part(const char* x, char* out, int64_t n, const Sixteen& c) const {
    alignas(32) char from[16 * kIn] = {}, to[16 * kOut];
    __builtin_memcpy(from, x, n * kIn);
    half(from, to, c);
    __builtin_memcpy(out, to, n * kOut);
  }
};

template <class S, bool kStream>
[[gnu::always_inline]] inline void row(const S& step, const char* x, char* out, int64_t n, const Sixteen& c) {
  const auto skip = [&](int64_t done) { x += done * S::kIn, out += done * S::kOut, n -= done; };
  if constexpr (kStream) {
    while (n && reinterpret_cast<uintptr_t>(out) % 32) {
      const auto off = static_cast<int64_t>(reinterpret_cast<uintptr_t>(out) % 32);
      const int64_t head = std::min<int64_t>({n, 15, (32 - off) / S::kOut});
      step.part(x, out, head, c);
      skip(head);
    }
  }
  for (; n >= 32; skip(32)) step.template whole<kStream>(x, out, c);
  if (n >= 16) step.half(x, out, c), skip(16);
  if (n) step.part(x, out, n, c);
}

// kLength: the length of rows, or 0 for any. The compiler then leaves out what a usual length of blocks does not need.
template <class S, bool kStream, int64_t kLength>
void rows(const S& step, const Job& job, const Constants<kTile>& constants) {
  for (int64_t r = 0; r < job.rows; ++r)
    row<S, kStream>(step, job.x + r * job.x_row, job.out + r * job.out_row, kLength ? kLength : job.len,
                    constants.of_row(r));
}

// Two rows at a time, so that constants are loaded half as often. An odd one out is computed twice. There are no
// streaming stores: in two rows at once they can be many times slower, in one they are no faster than these.
template <class S>
void columns(const S& step, const Job& job, const Constants<kWide>& constants) {
  const int64_t whole = job.len / 16 * 16, rest = job.len - whole;
  for (int64_t r = 0; r < job.rows; r += 2) {
    const char* x = job.x + r * job.x_row;
    char* out = job.out + r * job.out_row;
    const bool both = r + 1 < job.rows;
    const int64_t x_row = both ? job.x_row : 0, out_row = both ? job.out_row : 0;
    for (int64_t i = 0; i < whole; i += 16, x += 16 * S::kIn, out += 16 * S::kOut)
      step.two(x, out, x_row, out_row, constants.of_16_columns(i));
    if (!rest) continue;
    step.part(x, out, rest, constants.of_16_columns(whole));
    if (both) step.part(x + x_row, out + out_row, rest, constants.of_16_columns(whole));
  }
}

// Puts n values in the order in which Pair<In> has the elements, the last one once more up to a multiple of 16.
template <Dtype In>
void pair_order(const float* from, int64_t n, float* to) {
  const int64_t padded = (n + 15) / 16 * 16;
  std::copy(from, from + n, to);
  std::fill(to + n, to + padded, from[n - 1]);
  if constexpr (In == Dtype::F32) return;
  for (int64_t i = 0; i < padded; i += 16) {
    const __m256 a = _mm256_loadu_ps(to + i), b = _mm256_loadu_ps(to + i + 8);
    const __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    const __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
    _mm256_storeu_ps(to + i, _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8)));
    _mm256_storeu_ps(to + i + 8, _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8)));
  }
}

template <class S, bool kStream>
void by_length(const S& step, const Job& job, const Constants<kTile>& constants) {
  switch (job.len) {
    case 16: return rows<S, kStream, 16>(step, job, constants);
    case 32: return rows<S, kStream, 32>(step, job, constants);
    case 64: return rows<S, kStream, 64>(step, job, constants);
    default: return rows<S, kStream, 0>(step, job, constants);
  }
}

template <Operation op, Dtype In, Dtype Out, bool kPerRow>
void fast(const Grid& grid, const Job& job) {
  constexpr bool kCodes = op == Operation::Quantize;
  using S = Step<In, Out, kCodes>;
  const float* s = static_cast<const float*>(job.s);
  const float* o = static_cast<const float*>(job.o);
  constexpr float kSlack = kCodes && is_float(Out) ? 1 : 0;
  const S step(grid);
  if constexpr (kPerRow) {
    Constants<kTile> constants;
    if (!constants.prepare(grid, s, o, job.rows, kSlack)) return generic<op, In, Dtype::F32, Out, true>(grid, job);
    // Streaming stores go to multiples of their size, which the start of an element has to divide.
    if (S::kOut > 1 && grid.stream && reinterpret_cast<uintptr_t>(job.out) % S::kOut == 0) {
      by_length<S, true>(step, job, constants);
      _mm_sfence();
    } else {
      by_length<S, false>(step, job, constants);
    }
  } else {
    // The constants cost divisions themselves, which few rows do not pay for.
    constexpr int kFew = 4;
    if (job.rows < kFew) return generic<op, In, Dtype::F32, Out, false>(grid, job);
    Constants<kWide> constants;
    alignas(32) float ordered[2][kWide];
    pair_order<In>(s, job.len, ordered[0]);
    pair_order<In>(o, job.len, ordered[1]);
    if (!constants.prepare(grid, ordered[0], ordered[1], (job.len + 15) / 16 * 16, kSlack))
      return generic<op, In, Dtype::F32, Out, false>(grid, job);
    constants.interleave_offsets(job.len);
    columns(step, job, constants);
  }
}

template <Operation op, Dtype In, Dtype Out>
Kernels fast_pair() {
  return {fast<op, In, Out, true>, fast<op, In, Out, false>};
}

template <Dtype In>
Kernels fast_from(Operation op, Dtype out) {
  if (op == Operation::QuantizeDequantize) return fast_pair<Operation::QuantizeDequantize, In, In>();
  if (op != Operation::Quantize) return {};
  if (out == Dtype::I8) return fast_pair<Operation::Quantize, In, Dtype::I8>();
  if (out == Dtype::U8) return fast_pair<Operation::Quantize, In, Dtype::U8>();
  if (out == In) return fast_pair<Operation::Quantize, In, In>();
  return {};
}

// Null where there is no fast kernel.
inline Kernels fast_kernels(Operation op, Dtype in, Dtype compute, Dtype out) {
  if (compute != Dtype::F32) return {};
  return in == Dtype::F32    ? fast_from<Dtype::F32>(op, out)
         : in == Dtype::BF16 ? fast_from<Dtype::BF16>(op, out)
                             : Kernels{};
}

}  // namespace halfeven::HALFEVEN_ISA
