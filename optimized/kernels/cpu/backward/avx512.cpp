// The kernels of the gradients for AVX-512.
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cpu/backward/job.h"

#if defined(__x86_64__)

#include <immintrin.h>

// Sums go in four lanes of float64: so vectors are no longer than on AVX2.
#define HALFEVEN_VECTOR 32
#include "cpu/vector/avx512.h"
#include "cpu/backward/vectors.h"

#else

halfeven::BackwardKernels halfeven::avx512::backward_kernels() { return {}; }

#endif
