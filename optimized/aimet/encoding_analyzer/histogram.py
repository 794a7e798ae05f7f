"""Histograms of what was observed, for all parameters at once: a row each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import torch
from torch import Tensor

from halfeven.optimized.aimet.encoding_analyzer import base, binning

__all__ = ["Histogram", "HistogramAnalyzer", "HistogramObserver", "Histograms", "check_growth_limit"]


@dataclass(eq=False)
class Histogram:
    """Of one parameter: float32 counts of B bins, their B + 1 edges, and the range; None before the first batch."""

    histogram: Tensor | None = None
    bin_edges: Tensor | None = None
    min: Tensor | None = None
    max: Tensor | None = None


@dataclass(eq=False, repr=False)
class Histograms(Sequence[Histogram]):
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
    def of(cls, stats: Sequence[Histogram]) -> "Histograms":
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
    def __getitem__(self, index: int) -> Histogram: ...
    @overload
    def __getitem__(self, index: slice) -> list[Histogram]: ...
    def __getitem__(self, index: int | slice) -> Histogram | list[Histogram]:
        """The histogram of a parameter, or of several, as views."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return Histogram(self.counts[index], self.edges[index], self.low[index], self.high[index])

    def __repr__(self) -> str:
        """The list of them."""
        return repr(list(self))


class HistogramObserver(base.Observer[Sequence[Histogram]]):
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
        self.stats: Sequence[Histogram] = ()
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
        low, high, finite = binning.finite_range(x, blocks)
        edges = binning.even_edges(low, high, self.num_bins)
        counts = binning.counted(binning.in_rows(x, blocks), edges[:, 0], edges[:, -1], self.num_bins, finite)
        return Histograms(counts, edges, low, high, finite)

    @torch.no_grad()
    def merge_stats(self, stats: Sequence[Histogram], input_tensor: Tensor | None = None) -> None:
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
        edges = binning.even_edges(low, high, self.num_bins)
        counts = kept.counts.clone()
        changed = ((low != kept.low) | (high != kept.high)).nonzero().squeeze(1)
        if changed.numel():
            counts[changed] = binning.rebinned(counts[changed], kept.edges[changed], low[changed], high[changed])
        rows = binning.in_rows(x, base.block_sizes(x.shape, self.shape, self.block_size))
        counts += binning.counted(rows, low, high, self.num_bins, new.finite)
        self.stats = Histograms(counts, edges, low, high)

    def reset_stats(self) -> None:
        """Forget all batches."""
        self.stats = [Histogram() for _ in range(math.prod(self.shape))]
        self._range_limit = None

    def get_stats(self) -> Sequence[Histogram]:
        """What is kept of all batches."""
        return self.stats


class HistogramAnalyzer(base.EncodingAnalyzer[Sequence[Histogram]]):
    """An analyzer of histograms."""

    @torch.no_grad()
    def update_stats(self, input_tensor: Tensor) -> Sequence[Histogram]:
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
