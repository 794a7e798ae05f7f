// Kernels of the gradients of quantize_dequantize for float32 and bfloat16, computed in float32: where offsets are
// integers, and there is no shift. The rest goes to the generic kernels.
//
// An element is inside where limiting its rounded quotient to the grid changes nothing, which takes one comparison.
// Without sums, it is so between two numbers, which long rows are worth looking for. Sums are added up in the order of
// the generic kernels.

namespace halfeven::HALFEVEN_ISA::backward {

inline constexpr Four kOnes = {1, 1, 1, 1};

// As total() has it. A fused multiply-add with 1, whose product is exact, is a sum: processors that add and multiply
// in different units do half of the sums in each.
template <Dtype In>
[[gnu::always_inline]] inline Four sum_of(const Buffer& terms) {
  const Four a = fused(terms.template quad<In>(0), kOnes, terms.template quad<In>(1));
  const Four b = fused(terms.template quad<In>(2), kOnes, terms.template quad<In>(3));
  return a + b;
}

[[gnu::always_inline]] inline double with_rest(Four sum, const float* rest, int64_t n) {
  for (int64_t i = 0; i < n; i += 4) sum += doubles(rest + i);
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

// Elements whose terms are computed before they are summed up: memory that was just written is slow to read in parts.
inline constexpr int64_t kChunk = 128;

// The least length of rows to look in for the ends of what is inside.
inline constexpr int64_t kLeastForEnds = 256;

// The least and the greatest element inside, which the steps of its computation leave in their order; false where
// they are not among the floats next to where they ought to be.
inline bool find_ends(const Parameter<Dtype::F32>& p, float* least, float* greatest) {
  if (!(p.s >= 0x1p-60f && p.s <= 0x1p60f)) return false;
  constexpr int kAround = 8;
  // The k-th of the floats around `near`, which is not 0, in ascending order.
  const auto around = [](float near, int k) {
    const uint32_t step = static_cast<uint32_t>(k - kAround / 2);
    return float_of(near > 0 ? bits_of(near) + step : bits_of(near) - step);
  };
  const float low = (p.below - 0.5f) * p.s, high = (p.above + 0.5f) * p.s;
  int outside = 0, inside = 0;
  for (int k = 0; k < kAround; ++k) {
    outside += half_even(around(low, k) / p.s) < p.below;
    inside += half_even(around(high, k) / p.s) <= p.above;
  }
  if (outside == 0 || outside == kAround || inside == 0 || inside == kAround) return false;
  *least = around(low, outside);
  *greatest = around(high, inside - 1);
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
  const Floats low = all(least), high = all(greatest);
  int64_t i = 0;
  for (; i + 16 <= view.job.len; i += 16) {
    const E xs(x + i);
    Ints inside[kParts];
    for (int k = 0; k < kParts; ++k) inside[k] = (xs.v[k] >= low) & (xs.v[k] <= high);
    E::keep(g + i, inside, dx + i);
  }
  return i;
}

template <Dtype In, bool kSums>
void fast_rows(const BackwardJob& job) {
  using S = Step<In, kSums>;
  const View<In, Dtype::F32> view(job);
  const Four none = {kNoTerms, kNoTerms, kNoTerms, kNoTerms};
  const int64_t whole = job.len / 16 * 16, n = job.len - whole;
  for (int64_t r = 0; r < job.rows; ++r) {
    const auto p = view.parameter(r);
    const OfVector each = {all(p.s), all(p.below), all(p.above)};
    const auto *g = view.g(r), *x = view.x(r);
    auto* dx = view.dx(r);
    Four ds = none, d_o = none;
    int64_t done = 0;
    if constexpr (!kSums) done = job.len < kLeastForEnds ? 0 : between<In>(view, r);
    for (int64_t i = done; i < whole; i += kChunk) {
      const int64_t end = whole - i < kChunk ? whole - i : kChunk;
      Buffer of_s[kChunk / 16], of_o[kChunk / 16];
      for (int64_t k = 0; k < end; k += 16)
        S::template sixteen<false>(g + i + k, x + i + k, dx + i + k, &each, of_s[k / 16], of_o[k / 16]);
      if constexpr (kSums)
        for (int64_t k = 0; k < end; k += 16) {
          ds += sum_of<In>(of_s[k / 16]);
          d_o += sum_of<In>(of_o[k / 16]);
        }
    }
    float rest_s[16], rest_o[16];
    if (n) S::template part<false>(g + whole, x + whole, dx + whole, n, &each, rest_s, rest_o);
    if constexpr (kSums) {
      job.ds[r] = with_rest(ds, rest_s, n);
      job.d_o[r] = with_rest(d_o, rest_o, n);
    }
  }
}

// The totals of two rows: lanes 0 and 2, and 1 and 3, are added first.
[[gnu::always_inline]] inline Four totals(Four a, Four b) {
  const Four both = shuffled(a, b, [](int k) { return k / 2 * 4 + k % 2; }) +
                    shuffled(a, b, [](int k) { return k / 2 * 4 + k % 2 + 2; });
  return both + shuffled(both, both, [](int k) { return k ^ 1; });
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
      const OfVector each = {all(p.s), all(p.below), all(p.above)};
#pragma GCC unroll 4
      for (int64_t i = 0; i < kParts; ++i)
        Step<In, true>::template sixteen<false>(view.g(r + k) + 16 * i, view.x(r + k) + 16 * i,
                                                view.dx(r + k) + 16 * i, &each, of_s[k][i], of_o[k][i]);
    }
    const auto sum = [&](const Buffer* terms) __attribute__((always_inline)) {
      Four sum = sum_of<In>(terms[0]);
#pragma GCC unroll 4
      for (int64_t i = 1; i < kParts; ++i) sum += sum_of<In>(terms[i]);
      return sum;
    };
    for (int64_t k = 0; k < rows; k += 2) {
      const int64_t next = k + 1 < rows ? k + 1 : k;
      const Four ds = totals(sum(of_s[k]), sum(of_s[next])), d_o = totals(sum(of_o[k]), sum(of_o[next]));
      job.ds[r + k] = ds[0];
      job.d_o[r + k] = d_o[0];
      job.ds[r + next] = ds[2];
      job.d_o[r + next] = d_o[2];
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
  const auto constants = [&](int64_t i, OfVector* c) __attribute__((always_inline)) {
    Floats scales[kParts], offsets[kParts];
    Elements<In>::ordered(s + i, scales);
    Elements<In>::ordered(o + i, offsets);
    for (int k = 0; k < kParts; ++k) c[k] = {scales[k], view.low + offsets[k], view.high + offsets[k]};
  };
  for (int64_t start = 0; start < whole; start += kChunk) {
    const int64_t end = whole - start < kChunk ? whole : start + kChunk;
    Buffer of_s[kChunk / 16][kRows], of_o[kChunk / 16][kRows];
    for (int64_t i = start, j = 0; i < end; i += 16, ++j) {
      OfVector c[kParts];
      constants(i, c);
#pragma GCC unroll 4
      for (int k = 0; k < kRows; ++k)
        S::template sixteen<true>(view.g(r + k) + i, view.x(r + k) + i, view.dx(r + k) + i, c, of_s[j][k], of_o[j][k]);
    }
    if constexpr (!kSums) continue;
    for (int64_t i = start, j = 0; i < end; i += 16, ++j)
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) {
        Four ds = at<Four>(job.ds + i + 4 * q), d_o = at<Four>(job.d_o + i + 4 * q);
        // In turns as in sum_of.
#pragma GCC unroll 4
        for (int k = 0; k < kRows; ++k) {
          const Four of_scale = of_s[j][k].template quad<In>(q), of_offset = of_o[j][k].template quad<In>(q);
          ds = k & 1 ? ds + of_scale : fused(of_scale, kOnes, ds);
          d_o = k & 1 ? d_o + of_offset : fused(of_offset, kOnes, d_o);
        }
        put(job.ds + i + 4 * q, ds);
        put(job.d_o + i + 4 * q, d_o);
      }
  }
  if (!n) return;
  OfVector c[kParts];
  constants(whole, c);
  float ds[16], d_o[16];
  for (int k = 0; k < kRows; ++k) {
    S::template part<true>(view.g(r + k) + whole, view.x(r + k) + whole, view.dx(r + k) + whole, n, c, ds, d_o);
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
  bool good = true;
  for (int64_t i = 0; i < n; ++i) good &= (o[i] >= -kMost) & (o[i] <= kMost) & (half_even(o[i]) == o[i]);
  return good;
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
