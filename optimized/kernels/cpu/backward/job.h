// Between the operators of gradients, which know tensors, and the kernels, which know one rectangle of elements at a
// time.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/operation.h"

namespace halfeven {

// Elements of a job, unless they are as kernels take them and parameters belong to columns: with copies and terms, all
// of it stays in the first cache. Kernels compute no more of a row than that before they sum up.
inline constexpr int64_t kJobElements = 1024;

// What sums start at: -0.0 + x is x, also where x is -0.0.
inline constexpr double kNoTerms = -0.0;

// rows x len elements; those of a row are contiguous. Whether the kernel takes them as they are in memory is in
// as_is(); else they are float, or double where the arithmetic is in float64.
struct BackwardJob {
  int64_t rows, len;
  const void *g, *x;
  void* dx;
  int64_t g_row, x_row, dx_row;  // elements from one row to the next
  const void *s, *o;             // one per row, or per column, rounded to the dtype of the arithmetic
  double low, high, shift;
  double *ds, *d_o;              // one per row: set; one per column: added to
};

using BackwardKernel = void (*)(const BackwardJob&);

// n elements from anywhere, `step` bytes apart, to float or double, rounded to the dtype of the arithmetic.
using Load = void (*)(const char* from, int64_t step, int64_t n, void* to);
// n floats or doubles to numbers `step` bytes apart.
using Save = void (*)(const void* from, char* to, int64_t step, int64_t n);
// n sums to numbers, rounded to the dtype of the arithmetic and then to the one in memory.
using SaveSums = void (*)(const double* from, char* to, int64_t n);

// Whether kernels take elements of dtype `in` as they are in memory.
constexpr bool as_is(Gradient op, Dtype in, Dtype compute) {
  if (compute == Dtype::F32 && (in == Dtype::BF16 || in == Dtype::F16)) return op != Gradient::Dequantize;
  return in == compute && (compute == Dtype::F32 || compute == Dtype::F64);
}

// For one instruction set; `in` is the dtype in memory of grad and x. Without sums only dx is computed.
struct BackwardKernels {
  BackwardKernel (*kernel)(Gradient op, Dtype in, Dtype compute, bool columns, bool sums);
  Load (*load)(Dtype in, Dtype compute);
  Save (*save)(Dtype compute, Dtype out);
  SaveSums (*save_sums)(Dtype compute, Dtype out);
};

namespace baseline {
BackwardKernels backward_kernels();
}
namespace avx2 {
BackwardKernels backward_kernels();
}
namespace avx512 {
BackwardKernels backward_kernels();
}
namespace neon {
BackwardKernels backward_kernels();
}

}  // namespace halfeven
