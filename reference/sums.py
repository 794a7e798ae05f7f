"""Sums whose order no document states: their exact value, and a proved bound on what any order of addition may give.

>>> import numpy as np
>>> b = bound(np.full(1000, 0.1, np.float32))
>>> np.sum(np.full(1000, 0.1, np.float32)) in b, np.sum(np.full(999, 0.1, np.float32)) in b
(True, False)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import frexp, inf, isfinite, isnan, ldexp, nan, prod
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.reference.blocks import Array, Shape
from halfeven.reference.rounding import cast_once

__all__ = [
    "Bound",
    "Open",
    "bound",
    "exact",
    "gamma",
    "in_any_order",
    "least_of",
    "nearest",
    "one_of",
    "rounded",
    "rounded_each",
    "unproved",
    "within",
]

_WIDEST = 53  # significant bits of float64
_HALF = 26  # bits of the lower half of a significand


@dataclass(frozen=True)
class _Format:
    """What a float dtype holds."""

    digits: int  # significant bits
    least: int  # the smallest normal number is 2^least
    largest: Fraction

    @property
    def unit(self) -> Fraction:
        """The unit roundoff."""
        return Fraction(1, 1 << self.digits)

    @property
    def last(self) -> int:
        """The smallest number is 2^last."""
        return self.least - self.digits + 1


def _format(dtype: npt.DTypeLike) -> _Format:
    info = ml_dtypes.finfo(np.dtype(dtype))  # type: ignore[no-untyped-call]
    return _Format(int(info.nmant) + 1, int(info.minexp), Fraction(float(info.max)))


@dataclass(frozen=True)
class Bound:
    """What a sum may come to, in whatever order its terms are added.

    Attributes:
        exact: the sum of the terms as real numbers; infinite or NaN where a term is.
        radius: how far from it the number may lie that is rounded to the result last; 0 where every order gives the
            same bits, infinite where none is proved: an order overflows, or the terms are as many as 1/u.
        low: the least result, and ``high`` the greatest.
        terms: those that are not zero.
        magnitude: the sum of the terms' magnitudes, infinite where one is not finite.
        dtype: of the result, by name.
    """

    exact: Fraction | float
    radius: Fraction | float
    low: float
    high: float
    terms: int
    magnitude: Fraction | float
    dtype: str

    @property
    def proved(self) -> bool:
        """Whether anything is excluded."""
        return self.radius != inf

    def __contains__(self, actual: Any) -> bool:
        """Whether an order gives the number, as far as is proved."""
        value = float(actual)
        return not self.proved or (isnan(value) and isnan(self.low)) or self.low <= value <= self.high

    def share(self, actual: Any) -> float:
        """The part of the radius that a result needs: 0 of the exact sum rounded, at most 1 within the bound.

        It is that of the number rounded last, the nearest to the exact sum that ``actual`` is the rounding of.

        >>> import numpy as np
        >>> round(bound(np.float32([1, 2.0**-24, 2.0**-24])).share(1), 3)
        1.0
        """
        if actual not in self:
            return inf
        if not self.proved or not isinstance(self.exact, Fraction) or not self.radius:
            return 0.0
        value = float(actual)
        if not isfinite(value):
            return 1.0
        side = 1 if value > self.exact else -1
        edge = (Fraction(value) + _neighbour(value, -side, _format(self.dtype))) / 2
        return float(min(max((edge - self.exact) * side / self.radius, 0), 1))


def _neighbour(value: float, side: int, f: _Format) -> Fraction:
    """The next number of a format, above (1) or below (-1)."""
    exponent = frexp(value)[1] - 1
    toward_zero = abs(value) == ldexp(1.0, exponent) and (value > 0) == (side < 0)
    last = max(exponent - f.digits + 1 - toward_zero, f.last) if value else f.last
    return Fraction(value) + side * Fraction(2) ** last


def exact(terms: Array) -> Fraction:
    """The sum of finite terms as a real number, whatever their dtype and shape.

    Significands are added as integers, those of each exponent apart from the others, so that nothing is rounded.

    >>> import numpy as np
    >>> exact(np.array([1e300, 1.0, -1e300]))
    Fraction(1, 1)
    """
    fraction, exponent = np.frexp(terms.astype(np.float64).ravel())
    significand = np.ldexp(fraction, _WIDEST).astype(np.int64)
    low, high = significand & ((1 << _HALF) - 1), significand >> _HALF
    if not terms.size:
        return Fraction(0)
    first = int(exponent.min())
    total = 0
    # Of each exponent the halves' sums stay below 2^53 for 2^26 terms, and so float64 adds them exactly.
    for start in range(0, low.size, 1 << _HALF):
        part = slice(start, start + (1 << _HALF))
        sums = [np.bincount(exponent[part] - first, half[part]) for half in (low, high)]
        total += sum((int(a) + (int(b) << _HALF)) << i for i, (a, b) in enumerate(zip(*sums, strict=True)) if a or b)
    return Fraction(total) * Fraction(2) ** (first - _WIDEST)


def nearest(value: Fraction, dtype: npt.DTypeLike) -> float:
    """The number of ``dtype`` nearest to a real one, ties to even; infinite beyond the largest, as IEEE 754 rounds.

    >>> nearest(Fraction(2049), "float16"), nearest(Fraction(65520), "float16")
    (2048.0, inf)
    """
    f = _format(dtype)
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    exponent -= abs(value) < Fraction(2) ** exponent  # the value lies in [2^exponent, 2^(exponent + 1))
    last = max(exponent - f.digits + 1, f.last)
    near = round(value / Fraction(2) ** last) * Fraction(2) ** last
    return float(near) if abs(near) <= f.largest else inf if near > 0 else -inf


def rounded(terms: Array, dtype: npt.DTypeLike | None = None) -> np.generic:
    """The exact sum rounded once to ``dtype``, by default that of the terms; NaN and infinities as IEEE 754 adds them.

    >>> import numpy as np
    >>> rounded(np.float32([2**24, 1, -(2**24)]))
    np.float32(1.0)
    """
    kind = np.dtype(dtype or terms.dtype)
    special = terms[~np.isfinite(terms)]
    total = _special(special) if special.size else nearest(exact(terms), kind)
    found: np.generic = np.full(1, total, kind)[0]
    return found


def rounded_each(sets: Array, dtype: npt.DTypeLike | None = None) -> Array:
    """The exact sums of what the first index of an array counts, each rounded once, as by ``rounded``.

    >>> import numpy as np
    >>> rounded_each(np.float32([[2**24, 1, -(2**24)], [0.1, 0, 0]]))
    array([1. , 0.1], dtype=float32)
    """
    rows = sets.reshape(len(sets), -1)
    plain = in_any_order(rows, np.float64)
    with np.errstate(over="ignore"):
        found = cast_once(rows.astype(np.float64).sum(axis=1) + 0.0, dtype or sets.dtype)
    for i in np.flatnonzero(~plain):
        found[i] = rounded(rows[i], dtype)
    return found


def _special(terms: Array) -> float:
    """The sum of terms of which some are not finite."""
    signs = {float(t) for t in terms.astype(np.float64).tolist() if not isnan(t)}
    return signs.pop() if len(signs) == 1 and not np.isnan(terms).any() else nan


def gamma(count: int, unit: Fraction) -> Fraction | float:
    """Higham's constant of ``count`` roundings, count u / (1 - count u); infinite from 1/u roundings on.

    >>> gamma(2, Fraction(1, 8))
    Fraction(1, 3)
    """
    return count * unit / (1 - count * unit) if count * unit < 1 else inf


def bound(
    terms: Array,
    dtype: npt.DTypeLike | None = None,
    *,
    result: npt.DTypeLike | None = None,
    height: int | None = None,
    operations: int = 0,
    errors: Array | float = 0.0,
    flush: bool = False,
) -> Bound:
    """What the sum of ``terms`` may come to: added in any order in ``dtype``, or wider, and rounded to ``result``.

    Every order is a tree with the n terms (zeros apart, which round nothing) as leaves and n - 1 additions, so that a
    term takes part in h <= n - 1 of them. Each addition is rounded to nearest in ``dtype`` with unit roundoff u, after
    float64 if the accumulator is wider: what is rounded last is sum x_i (1 + d_i), where 1 + d_i is a product of at
    most k factors within 1 +- u and h within 1 +- 2^-53. So it is within

        (g (1 + w) + w) sum |x_i|,  g = gamma_k(u),  w = gamma_h(2^-53)

    of the exact sum (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.1 and section 4.2), where
    k = h - 1 if the last addition is itself the rounding to the result, else h. Jeannerod and Rump (2013) prove
    (n - 1) u sum |x_i|, without the terms of second order, where no addition is wider; for n u < 1/16 that is less by
    7 %. Rounding is monotone, so that the ends of the interval, rounded to the result's dtype, bound the result.

    Where all terms are multiples of one power of two, and sum |x_i| at most 2^p of it in p significant bits, no partial
    sum is rounded. Sums of subnormal numbers are not either, but flushing adds 2 n times the smallest normal number.
    Where partial sums of both signs may overflow, nothing is proved, and the bound says so.

    Args:
        terms: floats of any shape.
        dtype: in which additions are rounded, by default that of the terms; accumulators may be wider, up to float64.
        result: of the sum, by default ``dtype``.
        height: the most additions that a term takes part in, where that is known: ceil(log2 n) of pairwise summation;
            of blocks of m the additions in a block and those of the partial sums.
        operations: how many rounded multiplications, divisions or additions of operands of one sign, in the dtype of
            the terms, a term comes from, where they are not computed bit for bit; only the last may underflow.
        errors: the absolute error of each term, from what else is not computed bit for bit.
        flush: whether subnormal terms and sums may become zero.

    Raises:
        ValueError: ``dtype`` does not hold the terms, or ``height`` is too small for so many.

    >>> import numpy as np
    >>> b = bound(np.ones(4, np.float32) / np.float32(3))
    >>> np.cumsum(np.ones(4, np.float32) / np.float32(3))[-1] in b, b.terms
    (True, 4)
    """
    f, own = _format(terms.dtype if dtype is None else dtype), _format(terms.dtype)
    if own.digits > f.digits or own.last < f.last or own.largest > f.largest:
        msg = f"dtype={np.dtype(dtype).name} is not accepted for terms of {terms.dtype.name}: give one that holds them"
        raise ValueError(msg)
    to = np.dtype(result or dtype or terms.dtype)
    finite = np.isfinite(terms)
    values, off = terms[finite], np.broadcast_to(np.asarray(errors, np.float64), terms.shape)[finite]
    magnitude = exact(np.abs(values))
    loose: Fraction | float = exact(off) if np.isfinite(off).all() else inf
    if operations:
        worst = gamma(operations, own.unit)
        loose = inf if inf in (loose, worst) else loose + worst * magnitude + values.size * Fraction(2) ** own.last
    n = values.size if operations else int(np.count_nonzero((values != 0) | (off != 0)))
    h = _height(n, height)
    error: Fraction | float = _radius(f, h, magnitude, loose, last=_format(to).digits == f.digits)
    if not loose and in_any_order(values, dtype, flush=flush):
        error = Fraction(0)
    elif flush:
        error += 2 * n * Fraction(2) ** f.least
    total = exact(values)
    one_sign = not loose and abs(total) == magnitude and bool(finite.all())
    if not isinstance(error, Fraction) or (not one_sign and magnitude + loose + error > f.largest):
        return Bound(total if finite.all() else nan, inf, -inf, inf, n, magnitude, to.name)
    if not finite.all():
        certain = _special(terms[~finite])
        return Bound(certain, Fraction(0), certain, certain, n, inf, to.name)
    return Bound(total, error, nearest(total - error, to), nearest(total + error, to), n, magnitude, to.name)


def _height(n: int, height: int | None) -> int:
    most = max(n - 1, 0)
    if height is None:
        return most
    if height < (n - 1).bit_length() and n > 1:
        msg = f"height={height} is not accepted for {n} terms: a tree of them is {(n - 1).bit_length()} high or more"
        raise ValueError(msg)
    return min(height, most)


def _radius(f: _Format, h: int, magnitude: Fraction, loose: Fraction | float, *, last: bool) -> Fraction | float:
    """How far from the exact sum of the terms the number may lie that is rounded last."""
    g, w = gamma(max(h - last, 0), f.unit), gamma(h, Fraction(1, 1 << _WIDEST))
    if f.digits == _WIDEST:
        w = Fraction(0)
    if inf in (g, w, loose):
        return inf
    return (g * (1 + w) + w) * (magnitude + loose) + loose


def in_any_order(terms: Array, dtype: npt.DTypeLike | None = None, *, flush: bool = False) -> Array:
    """Whether no order rounds the sum along the last axis: every partial sum is a number of the accumulator's.

    >>> import numpy as np
    >>> in_any_order(np.float32([[0.5, 3, 2**22], [0.5, 3, 2**24]]))
    array([ True, False])
    """
    f = _format(terms.dtype if dtype is None else dtype)
    wide = terms.astype(np.float64)
    there, size = wide != 0, np.abs(wide)
    fraction, exponent = np.frexp(size)
    significand = np.ldexp(np.where(np.isfinite(wide), fraction, 0), _WIDEST).astype(np.int64)
    _, trailing = np.frexp((significand & -significand).astype(np.float64))
    divisor = np.where(there, exponent - _WIDEST + trailing - 1, 1 << 20)  # of each term, and below 2^unit of all
    unit = divisor.min(axis=-1, initial=1 << 20)
    with np.errstate(over="ignore"):
        magnitude = size.sum(axis=-1)  # of 2^53 units or more it is rounded, to no less
        most = np.minimum(np.ldexp(1.0, unit + min(f.digits, _WIDEST - 1)), float(f.largest))
    alone = there.sum(axis=-1) < (1 if flush else 2)  # no addition, but of zeros
    return np.asarray(
        np.isfinite(wide).all(axis=-1) & (alone | ((magnitude <= most) & ((unit >= f.least) | (not flush))))
    )


@dataclass(frozen=True, eq=False)
class Open:
    """An array of a result in which the order of a sum decides: what each element may be, in the result's shape.

    Attributes:
        allowed: for each element, in their order in memory, the bounds that it may lie within: of a sum one, of what
            the least of several sums chooses one for each choice. None at all where every order gives the same bits.
        shape: the result's.
    """

    allowed: tuple[tuple[Bound, ...], ...]
    shape: Shape

    @property
    def is_exact(self) -> bool:
        """Whether every order gives the same bits."""
        return all(len(bounds) == 1 and bounds[0].radius == 0 for bounds in self.allowed)

    @property
    def proved(self) -> Array:
        """For each element whether anything is excluded."""
        return np.array([all(b.proved for b in bounds) for bounds in self.allowed], np.bool_).reshape(self.shape)

    def shares(self, actual: Array) -> Array:
        """For each element the least share of a bound that it needs: more than 1 where it is within none."""
        rows = zip(self.allowed, actual.astype(np.float64).ravel().tolist(), strict=True)
        return np.array([min(b.share(v) for b in bounds) for bounds, v in rows], np.float64).reshape(self.shape)

    @property
    def counts(self) -> Array:
        """For each element the terms of its sum."""
        return np.array([max(b.terms for b in bounds) for bounds in self.allowed], np.int64).reshape(self.shape)


def within(
    sets: Sequence[Array] | Array,
    shape: Shape,
    dtype: npt.DTypeLike,
    result: npt.DTypeLike | None = None,
    last: npt.DTypeLike | None = None,
) -> Open:
    """The sums of several sets of terms, added in ``dtype``, as an array of the given shape.

    Args:
        sets: terms, in the order of the result's elements; of an array what its first index counts.
        shape: of the result.
        dtype: in which additions are rounded.
        result: what each sum is rounded to, by default ``dtype``.
        last: what that is rounded to in its turn, by default ``result``.

    >>> import numpy as np
    >>> within([np.ones(3, np.float32), np.full(3, 0.1, np.float32)], (2,), "float32").is_exact
    False
    """
    rows = [sets.reshape(len(sets), -1)] if isinstance(sets, np.ndarray) else [terms.reshape(1, -1) for terms in sets]
    if all(in_any_order(row, dtype).all() for row in rows):
        return Open((), shape)
    found = [bound(terms, dtype, result=result) for terms in sets]
    if last is not None:
        found = [_cast(b, np.dtype(last)) for b in found]
    return Open(tuple((b,) for b in found), shape)


def _cast(b: Bound, dtype: "np.dtype[Any]") -> Bound:
    low, high = (nearest(Fraction(v), dtype) if isfinite(v) else v for v in (b.low, b.high))
    return replace(b, low=low, high=high, dtype=dtype.name)


def least_of(sets: Array, totals: Array, dtype: npt.DTypeLike, errors: Array | None = None) -> tuple[int, ...]:
    """Which of several sums may be the least, by their order of addition; none where no order decides it.

    Args:
        sets: the terms of each sum in a row.
        totals: the sums, as float64; those well above the least are not looked at.
        dtype: in which additions are rounded.
        errors: of each term, its absolute error.

    >>> import numpy as np
    >>> sets = np.float32([[1, 2.0**-24, 2.0**-24], [1, 1, 0], [1, 0, 2.0**-24]])
    >>> least_of(sets, sets.sum(axis=1, dtype=np.float64), "float32")
    (0, 2)
    """
    if not np.isfinite(totals).all() or not totals.size:  # NaN is less than any
        return ()
    off = np.zeros_like(sets, np.float64) if errors is None else errors
    worst = float(gamma(sets.shape[1], _format(dtype).unit)) * np.abs(sets).sum(axis=1, dtype=np.float64)
    spread = worst + 2 * off.sum(axis=1)
    near = np.flatnonzero(totals - 2 * spread <= (totals + 2 * spread).min())
    found = {int(i): bound(sets[i], dtype, errors=off[i]) for i in near}
    most = min(b.high for b in found.values())
    kept = {i: b for i, b in found.items() if b.low <= most}
    return () if all(b.radius == 0 for b in kept.values()) else tuple(kept)


def unproved(shape: Shape) -> Open:
    """An array of which nothing is proved."""
    anything = Bound(nan, inf, -inf, inf, 0, inf, "float64")
    return Open(((anything,),) * prod(shape), shape)


def one_of(choices: Sequence[Sequence[float]], shape: Shape) -> Open:
    """An array each element of which is one of several numbers.

    >>> one_of([[1.0, 2.0]], (1,)).is_exact
    False
    """
    exactly = {
        v: Bound(Fraction(v) if isfinite(v) else v, Fraction(0), v, v, 1, abs(v), "float64") for c in choices for v in c
    }
    return Open(tuple(tuple(exactly[v] for v in dict.fromkeys(c)) for c in choices), shape)
