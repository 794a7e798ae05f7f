// Scales and offsets, of any dtype in memory, as the kernels take them.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace halfeven {

// Writes n parameters, `step` bytes apart, as float or double, rounded to `compute`. Offsets are minus the zero point
// unless `is_offset`; an integer zero point of 0 gives +0.0, and a missing one (p is nullptr) as well.
void load_scales(const char* p, Dtype dtype, int64_t step, int64_t n, Dtype compute, void* to);
void load_offsets(const char* p, Dtype dtype, int64_t step, int64_t n, bool is_offset, Dtype compute, void* to);

}  // namespace halfeven
