"""Products by a factor that is not 1/s: an estimate of it, or one made elsewhere. Each scale has a factor of its own.

Every code says between which reals the factor lies; where these intervals leave some floats, each is tried.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from halfeven.conformance.bits import ordered, unordered
from halfeven.conformance.engine.fitting.elements import Elements, same_codes
from halfeven.reference.blocks import Array
from halfeven.reference.model import EvaluationModel, zero_of

__all__ = ["factors"]

_RULES = ("half-even", "half-away", "half-up", "toward-zero")
_SUMS = ("after-rounding", "before-rounding", "fused")
_TRIED = 24
_CLOSE = 32  # ulps from 1/s, each of which is tried
_FURTHEST = 1 << 13  # ulps from 1/s: an estimate of 12 bits is within
_MODEST = 2.0**15  # quotients that no conversion changes
_EACH = 32  # elements of a scale inside the grid: with fewer there are factors for anything
_FEWEST = 3  # scales with so many, of one of which the factor cannot be 1/s


def factors(base: EvaluationModel, groups: Sequence[Elements]) -> tuple[EvaluationModel, int] | None:
    """A model that gives all codes by another factor than 1/s, and how many ulps that is from it at least.

    The model is said with ``division="reciprocal"``; None where no factors are found, or where 1/s would do.
    """
    [g, *others] = groups
    if others or g.operation != "quantize" or g.x.dtype != np.float32 or g.scale.dtype != np.float32:
        return None
    scales, number = np.unique(g.scale, return_inverse=True)
    if not np.isfinite(scales).all() or (scales <= 0).any():
        return None
    with np.errstate(all="ignore"):
        modest = np.abs(g.x / g.scale) < _MODEST
    inside = modest & (g.value > g.lo) & (g.value < g.hi)
    telling = np.bincount(number[inside], minlength=scales.size) >= _EACH
    if telling.sum() < _FEWEST:
        return None
    for rule, total in product(_RULES, _SUMS):
        model = replace(base, division="multiply-by-q-per-real", rounding=rule, zero_point=total)
        found = []
        for i, s in enumerate(scales):
            if (one := _fitting(model, g.at(modest & (number == i)), np.float32(s))) is None:
                break
            found.append(one)
        else:
            ulps = [abs(k) for k, _ in found]
            each = replace(g, scale=np.array([f for _, f in found], np.float32)[number])
            if np.array(ulps)[telling].any() and (whole := _whole(model, each)) is not None:
                return replace(whole, division="reciprocal"), max(ulps)
    return None


def _whole(model: EvaluationModel, g: Elements) -> EvaluationModel | None:
    """The model with what it does to NaN and beyond the grid."""
    words = model.choices()
    order = product(*(sorted(words[n], key=lambda v: v != getattr(model, n)) for n in ("nan", "integer")))
    tried = (replace(model, nan=str(nan), integer=str(integer)) for nan, integer in order)
    return next((m for m in tried if g.given_by(m).all()), None)


def _fitting(model: EvaluationModel, g: Elements, s: np.float32) -> tuple[int, np.float32] | None:
    """The factor nearest to 1/s that gives all codes of one scale, and how many ulps it is from there."""
    if not len(g):
        return 0, np.float32(1) / s
    with np.errstate(all="ignore"):
        exact = int(ordered(np.asarray(np.float32(1) / s)))
        near = [int(ordered(np.asarray(np.float32(end)))) for end in _interval(model, g)]
    first, last = max(near[0] - 2, exact - _FURTHEST), min(near[1] + 2, exact + _FURTHEST)
    if first > last:
        return None
    ends = [end + k for end in near for k in range(-2, 3)]  # codes at ties lie there
    close = exact + np.arange(-_CLOSE, _CLOSE + 1)
    tried = np.unique([*np.linspace(first, last, _TRIED).astype(np.int64), *np.clip([*ends, *close], first, last)])
    for index in sorted(tried.tolist(), key=lambda i: abs(i - exact)):
        factor = unordered(np.asarray(index), np.dtype(np.float32))
        try:
            codes = replace(g, scale=np.full(len(g), factor)).codes(model)
        except ValueError:  # fused in float64
            return None
        if same_codes(codes, g.value).all():
            return index - exact, np.float32(factor)
    return None


def _interval(model: EvaluationModel, g: Elements) -> tuple[float, float]:
    """Between which reals the factor lies, by the codes inside the grid and a code's width."""
    x, z = g.x.astype(np.float64), np.broadcast_to(zero_of(model, g.zero), g.x.shape)
    inside = np.isfinite(x) & (x != 0) & (g.value > g.lo) & (g.value < g.hi)
    if not inside.any():
        return 0.0, 0.0
    width = 1.0 if model.rounding == "toward-zero" else 0.5
    ends: Array = np.sort((np.stack([-width, width])[:, None] + (g.value - z)[inside]) / x[inside], axis=0)
    return float(ends[0].max()), float(ends[1].min())
