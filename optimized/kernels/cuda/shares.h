// The threads of a reduction, the loops that they go through, and what is brought together at a time. reduce.h comes
// before.
#pragma once

#include "cuda/reduce.h"

namespace halfeven::device {

inline constexpr int64_t kAtOnce = 256;

inline int64_t first_of(uint32_t block, uint32_t threads, uint32_t thread) { return int64_t{block} * threads + thread; }
inline int64_t all_of(uint32_t blocks, uint32_t threads) { return int64_t{blocks} * threads; }

// Where index i of the loops begin..end-1 leads.
inline int64_t place(const int64_t (&size)[kMostLoops], const int64_t (&step)[kMostLoops], int begin, int end,
                     int64_t i) {
  int64_t at = 0;
#pragma unroll
  for (int d = 0; d < kMostLoops; ++d) {
    if (d < begin || d >= end) continue;
    const bool last = d + 1 == end;
    at += (last ? i : i % size[d]) * step[d];
    if (!last) i /= size[d];
  }
  return at;
}

template <class Job>
int64_t out_of(const Job& job, int64_t kept) {
  return place(job.size, job.out_at, job.reduced_loops, job.loops, kept);
}

// Brings shares together: a Partial begins with nothing, takes an entry of a job, and is put where a result goes.
template <class Partial>
void combine_shares(const CombineJob& job) {
  const int64_t groups = (job.shares - 1) / kAtOnce + 1;
  for (int64_t i = first_of(blockIdx.x, blockDim.x, threadIdx.x); i < job.kept * groups * job.len;
       i += all_of(gridDim.x, blockDim.x)) {
    const int64_t c = i % job.len, y = i / job.len, kept = y / groups, first = y % groups * kAtOnce;
    const int64_t end = first + kAtOnce < job.shares ? first + kAtOnce : job.shares;
    Partial partial;
    for (int64_t k = first; k < end; ++k) partial.join(job, (kept * job.shares + k) * job.len + c);
    partial.put(job.to, job.to.last ? out_of(job, kept) + c * job.out_step : i);
  }
}

}  // namespace halfeven::device
