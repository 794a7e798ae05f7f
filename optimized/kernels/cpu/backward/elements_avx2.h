// Sixteen elements of the gradient of quantize_dequantize at a time, for AVX2: see quantize_dequantize_avx2.h.
//
// bfloat16 is unpacked within the halves of a vector, which packing undoes. Terms go to float64 by way of memory:
// converting from there takes a third of the time that it takes from a register.

namespace halfeven::HALFEVEN_ISA::backward {

// What 8 elements are computed with: the ends are those of the rounded quotient.
struct Eight {
  __m256 s, low, high;
};

struct Sixteen {
  Eight a, b;
};

// 16 elements. Of float32 a has the first 8; of bfloat16 a has 0-3 and 8-11, b the rest.
template <Dtype In>
struct Elements {
  static constexpr bool kNarrow = In == Dtype::BF16;
  using M = typename Stored<In>::Memory;
  __m256 a, b;

  [[gnu::always_inline]] explicit Elements(const M* p) {
    if constexpr (kNarrow) {
      const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), zero = _mm256_setzero_si256();
      a = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, both));
      b = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, both));
    } else {
      a = _mm256_loadu_ps(p);
      b = _mm256_loadu_ps(p + 8);
    }
  }

  // Where in memory that a and b are stored to, one after the other, elements 4k to 4k + 3 are.
  static constexpr int quad(int k) { return kNarrow ? (k & 1) * 8 + (k >> 1) * 4 : 4 * k; }

  // Those of g that are inside, else +0.0.
  [[gnu::always_inline]] static void keep(const M* g, __m256 inside_a, __m256 inside_b, M* to) {
    if constexpr (kNarrow) {
      const __m256i inside = _mm256_packs_epi32(_mm256_castps_si256(inside_a), _mm256_castps_si256(inside_b));
      const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(g));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_and_si256(all, inside));
    } else {
      const __m256 a = _mm256_loadu_ps(g), b = _mm256_loadu_ps(g + 8);
      _mm256_storeu_ps(to, _mm256_and_ps(a, inside_a));
      _mm256_storeu_ps(to + 8, _mm256_and_ps(b, inside_b));
    }
  }

  // Numbers that belong to 16 elements, in the order of a and b.
  [[gnu::always_inline]] static void ordered(const float* p, __m256* a, __m256* b) {
    if constexpr (kNarrow) {
      *a = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 8), 1);
      *b = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + 4)), _mm_loadu_ps(p + 12), 1);
    } else {
      *a = _mm256_loadu_ps(p);
      *b = _mm256_loadu_ps(p + 8);
    }
  }
};

// Terms of 16 elements, through memory.
struct Buffer {
  alignas(32) float values[16];

  [[gnu::always_inline]] void put(__m256 a, __m256 b) {
    _mm256_store_ps(values, a);
    _mm256_store_ps(values + 8, b);
    // Else the compiler would see through it, and convert from registers.
    asm volatile("" : "+m"(values));
  }

  // Elements 4k to 4k + 3.
  template <Dtype In>
  [[gnu::always_inline]] __m256d quad(int k) const {
    return _mm256_cvtps_pd(_mm_load_ps(values + Elements<In>::quad(k)));
  }
};

// The first n elements of 16 in their own order, then -0.0.
template <Dtype In>
void in_order(const Buffer& terms, int64_t n, float* to) {
  for (int64_t i = 0; i < 16; ++i) to[i] = i < n ? terms.values[Elements<In>::quad(i / 4) + i % 4] : -0.0f;
}

template <Dtype In, bool kSums>
struct Step {
  using E = Elements<In>;
  using M = typename E::M;

  [[gnu::always_inline]] static __m256 one(__m256 g, __m256 x, const Eight& c, __m256* ds, __m256* d_o) {
    const __m256 u = _mm256_div_ps(x, c.s);
    const __m256 rounded = _mm256_round_ps(u, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    // NaN passes through the limits by the order of their operands.
    const __m256 clipped = _mm256_min_ps(c.high, _mm256_max_ps(c.low, rounded));
    const __m256 inside = _mm256_cmp_ps(clipped, rounded, _CMP_EQ_OQ);
    if constexpr (kSums) {
      *ds = _mm256_mul_ps(g, _mm256_sub_ps(clipped, _mm256_and_ps(u, inside)));
      *d_o = _mm256_andnot_ps(inside, _mm256_mul_ps(g, c.s));
    }
    return inside;
  }

  [[gnu::always_inline]] static void sixteen(const M* g, const M* x, M* dx, const Eight& c_a, const Eight& c_b,
                                             Buffer& ds, Buffer& d_o) {
    const E gs(g), xs(x);
    __m256 ds_a, ds_b, d_o_a, d_o_b;
    const __m256 a = one(gs.a, xs.a, c_a, &ds_a, &d_o_a), b = one(gs.b, xs.b, c_b, &ds_b, &d_o_b);
    E::keep(g, a, b, dx);
    if constexpr (kSums) {
      ds.put(ds_a, ds_b);
      d_o.put(d_o_a, d_o_b);
    }
  }

  // Fewer than 16 elements, through a copy of them; their terms in order, as in_order() has them.
  [[gnu::noinline]] static void part(const M* g, const M* x, M* dx, int64_t n, const Sixteen& c, float* ds,
                                     float* d_o) {
    alignas(32) M from_g[16] = {}, from_x[16] = {}, to[16];
    __builtin_memcpy(from_g, g, n * sizeof(M));
    __builtin_memcpy(from_x, x, n * sizeof(M));
    Buffer of_s, of_o;
    sixteen(from_g, from_x, to, c.a, c.b, of_s, of_o);
    __builtin_memcpy(dx, to, n * sizeof(M));
    if constexpr (kSums) {
      in_order<In>(of_s, n, ds);
      in_order<In>(of_o, n, d_o);
    }
  }
};

}  // namespace halfeven::HALFEVEN_ISA::backward
