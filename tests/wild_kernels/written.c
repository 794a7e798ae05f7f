/* Quantizers in C as their authors write them: loops, and vectors of SSE and AVX with loops for what they leave. */
#include <fenv.h>
#include <immintrin.h>
#include <math.h>
#include <stdint.h>

#define ARGS const float *x, long n, float s, int z, int lo, int hi, int32_t *q
#define LOOP(name, expression)                                                                                         \
    void name(ARGS) {                                                                                                  \
        for (long i = 0; i < n; i++) { expression; }                                                                   \
    }

static int clamp(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }
static float clampf(float v, float lo, float hi) { return v < lo ? lo : v > hi ? hi : v; }

LOOP(w_lrintf, q[i] = clamp((int)lrintf(x[i] / s) + z, lo, hi))
LOOP(w_lroundf, q[i] = clamp((int)lroundf(x[i] / s) + z, lo, hi))
LOOP(w_lroundf_long, long v = lroundf(x[i] / s) + z; q[i] = (int)(v < lo ? lo : v > hi ? hi : v))
LOOP(w_fmaf, q[i] = (int)clampf(rintf(fmaf(x[i], 1.0f / s, (float)z)), lo, hi))
LOOP(w_fmaf_half, q[i] = (int)clampf(floorf(fmaf(x[i], 1.0f / s, 0.5f)) + z, lo, hi))
LOOP(w_half_cast, q[i] = clamp((int)(x[i] / s + 0.5f) + z, lo, hi))
LOOP(w_half_signed, float v = x[i] / s; q[i] = clamp((int)(v + (v >= 0 ? 0.5f : -0.5f)) + z, lo, hi))
LOOP(w_half_double, q[i] = clamp((int)floor(x[i] / s + 0.5) + z, lo, hi))
LOOP(w_int8, q[i] = (int8_t)((int)rintf(x[i] / s) + z))
LOOP(w_uint8, q[i] = (uint8_t)clamp((int)roundf(x[i] / s) + z, lo, hi))
LOOP(w_double, q[i] = clamp((int)rint((double)x[i] / (double)s) + z, lo, hi))
LOOP(w_clamp_first, q[i] = (int)lrintf(fminf(fmaxf(x[i] / s, (float)(lo - z)), (float)(hi - z))) + z)
LOOP(w_fminmax, q[i] = (int)fminf(fmaxf(roundf(x[i] * (1.0f / s)) + z, lo), hi))
LOOP(w_magic,
     float m = 12582912.0f; float v = clampf(x[i] * (1.0f / s), (float)(lo - z), (float)(hi - z)); union {
         float f;
         int32_t i;
     } u = {v + m};
     q[i] = u.i - 0x4B400000 + z)
LOOP(w_nearbyint_double, q[i] = (int)fmin(fmax(nearbyint(x[i] * (1.0 / s)) + z, lo), hi))
LOOP(w_three, float inverse = (float)(_Float16)(1.0f / (float)(_Float16)s); float v = x[i] * inverse;
     q[i] = clamp((int)(v + (v < 0 ? -0.5f : 0.5f)) + z, lo, hi))

static inline __m256i avx2_codes(__m256 v, int z, int lo, int hi) {
    __m256i c = _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(z));
    return _mm256_min_epi32(_mm256_max_epi32(c, _mm256_set1_epi32(lo)), _mm256_set1_epi32(hi));
}

/* Divides; the rest by the same arithmetic. */
void w_avx2(ARGS) {
    long i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_si256((__m256i *)(q + i), avx2_codes(_mm256_div_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(s)), z, lo, hi));
    for (; i < n; i++) q[i] = clamp((int)((uint32_t)_mm_cvtss_si32(_mm_set_ss(x[i] / s)) + (uint32_t)z), lo, hi);
}

/* Multiplies by the inverse, ties to even; the rest divides, and ties go away from zero. */
void w_avx2_tail(ARGS) {
    long i = 0;
    __m256 inverse = _mm256_set1_ps(1.0f / s);
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_si256((__m256i *)(q + i), avx2_codes(_mm256_mul_ps(_mm256_loadu_ps(x + i), inverse), z, lo, hi));
    for (; i < n; i++) q[i] = clamp((int)roundf(x[i] * (1.0f / s)) + z, lo, hi);
}

/* Adds the zero point in the product. */
void w_avx2_fma(ARGS) {
    long i = 0;
    __m256 inverse = _mm256_set1_ps(1.0f / s), zero = _mm256_set1_ps((float)z);
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_si256((__m256i *)(q + i), avx2_codes(_mm256_fmadd_ps(_mm256_loadu_ps(x + i), inverse, zero), 0, lo, hi));
    for (; i < n; i++) q[i] = clamp(_mm_cvtss_si32(_mm_set_ss(fmaf(x[i], 1.0f / s, (float)z))), lo, hi);
}

static inline __m128i sse_codes(__m128 v, int z, int lo, int hi) {
    v = _mm_min_ps(_mm_max_ps(v, _mm_set1_ps((float)(lo - z))), _mm_set1_ps((float)(hi - z)));
    return _mm_add_epi32(_mm_cvtps_epi32(v), _mm_set1_epi32(z));
}

/* Limits in floating point, as min and max of SSE do: NaN is the second operand. */
void w_sse_clamp(ARGS) {
    long i = 0;
    for (; i + 4 <= n; i += 4)
        _mm_storeu_si128((__m128i *)(q + i), sse_codes(_mm_mul_ps(_mm_loadu_ps(x + i), _mm_set1_ps(1.0f / s)), z, lo, hi));
    for (; i < n; i++) q[i] = _mm_cvtsi128_si32(sse_codes(_mm_mul_ps(_mm_set1_ps(x[i]), _mm_set1_ps(1.0f / s)), z, lo, hi));
}

static inline int16_t packed(__m128i v, int z) {
    __m128i c = _mm_adds_epi16(_mm_packs_epi32(v, v), _mm_set1_epi16((short)z));
    return (int16_t)_mm_extract_epi16(c, 0);
}

/* packs, adds and packs again, all saturating. */
void w_sse_packs(ARGS) {
    for (long i = 0; i < n; i++) q[i] = clamp(packed(_mm_cvtps_epi32(_mm_set1_ps(x[i] / s)), z), lo, hi);
}

/* cvttps truncates: a half with the sign of x goes before. */
void w_sse_truncates(ARGS) {
    __m128 sign = _mm_set1_ps(-0.0f);
    for (long i = 0; i < n; i++) {
        __m128 v = _mm_mul_ps(_mm_set1_ps(x[i]), _mm_set1_ps(1.0f / s));
        v = _mm_add_ps(v, _mm_or_ps(_mm_and_ps(v, sign), _mm_set1_ps(0.5f)));
        q[i] = clamp((int)((uint32_t)_mm_cvtsi128_si32(_mm_cvttps_epi32(v)) + (uint32_t)z), lo, hi);
    }
}

/* The estimate of 1/s, of 12 bits. */
void w_rcpss(ARGS) {
    float inverse = _mm_cvtss_f32(_mm_rcp_ss(_mm_set_ss(s)));
    for (long i = 0; i < n; i++) q[i] = (int)clampf(rintf(x[i] * inverse) + z, lo, hi);
}

/* And with a step of Newton's. */
void w_rcpss_newton(ARGS) {
    float r = _mm_cvtss_f32(_mm_rcp_ss(_mm_set_ss(s)));
    volatile float product = s * r;
    r = r * (2.0f - product);
    for (long i = 0; i < n; i++) q[i] = (int)clampf(rintf(x[i] * r) + z, lo, hi);
}

/* _mm_round_ps in the direction of floor, after the half. */
void w_sse_floor(ARGS) {
    for (long i = 0; i < n; i++) {
        __m128 v = _mm_add_ps(_mm_div_ps(_mm_set1_ps(x[i]), _mm_set1_ps(s)), _mm_set1_ps(0.5f));
        q[i] = (int)clampf(_mm_cvtss_f32(_mm_floor_ps(v)) + z, lo, hi);
    }
}

/* AVX-512, with a mask for the rest: the same everywhere. Its conversion rounds to even by its own mode. */
__attribute__((target("avx512f"))) void w_avx512(ARGS) {
    for (long i = 0; i < n; i += 16) {
        __mmask16 m = n - i >= 16 ? 0xFFFF : (__mmask16)((1u << (n - i)) - 1);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), _mm512_set1_ps(1.0f / s));
        __m512i c = _mm512_add_epi32(_mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), _mm512_set1_epi32(z));
        c = _mm512_min_epi32(_mm512_max_epi32(c, _mm512_set1_epi32(lo)), _mm512_set1_epi32(hi));
        _mm512_mask_storeu_epi32(q + i, m, c);
    }
}

/* Aligned vectors of 16 bytes that multiply by the inverse; what comes before and after divides. */
void w_aligned(ARGS) {
    long i = 0;
    float inverse = 1.0f / s;
    for (; i < n && ((uintptr_t)(x + i) & 31); i++) q[i] = (int)clampf(rintf(x[i] / s) + z, lo, hi);
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) q[i + k] = (int)clampf(rintf(x[i + k] * inverse) + z, lo, hi);
    for (; i < n; i++) q[i] = (int)clampf(rintf(x[i] / s) + z, lo, hi);
}

/* All divides where x is not aligned, to 32 bytes or to 16. */
static void switched(ARGS, int bytes) {
    int aligned = ((uintptr_t)x & (bytes - 1)) == 0;
    for (long i = 0; i < n; i++) q[i] = (int)clampf(rintf(aligned ? x[i] * (1.0f / s) : x[i] / s) + z, lo, hi);
}
void w_misaligned(ARGS) { switched(x, n, s, z, lo, hi, q, 32); }
void w_misaligned_16(ARGS) { switched(x, n, s, z, lo, hi, q, 16); }

#define BACK(name, expression)                                                                                         \
    void name(const int32_t *q, long n, float s, int z, float *x) {                                                    \
        for (long i = 0; i < n; i++) x[i] = expression;                                                                \
    }
BACK(w_back, (float)(q[i] - z) * s)
BACK(w_back_fma, fmaf((float)q[i], s, -(float)z * s))
BACK(w_back_double, (float)((double)(q[i] - z) * (double)s))
BACK(w_back_half, (float)(_Float16)((float)(q[i] - z) * s))

#define FAKE(name, expression)                                                                                         \
    void name(const float *x, long n, float s, int z, int lo, int hi, float *y) {                                      \
        for (long i = 0; i < n; i++) { expression; }                                                                   \
    }
FAKE(w_fake, y[i] = (clampf(rintf(x[i] / s) + z, lo, hi) - z) * s)
FAKE(w_fake_int, y[i] = (float)(clamp((int)roundf(x[i] * (1.0f / s)) + z, lo, hi) - z) * s)
