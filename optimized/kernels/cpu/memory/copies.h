// Elements on their way between tensors and kernels: gathered, scattered, and rounded to another dtype.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace halfeven {

// Copies n elements of `item` bytes, which are so many bytes apart, from anywhere to anywhere.
void copy_run(int64_t item, const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n);

// Rounds n numbers to another float dtype. Both lie at multiples of their size.
void round_run(Dtype from_dtype, Dtype to_dtype, const char* from, char* to, int64_t n);

}  // namespace halfeven
