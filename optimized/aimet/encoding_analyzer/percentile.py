"""The range that leaves out a part of the values at either end."""

from collections.abc import Sequence

import torch
from torch import Tensor

from halfeven.optimized.aimet.encoding_analyzer import base
from halfeven.optimized.aimet.encoding_analyzer.histogram import (
    Histogram,
    HistogramAnalyzer,
    HistogramObserver,
    Histograms,
)

__all__ = ["PercentileEncodingAnalyzer"]

_LEAST, _MOST = 50, 100


class PercentileEncodingAnalyzer(HistogramAnalyzer):
    """The range without (100 − ``percentile``) % of the values at either end, zero included.

    Both ends are left edges of the bins where the counts, summed up, reach the percentiles; all values give the first
    and the last edge. A range below ``min_scale`` per step is widened by it. Two bits have no rule of their own.

    Args:
        shape: of the parameters; see ``Observer``.
        num_bins: bins per parameter.
        percentile: in per cent, from 50 to 100.
        block_size: elements per block, or None.

    Raises:
        ValueError: ``num_bins`` is below 1, or ``percentile`` outside of its range.

    Upstream: one symmetric bit divides by its zero positive steps; here that side has no say.
    """

    def __init__(
        self,
        shape: Sequence[int] | int,
        num_bins: int = 2048,
        percentile: float = 100,
        block_size: Sequence[int] | None = None,
    ) -> None:
        """An analyzer without statistics."""
        super().__init__(HistogramObserver(shape, num_bins=num_bins, block_size=block_size))
        self.set_percentile(percentile)

    def set_percentile(self, percentile: float) -> None:
        """Leave out (100 − ``percentile``) % at either end from now on.

        Raises:
            ValueError: it is not from 50 to 100.
        """
        if not _LEAST <= percentile <= _MOST:
            msg = f"percentile={percentile} is not accepted: give {_LEAST} to {_MOST}"
            raise ValueError(msg)
        self.percentile = percentile

    @torch.no_grad()
    def compute_encodings_from_stats(
        self, stats: Sequence[Histogram], num_steps: int, is_symmetric: bool
    ) -> tuple[Tensor, Tensor]:
        """See ``compute_encodings``."""
        base.check_steps(num_steps)
        seen = Histograms.of(stats)
        low, high = seen.edges[:, 0], seen.edges[:, -1]
        if self.percentile != _MOST:
            sums = seen.counts.double().cumsum(1).float()
            most = sums[:, -1:]
            upper = most * self.percentile / base.constant(100, most)
            places = torch.searchsorted(sums, torch.cat([most * (1 - self.percentile / 100), upper], 1))
            low, high = seen.edges.gather(1, places).unbind(1)
        low, high = base.adjust_min_max(low, high, num_steps, is_symmetric)
        shape = self.observer.shape
        return low.to(seen.low.dtype).reshape(shape), high.to(seen.high.dtype).reshape(shape)
