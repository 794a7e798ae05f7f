"""AIMET: the histogram that its percentile and SQNR analyzers keep of what they saw. Measured, aimet-torch 2.42."""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, BlockSize, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.systems.aimet.blocks import grouped

__all__ = ["Batches", "Histogram", "histogram"]

_MEASURED = "aimet-torch 2.42, measured"
_ARITHMETIC = AsComputed(dtype="float32")


@dataclass(frozen=True)
class Batches(Behaviour):
    """The choice of how batches after the first are counted."""

    later: str = choice({
        "by-parameter": "counts every batch by parameter",
        "in-order": "counts later batches as if parameters lay along dimension 0, and refuses float64 there",
    })  # fmt: skip


@dataclass(frozen=True)
class Histogram(Batches):
    """The choices in keeping a histogram."""

    infinities: str = choice(
        {"counted": "counts infinities in the bins at the ends", "dropped": "counts infinities nowhere"}
    )
    alone: str = choice({
        "half-a-unit": "gives one value alone half a unit on either side",
        "unit": "gives one value alone a unit on either side",
    })  # fmt: skip
    far: str = choice({
        "first": "counts a value whose distance times the bins is beyond float32 in the first bin",
        "last": "counts a value whose distance times the bins is beyond float32 in the last bin",
    })  # fmt: skip
    last_edge: str = choice({
        "sum": "takes the sum that leads to it for the last edge",
        "maximum": "takes the maximum itself for the last edge",
    })  # fmt: skip
    cut: str = choice({
        "in-proportion": "splits the count of a bin that is cut in proportion, rounded",
        "cut-off": "splits the count of a bin that is cut in proportion, the fraction cut off",
        "whole": "moves the count of a bin that is cut to where the bin starts",
    })  # fmt: skip


@dataclass(frozen=True)
class _Histogram:
    """Counts of B bins, their B + 1 edges, and the range, of one parameter."""

    counts: Array
    edges: Array
    low: Array
    high: Array


@formula(
    "aimet/histogram",
    equation=r"e_i = i (M - m) / B + m; \quad h_i = \#\{x : \lfloor (x - m) B / (e_B - m) \rfloor = i\}",
    basis=_ARITHMETIC,
    source=_MEASURED,
    behaviour=Histogram(),
    versions={"2.42": (Histogram(later="in-order"), _MEASURED)},
)
def histogram(
    b: Histogram,
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
        RuntimeError: no batch, no finite value, a range beyond float32, a growth limit below 1, float64 after the
            first batch (2.42); ``grouped``'s.
    """
    in_order = b.later == "in-order"
    for i, x in enumerate(batches):
        if i and in_order and x.dtype == np.float64:
            msg = f"batches[{i}] of dtype float64 is not accepted after the first: give float32 or narrower"
            raise RuntimeError(msg)
    rows = [grouped(x, shape, block_size) for x in batches]
    later = [x.reshape(len(r), -1) if in_order else r for x, r in zip(batches[1:], rows[1:], strict=True)]
    return _observed(b, rows, [*rows[:1], *later], num_bins, growth_limit)


def _observed(
    b: Histogram, rows: list[Array], counted: list[Array], num_bins: int, growth_limit: float | None
) -> dict[str, Array]:
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
            kept = first = _first(b, rows[0][k], num_bins)
            for seen, values in zip(rows[1:], counted[1:], strict=True):
                kept = _merged(b, kept, first, _range(seen[k]), values[k], np.asarray(limit, np.float32))
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


def _edges(b: Histogram, low: Array, high: Array, num_bins: int) -> Array:
    """Even edges; the last is not the maximum itself, but the sum that leads to it."""
    alone = low == high
    half = low.dtype.type(0.5 if b.alone == "half-a-unit" else 1)
    low, high = ((e - half if alone else e).astype(np.float32) for e, half in ((low, half), (high, -half)))
    step = (high - low) / np.float32(num_bins)
    edges: Array = np.arange(num_bins + 1).astype(np.float32) * step + low
    if b.last_edge == "maximum":
        edges[-1] = high
    if not np.isfinite(edges).all():
        msg = f"batches from {low} to {high} are not accepted: give a range whose bins are finite in float32"
        raise RuntimeError(msg)
    return edges


def _counts(b: Histogram, x: Array, low: Array, high: Array, num_bins: int) -> Array:
    """Counts of [low, high]; what lies outside, compared in the dtype of ``x``, is counted at the ends."""
    values = x.astype(np.float32)
    inside = values[(values >= low) & (values <= high)]
    # Next to a value so large that half a unit vanishes stand the two float32 next to it.
    start, end = (np.nextafter(low, -np.inf), np.nextafter(high, np.inf)) if low == high else (low, high)
    place = (inside - start) * np.float32(num_bins) / (end - start)
    far = 0 if b.far == "first" else num_bins
    place = np.where(place == np.inf, far, place).astype(np.int64)
    counts: Array = np.bincount(np.minimum(place, num_bins - 1), minlength=num_bins).astype(np.float32)
    beyond = x if b.infinities == "counted" else x[np.isfinite(x)]
    counts[0] += np.count_nonzero(beyond < x.dtype.type(low))
    counts[-1] += np.count_nonzero(beyond > x.dtype.type(high))
    return counts


def _first(b: Histogram, x: Array, num_bins: int) -> _Histogram:
    low, high = _range(x)
    edges = _edges(b, low, high, num_bins)
    return _Histogram(_counts(b, x, edges[0], edges[-1], num_bins), edges, low, high)


def _merged(
    b: Histogram, kept: _Histogram, first: _Histogram, seen: tuple[Array, Array], x: Array, limit: Array
) -> _Histogram:
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
        part = (ends - starts) / old_width * kept.counts
        if b.cut == "whole":
            part = kept.counts
        part = np.minimum(np.rint(part) if b.cut == "in-proportion" else np.floor(part), kept.counts)
        next_bins = np.minimum(((starts + width - low) / width).astype(np.int32), num_bins - 1)
        counts = np.zeros(num_bins, np.float32)
        np.add.at(counts, bins, part)
        np.add.at(counts, next_bins, kept.counts - part)
    counts = counts + _counts(b, x, low, high, num_bins)
    low, high = np.asarray(low), np.asarray(high)
    return _Histogram(counts, _edges(b, low, high, num_bins), low, high)
