"""Floats of any format as values: every operation exact in fractions, then rounded once to the format."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import copysign, isfinite, isnan
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from oracles import exact
from oracles.exact import FORMATS, Format

Array = npt.NDArray[Any]

__all__ = ["DTYPES", "Array", "Soft", "array", "form", "largest", "soft", "softs"]

DTYPES: dict[str, "np.dtype[Any]"] = {
    **{name: np.dtype(name) for name in ("float64", "float32", "float16")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}


@dataclass(frozen=True)
class Soft:
    """A number of a float format. ``value`` is a Python float that the format holds; so is every result."""

    value: float
    form: Format

    def __add__(self, other: "Soft") -> "Soft":
        """The sum, rounded once."""
        return Soft(exact.add(self.value, other.value, self._same(other)), self.form)

    def __sub__(self, other: "Soft") -> "Soft":
        """The difference, rounded once."""
        return Soft(exact.add(self.value, -other.value, self._same(other)), self.form)

    def __mul__(self, other: "Soft") -> "Soft":
        """The product, rounded once."""
        return Soft(exact.multiply(self.value, other.value, self._same(other)), self.form)

    def __truediv__(self, other: "Soft") -> "Soft":
        """The quotient, rounded once; a zero divisor gives an infinity or NaN."""
        return Soft(exact.divide(self.value, other.value, self._same(other)), self.form)

    def __neg__(self) -> "Soft":
        """The number of the other sign."""
        return Soft(-self.value, self.form)

    def __abs__(self) -> "Soft":
        """The magnitude."""
        return Soft(abs(self.value), self.form)

    def to(self, form: Format) -> "Soft":
        """The number rounded to another format."""
        return Soft(exact.round_value(self.value, form), form)

    def rint(self) -> "Soft":
        """The nearest integer, ties to even, with the sign of the number where it is zero."""
        if not isfinite(self.value):
            return self
        nearest = exact.round_integer(Fraction(self.value), "half-even")
        return Soft(copysign(exact.round_value(float(nearest), self.form), self.value), self.form)

    @property
    def nan(self) -> bool:
        """Whether it is no number."""
        return isnan(self.value)

    def _same(self, other: "Soft") -> Format:
        if self.form != other.form:
            msg = f"other={other} is not accepted beside {self}: bring both to one format first"
            raise TypeError(msg)
        return self.form


def form(dtype: npt.DTypeLike) -> Format:
    """The format of a float dtype of NumPy or ml_dtypes."""
    return FORMATS[np.dtype(dtype).name]


def soft(value: float | Fraction, dtype: str) -> Soft:
    """``value`` rounded once to the format named ``dtype``."""
    f = FORMATS[dtype]
    return Soft(exact.round_to(value, f) if isinstance(value, Fraction) else exact.round_value(value, f), f)


def softs(a: Array) -> list[Soft]:
    """The elements of a float array, in order."""
    f = form(a.dtype)
    return [Soft(float(v), f) for v in np.asarray(a).ravel()]


def array(values: Iterable[Soft | float | int], shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Numbers that ``dtype`` holds, as an array of it."""
    numbers = [v.value if isinstance(v, Soft) else v for v in values]
    return np.array(numbers, np.float64).astype(dtype).reshape(shape)


def largest(values: Sequence[Soft]) -> Soft:
    """The largest magnitude; NaN where one is."""
    return next((v for v in values if v.nan), max((abs(v) for v in values), key=lambda v: v.value))
