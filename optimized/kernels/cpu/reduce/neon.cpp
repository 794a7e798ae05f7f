// The kernels of minima and maxima for NEON.
#include <cstdint>

#include "cpu/reduce/job.h"

#if defined(__aarch64__)

#include "cpu/vector/neon.h"
#include "cpu/reduce/kernels.h"

halfeven::ReduceKernels halfeven::HALFEVEN_ISA::reduce_kernels() {
  return {.kernel = reduce::kernel, .copy = reduce::copy};
}

#else

halfeven::ReduceKernels halfeven::neon::reduce_kernels() { return {}; }

#endif
