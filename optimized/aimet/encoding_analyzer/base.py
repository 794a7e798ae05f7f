"""What analyzers of every kind share: an observer that keeps statistics, and a range that follows from them."""

import abc
import math
import warnings
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from halfeven.optimized import operators
from halfeven.optimized.aimet.affine.range import min_scale
from halfeven.optimized.aimet.arguments import aligned_blocks, concretize

__all__ = [
    "EncodingAnalyzer",
    "Observer",
    "StatisticsNotFoundError",
    "adjust_min_max",
    "around_zero",
    "block_sizes",
    "check_steps",
    "constant",
    "ends",
    "flag_extreme_min_max",
    "values",
]

_Statistics = TypeVar("_Statistics")
_EXTREME = 0.95
"""The part of the largest number of a dtype from which a range counts as extreme."""


class StatisticsNotFoundError(RuntimeError):
    """There is nothing to compute a range from: no batch was observed."""


class Observer(abc.ABC, Generic[_Statistics]):
    """Keeps statistics of the elements that share a parameter.

    Attributes:
        shape: of the parameters; it meets the last dimensions of a batch, and an entry of 1 shares along its dimension.
        block_size: elements per block along the dimensions of ``shape``, -1 for the size over the entry; None without.
    """

    def __init__(self, shape: Sequence[int] | int, block_size: Sequence[int] | None = None) -> None:
        """No statistics yet."""
        self.shape: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
        self.block_size = block_size

    @abc.abstractmethod
    def collect_stats(self, input_tensor: Tensor) -> _Statistics:
        """The statistics of one batch, which stay with the caller."""

    @abc.abstractmethod
    def merge_stats(self, stats: _Statistics) -> None:
        """Add the statistics of a batch to those kept."""

    @abc.abstractmethod
    def reset_stats(self) -> None:
        """Forget all batches."""

    @abc.abstractmethod
    def get_stats(self) -> _Statistics:
        """What is kept of all batches."""


class EncodingAnalyzer(abc.ABC, Generic[_Statistics]):
    """Finds the range of a grid from batches.

    Attributes:
        observer: what keeps the statistics.
    """

    def __init__(self, observer: Any) -> None:
        """An analyzer of what ``observer`` keeps."""
        self.observer = observer

    @torch.no_grad()
    def update_stats(self, input_tensor: Tensor) -> _Statistics:
        """Observe a batch; the statistics of it alone are returned."""
        new: _Statistics = self.observer.collect_stats(input_tensor)
        self.observer.merge_stats(new)
        return new

    def reset_stats(self) -> None:
        """Forget all batches."""
        self.observer.reset_stats()

    def compute_encodings(self, num_steps: int, is_symmetric: bool) -> tuple[Tensor, Tensor]:
        """Minimum and maximum of a grid of ``num_steps`` + 1 codes for all batches observed.

        Args:
            num_steps: codes less one, 1 or more; a fraction is accepted.
            is_symmetric: the range is that of a grid around zero.

        Returns:
            Two tensors of the observer's shape, in the dtype of the statistics.

        Raises:
            StatisticsNotFoundError: no batch was observed.
            ValueError: ``num_steps`` is below 1.
            TypeError: a batch was not of a float dtype.
        """
        return self.compute_encodings_from_stats(self.observer.get_stats(), num_steps, is_symmetric)

    def compute_dynamic_encodings(
        self, input_tensor: Tensor, num_steps: int, is_symmetric: bool
    ) -> tuple[Tensor, Tensor]:
        """``compute_encodings`` of one batch, which is not observed."""
        return self.compute_encodings_from_stats(self.observer.collect_stats(input_tensor), num_steps, is_symmetric)

    @abc.abstractmethod
    def compute_encodings_from_stats(
        self, stats: _Statistics, num_steps: int, is_symmetric: bool
    ) -> tuple[Tensor, Tensor]:
        """``compute_encodings`` of given statistics."""


def values(input_tensor: Tensor) -> Tensor:
    """The batch as a plain tensor, detached.

    Raises:
        TypeError: it is not of a float dtype that a range is computed in.
    """
    if input_tensor.dtype not in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        msg = f"input_tensor of dtype {input_tensor.dtype} is not accepted: give float32, float64, float16 or bfloat16"
        raise TypeError(msg)
    return input_tensor.detach().as_subclass(Tensor)


def block_sizes(given: Sequence[int], shape: Sequence[int], block_size: Sequence[int] | None) -> tuple[int, ...]:
    """Elements per parameter along every dimension of a batch of shape ``given``.

    Upstream: blocks that do not fit, but multiply to the size of the batch, take its elements in order of memory.

    Raises:
        RuntimeError: ``shape`` or the blocks do not fit.
        ValueError: with blocks, ``shape`` is longer than ``given``, or ``block_size`` than ``shape``.
    """
    fits = len(shape) <= len(given)
    tail = tuple(given[len(given) - len(shape) :])
    sizes: tuple[int, ...] = ()
    if block_size is not None:
        sizes = concretize(given, shape, block_size)
        fits = all(b * p == n for n, p, b in zip(tail, shape, sizes, strict=True))
    elif fits:
        sizes = tuple(1 if p == n else n for n, p in zip(tail, shape, strict=True))
        fits = all(p in {1, n} for n, p in zip(tail, shape, strict=True))
    if not fits:
        blocks = "" if block_size is None else f" with block_size={tuple(block_size)}"
        msg = (
            f"shape={tuple(shape)}{blocks} is not accepted for a batch of shape {tuple(given)}: entries times block "
            f"sizes make the batch's last dimensions (without blocks an entry is 1 or the dimension's size)"
        )
        raise RuntimeError(msg)
    return aligned_blocks(given, shape, sizes)[1]


def ends(x: Tensor, blocks: Sequence[int], shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Least and greatest element per parameter, in ``shape``; NaN where there is one."""
    low, high = operators.aminmax(x, blocks)
    return low.reshape(tuple(shape)), high.reshape(tuple(shape))


def check_steps(num_steps: int) -> None:
    """Refuse a grid without a step.

    Raises:
        ValueError: ``num_steps`` is below 1.
    """
    if num_steps < 1:
        msg = f"num_steps={num_steps} is not accepted: give 1 or more"
        raise ValueError(msg)


def adjust_min_max(curr_min: Tensor, curr_max: Tensor, num_steps: int, is_symmetric: bool) -> tuple[Tensor, Tensor]:
    """The range made to hold zero, to be finite, as wide as ``num_steps`` least scales, and symmetric if wanted.

    Args:
        curr_min: of any shape and float dtype, and so are the results.
        curr_max: of the same.
        num_steps: codes less one.
        is_symmetric: the range is that of a grid around zero.

    Upstream: several parameters at once are refused where symmetric, and a grid without a step above zero, as one
    symmetric bit has, gives an infinite or undefined range. Here a side without steps has no say.
    """
    info, least = torch.finfo(curr_max.dtype), min_scale(num_steps)
    # ">= 0" takes -0.0 to 0.0, and leaves NaN.
    low = torch.where(curr_min >= 0, 0.0, curr_min).clamp(min=info.min)
    high = torch.where(curr_max <= 0, 0.0, curr_max).clamp(max=info.max)
    below, above = math.ceil(num_steps / 2), math.floor(num_steps / 2)
    narrow = (high - low) / constant(num_steps, low) < constant(least, low)
    if not is_symmetric:
        return low, torch.where(narrow, high + constant(least * num_steps, low), high)
    low = torch.where(narrow, low - constant(least * below, low), low)
    high = torch.where(narrow, high + constant(least * above, low), high)
    return around_zero(low, high, below, above)


def around_zero(low: Tensor, high: Tensor, below: int, above: int, counted: int | None = None) -> tuple[Tensor, Tensor]:
    """The range of ``below`` and ``above`` steps of the least delta that covers both ends.

    ``counted``: the steps that the upper end is divided by, if not ``above``; a side without steps has no say.
    """
    counted = above if counted is None else counted
    delta = -low / constant(below, low)
    if counted:
        delta = torch.maximum(high / constant(counted, low), delta)
    return delta * -below, delta * above


def constant(value: float, like: Tensor) -> Tensor:
    """A tensor of no dimension: some devices multiply by the reciprocal of a number where they are told to divide."""
    return torch.full((), value, dtype=like.dtype, device=like.device)


def flag_extreme_min_max(curr_min: Tensor, curr_max: Tensor) -> None:
    """Warn of a range that is not finite, or within 5 % of the largest number of its dtype."""
    if not bool(curr_min.isfinite().all() & curr_max.isfinite().all()):
        warnings.warn("Infinite or NaN values in what was observed: the range may be of no use", stacklevel=3)
    magnitude = torch.maximum(curr_min.abs(), curr_max.abs())
    if bool(((magnitude >= _EXTREME * torch.finfo(curr_min.dtype).max) & magnitude.isfinite()).any()):
        warnings.warn("Extreme values in what was observed: the range may be of no use", stacklevel=3)
