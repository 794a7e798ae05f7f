// The kernels of minima and maxima for AVX2. Headers of others come before the pragma: see arith.h.
#include <cstdint>

#include "cpu/reduce/job.h"

#if defined(__x86_64__)

#pragma GCC target("avx2,fma,f16c")

#define HALFEVEN_ISA avx2
#include "cpu/reduce/kernels.h"

halfeven::ReduceKernels halfeven::avx2::reduce_kernels() { return {.kernel = reduce::kernel, .copy = reduce::copy}; }

#else

halfeven::ReduceKernels halfeven::avx2::reduce_kernels() { return baseline::reduce_kernels(); }

#endif
