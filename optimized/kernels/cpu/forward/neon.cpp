// The kernels for NEON.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cpu/forward/job.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "cpu/vector/neon.h"
#include "cpu/forward/vectors.h"

#else

halfeven::ForwardKernels halfeven::neon::forward_kernels(Operation, Dtype, Dtype, Dtype) { return {}; }

#endif
