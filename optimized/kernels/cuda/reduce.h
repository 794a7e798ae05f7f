// Between who launches the kernels of minima and maxima, or of sums, and the kernels.
#pragma once

#include <cstdint>

namespace halfeven {

// Dimensions beside len.
inline constexpr int kMostLoops = 8;

// The results of one launch are keys in memory of their own, an entry for each share, or numbers.
struct ReduceResults {
  char *low, *high;  // low is null for magnitudes
  int8_t last;       // whether they are numbers, in the place of each
};

// kept x reduced x len elements, len of them a step apart. `loops` are the dimensions beside len: those that are reduced
// first, the innermost of each first. The elements of an entry are shared: the rows that len is of among `row_shares`,
// or, where len is reduced, each of these among `shares` blocks.
struct ReduceJob {
  const char* x;
  int64_t kept, reduced, len, len_step, out_step, row_shares, shares;
  int32_t reduced_loops, loops;
  int64_t size[kMostLoops], x_step[kMostLoops], out_at[kMostLoops];
  ReduceResults to;
};

// Shares of kept x shares x len entries brought together.
struct CombineJob {
  const char *low, *high;
  int64_t kept, shares, len, out_step;
  int32_t reduced_loops, loops;
  int64_t size[kMostLoops], out_at[kMostLoops];
  ReduceResults to;
};

}  // namespace halfeven
