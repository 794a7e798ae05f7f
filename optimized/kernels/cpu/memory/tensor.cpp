#include "cpu/memory/tensor.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace halfeven {

namespace {

struct Row {
  const char* name;
  int64_t item;
  int32_t (*torch)();
  int64_t low, high;        // integers: the range
  int64_t largest;          // floats: the largest power of two, as its exponent
  int significand_bits;     // floats: see tensor.h
};

constexpr int kKnown = static_cast<int>(Dtype::None);
constexpr Row kRows[kKnown] = {
    {"float32", 4, aoti_torch_dtype_float32, 0, 0, 127, 23},
    {"float64", 8, aoti_torch_dtype_float64, 0, 0, 1023, 52},
    {"float16", 2, aoti_torch_dtype_float16, 0, 0, 15, 10},
    {"bfloat16", 2, aoti_torch_dtype_bfloat16, 0, 0, 127, 7},
    {"int8", 1, aoti_torch_dtype_int8, -128, 127, 0, 0},
    {"uint8", 1, aoti_torch_dtype_uint8, 0, 255, 0, 0},
    {"int16", 2, aoti_torch_dtype_int16, -32768, 32767, 0, 0},
    {"uint16", 2, aoti_torch_dtype_uint16, 0, 65535, 0, 0},
    {"int32", 4, aoti_torch_dtype_int32, -2147483648LL, 2147483647LL, 0, 0},
    {"uint32", 4, aoti_torch_dtype_uint32, 0, 4294967295LL, 0, 0},
    {"int64", 8, aoti_torch_dtype_int64, 0, 0, 0, 0},
};

const Row& row(Dtype d) { return kRows[static_cast<int>(d)]; }

void check(AOTITorchError error, const char* what) {
  if (error != AOTI_TORCH_SUCCESS)
    fail(std::string(what) + " failed: torch gives no access to a tensor, or has no memory for one");
}

std::string list(int64_t n, const int64_t* values) {
  std::string text = "(";
  for (int64_t i = 0; i < n; ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  return text + (n == 1 ? ",)" : ")");
}

// Whether the value is one of the float dtype: in range, and its odd part no longer than the significand.
bool represents(Dtype d, int64_t value) {
  uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  if (magnitude == 0) return true;
  const uint64_t odd = magnitude / (magnitude & -magnitude);
  const int top = 63 - __builtin_clzll(magnitude);
  return top <= row(d).largest && odd < uint64_t{2} << significand_bits(d);
}

bool represents(Dtype d, int64_t qmin, int64_t qmax) {
  const bool single = qmin == qmax;
  return represents(d, qmin) && represents(d, single ? qmin : qmin + 1) &&
         represents(d, single ? qmax : qmax - 1) && represents(d, qmax);
}

std::string grid(int64_t qmin, int64_t qmax) {
  return "qmin=" + std::to_string(qmin) + ", qmax=" + std::to_string(qmax);
}

// Bytes from the first of a tensor's elements to the end of its last one; false where that exceeds int64.
bool reach(const Argument& a, int64_t* bytes) {
  int64_t last = 0, part = 0;
  for (int64_t d = 0; d < a.ndim; ++d)
    if (a.size[d] > 1 && (__builtin_mul_overflow(a.stride[d], a.size[d] - 1, &part) || part < 0 ||
                          __builtin_add_overflow(last, part, &last)))
      return false;
  return !__builtin_add_overflow(last, 1, &last) && !__builtin_mul_overflow(last, a.item, bytes);
}

// Whether each stride steps over all that the smaller ones reach, so that no two elements coincide.
bool places_apart(const Argument& a) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (int64_t d = 0; d < a.ndim; ++d)
    if (a.size[d] != 1) dims.emplace_back(a.stride[d], a.size[d]);
  std::sort(dims.begin(), dims.end());
  int64_t reached = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reached) return a.numel == 0;
    reached += stride * (size - 1);
  }
  return true;
}

bool is_contiguous(const Argument& a) {
  int64_t expected = 1;
  for (int64_t d = a.ndim - 1; d >= 0; --d) {
    if (a.size[d] == 1) continue;
    if (a.stride[d] != expected) return false;
    expected *= a.size[d];
  }
  return true;
}

bool same_places(const Argument& a, const Argument& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.ndim != b.ndim) return false;
  for (int64_t d = 0; d < a.ndim; ++d)
    if (a.size[d] != b.size[d] || (a.size[d] > 1 && a.stride[d] != b.stride[d])) return false;
  return true;
}

// Calls f for the bytes of a that lie in low..high-1, as pairs of address and count.
template <class F>
void bytes_between(const Argument& a, const char* low, const char* high, F&& f) {
  const Place elements[1] = {a}, none[1] = {};
  for_each_region(a.ndim, a.size, nullptr, elements, none, [&](Loops<2>& loops) {
    loops.normalize();
    walk(loops, 0, loops.numel, [&](char* const* data, int64_t rows, int64_t cols) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) {
          const char* p = data[0] + r * loops.row(0) + c * loops.col(0);
          for (int64_t i = 0; i < a.item; ++i)
            if (p + i >= low && p + i < high) f(p + i - low);
        }
    });
  });
}

// Whether two tensors have a byte in common; views that interleave, such as odd and even columns, have none.
bool overlap(const Argument& a, const Argument& b) {
  if (a.numel == 0 || b.numel == 0 || !a.data || !b.data) return false;
  int64_t a_bytes = 0, b_bytes = 0;
  if (!reach(a, &a_bytes) || !reach(b, &b_bytes)) return true;
  const char* low = std::max(a.data, b.data);
  const char* high = std::min(a.data + a_bytes, b.data + b_bytes);
  if (low >= high) return false;
  if (is_contiguous(a) && is_contiguous(b)) return true;
  std::vector<bool> touched(high - low);
  bytes_between(a, low, high, [&](int64_t i) { touched[i] = true; });
  bool common = false;
  bytes_between(b, low, high, [&](int64_t i) { common |= touched[i]; });
  return common;
}

}  // namespace

std::string shape_of(const Argument& a) { return list(a.ndim, a.size); }

void fail(const std::string& message) { throw std::runtime_error(message); }

int64_t item_size(Dtype d) { return row(d).item; }

int significand_bits(Dtype d) { return row(d).significand_bits; }

std::string name_of(Dtype d) { return row(d).name; }

std::string names_of(DtypeSet set) {
  std::string text;
  for (int d = 0; d < kKnown; ++d)
    if (contains(set, static_cast<Dtype>(d))) text += (text.empty() ? "" : ", ") + std::string(kRows[d].name);
  return text;
}

int32_t torch_dtype(Dtype d) { return row(d).torch(); }

Dtype dtype_of(int32_t dtype) {
  for (int d = 0; d < kKnown; ++d)
    if (kRows[d].torch() == dtype) return static_cast<Dtype>(d);
  return Dtype::None;
}

Dtype dtype_in(const char* name, const Tensor& tensor, DtypeSet accepted) {
  int32_t dtype = 0;
  check(aoti_torch_get_dtype(tensor.get(), &dtype), "dtype");
  const Dtype d = dtype_of(dtype);
  if (d == Dtype::None || !contains(accepted, d))
    fail(std::string(name) + " of dtype " + (d == Dtype::None ? "number " + std::to_string(dtype) : name_of(d)) +
         " is not accepted: give " + names_of(accepted));
  return d;
}

Argument read(const char* name, const Tensor& tensor, DtypeSet accepted) {
  const AtenTensorHandle handle = tensor.get();
  int32_t layout = 0, device = 0;
  check(aoti_torch_get_device_type(handle, &device), "device");
  check(aoti_torch_get_layout(handle, &layout), "layout");
  if (device != aoti_torch_device_type_cpu())
    fail(std::string(name) + " on a device of type number " + std::to_string(device) +
         " is not accepted: give a tensor on the CPU, where the input is");
  if (layout != aoti_torch_layout_strided())
    fail(std::string(name) + " of layout number " + std::to_string(layout) + " is not accepted: give a strided tensor");
  Argument a;
  a.name = name;
  a.dtype = dtype_in(name, tensor, accepted);
  a.item = item_size(a.dtype);
  int64_t *size = nullptr, *stride = nullptr;
  check(aoti_torch_get_dim(handle, &a.ndim), "dim");
  check(aoti_torch_get_sizes(handle, &size), "sizes");
  check(aoti_torch_get_strides(handle, &stride), "strides");
  check(aoti_torch_get_numel(handle, &a.numel), "numel");
  a.size = size;
  a.stride = stride;
  if (a.numel == 0) return a;
  int64_t offset = 0, held = 0, needed = 0;
  check(aoti_torch_get_storage_offset(handle, &offset), "storage_offset");
  check(aoti_torch_get_storage_size(handle, &held), "storage size");
  if (!reach(a, &needed) || offset < 0 || held < needed || offset > (held - needed) / a.item)
    fail(std::string(name) + " of shape " + shape_of(a) + " is not accepted: its storage of " + std::to_string(held) +
         " bytes ends before it does");
  void* data = nullptr;
  check(aoti_torch_get_data_ptr(handle, &data), "data_ptr");
  if (!data) fail(std::string(name) + " of shape " + shape_of(a) + " is not accepted: it has no memory");
  a.data = static_cast<char*>(data);
  return a;
}

Argument read(const char* name, const std::optional<Tensor>& tensor, DtypeSet accepted) {
  if (tensor) return read(name, *tensor, accepted);
  Argument absent;
  absent.name = name;
  return absent;
}

Dtype read_dtype(const char* name, const std::optional<int32_t>& torch_dtype, DtypeSet accepted, Dtype otherwise) {
  if (!torch_dtype) return otherwise;
  const Dtype d = dtype_of(*torch_dtype);
  if (d == Dtype::None || !contains(accepted, d))
    fail(std::string(name) + "=" + (d == Dtype::None ? "dtype number " + std::to_string(*torch_dtype) : name_of(d)) +
         " is not accepted: give None or one of " + names_of(accepted));
  return d;
}

void check_grid(int64_t qmin, int64_t qmax) {
  if (qmin > qmax) fail(grid(qmin, qmax) + " is not accepted: a grid needs qmin <= qmax");
}

void check_codes_dtype(Dtype dtype, int64_t qmin, int64_t qmax) {
  const Row& r = row(dtype);
  const bool holds = is_float(dtype) ? represents(dtype, qmin, qmax) : qmin >= r.low && qmax <= r.high;
  if (!holds) fail(grid(qmin, qmax) + " is not accepted: codes of dtype " + name_of(dtype) + " do not hold the grid");
}

Dtype compute_dtype(Dtype x, int64_t qmin, int64_t qmax) {
  const uint64_t width = static_cast<uint64_t>(qmax) - static_cast<uint64_t>(qmin);
  for (Dtype d : {x, Dtype::F32, Dtype::F64})
    if (represents(d, qmin, qmax) && width <= uint64_t{1} << (significand_bits(d) - 2)) return d;
  if (!represents(Dtype::F64, qmin, qmax))
    fail(grid(qmin, qmax) + " is not accepted: float64 cannot represent the grid");
  return Dtype::F64;
}

const int64_t* check_block_size(const Argument& x, const BlockSize& block) {
  if (!block) return nullptr;
  bool fits = static_cast<int64_t>(block->size()) == x.ndim;
  for (int64_t b : *block) fits &= b >= 1;
  if (!fits)
    fail("block_size=" + list(block->size(), block->data()) + " is not accepted for " + x.name + " of shape " +
         shape_of(x) + ": give " + std::to_string(x.ndim) + " entries of 1 or more");
  // Of no dimensions, every pointer will do but a null one.
  static constexpr int64_t kNone[1] = {};
  return block->empty() ? kNone : block->data();
}

void check_parameter(const Argument& p, const Argument& x, const int64_t* block) {
  if (p.ndim == 0 && !block) return;
  bool fits = true;
  if (!block) {
    fits = p.ndim <= x.ndim;
    for (int64_t d = 0; fits && d < p.ndim; ++d)
      fits = p.size[d] == 1 || p.size[d] == x.size[x.ndim - p.ndim + d];
    if (!fits)
      fail(std::string(p.name) + " of shape " + shape_of(p) + " is not accepted: it does not broadcast to " + x.name +
           " of shape " + shape_of(x));
    return;
  }
  if (p.ndim == 0 && p.dtype == Dtype::None) return;
  std::vector<int64_t> blocks(x.ndim);
  bool one = true;
  for (int64_t d = 0; d < x.ndim; ++d) {
    blocks[d] = block_count(x.size[d], block[d]);
    one &= blocks[d] == 1;
  }
  fits = p.ndim == 0 ? one : p.ndim == x.ndim && std::equal(blocks.begin(), blocks.end(), p.size);
  if (!fits)
    fail(std::string(p.name) + " of shape " + shape_of(p) + " is not accepted: " + x.name + " of shape " +
         shape_of(x) + " in blocks of " + list(x.ndim, block) + " needs " + list(x.ndim, blocks.data()));
}

void check_out(const Argument& out, const Argument& x, std::initializer_list<const Argument*> inputs) {
  if (out.ndim != x.ndim || !std::equal(out.size, out.size + out.ndim, x.size))
    fail(std::string(out.name) + " of shape " + shape_of(out) + " is not accepted: the result has the shape " +
         shape_of(x) + " of " + x.name);
  if (!is_contiguous(out) && !places_apart(out))
    fail(std::string(out.name) + " of shape " + shape_of(out) + " and strides " + list(out.ndim, out.stride) +
         " is not accepted: its elements share memory; give each memory of its own");
  for (const Argument* input : inputs) {
    const bool first = input == *inputs.begin();
    if (first && same_places(out, *input)) continue;
    if (overlap(out, *input))
      fail(std::string(out.name) + " is not accepted: it overlaps " + input->name +
           (first ? std::string(", and is not ") + input->name + " itself" : "") + "; give memory of its own");
  }
}

std::vector<int64_t> contiguous_strides(int64_t ndim, const int64_t* size) {
  std::vector<int64_t> stride(ndim);
  int64_t step = 1;
  for (int64_t d = ndim - 1; d >= 0; --d) {
    stride[d] = step;
    step *= std::max<int64_t>(size[d], 1);
  }
  return stride;
}

Tensor empty(int64_t ndim, const int64_t* size, Dtype dtype) {
  AtenTensorHandle handle = nullptr;
  check(aoti_torch_empty_strided(ndim, size, contiguous_strides(ndim, size).data(), torch_dtype(dtype),
                                 aoti_torch_device_type_cpu(), 0, &handle),
        "empty_strided");
  return Tensor(handle);
}

Tensor empty_like(const Tensor& x, Dtype dtype) {
  // Through the dispatcher, since the function of this name in torch's headers takes no dtype.
  AtenTensorHandle self = nullptr;
  check(aoti_torch_new_tensor_handle(x.get(), &self), "handle");
  StableIValue stack[6];
  stack[0] = torch::stable::detail::from(self);
  stack[1] = torch::stable::detail::from(new StableIValue(torch::stable::detail::from(torch_dtype(dtype))));
  for (int i = 2; i < 6; ++i) stack[i] = torch::stable::detail::from(std::nullopt);
  check(torch_call_dispatcher("aten::empty_like", "", stack, TORCH_ABI_VERSION), "empty_like");
  return torch::stable::detail::to<Tensor>(stack[0]);
}

}  // namespace halfeven
