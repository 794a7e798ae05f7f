// Between who launches the forward kernels and the kernels.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace halfeven {

// Dimensions of a call whose layout is not of rows.
inline constexpr int kMostDimensions = 8;

// Where the parameters are, and what is the same for all elements.
struct ForwardParameters {
  const char *s, *o;  // scales, and zero points or offsets; o may be null
  double low, high;   // the ends of the grid
  double shift;
  Dtype s_dtype, o_dtype;
  int8_t is_offset;
};

// outer x rows x len elements; those of a row are contiguous. Steps are in elements. A parameter belongs to a row of
// an outer index (rows), or to a column of one (columns): `step` leads from one to the next.
struct ForwardRows {
  const char* x;
  char* out;
  int64_t outer, rows, len;
  int64_t x_outer, x_row, out_outer, out_row;
  int64_t s_outer, s_step, o_outer, o_step;
  ForwardParameters parameters;
};

// Any layout, the last dimension first: elements and parameters by steps, parameters of blocks.
struct ForwardStrided {
  const char* x;
  char* out;
  int64_t numel;
  int64_t ndim;
  int64_t size[kMostDimensions], x_step[kMostDimensions], out_step[kMostDimensions];
  int64_t block[kMostDimensions], s_step[kMostDimensions], o_step[kMostDimensions];
  ForwardParameters parameters;
};

}  // namespace halfeven
