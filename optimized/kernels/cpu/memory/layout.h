// How the elements of several tensors and the parameters that belong to them lie in memory, as nested loops.
//
// An operator lists its operands: "elements" of the input's shape (x, out, grad, ...) and "parameters" (scale, zero
// point), which broadcast to it or have an entry per block. for_each_region lays them side by side and calls back
// with Loops in which every operand has a step in bytes per dimension, 0 along a dimension that it is constant
// along. A last block that is short becomes a region of its own, so that in one region all blocks are equally long.
// Loops are simple after normalize(): the innermost dimension first, in the order of operand 0 in memory, none of
// size 1, and neighbours merged where all operands allow it. So
//     per tensor, contiguous         -> one dimension
//     per channel, axis 0            -> 2: cols = inner elements (parameter step 0), rows = channels
//     per channel, last axis         -> 2: cols = channels (parameter step != 0), rows = the rest (parameter step 0)
//     blocks of 32 on the last axis  -> 2: cols = 32 (parameter step 0), rows = blocks
// walk() goes through a range of elements and hands out rectangles of rows x cols; parallel() does so with the
// threads of torch. What is computed per element does not depend on the threads; a sum must be cut by itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <torch/csrc/stable/ops.h>

namespace halfeven {

// No tensor has more dimensions of size 2 or more: its number of elements is below 2^63, also with blocks split off.
inline constexpr int kMaxDims = 64;

// The elements below which a second thread costs more than it saves.
inline constexpr int64_t kGrain = 32768;

// A tensor: where it starts, bytes per element, and size and stride (in elements) of each dimension.
struct Place {
  char* data = nullptr;
  int64_t item = 0;
  int64_t ndim = 0;
  const int64_t* size = nullptr;
  const int64_t* stride = nullptr;
};

template <int N>
struct Loops {
  int ndim = 0;
  int64_t numel = 1;
  int64_t size[kMaxDims];
  int64_t step[kMaxDims][N];  // bytes
  char* data[N];

  // Of an operand: bytes from one column, and from one row, of a rectangle of walk() to the next.
  int64_t col(int operand) const { return step[0][operand]; }
  int64_t row(int operand) const { return step[1][operand]; }

  // Whether loops over numbers of `item` bytes can take an operand where it is: contiguous along columns, and at
  // multiples of their size, which not all memory is that a tensor may have.
  bool dense(int operand, int64_t item) const {
    return col(operand) == item && reinterpret_cast<uintptr_t>(data[operand]) % item == 0;
  }

  // Adds a dimension outside those that are there; one of size 1 is left out.
  template <class Step>
  void add(int64_t n, Step&& of_operand) {
    if (n == 1) return;
    numel *= n;
    size[ndim] = n;
    for (int k = 0; k < N; ++k) step[ndim][k] = of_operand(k);
    ++ndim;
  }

  // Sorts, innermost first: by the step of operand 0, then of the next ones. Stable.
  void sort() {
    for (int i = 1; i < ndim; ++i)
      for (int j = i; j > 0 && before(j, j - 1); --j) {
        std::swap(size[j], size[j - 1]);
        std::swap_ranges(step[j], step[j] + N, step[j - 1]);
      }
  }

  // Merges each dimension into the one inside it where all operands run on from one to the other.
  void merge() {
    int last = 0;
    for (int i = 1; i < ndim; ++i) {
      bool runs_on = true;
      for (int k = 0; k < N; ++k) runs_on &= step[i][k] == step[last][k] * size[last];
      if (runs_on) {
        size[last] *= size[i];
        continue;
      }
      ++last;
      size[last] = size[i];
      std::copy(step[i], step[i] + N, step[last]);
    }
    if (ndim) ndim = last + 1;
  }

  // At least two dimensions, so that there are always rows and columns; the added ones have size 1 and step 0.
  void pad() {
    for (; ndim < 2; ++ndim) {
      size[ndim] = 1;
      std::fill(step[ndim], step[ndim] + N, 0);
    }
  }

  void normalize() {
    sort();
    merge();
    pad();
  }

 private:
  bool before(int a, int b) const {
    for (int k = 0; k < N; ++k)
      if (step[a][k] != step[b][k]) return step[a][k] < step[b][k];
    return false;
  }
};

namespace detail {

// Bytes between neighbours of a parameter along dimension d of an input of ndim dimensions: 0 where it is constant.
inline int64_t parameter_step(const Place& p, int64_t d, int64_t ndim) {
  const int64_t own = d - (ndim - p.ndim);
  return own < 0 || p.size[own] == 1 ? 0 : p.stride[own] * p.item;
}

}  // namespace detail

// Calls f(Loops<E + P>&) for the regions of an input of ndim dimensions of `size`; operands 0..E-1 are elements[],
// then come parameters[]. block: one entry >= 1 per dimension, or nullptr where the parameters broadcast. The loops
// are not normalized. Shapes were checked before: parameters have ceil(n/b) entries along a dimension, or no
// dimension at all. An operand whose data is nullptr gets steps like any other; give it ndim 0 if it is absent.
// An input without elements has no region.
template <int E, int P, class F>
void for_each_region(int64_t ndim, const int64_t* size, const int64_t* block, const Place (&elements)[E],
                     const Place (&parameters)[P], F&& f) {
  std::vector<int64_t> ragged;  // dimensions whose last block is short
  for (int64_t d = 0; d < ndim; ++d) {
    if (size[d] == 0) return;
    if (block && block[d] < size[d] && size[d] % block[d]) ragged.push_back(d);
  }
  // Bit i of `tails` chooses between the whole blocks of dimension ragged[i] and its short one. A ragged dimension has
  // 3 elements or more, so there are fewer regions than elements.
  for (uint64_t tails = 0; tails >> ragged.size() == 0; ++tails) {
    Loops<E + P> loops;
    for (int k = 0; k < E + P; ++k) loops.data[k] = k < E ? elements[k].data : parameters[k - E].data;
    size_t seen = ragged.size();
    for (int64_t d = ndim - 1; d >= 0; --d) {
      const int64_t n = size[d], b = block ? block[d] : 1;
      const auto of_element = [&](int k) { return elements[k].stride[d] * elements[k].item; };
      const auto of_parameter = [&](int k) { return detail::parameter_step(parameters[k - E], d, ndim); };
      if (n <= b || b == 1) {
        // One block, where the parameters have one entry, or one entry per element (or broadcasting).
        loops.add(n, [&](int k) { return k < E ? of_element(k) : of_parameter(k); });
        continue;
      }
      const int64_t whole = n / b;
      if (n % b && (tails >> --seen & 1)) {
        for (int k = 0; k < E; ++k) loops.data[k] += whole * b * of_element(k);
        for (int k = E; k < E + P; ++k)
          if (loops.data[k]) loops.data[k] += whole * of_parameter(k);
        loops.add(n % b, [&](int k) { return k < E ? of_element(k) : 0; });
        continue;
      }
      loops.add(b, [&](int k) { return k < E ? of_element(k) : 0; });
      loops.add(whole, [&](int k) { return k < E ? b * of_element(k) : of_parameter(k); });
    }
    f(loops);
  }
}

// Goes through elements begin..end-1 in the order of the loops and calls f(char* const* data, rows, cols) for
// rectangles; data[k] is operand k's first element in it, loops.row(k) and loops.col(k) its steps. For loops after
// normalize() or pad().
template <int N, class F>
void walk(const Loops<N>& loops, int64_t begin, int64_t end, F&& f) {
  if (begin >= end) return;
  int64_t index[kMaxDims];
  char* data[N];
  std::copy(loops.data, loops.data + N, data);
  int64_t rest = begin;
  for (int d = 0; d < loops.ndim; ++d) {
    index[d] = rest % loops.size[d];
    rest /= loops.size[d];
    for (int k = 0; k < N; ++k) data[k] += index[d] * loops.step[d][k];
  }
  for (int64_t left = end - begin; left > 0;) {
    const int64_t n = loops.size[0];
    int64_t rows = 1, cols = std::min(n - index[0], left);
    if (cols == n) rows = std::min(loops.size[1] - index[1], left / n);
    f(static_cast<char* const*>(data), rows, cols);
    left -= rows * cols;
    if (left == 0) return;
    // Either whole rows were done, or the rest of one: in both cases the next one starts at column 0.
    for (int k = 0; k < N; ++k) data[k] += rows * loops.step[1][k] - index[0] * loops.step[0][k];
    index[0] = 0;
    index[1] += rows;
    for (int d = 1; index[d] == loops.size[d]; ++d) {
      for (int k = 0; k < N; ++k) data[k] += loops.step[d + 1][k] - loops.size[d] * loops.step[d][k];
      index[d] = 0;
      ++index[d + 1];
    }
  }
}

// walk() over everything, in ranges that the threads of torch share. f must not throw.
template <int N, class F>
void parallel(const Loops<N>& loops, const F& f, int64_t grain = kGrain) {
  if (loops.numel <= grain) return walk(loops, 0, loops.numel, f);
  // Ranges start at multiples of a unit, so that rows and vectors of usual lengths stay whole.
  constexpr int64_t kUnit = 1024;
  const int64_t units = (loops.numel - 1) / kUnit + 1;
  torch::stable::parallel_for(0, units, std::max<int64_t>(grain / kUnit, 1), [&](int64_t first, int64_t last) {
    walk(loops, first * kUnit, last == units ? loops.numel : last * kUnit, f);
  });
}

}  // namespace halfeven
