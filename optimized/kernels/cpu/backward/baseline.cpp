// The kernels of the gradients for every processor of the kind that is compiled for.
#include <cstdint>

#include "cpu/backward/job.h"

#define HALFEVEN_ISA baseline
#include "core/arith.h"
#include "core/gradient.h"
#include "cpu/backward/kernels.h"

halfeven::BackwardKernels halfeven::baseline::backward_kernels() {
  return {.kernel = backward::kernel,
          .load = backward::load_of,
          .save = backward::save_of,
          .save_sums = backward::save_sums_of};
}
