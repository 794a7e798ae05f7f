// Which instruction set the kernels use, and how large the caches are.
#pragma once

#include <cstdint>

namespace halfeven {

// The one that every processor of the kind has; AVX2 with FMA and F16C; AVX-512 with F, BW, DQ and VL; NEON.
enum class Isa : int { Baseline = 0, Avx2 = 1, Avx512 = 2, Neon = 3 };

Isa isa();

// What a kernel of one instruction set is called by, in the order of Isa.
template <class F>
struct ByIsa {
  F each[4];
  F here() const { return each[static_cast<int>(isa())]; }
};

// The bytes of operands and result from which they do not stay in caches: those of the largest cache, within limits.
int64_t cache_bytes();

}  // namespace halfeven

// Sets the instruction set where 0 <= wanted and the processor has it, and returns the one in use, by its number in
// Isa. For the loader and tests.
extern "C" __attribute__((visibility("default"))) int halfeven_isa(int wanted);

// Sets the bytes of the caches where wanted > 0, and returns those in use. For tests.
extern "C" __attribute__((visibility("default"))) int64_t halfeven_cache_bytes(int64_t wanted);
