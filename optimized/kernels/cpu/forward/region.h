// How a region of a call is cut into the jobs of the kernels: whole rows or columns where they lie as kernels take
// them, else copies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/forward/job.h"
#include "cpu/memory/copies.h"
#include "cpu/memory/layout.h"
#include "cpu/memory/params.h"
#include "cpu/memory/tensor.h"

namespace halfeven::forward {

enum Operand { kOut, kX, kElements, kScale = kElements, kZeroPoint, kOperands };

// Rows shorter than this, and rows of fewer columns with parameters of their own, are computed several at once, with
// the parameters repeated for each element.
constexpr int64_t kShortRow = 16, kShortColumns = 32;

// What an operator is asked.
struct Call {
  Operation op;
  Argument x = {}, out = {}, scale = {}, zero_point = {};
  Dtype compute = Dtype::None;
  bool is_offset = false;
  ForwardSettings settings = {};
};

// What one region of a call needs to compute a rectangle of it.
struct Region {
  const Call& call;
  const Loops<kOperands>& loops;
  ForwardKernels kernels;
  Dtype written;  // by the kernel; another dtype than the result's is rounded to that afterwards

  bool constant_along_rows() const { return loops.col(kScale) == 0 && loops.col(kZeroPoint) == 0; }
  bool constant_along_columns() const { return loops.row(kScale) == 0 && loops.row(kZeroPoint) == 0; }

  void parameters(char* const* at, bool along_rows, int64_t n, void* s, void* o) const {
    const auto step = [&](int k) { return along_rows ? loops.col(k) : loops.row(k); };
    load_scales(at[kScale], call.scale.dtype, step(kScale), n, call.compute, s);
    load_offsets(at[kZeroPoint], call.zero_point.dtype, step(kZeroPoint), n, call.is_offset, call.compute, o);
  }

  void operator()(char* const* data, int64_t rows, int64_t cols) const {
    const bool straight = loops.dense(kX, call.x.item) && loops.dense(kOut, call.out.item) && written == call.out.dtype;
    if (straight && constant_along_rows() && (rows == 1 || cols >= kShortRow)) return by<false>(data, rows, cols);
    if (straight && !constant_along_rows() && constant_along_columns() && rows > 1) {
      if (cols >= kShortColumns) return by<true>(data, rows, cols);
      if (whole_rows(kX, call.x.item, cols) && whole_rows(kOut, call.out.item, cols))
        return by_repeated_columns(data, rows, cols);
    }
    by_tiles(data, rows, cols);
  }

  // Whether row follows row in memory.
  bool whole_rows(int operand, int64_t item, int64_t cols) const {
    return loops.col(operand) == item && loops.row(operand) == cols * item;
  }

  ForwardJob job(char* const* data, int64_t rows, int64_t len, const void* s, const void* o) const {
    return {.x = data[kX],
            .out = data[kOut],
            .rows = rows,
            .len = len,
            .x_row = loops.row(kX),
            .out_row = loops.row(kOut),
            .s = s,
            .o = o};
  }

  // As many rows, or columns, at a time as a job has parameters for.
  template <bool kColumns>
  void by(char* const* data, int64_t rows, int64_t cols) const {
    constexpr int64_t kMost = kColumns ? kWide : kTile;
    alignas(32) double s[kMost], o[kMost];
    char* at[kOperands];
    const int64_t all = kColumns ? cols : rows;
    for (int64_t i = 0; i < all; i += kMost) {
      for (int k = 0; k < kOperands; ++k) at[k] = data[k] ? data[k] + i * loops.step[kColumns ? 0 : 1][k] : nullptr;
      const int64_t n = std::min(kMost, all - i);
      parameters(at, kColumns, n, s, o);
      if constexpr (kColumns)
        kernels.per_column(call.settings, job(at, rows, n, s, o));
      else
        kernels.per_row(call.settings, job(at, n, cols, s, o));
    }
  }

  // Few columns: the parameters of several rows, one after the other, belong to as many columns.
  void by_repeated_columns(char* const* data, int64_t rows, int64_t cols) const {
    alignas(32) double s[kTile], o[kTile];
    parameters(data, true, cols, s, o);
    const int64_t item = call.compute == Dtype::F64 ? 8 : 4;
    const int64_t times = std::min(kTile / cols, rows);
    for (int64_t i = 1; i < times; ++i) {
      std::memcpy(reinterpret_cast<char*>(s) + i * cols * item, s, cols * item);
      std::memcpy(reinterpret_cast<char*>(o) + i * cols * item, o, cols * item);
    }
    ForwardJob all = job(data, rows / times, times * cols, s, o);
    all.x_row *= times;
    all.out_row *= times;
    kernels.per_column(call.settings, all);
    const int64_t done = rows / times * times;
    if (done == rows) return;
    all.x += done * loops.row(kX);
    all.out += done * loops.row(kOut);
    all.rows = 1;
    all.len = (rows - done) * cols;
    kernels.per_column(call.settings, all);
  }

  // Any strides: elements are gathered, computed and scattered, up to kTile at a time.
  void by_tiles(char* const* data, int64_t rows, int64_t cols) const {
    alignas(64) char x[kTile * 8], y[kTile * 8], z[kTile * 8];
    alignas(32) double s[kTile], o[kTile];
    const bool single = constant_along_rows() && constant_along_columns();
    const int64_t item = call.compute == Dtype::F64 ? 8 : 4;
    const int64_t width = std::min(cols, kTile), height = std::min(kTile / width, rows);
    char* at[kOperands];
    if (single) parameters(data, false, 1, s, o);
    for (int64_t r = 0; r < rows; r += height)
      for (int64_t c = 0; c < cols; c += width) {
        const int64_t h = std::min(height, rows - r), w = std::min(width, cols - c), n = h * w;
        for (int k = 0; k < kOperands; ++k) at[k] = data[k] ? data[k] + r * loops.row(k) + c * loops.col(k) : nullptr;
        if (!single) {
          for (int64_t i = 0; i < h; ++i) {
            char* row[kOperands];
            for (int k = 0; k < kOperands; ++k) row[k] = at[k] ? at[k] + i * loops.row(k) : nullptr;
            parameters(row, true, w, reinterpret_cast<char*>(s) + i * w * item,
                       reinterpret_cast<char*>(o) + i * w * item);
          }
        }
        const auto in_one = [&](int k, int64_t bytes) {
          return loops.dense(k, bytes) && (h == 1 || loops.row(k) == w * bytes);
        };
        ForwardJob tile{.x = at[kX], .out = at[kOut], .rows = 1, .len = n, .x_row = 0, .out_row = 0, .s = s, .o = o};
        if (!in_one(kX, call.x.item)) {
          for (int64_t i = 0; i < h; ++i)
            copy_run(call.x.item, at[kX] + i * loops.row(kX), loops.col(kX), x + i * w * call.x.item, call.x.item, w);
          tile.x = x;
        }
        const bool in_place = in_one(kOut, call.out.item);
        if (!in_place) tile.out = y;
        char* result = tile.out;
        if (written != call.out.dtype) tile.out = z;
        (single ? kernels.per_row : kernels.per_column)(call.settings, tile);
        if (written != call.out.dtype) round_run(written, call.out.dtype, z, result, n);
        if (in_place) continue;
        for (int64_t i = 0; i < h; ++i)
          copy_run(call.out.item, y + i * w * call.out.item, call.out.item, at[kOut] + i * loops.row(kOut),
                   loops.col(kOut), w);
      }
  }
};

}  // namespace halfeven::forward
