"""Scales and zero points: the ones at which implementations part, and seeded ones between them."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference import Grid
from halfeven.reference.blocks import Array

finfo: Callable[[Any], Any] = ml_dtypes.finfo  # ml_dtypes leaves it without types

__all__ = ["exact_scales", "scales", "subnormal_scales", "zero_points"]

# Where a reciprocal rounds badly, where 1/s is exact, and values that people type.
_TYPED = (1.0, 0.5, 0.1, 1 / 3, 0.0123, 1 / 127, 1 / 255, 0.7, 3.0, 1e-3, 0.05, 2.0**-7)


def scales(dtype: np.dtype[Any], scale_dtype: np.dtype[Any], grid: Grid, count: int, seed: int) -> Array:
    """``count`` positive normal scales of ``scale_dtype``, typed ones first, that keep the grid finite in ``dtype``."""
    info, limit = finfo(dtype), finfo(scale_dtype)
    widest = 2.0 * max(grid.num_steps, 1)
    low = max(np.log2(float(info.smallest_normal)), np.log2(float(limit.smallest_normal))) + 2
    high = min(np.log2(float(info.max)) - np.log2(widest), np.log2(float(limit.max))) - 2
    high = max(high, low)  # a grid as wide as the dtype leaves one binade
    # Most scales are of the size that networks have; a quarter covers the whole range of exponents.
    generator = np.random.default_rng([seed, grid.num_steps, dtype.itemsize])
    near = generator.uniform(max(low, -12.0), min(high, 4.0), count)
    far = generator.uniform(low, high, count)
    drawn = np.exp2(np.where(np.arange(count) % 4 == 3, far, near))  # noqa: PLR2004 - a quarter
    one = np.nextafter(np.asarray(1, scale_dtype), np.asarray([0, 2], scale_dtype)).astype(np.float64)
    typed = np.array([*_TYPED, *one])
    typed = typed[(np.log2(typed) >= low) & (np.log2(typed) <= high)]
    return np.concatenate([typed, drawn])[:count].astype(scale_dtype)


def exact_scales(dtype: np.dtype[Any], grid: Grid) -> Array:
    """Powers of two: every quotient is exact, so every boundary is a true tie."""
    high = np.log2(float(finfo(dtype).max)) - np.log2(2.0 * max(grid.num_steps, 1)) - 1
    return np.exp2([e for e in (0, -3, 2, -7) if e <= high])


def subnormal_scales(dtype: np.dtype[Any]) -> Array:
    """Scales whose reciprocal overflows, or that are subnormal themselves."""
    info = finfo(dtype)
    tiny, least = float(info.smallest_normal), float(info.smallest_subnormal)
    return np.array([tiny, tiny / 2, tiny / 4, 3 * least, least])


def zero_points(grid: Grid, parity: str) -> list[int]:
    """Zero points inside the grid: ``even``, ``odd`` or ``none`` (zero alone)."""
    if parity == "none":
        return [0]
    middle = (grid.qmin + grid.qmax + 1) // 2
    candidates = [0, 1, 2, 3, -5, 8, middle, middle + 1, grid.qmin, grid.qmin + 1, grid.qmax, grid.qmax - 1]
    wanted = 1 if parity == "odd" else 0
    return sorted({z for z in candidates if z in grid and z % 2 == wanted})
