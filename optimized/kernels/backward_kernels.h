// The kernels of the gradients: plain loops, which the compiler turns into vector instructions.
// Compiled once per instruction set, like arith.h. No templates of other libraries: the linker could take one that was
// compiled for AVX2 here where the other is meant.

namespace halfeven::HALFEVEN_ISA::backward {

// What an element needs of its parameters. Sums start at -0.0, which adding keeps: so does a shift of none.
template <Dtype T>
struct Parameter {
  using W = Working<T>;
  using C = typename W::C;
  C s, o, below, above, clipped_shift;

  Parameter(C scale, C offset, C low, C high, C shift) : s(scale), o(offset) {
    below = W::round(low + o);
    above = W::round(high + o);
    // A NaN offset has no ends to compare with, and so comes in here.
    clipped_shift = o == o ? (shift == 0 ? C(-0.0) : shift) : o;
  }
};

template <Gradient op, Dtype T>
struct Terms {
  using W = Working<T>;
  using C = typename W::C;
  C dx, ds, d_o;
  bool inside = true;

  // Everything is computed and then chosen from, as vectors do.
  Terms(C g, C x, const Parameter<T>& p, C low, C high, C shift) {
    if constexpr (op == Gradient::Dequantize) {
      dx = W::round(g * p.s);
      ds = W::round(g * W::round(x + p.o));
      d_o = dx;
    } else {
      C u = W::round(x / p.s);
      if constexpr (op == Gradient::QuantizeDequantize) u = W::round(u - shift);
      const C rounded = half_even(u), code = W::round(rounded - p.o);
      inside = (code >= low) & (code <= high);
      if constexpr (op == Gradient::Quantize) {
        const C kept = g * (inside ? C(1) : C(0));
        dx = W::round(kept / p.s);
        ds = W::round(-dx * u);
        d_o = -kept;
      } else {
        const C clipped = W::round(limit(rounded, p.below, p.above) + p.clipped_shift);
        const C residual = W::round(rounded - u), gs = W::round(g * p.s);
        dx = inside ? g : C(0);
        ds = W::round(g * (inside ? residual : clipped));
        d_o = inside ? C(0) : gs;
      }
    }
  }
};

// dx in memory, where a gradient that is handed on needs no rounding.
template <Gradient op, Dtype In, Dtype T>
typename Stored<In>::Memory stored(const Terms<op, T>& terms, typename Stored<In>::Memory g) {
  if constexpr (op == Gradient::QuantizeDequantize && In != T) return terms.inside ? g : 0;
  return Stored<In>::store(terms.dx);
}

// Four lanes, whatever registers there are.
using Four = double __attribute__((vector_size(4 * sizeof(double))));

// The sum, by an order that depends on n alone: sixteen lanes, then pairs of lanes.
template <class C>
double total(const C* __restrict terms, int64_t n) {
  Four lanes[4];
  const auto add = [&](Four& to, const C* v) {
    to += Four{static_cast<double>(v[0]), static_cast<double>(v[1]), static_cast<double>(v[2]),
               static_cast<double>(v[3])};
  };
  for (Four& lane : lanes) lane = Four{-0.0, -0.0, -0.0, -0.0};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 4; ++k) add(lanes[k], terms + i + 4 * k);
  for (; i + 4 <= n; i += 4) add(lanes[0], terms + i);
  if (i < n) {
    C rest[4] = {C(-0.0), C(-0.0), C(-0.0), C(-0.0)};
    for (int j = 0; i + j < n; ++j) rest[j] = terms[i + j];
    add(lanes[1], rest);
  }
  const Four sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

template <class C>
void add_each(double* __restrict sums, const C* __restrict terms, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(terms[i]);
}

// A tile as a kernel sees it: elements in memory are of dtype In, or as wide as the arithmetic's.
template <Dtype In, Dtype T>
struct View {
  using M = typename Stored<In>::Memory;
  using C = typename Working<T>::C;
  const Tile& t;
  C low, high, shift;

  explicit View(const Tile& tile)
      : t(tile), low(static_cast<C>(t.low)), high(static_cast<C>(t.high)), shift(static_cast<C>(t.shift)) {}
  const M* g(int64_t r) const { return static_cast<const M*>(t.g) + r * t.g_row; }
  const M* x(int64_t r) const { return static_cast<const M*>(t.x) + r * t.x_row; }
  M* dx(int64_t r) const { return static_cast<M*>(t.dx) + r * t.dx_row; }
  Parameter<T> parameter(int64_t i) const {
    return {static_cast<const C*>(t.s)[i], static_cast<const C*>(t.o)[i], low, high, shift};
  }
  template <Gradient op>
  Terms<op, T> terms(M g, M x, const Parameter<T>& p) const {
    return {Stored<In>::template load<C>(g), Stored<In>::template load<C>(x), p, low, high, shift};
  }
};

template <Gradient op, Dtype In, Dtype T, bool kColumns, bool kSums>
void run(const Tile& t) {
  using V = View<In, T>;
  const V view(t);
  alignas(64) typename V::C ds[kSums ? kTileElements : 1], d_o[kSums ? kTileElements : 1];
  for (int64_t r = 0; r < t.rows; ++r) {
    const Parameter<T> of_row = view.parameter(kColumns ? 0 : r);
    const auto* __restrict g = view.g(r);
    const auto* __restrict x = view.x(r);
    auto* __restrict dx = view.dx(r);
    const int64_t start = kSums && !kColumns ? r * t.len : 0;
#pragma GCC ivdep
    for (int64_t i = 0; i < t.len; ++i) {
      const auto terms = view.template terms<op>(g[i], x[i], kColumns ? view.parameter(i) : of_row);
      dx[i] = stored<op, In>(terms, g[i]);
      if constexpr (kSums) {
        ds[start + i] = terms.ds;
        d_o[start + i] = terms.d_o;
      }
    }
    if constexpr (kSums && kColumns) {
      add_each(t.ds, ds, t.len);
      add_each(t.d_o, d_o, t.len);
    }
  }
  // After all rows, so that the sums of short ones overlap.
  if constexpr (kSums && !kColumns)
    for (int64_t r = 0; r < t.rows; ++r) {
      t.ds[r] = total(ds + r * t.len, t.len);
      t.d_o[r] = total(d_o + r * t.len, t.len);
    }
}

template <Gradient op, Dtype In, Dtype T>
TileKernel tile_of(bool columns, bool sums) {
  if (columns) return sums ? run<op, In, T, true, true> : run<op, In, T, true, false>;
  return sums ? run<op, In, T, false, true> : run<op, In, T, false, false>;
}

template <Gradient op>
TileKernel tile_by(Dtype in, Dtype t, bool columns, bool sums) {
  if constexpr (op != Gradient::Dequantize) {
    if (in == Dtype::BF16 && t == Dtype::F32) return tile_of<op, Dtype::BF16, Dtype::F32>(columns, sums);
    if (in == Dtype::F16 && t == Dtype::F32) return tile_of<op, Dtype::F16, Dtype::F32>(columns, sums);
  }
  switch (t) {
    case Dtype::F32: return tile_of<op, Dtype::F32, Dtype::F32>(columns, sums);
    case Dtype::F64: return tile_of<op, Dtype::F64, Dtype::F64>(columns, sums);
    case Dtype::F16: return tile_of<op, Dtype::F32, Dtype::F16>(columns, sums);
    default: return tile_of<op, Dtype::F32, Dtype::BF16>(columns, sums);
  }
}

inline TileKernel tile(Gradient op, Dtype in, Dtype t, bool columns, bool sums) {
  switch (op) {
    case Gradient::Quantize: return tile_by<Gradient::Quantize>(in, t, columns, sums);
    case Gradient::Dequantize: return tile_by<Gradient::Dequantize>(in, t, columns, sums);
    default: return tile_by<Gradient::QuantizeDequantize>(in, t, columns, sums);
  }
}

template <Dtype D, Dtype T>
void load(const char* from, int64_t step, int64_t n, void* to) {
  using M = typename Stored<D>::Memory;
  using C = typename Working<T>::C;
  C* __restrict out = static_cast<C*>(to);
  if (step == sizeof(M)) {
    const M* __restrict in = reinterpret_cast<const M*>(from);
    for (int64_t i = 0; i < n; ++i) out[i] = load_as<D, T>(in[i]);
  } else if (step == 0) {
    const C value = load_as<D, T>(*reinterpret_cast<const M*>(from));
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = load_as<D, T>(*reinterpret_cast<const M*>(from + i * step));
  }
}

template <class C, Dtype D>
void save(const void* from, char* to, int64_t step, int64_t n) {
  using M = typename Stored<D>::Memory;
  const C* __restrict in = static_cast<const C*>(from);
  if (step == sizeof(M)) {
    M* __restrict out = reinterpret_cast<M*>(to);
    for (int64_t i = 0; i < n; ++i) out[i] = Stored<D>::store(in[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<M*>(to + i * step) = Stored<D>::store(in[i]);
  }
}

template <Dtype T, Dtype D>
void save_sums(const double* from, char* to, int64_t n) {
  auto* out = reinterpret_cast<typename Stored<D>::Memory*>(to);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (T == Dtype::F64)
      out[i] = Stored<D>::store(from[i]);
    else if constexpr (T == Dtype::F32)
      out[i] = Stored<D>::store(static_cast<float>(from[i]));
    else
      out[i] = Stored<D>::store(Working<T>::round(round_to_odd(from[i])));
  }
}

template <Dtype D>
Load load_by(Dtype t) {
  switch (t) {
    case Dtype::F32: return load<D, Dtype::F32>;
    case Dtype::F64: return load<D, Dtype::F64>;
    case Dtype::F16: return load<D, Dtype::F16>;
    default: return load<D, Dtype::BF16>;
  }
}

inline Load load_of(Dtype in, Dtype t) {
  switch (in) {
    case Dtype::F32: return load_by<Dtype::F32>(t);
    case Dtype::F64: return load_by<Dtype::F64>(t);
    case Dtype::F16: return load_by<Dtype::F16>(t);
    case Dtype::BF16: return load_by<Dtype::BF16>(t);
    case Dtype::I8: return load_by<Dtype::I8>(t);
    case Dtype::U8: return load_by<Dtype::U8>(t);
    case Dtype::I16: return load_by<Dtype::I16>(t);
    case Dtype::U16: return load_by<Dtype::U16>(t);
    case Dtype::I32: return load_by<Dtype::I32>(t);
    case Dtype::U32: return load_by<Dtype::U32>(t);
    default: return load_by<Dtype::I64>(t);
  }
}

template <Dtype D>
SaveSums save_sums_by(Dtype t) {
  switch (t) {
    case Dtype::F32: return save_sums<Dtype::F32, D>;
    case Dtype::F64: return save_sums<Dtype::F64, D>;
    case Dtype::F16: return save_sums<Dtype::F16, D>;
    default: return save_sums<Dtype::BF16, D>;
  }
}

inline Save save_of(Dtype t, Dtype out) {
  const bool wide = t == Dtype::F64;
  switch (out) {
    case Dtype::F32: return wide ? save<double, Dtype::F32> : save<float, Dtype::F32>;
    case Dtype::F64: return wide ? save<double, Dtype::F64> : save<float, Dtype::F64>;
    case Dtype::F16: return wide ? save<double, Dtype::F16> : save<float, Dtype::F16>;
    default: return wide ? save<double, Dtype::BF16> : save<float, Dtype::BF16>;
  }
}

inline SaveSums save_sums_of(Dtype t, Dtype out) {
  switch (out) {
    case Dtype::F32: return save_sums_by<Dtype::F32>(t);
    case Dtype::F64: return save_sums_by<Dtype::F64>(t);
    case Dtype::F16: return save_sums_by<Dtype::F16>(t);
    default: return save_sums_by<Dtype::BF16>(t);
  }
}

}  // namespace halfeven::HALFEVEN_ISA::backward
