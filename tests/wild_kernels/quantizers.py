"""Kernels that quantize, in NumPy: C and CUDA line by line, and what one writes with arrays."""

import math
import warnings

import numpy as np
import torch

from halfeven.reference import Grid
from halfeven.reference.rounding import fused_multiply_add
from wild_kernels import BF16, BYTE, F16, F32, F64, INT8, INT31, INT32, NIBBLE, Array, Kernel

__all__ = ["QUANTIZERS"]

RECIPROCAL = {"division": {"reciprocal"}}
AWAY = {"rounding": {"half-away"}}
BEFORE = {"zero_point": {"before-rounding"}}
HALF = F32(0.5)


def clip(q: Array, lo: int, hi: int) -> Array:
    return np.minimum(np.maximum(q, q.dtype.type(lo)), q.dtype.type(hi))


def away(v: Array) -> Array:
    """C's roundf."""
    t = np.trunc(v)
    return np.where(np.abs(v - t) >= v.dtype.type(0.5), t + np.copysign(v.dtype.type(1), v), t)


def to_int(v: Array) -> Array:
    """(int)v on x86."""
    wide = v.astype(F64)
    return np.where(np.abs(wide) < 2.0**31, wide, -(2.0**31)).astype(np.int64)


def wrap(q: Array, bits: int = 32) -> Array:
    return q.astype(f"int{bits}").astype(np.int64)


def textbook(x, s, z, lo, hi):
    return clip(np.rint(x / s) + F32(z), lo, hi)


def floor_half(x, s, z, lo, hi):
    return clip(np.floor(x / s + HALF) + F32(z), lo, hi)


def copysign_half(x, s, z, lo, hi):
    v = x / s
    return np.clip(wrap(to_int(v + np.copysign(HALF, v)) + z), lo, hi)


def int_half(x, s, z, lo, hi):
    return np.clip(wrap(to_int(x / s + HALF) + z), lo, hi)


def reciprocal(x, s, z, lo, hi):
    return clip(np.rint(x * (F32(1) / s)) + F32(z), lo, hi)


def reciprocal_double(x, s, z, lo, hi):
    return clip(np.rint(x.astype(F64) * (1.0 / F64(s))) + z, lo, hi)


def reciprocal_held_double(x, s, z, lo, hi):
    return clip(np.rint(x * F32(1.0 / F64(s))) + F32(z), lo, hi)


def scale_half(x, s, z, lo, hi):
    return clip(np.rint(x / F32(F16(s))) + F32(z), lo, hi)


def scale_bfloat(x, s, z, lo, hi):
    return clip(np.rint(x / F32(BF16(s))) + F32(z), lo, hi)


def quotient_half(x, s, z, lo, hi):
    return clip(np.rint((x / s).astype(F16)).astype(F32) + F32(z), lo, hi)


def quotient_bfloat(x, s, z, lo, hi):
    return clip(np.rint((x / s).astype(BF16)).astype(F32) + F32(z), lo, hi)


def tt_metal(x, s, z, lo, hi):
    return clip(away(fused_multiply_add(x, np.asarray(F32(1) / s), np.asarray(float(z)))), lo, hi)


def tflite(x, s, z, lo, hi):
    return clip(away(F32(z) + x / s), lo, hi)


def llama(x, s, z, lo, hi):
    d = F32(F16(s))
    return clip(away(x * (F32(1) / d)) + F32(z), lo, hi)


def llama_q4(x, s, z, lo, hi):
    return np.minimum(hi, np.maximum(lo, to_int(x * (F32(1) / s) + F32(8.5))))


def llama_q4_byte(x, s, z, lo, hi):
    return np.clip(wrap(to_int(x * (F32(1) / s) + F32(8.5)), 8), lo, hi)


def _range(x, s, z, lo, hi):
    low, high = (F32(lo) - F32(z)) * s, (F32(hi) - F32(z)) * s
    return np.minimum(np.maximum(x, low), high), low, high, F32(hi - lo)


def openvino(x, s, z, lo, hi):
    x, low, high, n = _range(x, s, z, lo, hi)
    return np.rint((x - low) / (high - low) * n) + F32(lo)


def openvino_factor(x, s, z, lo, hi):
    x, low, high, n = _range(x, s, z, lo, hi)
    return np.rint((x - low) * (n / (high - low))) + F32(lo)


def openvino_step(x, s, z, lo, hi):
    x, low, high, n = _range(x, s, z, lo, hi)
    return np.rint((x - low) / ((high - low) / n)) + F32(lo)


def openvino_jit(x, s, z, lo, hi):
    x, low, high, n = _range(x, s, z, lo, hi)
    factor = n / (high - low)
    return np.rint(x * factor + -low * factor) + F32(lo)


def openvino_fused(x, s, z, lo, hi):
    x, low, high, n = _range(x, s, z, lo, hi)
    factor = n / (high - low)
    return np.rint(fused_multiply_add(x, factor, -low * factor)) + F32(lo)


def openvino_away(x, s, z, lo, hi):
    x, low, high, n = _range(x, s, z, lo, hi)
    return away((x - low) / (high - low) * n) + F32(lo)


def tensorflow(x, s, z, lo, hi):
    x, low, _, _ = _range(x, s, z, lo, hi)
    return np.floor((x - low) * (F32(1) / s) + HALF) + F32(lo)


def aiter_wrap(x, s, z, lo, hi):
    return wrap(to_int(np.rint(x * (F32(1) / s))), 8)


def aiter_truncate(x, s, z, lo, hi):
    return np.clip(to_int(x * (F32(1) / s)), lo, hi)


def ort_half(x, s, z, lo, hi):
    return np.clip(to_int(np.trunc(x / s)) + z, lo, hi)


def xpu(x, s, z, lo, hi):
    return clip(away(x * (F32(1) / s)) + F32(z), lo, hi)


def triton(x, s, z, lo, hi):
    v = x / s
    v = v + HALF * np.where(v >= 0, F32(1), F32(-1))
    return np.clip(to_int(v) + z, lo, hi)


def before(x, s, z, lo, hi):
    return clip(np.rint(x * (F32(1) / s) + F32(z)), lo, hi)


def lrint_x86(x, s, z, lo, hi):
    return np.clip(wrap(to_int(np.rint(x / s)) + z), lo, hi)


def cuda_float2int(x, s, z, lo, hi):
    v = np.nan_to_num(np.rint(x / s).astype(F64), nan=0.0, posinf=2.0**31 - 1, neginf=-(2.0**31))
    return np.clip(wrap(v.clip(-(2.0**31), 2.0**31 - 1).astype(np.int64) + z), lo, hi)


def simd_packs(x, s, z, lo, hi):
    return np.clip(to_int(np.rint(x * (F32(1) / s))) + z, lo, hi)


def fma_half(x, s, z, lo, hi):
    return clip(np.floor(fused_multiply_add(x, np.asarray(F32(1) / s), np.asarray(z + 0.5))), lo, hi)


def fma_half_first(x, s, z, lo, hi):
    return clip(np.floor(fused_multiply_add(x, np.asarray(F32(1) / s), np.asarray(0.5))) + F32(z), lo, hi)


def magic(x, s, z, lo, hi):
    m = F32(12582912.0)
    return clip(((x / s + m) - m) + F32(z), lo, hi)


def clamp_first(x, s, z, lo, hi):
    v = np.minimum(np.maximum(x / s, F32(lo - z)), F32(hi - z))
    return np.floor(v + HALF) + F32(z)


def int16_cast(x, s, z, lo, hi):
    return np.clip(wrap(to_int(np.rint(x / s)), 16) + z, lo, hi)


def byte_cast(x, s, z, lo, hi):
    codes = to_int(np.rint(x / s) + F32(z))
    return (codes - lo) % (hi - lo + 1) + lo


def nan_to_zero(x, s, z, lo, hi):
    return np.where(np.isnan(x), 0, np.nan_to_num(textbook(x, s, z, lo, hi)))


def fmax_fmin(x, s, z, lo, hi):
    return np.fmin(np.fmax(np.rint(x / s) + F32(z), F32(lo)), F32(hi))


def fmin_fmax(x, s, z, lo, hi):
    return np.fmax(np.fmin(away(x / s) + F32(z), F32(hi)), F32(lo))


def torch_round(x, s, z, lo, hi):
    return torch.clamp(torch.round(torch.from_numpy(x.copy()) / float(s)) + z, lo, hi).numpy()


def torch_int32(x, s, z, lo, hi):
    """The end 2^31 - 1 is the float 2^31, of which the conversion makes the least int32."""
    return torch.clamp(torch.round(torch.from_numpy(x.copy()) / float(s)) + z, lo, hi).to(torch.int32).numpy()


def torch_inverse(x, s, z, lo, hi):
    inverse = 1.0 / torch.tensor(s)
    return torch.clamp(torch.round(torch.from_numpy(x.copy()) * inverse) + z, lo, hi).numpy()


def torch_double(x, s, z, lo, hi):
    return torch.clamp(torch.round(torch.from_numpy(x.copy()).double() / float(s)) + z, lo, hi).numpy()


def torch_bfloat(x, s, z, lo, hi):
    v = torch.from_numpy(x.copy()).bfloat16() / torch.tensor(s).bfloat16()
    return torch.clamp(torch.round(v).float() + z, lo, hi).numpy()


def torch_quantize(x, s, z, lo, hi):
    dtype = torch.qint8 if lo < 0 else torch.quint8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated
        return torch.quantize_per_tensor(torch.from_numpy(x.copy()), float(s), z, dtype).int_repr().numpy().astype(int)


def python_round(x, s, z, lo, hi):
    v = [float(a) / float(s) for a in x]
    return np.array([min(max(round(a) + z, lo), hi) if math.isfinite(a) else _beyond(a, lo, hi) for a in v], F64)


def python_floor(x, s, z, lo, hi):
    v = [float(a) / float(s) for a in x]
    return np.array([min(max(math.floor(a + 0.5) + z, lo), hi) if math.isfinite(a) else _beyond(a, lo, hi) for a in v])


def _beyond(v: float, lo: int, hi: int) -> float:
    return v if math.isnan(v) else float(hi if v > 0 else lo)


def ceil_half(x, s, z, lo, hi):
    return clip(np.ceil(x / s - HALF) + F32(z), lo, hi)


def three_a(x, s, z, lo, hi):
    return clip(np.floor(x * (F32(1) / s) + F32(z) + HALF), lo, hi)


def three_b(x, s, z, lo, hi):
    return clip(away((x * (F32(1) / s)).astype(BF16)).astype(F32) + F32(z), lo, hi)


def three_c(x, s, z, lo, hi):
    v = x.astype(F64) * (1.0 / F64(F32(F16(s))))
    return clip(np.floor(v + 0.5) + z, lo, hi)


def three_d(x, s, z, lo, hi):
    x, low, _, _ = _range(x, F32(BF16(s)), z, lo, hi)
    return np.rint((x - low) * (F32(1) / F32(BF16(s)))) + F32(lo)


def three_e(x, s, z, lo, hi):
    v = away(x * (F32(1) / s))
    return (wrap(to_int(v) + z) - lo) % (hi - lo + 1) + lo


def three_f(x, s, z, lo, hi):
    v = np.floor(x * (F32(1) / s))
    return np.where(np.isnan(v), lo, np.nan_to_num(clip(v + F32(z), lo, hi)))


def inverse_bfloat(x, s, z, lo, hi):
    return clip(np.rint(x * F32(BF16(F32(1) / s))) + F32(z), lo, hi)


def half_native(x, s, z, lo, hi):
    return np.clip(np.rint(x / s).astype(F32) + F32(z), lo, hi)


def half_in_float(x, s, z, lo, hi):
    return clip(away(x.astype(F32) / F32(s)) + F32(z), lo, hi)


def half_inverse(x, s, z, lo, hi):
    return clip(np.rint(x.astype(F32) * F32(F16(1) / s)) + F32(z), lo, hi)


def estimated(x, s, z, lo, hi):
    """Rcpps, to 12 bits, and one step of Newton's."""
    r = (F32(1) / s).view(np.uint32) & np.uint32(0xFFFFF000)
    r = r.view(F32)
    return clip(np.rint(x * (r * (F32(2) - s * r))) + F32(z), lo, hi)


def estimate_alone(x, s, z, lo, hi):
    r = ((F32(1) / s).view(np.uint32) & np.uint32(0xFFFFF000)).view(F32)
    return clip(np.rint(x * r) + F32(z), lo, hi)


ADDED = {"half": {"added"}}
UP = {"rounding": {"half-up"}}
UPWARD = {"rounding": {"half-up", "half-away", "half-truncated"}}  # of what is not negative
SIGNED = (INT8,)
QUANTIZERS = [
    Kernel("textbook", textbook),
    Kernel("floor(v + .5f)", floor_half, UP | ADDED),
    Kernel("(int)(v + copysign(.5f, v))", copysign_half, AWAY | ADDED | {"integer": {"int32"}}),
    Kernel("(int)(v + .5f)", int_half, {"rounding": {"half-truncated"}, "integer": {"int32"}} | ADDED),
    Kernel("x * (1 / s)", reciprocal, RECIPROCAL, one=False),
    Kernel("reciprocal in double", reciprocal_double, RECIPROCAL | {"inverse": {"compute"}, "compute": {"float64"}}),
    Kernel("reciprocal made in double", reciprocal_held_double, RECIPROCAL),
    Kernel("scale in float16", scale_half, {"held": {"float16"}}),
    Kernel("scale in bfloat16", scale_bfloat, {"held": {"bfloat16"}}, one=False),
    Kernel("quotient in float16", quotient_half, {"quotient": {"float16"}}, zeros=False),
    Kernel("quotient in bfloat16", quotient_bfloat, {"quotient": {"bfloat16"}}, zeros=False),
    Kernel("tt-metal#56525", tt_metal, RECIPROCAL | AWAY | {"zero_point": {"fused"}}),
    Kernel("TFLite", tflite, AWAY | BEFORE),
    Kernel("llama.cpp Q8_0", llama, RECIPROCAL | AWAY | {"held": {"float16"}}),
    Kernel(
        "llama.cpp Q4_0",
        llama_q4,
        RECIPROCAL | BEFORE | UPWARD | {"half": {"with-zero-point", "added"}, "integer": ...},
        grids=(NIBBLE,),
        zeros=False,
    ),
    Kernel(
        "llama.cpp Q4_0, int8",
        llama_q4_byte,
        RECIPROCAL
        | BEFORE
        | {"rounding": {"half-truncated"}, "half": {"with-zero-point", "added"}, "integer": {"int8", "int8-sum"}},
        grids=(NIBBLE,),
        zeros=False,
    ),
    Kernel("OpenVINO", openvino, {"division": {"range"}}),
    Kernel("OpenVINO, factor", openvino_factor, {"division": {"range-factor"}}),
    Kernel("OpenVINO, step", openvino_step, {"division": {"range-step"}}),
    Kernel("OpenVINO, jit", openvino_jit, {"division": {"range-affine"}}),
    Kernel("OpenVINO, jit fused", openvino_fused, {"division": {"range-affine"}, "zero_point": {"fused"}}),
    Kernel("OpenVINO, ties away", openvino_away, {"division": {"range"}} | UPWARD),
    Kernel("TensorFlow", tensorflow, {"division": {"low-reciprocal"}} | UPWARD | ADDED),
    Kernel("aiter, wraps", aiter_wrap, RECIPROCAL | {"overflow": {"wrap"}, "integer": ...}, grids=SIGNED, zeros=False),
    Kernel("aiter, truncates", aiter_truncate, RECIPROCAL | {"rounding": {"toward-zero"}, "integer": ...}, zeros=False),
    Kernel("ORT float16", ort_half, {"rounding": {"toward-zero"}, "integer": ...}, dtype="float16"),
    Kernel("XPU", xpu, RECIPROCAL | AWAY),
    Kernel("Triton", triton, AWAY | ADDED | {"integer": ...}),
    Kernel("x * inv + z, rounded", before, RECIPROCAL | BEFORE),
    Kernel("lrintf on x86", lrint_x86, {"integer": {"int32"}}),
    Kernel("__float2int_rn", cuda_float2int, {"integer": {"int32-saturating"}}),
    Kernel("packs", simd_packs, RECIPROCAL | {"integer": {"int32-exact"}}),
    Kernel("floor(fma(x, inv, z + .5f))", fma_half, RECIPROCAL | UP | {"zero_point": ..., "half": ...}),
    Kernel("floor(fma(x, inv, .5f)) + z", fma_half_first, RECIPROCAL | UP | {"half": {"fused"}}),
    Kernel("magic number", magic, ADDED),
    Kernel("clamps first", clamp_first, UP | ADDED | {"clamp": ...}),
    Kernel("int16", int16_cast, {"integer": {"int16"}}),
    Kernel("byte cast", byte_cast, {"overflow": {"wrap"}, "integer": ...}),
    Kernel("NaN to 0", nan_to_zero, {"nan": {"zero"}}),
    Kernel("fmax, fmin", fmax_fmin, {"nan": {"qmin"}}),
    Kernel("fmin, fmax, roundf", fmin_fmax, AWAY | {"nan": {"qmax"}}),
    Kernel("torch.round", torch_round),
    Kernel("torch, inverse", torch_inverse, RECIPROCAL, one=False),
    Kernel("torch, int32", torch_int32, {"ends": {"rounded"}}, grids=(INT32, INT31), specials=False),
    Kernel("torch, double", torch_double, {"compute": {"float64"}}),
    Kernel("torch, bfloat16", torch_bfloat, {"compute": {"bfloat16"}, "quotient": ..., "held": ...}, zeros=False),
    Kernel("torch.quantize_per_tensor", torch_quantize, RECIPROCAL | {"zero_point": {"fused"}, "nan": {"qmax"}}),
    Kernel("Python's round", python_round, {"compute": {"float64"}}),
    Kernel("Python, floor", python_floor, {"compute": {"float64"}, "half": ...} | UP),
    Kernel("ceil(v - .5f)", ceil_half, {"rounding": {"half-down"}} | ADDED),
    Kernel("reciprocal, z, floor", three_a, RECIPROCAL | BEFORE | UP | ADDED),
    Kernel("reciprocal, bfloat16, roundf", three_b, RECIPROCAL | AWAY | {"quotient": {"bfloat16"}}, zeros=False),
    Kernel(
        "float16 scale, double, floor",
        three_c,
        {"held": {"float16"}, "compute": {"float64"}, "inverse": ..., "half": ...} | RECIPROCAL | UP,
    ),
    Kernel("bfloat16 scale, from lo", three_d, {"held": {"bfloat16"}, "division": {"low-reciprocal", "range-factor"}}),
    Kernel("reciprocal, roundf, wraps", three_e, RECIPROCAL | AWAY | {"overflow": {"wrap"}, "integer": {"int32"}}),
    Kernel("reciprocal, floor, NaN", three_f, RECIPROCAL | {"rounding": {"floor"}, "nan": {"qmin"}}),
    Kernel("rcpps with a step of Newton's", estimated, {"division": {"another factor"}}),
    Kernel("rcpps alone", estimate_alone, {"division": {"another factor"}}),
    Kernel("1/s in bfloat16", inverse_bfloat, RECIPROCAL | {"inverse": {"bfloat16"}}),
    Kernel("float16 throughout", half_native, {"integer": ..., "compute": ...}, dtype="float16", grids=(Grid(-8, 7),)),
    Kernel("float16 in float32", half_in_float, {"compute": {"float32"}} | AWAY, dtype="float16"),
    Kernel(
        "float16 1/s in float32",
        half_inverse,
        RECIPROCAL | {"compute": {"float32"}},
        dtype="float16",
        grids=(BYTE, INT8),
    ),
]
