"""brevitas: ``max_int``, ``min_int`` and ``IntScaling``, the ends of a grid of integers."""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula

__all__ = ["IntGrid", "MaxInt", "MinInt", "ends_of", "int_scaling", "max_int", "min_int"]


@dataclass(frozen=True)
class MaxInt(Behaviour):
    """The choice in the highest code."""

    narrow_unsigned: str = choice(
        {
            "highest": "leaves out the highest code of a narrow unsigned grid",
            "none": "leaves a narrow unsigned grid whole",
        }
    )


@dataclass(frozen=True)
class MinInt(Behaviour):
    """The choice in the lowest code."""

    narrow_signed: str = choice(
        {
            "lowest": "leaves out the lowest code of a narrow signed grid",
            "none": "leaves a narrow signed grid whole",
        }
    )


@dataclass(frozen=True)
class IntGrid(MaxInt, MinInt):
    """The choices in the ends of a grid."""


@formula(
    "brevitas/max_int",
    equation=r"2^{b-1} - 1;\quad \text{unsigned: } 2^b - 1 - [\text{narrow}]",
    basis=AsComputed(dtype="float32"),
    source="brevitas.function.ops.max_int",
    behaviour=MaxInt(),
)
def max_int(b: MaxInt, signed: bool, narrow_range: bool, bit_width: int) -> Array:
    """The highest code, 0-d float32; a narrow range costs an unsigned grid its top.

    Args:
        signed: codes of both signs.
        narrow_range: one code fewer: the lowest of a signed, the highest of an unsigned grid.
        bit_width: width of the codes.

    Raises:
        TypeError: ``bit_width`` is no int.
        ValueError: ``bit_width`` is below 1.
    """
    return _highest(b, signed, narrow_range, _width(bit_width))


@formula(
    "brevitas/min_int",
    equation=r"-2^{b-1} + [\text{narrow}];\quad \text{unsigned: } 0",
    basis=AsComputed(dtype="float32"),
    source="brevitas.function.ops.min_int",
    behaviour=MinInt(),
)
def min_int(b: MinInt, signed: bool, narrow_range: bool, bit_width: int) -> Array:
    """The lowest code, 0-d float32; a narrow range costs a signed grid its bottom.

    Arguments and errors as in ``max_int``.
    """
    return _lowest(b, signed, narrow_range, _width(bit_width))


def _highest(b: MaxInt, signed: bool, narrow_range: bool, bit_width: int) -> Array:
    codes = np.ldexp(1.0, bit_width)
    less = narrow_range and b.narrow_unsigned == "highest"
    return np.asarray(codes / 2 - 1 if signed else codes - 1 - less, np.float32)


def _lowest(b: MinInt, signed: bool, narrow_range: bool, bit_width: int) -> Array:
    more = narrow_range and b.narrow_signed == "lowest"
    return np.asarray(-np.ldexp(1.0, bit_width) / 2 + more if signed else 0.0 * bit_width, np.float32)


def _width(bit_width: int, least: int | None = 1) -> int:
    if isinstance(bit_width, bool) or not isinstance(bit_width, int):
        msg = f"bit_width={bit_width!r} is not accepted: give an int; the power of a fraction is not derived here"
        raise TypeError(msg)
    if least is not None and bit_width < least:
        msg = f"bit_width={bit_width} is not accepted: give {least} or more"
        raise ValueError(msg)
    return bit_width


def ends_of(
    b: IntGrid, x: Array, bit_width: int, signed: bool, narrow_range: bool, least: int | None = 1
) -> tuple[Array, Array]:
    """The ends of the grid, of the dtype of ``x``; errors as in ``max_int``, with ``least`` for 1."""
    width = _width(bit_width, least)
    low, high = _lowest(b, signed, narrow_range, width), _highest(b, signed, narrow_range, width)
    return low.astype(x.dtype), high.astype(x.dtype)


@formula(
    "brevitas/IntScaling",
    equation=r"-q_{min}\ \text{if signed, else } q_{max}",
    basis=AsComputed(dtype="float32"),
    source="brevitas.core.scaling.int_scaling.IntScaling",
    behaviour=IntGrid(),
)
def int_scaling(b: IntGrid, bit_width: int, signed: bool, narrow_range: bool) -> Array:
    """The integer that the threshold is divided by, 0-d float32: 128, 127, 255 or 254 for 8 bits.

    Arguments and errors as in ``max_int``.
    """
    return -min_int(b, signed, narrow_range, bit_width) if signed else max_int(b, signed, narrow_range, bit_width)
