/* Quantizers in C, as people write them; the compiler may contract a product and a sum, as it does by default. */
#include <math.h>
#include <stdint.h>

#define KERNEL(name, type, expression)                                                       \
  void name(const type* x, long n, type s, int z, int lo, int hi, int32_t* q) {              \
    for (long i = 0; i < n; i++) { expression; }                                             \
  }

static int clamp(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }
static float clampf(float v, float lo, float hi) { return fminf(fmaxf(v, lo), hi); }

KERNEL(c_lrintf, float, q[i] = (int)clampf(rintf(x[i] / s) + z, lo, hi))
KERNEL(c_roundf, float, q[i] = (int)clampf(roundf(x[i] / s) + z, lo, hi))
KERNEL(c_floor_contracted, float, q[i] = (int)clampf(floorf(x[i] * (1.0f / s) + 0.5f) + z, lo, hi))
KERNEL(c_fused, float, q[i] = (int)clampf(rintf(x[i] * (1.0f / s) + z), lo, hi))
KERNEL(c_double, float, q[i] = (int)clampf((float)rint((double)x[i] / s) + z, lo, hi))
KERNEL(c_half_double, float, q[i] = (int)clampf((float)floor(x[i] / s + 0.5) + z, lo, hi))
KERNEL(c_truncated, float, q[i] = clamp((int)(x[i] / s) + z, lo, hi))
KERNEL(c_away_int, float, float v = x[i] / s; q[i] = clamp((int)(v < 0 ? v - 0.5f : v + 0.5f) + z, lo, hi))
