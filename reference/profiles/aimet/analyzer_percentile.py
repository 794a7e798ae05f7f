"""AIMET: calibration by a percentile of the values. Measured, aimet-torch 2.42."""

import math

import numpy as np

from halfeven.reference.blocks import BlockSize, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.aimet.encodings import min_scale
from halfeven.reference.profiles.aimet.histogram import histogram, histogram_2_42
from halfeven.reference.profiles.profile import Array

__all__ = ["percentile_encodings", "percentile_encodings_2_42"]

_ARITHMETIC = AsComputed(dtype="float32")
_LEAST, _MOST = 50, 100


@formula(
    "aimet.percentile_encodings",
    equation=(
        r"m = e_i,\ i = \min\{i : H_i \ge H_B (1 - p/100)\}; \quad M = e_j,\ j = \min\{j : H_j \ge H_B p / 100\}; "
        r"\quad p = 100: e_0, e_B"
    ),
    basis=_ARITHMETIC,
    source="aimet-torch 2.42, measured: PercentileEncodingAnalyzer",
)
def percentile_encodings(
    batches: tuple[Array, ...],
    num_steps: int,
    symmetric: bool,
    shape: Shape,
    num_bins: int = 2048,
    percentile: float = 100.0,
    block_size: BlockSize | None = None,
) -> tuple[Array, Array]:
    """Minimum and maximum of a grid of ``num_steps`` steps that leave out (100 - ``percentile``) % at either end.

    Both are left edges of bins of ``histogram``, whose counts summed up are H; shape and dtype as its range's. Zero is
    in the range, and a range below ``min_scale`` per step is widened by it. A symmetric side without steps has no say.

    Args:
        batches: as in ``histogram``.
        num_steps: codes less one.
        symmetric: the range is that of a grid around zero.
        shape: of the parameters, and of both results.
        num_bins: bins per parameter.
        percentile: in per cent.
        block_size: elements per block, as in ``histogram``.

    Raises:
        ValueError: ``num_steps`` or ``num_bins`` is below 1, or ``percentile`` outside [50, 100]; ``histogram``'s.
        RuntimeError: ``histogram``'s.
    """
    _refuse(num_steps, percentile)
    return _encodings(histogram(batches, shape, num_bins, None, block_size), num_steps, symmetric, shape, percentile)


@formula(
    "aimet.percentile_encodings@2.42",
    equation=r"\text{histogram of 2.42; symmetric, } n = 1: \delta = M / 0",
    basis=_ARITHMETIC,
    source="aimet-torch 2.42, measured",
)
def percentile_encodings_2_42(
    batches: tuple[Array, ...],
    num_steps: int,
    symmetric: bool,
    shape: Shape,
    num_bins: int = 2048,
    percentile: float = 100.0,
    block_size: BlockSize | None = None,
) -> tuple[Array, Array]:
    """``percentile_encodings``, but later batches count by their first dimension; one symmetric bit divides by zero."""
    _refuse(num_steps, percentile)
    seen = histogram_2_42(batches, shape, num_bins, None, block_size)
    low, high = _encodings(seen, num_steps, symmetric, shape, percentile)
    if symmetric and num_steps == 1:
        positive = _encodings(seen, num_steps, False, shape, percentile)[1] > 0
        low = np.where(positive, -np.inf, np.nan).astype(low.dtype)
        high = np.full(shape, np.nan, high.dtype)
    return low, high


def _encodings(
    seen: dict[str, Array], num_steps: int, symmetric: bool, shape: Shape, percentile: float
) -> tuple[Array, Array]:
    lows, highs = [], []
    below, above = math.ceil(num_steps / 2), math.floor(num_steps / 2)
    least = min_scale(num_steps)
    for counts, edges in zip(seen["counts"], seen["edges"], strict=True):
        sums = np.cumsum(counts)
        low, high = edges[0], edges[-1]
        if percentile != _MOST:
            high = edges[np.searchsorted(sums, sums[-1] * np.float32(percentile) / np.float32(100))]
            low = edges[np.searchsorted(sums, sums[-1] * np.float32(1 - percentile / 100))]
        low, high = (low if low < 0 else np.float32(0)), (high if high > 0 else np.float32(0))
        narrow = (high - low) / np.float32(num_steps) < np.float32(least)
        if narrow and symmetric:
            low, high = low - np.float32(least * below), high + np.float32(least * above)
        elif narrow:
            high = high + np.float32(least * num_steps)
        if symmetric:
            delta = -low / np.float32(below)
            if above:
                delta = np.maximum(high / np.float32(above), delta)
            low, high = np.float32(-below) * delta, np.float32(above) * delta
        lows.append(low)
        highs.append(high)
    dtypes = seen["min"].dtype, seen["max"].dtype
    return np.array(lows).astype(dtypes[0]).reshape(shape), np.array(highs).astype(dtypes[1]).reshape(shape)


def _refuse(num_steps: int, percentile: float) -> None:
    if num_steps < 1:
        msg = f"num_steps={num_steps} is not accepted: give 1 or more"
        raise ValueError(msg)
    if not _LEAST <= percentile <= _MOST:
        msg = f"percentile={percentile} is not accepted: give {_LEAST} to {_MOST}"
        raise ValueError(msg)
