// The kernels for AVX2, FMA and F16C. Headers of others come before the pragma: see arith.h.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "forward.h"

#if defined(__x86_64__)

#include <immintrin.h>

#pragma GCC target("avx2,fma,f16c")

#define HALFEVEN_ISA avx2
#define HALFEVEN_SSE4
#include "arith.h"
#include "forward_kernels.h"
#include "places_avx2.h"
#include "elements_avx2.h"
#include "reciprocal_avx2.h"
#include "codes_avx2.h"
#include "reals_avx2.h"
#include "forward_fast_avx2.h"
#include "dequantize_avx2.h"

halfeven::ForwardKernels halfeven::avx2::forward_kernels(Operation op, Dtype in, Dtype compute, Dtype out) {
  const ForwardKernels fast = op == Operation::Dequantize ? fast_dequantize_kernels(in, compute, out)
                                                   : fast_kernels(op, in, compute, out);
  return fast.per_row ? fast : generic_kernels(op, in, compute, out);
}

#else

halfeven::ForwardKernels halfeven::avx2::forward_kernels(Operation, Dtype, Dtype, Dtype) { return {}; }

#endif
