"""The range of the least quantization error."""

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from halfeven.optimized.aimet.affine.range import min_scale
from halfeven.optimized.aimet.encoding_analyzer import base
from halfeven.optimized.aimet.encoding_analyzer.histogram import (
    Histogram,
    HistogramAnalyzer,
    HistogramObserver,
    Histograms,
    check_growth_limit,
)

__all__ = ["SqnrEncodingAnalyzer", "TfEnhancedEncodingAnalyzer"]

_PIECE = 2**17  # errors that stay in a cache
_ON_DEVICE = 2**26


class SqnrEncodingAnalyzer(HistogramAnalyzer):
    """The range whose grid has the least squared error over the histogram, the first of several.

    Values stand at the middles of the bins. Symmetric candidates are deltas, evenly up to more than the greatest
    magnitude needs; asymmetric ones are pairs of delta and offset inside the observed range. The errors are float32
    (float64 for asymmetric float64 inputs), their sum float64.

    Args:
        shape: of the parameters; see ``Observer``.
        num_bins: bins per parameter.
        asymmetric_delta_candidates: how many deltas are tried if not symmetric, 2 or more.
        symmetric_delta_candidates: how many deltas are tried if symmetric, 2 or more.
        offset_candidates: at most so many offsets are tried, the observed one among them; 3 or more.
        max_parallelism: at most so many parameters are tried at once.
        gamma: what the error of a clipped value is multiplied by.
        histogram_growth_limit: at either end the range widens by half of that times the first one at most.
        block_size: elements per block, or None.

    Raises:
        ValueError: a number of bins or candidates is too low.
        RuntimeError: ``histogram_growth_limit`` is below 1.

    Upstream: the errors are summed in float32, in an order that depends on their number, and another candidate may win
    whose sum is larger by a rounding; a minimum of zero may be -0.0.
    """

    def __init__(
        self,
        shape: Sequence[int] | int,
        num_bins: int = 2048,
        *,
        asymmetric_delta_candidates: int = 17,
        symmetric_delta_candidates: int = 101,
        offset_candidates: int = 21,
        max_parallelism: int = 64,
        gamma: float = 3.0,
        histogram_growth_limit: float | None = None,
        block_size: Sequence[int] | None = None,
    ) -> None:
        """An analyzer without statistics."""
        for name, value, least in (
            ("asymmetric_delta_candidates", asymmetric_delta_candidates, 2),
            ("symmetric_delta_candidates", symmetric_delta_candidates, 2),
            ("offset_candidates", offset_candidates, 3),
            ("max_parallelism", max_parallelism, 1),
        ):
            if value < least:
                msg = f"{name}={value} is not accepted: give {least} or more"
                raise ValueError(msg)
        super().__init__(
            HistogramObserver(shape, num_bins=num_bins, growth_limit=histogram_growth_limit, block_size=block_size)
        )
        self.asym_delta_candidates = asymmetric_delta_candidates
        self.sym_delta_candidates = symmetric_delta_candidates
        self.num_offset_candidates = offset_candidates
        self.max_parallelism = max_parallelism
        self.gamma = gamma

    @torch.no_grad()
    def compute_encodings_from_stats(
        self, stats: Sequence[Histogram], num_steps: int, is_symmetric: bool
    ) -> tuple[Tensor, Tensor]:
        """See ``compute_encodings``."""
        seen = Histograms.of(stats)
        base.check_steps(num_steps)
        candidates = self._symmetric if is_symmetric else self._asymmetric
        delta, offset = candidates(*_with_zero(seen, num_steps), num_steps)
        best = _costs(seen, delta, offset, num_steps, self.gamma, self.max_parallelism).argmin(1, keepdim=True)
        delta, offset = (t.expand_as(delta).gather(1, best).squeeze(1) for t in (delta, offset))
        low = offset * delta
        high = low + delta * base.constant(num_steps, delta)
        shape = self.observer.shape
        return low.to(seen.low.dtype).reshape(shape), high.to(seen.high.dtype).reshape(shape)

    def _symmetric(self, low: Tensor, high: Tensor, num_steps: int) -> tuple[Tensor, Tensor]:
        """Deltas (P, D), and the one offset (1, 1)."""
        widest = 2 * torch.maximum(high, -low).float()
        widest = widest / base.constant(num_steps, widest)
        delta = _multiples(widest, self.sym_delta_candidates)
        offset = torch.full((1, 1), -num_steps // 2, device=delta.device)
        return torch.maximum(delta, base.constant(min_scale(num_steps), delta)), offset

    def _asymmetric(self, low: Tensor, high: Tensor, num_steps: int) -> tuple[Tensor, Tensor]:
        """Deltas and offsets, (P, D·K) each, the offset changing faster."""
        widest = (high - low).float()
        widest = widest / base.constant(num_steps, widest)
        n = base.constant(num_steps, widest)
        observed = (low / widest).round()  # float64 for float64 ends, and so what follows
        left = widest * observed
        right = (left + widest * n)[:, None, None]
        step = num_steps / (min(num_steps + 2, self.num_offset_candidates) - 2)
        grid = [step * k - num_steps for k in range(math.ceil((step + num_steps) / step))]
        offsets = torch.tensor(grid, dtype=torch.float64).float().round().to(low.device)
        offset = torch.cat([offsets.expand(len(low), -1), observed[:, None]], 1)[:, None, :]
        delta = _multiples(widest, self.asym_delta_candidates)[:, :, None]
        left, least = left[:, None, None], delta * offset
        lower = torch.where(least > left, least, left)  # of two zeros the left one
        upper = torch.minimum(right, least + delta * n)
        delta = torch.maximum((upper - lower) / n, base.constant(min_scale(num_steps), n))
        return delta.flatten(1), (lower / delta).round().flatten(1)


class TfEnhancedEncodingAnalyzer(SqnrEncodingAnalyzer):
    """``SqnrEncodingAnalyzer`` with 512 bins, whose range grows by 1.5 times the first one at either end at most.

    Args:
        shape: of the parameters; see ``Observer``.
        block_size: elements per block, or None.
    """

    _growth_limit: ClassVar[float] = 3.0

    def __init__(self, shape: Sequence[int] | int, block_size: Sequence[int] | None = None) -> None:
        """An analyzer without statistics."""
        super().__init__(shape, 512, histogram_growth_limit=self._growth_limit, block_size=block_size)

    @classmethod
    def set_growth_limit(cls, growth_limit: float) -> None:
        """Let the ranges of analyzers made from now on grow by half of that times the first one at either end.

        Raises:
            RuntimeError: it is below 1.
        """
        check_growth_limit(growth_limit)
        cls._growth_limit = growth_limit


def _with_zero(seen: Histograms, num_steps: int) -> tuple[Tensor, Tensor]:
    """The observed ranges, zero included, and as wide as the least scale wants."""
    low, high = torch.where(seen.low < 0, seen.low, 0.0), torch.where(seen.high > 0, seen.high, 0.0)
    wide = low.to(torch.promote_types(low.dtype, torch.float32))
    least = (wide + base.constant(min_scale(num_steps) * num_steps, wide)).to(high.dtype)
    return low, torch.maximum(high, least)


def _multiples(widest: Tensor, number: int) -> Tensor:
    """The parts k / (number − 1), k = 1 … number, of each: (P, number)."""
    grid = torch.arange(1, number + 1, device=widest.device).float()
    return widest[:, None] * grid / base.constant(number - 1, grid)


def _costs(
    seen: Histograms, delta: Tensor, offset: Tensor, num_steps: int, gamma: float, max_parallelism: int
) -> Tensor:
    """The error of every candidate, float64: its terms in the candidates' dtype."""
    t = delta.dtype
    bins = torch.arange(seen.counts.shape[1], device=delta.device).to(t)
    width = seen.edges[:, 1:2] - seen.edges[:, :1]
    middles = (seen.edges[:, :1] + width / base.constant(2, width)) + width * bins
    costs = torch.empty(delta.shape, dtype=torch.float64, device=delta.device)
    most = _PIECE if delta.device.type == "cpu" else _ON_DEVICE
    rows = min(max(most // (len(bins) * delta.shape[1]), 1), max_parallelism)
    length = max(most // (len(bins) * rows), 1)
    offset = offset.expand_as(delta)
    for i in range(0, len(delta), rows):
        x, counts = middles[i : i + rows, None], seen.counts[i : i + rows, None]
        for j in range(0, delta.shape[1], length):
            d, o = (p[i : i + rows, j : j + length, None] for p in (delta, offset))
            code = (x / d).sub_(o).round_()
            inside = code.clamp(0, num_steps)
            weight = torch.where(inside != code, gamma, 1.0).to(t) if gamma != 1.0 else None
            error = inside.add_(o).mul_(d).sub_(x).square_().mul_(counts)
            if weight is not None:
                error.mul_(weight)
            costs[i : i + rows, j : j + length] = error.sum(-1, dtype=torch.float64)
    return costs
