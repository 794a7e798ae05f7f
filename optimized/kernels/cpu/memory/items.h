// How a reduction is cut into items of work: fixed by shapes and strides alone, never by the number of threads, so that
// a sum has the same bits with any of them.
//
// An item is a rectangle of rows x len elements. Its results go straight to their entries where no other item has a
// share in those, else to a part of its own; Results::combine() then takes up the parts in the order of the items.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <torch/csrc/stable/ops.h>

#include "cpu/memory/layout.h"

namespace halfeven {

// Elements of an item.
inline constexpr int64_t kItem = 32768;

// Elements, columns at most and rows at least of an item of columns: it has many rows, since its part has an entry per
// column.
inline constexpr int64_t kColumnsItem = 65536, kMostColumns = 4096, kLeastRows = 128;

// The least length of rows that is worth vectors.
inline constexpr int64_t kLeastLength = 16;

// Rows that go together where rows are not contiguous, so that the bytes beside each other are used together.
inline constexpr int64_t kGathered = 32;

// Loops of operands that are elements, of `item` bytes, and then results and parameters, which are constant along
// dimensions that are reduced.
template <int N>
struct Items {
  Loops<N> loops;         // dimension 0 is len, 1 rows
  bool columns = false;   // results or parameters change along len, but not along rows (unless rows == 1)
  bool gathered = false;  // some operand's rows are not contiguous
  int64_t rows = 1, len = 1, row_chunks = 1, len_chunks = 1, count = 1;

  Items(const Loops<N>& given, int elements, const int64_t* item) : loops(given) {
    loops.normalize();
    const auto changes = [&](int d) {
      return std::any_of(loops.step[d] + elements, loops.step[d] + N, [](int64_t step) { return step != 0; });
    };
    // Along the longest dimension where the innermost one is too short for vectors.
    if (loops.size[0] < kLeastLength)
      move(static_cast<int>(std::max_element(loops.size, loops.size + loops.ndim) - loops.size), 0);
    columns = changes(0);
    for (int k = 0; k < elements; ++k) gathered |= loops.step[0][k] != 0 && loops.step[0][k] != item[k];
    // Rows: of columns, what is reduced; else what is contiguous in an operand that is not so along len; else the next.
    for (int d = 1; d < loops.ndim; ++d) {
      bool fit = columns && !changes(d);
      for (int k = 0; k < elements; ++k)
        fit |= !columns && loops.step[d][k] == item[k] && loops.step[0][k] > item[k];
      if (!fit) continue;
      move(d, 1);
      break;
    }
    if (columns) {
      len = std::min(loops.size[0], kMostColumns);
      rows = changes(1) ? 1 : std::min(loops.size[1], std::max(kColumnsItem / len, kLeastRows));
    } else {
      rows = gathered ? std::min(loops.size[1], kGathered) : 1;
      len = std::min(loops.size[0], kItem / rows);
      rows = std::max(rows, std::min(loops.size[1], kItem / len));
    }
    len_chunks = (loops.size[0] - 1) / len + 1;
    row_chunks = (loops.size[1] - 1) / rows + 1;
    count = len_chunks * row_chunks;
    for (int d = 2; d < loops.ndim; ++d) count *= loops.size[d];
  }

  // f(item, char* const* data, rows, len)
  template <class F>
  void each(int64_t begin, int64_t end, F&& f) const {
    for (int64_t item = begin; item < end; ++item) {
      char* data[N];
      const int64_t c = item % len_chunks * len, r = item / len_chunks % row_chunks * rows;
      for (int k = 0; k < N; ++k) data[k] = loops.data[k] + (c * loops.step[0][k] + r * loops.step[1][k]);
      int64_t rest = item / len_chunks / row_chunks;
      for (int d = 2; d < loops.ndim; ++d) {
        for (int k = 0; k < N; ++k) data[k] += rest % loops.size[d] * loops.step[d][k];
        rest /= loops.size[d];
      }
      f(item, static_cast<char* const*>(data), std::min(rows, loops.size[1] - r), std::min(len, loops.size[0] - c));
    }
  }

  // each() of all, shared by the threads of torch. f must not throw.
  template <class F>
  void parallel(F&& f) const {
    if (loops.numel <= kGrain || count == 1) return each(0, count, f);
    const int64_t grain = std::max<int64_t>(1, kGrain / (loops.numel / count));
    torch::stable::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) { each(begin, end, f); });
  }

 private:
  // Dimension `from` to an inner place; those between move outwards.
  void move(int from, int place) {
    for (; from > place; --from) {
      std::swap(loops.size[from], loops.size[from - 1]);
      std::swap_ranges(loops.step[from], loops.step[from] + N, loops.step[from - 1]);
    }
  }
};

// Where the results of one operand go, of type V.
template <class V>
struct Results {
  int operand = 0;
  int64_t row = 0, col = 0;    // steps in V, from a row's or column's result to the next
  int64_t entries = 0;         // of a part; 0 where items do not share results
  std::vector<V> parts;

  template <int N>
  Results(const Items<N>& items, int k) : operand(k) {
    const auto& loops = items.loops;
    col = loops.step[0][k] / static_cast<int64_t>(sizeof(V));
    row = loops.step[1][k] / static_cast<int64_t>(sizeof(V));
    bool shared = (items.len_chunks > 1 && !col) || (items.row_chunks > 1 && !row);
    for (int d = 2; d < loops.ndim; ++d) shared |= loops.step[d][k] == 0;
    if (!loops.data[k] || !shared) return;
    const int64_t cols = col ? items.len : 1, rows = row ? items.rows : 1;
    entries = cols * rows;
    parts.resize(items.count * entries);
    col = col ? 1 : 0;
    row = row ? cols : 0;
  }

  // Where an item adds its first result; nullptr for an operand that is absent.
  V* at(int64_t item, char* const* data, V first) {
    if (!entries) return reinterpret_cast<V*>(data[operand]);
    V* part = parts.data() + item * entries;
    std::fill(part, part + entries, first);
    return part;
  }

  // add(V& entry, V part) for all parts, in order.
  template <int N, class F>
  void combine(const Items<N>& items, F&& add) const {
    if (!entries) return;
    const auto& loops = items.loops;
    const int64_t to_col = loops.step[0][operand], to_row = loops.step[1][operand];
    items.each(0, items.count, [&](int64_t item, char* const* data, int64_t rows, int64_t len) {
      const V* part = parts.data() + item * entries;
      for (int64_t r = 0; r < (row ? rows : 1); ++r)
        for (int64_t c = 0; c < (col ? len : 1); ++c)
          add(*reinterpret_cast<V*>(data[operand] + r * to_row + c * to_col), part[r * row + c * col]);
    });
  }
};

}  // namespace halfeven
