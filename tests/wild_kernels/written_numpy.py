"""Kernels of NumPy as their authors hand them over: with the names of the public call and what dtypes come of it."""

import numpy as np

from wild_kernels import F16, F32, F64
from wild_kernels.written import AFTER, AWAY, BEFORE, EVEN, RECIPROCAL, UP, Written

__all__ = ["WRITTEN"]


def clip_astype(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.round(x / scale) + zero_point, qmin, qmax).astype(np.int16)


def astype_wraps(x, scale, zero_point, *, qmin, qmax):
    """No limit at all: the cast keeps the low 8 bits."""
    return (np.round(x / scale) + zero_point).astype(np.int8)


def astype_truncates(x, scale, zero_point, *, qmin, qmax):
    return np.clip(x / scale + F32(0.5), qmin - zero_point, qmax - zero_point).astype(np.int32) + zero_point


def cast_before_zero_point(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x / scale).astype(np.int32) + zero_point, qmin, qmax)


def sum_in_double(x, scale, zero_point, *, qmin, qmax):
    """A float32 array and an int32 are a float64 array."""
    return np.clip(np.round(x / scale + zero_point), qmin, qmax)


def floor_divided(x, scale, zero_point, *, qmin, qmax):
    return np.clip((x + scale / 2) // scale + zero_point, qmin, qmax)


def half_of_scale(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.floor((x + scale * F32(0.5)) / scale) + zero_point, qmin, qmax)


def sign_and_floor(x, scale, zero_point, *, qmin, qmax):
    v = x * (F32(1) / scale)
    return np.clip(np.sign(v) * np.floor(np.abs(v) + F32(0.5)) + zero_point, qmin, qmax)


def fmin_fmax(x, scale, zero_point, *, qmin, qmax):
    return np.fmax(np.fmin(np.rint(x / scale) + F32(zero_point), F32(qmax)), F32(qmin)).astype(np.int32)


def nan_to_num(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(np.nan_to_num(x) / scale) + zero_point, qmin, qmax).astype(np.int32)


def all_in_double(x, scale, zero_point, *, qmin, qmax):
    v = np.floor(x.astype(F64) / F64(scale) + 0.5) + zero_point
    return np.clip(v, qmin, qmax)


def inverse_in_double(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x * F32(1.0 / float(scale))) + zero_point, qmin, qmax)


def python_inverse(x, scale, zero_point, *, qmin, qmax):
    """A Python number has the array's dtype: the same once more."""
    return np.clip(np.rint(x * (1.0 / float(scale))) + int(zero_point), qmin, qmax)


def narrow(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x / scale), -qmax, qmax)


def four_bits(x, scale, zero_point):
    return np.clip(np.rint(x / scale) + zero_point, -8, 7).astype(np.int8)


def unsigned_four_bits(x, scale, zero_point):
    return np.clip(np.floor(x / scale + F32(0.5)) + zero_point, 0, 15).astype(np.uint8)


def clips_reals(x, scale, zero_point, *, qmin, qmax):
    lo, hi = (F32(qmin) - F32(zero_point)) * scale, (F32(qmax) - F32(zero_point)) * scale
    return np.round(np.clip(x, lo, hi) / scale) + zero_point


def symmetric_amax(x, amax, *, qmin, qmax):
    return np.clip(np.trunc(x * (F32(qmax) / amax) + np.copysign(F32(0.5), x)), -qmax, qmax)


def half_up_to_float16(x, scale, zero_point, *, qmin, qmax):
    """Three at once: a scale of float16, its inverse, ties up."""
    inverse = F32(1) / F32(F16(scale))
    return np.clip(np.floor(x * inverse + F32(0.5)) + zero_point, qmin, qmax)


def ceil_down(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.ceil(x * (F32(1) / scale) + F32(zero_point) - F32(0.5)), qmin, qmax)


def every_other_way(x, scale, zero_point, *, qmin, qmax):
    """Four elements at a time, and the rest one by one by another hand."""
    inverse, n = F32(1) / scale, x.size // 4 * 4
    rest = [round(float(a) / float(scale)) if np.isfinite(a) else a for a in x[n:]]
    return np.clip(np.concatenate([np.rint(x[:n] * inverse), rest]) + zero_point, qmin, qmax)


def put_back(x, scale, zero_point, *, qmin, qmax):
    q = np.clip(np.round(x / scale) + zero_point, qmin, qmax)
    return ((q - zero_point) * scale).astype(F32)


def put_back_by_inverse(x, scale, zero_point, *, qmin, qmax):
    inverse = F32(1) / scale
    q = np.clip(np.floor(x * inverse + F32(0.5)) + F32(zero_point), qmin, qmax)
    return (q - F32(zero_point)) / inverse


def dequantized(q, scale, zero_point):
    return (q.astype(np.int32) - zero_point).astype(F32) * scale


def dequantized_apart(q, scale, zero_point):
    return q.astype(F32) * scale - F32(zero_point) * scale


def dequantized_half(q, scale, zero_point):
    return ((q.astype(np.int32) - zero_point).astype(F16) * scale.astype(F16)).astype(F32)


def dequantized_double(q, scale, zero_point):
    return ((q.astype(F64) - zero_point) / (1.0 / F64(scale))).astype(F32)


def dequantized_over(q, scale, zero_point):
    return (q.astype(F32) - F32(zero_point)) / (F32(1) / scale)


_ADDED, _DOUBLE = {"half": {"added"}}, {"compute": {"float64"}}
_HALF = {"held": {"float16"}}
_AWAY_ADDED = AWAY | {"half": {"added"}}


def _back(name, function, does=None, **more):
    return Written(name, function, does or {}, "dequantize", **more)


WRITTEN = [
    Written("clip, astype", clip_astype, {"nan": ...} | EVEN | AFTER),
    Written("astype wraps", astype_wraps, {"overflow": ..., "integer": {"int8-exact"}, "nan": ...}),
    Written(
        "astype truncates",
        astype_truncates,
        {"rounding": {"half-truncated"}, "half": {"added"}, "clamp": ..., "nan": ..., "integer": ...},
    ),
    Written("cast before the zero point", cast_before_zero_point, {"integer": {"int32"}, "nan": ...}),
    Written("sum in double", sum_in_double, BEFORE | EVEN | {"quotient": {"float64"}}),
    # A quotient rounded down at once, a half added to x: no such choices.
    Written("floor division", floor_divided, UP, named=False),
    Written("half of the scale", half_of_scale, UP, named=False),
    Written("sign and floor", sign_and_floor, RECIPROCAL | _AWAY_ADDED),
    Written("fmin, fmax", fmin_fmax, {"nan": {"qmax"}}),
    Written("nan_to_num", nan_to_num, {"nan": {"zero-point"}}),
    Written("all in double", all_in_double, UP | _DOUBLE | {"half": ...}),
    Written("inverse in double", inverse_in_double, RECIPROCAL),
    Written("Python's inverse", python_inverse, RECIPROCAL),
    Written("narrow", narrow, {"zero_point": ..., "sign": ...}, grid="[-127,127]"),
    Written("four bits", four_bits, {"nan": ...}, grid="int4"),
    Written("unsigned four bits", unsigned_four_bits, UP | _ADDED | {"nan": ...}, grid="uint4"),
    Written("clips reals", clips_reals, {}),
    Written("amax, ties away", symmetric_amax, {"division": {"multiply-by-q-per-real"}} | _AWAY_ADDED),
    Written("float16 scale, inverse, ties up", half_up_to_float16, RECIPROCAL | UP | _HALF | _ADDED),
    Written(
        "inverse, zero point, ties down",
        ceil_down,
        RECIPROCAL | BEFORE | {"rounding": {"half-down"}} | _ADDED,
    ),
    Written("four at a time", every_other_way, RECIPROCAL, where=("the last n mod 4", {"compute": {"float64"}})),
    Written("put back", put_back, {"product": ...}, "fake_quantize"),
    Written(
        "put back by the inverse",
        put_back_by_inverse,
        RECIPROCAL | UP | _ADDED | {"form": {"inverse"}},
        "fake_quantize",
    ),
    _back("(q - z) * s", dequantized, {"subtract": ...}),
    _back("q * s - z * s", dequantized_apart, {"form": {"distributed"}}),
    _back("product in half", dequantized_half, {"product": {"float16"}, "subtract": ..., "held": ...}),
    _back("over 1/s in double", dequantized_double, {"form": {"inverse"}, "product": {"float64"}, "inverse": ...}),
    _back("over 1/s", dequantized_over, {"form": {"inverse"}}),
]
