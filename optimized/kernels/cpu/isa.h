// Which instruction set the kernels use.
#pragma once

namespace halfeven {

enum class Isa : int { Baseline = 0, Avx2 = 1 };

Isa isa();

}  // namespace halfeven

// Sets the instruction set where 0 <= wanted and the processor has it, and returns the one in use: 0 for the one that
// every processor of this kind has, 1 for AVX2 with FMA and F16C. For the loader and tests.
extern "C" __attribute__((visibility("default"))) int halfeven_isa(int wanted);
