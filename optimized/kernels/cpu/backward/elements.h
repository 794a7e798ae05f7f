// Sixteen elements of the gradient of quantize_dequantize at a time: see quantize_dequantize.h.
//
// bfloat16 is unpacked within the lanes of vectors, which packing undoes. Terms go to float64 by way of memory:
// converting from there takes a third of the time that it takes from a register.

namespace halfeven::HALFEVEN_ISA::backward {

// Vectors of sixteen elements; bfloat16 comes in pairs of them.
inline constexpr int kParts = 16 / kN, kPair = 2 * kN;

// What a vector of elements is computed with: the ends are those of the rounded quotient.
struct OfVector {
  Floats s, low, high;
};

// 16 elements in kParts vectors. Those of float32 are in order; of a pair of bfloat16 the first has the first four of
// every eight, and the second the rest.
template <Dtype In>
struct Elements {
  static constexpr bool kNarrow = In == Dtype::BF16;
  using M = typename Stored<In>::Memory;
  Floats v[kParts];

  [[gnu::always_inline]] explicit Elements(const M* p) {
    for (int i = 0; i < kParts; ++i)
      if constexpr (kNarrow)
        v[i] = i % 2 ? (Floats)after_zeros<true>(at<Words>(p + i / 2 * kPair))
                     : (Floats)after_zeros<false>(at<Words>(p + i / 2 * kPair));
      else
        v[i] = at<Floats>(p + i * kN);
  }

  // Where among the vectors, stored one after the other, elements 4k to 4k + 3 are.
  static constexpr int quad(int k) {
    return kNarrow ? k / kPairQuads * kPair + k % 2 * kN + k % kPairQuads / 2 * 4 : 4 * k;
  }

  // Those of g that are inside, else +0.0.
  [[gnu::always_inline]] static void keep(const M* g, const Ints* inside, M* to) {
    if constexpr (kNarrow) {
      for (int i = 0; i < kParts; i += 2)
        put(to + i * kN, at<Words>(g + i * kN) & pack(inside[i], inside[i + 1]));
    } else {
      for (int i = 0; i < kParts; ++i) put(to + i * kN, (Ints)at<Floats>(g + i * kN) & inside[i]);
    }
  }

  // Numbers that belong to 16 elements, in the order of v.
  [[gnu::always_inline]] static void ordered(const float* p, Floats* to) {
    for (int i = 0; i < kParts; ++i) {
      to[i] = at<Floats>(p + i * kN);
      if (!kNarrow || i % 2 == 0) continue;
      const Floats a = to[i - 1], b = to[i];
      to[i - 1] = shuffled(a, b, [](int k) { return k / 4 * 8 + k % 4; });
      to[i] = shuffled(a, b, [](int k) { return k / 4 * 8 + 4 + k % 4; });
    }
  }

 private:
  static constexpr int kPairQuads = kPair / 4;
};

// Terms of 16 elements, through memory.
struct Buffer {
  alignas(kVector) float values[16];

  [[gnu::always_inline]] void put_all(const Floats* v) {
    for (int i = 0; i < kParts; ++i) put(values + i * kN, v[i]);
    // Else the compiler would see through it, and convert from registers.
    asm volatile("" : "+m"(values));
  }

  // Elements 4k to 4k + 3.
  template <Dtype In>
  [[gnu::always_inline]] Four quad(int k) const {
    return doubles(values + Elements<In>::quad(k));
  }
};

// The first n elements of 16 in their own order, then -0.0.
template <Dtype In>
void in_order(const Buffer& terms, int64_t n, float* to) {
  for (int64_t i = 0; i < 16; ++i)
    to[i] = i < n ? terms.values[Elements<In>::quad(static_cast<int>(i / 4)) + i % 4] : -0.0f;
}

template <Dtype In, bool kSums>
struct Step {
  using E = Elements<In>;
  using M = typename E::M;

  [[gnu::always_inline]] static Ints one(Floats g, Floats x, const OfVector& c, Floats* ds, Floats* d_o) {
    const Floats u = x / c.s, rounded = half_even(u);
    // NaN passes through the limits.
    const Floats clipped = limited(rounded, c.low, c.high);
    const Ints inside = clipped == rounded;
    if constexpr (kSums) {
      *ds = g * (clipped - (Floats)((Ints)u & inside));
      *d_o = (Floats)((Ints)(g * c.s) & ~inside);
    }
    return inside;
  }

  // `c`: one for all vectors, or one for each.
  template <bool kOwn>
  [[gnu::always_inline]] static void sixteen(const M* g, const M* x, M* dx, const OfVector* c, Buffer& ds,
                                             Buffer& d_o) {
    const E gs(g), xs(x);
    Floats of_s[kParts], of_o[kParts];
    Ints inside[kParts];
    for (int i = 0; i < kParts; ++i) inside[i] = one(gs.v[i], xs.v[i], c[kOwn ? i : 0], of_s + i, of_o + i);
    E::keep(g, inside, dx);
    if constexpr (kSums) {
      ds.put_all(of_s);
      d_o.put_all(of_o);
    }
  }

  // Fewer than 16 elements, through a copy of them; their terms in order, as in_order() has them.
  template <bool kOwn>
  [[gnu::noinline]] static void part(const M* g, const M* x, M* dx, int64_t n, const OfVector* c, float* ds,
                                     float* d_o) {
    alignas(32) M from_g[16] = {}, from_x[16] = {}, to[16];
    __builtin_memcpy(from_g, g, n * sizeof(M));
    __builtin_memcpy(from_x, x, n * sizeof(M));
    Buffer of_s, of_o;
    sixteen<kOwn>(from_g, from_x, to, c, of_s, of_o);
    __builtin_memcpy(dx, to, n * sizeof(M));
    if constexpr (kSums) {
      in_order<In>(of_s, n, ds);
      in_order<In>(of_o, n, d_o);
    }
  }
};

}  // namespace halfeven::HALFEVEN_ISA::backward
