"""Quotients of floats as rational numbers: what a witness says next to what was computed."""

from fractions import Fraction
from math import ceil

__all__ = ["distance_to_tie", "quotient"]

Number = float | int | Fraction


def quotient(x: Number, s: Number) -> Fraction:
    """The exact x / s of two finite numbers.

    Raises:
        ZeroDivisionError: ``s`` is zero.
    """
    return Fraction(x) / Fraction(s)


def distance_to_tie(x: Number, s: Number) -> Fraction:
    """The exact x / s less the nearest half-integer (of two equally near, the lower)."""
    v = quotient(x, s)
    return v - (ceil(v) - Fraction(1, 2))
