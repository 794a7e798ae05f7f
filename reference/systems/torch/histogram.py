"""torch: the histogram that ``HistogramObserver`` keeps of what it observes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula

__all__ = ["ObservedHistogram", "histogram"]

_F32 = np.float32
_PARTS = 16  # of a bin, by which its count is moved


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
