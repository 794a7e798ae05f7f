// The kernels of a target with vectors: see cpu/forward/vectors.h.

#include "core/arith.h"
#include "core/gradient.h"
#include "cpu/vector/vector.h"
#include HALFEVEN_NATIVE
#include "cpu/backward/kernels.h"
#include "cpu/backward/elements.h"
#include "cpu/backward/quantize_dequantize.h"

halfeven::BackwardKernels halfeven::HALFEVEN_ISA::backward_kernels() {
  return {.kernel = backward::fast_kernel,
          .load = backward::load_of,
          .save = backward::save_of,
          .save_sums = backward::save_sums_of};
}
