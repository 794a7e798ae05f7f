// Compiles what follows for AVX2, FMA and F16C. Headers of others come before: see core/arith.h.

#pragma GCC target("avx2,fma,f16c")

#define HALFEVEN_ISA avx2
#define HALFEVEN_SSE4
#define HALFEVEN_VECTOR 32
#define HALFEVEN_NATIVE "cpu/vector/native_x86.h"
