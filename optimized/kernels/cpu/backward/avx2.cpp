// The kernels of the gradients for AVX2.
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cpu/backward/job.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "cpu/vector/avx2.h"
#include "cpu/backward/vectors.h"

#else

halfeven::BackwardKernels halfeven::avx2::backward_kernels() { return {}; }

#endif
