"""The range from the least to the greatest value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from halfeven.optimized.aimet.affine.range import min_scale
from halfeven.optimized.aimet.encoding_analyzer import base

__all__ = ["MinMaxEncodingAnalyzer", "MinMaxObserver", "_MinMaxRange"]

_TWO_BITS = 3
"""The steps of two bits."""


@dataclass(eq=False)
class _MinMaxRange:
    """Least and greatest value per parameter, in the observer's shape; None before the first batch."""

    min: Tensor | None = None
    max: Tensor | None = None


class MinMaxObserver(base.Observer[_MinMaxRange]):
    """Keeps the least and the greatest value; a NaN stays."""

    def __init__(self, shape: Sequence[int] | int, block_size: Sequence[int] | None = None) -> None:
        """No values yet."""
        super().__init__(shape, block_size)
        self.stats = _MinMaxRange()

    @torch.no_grad()
    def collect_stats(self, input_tensor: Tensor) -> _MinMaxRange:
        """Least and greatest value of a batch.

        Raises:
            TypeError: the batch is not of a float dtype.
            IndexError: it is empty.
            RuntimeError, ValueError: shape or blocks do not fit it.
        """
        x = base.values(input_tensor)
        if not x.numel():
            msg = f"input_tensor of shape {tuple(x.shape)} is not accepted: give one with elements"
            raise IndexError(msg)
        return _MinMaxRange(*base.ends(x, base.block_sizes(x.shape, self.shape, self.block_size), self.shape))

    @torch.no_grad()
    def merge_stats(self, stats: _MinMaxRange) -> None:
        """The lesser minimum and the greater maximum, NaN where either is."""
        kept = self.stats
        if stats.min is not None:
            kept = _MinMaxRange(stats.min if kept.min is None else torch.minimum(kept.min, stats.min), kept.max)
        if stats.max is not None:
            kept = _MinMaxRange(kept.min, stats.max if kept.max is None else torch.maximum(kept.max, stats.max))
        self.stats = kept

    def reset_stats(self) -> None:
        """Forget all batches."""
        self.stats = _MinMaxRange()

    def get_stats(self) -> _MinMaxRange:
        """What is kept of all batches."""
        return self.stats


class MinMaxEncodingAnalyzer(base.EncodingAnalyzer[_MinMaxRange]):
    """The range from the least to the greatest value, zero included.

    A range below ``min_scale`` per step is widened by it, and infinite ends become the largest number of the dtype.
    Symmetric ranges are those of the least delta that covers both ends; with two bits the positive side is counted as
    two steps, so that the least code is used.

    Args:
        shape: of the parameters; see ``Observer``.
        block_size: elements per block, or None.

    Upstream: one symmetric bit divides by its zero positive steps; here that side has no say.
    """

    def __init__(self, shape: Sequence[int] | int, block_size: Sequence[int] | None = None) -> None:
        """An analyzer without statistics."""
        super().__init__(MinMaxObserver(shape, block_size))

    @torch.no_grad()
    def compute_encodings_from_stats(
        self, stats: _MinMaxRange, num_steps: int, is_symmetric: bool
    ) -> tuple[Tensor, Tensor]:
        """See ``compute_encodings``."""
        base.check_steps(num_steps)
        if stats.min is None or stats.max is None:
            msg = "stats without a batch are not accepted: call update_stats first"
            raise base.StatisticsNotFoundError(msg)
        dtype = stats.min.dtype
        wide = torch.promote_types(dtype, torch.float32)
        least = min_scale(num_steps)
        low = torch.where(stats.min > 0, 0.0, stats.min)  # a zero of either sign stays
        high = torch.where(stats.max < 0, 0.0, stats.max)
        steps = ((high - low).to(wide) / base.constant(num_steps, high.to(wide))).to(dtype)
        widened = (steps < base.constant(least, steps)) * base.constant(least, high.float())
        low, high = low.to(wide), high.to(wide)
        if is_symmetric:
            below, above = math.ceil(num_steps / 2), math.floor(num_steps / 2)
            low, high = low - widened * below, high + widened * above
            counted = above + 1 if num_steps == _TWO_BITS else above
            low, high = base.around_zero(low, high, below, above, counted)
        else:
            high = high + widened * num_steps
        info = torch.finfo(dtype)
        return low.clamp(min=info.min).to(dtype), high.clamp(max=info.max).to(dtype)
