"""torch's HistogramObserver, value by value: places in softfloats, counts in fractions."""

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

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
