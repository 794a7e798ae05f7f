// How a region of a call is cut into the jobs of the kernels: whole rows or columns where they lie as kernels take them,
// else copies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "forward.h"
#include "layout.h"
#include "params.h"
#include "tensor.h"

#define HALFEVEN_ISA baseline
#include "arith.h"

namespace halfeven {

// Rows shorter than this, and rows of fewer columns with parameters of their own, are computed several at once, with the
// parameters repeated for each element.
constexpr int64_t kShortRow = 16, kShortColumns = 32;

constexpr int kOut = 0, kX = 1, kScale = 2, kZeroPoint = 3;

struct Call {
  Operation op;
  Argument x, out, scale, zero_point;
  Dtype compute;
  bool is_offset = false;
  Grid grid = {};
};

// n items between contiguous memory and places `step` bytes apart.
template <class M>
void copy_items(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_step, from + i * from_step, sizeof(M));
}

inline void copy_run(int64_t item, const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n) {
  switch (item) {
    case 1: return copy_items<uint8_t>(from, from_step, to, to_step, n);
    case 2: return copy_items<uint16_t>(from, from_step, to, to_step, n);
    case 4: return copy_items<uint32_t>(from, from_step, to, to_step, n);
    default: return copy_items<uint64_t>(from, from_step, to, to_step, n);
  }
}

// Rounds n numbers to another float dtype.
template <Dtype From, Dtype To>
void round_run(const char* from, char* to, int64_t n) {
  const auto* x = reinterpret_cast<const typename baseline::Stored<From>::Memory*>(from);
  auto* y = reinterpret_cast<typename baseline::Stored<To>::Memory*>(to);
  using C = typename baseline::Working<From>::C;
  for (int64_t i = 0; i < n; ++i) y[i] = baseline::Stored<To>::store(baseline::Stored<From>::template load<C>(x[i]));
}

template <Dtype From>
void round_from(Dtype out, const char* from, char* to, int64_t n) {
  switch (out) {
    case Dtype::F64: return round_run<From, Dtype::F64>(from, to, n);
    case Dtype::F16: return round_run<From, Dtype::F16>(from, to, n);
    case Dtype::BF16: return round_run<From, Dtype::BF16>(from, to, n);
    default: return round_run<From, Dtype::F32>(from, to, n);
  }
}

inline void round_to(Dtype compute, Dtype out, const char* from, char* to, int64_t n) {
  switch (compute) {
    case Dtype::F64: return round_from<Dtype::F64>(out, from, to, n);
    case Dtype::F16: return round_from<Dtype::F16>(out, from, to, n);
    case Dtype::BF16: return round_from<Dtype::BF16>(out, from, to, n);
    default: return round_from<Dtype::F32>(out, from, to, n);
  }
}

// What one region of a call needs to compute a rectangle of it.
struct Region {
  const Call& call;
  const Loops<4>& loops;
  Kernels kernels;
  Dtype written;  // by the kernel; another dtype than the result's is rounded to that afterwards

  bool constant_along_rows() const { return loops.col(kScale) == 0 && loops.col(kZeroPoint) == 0; }
  bool constant_along_columns() const { return loops.row(kScale) == 0 && loops.row(kZeroPoint) == 0; }

  // Contiguous along rows, and at multiples of their size, which loops over numbers in place rely on.
  bool dense(int operand, int64_t item) const {
    return loops.col(operand) == item && reinterpret_cast<uintptr_t>(loops.data[operand]) % item == 0;
  }

  void parameters(char* const* at, bool along_rows, int64_t n, void* s, void* o) const {
    const auto step = [&](int k) { return along_rows ? loops.col(k) : loops.row(k); };
    load_scales(at[kScale], call.scale.dtype, step(kScale), n, call.compute, s);
    load_offsets(at[kZeroPoint], call.zero_point.dtype, step(kZeroPoint), n, call.is_offset, call.compute, o);
  }

  void operator()(char* const* data, int64_t rows, int64_t cols) const {
    const bool straight = dense(kX, call.x.item) && dense(kOut, call.out.item) && written == call.out.dtype;
    if (straight && constant_along_rows() && (rows == 1 || cols >= kShortRow)) return by_rows(data, rows, cols);
    if (straight && !constant_along_rows() && constant_along_columns() && rows > 1) {
      if (cols >= kShortColumns) return by_columns(data, rows, cols);
      if (whole_rows(kX, call.x.item, cols) && whole_rows(kOut, call.out.item, cols))
        return by_repeated_columns(data, rows, cols);
    }
    by_tiles(data, rows, cols);
  }

  // Whether row follows row in memory.
  bool whole_rows(int operand, int64_t item, int64_t cols) const {
    return loops.col(operand) == item && loops.row(operand) == cols * item;
  }

  Job job(char* const* data, int64_t rows, int64_t len, const void* s, const void* o) const {
    return {data[kX], data[kOut], rows, len, loops.row(kX), loops.row(kOut), s, o};
  }

  void by_rows(char* const* data, int64_t rows, int64_t cols) const {
    alignas(32) double s[kTile], o[kTile];
    char* at[4];
    for (int64_t r = 0; r < rows; r += kTile) {
      for (int k = 0; k < 4; ++k) at[k] = data[k] ? data[k] + r * loops.row(k) : nullptr;
      const int64_t n = std::min(kTile, rows - r);
      parameters(at, false, n, s, o);
      kernels.per_row(call.grid, job(at, n, cols, s, o));
    }
  }

  void by_columns(char* const* data, int64_t rows, int64_t cols) const {
    alignas(32) double s[kWide], o[kWide];
    char* at[4];
    for (int64_t c = 0; c < cols; c += kWide) {
      for (int k = 0; k < 4; ++k) at[k] = data[k] ? data[k] + c * loops.col(k) : nullptr;
      const int64_t n = std::min(kWide, cols - c);
      parameters(at, true, n, s, o);
      kernels.per_column(call.grid, job(at, rows, n, s, o));
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
    Job all = job(data, rows / times, times * cols, s, o);
    all.x_row *= times;
    all.out_row *= times;
    kernels.per_column(call.grid, all);
    const int64_t done = rows / times * times;
    if (done == rows) return;
    all.x += done * loops.row(kX);
    all.out += done * loops.row(kOut);
    all.rows = 1;
    all.len = (rows - done) * cols;
    kernels.per_column(call.grid, all);
  }

  // Any strides: elements are gathered, computed and scattered, up to kTile at a time.
  void by_tiles(char* const* data, int64_t rows, int64_t cols) const {
    alignas(64) char x[kTile * 8], y[kTile * 8], z[kTile * 8];
    alignas(32) double s[kTile], o[kTile];
    const bool single = constant_along_rows() && constant_along_columns();
    const int64_t item = call.compute == Dtype::F64 ? 8 : 4;
    const int64_t width = std::min(cols, kTile), height = std::min(kTile / width, rows);
    char* at[4];
    if (single) parameters(data, false, 1, s, o);
    for (int64_t r = 0; r < rows; r += height)
      for (int64_t c = 0; c < cols; c += width) {
        const int64_t h = std::min(height, rows - r), w = std::min(width, cols - c), n = h * w;
        for (int k = 0; k < 4; ++k) at[k] = data[k] ? data[k] + r * loops.row(k) + c * loops.col(k) : nullptr;
        if (!single) {
          for (int64_t i = 0; i < h; ++i) {
            char* row[4];
            for (int k = 0; k < 4; ++k) row[k] = at[k] ? at[k] + i * loops.row(k) : nullptr;
            parameters(row, true, w, reinterpret_cast<char*>(s) + i * w * item,
                       reinterpret_cast<char*>(o) + i * w * item);
          }
        }
        const auto in_one = [&](int k, int64_t bytes) {
          return dense(k, bytes) && (h == 1 || loops.row(k) == w * bytes);
        };
        Job tile{at[kX], at[kOut], 1, n, 0, 0, s, o};
        if (!in_one(kX, call.x.item)) {
          for (int64_t i = 0; i < h; ++i)
            copy_run(call.x.item, at[kX] + i * loops.row(kX), loops.col(kX), x + i * w * call.x.item, call.x.item, w);
          tile.x = x;
        }
        const bool in_place = in_one(kOut, call.out.item);
        if (!in_place) tile.out = y;
        char* result = tile.out;
        if (written != call.out.dtype) tile.out = z;
        (single ? kernels.per_row : kernels.per_column)(call.grid, tile);
        if (written != call.out.dtype) round_to(written, call.out.dtype, z, result, n);
        if (in_place) continue;
        for (int64_t i = 0; i < h; ++i)
          copy_run(call.out.item, y + i * w * call.out.item, call.out.item, at[kOut] + i * loops.row(kOut),
                   loops.col(kOut), w);
      }
  }
};

}  // namespace halfeven
