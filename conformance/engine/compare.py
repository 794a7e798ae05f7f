"""Gap on bits: codes in code steps, reals in ulps and the sign of zero. No tolerance anywhere."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from halfeven.conformance.bits import ordered, signed_bits
from halfeven.reference.blocks import Array

__all__ = ["Gap", "but_for", "compare_codes", "compare_reals"]


@dataclass(frozen=True, eq=False)
class Gap:
    """How many of ``points`` differ, where (flat indices), and by how much at most."""

    points: int
    where: Array
    steps: int
    unit: str

    @property
    def differing(self) -> int:
        """The number of points that differ."""
        return len(self.where)


def but_for(nans: Array | None, compare: Callable[[Array, Array], Gap], expected: Array, actual: Array) -> Gap:
    """What ``compare`` finds of the places that are not open; open are those of ``nans``, or none."""
    if nans is None:
        return compare(expected, actual)
    kept = np.flatnonzero(~nans)
    found = compare(expected.ravel()[kept], actual.ravel()[kept])
    return replace(found, where=kept[found.where])


def compare_codes(expected: Array, actual: Array) -> Gap:
    """Codes of any numeric dtypes, by value; NaN equals NaN, and the sign of a zero code is not looked at.

    A NaN against a number counts as a difference of the whole range of the numbers present.
    """
    if _same_bytes(expected, actual) or _same_numbers(expected, actual):
        return Gap(actual.size, np.empty(0, np.int64), 0, "code steps")
    with np.errstate(invalid="ignore"):  # a signalling NaN, of memory never written, warns when it is cast
        e, a = expected.ravel().astype(np.float64), actual.ravel().astype(np.float64)
        where = np.flatnonzero(~((e == a) | (np.isnan(e) & np.isnan(a))))
        gaps = np.abs(e[where] - a[where])
    finite = gaps[np.isfinite(gaps)]
    largest = int(finite.max()) if finite.size else 0
    if finite.size < gaps.size:
        numbers = e[np.isfinite(e)]
        largest = max(largest, int(np.ptp(numbers)) if numbers.size else 1, 1)
    elif finite.size and largest == 0:
        largest = 1  # a code that is no integer, less than one step away
    return Gap(actual.size, where, largest, "code steps")


def compare_reals(expected: Array, actual: Array) -> Gap:
    """Floats of one dtype, by bits; any NaN equals any NaN, and a zero of the other sign differs by 0 ulp."""
    if _same_bytes(expected, actual):
        return Gap(actual.size, np.empty(0, np.int64), 0, "ulp")
    e, a = np.ascontiguousarray(expected).ravel(), np.ascontiguousarray(actual).ravel()
    e_nan, a_nan = np.isnan(e), np.isnan(a)
    where = np.flatnonzero((signed_bits(e) != signed_bits(a)) & ~(e_nan & a_nan))
    numbers = where[~(e_nan[where] | a_nan[where])]
    # Differences of 64-bit orders can overflow an int64; a float64 is near enough for a count that large.
    gaps = np.abs(ordered(e[numbers]).astype(np.float64) - ordered(a[numbers]).astype(np.float64))
    largest = int(gaps.max()) if gaps.size else 0
    if e.dtype.itemsize < 8 and len(numbers) < len(where):  # noqa: PLR2004 - float64
        largest = max(largest, 1)
    return Gap(a.size, where, largest, "ulp")


def _same_bytes(expected: Array, actual: Array) -> bool:
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return False
    whole = f"u{expected.itemsize if expected.nbytes % 8 else 8}"
    return np.array_equal(expected.ravel().view(whole), actual.ravel().view(whole))


def _same_numbers(expected: Array, actual: Array) -> bool:
    """Whether codes of two dtypes are equal, in one pass: NumPy compares them in a type that holds both."""
    numbers = {expected.dtype.kind, actual.dtype.kind} <= {*"iuf"}
    with np.errstate(invalid="ignore"):  # of a signalling NaN, which memory may hold
        return numbers and bool((expected.ravel() == actual.ravel()).all())
