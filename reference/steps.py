"""The steps of a quantizer in floating point, each as kernels carry it out: every operation is rounded to its dtype."""

from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import Array
from halfeven.reference.rounding import ROUNDINGS, cast_once, fused_multiply_add, half_up

DType = np.dtype[Any]

__all__ = ["HALVES", "added", "converted", "held", "inverse", "limited", "of_range", "rounded"]

#: What the rules add that have a constant half.
HALVES = {"half-up": 0.5, "half-down": -0.5, "half-truncated": 0.5}
_BIASED = {"half-up": np.floor, "half-down": np.ceil, "half-truncated": np.trunc}
# A conversion: the bits that are kept of an int32 or int64, and whether it is of the sum.
_CASTS = {
    "int32": (32, False),
    "int64": (64, False),
    "int64-sum": (64, True),
    "int64-int32": (64, False),
    "int32-sum": (32, True),
    "int16": (16, False),
    "int16-sum": (16, True),
    "int8": (8, False),
    "int8-sum": (8, True),
    "int8-exact": (8, True),
}
_DIFFERENCES = {"int16-difference": np.int16, "int8-difference": np.int8, "uint8-difference": np.uint8}


def held(s: Array, name: str) -> Array:
    """A scale rounded to the dtype ``name`` (or ``given``), in the dtype that it was given in."""
    return s if name == "given" else cast_once(s, name).astype(s.dtype)


def inverse(s: Array, name: str, t: DType) -> Array:
    """1/s, rounded to a dtype (``scale`` and ``compute`` are those of ``s`` and ``t``), as ``t``.

    Other than in the scale's dtype it is divided in the wider of the two, float32 at least, and then rounded to it.
    """
    if name == "scale":
        return np.asarray((np.ones((), s.dtype) / s).astype(t))
    to = t if name == "compute" else np.dtype(name)
    wide = np.promote_types(np.promote_types(s.dtype, np.float32), np.promote_types(to, np.float32))
    return np.asarray(cast_once(np.ones((), wide) / s.astype(wide), to).astype(t))


def of_range(
    form: str, x: Array, s: Array, inverted: Array, z: Array, qmin: Array, qmax: Array, *, fuse: bool
) -> Array:
    """Where ``x`` lies in the range of the grid, in codes from its lower end; ``fuse`` is of the affine form alone."""
    low, high, n = (qmin - z) * s, (qmax - z) * s, qmax - qmin
    x = limited(x, low, high)
    above = x - low
    v: Array
    match form:
        case "range":
            v = above / (high - low) * n
        case "range-factor":
            v = above * (n / (high - low))
        case "range-step":
            v = above / ((high - low) / n)
        case "range-last":
            v = above * n / (high - low)
        case "range-affine":
            factor = n / (high - low)
            shift = -low * factor
            v = fused_multiply_add(x, factor, shift) if fuse else x * factor + shift
        case "low":
            v = above / s
        case "low-reciprocal":
            v = above * inverted
    return v


def added(x: Array, factor: Array | None, v: Array, addend: Array, quotient: str) -> Array:
    """The quotient ``v`` and a sum (float64): ``x * factor`` and the sum in one rounding, where there is a factor.

    ``quotient`` is the dtype to which the quotient is rounded or widened before what is added in two roundings.
    """
    if factor is not None:
        total = fused_multiply_add(x, factor, addend.astype(x.dtype))
        return total if quotient == "compute" else cast_once(total, quotient)
    v = v if quotient == "compute" else cast_once(v, quotient)
    return np.asarray(v + addend.astype(v.dtype))


def rounded(v: Array, rule: str, half: str) -> Array:
    """Integers by a rule; a half that was added before (``half``) is not added again."""
    half_of = v.dtype.type(0.5)
    match rule, half:
        case _, "difference":
            r = (rounded(v, rule, "exact") - v) + v
        case "half-truncated", "exact":
            r = _half_truncated(v)
        case _, "exact":
            r = ROUNDINGS[rule](v)
        case (("half-up" | "half-down" | "half-truncated"), _):
            r = _BIASED[rule](v if half in {"with-zero-point", "fused"} else v + v.dtype.type(HALVES[rule]))
        case "half-away", _:
            r = np.trunc(v + np.copysign(half_of, v))
        case "half-to-zero", _:
            r = np.copysign(np.ceil(np.abs(v) - half_of), v)
        case "half-even", _:  # the sum has no bits left below 1, as far as it goes
            magic = v.dtype.type(1.5 * np.ldexp(1.0, ml_dtypes.finfo(v.dtype).nmant))  # type: ignore[no-untyped-call]
            r = (v + magic) - magic
        case _:
            r = ROUNDINGS[rule](v)
    return np.asarray(r)


def _half_truncated(v: Array) -> Array:
    """The integer part of v + 1/2: below -1/2 one more than half up, unless the sum is an integer."""
    up = half_up(v)
    above = (v < -HALVES["half-truncated"]) & (np.abs(v - np.trunc(v)) != HALVES["half-truncated"])
    return np.copysign(np.where(above, up + np.ones((), v.dtype), up), v)  # a zero has the sign of its operand


def converted(r: Array, addend: Array | None, integer: str) -> Array:
    """``r`` and what is added to it (float64), by way of an integer type as ``EvaluationModel.integer`` says.

    A conversion is that of x86: out of range, and of NaN, it gives the minimum. The result is float64, or ``r``'s own
    dtype where there is no conversion.
    """
    if integer == "none":
        return r if addend is None else np.asarray(r + addend.astype(r.dtype))
    extra = np.zeros(()) if addend is None else addend
    if integer == "exact":
        return r.astype(np.float64) if addend is None else np.asarray(r.astype(np.float64) + extra)
    if integer == "int32-exact":
        return np.asarray(_x86(r, 32) + extra.astype(np.int64)).astype(np.float64)
    if integer == "int32-saturating":
        info = np.iinfo(np.int32)
        code = np.nan_to_num(r.astype(np.float64), nan=0.0).clip(info.min, info.max).astype(np.int64)
        return (code + extra.astype(np.int64)).astype(np.int32).astype(np.float64)
    if integer in _DIFFERENCES:
        return (_x86(r, 32) + extra.astype(np.int64)).astype(_DIFFERENCES[integer]).astype(np.float64)
    bits, of_sum = _CASTS[integer]
    if of_sum and addend is not None:
        r, extra = r + addend.astype(np.float64 if integer == "int8-exact" else r.dtype), np.zeros(())
    code = _x86(r, max(bits, 32))
    total: Array
    if bits < 32:  # noqa: PLR2004 - C adds what is narrower as int
        total = code.astype(f"int{bits}").astype(np.int64) + extra.astype(np.int64)
    else:
        kept = "int32" if integer == "int64-int32" else f"int{bits}"
        total = (code + extra.astype(np.int64)).astype(kept)
    return total.astype(np.float64)


def limited(v: Array, lo: Array, hi: Array) -> Array:
    """V limited to [lo, hi]; NaN passes, and a zero inside keeps its sign."""
    found = np.array(np.broadcast_to(v, np.broadcast_shapes(v.shape, lo.shape, hi.shape)))
    np.copyto(found, hi, where=found > hi)
    np.copyto(found, lo, where=found < lo)
    return found


def _x86(r: Array, bits: int) -> Array:
    low = -np.ldexp(1.0, bits - 1)
    wide = r.astype(np.float64)
    fits = (wide >= low) & (wide < -low)
    return np.where(fits, wide, low).astype(np.int64)
