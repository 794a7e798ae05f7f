"""The grid of integer codes, [qmin, qmax], and the ways the documents derive it."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

__all__ = ["Grid"]

_WIDEST = 32


@dataclass(frozen=True)
class Grid:
    """All integer codes from ``qmin`` to ``qmax``, both included.

    Raises:
        TypeError: an end is not an integer.
        ValueError: ``qmin`` is above ``qmax``.
    """

    qmin: int
    qmax: int

    def __post_init__(self) -> None:
        """Refuse ends that make no grid."""
        _integer("qmin", self.qmin)
        _integer("qmax", self.qmax)
        if self.qmin > self.qmax:
            msg = f"qmin={self.qmin} is above qmax={self.qmax}: a grid needs qmin <= qmax"
            raise ValueError(msg)

    @classmethod
    def from_bitwidth(cls, bitwidth: int, *, signed: bool, narrow: bool = False) -> "Grid":
        """The grid of ``bitwidth`` bits, 1 to 32; ``narrow`` drops the lowest code of a signed grid.

        Raises:
            TypeError: ``bitwidth`` is not an integer.
            ValueError: ``bitwidth`` is outside 1 to 32, or ``narrow`` leaves no code or comes with ``signed=False``.
        """
        _integer("bitwidth", bitwidth)
        if not 1 <= bitwidth <= _WIDEST:
            msg = f"bitwidth={bitwidth} is not accepted: give 1 to {_WIDEST}"
            raise ValueError(msg)
        if narrow and not signed:
            msg = "narrow=True is not accepted with signed=False: an unsigned grid has no lowest code to spare"
            raise ValueError(msg)
        full = cls.from_num_steps(2**bitwidth - 1, signed=signed)
        return cls(full.qmin + 1, full.qmax) if narrow else full

    @classmethod
    def from_num_steps(cls, num_steps: int, *, signed: bool) -> "Grid":
        """The grid of ``num_steps`` steps: [-ceil(n/2), floor(n/2)] if ``signed``, else [0, n].

        Raises:
            TypeError: ``num_steps`` is not an integer.
            ValueError: ``num_steps`` is below 1.
        """
        _integer("num_steps", num_steps)
        if num_steps < 1:
            msg = f"num_steps={num_steps} is not accepted: give 1 or more"
            raise ValueError(msg)
        return cls(-((num_steps + 1) // 2), num_steps // 2) if signed else cls(0, num_steps)

    @classmethod
    def from_dtype(cls, dtype: npt.DTypeLike) -> "Grid":
        """The full range of an integer dtype of NumPy or ml_dtypes (int2, int4, ... uint32).

        Raises:
            TypeError: ``dtype`` is not an integer dtype.
        """
        given: np.dtype[Any] = np.dtype(dtype)
        try:
            info = ml_dtypes.iinfo(given)  # type: ignore[no-untyped-call]
        except ValueError:
            msg = f"dtype={given.name} is not accepted: give an integer dtype, such as int8 or uint4"
            raise TypeError(msg) from None
        return cls(int(info.min), int(info.max))

    @property
    def num_steps(self) -> int:
        """The number of steps between the codes, one less than the number of codes."""
        return self.qmax - self.qmin

    @property
    def bits(self) -> int:
        """The bits that a two's-complement or unsigned integer needs to hold every code."""
        if self.qmin >= 0:
            return max(1, self.qmax.bit_length())
        return max((-self.qmin - 1).bit_length(), max(self.qmax, 0).bit_length()) + 1

    def __contains__(self, code: object) -> bool:
        """Whether ``code`` is one of the grid's codes."""
        return isinstance(code, int) and self.qmin <= code <= self.qmax

    def __str__(self) -> str:
        """``int8`` where the grid is a type's full range, else ``[-127,127]``."""
        signed = self.qmin < 0
        full = Grid.from_num_steps(2**self.bits - 1, signed=signed)
        return f"{'int' if signed else 'uint'}{self.bits}" if self == full else f"[{self.qmin},{self.qmax}]"


def _integer(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        msg = f"{name}={value!r} is not accepted: give an int"
        raise TypeError(msg)
