"""Rounding a float array to integers, one function per rule.

Each takes an array of any float dtype and returns integers held in that dtype; NaN and infinities
pass, and a zero result keeps the sign of its operand, as IEEE 754 ``roundToIntegral`` does. The
fraction ``x - trunc(x)`` is exact in binary floating point, so no rule rounds twice.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from halfeven.reference.blocks import Array

__all__ = [
    "ROUNDINGS",
    "Array",
    "cast_once",
    "ceil",
    "floor",
    "fused_multiply_add",
    "half_away",
    "half_down",
    "half_even",
    "half_to_zero",
    "half_up",
    "toward_zero",
]

_HALF = 0.5
# A signalling NaN, and the inf - inf of an infinity's fraction, raise the invalid flag; neither is an error here.
_QUIET = partial(np.errstate, invalid="ignore")


def half_even(x: Array) -> Array:
    """Nearest integer; a tie goes to the even one."""
    with _QUIET():
        return np.rint(x)


def half_away(x: Array) -> Array:
    """Nearest integer; a tie goes away from zero."""
    with _QUIET():
        t, fraction = _split(x)
        return _step(x, t, fraction >= _HALF)


def half_to_zero(x: Array) -> Array:
    """Nearest integer; a tie goes toward zero."""
    with _QUIET():
        t, fraction = _split(x)
        return _step(x, t, fraction > _HALF)


def half_up(x: Array) -> Array:
    """Nearest integer; a tie goes toward plus infinity."""
    with _QUIET():
        t, fraction = _split(x)
        return _step(x, t, (fraction > _HALF) | ((fraction == _HALF) & (x > 0)))


def half_down(x: Array) -> Array:
    """Nearest integer; a tie goes toward minus infinity."""
    with _QUIET():
        t, fraction = _split(x)
        return _step(x, t, (fraction > _HALF) | ((fraction == _HALF) & (x < 0)))


def toward_zero(x: Array) -> Array:
    """The integer part."""
    with _QUIET():
        return np.trunc(x)


def floor(x: Array) -> Array:
    """The largest integer not above ``x``."""
    with _QUIET():
        return np.floor(x)


def ceil(x: Array) -> Array:
    """The smallest integer not below ``x``."""
    with _QUIET():
        return np.ceil(x)


def cast_once(x: Array, dtype: npt.DTypeLike) -> Array:
    """``x`` in another float dtype, rounded once.

    ml_dtypes goes from float64 by way of float32. There the odd one of the two neighbours is taken: it is on no tie of
    a narrower dtype, and on the side of it that ``x`` is on.
    """
    target = np.dtype(dtype)
    with np.errstate(all="ignore"):
        if target.kind == "f":
            return x.astype(target)
        near = x.astype(np.float32)
        inexact = np.isfinite(x) & (near != x) & (near.view(np.uint32) % 2 == 0)
        toward = np.where(near < x, np.inf, -np.inf).astype(np.float32)
        odd: Array = np.where(inexact, np.nextafter(near, toward), near)
        return odd.astype(target)


def _split(x: Array) -> tuple[Array, Array]:
    """The integer part and the size of the rest; of an infinity the rest is NaN, and so no step is taken."""
    t = np.trunc(x)
    return t, np.abs(x - t)


def _step(x: Array, t: Array, away: Array) -> Array:
    one = np.ones((), t.dtype)
    return np.where(away, t + np.copysign(one, x), t)


ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "half-even": half_even,
    "half-away": half_away,
    "half-up": half_up,
    "half-down": half_down,
    "half-to-zero": half_to_zero,
    "toward-zero": toward_zero,
    "floor": floor,
    "ceil": ceil,
}


def fused_multiply_add(x: Array, y: Array, z: Array) -> Array:
    """``x * y + z`` rounded once, to the dtype of ``x``; operands have at most 26 significant bits.

    Raises:
        ValueError: ``x`` is float64, whose products no wider type holds.
    """
    if x.dtype == np.float64:
        msg = "zero_point='fused' is not accepted for float64: no wider type holds the product"
        raise ValueError(msg)
    product = x.astype(np.float64) * y.astype(np.float64)
    addend = np.broadcast_to(z.astype(np.float64), product.shape)
    total = product + addend
    # Two-sum gives the error of the addition; forcing the last bit odd where there is one (round to odd)
    # makes the second rounding, to x's dtype, the only one that shows.
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    away = (error > 0) == (total > 0)
    odd = np.where(inexact, bits + np.where(away, 1, -1), bits)
    return cast_once(odd.view(np.float64), x.dtype)
