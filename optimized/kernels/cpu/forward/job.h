// Between the operators, which know tensors, and the kernels, which know one rectangle of elements at a time.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/operation.h"

namespace halfeven {

// What is the same for all elements of a call.
struct ForwardSettings {
  double low = 0, high = 0;  // the ends of the grid
  double shift = 0;
  bool far = false;     // operands and result are larger than the caches
  bool stream = false;  // write float results past the caches
};

// rows x len elements, each row contiguous in x and out. Scales s and offsets o are float, or double where the
// arithmetic is in float64, already rounded to the dtype of the arithmetic: one per row or one per column.
struct ForwardJob {
  const char* x;
  char* out;
  int64_t rows, len;
  int64_t x_row, out_row;  // bytes from one row to the next
  const void* s;
  const void* o;
};

using ForwardKernel = void (*)(const ForwardSettings&, const ForwardJob&);

// The kernels of one combination of dtypes, for one instruction set.
struct ForwardKernels {
  ForwardKernel per_row = nullptr, per_column = nullptr;
};

// Null where the operation has no such combination. `in` and `out` are the dtypes in memory.
namespace baseline {
ForwardKernels forward_kernels(Operation op, Dtype in, Dtype compute, Dtype out);
}
namespace avx2 {
ForwardKernels forward_kernels(Operation op, Dtype in, Dtype compute, Dtype out);
}
namespace avx512 {
ForwardKernels forward_kernels(Operation op, Dtype in, Dtype compute, Dtype out);
}
namespace neon {
ForwardKernels forward_kernels(Operation op, Dtype in, Dtype compute, Dtype out);
}

// Rows whose parameters a per_row job has at most, and columns whose parameters a per_column job has. Rows are long so
// that they are read one after the other.
inline constexpr int64_t kTile = 1024, kWide = 8192;

}  // namespace halfeven
