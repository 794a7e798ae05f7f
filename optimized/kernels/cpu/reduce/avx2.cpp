// The kernels of minima and maxima for AVX2.
#include <cstdint>

#include "cpu/reduce/job.h"

#if defined(__x86_64__)

#include "cpu/vector/avx2.h"
#include "cpu/reduce/kernels.h"

halfeven::ReduceKernels halfeven::HALFEVEN_ISA::reduce_kernels() {
  return {.kernel = reduce::kernel, .copy = reduce::copy};
}

#else

halfeven::ReduceKernels halfeven::avx2::reduce_kernels() { return {}; }

#endif
