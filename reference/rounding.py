"""Rounding a float array to integers, one function per rule.

Each takes an array of any float dtype and returns integers held in that dtype; NaN and infinities
pass, and a zero result keeps the sign of its operand, as IEEE 754 ``roundToIntegral`` does. The
fraction ``x - trunc(x)`` is exact in binary floating point, so no rule rounds twice.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Rounding = Literal["half-even", "half-away", "half-up", "half-down", "half-to-zero", "toward-zero", "floor", "ceil"]

__all__ = [
    "ROUNDINGS",
    "Array",
    "Rounding",
    "ceil",
    "floor",
    "half_away",
    "half_down",
    "half_even",
    "half_to_zero",
    "half_up",
    "toward_zero",
]


def half_even(x: Array) -> Array:
    """Nearest integer; a tie goes to the even one."""
    return np.rint(x)  # type: ignore[no-any-return]


def half_away(x: Array) -> Array:
    """Nearest integer; a tie goes away from zero."""
    t, fraction = _split(x)
    return _step(x, t, fraction >= 0.5)


def half_to_zero(x: Array) -> Array:
    """Nearest integer; a tie goes toward zero."""
    t, fraction = _split(x)
    return _step(x, t, fraction > 0.5)


def half_up(x: Array) -> Array:
    """Nearest integer; a tie goes toward plus infinity."""
    t, fraction = _split(x)
    return _step(x, t, (fraction > 0.5) | ((fraction == 0.5) & (x > 0)))


def half_down(x: Array) -> Array:
    """Nearest integer; a tie goes toward minus infinity."""
    t, fraction = _split(x)
    return _step(x, t, (fraction > 0.5) | ((fraction == 0.5) & (x < 0)))


def toward_zero(x: Array) -> Array:
    """The integer part."""
    return np.trunc(x)  # type: ignore[no-any-return]


def floor(x: Array) -> Array:
    """The largest integer not above ``x``."""
    return np.floor(x)  # type: ignore[no-any-return]


def ceil(x: Array) -> Array:
    """The smallest integer not below ``x``."""
    return np.ceil(x)  # type: ignore[no-any-return]


def _split(x: Array) -> tuple[Array, Array]:
    t = np.trunc(x)
    with np.errstate(invalid="ignore"):  # inf - inf: the fraction of an infinity is NaN, and no step is taken
        return t, np.abs(x - t)


def _step(x: Array, t: Array, away: Array) -> Array:
    one = np.ones((), t.dtype)
    stepped = np.where(away, t + np.copysign(one, x), t)
    return np.copysign(stepped, x).astype(t.dtype, copy=False)


ROUNDINGS: dict[Rounding, Callable[[Array], Array]] = {
    "half-even": half_even,
    "half-away": half_away,
    "half-up": half_up,
    "half-down": half_down,
    "half-to-zero": half_to_zero,
    "toward-zero": toward_zero,
    "floor": floor,
    "ceil": ceil,
}
