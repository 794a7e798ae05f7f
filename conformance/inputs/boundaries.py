"""Inputs built from (code, half step, ulp offset): the only places where two quantizers can part.

For every boundary between two codes: the float nearest to it and its neighbours up to three ulps away, and the
middle of the code. All boundaries up to 8 bits; above, a covering choice.
"""

from typing import Any

import numpy as np

from halfeven.conformance.bits import ordered, step, unordered
from halfeven.reference import Grid
from halfeven.reference.blocks import Array

__all__ = ["ULPS", "boundaries", "boundary_codes", "edges", "huge"]

ULPS = np.arange(-3, 4)
_ALL_CODES_UP_TO = 8
_RUN = 6


def boundary_codes(grid: Grid, zero: int) -> Array:
    """The codes whose lower boundary is tried: all and one past the end, or a covering choice above 8 bits.

    The covering choice: runs of codes at both ends, at the zero point and at zero, and around every power of two
    from there.
    """
    if grid.bits <= _ALL_CODES_UP_TO:
        return np.arange(grid.qmin, grid.qmax + 2, dtype=np.int64)
    run = np.arange(-_RUN, _RUN + 1)
    powers = 2 ** np.arange(3, grid.bits, dtype=np.int64)
    pairs = np.arange(-1, 2)
    around = [grid.qmin + run, grid.qmax + run, zero + run, run]
    around += [zero + (sign * powers)[:, None] + pairs for sign in (1, -1)]
    codes = np.unique(np.concatenate([a.ravel() for a in around]))
    return codes[(codes >= grid.qmin) & (codes <= grid.qmax + 1)]


def boundaries(scale: Array, zero: Array, grid: Grid, dtype: np.dtype[Any]) -> Array:
    """For n scales (real per code, float64) and zero points, inputs of shape (n, points) in ``dtype``.

    The zero points must ask for the same number of boundaries; call once per zero point on wide grids.
    """
    each, place = np.unique(zero, return_inverse=True)
    codes = np.stack([boundary_codes(grid, int(z)) for z in each])[place.ravel()]
    half = codes - zero.reshape(-1, 1) - 0.5
    s = scale.reshape(-1, 1).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        nearest = (half * s).astype(dtype)
        middle = ((half + 0.5) * s).astype(dtype)
    around = step(nearest[..., None], ULPS).reshape(len(s), -1)
    return np.concatenate([around, middle], axis=1)


def edges(scale: Array, zero: Array, grid: Grid, dtype: np.dtype[Any]) -> Array:
    """Around and well beyond both ends of the grid: up to 600 codes outside, halves and wholes, shape (n, points)."""
    outside = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 100.0, 128.0, 255.0, 256.0, 257.0, 600.0])
    z = zero.reshape(-1, 1)
    quotients = np.concatenate([grid.qmin - z - outside, grid.qmax - z + outside], axis=1)
    with np.errstate(over="ignore", under="ignore"):
        nearest = (quotients * scale.reshape(-1, 1).astype(np.float64)).astype(dtype)
    return step(nearest[..., None], np.arange(-1, 2)).reshape(len(scale.ravel()), -1)


def huge(scale: Array, dtype: np.dtype[Any]) -> Array:
    """Where an integer conversion overflows: neighbours of ±2^15 to ±2^64, as codes and as reals, shape (n, points).

    Besides: the largest finite floats and the infinities.
    """
    s = scale.reshape(-1, 1).astype(np.float64)
    powers = np.array([2.0**15, 2.0**16, 2.0**31, 2.0**32, 2.0**63, 2.0**64])
    with np.errstate(over="ignore", under="ignore"):
        reals = np.concatenate([powers * s, np.broadcast_to(powers, (len(s), len(powers)))], axis=1)
        nearest = np.concatenate([reals, -reals], axis=1).astype(dtype)
    around = step(nearest[..., None], np.arange(-2, 3)).reshape(len(s), -1)
    top = ordered(np.asarray(np.inf, dtype))
    ends = unordered(np.concatenate([top - np.arange(3), -top + np.arange(3)]), dtype)
    return np.concatenate([around, np.broadcast_to(ends, (len(s), ends.size))], axis=1)
