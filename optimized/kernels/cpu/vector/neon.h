// Compiles what follows for NEON, which every 64-bit ARM processor has. Headers of others come before: see core/arith.h.

#define HALFEVEN_ISA neon
#define HALFEVEN_VECTOR 16
#define HALFEVEN_NATIVE "cpu/vector/native_neon.h"
