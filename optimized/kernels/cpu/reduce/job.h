// Between aminmax and amax, which know tensors, and their kernels, which know one rectangle of elements at a time.
//
// Floats are compared by integers, their keys (core/keys.h): integer minima and maxima, which every vector unit has, say
// whether there was a NaN.
#pragma once

#include <cstdint>

namespace halfeven {

// Elements copied at a time where rows are not contiguous.
inline constexpr int64_t kCopied = 1024;

// rows x len keys-to-be, `row` bytes from one row to the next; elements of a row are contiguous.
struct ReduceJob {
  const char* x;
  int64_t rows, len, row;
  void *low, *high;           // keys so far; low is nullptr for magnitudes
  int64_t low_step, high_step;  // from a row's or column's key to the next, in keys
};

using ReduceKernel = void (*)(const ReduceJob&);

// For one instruction set; `item` is the bytes of an element, 2, 4 or 8.
struct ReduceKernels {
  ReduceKernel (*kernel)(int64_t item, bool columns, bool magnitudes);
  // n elements, `step` bytes apart.
  void (*copy)(int64_t item, const char* from, int64_t step, int64_t n, char* to);
};

namespace baseline {
ReduceKernels reduce_kernels();
}
namespace avx2 {
ReduceKernels reduce_kernels();
}
namespace avx512 {
ReduceKernels reduce_kernels();
}
namespace neon {
ReduceKernels reduce_kernels();
}

}  // namespace halfeven
