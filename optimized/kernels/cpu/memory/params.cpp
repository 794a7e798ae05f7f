// Scales and offsets of any dtype in the dtype of the arithmetic, a tile at a time.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/memory/params.h"

#define HALFEVEN_ISA baseline
#include "core/arith.h"

namespace halfeven {

namespace {

using namespace baseline;

template <Dtype D, Dtype T, class Finish>
void load_run(const char* p, int64_t step, int64_t n, void* to, Finish&& finish) {
  using M = typename Stored<D>::Memory;
  auto* values = static_cast<typename Working<T>::C*>(to);
  if (step == static_cast<int64_t>(sizeof(M)) && reinterpret_cast<uintptr_t>(p) % alignof(M) == 0) {
    const auto* source = reinterpret_cast<const M*>(p);
    for (int64_t i = 0; i < n; ++i) values[i] = finish(load_as<D, T>(source[i]));
    return;
  }
  M value{};
  if (step == 0) {
    std::memcpy(&value, p, sizeof value);
    std::fill_n(values, n, finish(load_as<D, T>(value)));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(&value, p + i * step, sizeof value);
    values[i] = finish(load_as<D, T>(value));
  }
}

template <Dtype T, class F>
void by_dtype(Dtype d, F&& f) {
  switch (d) {
    case Dtype::F32: return f.template operator()<Dtype::F32, T>();
    case Dtype::F64: return f.template operator()<Dtype::F64, T>();
    case Dtype::F16: return f.template operator()<Dtype::F16, T>();
    case Dtype::BF16: return f.template operator()<Dtype::BF16, T>();
    case Dtype::I8: return f.template operator()<Dtype::I8, T>();
    case Dtype::U8: return f.template operator()<Dtype::U8, T>();
    case Dtype::I16: return f.template operator()<Dtype::I16, T>();
    case Dtype::U16: return f.template operator()<Dtype::U16, T>();
    case Dtype::I32: return f.template operator()<Dtype::I32, T>();
    case Dtype::U32: return f.template operator()<Dtype::U32, T>();
    case Dtype::I64: return f.template operator()<Dtype::I64, T>();
    case Dtype::None: return;
  }
}

template <class F>
void by_dtypes(Dtype d, Dtype compute, F&& f) {
  switch (compute) {
    case Dtype::F64: return by_dtype<Dtype::F64>(d, f);
    case Dtype::F16: return by_dtype<Dtype::F16>(d, f);
    case Dtype::BF16: return by_dtype<Dtype::BF16>(d, f);
    default: return by_dtype<Dtype::F32>(d, f);
  }
}

}  // namespace

void load_scales(const char* p, Dtype dtype, int64_t step, int64_t n, Dtype compute, void* to) {
  by_dtypes(dtype, compute, [&]<Dtype D, Dtype T>() {
    if constexpr (is_float(D)) load_run<D, T>(p, step, n, to, [](auto v) { return v; });
  });
}

void load_offsets(const char* p, Dtype dtype, int64_t step, int64_t n, bool is_offset, Dtype compute, void* to) {
  if (!p) {
    std::memset(to, 0, n * (compute == Dtype::F64 ? sizeof(double) : sizeof(float)));
    return;
  }
  by_dtypes(dtype, compute, [&]<Dtype D, Dtype T>() {
    if (is_offset)
      load_run<D, T>(p, step, n, to, [](auto v) { return v; });
    else if constexpr (is_float(D))
      load_run<D, T>(p, step, n, to, [](auto v) { return -v; });
    else
      load_run<D, T>(p, step, n, to, [](auto v) { return decltype(v)(0) - v; });
  });
}

}  // namespace halfeven
