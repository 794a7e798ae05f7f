"""Histograms of what was observed, for all parameters at once: a row each."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import torch
from torch import Tensor

from halfeven.optimized.aimet.encoding_analyzer import base

__all__ = ["HistogramAnalyzer", "HistogramObserver", "Histograms", "_Histogram", "check_growth_limit"]

_PIECE = 2**18  # elements that stay in a cache
_ON_DEVICE = 2**26  # elements at a time where there is no such cache


@dataclass(eq=False)
class _Histogram:
    """Of one parameter: float32 counts of B bins, their B + 1 edges, and the range; None before the first batch."""

    histogram: Tensor | None = None
    bin_edges: Tensor | None = None
    min: Tensor | None = None
    max: Tensor | None = None


@dataclass(eq=False, repr=False)
class Histograms(Sequence[_Histogram]):
    """The histograms of P parameters, and a sequence of them one by one.

    Attributes:
        counts: (P, B), float32.
        edges: (P, B + 1), float32.
        low: (P,), the least value; of the dtype of the batch, float32 after a second one.
        high: (P,), the greatest value.
        finite: whether all that was observed is known to be.
    """

    counts: Tensor
    edges: Tensor
    low: Tensor
    high: Tensor
    finite: bool = False

    @classmethod
    def of(cls, stats: Sequence[_Histogram]) -> "Histograms":
        """Those of ``stats``.

        Raises:
            StatisticsNotFoundError: they are of no batch.
        """
        if isinstance(stats, Histograms):
            return stats
        fields = [(h.histogram, h.bin_edges, h.min, h.max) for h in stats]
        tensors = [[t for t in column if t is not None] for column in zip(*fields, strict=True)]
        if not stats or any(len(column) < len(stats) for column in tensors):
            msg = "stats without a batch are not accepted: call update_stats first"
            raise base.StatisticsNotFoundError(msg)
        counts, edges, low, high = (torch.stack(column) for column in tensors)
        return cls(counts, edges, low, high)

    def __len__(self) -> int:
        """The number of parameters."""
        return len(self.counts)

    @overload
    def __getitem__(self, index: int) -> _Histogram: ...
    @overload
    def __getitem__(self, index: slice) -> list[_Histogram]: ...
    def __getitem__(self, index: int | slice) -> _Histogram | list[_Histogram]:
        """The histogram of a parameter, or of several, as views."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return _Histogram(self.counts[index], self.edges[index], self.low[index], self.high[index])

    def __repr__(self) -> str:
        """The list of them."""
        return repr(list(self))


class HistogramObserver(base.Observer[Sequence[_Histogram]]):
    """Keeps a histogram per parameter, over the range of the finite values.

    One value alone has half a unit on either side. Infinities count in the bins at the ends, NaN nowhere. A later batch
    widens the range, and the counts move into the new bins, those of a bin that is cut in proportion.

    Attributes:
        num_bins: B.
        growth_limit: at either end the range widens by half of that times the first one at most.

    Upstream: from the second batch on, elements are counted as if the parameters were along the first dimension, and
    float64 is refused; counts beyond 2^24 stop growing, here they are rounded; and where the bins of the first have no
    width in float32, a second batch is refused, or makes counts NaN.
    """

    def __init__(
        self,
        shape: Sequence[int] | int,
        *,
        block_size: Sequence[int] | None = None,
        num_bins: int,
        growth_limit: float | None = None,
    ) -> None:
        """No counts yet.

        Raises:
            ValueError: ``num_bins`` is below 1.
            RuntimeError: ``growth_limit`` is below 1.
        """
        super().__init__(shape, block_size)
        if num_bins < 1:
            msg = f"num_bins={num_bins} is not accepted: give 1 or more"
            raise ValueError(msg)
        check_growth_limit(growth_limit)
        self.num_bins = num_bins
        self.growth_limit = math.inf if growth_limit is None else growth_limit
        self.stats: Sequence[_Histogram] = ()
        self._range_limit: tuple[Tensor, Tensor] | None = None
        self.reset_stats()

    @torch.no_grad()
    def collect_stats(self, input_tensor: Tensor) -> Histograms:
        """The histograms of a batch.

        Raises:
            TypeError: the batch is not of a float dtype.
            RuntimeError: there is no finite value for a parameter, or a range beyond float32; shape or blocks do not
                fit the batch.
            ValueError: with blocks, as ``block_sizes``.
        """
        x = base.values(input_tensor)
        blocks = base.block_sizes(x.shape, self.shape, self.block_size)
        low, high, finite = _range(x, blocks)
        edges = _edges(low, high, self.num_bins)
        counts = _counts(_rows(x, blocks), edges[:, 0], edges[:, -1], self.num_bins, finite)
        return Histograms(counts, edges, low, high, finite)

    @torch.no_grad()
    def merge_stats(self, stats: Sequence[_Histogram], input_tensor: Tensor | None = None) -> None:
        """Add the histograms ``stats`` of the batch ``input_tensor``, which is counted anew over the wider range.

        Raises:
            TypeError: there are counts already, and no ``input_tensor``.
            RuntimeError: the range is beyond float32.
        """
        new = Histograms.of(stats)
        if self._range_limit is None:
            self.stats = new
            left, right = new.edges[:, 0], new.edges[:, -1]
            growth = torch.full_like(left, math.inf)
            if self.growth_limit != math.inf:  # a range that vanishes in float32 times infinity is no number
                growth = (right - left) * self.growth_limit / base.constant(2, left)
            self._range_limit = left - growth, right + growth
            return
        if input_tensor is None:
            msg = "input_tensor=None is not accepted for a second batch: give the batch that stats are of"
            raise TypeError(msg)
        x = base.values(input_tensor)
        kept, (left, right) = Histograms.of(self.stats), self._range_limit
        # Never narrower than it was, and within the limit.
        low = torch.minimum(torch.maximum(new.low.float(), left), kept.edges[:, 0])
        high = torch.minimum(torch.maximum(new.high.float(), kept.edges[:, -1]), right)
        edges = _edges(low, high, self.num_bins)
        counts = kept.counts.clone()
        changed = ((low != kept.low) | (high != kept.high)).nonzero().squeeze(1)
        if changed.numel():
            counts[changed] = _moved(counts[changed], kept.edges[changed], low[changed], high[changed])
        rows = _rows(x, base.block_sizes(x.shape, self.shape, self.block_size))
        counts += _counts(rows, low, high, self.num_bins, new.finite)
        self.stats = Histograms(counts, edges, low, high)

    def reset_stats(self) -> None:
        """Forget all batches."""
        self.stats = [_Histogram() for _ in range(math.prod(self.shape))]
        self._range_limit = None

    def get_stats(self) -> Sequence[_Histogram]:
        """What is kept of all batches."""
        return self.stats


class HistogramAnalyzer(base.EncodingAnalyzer[Sequence[_Histogram]]):
    """An analyzer of histograms."""

    @torch.no_grad()
    def update_stats(self, input_tensor: Tensor) -> Sequence[_Histogram]:
        """Observe a batch; the histograms of it alone are returned."""
        new: Histograms = self.observer.collect_stats(input_tensor)
        self.observer.merge_stats(new, input_tensor)
        return new


def check_growth_limit(growth_limit: float | None) -> None:
    """Refuse a limit that would make a range narrower.

    Raises:
        RuntimeError: it is below 1.
    """
    if growth_limit is not None and growth_limit < 1:
        msg = f"growth_limit={growth_limit} is not accepted: give 1 or more"
        raise RuntimeError(msg)


def _rows(x: Tensor, blocks: Sequence[int]) -> Tensor:
    """The elements of each parameter in a row."""
    counts = [n // b if n else 0 for n, b in zip(x.shape, blocks, strict=True)]
    if math.prod(counts) == 1:
        return x.reshape(1, -1)
    split = x.reshape([n for pair in zip(counts, blocks, strict=True) for n in pair])
    return split.permute(*range(0, split.dim(), 2), *range(1, split.dim(), 2)).reshape(math.prod(counts), -1)


def _range(x: Tensor, blocks: Sequence[int]) -> tuple[Tensor, Tensor, bool]:
    """The least and the greatest finite value, in a row; and whether all are finite.

    Raises:
        RuntimeError: there is none for a parameter.
    """
    if x.numel():
        low, high = base.ends(x, blocks, (-1,))
        finite = bool((low.isfinite() & high.isfinite()).all())
        if not finite:
            kept = x.isfinite()
            low, _ = base.ends(torch.where(kept, x, torch.inf), blocks, (-1,))
            _, high = base.ends(torch.where(kept, x, -torch.inf), blocks, (-1,))
        if finite or bool((low <= high).all()):
            return low, high, finite
    msg = f"input_tensor of shape {tuple(x.shape)} is not accepted: give a finite value for every parameter"
    raise RuntimeError(msg)


def _edges(low: Tensor, high: Tensor, num_bins: int) -> Tensor:
    """Even edges in float32; the last is not the maximum itself, but the sum that leads to it.

    Raises:
        RuntimeError: they are not finite.
    """
    alone = low == high
    start, end = torch.where(alone, low - 0.5, low).float(), torch.where(alone, high + 0.5, high).float()
    step = (end - start) / base.constant(num_bins, start)
    bins = torch.arange(num_bins + 1, device=low.device).float()
    edges = bins * step[:, None] + start[:, None]
    if not bool(edges.isfinite().all()):
        worst = int((~edges.isfinite().all(1)).nonzero()[0])
        msg = (
            f"a batch from {low[worst].item()} to {high[worst].item()} is not accepted: "
            f"give a range whose bins are finite in float32"
        )
        raise RuntimeError(msg)
    return edges


def _counts(rows: Tensor, low: Tensor, high: Tensor, num_bins: int, finite: bool = False) -> Tensor:
    """Counts of [low, high] per row, float32; what lies outside, compared in the dtype of ``rows``, is at the ends."""
    # Beside a value so large that half a unit vanishes stand the two float32 next to it.
    infinity = torch.full_like(low, torch.inf)
    start = torch.where(low == high, low.nextafter(-infinity), low)
    span = torch.where(low == high, high.nextafter(infinity), high) - start
    narrow = low.to(rows.dtype), high.to(rows.dtype)
    exact = rows.dtype != torch.float64 and bool(((narrow[0] == low) & (narrow[1] == high)).all())
    overflows = bool((span * num_bins).isinf().any())
    counts = torch.empty(len(rows), num_bins, device=rows.device)
    for i, pieces in _pieces(rows, num_bins):
        start_, span_, low_, high_, left, right = (t[i, None] for t in (start, span, low, high, *narrow))
        n = len(start_)
        found = torch.zeros(n, num_bins, dtype=torch.int64, device=rows.device)
        for x in pieces:
            v = x.float()
            place = (v - start_).mul_(num_bins).div_(span_)
            if overflows:  # beyond float32: the first bin
                place.masked_fill_((place == torch.inf) & (v <= high_), 0.0)
            bins = place.clamp_(0, num_bins - 1).to(torch.int32)
            if n > 1:
                bins += torch.arange(0, n * num_bins, num_bins, dtype=torch.int32, device=rows.device)[:, None]
            if not finite:
                bins.masked_fill_(v.isnan(), n * num_bins)
            found += bins.flatten().bincount(minlength=n * num_bins + 1)[:-1].view(n, num_bins)
            if not exact:
                found[:, 0] += (x < left).sum(1) - (v < low_).sum(1)
                found[:, -1] += (x > right).sum(1) - (v > high_).sum(1)
        counts[i] = found.float()
    return counts


def _pieces(rows: Tensor, num_bins: int) -> Iterator[tuple[slice, list[Tensor]]]:
    """Groups of rows, each with its elements in pieces that stay in the cache."""
    most = _PIECE if rows.device.type == "cpu" else _ON_DEVICE
    height = max(most // max(rows.shape[1], num_bins), 1)
    for i in range(0, len(rows), height):
        length = max(most // height, 1)
        yield slice(i, i + height), [rows[i : i + height, j : j + length] for j in range(0, rows.shape[1], length)]


def _moved(counts: Tensor, edges: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The counts in even bins from ``low`` to ``high``: those of a cut bin in proportion, half to even."""
    low, high, num_bins = low[:, None], high[:, None], counts.shape[1]
    width, old_width = (high - low) / base.constant(num_bins, low), edges[:, 1:2] - edges[:, :1]
    starts = edges[:, :-1]
    bins = ((starts - low) / width).int().clamp_(0, num_bins - 1)
    ends = low + width * (bins + 1)
    part = torch.minimum(((ends - starts) / old_width * counts).round_(), counts)
    part = torch.where(old_width == 0, counts, part)  # a bin without a width is not cut
    next_bins = ((starts + width - low) / width).int().clamp_(0, num_bins - 1)
    row = torch.arange(0, counts.numel(), num_bins, device=low.device)[:, None]
    moved = torch.zeros_like(counts).flatten()
    moved.index_add_(0, (row + bins).flatten(), part.flatten())
    moved.index_add_(0, (row + next_bins).flatten(), (counts - part).flatten())
    return moved.view_as(counts)
