"""The parameters with which all inputs are tried, and the scales of a shard."""

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.engine.exhaustive.patterns import layout
from halfeven.conformance.engine.setting import Setting
from halfeven.reference.blocks import Array

__all__ = ["DEFAULT", "Shard", "line_scales", "scale_of", "sets", "shard_of", "significands"]

Shard = tuple[int, int]
#: Of all significands of a scale every 16th: all of them take ten minutes or so, for each operation and grid.
DEFAULT: Shard = (1, 16)
# What people type, a scale whose quotients never tie, one whose quotients are exact, and the longest significand.
_SCALES = (0.1, 1 / 3, 2.0**-7, 1.0 - 2.0**-24)
_EXPONENT = -30  # a scale is an integer of 24 bits times this power of two: from 2^-7 on


def shard_of(text: str) -> Shard:
    """The part of a whole that ``2/64`` means.

    Raises:
        ValueError: it is no such part.

    >>> shard_of("2/64")
    (2, 64)
    """
    part, slash, of = text.partition("/")
    if not (slash and part.isdecimal() and of.isdecimal() and 1 <= int(part) <= int(of) <= 1 << 23):
        msg = f"shard={text!r} is not accepted: give a part of a whole, such as 1/64, or 1/1 for all"
        raise ValueError(msg)
    return int(part), int(of)


def sets(setting: Setting) -> list[tuple[float, int]]:
    """Scales, each with a zero point: zero, an odd one, and both ends of the grid."""
    zeros = [0] * len(_SCALES)
    grid = setting.grid
    if len(setting.profile.parameters) > 1:
        middle = min(max(0, grid.qmin), grid.qmax)
        odd = next((z for z in (3, 1, -1, -3, middle | 1) if z in grid), middle)
        zeros = [middle, odd, grid.qmin, grid.qmax]
    return list(zip(_SCALES, zeros, strict=True))


def line_scales(dtype: str, *, subnormal: bool) -> Array:
    """Every positive finite scale of a 16-bit dtype: the normal ones, or the subnormal ones."""
    of = layout(dtype)
    first, end = (1, of.normal) if subnormal else (of.normal, of.infinity)
    return of.of(DTYPES[dtype], np.arange(first, end))


def significands(shard: Shard) -> Array:
    """Those of a shard, 24-bit integers: every so many-th."""
    part, of = shard
    return np.arange((1 << 23) + part - 1, 1 << 24, of)


def scale_of(significand: Array) -> Array:
    """Scales of float32 of the significands, all with one exponent."""
    return (significand * 2.0**_EXPONENT).astype(np.float32)
