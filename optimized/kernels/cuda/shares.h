// The threads of a reduction, the loops that they go through, and what is brought together at a time. reduce.h comes
// before.
#pragma once

#include "cuda/reduce.h"

namespace halfeven::device {

// Threads of a block, at most.
inline constexpr int kThreads = 256;

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

// Brings together what `lanes` threads have, a power of two of them, `step` threads apart: the first of them has it
// then, and is told so. All threads of the block come here.
template <class Partial>
bool joined(Partial& partial, uint32_t lane, uint32_t lanes, uint32_t step) {
  alignas(16) __shared__ unsigned char room[kThreads * sizeof(Partial)];
  Partial* own = reinterpret_cast<Partial*>(room) + threadIdx.y * blockDim.x + threadIdx.x;
  *own = partial;
  for (uint32_t half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) own->join(own[half * step]);
  }
  partial = *own;
  __syncthreads();  // nothing is written anew before it was read
  return lane == 0;
}

// The shares of a row: `take` is given the entry, the first of the rows, which of how many threads it is that share each
// of them, and what is to take the elements.
template <class Partial, class Job, class Take>
void each_share(const Job& job, Take take) {
  const int64_t all = job.kept * job.row_shares;
  for (int64_t y = int64_t{blockIdx.y} * blockDim.y; y < all; y += all_of(gridDim.y, blockDim.y))
    for (int64_t share = blockIdx.x; share < job.shares; share += gridDim.x) {
      const int64_t row = y + threadIdx.y, kept = row / job.row_shares;
      Partial partial;
      if (row < all)
        take(kept, row % job.row_shares, share * blockDim.x + threadIdx.x, job.shares * blockDim.x, partial);
      if (joined(partial, threadIdx.x, blockDim.x, 1) && row < all)
        partial.put(job.to, job.to.last ? out_of(job, kept) : row * job.shares + share);
    }
}

// Brings shares together: a Partial begins with nothing, is read of a job, joins another, and is put where a result
// goes. Threads along x take entries, those along y share what is there of one.
template <class Partial>
void combine_shares(const CombineJob& job) {
  const int64_t entries = job.kept * job.len;
  for (int64_t first = int64_t{blockIdx.x} * blockDim.x; first < entries; first += all_of(gridDim.x, blockDim.x)) {
    const int64_t i = first + threadIdx.x, kept = i / job.len, c = i % job.len;
    Partial partial;
    if (i < entries)
      for (int64_t k = threadIdx.y; k < job.shares; k += blockDim.y)
        partial.join(Partial::read(job, (kept * job.shares + k) * job.len + c));
    if (joined(partial, threadIdx.y, blockDim.y, blockDim.x) && i < entries)
      partial.put(job.to, out_of(job, kept) + c * job.out_step);
  }
}

}  // namespace halfeven::device
