"""torch: the histogram that ``HistogramObserver`` keeps of what it observes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula

__all__ = ["ObservedHistogram", "histogram", "non_linear_param_search"]

_F32 = np.float32
_PARTS = 16  # of a bin, by which its count is moved
_STEP = 1e-5  # of the counts, by which an end of the range moves


@dataclass(frozen=True)
class ObservedHistogram(Behaviour):
    """The choices in keeping a histogram."""

    place: str = choice(
        {
            "times-bins": "finds a value's bin by its product with the bins over the range",
            "over-width": "finds a value's bin by its quotient by the width of a bin",
        }
    )
    moved: str = choice(
        {
            "sixteenths": "moves a count into the bins of a wider range in sixteenths, each by its middle",
            "whole": "moves a count into the bins of a wider range as a whole, by its middle",
        }
    )


def _counted(b: ObservedHistogram, x: Array, bins: int, low: np.float32, high: np.float32) -> Array:
    """How many values lie in each of ``bins`` bins from ``low`` to ``high``; of one value alone, from 1 below it."""
    if low == high:
        low, high = low - _F32(1), high + _F32(1)
    if b.place == "times-bins":
        place = (x - low) * _F32(bins) / (high - low)
    else:
        place = (x - low) / ((high - low) / _F32(bins))
    return np.bincount(np.minimum(place.astype(np.int64), bins - 1), minlength=bins).astype(_F32)


def _edges(low: np.float32, high: np.float32, count: int) -> Array:
    """``count`` numbers from ``low`` to ``high``, computed from both ends to the middle."""
    step, i = (high - low) / _F32(count - 1), np.arange(count)
    upward, downward = low + step * i.astype(_F32), high - step * (count - 1 - i).astype(_F32)
    return np.where(i < count // 2, upward, downward)


def _moved(b: ObservedHistogram, counts: Array, old: Sequence[np.float32], new: Sequence[np.float32]) -> Array:
    """The counts of the ``old`` range in the bins of the ``new`` one."""
    bins, parts = len(counts), _PARTS if b.moved == "sixteenths" else 1
    pieces = bins * parts
    size = (old[1] - old[0]) / _F32(pieces)
    middles = _edges(old[0], old[1], pieces + 1)[:-1] + _F32(0.5) * size
    place = np.searchsorted(_edges(new[0], new[1], bins + 1), middles, side="right") - 1
    weights = np.repeat(counts, parts) / _F32(parts)
    return np.bincount(place.clip(0, bins - 1), weights.astype(np.float64), bins).astype(_F32)


@formula(
    "torch/HistogramObserver",
    equation=r"h_i = |\{x : \lfloor (x - x_{min}) \cdot n / (x_{max} - x_{min}) \rfloor = i\}|",
    basis=AsComputed(dtype="float32"),
    source="torch.ao.quantization.observer.HistogramObserver: docstring, step 1; how counts are moved is measured",
    behaviour=ObservedHistogram(),
)
def histogram(b: ObservedHistogram, batches: Sequence[Array], bins: int = 2048) -> tuple[Array, Array, Array]:
    """The histogram of all batches, float32, with minimum and maximum, 0-d float32.

    Measured: a batch that widens the range moves the counts: each bin in sixteen parts, by their middles; those of one
    value alone all together. Infinities are left out. Before any batch the counts are 0, minimum and maximum inf and
    -inf. Where an edge is no float32 its rounding is open, since implementations add up steps in an order of their own.

    Args:
        batches: float32 of any shapes, in the order in which they are seen; those without elements change nothing.
        bins: n.
    """
    counts, low, high = np.zeros(bins, _F32), _F32(np.inf), _F32(-np.inf)
    for batch in batches:
        x = batch[np.isfinite(batch)]
        if not x.size:
            continue
        if low == np.inf:
            low, high = x.min(), x.max()
            counts = _counted(b, x, bins, low, high)
            continue
        wider = min(low, x.min()), max(high, x.max())
        added = _counted(b, x, bins, *wider)
        if wider == (low, high):
            counts = counts + added
        elif low == high:
            counts = _counted(b, np.array([low]), bins, *wider) * counts.sum() + added
        else:
            counts = added + _moved(b, counts, (low, high), wider)
        low, high = wider
    return counts, np.asarray(low), np.asarray(high)


def _floor_over(a: Array, d: np.float32) -> Array:
    """The quotient rounded down, from the exact remainder."""
    rest = np.fmod(a, d)
    whole = (a - rest) / d - ((rest != 0) & (rest < 0)).astype(_F32)
    down = np.floor(whole)
    return np.asarray(down + (whole - down > _F32(0.5)))


def _error(counts: Array, width: float, start: int, end: int, codes: int) -> float:
    """The squared error of values spread evenly over their bins, with codes from bin ``start`` to bin ``end``."""
    step = width * (end - start + 1) / codes
    if step == 0:
        return 0.0
    w, d, half = _F32(width), _F32(step), _F32(step / 2)
    begin = (np.arange(len(counts)) - start).astype(_F32) * w
    until = begin + w
    first, last = (_floor_over(at, d).clip(0, codes - 1) for at in (begin, until))
    density = counts / w

    def norm(low: Any, high: Any) -> Array:
        return np.asarray(density * ((high * high * high - low * low * low) / _F32(3)))

    total = norm(begin - (first + _F32(0.5)) * d, half * np.ones_like(counts))
    total = total + (last - first - _F32(1)) * norm(-half, half)
    total = total + norm(-half, until - (last * d + half))
    return math.fsum(total.tolist())


@formula(
    "torch/HistogramObserver._non_linear_param_search",
    equation=r"(m, M) \approx \arg\min_{m, M} \sum_i \int_i h_i\,(x - \hat x)^2\,dx",
    basis=AsComputed(dtype="float32; float64 for the width of a bin; the sum is exact"),
    source="torch.ao.quantization.observer.HistogramObserver: docstring, step 2; how it searches is measured",
)
def non_linear_param_search(
    histogram: Array, min_val: Array, max_val: Array, dtype: str = "quint8"
) -> tuple[Array, Array]:
    """The range, 0-d float32, of which scale and zero point are made as by ``MinMaxObserver.calculate_qparams``.

    Measured: from the whole range the ends move inward by 1e-5 of the counts, the one that leaves out more bins, until
    the squared error of a range with fewer bins is larger than the last one's. How the errors of the bins are summed
    is open; here they are summed exactly.

    Args:
        histogram: counts, float32, in bins of one width.
        min_val: the lower end of the first bin, 0-d float32.
        max_val: the upper end of the last one.
        dtype: of the codes: "quint8", "qint8" or "qint32".
    """
    bins, codes = len(histogram), {"quint8": 2**8, "qint8": 2**8, "qint32": 2**32}[dtype]
    with np.errstate(all="ignore"):
        width = (float(max_val) - float(min_val)) / bins
        total, summed = float(histogram.sum()), np.cumsum(histogram, dtype=_F32)
        low, high, start, end, least = 0.0, 1.0, 0, bins - 1, math.inf
        while low < high:
            left, right = start, end
            below, above = _F32((low + _STEP) * total), _F32((high - _STEP) * total)
            while left < end and summed[left] < below:
                left += 1
            while right > start and summed[right] > above:
                right -= 1
            if left - start > end - right:
                low, chosen = low + _STEP, (left, end)
            else:
                high, chosen = high - _STEP, (start, right)
            if chosen == (start, end):
                continue
            error = _error(histogram, width, *chosen, codes)
            if error > least:
                break
            least, (start, end) = error, chosen
        step = (max_val - min_val) / _F32(bins)
        return np.asarray(min_val + step * _F32(start)), np.asarray(min_val + step * _F32(end + 1))
