// The kernels for AVX-512.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cpu/forward/job.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "cpu/vector/avx512.h"
#include "cpu/forward/vectors.h"

#else

halfeven::ForwardKernels halfeven::avx512::forward_kernels(Operation, Dtype, Dtype, Dtype) { return {}; }

#endif
