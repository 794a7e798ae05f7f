// The kernels of the gradients for AVX2, FMA and F16C. Headers of others come before the pragma: see forward_avx2.cpp.
#include <cstdint>

#include "backward_tile.h"

#if defined(__x86_64__)

#pragma GCC target("avx2,fma,f16c")

#define HALFEVEN_ISA avx2
#define HALFEVEN_SSE4
#include "arith.h"
#include "backward_kernels.h"

halfeven::BackwardKernels halfeven::avx2::backward_kernels() {
  return {backward::tile, backward::load_of, backward::save_of, backward::save_sums_of};
}

#else

halfeven::BackwardKernels halfeven::avx2::backward_kernels() { return baseline::backward_kernels(); }

#endif
