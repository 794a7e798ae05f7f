// The kernels of the gradients for AVX2, FMA and F16C. Headers of others come before the pragma: see arith.h.
#include <cstdint>

#include "cpu/backward/job.h"

#if defined(__x86_64__)

#include <immintrin.h>

#pragma GCC target("avx2,fma,f16c")

#define HALFEVEN_ISA avx2
#define HALFEVEN_SSE4
#include "core/arith.h"
#include "core/gradient.h"
#include "cpu/backward/kernels.h"
#include "cpu/backward/elements_avx2.h"
#include "cpu/backward/quantize_dequantize_avx2.h"

halfeven::BackwardKernels halfeven::avx2::backward_kernels() {
  return {.kernel = backward::fast_kernel,
          .load = backward::load_of,
          .save = backward::save_of,
          .save_sums = backward::save_sums_of};
}

#else

halfeven::BackwardKernels halfeven::avx2::backward_kernels() { return baseline::backward_kernels(); }

#endif
