// The kernels of the gradients for NEON.
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cpu/backward/job.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "cpu/vector/neon.h"
#include "cpu/backward/vectors.h"

#else

halfeven::BackwardKernels halfeven::neon::backward_kernels() { return {}; }

#endif
