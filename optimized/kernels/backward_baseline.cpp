// The kernels of the gradients for every processor of the kind that is compiled for.
#include <cstdint>

#include "backward_tile.h"

#define HALFEVEN_ISA baseline
#include "arith.h"
#include "backward_kernels.h"

halfeven::BackwardKernels halfeven::baseline::backward_kernels() {
  return {backward::tile, backward::load_of, backward::save_of, backward::save_sums_of};
}
