// The kernels of minima and maxima for every processor of the kind that is compiled for.
#include <cstdint>

#include "cpu/reduce/job.h"

#define HALFEVEN_ISA baseline
#include "cpu/reduce/kernels.h"

halfeven::ReduceKernels halfeven::baseline::reduce_kernels() {
  return {.kernel = reduce::kernel, .copy = reduce::copy};
}
