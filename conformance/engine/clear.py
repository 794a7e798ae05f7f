"""Which of the points that differ argues for the document: where exact numbers give what is expected."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, trunc
from typing import Any

import numpy as np

from halfeven.conformance.configuration import Case
from halfeven.conformance.engine.fitting.elements import flat
from halfeven.reference import exact
from halfeven.reference.blocks import Array
from halfeven.reference.profile import Profile

__all__ = ["OPEN", "Clarity", "clarity", "clearest", "real_value"]

_LOOKED_AT = 32
_HALF = Fraction(1, 2)
_REAL = {
    "quantize": "the code that the exact x / scale has",
    "dequantize": "the exact difference times the scale",
    "fake_quantize": "the real of the code that the exact x / scale has",
}


@dataclass(frozen=True)
class Clarity:
    """What exact numbers say of one point.

    Attributes:
        rank: 0 where they give what is expected, or come nearer to it; 2 where to what came; 1 where neither.
        exact: the exact x / scale, where there is one to speak of.
        nearer: in words, where what came is nearer.
    """

    rank: int
    exact: Fraction | None = None
    nearer: str = ""

    @property
    def quotient(self) -> str:
        """The exact x / scale as p/q; empty where there is none."""
        return "" if self.exact is None else _fraction(self.exact)

    @property
    def to_tie(self) -> str:
        """Its exact distance to the nearest tie."""
        return "" if self.exact is None else _fraction(exact.distance_to_tie(self.exact, 1))


#: Of what no exact number decides.
OPEN = Clarity(1)


def clearest(
    profile: Profile, case: Case, where: Sequence[int] | Array, expected: Array, actual: Array
) -> tuple[int, Clarity]:
    """Of the points ``where`` (flat indices) the one to show: it argues for the document, and is easy to follow."""
    elements, wanted, got = flat(case), np.broadcast_to(expected, actual.shape).ravel(), np.ravel(actual)
    found: dict[int, Clarity] = {}
    for i in _simplest(elements, np.asarray(where)):
        found[i] = clarity(profile, case, (elements.x[i], elements.scale[i], elements.zero[i]), wanted[i], got[i])
        if not found[i].rank:
            return i, found[i]
    at = min(found, key=lambda i: found[i].rank)
    return at, found[at]


def _simplest(elements: Case, where: Array) -> list[int]:
    """Points with a round scale, a small zero point and a small quotient are the easiest to follow."""
    x, scale, zero = (a[where].astype(np.float64) for a in (elements.x, elements.scale, elements.zero))
    with np.errstate(all="ignore"):
        size = np.abs(x / np.where(scale == 0, 1, scale)) + np.abs(zero)
    order = np.lexsort((scale, np.where(np.isfinite(x), size, np.inf)))
    return [int(i) for i in where[order[:_LOOKED_AT]]]


def clarity(profile: Profile, case: Case, point: tuple[Any, Any, Any], expected: Any, actual: Any) -> Clarity:
    """What the equation gives for the input, the parameter and the zero point of one element, without any rounding."""
    operation = case.configuration.operation
    real = real_value(profile, case, point)
    if real is None:
        return OPEN
    ends = [float(expected), float(actual)]
    said = None if operation == "dequantize" else Fraction(float(point[0])) / _step(profile, case, point[1])
    if np.isnan(ends).any():
        return Clarity(1, said)
    e, a = (_gap(end, real, np.asarray(expected).dtype) for end in ends)
    if e == a:
        return Clarity(1, said)
    return Clarity(0, said) if e < a else Clarity(2, said, nearer=f"actual is nearer to {_REAL[operation]}")


def real_value(profile: Profile, case: Case, point: tuple[Any, Any, Any]) -> Fraction | None:
    """The documented equation of one element over the real numbers; None where it has no finite one."""
    x, parameter, zero = map(float, point)
    if not np.isfinite([x, parameter, zero]).all() or not parameter:
        return None
    operation, grid, model = case.configuration.operation, case.configuration.grid, profile.model
    s = _step(profile, case, parameter)
    z = {"none": Fraction(0), "q+o": -Fraction(zero)}.get(model.sign, Fraction(zero))
    if operation == "dequantize":
        return (Fraction(x) - z) * s
    v = Fraction(x) / s
    turned = (
        _rounded(v, model.rounding) + z if model.zero_point == "after-rounding" else _rounded(v + z, model.rounding)
    )
    code = max(Fraction(grid.qmin), min(Fraction(grid.qmax), Fraction(turned)))
    return code if operation == "quantize" else (code - z) * s


def _step(profile: Profile, case: Case, parameter: Any) -> Fraction:
    """The scale that a parameter stands for."""
    return Fraction(float(parameter)) / (case.configuration.grid.qmax if profile.parameters[0] == "amax" else 1)


def _gap(value: float, real: Fraction, dtype: "np.dtype[Any]") -> Fraction | float:
    """How far a value is from the exact one; an infinity is at no distance from what rounds to it."""
    if np.isfinite(value):
        return abs(Fraction(value) - real)
    with np.errstate(all="ignore"):
        rounds = abs(real) < Fraction(2) ** 1023 and np.isfinite(np.asarray(float(real)).astype(dtype))
    return np.inf if rounds else 0.0


def _rounded(v: Fraction, rule: str) -> int:
    low = floor(v)
    rest = v - low
    if rule == "half-truncated":
        return trunc(v + _HALF)
    if rule in {"floor", "ceil", "toward-zero"}:
        return {"floor": low, "ceil": ceil(v), "toward-zero": low if v > 0 else ceil(v)}[rule]
    if rest != _HALF:
        return low + (rest > _HALF)
    up = {"half-even": low % 2 == 1, "half-away": v > 0, "half-to-zero": v < 0, "half-up": True, "half-down": False}
    return low + up[rule]


def _fraction(value: Fraction) -> str:
    text = str(value)
    return f"{text} ({float(value)!r})" if "/" in text and abs(value) < Fraction(2) ** 1000 else text
