// Arguments of the operators: read once from torch, and checked so that no kernel can touch what is not theirs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/stable/tensor.h>

#include "core/dtype.h"
#include "cpu/memory/layout.h"

namespace halfeven {

using torch::stable::Tensor;
using BlockSize = std::optional<std::vector<int64_t>>;

int64_t item_size(Dtype d);
int significand_bits(Dtype d);  // of a float, less the leading one: its epsilon is 2^-bits
std::string name_of(Dtype d);
std::string names_of(DtypeSet set);
Dtype dtype_of(int32_t torch_dtype);  // None for those that are not known
int32_t torch_dtype(Dtype d);

// Throws what Python sees as RuntimeError.
[[noreturn]] void fail(const std::string& message);

// A CPU tensor with memory behind every element. As Place it goes into for_each_region.
struct Argument : Place {
  const char* name = "";
  Dtype dtype = Dtype::None;
  int64_t numel = 0;
};

// As Python writes it.
std::string shape_of(const Argument& a);

// The dtype of a tensor. Refuses one outside `accepted`.
Dtype dtype_in(const char* name, const Tensor& tensor, DtypeSet accepted);

// Reads a tensor. Refuses another layout or device than strided on the CPU, a dtype outside `accepted`, and storage
// that ends before the tensor does. Sizes and strides are borrowed from the tensor, which has to outlive the result.
Argument read(const char* name, const Tensor& tensor, DtypeSet accepted);

// An absent argument reads as one of 0 dimensions without data.
Argument read(const char* name, const std::optional<Tensor>& tensor, DtypeSet accepted);

// Reads a dtype that is asked for, `otherwise` where none is. Refuses one outside `accepted`.
Dtype read_dtype(const char* name, const std::optional<int32_t>& torch_dtype, DtypeSet accepted, Dtype otherwise);

// Refuses a grid that is out of order; one that `dtype` does not hold.
void check_grid(int64_t qmin, int64_t qmax);
void check_codes_dtype(Dtype dtype, int64_t qmin, int64_t qmax);

// The first of `x`, float32 and float64 whose epsilon is at most a quarter step of the grid, which it represents;
// else float64, if that represents it.
Dtype compute_dtype(Dtype x, int64_t qmin, int64_t qmax);

// Refuses a block size that has not an entry of 1 or more per dimension of x. Returns it, or nullptr for none.
const int64_t* check_block_size(const Argument& x, const BlockSize& block);

// Refuses a parameter that does not belong to x in blocks of `block` (as check_block_size returned it).
void check_parameter(const Argument& parameter, const Argument& x, const int64_t* block);

// Refuses an output that is not of x's shape, or shares memory with itself or an input; it may be inputs[0] itself.
void check_out(const Argument& out, const Argument& x, std::initializer_list<const Argument*> inputs);

// Blocks of b along a dimension of n; the last one may be short.
constexpr int64_t block_count(int64_t n, int64_t b) { return n == 0 ? 0 : (n - 1) / b + 1; }

// In elements.
std::vector<int64_t> contiguous_strides(int64_t ndim, const int64_t* size);

// Contiguous memory.
Tensor empty(int64_t ndim, const int64_t* size, Dtype dtype);

// Memory of x's shape, laid out as torch.empty_like(x, dtype=dtype) does.
Tensor empty_like(const Tensor& x, Dtype dtype);

}  // namespace halfeven
