"""Habits of those who write for CUDA, Metal, NEON, OpenCL, Hexagon and plain Python, one or several to a kernel."""

import math

import numpy as np
import torch

from halfeven.reference.rounding import fused_multiply_add
from wild_kernels import BF16, BYTE, F16, F32, F64, INT8, Array, Kernel
from wild_kernels.quantizers import ADDED, AWAY, BEFORE, HALF, RECIPROCAL, UP, UPWARD, away, clip, to_int, wrap

__all__ = ["HABITS", "HABITUAL_DECODERS", "READ_OTHERWISE", "UNKNOWN"]

_ZERO, _LOWEST = {"nan": {"zero"}}, {"nan": {"qmin"}}
_AT_ZERO = {"nan": {"zero-point"}}
_TOWARD = {"rounding": {"toward-zero"}}


def copysigned(v: Array) -> Array:
    return np.trunc(v + np.copysign(v.dtype.type(0.5), v))


def no_nan(x, q, code=0):
    return np.where(np.isnan(x), code, np.nan_to_num(q))


def saturated(v: Array, bits: int = 32) -> Array:
    """A conversion of CUDA, Arm and OpenCL's ``_sat``: to the ends of the type, and NaN to 0."""
    end = 2.0 ** (bits - 1)
    return np.clip(np.nan_to_num(v.astype(F64), nan=0.0, posinf=end, neginf=-end), -end, end - 1).astype(np.int64)


def half_scale_away(x, s, z, lo, hi):
    return no_nan(x, clip(copysigned(x * (F32(1) / F32(F16(s)))) + F32(z), lo, hi))


def half_scale_away_divided(x, s, z, lo, hi):
    return no_nan(x, clip(copysigned(x / F32(F16(s))) + F32(z), lo, hi))


def half_reciprocal_away(x, s, z, lo, hi):
    return clip(away(x * F32(F16(F32(1) / s))) + F32(z), lo, hi)


def xnnpack_magic(x, s, z, lo, hi):
    """Limits, adds 1.5 * 2^23, and subtracts its bits less the zero point as integers."""
    magic = F32(12582912.0)
    v = np.fmin(np.fmax(x * (F32(1) / s), F32(lo - z)), F32(hi - z)) + magic
    return v.view(np.int32).astype(np.int64) - (magic.view(np.int32).astype(np.int64) - z)


def xnnpack_neon(x, s, z, lo, hi):
    q = saturated(np.rint(x * (F32(1) / s))).clip(-(2**15), 2**15 - 1) + z
    return q.clip(-(2**15), 2**15 - 1).clip(lo, hi)


def sse_packs(x, s, z, lo, hi):
    q = to_int(np.rint(x / s)).clip(-(2**15), 2**15 - 1) + z
    return q.clip(-(2**15), 2**15 - 1).clip(lo, hi)


def opencl_sat_rte(x, s, z, lo, hi):
    return saturated(np.rint(x / s + F32(z))).clip(lo, hi)


def opencl_sat(x, s, z, lo, hi):
    """``convert_char_sat`` truncates where no mode is given."""
    return saturated(np.trunc(x * (F32(1) / s) + F32(z))).clip(lo, hi)


def metal_round(x, s, z, lo, hi):
    return no_nan(x, clip(away(x / s) + F32(z), lo, hi), z)


def two_sums(x, s, z, lo, hi):
    return to_int(x * (F32(1) / s) + F32(z) + HALF).clip(lo, hi)


def floor_of_two_sums(x, s, z, lo, hi):
    return clip(np.floor(x / s + F32(z) + HALF), lo, hi)


def clamp_then_zero(x, s, z, lo, hi):
    """Clamps before the zero point, and lets the byte wrap."""
    q = clip(np.rint(x / s), lo, hi)
    return (no_nan(x, q).astype(np.int64) + z - lo) % (hi - lo + 1) + lo


def llrint(x, s, z, lo, hi):
    wide = np.rint(x.astype(F64) / F64(s))
    q = np.where(np.abs(wide) < 2.0**63, wide, -(2.0**63))
    return np.clip(np.where(q <= -(2.0**62), -(2.0**62), np.minimum(q, 2.0**62)).astype(np.int64) + z, lo, hi)


def bfloat_reciprocal_up(x, s, z, lo, hi):
    return clip(np.floor(x * F32(BF16(F32(1) / s)) + HALF) + F32(z), lo, hi)


def truncates_double(x, s, z, lo, hi):
    v = x.astype(F64) / F64(s)
    return np.where(np.isfinite(v), np.trunc(v + np.copysign(0.5, v)), v).clip(lo - z, hi - z) + z


def hopper(x, s, z, lo, hi):
    """A float16 scale, a fused zero point, ties away."""
    inverse = F32(1) / F32(F16(s))
    return clip(away(fused_multiply_add(x, np.asarray(inverse), np.asarray(float(z)))), lo, hi)


def floor_int64(x, s, z, lo, hi):
    return no_nan(x, clip(np.floor(x * (F32(1) / s) + HALF) + F32(z), lo, hi), hi)


def narrow(x, s, z, lo, hi):
    return clip(np.rint(x / s) + F32(z), lo + 1, hi)


def zero_ignored(x, s, z, lo, hi):
    return clip(np.rint(x / s), lo, hi)


def zero_subtracted(x, s, z, lo, hi):
    return clip(np.rint(x / s) - F32(z), lo, hi)


def flushed(x, s, z, lo, hi):
    tiny = np.finfo(F32).tiny
    return clip(np.rint(np.where(np.abs(x) < tiny, F32(0), x) / s) + F32(z), lo, hi)


def fixed_point(x, s, z, lo, hi):
    """A multiplier of 16 bits and a shift."""
    m, e = math.frexp(1.0 / float(s))
    return np.rint(np.ldexp(x.astype(F64) * round(m * 2**15), e - 15)).clip(lo - z, hi - z) + z


def stepwise(x, s, z, lo, hi):
    """Python, with an int of what is 0.5 larger in magnitude."""
    found = []
    for a in x:
        v = float(a) / float(s)
        q = v if not math.isfinite(v) else float(int(v + (0.5 if v > 0 else -0.5)))
        found.append(float(z) if math.isnan(q) else min(max(q + z, lo), hi))
    return np.array(found)


def numpy_round_half(x, s, z, lo, hi):
    return clip(np.round((x / s).astype(F16)).astype(F32) + F32(z), lo, hi)


def torch_half_inverse(x, s, z, lo, hi):
    inverse = (1.0 / torch.tensor(s)).half().float()
    return torch.clamp(torch.round(torch.from_numpy(x.copy()) * inverse) + z, lo, hi).numpy()


def torch_int8_cast(x, s, z, lo, hi):
    v = torch.round(torch.from_numpy(x.copy()) / torch.tensor(s)) + z
    return torch.nan_to_num(v, 0.0).clamp(lo, hi).to(torch.int32).numpy()


def half_native_reciprocal(x, s, z, lo, hi):
    inverse = F16(1) / s
    return clip(np.rint(x * inverse).astype(F32) + F32(z), lo, hi)


def bfloat_in_float(x, s, z, lo, hi):
    return clip(away(x.astype(F32) * (F32(1) / F32(s))) + F32(z), lo, hi)


def saturate_wrap(x, s, z, lo, hi):
    """Two's complement of 2^31 wrapped by the zero point."""
    return np.clip(wrap(saturated(np.rint(x * (F32(1) / s))) + z), lo, hi)


def ceil_down(x, s, z, lo, hi):
    return no_nan(x, clip(np.ceil(x * (F32(1) / s) - HALF) + F32(z), lo, hi), lo)


def range_low_first(x, s, z, lo, hi):
    low = (F32(lo) - F32(z)) * s
    return clip(np.floor((np.minimum(np.maximum(x, low), (F32(hi) - F32(z)) * s) - low) / s + HALF) + F32(lo), lo, hi)


def numpy_int32_zero(x, s, z, lo, hi):
    """NumPy adds a float32 and an int32 array in float64."""
    return clip(np.round(x / s + np.full(x.shape, z, np.int32)), lo, hi)


def numpy_int32_zero_reciprocal(x, s, z, lo, hi):
    return no_nan(x, clip(np.round(x * (F32(1) / s) + np.full(x.shape, z, np.int32)), lo, hi), lo)


def numpy_floor_int32_zero(x, s, z, lo, hi):
    return clip(np.floor(x / s + np.full(x.shape, z, np.int32) + 0.5), lo, hi)


def c_half_double(x, s, z, lo, hi):
    """floor(x / s + z + 0.5) in C: the quotient and the zero point are float, and 0.5 without an f is not."""
    return no_nan(x, clip(np.floor((x / s + F32(z)).astype(np.float64) + 0.5), lo, hi), 0)


HABITS = [
    Kernel("half_scale_away", half_scale_away, RECIPROCAL | AWAY | ADDED | _ZERO | {"held": {"float16"}}),
    Kernel("half_scale_away, divides", half_scale_away_divided, AWAY | ADDED | _ZERO | {"held": {"float16"}}),
    Kernel("1/s in half, roundf", half_reciprocal_away, RECIPROCAL | AWAY | {"inverse": {"float16"}}),
    Kernel("XNNPACK, magic", xnnpack_magic, RECIPROCAL | {"clamp": ..., "nan": ..., "half": ...}),
    Kernel("XNNPACK, vcvtnq", xnnpack_neon, RECIPROCAL | _AT_ZERO | {"integer": ...}),
    Kernel("SSE2, packs", sse_packs, {"integer": {"int32-exact"}, "nan": ...}),
    Kernel("convert_char_sat_rte", opencl_sat_rte, BEFORE | _ZERO | {"integer": ...}),
    Kernel("convert_char_sat", opencl_sat, RECIPROCAL | BEFORE | _TOWARD | _ZERO | {"integer": ...}),
    Kernel("Metal, round", metal_round, AWAY | _AT_ZERO),
    Kernel(
        "(int)(x * inv + z + .5f)",
        two_sums,
        RECIPROCAL | BEFORE | ADDED | {"rounding": {"half-truncated"}, "integer": ...},
    ),
    # One sum or two: they part at z = -1 and the float below x / s = 0.5 alone.
    Kernel("floor(x / s + z + .5f)", floor_of_two_sums, UP | {"zero_point": ..., "half": {"added", "with-zero-point"}}),
    Kernel("clamps, adds, wraps", clamp_then_zero, {"clamp": ..., "overflow": {"wrap"}, "nan": ..., "integer": ...}),
    Kernel("llrint in double", llrint, {"compute": {"float64"}, "integer": {"int64", "int64-sum"}, "nan": ...}),
    Kernel("1/s in bfloat16, floor", bfloat_reciprocal_up, RECIPROCAL | UP | ADDED | {"inverse": {"bfloat16"}}),
    Kernel("copysign in double", truncates_double, AWAY | {"compute": {"float64"}, "half": ...}),
    Kernel("float16 scale, fma, roundf", hopper, RECIPROCAL | AWAY | {"held": {"float16"}, "zero_point": {"fused"}}),
    Kernel("reciprocal, floor, NaN to qmax", floor_int64, RECIPROCAL | UP | ADDED | {"nan": {"qmax"}}),
    Kernel("zero point with the other sign", zero_subtracted, {"sign": {"q+o"}}),
    Kernel("denormals flushed", flushed),  # of a normal scale their codes are zero all the same
    Kernel("Python, int(v + .5)", stepwise, AWAY | ADDED | _AT_ZERO | {"compute": {"float64"}, "half": ...}),
    Kernel("np.round in float16", numpy_round_half, {"quotient": {"float16"}}, zeros=False),
    Kernel("np.round, int32 zero point", numpy_int32_zero, BEFORE | {"quotient": {"float64"}}),
    Kernel(
        "np.round, int32 zero point, reciprocal",
        numpy_int32_zero_reciprocal,
        RECIPROCAL | BEFORE | _LOWEST | {"quotient": {"float64"}},
    ),
    # In float64 neither sum is rounded, so the zero point may as well come after.
    Kernel("np.floor, int32 zero point", numpy_floor_int32_zero, UP | {"zero_point": ..., "quotient": ...}),
    Kernel("floor(x / s + z + 0.5)", c_half_double, UP | BEFORE | _ZERO),
    Kernel("torch, 1/s in half", torch_half_inverse, RECIPROCAL | {"inverse": {"float16"}}),
    Kernel("torch, NaN to 0 first", torch_int8_cast, _ZERO),
    Kernel(
        "float16, reciprocal",
        half_native_reciprocal,
        RECIPROCAL | {"integer": ..., "compute": ...},
        dtype="float16",
        grids=(INT8,),
    ),
    Kernel(
        "bfloat16 in float",
        bfloat_in_float,
        RECIPROCAL | AWAY | {"compute": {"float32", "widened"}, "inverse": ...},
        dtype="bfloat16",
    ),
    Kernel("saturates, wraps", saturate_wrap, RECIPROCAL | {"integer": {"int32-saturating"}}),
    Kernel("ceil(v - .5f), NaN to qmin", ceil_down, RECIPROCAL | ADDED | _LOWEST | {"rounding": {"half-down"}}),
    Kernel("from lo, floor", range_low_first, {"division": {"low"}} | UPWARD | ADDED),
]


def fma_offset(q, s, z, lo, hi):
    """The offset -z * s is made once, and an fma adds it."""
    return fused_multiply_add(q.astype(F32), np.asarray(s), np.asarray(-(F32(z) * s)))


def half_distributed(q, s, z, lo, hi):
    """Marlin's: scale and zero point in half."""
    return (q.astype(F16) * F16(s) - F16(z) * F16(s)).astype(F32)


def half_subtracted(q, s, z, lo, hi):
    return (q.astype(F16) - F16(z)).astype(F32) * s


def divided(q, s, z, lo, hi):
    return ((q - z).astype(F64) / (1.0 / F64(s))).astype(F32)


HABITUAL_DECODERS = [
    Kernel("fma with an offset", fma_offset, {"form": {"fused"}}, operation="dequantize"),
    Kernel(
        "q * s - z * s in half",
        half_distributed,
        {"form": {"distributed"}, "product": {"float16"}, "held": ...},
        operation="dequantize",
    ),
    Kernel("(half)q - (half)z", half_subtracted, {}, operation="dequantize", grids=(INT8, BYTE)),
    Kernel(
        "over 1/s in double",
        divided,
        {"form": {"inverse"}, "product": {"float64"}, "inverse": ...},
        operation="dequantize",
    ),
]

#: By the reading that each has of its arguments.
READ_OTHERWISE = {
    "narrow grid": Kernel("-128 left out", narrow, grids=(INT8,)),
    "zero point": Kernel("zero point not read", zero_ignored),
}
UNKNOWN = Kernel("fixed point", fixed_point)
