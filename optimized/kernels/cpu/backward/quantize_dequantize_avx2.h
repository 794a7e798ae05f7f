// AVX2 kernels of the gradients of quantize_dequantize for float32 and bfloat16, computed in float32: where offsets are
// integers, and there is no shift. The rest goes to the generic kernels.
//
// An element is inside where limiting its rounded quotient to the grid changes nothing, which takes one comparison.
// Without sums, it is so between two numbers, which long rows are worth looking for. Sums are added up in the order of
// the generic kernels.

namespace halfeven::HALFEVEN_ISA::backward {

// As total() has it. A fused multiply-add with 1, whose product is exact, is a sum: processors that add and multiply
// in different units do half of the sums in each.
template <Dtype In>
[[gnu::always_inline]] inline __m256d sum_of(const Buffer& terms) {
  const __m256d one = _mm256_set1_pd(1);
  const __m256d a = _mm256_fmadd_pd(terms.template quad<In>(0), one, terms.template quad<In>(1));
  const __m256d b = _mm256_fmadd_pd(terms.template quad<In>(2), one, terms.template quad<In>(3));
  return a + b;
}

[[gnu::always_inline]] inline double with_rest(__m256d sum, const float* rest, int64_t n) {
  for (int64_t i = 0; i < n; i += 4) sum += _mm256_cvtps_pd(_mm_loadu_ps(rest + i));
  const __m128d two = _mm256_castpd256_pd128(sum) + _mm256_extractf128_pd(sum, 1);
  return two[0] + two[1];
}

// Elements whose terms are computed before they are summed up: memory that was just written is slow to read in parts.
inline constexpr int64_t kChunk = 128;

// The least length of rows to look in for the ends of what is inside.
inline constexpr int64_t kLeastForEnds = 256;

// The 8 floats around `near`, which is not 0, in ascending order.
[[gnu::always_inline]] inline __m256 around(float near) {
  const __m256i steps = _mm256_setr_epi32(-4, -3, -2, -1, 0, 1, 2, 3);
  const __m256i bits = _mm256_set1_epi32(static_cast<int>(bits_of(near)));
  return _mm256_castsi256_ps(near > 0 ? _mm256_add_epi32(bits, steps) : _mm256_sub_epi32(bits, steps));
}

// The least and the greatest element inside, which the steps of its computation leave in their order; false where
// they are not among the floats next to where they ought to be.
inline bool find_ends(const Parameter<Dtype::F32>& p, float* least, float* greatest) {
  if (!(p.s >= 0x1p-60f && p.s <= 0x1p60f)) return false;
  const __m256 s = _mm256_set1_ps(p.s);
  const __m256 low = around((p.below - 0.5f) * p.s), high = around((p.above + 0.5f) * p.s);
  const auto rounded = [&](__m256 x) __attribute__((always_inline)) {
    return _mm256_round_ps(_mm256_div_ps(x, s), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  };
  const int above = _mm256_movemask_ps(_mm256_cmp_ps(rounded(low), _mm256_set1_ps(p.below), _CMP_GE_OQ));
  const int below = _mm256_movemask_ps(_mm256_cmp_ps(rounded(high), _mm256_set1_ps(p.above), _CMP_LE_OQ));
  if (above == 0 || above == 0xff || below == 0 || below == 0xff) return false;
  float at[8];
  _mm256_storeu_ps(at, low);
  *least = at[__builtin_ctz(above)];
  _mm256_storeu_ps(at, high);
  *greatest = at[__builtin_popcount(below) - 1];
  return true;
}

// dx alone, of long rows: what is inside lies between two numbers. Returns how many elements of row r it has done.
template <Dtype In>
int64_t between(const View<In, Dtype::F32>& view, int64_t r) {
  using E = Elements<In>;
  const auto *g = view.g(r), *x = view.x(r);
  auto* dx = view.dx(r);
  float least, greatest;
  if (!find_ends(view.parameter(r), &least, &greatest)) return 0;
  const __m256 low = _mm256_set1_ps(least), high = _mm256_set1_ps(greatest);
  const auto inside = [&](__m256 v) __attribute__((always_inline)) {
    return _mm256_and_ps(_mm256_cmp_ps(v, low, _CMP_GE_OQ), _mm256_cmp_ps(v, high, _CMP_LE_OQ));
  };
  int64_t i = 0;
  for (; i + 16 <= view.job.len; i += 16) {
    const E xs(x + i);
    E::keep(g + i, inside(xs.a), inside(xs.b), dx + i);
  }
  return i;
}

template <Dtype In, bool kSums>
void fast_rows(const BackwardJob& job) {
  using S = Step<In, kSums>;
  const View<In, Dtype::F32> view(job);
  const __m256d none = _mm256_set1_pd(kNoTerms);
  const int64_t whole = job.len / 16 * 16, n = job.len - whole;
  for (int64_t r = 0; r < job.rows; ++r) {
    const auto p = view.parameter(r);
    const Eight all = {_mm256_set1_ps(p.s), _mm256_set1_ps(p.below), _mm256_set1_ps(p.above)};
    const auto *g = view.g(r), *x = view.x(r);
    auto* dx = view.dx(r);
    __m256d ds = none, d_o = none;
    int64_t done = 0;
    if constexpr (!kSums) done = job.len < kLeastForEnds ? 0 : between<In>(view, r);
    for (int64_t i = done; i < whole; i += kChunk) {
      const int64_t end = whole - i < kChunk ? whole - i : kChunk;
      Buffer of_s[kChunk / 16], of_o[kChunk / 16];
      for (int64_t k = 0; k < end; k += 16)
        S::sixteen(g + i + k, x + i + k, dx + i + k, all, all, of_s[k / 16], of_o[k / 16]);
      if constexpr (kSums)
        for (int64_t k = 0; k < end; k += 16) {
          ds += sum_of<In>(of_s[k / 16]);
          d_o += sum_of<In>(of_o[k / 16]);
        }
    }
    float rest_s[16], rest_o[16];
    if (n) S::part(g + whole, x + whole, dx + whole, n, {all, all}, rest_s, rest_o);
    if constexpr (kSums) {
      job.ds[r] = with_rest(ds, rest_s, n);
      job.d_o[r] = with_rest(d_o, rest_o, n);
    }
  }
}

// The totals of two rows: lanes 0 and 2, and 1 and 3, are added first.
[[gnu::always_inline]] inline __m128d totals(__m256d a, __m256d b) {
  const __m256d both = _mm256_permute2f128_pd(a, b, 0x20) + _mm256_permute2f128_pd(a, b, 0x31);
  return _mm_hadd_pd(_mm256_castpd256_pd128(both), _mm256_extractf128_pd(both, 1));
}

// Rows as short as blocks usually are: the terms of several rows before their sums.
template <Dtype In, int64_t kLength>
void fast_short_rows(const BackwardJob& job) {
  constexpr int64_t kParts = kLength / 16, kRows = kChunk / kLength;
  const View<In, Dtype::F32> view(job);
  for (int64_t r = 0; r < job.rows; r += kRows) {
    const int64_t rows = job.rows - r < kRows ? job.rows - r : kRows;
    Buffer of_s[kRows][kParts], of_o[kRows][kParts];
    for (int64_t k = 0; k < rows; ++k) {
      const auto p = view.parameter(r + k);
      const Eight all = {_mm256_set1_ps(p.s), _mm256_set1_ps(p.below), _mm256_set1_ps(p.above)};
#pragma GCC unroll 4
      for (int64_t i = 0; i < kParts; ++i)
        Step<In, true>::sixteen(view.g(r + k) + 16 * i, view.x(r + k) + 16 * i, view.dx(r + k) + 16 * i, all, all,
                                of_s[k][i], of_o[k][i]);
    }
    const auto sum = [&](const Buffer* terms) __attribute__((always_inline)) {
      __m256d sum = sum_of<In>(terms[0]);
#pragma GCC unroll 4
      for (int64_t i = 1; i < kParts; ++i) sum += sum_of<In>(terms[i]);
      return sum;
    };
    for (int64_t k = 0; k < rows; k += 2) {
      const int64_t next = k + 1 < rows ? k + 1 : k;
      const __m128d ds = totals(sum(of_s[k]), sum(of_s[next])), d_o = totals(sum(of_o[k]), sum(of_o[next]));
      if (next == k) {
        job.ds[r + k] = ds[0];
        job.d_o[r + k] = d_o[0];
      } else {
        _mm_storeu_pd(job.ds + r + k, ds);
        _mm_storeu_pd(job.d_o + r + k, d_o);
      }
    }
  }
}

// kRows rows from row r on, so that the sums of columns are read and written less often.
template <Dtype In, bool kSums, int kRows>
void columns_of(const BackwardJob& job, int64_t r) {
  using S = Step<In, kSums>;
  const View<In, Dtype::F32> view(job);
  const int64_t whole = job.len / 16 * 16, n = job.len - whole;
  const auto *s = static_cast<const float*>(job.s), *o = static_cast<const float*>(job.o);
  const __m256 low = _mm256_set1_ps(view.low), high = _mm256_set1_ps(view.high);
  const __m256d one = _mm256_set1_pd(1);
  const auto constants = [&](int64_t i) __attribute__((always_inline)) {
    Sixteen c;
    __m256 a, b;
    Elements<In>::ordered(s + i, &c.a.s, &c.b.s);
    Elements<In>::ordered(o + i, &a, &b);
    c.a.low = _mm256_add_ps(low, a), c.a.high = _mm256_add_ps(high, a);
    c.b.low = _mm256_add_ps(low, b), c.b.high = _mm256_add_ps(high, b);
    return c;
  };
  for (int64_t start = 0; start < whole; start += kChunk) {
    const int64_t end = whole - start < kChunk ? whole : start + kChunk;
    Buffer of_s[kChunk / 16][kRows], of_o[kChunk / 16][kRows];
    for (int64_t i = start, j = 0; i < end; i += 16, ++j) {
      const Sixteen c = constants(i);
#pragma GCC unroll 4
      for (int k = 0; k < kRows; ++k)
        S::sixteen(view.g(r + k) + i, view.x(r + k) + i, view.dx(r + k) + i, c.a, c.b, of_s[j][k], of_o[j][k]);
    }
    if constexpr (!kSums) continue;
    for (int64_t i = start, j = 0; i < end; i += 16, ++j)
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) {
        __m256d ds = _mm256_loadu_pd(job.ds + i + 4 * q), d_o = _mm256_loadu_pd(job.d_o + i + 4 * q);
        // In turns as in sum_of.
#pragma GCC unroll 4
        for (int k = 0; k < kRows; ++k) {
          const __m256d of_scale = of_s[j][k].template quad<In>(q), of_offset = of_o[j][k].template quad<In>(q);
          ds = k & 1 ? ds + of_scale : _mm256_fmadd_pd(of_scale, one, ds);
          d_o = k & 1 ? d_o + of_offset : _mm256_fmadd_pd(of_offset, one, d_o);
        }
        _mm256_storeu_pd(job.ds + i + 4 * q, ds);
        _mm256_storeu_pd(job.d_o + i + 4 * q, d_o);
      }
  }
  if (!n) return;
  const Sixteen c = constants(whole);
  float ds[16], d_o[16];
  for (int k = 0; k < kRows; ++k) {
    S::part(view.g(r + k) + whole, view.x(r + k) + whole, view.dx(r + k) + whole, n, c, ds, d_o);
    if constexpr (kSums) {
      add_each(job.ds + whole, ds, n);
      add_each(job.d_o + whole, d_o, n);
    }
  }
}

template <Dtype In, bool kSums>
void fast_columns(const BackwardJob& job) {
  int64_t r = 0;
  for (; r + 4 <= job.rows; r += 4) columns_of<In, kSums, 4>(job, r);
  for (; r < job.rows; ++r) columns_of<In, kSums, 1>(job, r);
}

// Whether limiting the rounded quotient tells what is inside: differences between it and an offset are exact there,
// or else far outside.
inline bool offsets_qualify(const BackwardJob& job, int64_t n) {
  constexpr float kMost = 0x1p21f;
  if (job.shift != 0 || job.low < -kMost || job.high > kMost) return false;
  const auto* o = static_cast<const float*>(job.o);
  const __m256 least = _mm256_set1_ps(-kMost), most = _mm256_set1_ps(kMost);
  int bad = 0;
  for (int64_t i = 0; i < n; i += 8) {
    const __m256 of = _mm256_loadu_ps(o + i);
    const __m256 rounded = _mm256_round_ps(of, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256 moderate = _mm256_and_ps(_mm256_cmp_ps(of, least, _CMP_GE_OQ), _mm256_cmp_ps(of, most, _CMP_LE_OQ));
    const int missing = ~_mm256_movemask_ps(_mm256_and_ps(moderate, _mm256_cmp_ps(rounded, of, _CMP_EQ_OQ)));
    bad |= missing & (n - i >= 8 ? 0xff : (1 << (n - i)) - 1);
  }
  return !bad;
}

template <Dtype In, bool kColumns, bool kSums>
void fast(const BackwardJob& job) {
  if (!offsets_qualify(job, kColumns ? job.len : job.rows))
    return generic<Gradient::QuantizeDequantize, In, Dtype::F32, kColumns, kSums>(job);
  if constexpr (kColumns) return fast_columns<In, kSums>(job);
  if constexpr (kSums) {
    if (job.len == 16) return fast_short_rows<In, 16>(job);
    if (job.len == 32) return fast_short_rows<In, 32>(job);
    if (job.len == 64) return fast_short_rows<In, 64>(job);
  }
  return fast_rows<In, kSums>(job);
}

template <Dtype In>
BackwardKernel fast_of(bool columns, bool sums) {
  if (columns) return sums ? fast<In, true, true> : fast<In, true, false>;
  return sums ? fast<In, false, true> : fast<In, false, false>;
}

inline BackwardKernel fast_kernel(Gradient op, Dtype in, Dtype compute, bool columns, bool sums) {
  if (op == Gradient::QuantizeDequantize && compute == Dtype::F32) {
    if (in == Dtype::F32) return fast_of<Dtype::F32>(columns, sums);
    if (in == Dtype::BF16) return fast_of<Dtype::BF16>(columns, sums);
  }
  return kernel(op, in, compute, columns, sums);
}

}  // namespace halfeven::HALFEVEN_ISA::backward
