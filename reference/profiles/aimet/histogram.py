"""AIMET: the histogram that its percentile and SQNR analyzers keep of what they saw. Measured, aimet-torch 2.42."""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.blocks import BlockSize, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.aimet.analyzers import grouped
from halfeven.reference.profiles.profile import Array

__all__ = ["histogram", "histogram_2_42"]

_ARITHMETIC = AsComputed(dtype="float32")


@dataclass(frozen=True)
class _Histogram:
    """Counts of B bins, their B + 1 edges, and the range, of one parameter."""

    counts: Array
    edges: Array
    low: Array
    high: Array


@formula(
    "aimet.histogram",
    equation=r"e_i = i (M - m) / B + m; \quad h_i = \#\{x : \lfloor (x - m) B / (e_B - m) \rfloor = i\}",
    basis=_ARITHMETIC,
    source="aimet-torch 2.42, measured",
)
def histogram(
    batches: tuple[Array, ...],
    shape: Shape,
    num_bins: int,
    growth_limit: float | None = None,
    block_size: BlockSize | None = None,
) -> dict[str, Array]:
    """Per parameter of ``shape``, in rows: float32 ``counts`` of ``num_bins`` bins, their ``edges``, ``min``, ``max``.

    The range is that of the finite values; one value alone has half a unit on either side. Infinities count in the
    bins at the ends, NaN nowhere. A value whose distance from m times B is beyond float32 counts in the first bin. A
    later batch widens the range, by ``growth_limit`` / 2 times the first at either end at most, and moves the counts
    into the new bins, those of a bin that is cut in proportion.

    Args:
        batches: floats, in reals, of shapes that ``shape`` fits.
        shape: of the parameters, as in ``grouped``.
        num_bins: bins per parameter.
        growth_limit: 1 or more; without it there is no limit.
        block_size: elements per block, as in ``grouped``.

    Raises:
        ValueError: ``num_bins`` is below 1; ``grouped``'s.
        RuntimeError: no batch, no finite value, a range beyond float32, a growth limit below 1; ``grouped``'s.
    """
    rows = [grouped(x, shape, block_size) for x in batches]
    return _observed(rows, rows, num_bins, growth_limit)


@formula(
    "aimet.histogram@2.42",
    equation=r"\text{from the second batch on, row } k \text{ counts the } k\text{-th part of the batch in order}",
    basis=_ARITHMETIC,
    source="aimet-torch 2.42, measured",
)
def histogram_2_42(
    batches: tuple[Array, ...],
    shape: Shape,
    num_bins: int,
    growth_limit: float | None = None,
    block_size: BlockSize | None = None,
) -> dict[str, Array]:
    """``histogram``, but later batches are counted as if the parameters were along the first dimension.

    Raises:
        RuntimeError: a later batch of float64, too.
    """
    for i, x in enumerate(batches):
        if i and x.dtype == np.float64:
            msg = f"batches[{i}] of dtype float64 is not accepted after the first: give float32 or narrower"
            raise RuntimeError(msg)
    rows = [grouped(x, shape, block_size) for x in batches]
    counted = [x.reshape(len(r), -1) for x, r in zip(batches, rows, strict=True)]
    return _observed(rows, [*rows[:1], *counted[1:]], num_bins, growth_limit)


def _observed(rows: list[Array], counted: list[Array], num_bins: int, growth_limit: float | None) -> dict[str, Array]:
    if num_bins < 1:
        msg = f"num_bins={num_bins} is not accepted: give 1 or more"
        raise ValueError(msg)
    limit = np.inf if growth_limit is None else growth_limit
    if limit < 1:
        msg = f"growth_limit={growth_limit} is not accepted: give 1 or more"
        raise RuntimeError(msg)
    if not rows:
        msg = "batches=() is not accepted: give one or more"
        raise RuntimeError(msg)
    found = []
    with np.errstate(all="ignore"):
        for k in range(len(rows[0])):
            kept = first = _first(rows[0][k], num_bins)
            for seen, values in zip(rows[1:], counted[1:], strict=True):
                kept = _merged(kept, first, _range(seen[k]), values[k], np.asarray(limit, np.float32))
            found.append(kept)
    fields = {"counts": "counts", "edges": "edges", "min": "low", "max": "high"}
    return {name: np.stack([getattr(h, field) for h in found]) for name, field in fields.items()}


def _range(x: Array) -> tuple[Array, Array]:
    """The least and the greatest finite value."""
    finite = x[np.isfinite(x)]
    if not finite.size:
        msg = f"batches with {x} for one parameter are not accepted: give a finite value"
        raise RuntimeError(msg)
    return np.asarray(np.minimum.reduce(finite)), np.asarray(np.maximum.reduce(finite))


def _edges(low: Array, high: Array, num_bins: int) -> Array:
    """Even edges; the last is not the maximum itself, but the sum that leads to it."""
    alone = low == high
    half = low.dtype.type(0.5)
    low, high = ((e - half if alone else e).astype(np.float32) for e, half in ((low, half), (high, -half)))
    step = (high - low) / np.float32(num_bins)
    edges: Array = np.arange(num_bins + 1).astype(np.float32) * step + low
    if not (np.isfinite(edges[0]) and np.isfinite(edges[-1])):
        msg = f"batches from {low} to {high} are not accepted: give a range whose bins are finite in float32"
        raise RuntimeError(msg)
    return edges


def _counts(x: Array, low: Array, high: Array, num_bins: int) -> Array:
    """Counts of [low, high]; what lies outside, compared in the dtype of ``x``, is counted at the ends."""
    values = x.astype(np.float32)
    inside = values[(values >= low) & (values <= high)]
    # Beside a value so large that half a unit vanishes stand the two float32 next to it.
    start, end = (np.nextafter(low, -np.inf), np.nextafter(high, np.inf)) if low == high else (low, high)
    place = (inside - start) * np.float32(num_bins) / (end - start)
    place = np.where(place == np.inf, np.float32(0), place).astype(np.int64)  # beyond float32: the first bin
    counts: Array = np.bincount(np.minimum(place, num_bins - 1), minlength=num_bins).astype(np.float32)
    counts[0] += np.count_nonzero(x < x.dtype.type(low))
    counts[-1] += np.count_nonzero(x > x.dtype.type(high))
    return counts


def _first(x: Array, num_bins: int) -> _Histogram:
    low, high = _range(x)
    edges = _edges(low, high, num_bins)
    return _Histogram(_counts(x, edges[0], edges[-1], num_bins), edges, low, high)


def _merged(kept: _Histogram, first: _Histogram, seen: tuple[Array, Array], x: Array, limit: Array) -> _Histogram:
    num_bins = len(kept.counts)
    growth = (first.edges[-1] - first.edges[0]) * limit / np.float32(2)
    # Never narrower than it was, and within the limit.
    low = np.minimum(np.maximum(seen[0].astype(np.float32), first.edges[0] - growth), kept.edges[0])
    high = np.minimum(np.maximum(seen[1].astype(np.float32), kept.edges[-1]), first.edges[-1] + growth)
    if low == kept.low and high == kept.high:
        counts = kept.counts
    else:
        width, old_width = (high - low) / np.float32(num_bins), kept.edges[1] - kept.edges[0]
        starts = kept.edges[:-1]
        bins = np.minimum(((starts - low) / width).astype(np.int32), num_bins - 1)
        ends = low + width * (bins + 1).astype(np.float32)
        part = np.minimum(np.rint((ends - starts) / old_width * kept.counts), kept.counts)
        next_bins = np.minimum(((starts + width - low) / width).astype(np.int32), num_bins - 1)
        counts = np.zeros(num_bins, np.float32)
        np.add.at(counts, bins, part)
        np.add.at(counts, next_bins, kept.counts - part)
    counts = counts + _counts(x, low, high, num_bins)
    low, high = np.asarray(low), np.asarray(high)
    return _Histogram(counts, _edges(low, high, num_bins), low, high)
