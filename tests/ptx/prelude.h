// What the translated kernels are compiled with: registers, floats, and memory of which every access is checked.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8, pred;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

// A result that is no number is the one NaN that a GPU makes.
static inline f32 f32_from(u32 v) { f32 f; memcpy(&f, &v, 4); return f; }
static inline f64 f64_from(u64 v) { f64 f; memcpy(&f, &v, 8); return f; }
static inline u32 f32_bits(f32 f) { u32 v; memcpy(&v, &f, 4); return f != f ? 0x7fffffffu : v; }
static inline u64 f64_bits(f64 f) { u64 v; memcpy(&v, &f, 8); return f != f ? 0x7fffffffffffffffu : v; }

// What went wrong: how often, by the names that emulate.py has in the same order.
enum { MISALIGNED, OUTSIDE, READ_ONLY, TWICE, RACE, CONVERSION, DIVISION, BARRIER, KINDS };
static u64 faults[KINDS];

// Instructions so far, where they are counted.
u64 executed;

// Of what no integer holds a kernel must not make one.
#define CONVERT(to, low, high)              \
  static inline to to##_of(f64 v) {         \
    if (v > low && v < high) return (to)v;  \
    ++faults[CONVERSION];                   \
    return 0;                               \
  }
CONVERT(s32, -2147483649.0, 2147483648.0)
CONVERT(u32, -1.0, 4294967296.0)
CONVERT(s64, -9223372036854777856.0, 9223372036854775808.0)

#define DIVIDE(t)                                                           \
  static inline t divided_##t(t a, t b) { return b ? a / b : (++faults[DIVISION], 0); } \
  static inline t remainder_##t(t a, t b) { return b ? a % b : (++faults[DIVISION], 0); }
DIVIDE(s16) DIVIDE(u16) DIVIDE(s32) DIVIDE(u32) DIVIDE(s64) DIVIDE(u64)

static inline u32 permuted(u32 a, u32 b, u32 selector) {
  const u64 both = (u64)b << 32 | a;
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 s = selector >> 4 * i & 15;
    u32 byte = both >> 8 * (s & 7) & 255;
    if (s & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}

// Memory that a kernel may touch. Of what may be written it is kept which thread wrote and read each byte: 0 for
// none, and MANY readers.
#define MANY 0xffffffffu
struct Buffer { u64 low, high; u32 *writer, *reader; };
static const struct Buffer* buffers;
static int buffer_count;
static u32 thread;

static __attribute__((noinline)) u8* checked(u64 address, u32 size, int write) {
  static u8 nowhere[16];
  if (address % size) { ++faults[MISALIGNED]; return nowhere; }
  for (int i = 0; i < buffer_count; ++i) {
    const struct Buffer* b = buffers + i;
    if (address < b->low || address + size > b->high) continue;
    if (!b->writer) {
      if (write) { ++faults[READ_ONLY]; return nowhere; }
      return (u8*)address;
    }
    u32* writer = b->writer + (address - b->low);
    u32* reader = b->reader + (address - b->low);
    for (u32 k = 0; k < size; ++k) {
      if (write) {
        if (writer[k]) ++faults[TWICE];
        if (reader[k] && reader[k] != thread) ++faults[RACE];
        writer[k] = thread;
      } else {
        if (writer[k] && writer[k] != thread) ++faults[RACE];
        reader[k] = !reader[k] || reader[k] == thread ? thread : MANY;
      }
    }
    return (u8*)address;
  }
  ++faults[OUTSIDE];
  return nowhere;
}

static const u8* parameters;
static u32 parameters_size;

static __attribute__((noinline)) const u8* parameter_at(u64 address, u32 size) {
  static const u8 nowhere[16];
  const u64 start = (u64)parameters;
  if (address % size) { ++faults[MISALIGNED]; return nowhere; }
  if (address < start || address + size > start + parameters_size) { ++faults[OUTSIDE]; return nowhere; }
  return (const u8*)address;
}

// Memory that a block shares, anything at first. Who wrote and read a byte is kept up to the next barrier.
#define SHARED 49152
static _Alignas(16) u8 shared[SHARED];
static struct { u32 writer, reader, since; } touched[SHARED];
static u32 shared_size, interval;

static __attribute__((noinline)) u8* shared_at(u64 address, u32 size, int write) {
  static u8 nowhere[16];
  if (address % size) { ++faults[MISALIGNED]; return nowhere; }
  if (address + size > shared_size) { ++faults[OUTSIDE]; return nowhere; }
  for (u64 k = address; k < address + size; ++k) {
    if (touched[k].since != interval) touched[k].writer = touched[k].reader = 0, touched[k].since = interval;
    if (touched[k].writer && touched[k].writer != thread) ++faults[RACE];
    if (write) {
      if (touched[k].reader && touched[k].reader != thread) ++faults[RACE];
      touched[k].writer = thread;
    } else {
      touched[k].reader = !touched[k].reader || touched[k].reader == thread ? thread : MANY;
    }
  }
  return shared + address;
}

// A thread from where it waits, in `kept`, to its next barrier: whether it came to one.
typedef int Thread(void* kept, const u32* tid, const u32* ntid, const u32* ctaid, const u32* nctaid);

static void run_block(Thread* of, u8* kept, u64 size, const u32* ntid, const u32* ctaid, const u32* grid) {
  const u32 threads = ntid[0] * ntid[1] * ntid[2], before = thread;
  u32 waiting = threads;
  u8 ended[1024] = {0};
  memset(kept, 0, size * threads);
  memset(shared, 0xa5, shared_size);
  while (waiting) {
    ++interval;
    waiting = 0;
    for (u32 i = 0; i < threads; ++i) {
      if (ended[i]) continue;
      const u32 tid[3] = {i % ntid[0], i / ntid[0] % ntid[1], i / ntid[0] / ntid[1]};
      thread = before + 1 + i;
      if (of(kept + size * i, tid, ntid, ctaid, grid))
        ++waiting;
      else
        ended[i] = 1;
    }
    if (waiting && waiting < threads) ++faults[BARRIER];
  }
  thread = before + threads;
}

static void run(Thread* of, u64 size, u32 shares, const u32* grid, const u32* ntid) {
  u32 ctaid[3];
  u8* kept = malloc(size * ntid[0] * ntid[1] * ntid[2]);
  thread = 0, shared_size = shares;
  memset(faults, 0, sizeof faults);
  if (!kept || shares > SHARED) abort();
  for (ctaid[2] = 0; ctaid[2] < grid[2]; ++ctaid[2])
    for (ctaid[1] = 0; ctaid[1] < grid[1]; ++ctaid[1])
      for (ctaid[0] = 0; ctaid[0] < grid[0]; ++ctaid[0]) run_block(of, kept, size, ntid, ctaid, grid);
  free(kept);
}
