// A stand-in for the driver of a GPU: the functions that the launcher calls, as strict as the real ones about what they
// are given. What a module or a kernel is, and what a launch does, is asked of the test.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, INVALID_VALUE, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE, INVALID_IMAGE = 200,
       INVALID_CONTEXT, INVALID_HANDLE = 400, NOT_FOUND = 500, CAPTURING = 900 };
enum { DEVICES = 2, DEPTH = 8, FUNCTIONS = 4096 };

// A module by its image, 0 for none; a kernel of a module, 0 for none; a status of a launch.
typedef int64_t (*Load)(const char* image);
typedef int64_t (*Find)(int64_t module, const char* name);
typedef int (*Run)(int device, int64_t function, const uint32_t* sizes, uint64_t stream, const void* job);
static Load load;
static Find find;
static Run run;
static int started, refuses, captures, depth, stack[DEPTH];
static struct { int device; int64_t id; } known[2][FUNCTIONS];
static int counts[2];

// Begin anew. `status` is what the next load or launch answers, `capturing` whether streams are being captured.
void stand_in(Load load_, Find find_, Run run_) {
  load = load_, find = find_, run = run_;
  started = refuses = captures = depth = counts[0] = counts[1] = 0;
}
void stand_in_says(int status, int capturing) { refuses = status, captures = capturing; }
// Launches do nothing from now on, for who measures what comes before.
void stand_in_quiet(void) { run = NULL; }
int stand_in_depth(void) { return depth; }

static void* handle(int kind, int device, int64_t id) {
  const int at = counts[kind]++;
  if (at >= FUNCTIONS) abort();
  known[kind][at].device = device, known[kind][at].id = id;
  return &known[kind][at];
}
static int own(int kind, const void* p) {
  const char *first = (const char*)known[kind], *end = (const char*)(known[kind] + counts[kind]);
  return (const char*)p >= first && (const char*)p < end && ((const char*)p - first) % sizeof known[kind][0] == 0;
}
static int device_of(const void* p) { return *(const int*)p; }
static int64_t id_of(const void* p) { int64_t id; memcpy(&id, (const char*)p + 8, 8); return id; }

int cuInit(unsigned flags) {
  started = 1;
  return flags ? INVALID_VALUE : refuses;
}
int cuGetErrorName(int status, const char** name) {
  *name = status == INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE" : status == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : NULL;
  return *name ? SUCCESS : INVALID_VALUE;
}
int cuGetErrorString(int status, const char** text) {
  *text = status == INVALID_IMAGE ? "device kernel image is invalid" : NULL;
  return *text ? SUCCESS : INVALID_VALUE;
}
int cuDeviceGet(int* device, int ordinal) {
  if (!started) return NOT_INITIALIZED;
  if (ordinal < 0 || ordinal >= DEVICES) return INVALID_DEVICE;
  *device = ordinal + 40;  // no more the same number than need be
  return SUCCESS;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device < 40 || device >= 40 + DEVICES) return INVALID_DEVICE;
  *context = (void*)(uintptr_t)(0x100 + device - 40);
  return SUCCESS;
}
int cuCtxPushCurrent_v2(void* context) {
  const uintptr_t device = (uintptr_t)context - 0x100;
  if (device >= DEVICES) return INVALID_CONTEXT;
  if (depth == DEPTH) abort();
  stack[depth++] = (int)device;
  return SUCCESS;
}
int cuCtxPopCurrent_v2(void** context) {
  if (!depth) return INVALID_CONTEXT;
  *context = (void*)(uintptr_t)(0x100 + stack[--depth]);
  return SUCCESS;
}
int cuStreamIsCapturing(void* stream, int* status) {
  (void)stream;
  *status = captures;
  return SUCCESS;
}
int cuModuleLoadData(void** module, const void* image) {
  if (!depth) return INVALID_CONTEXT;
  if (captures) return CAPTURING;
  if (refuses) return refuses;
  const int64_t id = load(image);
  if (!id) return INVALID_IMAGE;
  *module = handle(0, stack[depth - 1], id);
  return SUCCESS;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (!depth) return INVALID_CONTEXT;
  if (!own(0, module)) return INVALID_HANDLE;
  const int64_t id = find(id_of(module), name);
  if (!id) return NOT_FOUND;
  *function = handle(1, device_of(module), id);
  return SUCCESS;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared, void* stream, void** given, void** extra) {
  const uint32_t sizes[6] = {gx, gy, gz, tx, ty, tz};
  if (!depth) return INVALID_CONTEXT;
  if (!own(1, function) || device_of(function) != stack[depth - 1]) return INVALID_HANDLE;
  if (refuses) return refuses;
  for (int i = 0; i < 6; ++i)
    if (!sizes[i]) return INVALID_VALUE;
  if (gx > 0x7fffffff || gy > 65535 || gz > 65535 || tx > 1024 || ty > 1024 || tz > 64 ||
      (uint64_t)tx * ty * tz > 1024 || shared || !given || extra)
    return INVALID_VALUE;
  if (!run) return SUCCESS;
  return run(stack[depth - 1], id_of(function), sizes, (uint64_t)(uintptr_t)stream, given[0]);
}
