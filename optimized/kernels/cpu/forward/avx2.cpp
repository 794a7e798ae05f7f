// The kernels for AVX2, FMA and F16C. Headers of others come before the pragma: see arith.h.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cpu/forward/job.h"

#if defined(__x86_64__)

#include <immintrin.h>

#pragma GCC target("avx2,fma,f16c")

#define HALFEVEN_ISA avx2
#define HALFEVEN_SSE4
#include "core/arith.h"
#include "core/reciprocal.h"
#include "core/element.h"
#include "cpu/forward/kernels.h"
#include "cpu/forward/places_avx2.h"
#include "cpu/forward/elements_avx2.h"
#include "cpu/forward/reciprocal_avx2.h"
#include "cpu/forward/codes_avx2.h"
#include "cpu/forward/reals_avx2.h"
#include "cpu/forward/quantize_avx2.h"
#include "cpu/forward/dequantize_avx2.h"

halfeven::ForwardKernels halfeven::avx2::forward_kernels(Operation op, Dtype in, Dtype compute, Dtype out) {
  const ForwardKernels fast = op == Operation::Dequantize ? fast_dequantize_kernels(in, compute, out)
                                                   : fast_kernels(op, in, compute, out);
  return fast.per_row ? fast : generic_kernels(op, in, compute, out);
}

#else

halfeven::ForwardKernels halfeven::avx2::forward_kernels(Operation, Dtype, Dtype, Dtype) { return {}; }

#endif
