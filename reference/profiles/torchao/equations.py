"""torchao: the equations of the three zero-point domains, each operation rounded in the dtypes of its operands.

A code is a float here, and not yet limited to the grid. Every array has one entry per element.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.reference.profiles.profile import Array

__all__ = [
    "clamp",
    "float_code",
    "float_real",
    "int_code",
    "int_code_by_reciprocal",
    "int_real",
    "middle",
    "none_code",
    "none_code_by_reciprocal",
    "none_product",
    "none_real",
]


def int_code(x: Array, s: Array, z: Array) -> Array:
    """INT: the quotient becomes an integer, to which the zero point is added."""
    return _add(np.rint(_divide(x, s)), z)


def int_code_by_reciprocal(x: Array, s: Array, z: Array) -> Array:
    """INT as 0.18 has it: a product with the reciprocal of the scale, which is rounded to the scale's dtype."""
    return _add(np.rint(_multiply(x, np.ones((), s.dtype) / s)), z)


def int_real(q: Array, s: Array, z: Array | None, dtype: npt.DTypeLike) -> Array:
    """INT: code less zero point in the output's dtype, times the scale."""
    steps = q.astype(dtype) if z is None else q.astype(dtype) - z.astype(dtype)
    return _multiply(steps, s).astype(dtype)


def float_code(x: Array, s: Array, z: Array, mid: float) -> Array:
    """FLOAT: the quotient counts from the real of code 0, which lies ``mid`` codes below the zero point."""
    low = _subtract(z, _times(s, mid))
    return np.rint(_divide(_subtract(x, low), s))


def float_real(q: Array, s: Array, z: Array | None, mid: float, dtype: npt.DTypeLike) -> Array:
    """FLOAT: steps from the middle times the scale, plus the zero point, in the output's dtype."""
    steps = (q.astype(np.float32) - np.float32(mid)).astype(np.float32 if q.dtype.kind in "iu" else q.dtype)
    product = _multiply(steps.astype(dtype), s).astype(dtype)
    return product if z is None else _add(product, z).astype(dtype)


def none_code(x: Array, s: Array) -> Array:
    """NONE: the quotient, not rounded."""
    return _divide(x, s)


def none_code_by_reciprocal(x: Array, s: Array) -> Array:
    """NONE as 0.18 has it: a product with the rounded reciprocal, made an integer."""
    return np.rint(none_product(x, s))


def none_product(x: Array, s: Array) -> Array:
    """NONE as 0.11 has it for a float8: the product with the rounded reciprocal."""
    return _multiply(x, np.ones((), s.dtype) / s)


def none_real(q: Array, s: Array, dtype: npt.DTypeLike) -> Array:
    """NONE: code times scale."""
    return _multiply(q.astype(dtype), s).astype(dtype)


def middle(qmin: float, qmax: float) -> float:
    """The code, maybe a half, in the middle of the grid: 8 of 0 to 15, 0 of -128 to 127."""
    return (qmax + qmin + 1) / 2


def clamp(q: Array, low: Array, high: Array) -> Array:
    """``q`` limited to the grid; NaN stays."""
    return np.where(q < low, low, np.where(q > high, high, q))


def _add(a: Array, b: Array) -> Array:
    t = _common(a, b)
    return np.asarray(a.astype(t) + b.astype(t))


def _subtract(a: Array, b: Array) -> Array:
    t = _common(a, b)
    return np.asarray(a.astype(t) - b.astype(t))


def _multiply(a: Array, b: Array) -> Array:
    t = _common(a, b)
    return np.asarray(a.astype(t) * b.astype(t))


def _divide(a: Array, b: Array) -> Array:
    t = _common(a, b)
    return np.asarray(a.astype(t) / b.astype(t))


def _times(s: Array, number: float) -> Array:
    """A Python number takes part in float32, whatever the array's dtype."""
    return np.asarray(s.astype(np.float32) * np.float32(number)).astype(s.dtype)


def _common(a: Array, b: Array) -> "np.dtype[Any]":
    """The dtype to which two promote: an integer to the other's float, two 16-bit floats to float32."""
    first, *rest = {p.dtype for p in (a, b) if p.dtype.kind not in "iu"}
    if not rest:
        return first
    return np.promote_types(np.promote_types(first, np.float32), rest[0])
