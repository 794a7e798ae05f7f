#include "cpu/memory/copies.h"

#include <cstring>

#define HALFEVEN_ISA baseline
#include "core/arith.h"

namespace halfeven {

namespace {

using namespace baseline;

template <class M>
void copy_items(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n) {
  // Else the speed depends on where so short a loop happens to lie in memory.
#pragma GCC unroll 8
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_step, from + i * from_step, sizeof(M));
}

template <Dtype From, Dtype To>
void round_from_to(const char* from, char* to, int64_t n) {
  const auto* x = reinterpret_cast<const typename Stored<From>::Memory*>(from);
  auto* y = reinterpret_cast<typename Stored<To>::Memory*>(to);
  using C = typename Working<From>::C;
  for (int64_t i = 0; i < n; ++i) y[i] = Stored<To>::store(Stored<From>::template load<C>(x[i]));
}

template <Dtype From>
void round_from(Dtype to_dtype, const char* from, char* to, int64_t n) {
  switch (to_dtype) {
    case Dtype::F64: return round_from_to<From, Dtype::F64>(from, to, n);
    case Dtype::F16: return round_from_to<From, Dtype::F16>(from, to, n);
    case Dtype::BF16: return round_from_to<From, Dtype::BF16>(from, to, n);
    default: return round_from_to<From, Dtype::F32>(from, to, n);
  }
}

}  // namespace

void copy_run(int64_t item, const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n) {
  switch (item) {
    case 1: return copy_items<uint8_t>(from, from_step, to, to_step, n);
    case 2: return copy_items<uint16_t>(from, from_step, to, to_step, n);
    case 4: return copy_items<uint32_t>(from, from_step, to, to_step, n);
    default: return copy_items<uint64_t>(from, from_step, to, to_step, n);
  }
}

void round_run(Dtype from_dtype, Dtype to_dtype, const char* from, char* to, int64_t n) {
  switch (from_dtype) {
    case Dtype::F64: return round_from<Dtype::F64>(to_dtype, from, to, n);
    case Dtype::F16: return round_from<Dtype::F16>(to_dtype, from, to, n);
    case Dtype::BF16: return round_from<Dtype::BF16>(to_dtype, from, to, n);
    default: return round_from<Dtype::F32>(to_dtype, from, to, n);
  }
}

}  // namespace halfeven
