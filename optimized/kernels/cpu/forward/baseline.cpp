// The kernels for every processor of the kind that is compiled for.
#include <cstdint>

#include "cpu/forward/job.h"

#define HALFEVEN_ISA baseline
#include "core/arith.h"
#include "core/element.h"
#include "cpu/forward/kernels.h"

halfeven::ForwardKernels halfeven::baseline::forward_kernels(Operation op, Dtype in, Dtype compute, Dtype out) {
  return generic_kernels(op, in, compute, out);
}
