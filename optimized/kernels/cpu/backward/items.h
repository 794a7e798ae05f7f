// The items of a gradient's work, each cut into jobs for a kernel: elements that it does not take as they are in memory
// are copied, and the sums of a job are added to those of its item.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/backward/job.h"
#include "cpu/memory/items.h"
#include "cpu/memory/params.h"
#include "cpu/memory/tensor.h"

namespace halfeven::backward {

// What an operator is asked, besides its tensors.
struct Settings {
  Gradient op = Gradient::Quantize;
  Dtype compute = Dtype::None;
  int64_t qmin = 0, qmax = 0;
  double shift = 0;
  bool is_offset = false;
};

enum Operand { kX, kG, kDx, kElements, kScale = kElements, kZeroPoint, kScaleSum, kZeroPointSum, kOperands };

// What the jobs of all items have in common.
struct Pass {
  const Settings& settings;
  const Argument &x, &grad, &scale, &zero_point;
  BackwardKernel kernel = nullptr;
  Load load_x = nullptr, load_g = nullptr;
  Save save_dx = nullptr;
  // Whether the kernel reads and writes elements where they are.
  bool x_as_is = false, g_as_is = false, dx_as_is = false;
  bool need_x = false, sums = false;
  int64_t row[kOperands] = {}, col[kOperands] = {};
};

// Where the sums of an item go.
struct Target {
  double* at;
  int64_t row, col;
};

template <class C>
class Item {
 public:
  Item(const Pass& pass, char* const* data, Target scale, Target zero_point)
      : pass_(pass), data_(data), scale_(scale), zero_point_(zero_point) {}

  void columns(int64_t rows, int64_t len) {
    parameters(0, pass_.col, len);
    if (pass_.sums)
      for (int64_t c = 0; c < len; ++c) ds_[c] = d_o_[c] = kNoTerms;
    // Where nothing is copied, all at once: memory is read fastest in whole rows.
    const bool whole = pass_.g_as_is && pass_.x_as_is && pass_.dx_as_is;
    const int64_t cols = whole ? len : std::min(len, kJobElements);
    const int64_t step = whole ? rows : kJobElements / cols;
    for (int64_t r = 0; r < rows; r += step)
      for (int64_t c = 0; c < len; c += cols) compute(r, c, std::min(rows - r, step), std::min(len - c, cols), c);
    flush(len, scale_.at, scale_.col, zero_point_.at, zero_point_.col);
  }

  void rows(int64_t rows, int64_t len, bool gathered) {
    const int64_t cols = std::min(len, kJobElements / (gathered ? std::min(rows, kGathered) : 1));
    const int64_t step = std::min(rows, kJobElements / cols);
    for (int64_t r = 0; r < rows; r += step) {
      const int64_t n = std::min(rows - r, step);
      parameters(r, pass_.row, n);
      for (int64_t c = 0; c < len; c += cols) {
        compute(r, c, n, std::min(len - c, cols), 0);
        flush(n, scale_.at + r * scale_.row, scale_.row, zero_point_.at + r * zero_point_.row, zero_point_.row);
      }
    }
  }

 private:
  void parameters(int64_t row, const int64_t* step, int64_t n) {
    const auto at = [&](Operand k) { return data_[k] ? data_[k] + row * pass_.row[k] : nullptr; };
    const Settings& given = pass_.settings;
    load_scales(at(kScale), pass_.scale.dtype, step[kScale], n, given.compute, s_);
    load_offsets(at(kZeroPoint), pass_.zero_point.dtype, step[kZeroPoint], n, given.is_offset, given.compute, o_);
  }

  // `first`: where its parameters and sums are.
  void compute(int64_t row, int64_t col, int64_t rows, int64_t len, int64_t first) {
    const auto at = [&](Operand k) { return data_[k] + (row * pass_.row[k] + col * pass_.col[k]); };
    BackwardJob job{.rows = rows,
                    .len = len,
                    .g = nullptr,
                    .x = nullptr,
                    .dx = dx_,
                    .g_row = len,
                    .x_row = len,
                    .dx_row = len,
                    .s = s_ + first,
                    .o = o_ + first,
                    .low = static_cast<double>(pass_.settings.qmin),
                    .high = static_cast<double>(pass_.settings.qmax),
                    .shift = pass_.settings.shift,
                    .ds = ds_ + first,
                    .d_o = d_o_ + first};
    job.g = elements(pass_.g_as_is, pass_.load_g, kG, pass_.grad.item, at(kG), rows, len, g_, &job.g_row);
    // The derivative with respect to codes does not depend on them.
    const bool unread = !pass_.sums && pass_.settings.op == Gradient::Dequantize;
    job.x = unread ? job.g : elements(pass_.x_as_is, pass_.load_x, kX, pass_.x.item, at(kX), rows, len, x_, &job.x_row);
    if (unread) job.x_row = job.g_row;
    if (pass_.dx_as_is) {
      job.dx = at(kDx);
      job.dx_row = pass_.row[kDx] / pass_.x.item;
    }
    pass_.kernel(job);
    if (pass_.dx_as_is || !pass_.need_x) return;
    if (pass_.row[kDx] == len * pass_.col[kDx]) return pass_.save_dx(dx_, at(kDx), pass_.col[kDx], rows * len);
    for (int64_t r = 0; r < rows; ++r) pass_.save_dx(dx_ + r * len, at(kDx) + r * pass_.row[kDx], pass_.col[kDx], len);
  }

  // The elements where they are, or a copy of them.
  const void* elements(bool as_is, Load load, Operand k, int64_t item, const char* from, int64_t rows, int64_t len,
                       C* copy, int64_t* row) const {
    if (as_is) {
      *row = pass_.row[k] / item;
      return from;
    }
    *row = len;
    if (pass_.row[k] == len * pass_.col[k])
      load(from, pass_.col[k], rows * len, copy);
    else
      for (int64_t r = 0; r < rows; ++r) load(from + r * pass_.row[k], pass_.col[k], len, copy + r * len);
    return copy;
  }

  void flush(int64_t n, double* scale, int64_t scale_step, double* zero_point, int64_t zero_point_step) const {
    if (!pass_.sums) return;
    if (scale_.at)
      for (int64_t i = 0; i < n; ++i) scale[i * scale_step] += ds_[i];
    if (zero_point_.at)
      for (int64_t i = 0; i < n; ++i) zero_point[i * zero_point_step] += d_o_[i];
  }

  static constexpr int64_t kMost = std::max(kMostColumns, kJobElements);
  const Pass& pass_;
  char* const* data_;
  Target scale_, zero_point_;
  alignas(64) C g_[kJobElements];
  alignas(64) C x_[kJobElements];
  alignas(64) C dx_[kJobElements];
  alignas(64) C s_[kMost];
  alignas(64) C o_[kMost];
  alignas(64) double ds_[kMost];
  alignas(64) double d_o_[kMost];
};

template <class C>
void run_items(Pass& pass, const Items<kOperands>& items) {
  std::copy(items.loops.step[0], items.loops.step[0] + kOperands, pass.col);
  std::copy(items.loops.step[1], items.loops.step[1] + kOperands, pass.row);
  Results<double> scale(items, kScaleSum), zero_point(items, kZeroPointSum);
  items.parallel([&](int64_t item, char* const* data, int64_t rows, int64_t len) {
    Item<C> work(pass, data, {scale.at(item, data, kNoTerms), scale.row, scale.col},
                 {zero_point.at(item, data, kNoTerms), zero_point.row, zero_point.col});
    if (items.columns)
      work.columns(rows, len);
    else
      work.rows(rows, len, items.gathered);
  });
  const auto add = [](double& entry, double part) { entry += part; };
  scale.combine(items, add);
  zero_point.combine(items, add);
}

}  // namespace halfeven::backward
