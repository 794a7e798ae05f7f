// The kernels for every processor of the kind that is compiled for.
#include <cstdint>

#include "forward.h"

#define HALFEVEN_ISA baseline
#include "arith.h"
#include "forward_kernels.h"

halfeven::ForwardKernels halfeven::baseline::forward_kernels(Operation op, Dtype in, Dtype compute, Dtype out) {
  return generic_kernels(op, in, compute, out);
}
