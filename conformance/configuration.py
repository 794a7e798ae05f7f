"""What one call of a backend is made of: a configuration (what is drawn) and a case (with its arrays)."""

import re
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np

from halfeven.reference import Grid
from halfeven.reference.blocks import Array, BlockSize, Shape
from halfeven.reference.profile import Operation

Granularity = Literal["tensor", "channel", "token", "group", "block"]

__all__ = ["DTYPES", "Array", "Case", "Configuration", "Granularity", "code_dtype", "grid_of", "is_grid"]

DTYPES: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
_BITS, _ENDS = re.compile(r"(u?)int(\d\d?)"), re.compile(r"(-?\d+):(-?\d+)")


@dataclass(frozen=True)
class Configuration:
    """Everything about a call but the values.

    Attributes:
        operation: quantize, dequantize or fake_quantize.
        dtype: the float dtype: of the input, or of the reals that dequantize returns.
        grid: the codes.
        shape: the tensor's shape.
        granularity: what shares a scale, in words; or all of these ways by turns.
        block_size: elements per block along each dimension; None per tensor.
    """

    operation: Operation
    dtype: str
    grid: Grid
    shape: Shape
    granularity: Granularity | Literal["any"] = "tensor"
    block_size: BlockSize | None = None

    def __str__(self) -> str:
        """The id in words."""
        parts = [str(self.grid), self.dtype]
        return "/".join(parts if self.granularity == "any" else [*parts, f"per-{self.granularity}"])


@dataclass(frozen=True, eq=False)
class Case:
    """One call: ``x`` (or the codes), and the profile's documented parameters, shaped for ``block_size``."""

    configuration: Configuration
    x: Array
    scale: Array
    zero: Array


def code_dtype(grid: Grid) -> np.dtype[Any]:
    """The smallest signed type that holds the grid, or unsigned type where no code is negative.

    Of more than 16 bits it is int32 wherever that holds the codes: what computes with integers rarely has uint32.

    Raises:
        ValueError: 32 bits do not hold it.
    """
    kind = "int" if grid.qmin < 0 else "uint"
    for name in (f"{kind}8", f"{kind}16", "int32", "uint32"):
        info = np.iinfo(name)
        if info.min <= grid.qmin and grid.qmax <= info.max:
            return np.dtype(name)
    msg = f"grid {grid} is not accepted: no 32-bit type holds it"
    raise ValueError(msg)


def is_grid(word: str) -> bool:
    """Whether ``grid_of`` knows such words.

    >>> is_grid("int8"), is_grid("float8")
    (True, False)
    """
    return any(form.fullmatch(word) for form in (_BITS, _ENDS))


def grid_of(word: str) -> Grid:
    """A grid as people write it: ``int8``, ``uint4``, ``-127:127``.

    >>> grid_of("int4"), grid_of("-127:127")
    (Grid(qmin=-8, qmax=7), Grid(qmin=-127, qmax=127))

    Raises:
        ValueError: it is no grid.
    """
    if found := _BITS.fullmatch(word):
        return Grid.from_bitwidth(int(found[2]), signed=not found[1])
    if found := _ENDS.fullmatch(word):
        return Grid(int(found[1]), int(found[2]))
    msg = f"grid={word!r} is not accepted: give int8, uint4, ... or QMIN:QMAX, such as -127:127"
    raise ValueError(msg)
