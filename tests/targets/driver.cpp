// Runs the loops of the kernels, of any target, without torch: reads jobs from the standard input and writes what the
// kernel made of each to the standard output. tests/targets/driver.py is its other end.
//
// Every operand lies between two pages that nobody may touch, at the end, at the beginning or at a given place; what is
// around it and between its rows has known bytes, which have to be there afterwards.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cpu/backward/job.h"
#include "cpu/forward/job.h"
#include "cpu/isa.h"
#include "cpu/reduce/job.h"

namespace {

using namespace halfeven;

// HALFEVEN_TARGETS is X(baseline) X(avx2) ..., by their numbers for halfeven_isa.
struct Target {
  const char* name;
  ForwardKernels (*forward)(Operation, Dtype, Dtype, Dtype);
  BackwardKernels (*backward)();
  ReduceKernels (*reduce)();
};
#define X(name) {#name, name::forward_kernels, name::backward_kernels, name::reduce_kernels},
constexpr Target kTargets[] = {HALFEVEN_TARGETS};
#undef X

enum Part : int64_t { kTargetsHere, kForward, kBackward, kReduce, kLoad, kSave, kSaveSums, kCopy };

// As tests/targets/driver.py packs it; then come the bytes of x, g, s, o and first.
struct Request {
  int64_t part, target, op, in, compute, out, columns, sums, magnitudes, far, stream, in_place;
  int64_t rows, len, x_item, out_item;
  int64_t x_gap, g_gap, out_gap;        // bytes after each row
  int64_t x_place, g_place, out_place;  // see Buffer::lay
  double low, high, shift;
  int64_t bytes[5];
};

// Rows of one operand.
class Buffer {
 public:
  static constexpr int64_t kAround = 256;

  // `place`: bytes after a multiple of 64; kEnd, just before a page that is not to be touched; kStart, just after one.
  // `padding` bytes at the end may be read.
  static constexpr int64_t kEnd = -1, kStart = -2;
  char* lay(int64_t rows, int64_t bytes, int64_t gap, int64_t place, int64_t padding = 0) {
    rows_ = rows, bytes_ = bytes, row_ = bytes + gap;
    size_ = rows ? (rows - 1) * row_ + bytes : 0;
    reserve(size_ + padding + 64 + 2 * kAround);
    at_ = place == kEnd     ? pages_ + capacity_ - size_ - padding
          : place == kStart ? pages_
                            : pages_ + kAround + place;
    from_ = std::max(pages_, at_ - kAround), to_ = std::min(pages_ + capacity_, at_ + size_ + padding + kAround);
    for (char* p = from_; p < to_; ++p) *p = known(p);
    return at_;
  }

  void set(const char* dense) {
    for (int64_t r = 0; r < rows_; ++r) std::memcpy(at_ + r * row_, dense + r * bytes_, bytes_);
  }

  void get(std::string& to) const {
    for (int64_t r = 0; r < rows_; ++r) to.append(at_ + r * row_, bytes_);
  }

  // The first byte that was changed where nothing is to be written: how far after the start, or kNone.
  static constexpr int64_t kNone = INT64_MIN;
  int64_t changed() const {
    for (const char* p = from_; p < to_; ++p) {
      const int64_t i = p - at_;
      const bool own = i >= 0 && i < size_ && i % row_ < bytes_;
      if (!own && *p != known(p)) return i;
    }
    return kNone;
  }

  int64_t row() const { return row_; }

 private:
  static char known(const char* p) { return static_cast<char>(0xa5 ^ (reinterpret_cast<uintptr_t>(p) * 37)); }

  void reserve(int64_t size) {
    const int64_t page = sysconf(_SC_PAGESIZE), wanted = (size + page - 1) / page * page;
    if (wanted <= capacity_) return;
    if (pages_) munmap(pages_ - page, capacity_ + 2 * page);
    void* all = mmap(nullptr, wanted + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(static_cast<char*>(all) + page, wanted, PROT_READ | PROT_WRITE)) std::abort();
    pages_ = static_cast<char*>(all) + page, capacity_ = wanted;
  }

  char *pages_ = nullptr, *at_ = nullptr, *from_ = nullptr, *to_ = nullptr;
  int64_t capacity_ = 0, rows_ = 0, bytes_ = 0, row_ = 0, size_ = 0;
};

struct Answer {
  int64_t status = 0;  // 0: done; 1: there is no such kernel; 2: something was written outside
  std::string bytes;
};

// Vectors read past the last parameter: those who call have longer arrays, aligned to 32 bytes and no more.
constexpr int64_t kPadding = 128, kParameters = 32;

Buffer x_buffer, g_buffer, out_buffer, s_buffer, o_buffer, first_buffer, second_buffer;

char* parameters(Buffer& buffer, const std::string& bytes) {
  char* at = buffer.lay(1, bytes.size(), 0, kParameters, kPadding);
  buffer.set(bytes.data());
  return at;
}

void check(Answer& answer, const char* name, const Buffer& buffer) {
  const int64_t at = buffer.changed();
  if (at == Buffer::kNone) return;
  answer.status = 2;
  answer.bytes = std::string(name) + ": written at byte " + std::to_string(at);
}

Answer forward(const Request& q, const Target& target, const std::string (&given)[5]) {
  const ForwardKernels kernels = target.forward(static_cast<Operation>(q.op), static_cast<Dtype>(q.in),
                                                static_cast<Dtype>(q.compute), static_cast<Dtype>(q.out));
  const ForwardKernel kernel = q.columns ? kernels.per_column : kernels.per_row;
  if (!kernel) return {1, "no such kernel"};
  char* x = x_buffer.lay(q.rows, q.len * q.x_item, q.x_gap, q.x_place);
  x_buffer.set(given[0].data());
  Buffer& result = q.in_place ? x_buffer : out_buffer;
  char* out = q.in_place ? x : out_buffer.lay(q.rows, q.len * q.out_item, q.out_gap, q.out_place);
  const ForwardSettings settings{
      .low = q.low, .high = q.high, .shift = q.shift, .far = q.far != 0, .stream = q.stream != 0};
  kernel(settings, {.x = x,
                    .out = out,
                    .rows = q.rows,
                    .len = q.len,
                    .x_row = x_buffer.row(),
                    .out_row = result.row(),
                    .s = parameters(s_buffer, given[2]),
                    .o = parameters(o_buffer, given[3])});
  Answer answer;
  result.get(answer.bytes);
  check(answer, "x", x_buffer), check(answer, "out", result), check(answer, "s", s_buffer), check(answer, "o", o_buffer);
  return answer;
}

Answer backward(const Request& q, const Target& target, const std::string (&given)[5]) {
  const BackwardKernel kernel =
      target.backward().kernel(static_cast<Gradient>(q.op), static_cast<Dtype>(q.in), static_cast<Dtype>(q.compute),
                               q.columns != 0, q.sums != 0);
  if (!kernel) return {1, "no such kernel"};
  const char* x = x_buffer.lay(q.rows, q.len * q.x_item, q.x_gap, q.x_place);
  x_buffer.set(given[0].data());
  const char* g = g_buffer.lay(q.rows, q.len * q.x_item, q.g_gap, q.g_place);
  g_buffer.set(given[1].data());
  char* dx = out_buffer.lay(q.rows, q.len * q.out_item, q.out_gap, q.out_place);
  const int64_t sums = q.sums ? 8 * (q.columns ? q.len : q.rows) : 0;
  char* ds = first_buffer.lay(1, sums, 0, kParameters);
  first_buffer.set(given[4].data());
  char* d_o = second_buffer.lay(1, sums, 0, kParameters);
  second_buffer.set(given[4].data() + sums);
  kernel({.rows = q.rows,
          .len = q.len,
          .g = g,
          .x = x,
          .dx = dx,
          .g_row = g_buffer.row() / q.x_item,
          .x_row = x_buffer.row() / q.x_item,
          .dx_row = out_buffer.row() / q.out_item,
          .s = parameters(s_buffer, given[2]),
          .o = parameters(o_buffer, given[3]),
          .low = q.low,
          .high = q.high,
          .shift = q.shift,
          .ds = reinterpret_cast<double*>(ds),
          .d_o = reinterpret_cast<double*>(d_o)});
  Answer answer;
  out_buffer.get(answer.bytes), first_buffer.get(answer.bytes), second_buffer.get(answer.bytes);
  check(answer, "x", x_buffer), check(answer, "g", g_buffer), check(answer, "dx", out_buffer);
  check(answer, "ds", first_buffer), check(answer, "d_o", second_buffer);
  check(answer, "s", s_buffer), check(answer, "o", o_buffer);
  return answer;
}

Answer reduce(const Request& q, const Target& target, const std::string (&given)[5]) {
  const ReduceKernel kernel = target.reduce().kernel(q.x_item, q.columns != 0, q.magnitudes != 0);
  const char* x = x_buffer.lay(q.rows, q.len * q.x_item, q.x_gap, q.x_place);
  x_buffer.set(given[0].data());
  const int64_t n = q.x_item * (q.columns ? q.len : q.rows);
  char* low = first_buffer.lay(1, n, 0, kParameters);
  first_buffer.set(given[4].data());
  char* high = second_buffer.lay(1, n, 0, kParameters);
  second_buffer.set(given[4].data() + n);
  kernel({.x = x,
          .rows = q.rows,
          .len = q.len,
          .row = x_buffer.row(),
          .low = q.magnitudes ? nullptr : low,
          .high = high,
          .low_step = q.magnitudes ? 0 : 1,
          .high_step = 1});
  Answer answer;
  first_buffer.get(answer.bytes), second_buffer.get(answer.bytes);
  check(answer, "x", x_buffer), check(answer, "low", first_buffer), check(answer, "high", second_buffer);
  return answer;
}

// Elements from anywhere and to anywhere: "rows" of one element each are some bytes apart.
Answer moved(const Request& q, const Target& target, const std::string (&given)[5]) {
  const char* x = x_buffer.lay(q.rows, q.x_item, q.x_gap, q.x_place);
  x_buffer.set(given[0].data());
  char* out = out_buffer.lay(q.rows, q.out_item, q.out_gap, q.out_place);
  const BackwardKernels kernels = target.backward();
  const auto in = static_cast<Dtype>(q.in), compute = static_cast<Dtype>(q.compute), to = static_cast<Dtype>(q.out);
  if (q.part == kLoad) kernels.load(in, compute)(x, x_buffer.row(), q.rows, out);
  if (q.part == kSave) kernels.save(compute, to)(x, out, out_buffer.row(), q.rows);
  if (q.part == kSaveSums) kernels.save_sums(compute, to)(reinterpret_cast<const double*>(x), out, q.rows);
  if (q.part == kCopy) target.reduce().copy(q.x_item, x, x_buffer.row(), q.rows, out);
  Answer answer;
  out_buffer.get(answer.bytes);
  check(answer, "x", x_buffer), check(answer, "out", out_buffer);
  return answer;
}

Answer answered(const Request& q, const std::string (&given)[5]) {
  if (q.part == kTargetsHere) {
    Answer answer;
    int number = 0;
    for (const Target& target : kTargets)
      if (halfeven_isa(number) == number++) answer.bytes += std::string(target.name) + " ";
    return answer;
  }
  const Target& target = kTargets[q.target];
  switch (q.part) {
    case kForward: return forward(q, target, given);
    case kBackward: return backward(q, target, given);
    case kReduce: return reduce(q, target, given);
    default: return moved(q, target, given);
  }
}

}  // namespace

int main() {
  Request q;
  std::string given[5];
  while (std::fread(&q, sizeof q, 1, stdin) == 1) {
    for (int i = 0; i < 5; ++i) {
      given[i].resize(q.bytes[i]);
      if (q.bytes[i] && std::fread(given[i].data(), q.bytes[i], 1, stdin) != 1) return 1;
    }
    const Answer answer = answered(q, given);
    const int64_t head[2] = {answer.status, static_cast<int64_t>(answer.bytes.size())};
    std::fwrite(head, sizeof head, 1, stdout);
    std::fwrite(answer.bytes.data(), 1, answer.bytes.size(), stdout);
    std::fflush(stdout);  // so that it is known after which job the next one ended it all
  }
}
