"""Grids of codes: what a bitwidth, a number of steps or two ends say, and the bitwidth of a grid."""

import operator
from typing import Any

__all__ = ["Grid", "dtype_bits", "ends", "integer", "read_grid", "second_is_end", "shift_of"]


def ends(num_steps: int, signed: bool) -> tuple[int, int]:
    """The codes (qmin, qmax) of a grid of ``num_steps`` steps: half of them below zero if ``signed``, else from 0."""
    return (-((num_steps + 1) // 2), num_steps // 2) if signed else (0, num_steps)


def read_grid(
    *,
    bitwidth: Any = None,
    num_steps: Any = None,
    signed: Any = None,
    qmin: Any = None,
    qmax: Any = None,
) -> tuple[int, int]:
    """The codes (qmin, qmax) of exactly one of: ``bitwidth``, ``num_steps`` (either with ``signed``), both ends.

    ``signed`` None is False, and not read with the ends.

    Raises:
        TypeError: none of the three or several, or no ints.
        RuntimeError: a negative width or number of steps, or ``qmin`` above ``qmax``.
    """
    if qmin is not None and qmax is not None and bitwidth is None and num_steps is None:
        low, high = integer("qmin", qmin), integer("qmax", qmax)
    elif qmin is not None or qmax is not None or (bitwidth is None) == (num_steps is None):
        said = _listed(bitwidth=bitwidth, num_steps=num_steps, qmin=qmin, qmax=qmax)
        msg = f"{said} is not accepted: give an int bitwidth, an int num_steps, or ints qmin and qmax"
        raise TypeError(msg)
    elif num_steps is not None:
        low, high = ends(integer("num_steps", num_steps), bool(signed))
    else:
        width = integer("bitwidth", bitwidth)
        low, high = ends(2**width - 1, bool(signed)) if width >= 0 else (0, -1)
    if low > high:
        said = _listed(bitwidth=bitwidth, num_steps=num_steps, qmin=qmin, qmax=qmax)
        msg = f"{said} is not accepted: give a width or number of steps of 0 or more, or qmin <= qmax"
        raise RuntimeError(msg)
    return low, high


def second_is_end(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether arguments are of the overload with ``qmin`` and ``qmax``: by name, or a second one that is no bool."""
    return "qmax" in kwargs or (len(args) > 1 and args[1] is not None and not isinstance(args[1], bool))


def shift_of(zero_point_shift: Any) -> float:
    """0.0 or 0.5.

    Raises:
        ValueError: it is neither, nor None.
    """
    shift = float(zero_point_shift or 0.0)
    if shift not in {0.0, 0.5}:
        msg = f"zero_point_shift={zero_point_shift} is not accepted: give 0.0 or 0.5"
        raise ValueError(msg)
    return shift


def dtype_bits(qmin: int, qmax: int) -> int:
    """The width of the narrowest integers that hold ``qmin`` and ``qmax``: signed ones if ``qmin`` is negative."""
    if qmin < 0:
        return max((v if v >= 0 else ~v).bit_length() for v in (qmin, qmax)) + 1
    return qmax.bit_length()


class Grid:
    """The ends of a grid of codes, and what hardware calls them.

    A bitwidth of b is either [0, 2^b - 1] or [-2^(b-1), 2^(b-1) - 1]; other grids have none.

    Attributes:
        qmin: the lowest code.
        qmax: the highest code.
    """

    qmin: int
    qmax: int

    @property
    def num_steps(self) -> int:
        """Codes less one."""
        return self.qmax - self.qmin

    @property
    def bitwidth(self) -> int:
        """The width of the codes in bits; setting it keeps the signedness.

        Raises:
            RuntimeError: the grid has none.
            TypeError: set to something that is no whole number.
            ValueError: set to less than 1.
        """
        n = self.num_steps
        if not self._starts_as_bits_do() or n & (n + 1):
            raise RuntimeError(self._undefined("bitwidth"))
        return n.bit_length()

    @bitwidth.setter
    def bitwidth(self, bitwidth: float) -> None:
        """Take as many bits, signed as before."""
        whole = isinstance(bitwidth, float) and bitwidth.is_integer()
        width = integer("bitwidth", int(bitwidth) if whole else bitwidth)
        if width < 1:
            msg = f"bitwidth={width} is not accepted: give 1 or more"
            raise ValueError(msg)
        if not self._starts_as_bits_do():
            raise RuntimeError(self._undefined("bitwidth"))
        self.qmin, self.qmax = ends(2**width - 1, signed=self.qmin < 0)

    @property
    def signed(self) -> bool:
        """Whether half of the codes are below zero; setting it keeps the number of steps.

        Raises:
            RuntimeError: the grid is neither of b bits nor starts at 0.
        """
        if not self._starts_as_bits_do():
            raise RuntimeError(self._undefined("signed"))
        return self.qmin < 0

    @signed.setter
    def signed(self, signed: bool) -> None:
        """Take as many steps, from 0 or half of them below it."""
        if self.signed != bool(signed):
            self.qmin, self.qmax = ends(self.num_steps, bool(signed))

    def _starts_as_bits_do(self) -> bool:
        return self.qmin == 0 or self.qmin + self.qmax == -1

    def _undefined(self, name: str) -> str:
        return (
            f"{name} of the grid qmin={self.qmin}, qmax={self.qmax} is undefined: only 0 to 2^b - 1 and "
            f"-2^(b-1) to 2^(b-1) - 1 have one; set qmin and qmax instead"
        )


def integer(name: str, value: Any) -> int:
    """``value`` as an int.

    Raises:
        TypeError: it is none, or a bool.
    """
    if type(value) is int:
        return value
    if not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
    msg = f"{name}={value!r} is not accepted: give an int"
    raise TypeError(msg)


def _listed(**given: Any) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None) or "no grid"
