// The kernels of a target that has vectors, written once for all of them. Its file comes before: it includes what other
// headers need, and then cpu/vector/<target>.h, which sets HALFEVEN_ISA; HALFEVEN_VECTOR; HALFEVEN_NATIVE, the header
// of what its instructions are; and, where it is to have one, HALFEVEN_NARROWER, the target that takes rows shorter than
// a pair of vectors.

#include "core/arith.h"
#include "core/reciprocal.h"
#include "core/element.h"
#include "cpu/forward/kernels.h"
#include "cpu/vector/vector.h"
#include HALFEVEN_NATIVE
#include "cpu/forward/places.h"
#include "cpu/forward/elements.h"
#include "cpu/forward/constants.h"
#include "cpu/forward/codes.h"
#include "cpu/forward/reals.h"
#include "cpu/forward/quantize.h"
#include "cpu/forward/dequantize.h"

halfeven::ForwardKernels halfeven::HALFEVEN_ISA::forward_kernels(Operation op, Dtype in, Dtype compute, Dtype out) {
  const ForwardKernels fast = op == Operation::Dequantize ? fast_dequantize_kernels(in, compute, out)
                                                          : fast_kernels(op, in, compute, out);
  return fast.per_row ? fast : generic_kernels(op, in, compute, out);
}
