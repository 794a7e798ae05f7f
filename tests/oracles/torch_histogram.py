"""torch's HistogramObserver, value by value: places in softfloats, counts in fractions."""

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from math import floor, inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.exact import FORMATS, round_to
from oracles.registry import derives
from oracles.soft import Soft, array, soft, softs

Array = npt.NDArray[Any]

__all__: list[str] = []

_F = "float32"


def _whole(n: int) -> Soft:
    return soft(Fraction(n), _F)


def _counts(values: list[Soft], bins: int, low: Soft, high: Soft) -> list[Fraction]:
    if low.value == high.value:
        low, high = low - _whole(1), high + _whole(1)
    found = [Fraction(0)] * bins
    for v in values:
        found[min(int(((v - low) * _whole(bins) / (high - low)).value), bins - 1)] += 1
    return found


def _line(low: Soft, high: Soft, pieces: int) -> list[Soft]:
    step = (high - low) / _whole(pieces)
    half = (pieces + 1) // 2
    return [low + step * _whole(i) if i < half else high - step * _whole(pieces - i) for i in range(pieces + 1)]


@derives("torch/HistogramObserver")
def _(batches: Sequence[Array], bins: int = 2048) -> tuple[Array, Array, Array]:
    counts, ends = [Fraction(0)] * bins, (soft(inf, _F), soft(-inf, _F))
    for batch in batches:
        values = [v for v in softs(batch) if isfinite(v.value)]
        if not values:
            continue
        own = min(values, key=lambda v: v.value), max(values, key=lambda v: v.value)
        if ends[0].value == inf:
            counts, ends = _counts(values, bins, *own), own
            continue
        low, high = min(ends[0], own[0], key=lambda v: v.value), max(ends[1], own[1], key=lambda v: v.value)
        added = _counts(values, bins, low, high)
        if (low.value, high.value) == (ends[0].value, ends[1].value):
            old = counts
        elif ends[0].value == ends[1].value:
            old = [n * sum(counts) for n in _counts([ends[0]], bins, low, high)]
        else:
            old, line = [Fraction(0)] * bins, [v.value for v in _line(low, high, bins)]
            half = soft(0.5, _F) * ((ends[1] - ends[0]) / _whole(16 * bins))
            for i, start in enumerate(_line(*ends, 16 * bins)[:-1]):
                place = bisect_right(line, (start + half).value) - 1
                old[min(max(place, 0), bins - 1)] += counts[i // 16] / 16
        counts, ends = [a + b for a, b in zip(old, added, strict=True)], (low, high)
    histogram = array([soft(n, _F) if n else 0.0 for n in counts], (bins,), np.float32)
    return histogram, array([ends[0]], (), np.float32), array([ends[1]], (), np.float32)


def _squared(counts: list[Soft], width: float, start: int, end: int, codes: int) -> Fraction:
    """Of each bin: the part up to the end of its first code, whole codes, and the part after the start of its last."""
    step = width * (end - start + 1) / codes
    w, d, half = (soft(v, _F) for v in (width, step, step / 2))

    def code(at: Soft) -> int:
        return min(max(floor(Fraction(at.value) / Fraction(d.value)), 0), codes - 1)

    def cube(v: Soft) -> Soft:
        return v * v * v

    total = Fraction(0)
    for i, n in enumerate(counts):
        begin = soft(float(i - start), _F) * w
        until, density = begin + w, n / w
        first, last = code(begin), code(until)
        parts = [
            density * ((cube(high) - cube(low)) / soft(3.0, _F))
            for low, high in (
                (begin - (soft(float(first), _F) + soft(0.5, _F)) * d, half),
                (-half, half),
                (-half, until - (soft(float(last), _F) * d + half)),
            )
        ]
        between = soft(float(last - first - 1), _F) * parts[1]
        total += Fraction((parts[0] + between + parts[2]).value)
    return total


@derives("torch/HistogramObserver._non_linear_param_search")
def _(histogram: Array, min_val: Array, max_val: Array, dtype: str = "quint8") -> tuple[Array, Array]:
    counts, codes = softs(histogram), 1 << {"quint8": 8, "qint8": 8, "qint32": 32}[dtype]
    n, [low], [high] = len(counts), softs(min_val), softs(max_val)
    width = (high.value - low.value) / n
    sums = [sum(int(v.value) for v in counts[: i + 1]) for i in range(n)]
    first, last, alpha, beta, best = 0, n - 1, 0.0, 1.0, None
    while alpha < beta:
        below, above = (round_to(Fraction(share * sums[-1]), FORMATS[_F]) for share in (alpha + 1e-5, beta - 1e-5))
        left = next((i for i in range(first, last) if sums[i] >= below), last)
        right = next((i for i in range(last, first, -1) if sums[i] <= above), first)
        if left - first > last - right:
            alpha, tried = alpha + 1e-5, (left, last)
        else:
            beta, tried = beta - 1e-5, (first, right)
        if tried != (first, last):
            error = _squared(counts, width, *tried, codes)
            if best is not None and error > best:
                break
            best, (first, last) = error, tried
    step = (high - low) / _whole(n)
    ends = [low + step * _whole(i) for i in (first, last + 1)]
    return array([ends[0]], (), np.float32), array([ends[1]], (), np.float32)
