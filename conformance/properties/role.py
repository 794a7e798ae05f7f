"""What the arguments and the result of a formula are to a property, whatever the document calls them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from halfeven.conformance.requirement import Arguments
from halfeven.reference.blocks import Array

__all__ = ["Kind", "Path", "Role", "Seen", "changed", "fitting", "is_whole", "number", "picked", "place"]

Path = tuple[Any, ...]
"""The way to an array in a result."""
Kind = Literal["quantize", "fake_quantize", "dequantize", "cast", "choose", "blocks", "gradient"]


@dataclass(frozen=True, eq=False)
class Seen:
    """A call as a property sees it.

    Attributes:
        x: the reals that are quantized, or the codes that are not any more; float64, in their own shape.
        dtype: the dtype that they are given in.
        scale: the real per code that each element meets, float64; None where the call gives none.
        zero: the zero point of x̂ = (q - z) * s that each element meets, likewise.
        low, high: the ends of the grid; None where codes are no integers.
        gradient: what comes back from above, as each element meets it.
        spread: an array of parameters as each element of ``x`` meets it.
        block: for each element the number of the block that it shares a scale with.
        odd: whether the formula is odd in x as far as the grid is: it rounds to the nearest; or whether the choice of
            a scale does not see the sign.
        slack: by how many codes a value may lie beyond an end, and still be that end's.
        has_zero: whether the parameters are such that zero has a code.
        most: the largest magnitude, at most 1, that surely has a number in what a cast rounds to.
        parts: in how many parts of equal size, which may come in any order, the elements lie one after another; None
            where they lie along the dimensions.
    """

    x: Array
    dtype: "np.dtype[Any]"
    scale: Array | None = None
    zero: Array | None = None
    low: float | None = None
    high: float | None = None
    gradient: Array | None = None
    spread: Callable[[Array], Array] = np.asarray
    block: Array | None = None
    odd: bool = False
    slack: float = 0.5
    has_zero: bool = True
    most: float = 1
    parts: int | None = None

    @cached_property
    def plain(self) -> Array:
        """Which elements meet finite parameters, a positive scale that is no subnormal, and a finite zero point."""
        fine = np.ones(self.x.shape, bool)
        if self.scale is not None:
            fine &= np.isfinite(self.scale) & (self.scale >= np.finfo(np.float32).tiny)
        if self.zero is not None:
            fine &= np.isfinite(self.zero)
        return fine

    @cached_property
    def group(self) -> Array:
        """For each element the number of the parameters that it meets."""
        parts = [p for p in (self.scale, self.zero, self.block) if p is not None]
        if not parts:
            return np.zeros(self.x.size, np.int64)
        rows = np.stack([np.broadcast_to(p, self.x.shape).ravel().astype(np.float64) for p in parts], axis=1)
        group: Array = np.unique(rows, axis=0, return_inverse=True)[1]
        return group.ravel()


@dataclass(frozen=True)
class Role:
    """How a property reads the calls of a formula, and the answers.

    Attributes:
        kind: what the formula does.
        see: the call; it raises ValueError, KeyError or TypeError where the call is none that a property can judge.
        read: the arrays of the answer by what they are: codes, reals, scale, zero, least, most, amax, dx, ...
        element: an element of one of these as Python over the ``result``, from the arguments, the answer, what the
            array is and the place in it; empty where no short expression gives it.
        reals: the arguments in the unit of x, which one power of two may multiply.
        data: the argument that holds the reals themselves.
        traits: what else a property may need: ``grid``, ``covering``, ``batches``, ``odd``, ``kept``, ``reals``,
            ``limits``, and ``zeros`` where zeros among the data choose nothing that is in no unit.
        runs: the arguments that lie in parts, as the elements do.
        times: the call with its scale times the power of two, where the scale is no plain number.
    """

    kind: Kind
    see: Callable[[Arguments], Seen]
    read: Callable[[Arguments, Any], Mapping[str, Array]]
    element: Callable[[Arguments, Any, str, int], str]
    reals: tuple[str, ...]
    data: str
    traits: frozenset[str] = frozenset()
    runs: tuple[str, ...] = ()
    times: Callable[[Arguments], dict[str, Any]] | None = None


def picked(value: Any, path: Path) -> Array:
    """The array at the end of the way."""
    for step in path:
        value = value[step]
    return np.asarray(value)


def place(value: Any, path: Path, i: int) -> str:
    """An element of the array at the end of the way as Python over the ``result``, which ``value`` is."""
    for step in path:
        value = value[step]
    words = "".join(f"[{step!r}]" for step in path)
    return (
        f"float(result{words}.ravel()[{i}])" if isinstance(value, np.ndarray | np.generic) else f"float(result{words})"
    )


_MISFIT = (KeyError, ValueError, TypeError, IndexError, ArithmeticError)


def fitting(function: Callable[..., Any], *given: Any) -> Any:
    """What ``function`` gives, or None where the call is none that it can judge."""
    try:
        with np.errstate(all="ignore"):
            return function(*given)
    except _MISFIT:
        return None


def changed(arguments: Arguments, names: tuple[str, ...], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The arguments with ``change`` made to the arrays, and the real numbers, of these names."""

    def one(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(map(one, value))
        is_real = isinstance(value, np.ndarray | np.generic) or type(value) is float
        return change(value) if is_real else value

    return {name: one(value) if name in names else value for name, value in arguments.items()}


def is_whole(dtype: "np.dtype[Any]") -> bool:
    """Whether a dtype, of ml_dtypes too, has whole numbers alone."""
    return dtype.name.startswith(("int", "uint"))


def number(value: Any) -> str:
    """A value in words."""
    return f"{float(value):.9g}"
