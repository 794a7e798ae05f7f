// aminmax and amax: least and greatest element, and greatest magnitude, of a tensor or of each block.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include <torch/csrc/stable/library.h>

#include "cpu/isa.h"
#include "cpu/memory/items.h"
#include "cpu/memory/layout.h"
#include "cpu/memory/tensor.h"
#include "cpu/reduce/job.h"

namespace halfeven {

namespace {

enum Operand { kX, kElements, kLow = kElements, kHigh, kOperands };

// The keys of all blocks.
template <class K>
struct Keys {
  static constexpr K kMost = std::numeric_limits<K>::max(), kLeast = std::numeric_limits<K>::min();
  std::vector<K> low, high;  // low is empty for magnitudes
};

template <class K>
void reduce_region(const Loops<kOperands>& loops, const ReduceKernels& kernels, bool magnitudes) {
  using All = Keys<K>;
  const int64_t item = sizeof(K);
  const Items<kOperands> items(loops, kElements, &item);
  const ReduceKernel kernel = kernels.kernel(item, items.columns, magnitudes);
  const int64_t row = items.loops.row(kX), col = items.loops.col(kX);
  const bool as_is = items.loops.dense(kX, item);
  Results<K> low(items, kLow), high(items, kHigh);
  items.parallel([&](int64_t i, char* const* data, int64_t rows, int64_t len) {
    K* to_low = low.at(i, data, All::kMost);
    K* to_high = high.at(i, data, All::kLeast);
    // Of a row each. Those of columns are next to each other, or else taken up from beside it.
    K low_columns[kMostColumns], high_columns[kMostColumns];
    const bool beside = items.columns && (high.col != 1 || (!magnitudes && low.col != 1));
    ReduceJob job{.x = data[kX],
                  .rows = rows,
                  .len = len,
                  .row = row,
                  .low = to_low,
                  .high = to_high,
                  .low_step = low.row,
                  .high_step = high.row};
    if (beside) {
      std::fill(low_columns, low_columns + len, All::kMost);
      std::fill(high_columns, high_columns + len, All::kLeast);
      job.low = low_columns;
      job.high = high_columns;
    }
    if (as_is) {
      kernel(job);
    } else {
      K copies[kCopied];
      const int64_t cols = std::min(len, kCopied / (items.columns ? 1 : std::min(rows, kGathered)));
      const int64_t step = std::min(rows, kCopied / cols);
      for (int64_t r = 0; r < rows; r += step)
        for (int64_t c = 0; c < len; c += cols) {
          const int64_t n = std::min(rows - r, step), m = std::min(len - c, cols);
          for (int64_t k = 0; k < n; ++k)
            kernels.copy(item, data[kX] + (r + k) * row + c * col, col, m, reinterpret_cast<char*>(copies + k * m));
          ReduceJob part = job;
          part.x = reinterpret_cast<const char*>(copies);
          part.rows = n;
          part.len = m;
          part.row = m * item;
          const int64_t high_at = items.columns ? c : r * high.row, low_at = items.columns ? c : r * low.row;
          part.high = static_cast<K*>(job.high) + high_at;
          if (!magnitudes) part.low = static_cast<K*>(job.low) + low_at;
          kernel(part);
        }
    }
    if (!beside) return;
    for (int64_t c = 0; c < len; ++c) {
      to_high[c * high.col] = std::max(to_high[c * high.col], high_columns[c]);
      if (!magnitudes) to_low[c * low.col] = std::min(to_low[c * low.col], low_columns[c]);
    }
  });
  low.combine(items, [](K& entry, K part) { entry = std::min(entry, part); });
  high.combine(items, [](K& entry, K part) { entry = std::max(entry, part); });
}

// Keys to the bits of numbers, in place; NaN where there was one in the block.
template <class K>
void keys_to_numbers(Dtype dtype, Keys<K>& keys, bool magnitudes) {
  constexpr int kSign = 8 * sizeof(K) - 1;
  constexpr K kRest = std::numeric_limits<K>::max();
  // Infinity has none of the bits of the significand; the highest of them makes a NaN.
  const int stored = significand_bits(dtype);
  const K infinity = static_cast<K>(kRest >> stored << stored), nan = static_cast<K>(infinity | K(1) << (stored - 1));
  const auto number = [&](K key) { return static_cast<K>(key ^ ((key >> kSign) & kRest)); };
  const K least = number(static_cast<K>(infinity | std::numeric_limits<K>::min()));
  for (size_t i = 0; i < keys.high.size(); ++i) {
    const bool is_nan = keys.high[i] > infinity || (!magnitudes && keys.low[i] < least);
    keys.high[i] = is_nan ? nan : number(keys.high[i]);
    if (!magnitudes) keys.low[i] = is_nan ? nan : number(keys.low[i]);
  }
}

template <class K>
std::tuple<Tensor, Tensor> reduce_as(const Argument& x, const int64_t* block, bool magnitudes) {
  std::vector<int64_t> size;
  for (int64_t d = 0; block && d < x.ndim; ++d) size.push_back(block_count(x.size[d], block[d]));
  const int64_t ndim = static_cast<int64_t>(size.size());
  const std::vector<int64_t> stride = contiguous_strides(ndim, size.data());
  int64_t numel = 1;
  for (const int64_t n : size) numel *= n;
  Keys<K> keys;
  keys.high.assign(numel, Keys<K>::kLeast);
  if (!magnitudes) keys.low.assign(numel, Keys<K>::kMost);
  const auto place = [&](std::vector<K>& of) -> Place {
    if (of.empty()) return {};
    return {reinterpret_cast<char*>(of.data()), sizeof(K), ndim, size.data(), stride.data()};
  };
  const Place elements[kElements] = {x}, results[kOperands - kElements] = {place(keys.low), place(keys.high)};
  constexpr ByIsa<decltype(&baseline::reduce_kernels)> kKernels = {
      {baseline::reduce_kernels, avx2::reduce_kernels, avx512::reduce_kernels, neon::reduce_kernels}};
  const ReduceKernels kernels = kKernels.here()();
  for_each_region(x.ndim, x.size, block, elements, results,
                  [&](const Loops<kOperands>& loops) { reduce_region<K>(loops, kernels, magnitudes); });
  keys_to_numbers(x.dtype, keys, magnitudes);
  const auto result = [&](const std::vector<K>& of) {
    const Tensor to = empty(ndim, size.data(), x.dtype);
    std::copy(of.begin(), of.end(), static_cast<K*>(to.data_ptr()));
    return to;
  };
  const Tensor high = result(keys.high);
  return {magnitudes ? high : result(keys.low), high};
}

std::tuple<Tensor, Tensor> reduce(const Tensor& tensor, const BlockSize& block_size, bool magnitudes) {
  const Argument x = read("x", tensor, kReals);
  const int64_t* block = check_block_size(x, block_size);
  if (!block && x.numel == 0) fail("x of shape " + shape_of(x) + " is not accepted: give at least one element");
  switch (x.item) {
    case 2: return reduce_as<int16_t>(x, block, magnitudes);
    case 4: return reduce_as<int32_t>(x, block, magnitudes);
    default: return reduce_as<int64_t>(x, block, magnitudes);
  }
}

std::tuple<Tensor, Tensor> aminmax(const Tensor& x, const BlockSize& block_size) {
  return reduce(x, block_size, false);
}

Tensor amax(const Tensor& x, const BlockSize& block_size) { return std::get<1>(reduce(x, block_size, true)); }

}  // namespace

}  // namespace halfeven

STABLE_TORCH_LIBRARY_IMPL(halfeven, CPU, m) {
  m.impl("aminmax", TORCH_BOX(&halfeven::aminmax));
  m.impl("amax", TORCH_BOX(&halfeven::amax));
}
