// The kernels of the gradients for AVX2, FMA and F16C. Headers of others come before the pragma: see arith.h.
#include <cstdint>

#include "backward.h"

#if defined(__x86_64__)

#include <immintrin.h>

#pragma GCC target("avx2,fma,f16c")

#define HALFEVEN_ISA avx2
#define HALFEVEN_SSE4
#include "arith.h"
#include "backward_kernels.h"
#include "backward_elements_avx2.h"
#include "backward_fast_avx2.h"

halfeven::BackwardKernels halfeven::avx2::backward_kernels() {
  return {.kernel = backward::fast_kernel,
          .load = backward::load_of,
          .save = backward::save_of,
          .save_sums = backward::save_sums_of};
}

#else

halfeven::BackwardKernels halfeven::avx2::backward_kernels() { return baseline::backward_kernels(); }

#endif
