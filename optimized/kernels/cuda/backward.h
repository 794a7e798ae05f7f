// Between who launches the kernels of the gradients and the kernels.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "cuda/forward.h"
#include "cuda/reduce.h"

namespace halfeven {

// kept x reduced x len elements, as ReduceJob has them. An entry is of all that share a scale and an offset; the sums of
// its terms for the two go to ds and d_o, which are null where none is wanted, and dx is null likewise.
struct BackwardJob {
  const char *x, *g;
  char* dx;
  int64_t kept, reduced, len, row_shares, shares;
  int64_t x_len, g_len, dx_len, s_len, o_len, out_step;
  int32_t reduced_loops, loops;
  int64_t size[kMostLoops], x_step[kMostLoops], g_step[kMostLoops], dx_step[kMostLoops];
  int64_t s_step[kMostLoops], o_step[kMostLoops], out_at[kMostLoops];
  ForwardParameters parameters;
  ReduceResults to;  // low of ds, high of d_o
};

}  // namespace halfeven
