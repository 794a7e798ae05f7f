// The kernels for AVX2.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cpu/forward/job.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "cpu/vector/avx2.h"
#include "cpu/forward/vectors.h"

#else

halfeven::ForwardKernels halfeven::avx2::forward_kernels(Operation, Dtype, Dtype, Dtype) { return {}; }

#endif
