// The kernels for AVX2, FMA and F16C. Every header of others is included before the pragma: a function of theirs that
// was compiled for AVX2 here could be linked into what runs on other processors.
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
#include "generic.h"
#include "lanes_avx2.h"
#include "reciprocal_avx2.h"
#include "codes_avx2.h"
#include "reals_avx2.h"
#include "fast_avx2.h"
#include "dequantize_avx2.h"

halfeven::Kernels halfeven::avx2::kernels(Operation op, Dtype in, Dtype compute, Dtype out) {
  const Kernels fast = op == Operation::Dequantize ? fast_dequantize_kernels(in, compute, out)
                                                   : fast_kernels(op, in, compute, out);
  return fast.per_row ? fast : generic_kernels(op, in, compute, out);
}

#else

halfeven::Kernels halfeven::avx2::kernels(Operation, Dtype, Dtype, Dtype) { return {}; }

#endif
