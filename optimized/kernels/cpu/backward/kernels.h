// The kernels of the gradients: plain loops, which the compiler turns into vector instructions.
// Compiled once per instruction set, like arith.h.

namespace halfeven::HALFEVEN_ISA::backward {

// Four lanes, whatever registers there are.
using Four = double __attribute__((vector_size(4 * sizeof(double))));
using FourFloats = float __attribute__((vector_size(4 * sizeof(float))));

inline void load_four(const float* v, Four& to) {
  FourFloats floats;
  __builtin_memcpy(&floats, v, sizeof floats);
  to = __builtin_convertvector(floats, Four);
}

inline void load_four(const double* v, Four& to) { __builtin_memcpy(&to, v, sizeof to); }

// The sum, by an order that depends on n alone: four lanes, sixteen terms at a time.
template <class C>
double total(const C* __restrict terms, int64_t n) {
  Four sum = {kNoTerms, kNoTerms, kNoTerms, kNoTerms};
  int64_t i = 0;
  Four part[4];
  for (; i + 16 <= n; i += 16) {
    for (int k = 0; k < 4; ++k) load_four(terms + i + 4 * k, part[k]);
    sum += (part[0] + part[1]) + (part[2] + part[3]);
  }
  for (; i + 4 <= n; i += 4) {
    load_four(terms + i, part[0]);
    sum += part[0];
  }
  if (i < n) {
    C rest[4] = {C(kNoTerms), C(kNoTerms), C(kNoTerms), C(kNoTerms)};
    for (int j = 0; i + j < n; ++j) rest[j] = terms[i + j];
    load_four(rest, part[0]);
    sum += part[0];
  }
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

template <class C>
void add_each(double* __restrict sums, const C* __restrict terms, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(terms[i]);
}

// A job as a kernel sees it: elements in memory are of dtype In, or as wide as the arithmetic's.
template <Dtype In, Dtype T>
struct View {
  using M = typename Stored<In>::Memory;
  using C = typename Working<T>::C;
  const BackwardJob& job;
  C low, high, shift;

  explicit View(const BackwardJob& given)
      : job(given),
        low(static_cast<C>(job.low)),
        high(static_cast<C>(job.high)),
        shift(Working<T>::round(static_cast<C>(job.shift))) {}
  const M* g(int64_t r) const { return static_cast<const M*>(job.g) + r * job.g_row; }
  const M* x(int64_t r) const { return static_cast<const M*>(job.x) + r * job.x_row; }
  M* dx(int64_t r) const { return static_cast<M*>(job.dx) + r * job.dx_row; }
  Parameter<T> parameter(int64_t i) const {
    return {static_cast<const C*>(job.s)[i], static_cast<const C*>(job.o)[i], low, high, shift};
  }
  template <Gradient op>
  Terms<op, T> terms(M g, M x, const Parameter<T>& p) const {
    return {Stored<In>::template load<C>(g), Stored<In>::template load<C>(x), p, low, high, shift};
  }
};

template <Gradient op, Dtype In, Dtype T, bool kColumns, bool kSums>
void generic(const BackwardJob& job) {
  using V = View<In, T>;
  const V view(job);
  alignas(64) typename V::C ds[kSums ? kJobElements : 1], d_o[kSums ? kJobElements : 1];
  for (int64_t r = 0; r < job.rows; ++r) {
    const Parameter<T> of_row = view.parameter(kColumns ? 0 : r);
    const auto* __restrict g = view.g(r);
    const auto* __restrict x = view.x(r);
    auto* __restrict dx = view.dx(r);
    for (int64_t c = 0; c < job.len; c += kJobElements) {
      const int64_t end = job.len - c < kJobElements ? job.len : c + kJobElements;
      const int64_t start = kSums && !kColumns ? r * job.len : -c;
#pragma GCC ivdep
      for (int64_t i = c; i < end; ++i) {
        const auto terms = view.template terms<op>(g[i], x[i], kColumns ? view.parameter(i) : of_row);
        dx[i] = stored<op, In>(terms, g[i]);
        if constexpr (kSums) {
          ds[start + i] = terms.ds;
          d_o[start + i] = terms.d_o;
        }
      }
      if constexpr (kSums && kColumns) {
        add_each(job.ds + c, ds, end - c);
        add_each(job.d_o + c, d_o, end - c);
      }
    }
  }
  // After all rows, so that the sums of short ones overlap.
  if constexpr (kSums && !kColumns)
    for (int64_t r = 0; r < job.rows; ++r) {
      job.ds[r] = total(ds + r * job.len, job.len);
      job.d_o[r] = total(d_o + r * job.len, job.len);
    }
}

template <Gradient op, Dtype In, Dtype T>
BackwardKernel kernel_of(bool columns, bool sums) {
  if (columns) return sums ? generic<op, In, T, true, true> : generic<op, In, T, true, false>;
  return sums ? generic<op, In, T, false, true> : generic<op, In, T, false, false>;
}

template <Gradient op>
BackwardKernel kernel_by(Dtype in, Dtype compute, bool columns, bool sums) {
  if constexpr (op != Gradient::Dequantize) {
    if (in == Dtype::BF16 && compute == Dtype::F32) return kernel_of<op, Dtype::BF16, Dtype::F32>(columns, sums);
    if (in == Dtype::F16 && compute == Dtype::F32) return kernel_of<op, Dtype::F16, Dtype::F32>(columns, sums);
  }
  switch (compute) {
    case Dtype::F32: return kernel_of<op, Dtype::F32, Dtype::F32>(columns, sums);
    case Dtype::F64: return kernel_of<op, Dtype::F64, Dtype::F64>(columns, sums);
    case Dtype::F16: return kernel_of<op, Dtype::F32, Dtype::F16>(columns, sums);
    default: return kernel_of<op, Dtype::F32, Dtype::BF16>(columns, sums);
  }
}

inline BackwardKernel kernel(Gradient op, Dtype in, Dtype compute, bool columns, bool sums) {
  switch (op) {
    case Gradient::Quantize: return kernel_by<Gradient::Quantize>(in, compute, columns, sums);
    case Gradient::Dequantize: return kernel_by<Gradient::Dequantize>(in, compute, columns, sums);
    default: return kernel_by<Gradient::QuantizeDequantize>(in, compute, columns, sums);
  }
}

// From anywhere: see Loops::dense.
template <Dtype D, Dtype T>
void load(const char* from, int64_t step, int64_t n, void* to) {
  using M = typename Stored<D>::Memory;
  using C = typename Working<T>::C;
  C* __restrict out = static_cast<C*>(to);
  const auto at = [&](int64_t place) __attribute__((always_inline)) {
    M value;
    __builtin_memcpy(&value, from + place, sizeof value);
    return load_as<D, T>(value);
  };
  if (step == sizeof(M)) {
    for (int64_t i = 0; i < n; ++i) out[i] = at(i * sizeof(M));
  } else if (step == 0) {
    const C value = at(0);
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = at(i * step);
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
Load load_by(Dtype compute) {
  switch (compute) {
    case Dtype::F32: return load<D, Dtype::F32>;
    case Dtype::F64: return load<D, Dtype::F64>;
    case Dtype::F16: return load<D, Dtype::F16>;
    default: return load<D, Dtype::BF16>;
  }
}

inline Load load_of(Dtype in, Dtype compute) {
  switch (in) {
    case Dtype::F32: return load_by<Dtype::F32>(compute);
    case Dtype::F64: return load_by<Dtype::F64>(compute);
    case Dtype::F16: return load_by<Dtype::F16>(compute);
    case Dtype::BF16: return load_by<Dtype::BF16>(compute);
    case Dtype::I8: return load_by<Dtype::I8>(compute);
    case Dtype::U8: return load_by<Dtype::U8>(compute);
    case Dtype::I16: return load_by<Dtype::I16>(compute);
    case Dtype::U16: return load_by<Dtype::U16>(compute);
    case Dtype::I32: return load_by<Dtype::I32>(compute);
    case Dtype::U32: return load_by<Dtype::U32>(compute);
    default: return load_by<Dtype::I64>(compute);
  }
}

template <Dtype D>
SaveSums save_sums_by(Dtype compute) {
  switch (compute) {
    case Dtype::F32: return save_sums<Dtype::F32, D>;
    case Dtype::F64: return save_sums<Dtype::F64, D>;
    case Dtype::F16: return save_sums<Dtype::F16, D>;
    default: return save_sums<Dtype::BF16, D>;
  }
}

inline Save save_of(Dtype compute, Dtype out) {
  const bool wide = compute == Dtype::F64;
  switch (out) {
    case Dtype::F32: return wide ? save<double, Dtype::F32> : save<float, Dtype::F32>;
    case Dtype::F64: return wide ? save<double, Dtype::F64> : save<float, Dtype::F64>;
    case Dtype::F16: return wide ? save<double, Dtype::F16> : save<float, Dtype::F16>;
    default: return wide ? save<double, Dtype::BF16> : save<float, Dtype::BF16>;
  }
}

inline SaveSums save_sums_of(Dtype compute, Dtype out) {
  switch (out) {
    case Dtype::F32: return save_sums_by<Dtype::F32>(compute);
    case Dtype::F64: return save_sums_by<Dtype::F64>(compute);
    case Dtype::F16: return save_sums_by<Dtype::F16>(compute);
    default: return save_sums_by<Dtype::BF16>(compute);
  }
}

}  // namespace halfeven::HALFEVEN_ISA::backward
