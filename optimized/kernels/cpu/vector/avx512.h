// Compiles what follows for AVX-512 with F, BW, DQ and VL. Headers of others come before: see core/arith.h.

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")

#define HALFEVEN_ISA avx512
#define HALFEVEN_SSE4
#ifndef HALFEVEN_VECTOR
#define HALFEVEN_VECTOR 64
#endif
#define HALFEVEN_NATIVE "cpu/vector/native_x86.h"
#define HALFEVEN_NARROWER avx2
