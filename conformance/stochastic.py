"""``check_stochastic``: whether a function rounds stochastically, by its two neighbours and its mean.

Which random numbers a function draws no document can say; what any of them must give can be checked. A number between
two others becomes one of them, the upper one with the probability of its place between them; a number that needs no
rounding stays. Probabilities are judged by Hoeffding's inequality: of n independent draws, a count differs from its
mean by t n or more with a probability of at most 2 exp(-2 n t^2), whatever the mean. That each element has a draw of
its own is judged by a sum over all pairs of elements so far apart, of the product of what they are off their means by:
of draws of their own each product has a mean of 0, whatever came before it, and the same bound holds by Azuma's
inequality. The false alarms that all of these tests may give are shared among them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any, Literal

import numpy as np

from halfeven.conformance.arrays import from_backend, to_torch
from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.nearest import among
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FloatFormat, decode, format_of

__all__ = ["Stochastic", "check_stochastic"]

_PLACES = (1 / 256, 1 / 16, 1 / 4, 0.3, 1 / 2, 3 / 4, 15 / 16)
_INTERVALS = 24
_CALLS = 8
_FEW = 8  # one of so many
_NEAR = 0.02  # of a place: the dtype rounds them


@dataclass(frozen=True)
class Stochastic:
    """What a function came to; true where nothing speaks against it.

    Attributes:
        name: of the function.
        outcome: "bounded": every result is a neighbour, what needs no rounding stays, and every mean lies within its
            bound; or "differs".
        causes: what it does instead, one sentence each; the first names what the others may follow from.
        witness: an input that shows the first cause; empty where none does.
        draws: the results judged.
        false_alarm: the probability, at most, that a function that rounds stochastically differs.
        bias: of one input, as a share of the gap: from this one on it is missed with no greater probability.
        common_bias: the same of a bias toward the upper neighbours that all inputs of a sign have.
    """

    name: str
    outcome: Literal["bounded", "differs"]
    causes: tuple[str, ...]
    witness: str
    draws: int
    false_alarm: float
    bias: float
    common_bias: float

    @property
    def conforms(self) -> bool:
        """Whether nothing speaks against it."""
        return self.outcome == "bounded"

    def __bool__(self) -> bool:
        """The same, for ``assert``."""
        return self.conforms

    def __str__(self) -> str:
        """The outcome, how sure it is, and the causes."""
        said = f"{self.name}: {self.outcome}; {self.draws:,} draws, false alarm at most {self.false_alarm:g}"
        sure = (
            f"seen is a bias from {self.bias:.3f} of a gap on for one input, {self.common_bias:.4f} for all of a sign"
        )
        shown = [f"  {self.witness}"] if self.witness else []
        return "\n".join([said, f"  {sure}", *(f"  {cause}" for cause in self.causes), *shown])


def check_stochastic(
    function: Callable[[Any], Any],
    numbers: FloatFormat | str | Array,
    *,
    dtype: str = "float32",
    array: Literal["torch", "numpy"] = "torch",
    draws: int = 4096,
    bits: int | None = None,
    false_alarm: float = 1e-9,
) -> Stochastic:
    """Check that ``function`` rounds stochastically, each element of an array by a draw of its own.

    Args:
        function: from an array of ``dtype`` to the rounded numbers, of the same shape and any float or integer dtype.
            It draws anew in every call, and for every element; it is called nine times.
        numbers: what it rounds to: a ``FloatFormat`` or the name of one, or an ascending array of float64.
        dtype: float64, float32, float16 or bfloat16.
        array: what ``function`` takes.
        draws: of each input, at least 64.
        bits: of the random numbers, where they are so few that the probability is a multiple of 2^-bits, rounded either
            way; by default it is exact.
        false_alarm: the probability, at most, that a function that does round stochastically is said to differ.

    Raises:
        TypeError: ``function`` returns no array.
        ValueError: an argument is out of its range, ``numbers`` are too few or no array of ``dtype`` holds them, or
            the result has another shape.

    Example:
        >>> import numpy as np
        >>> draw = np.random.default_rng(0)
        >>> def dithered(x):
        ...     return np.floor(x + draw.random(x.shape))
        >>> check_stochastic(dithered, np.arange(-9.0, 10.0), dtype="float64", array="numpy").conforms
        True
        >>> print(check_stochastic(np.rint, np.arange(-9.0, 10.0), array="numpy").causes[0])
        gives the same in every call: nothing is drawn, or the same again
    """
    among("dtype", dtype, DTYPES)
    among("array", array, ("torch", "numpy"))
    for name, value, least in (("draws", draws, 64), ("bits", 1 if bits is None else bits, 1)):
        if value < least:
            msg = f"{name}={value} is not accepted: give {least} or more"
            raise ValueError(msg)
    if not 0 < false_alarm < 1:
        msg = f"false_alarm={false_alarm} is not accepted: give a probability between 0 and 1"
        raise ValueError(msg)
    kind = DTYPES[dtype]
    known = _known(numbers, kind)
    low, high, x = _inputs(known, kind)
    copies = ceil(draws / _CALLS)

    def called(given: Array) -> Array:
        value = from_backend(function(to_torch(given) if array == "torch" else given))
        if value.shape != given.shape:
            msg = f"function gave {value.shape} for an input of {given.shape}: it must give one number for each"
            raise ValueError(msg)
        return value.astype(np.float64)

    given = np.tile(x, copies)  # copies of an input lie apart, so that they are not of one vector
    results = np.stack([called(given.copy()).reshape(copies, -1) for _ in range(_CALLS)])
    kept = called(known.astype(kind))
    judged = _Judged(low, high, x.astype(np.float64), results, false_alarm, 0.0 if bits is None else 0.5**bits)
    found = [*_moved(known, kept), *judged.causes()]
    return Stochastic(
        name=getattr(function, "__name__", type(function).__name__),
        outcome="differs" if found else "bounded",
        causes=tuple(cause for cause, _ in found),
        witness=next((shown for _, shown in found if shown), ""),
        draws=results.size + kept.size,
        false_alarm=false_alarm,
        bias=judged.seen_from(1),
        common_bias=judged.seen_from(max(1, min(int((low >= 0).sum()), int((high <= 0).sum())))),
    )


def _known(numbers: FloatFormat | str | Array, kind: "np.dtype[Any]") -> Array:
    """The numbers, ascending, of which neighbours in the dtype lie apart."""
    if isinstance(numbers, np.ndarray):
        known = numbers.astype(np.float64)
    else:
        f = format_of(numbers)
        magnitudes = decode(np.arange(f.max_code + 1), f, "float64")
        known = magnitudes if f.specials == "e8m0" else np.concatenate([-magnitudes[:0:-1], magnitudes])
    with np.errstate(over="ignore"):
        held = np.array_equal(known.astype(kind).astype(np.float64), known)
    if known.ndim != 1 or len(known) < 2 or not held or (np.diff(known) <= 0).any():  # noqa: PLR2004 - a gap has two ends
        msg = f"numbers={numbers!r} is not accepted: give two or more, ascending, that {kind.name} holds"
        raise ValueError(msg)
    return known


def _inputs(known: Array, kind: "np.dtype[Any]") -> tuple[Array, Array, Array]:
    """Inputs of the dtype that lie between two numbers, and these two."""
    gaps = np.arange(len(known) - 1)
    if len(gaps) > _INTERVALS:  # both ends, about zero, and those between
        middle = int(np.searchsorted(known, 0.0))
        ends = {0, 1, middle - 2, middle - 1, middle, middle + 1, len(gaps) - 2, len(gaps) - 1}
        spread = np.linspace(0, len(gaps) - 1, _INTERVALS).astype(int).tolist()
        gaps = np.array(sorted({*spread, *(g for g in ends if 0 <= g < len(gaps))}))
    low, high = np.repeat(known[gaps], len(_PLACES)), np.repeat(known[gaps + 1], len(_PLACES))
    x = (low + np.tile(_PLACES, len(gaps)) * (high - low)).astype(kind)
    between = (x.astype(np.float64) > low) & (x.astype(np.float64) < high)
    if not between.any():
        msg = f"dtype={kind.name!r} is not accepted: it has no number between two of those rounded to"
        raise ValueError(msg)
    return low[between], high[between], x[between]


def _moved(known: Array, kept: Array) -> Iterator[tuple[str, str]]:
    """Numbers that need no rounding, and did not stay."""
    moved = ~(kept == known)
    if moved.any():
        i = int(np.flatnonzero(moved)[0])
        yield (
            f"moves numbers that need no rounding ({int(moved.sum())} of {len(known)})",
            f"x = {float(known[i]).hex()} ({float(known[i])!r}): expected itself, got {float(kept[i])!r}",
        )


@dataclass(frozen=True, eq=False)
class _Judged:
    """All draws: ``results`` has the calls, the copies, the inputs."""

    low: Array
    high: Array
    x: Array
    results: Array
    false_alarm: float
    slack: float

    def bound(self, inputs: int) -> int:
        """How far the count of some inputs may be from its mean: one test's share of the false alarms lies beyond."""
        tests = self.x.size + 2 + len(_PLACES)  # each input, all of either sign, and all of each place
        return ceil(sqrt(self._each * inputs * log(4 * tests / self.false_alarm) / 2))  # half of the false alarms

    def seen_from(self, inputs: int) -> float:
        """The bias that is twice as far: a count so biased is within the bound as rarely as one without is beyond."""
        return 2 * self.bound(inputs) / (self._each * inputs) + self.slack

    @property
    def _each(self) -> int:
        """The draws of one input."""
        return int(self.results.shape[0] * self.results.shape[1])

    def causes(self) -> Iterator[tuple[str, str]]:
        """What speaks against it, and an input that shows it."""
        other = ~((self.results == self.low) | (self.results == self.high))
        if other.any():
            call, copy, i = (int(a[0]) for a in np.nonzero(other))
            share = f"{int(other.sum()):,} of {other.size:,}"
            shown = self._shown(i, self.results[call, copy, i])
            yield f"gives what is neither of the two neighbours ({share})", shown
            return
        up = self.results == self.high
        # That so many draws agree by chance is far less probable than any false alarm.
        if (up == up[:1]).all():
            shown = self._shown(0, self.results[0, 0, 0])
            yield "gives the same in every call: nothing is drawn, or the same again", shown
        elif (up == up[:, :1]).all():
            yield "draws one number for all elements of a call: it does not round each by itself", ""
            return
        biased = list(self._biased(up))
        yield from biased or self._shared(up)

    def _biased(self, up: Array) -> Iterator[tuple[str, str]]:
        n, counts = self._each, up.sum((0, 1))
        place = (self.x - self.low) / (self.high - self.low)
        groups = {
            "numbers above zero": self.low >= 0,
            "numbers below zero": self.high <= 0,
            **{f"numbers about {p:g} of a gap above the lower one": np.abs(place - p) < _NEAR for p in _PLACES},
        }
        off = np.abs(counts - n * place) - self.slack * n
        alone = off > self.bound(1)
        few = alone & (alone.sum() * _FEW <= alone.size)  # what these are off by says nothing of the others
        for name, given in groups.items():
            own = given & ~few
            over, inputs = float((counts - n * place)[own].sum()), int(own.sum())
            if abs(over) > self.bound(inputs) + self.slack * n * inputs:
                seen = f"by {abs(over) / (n * inputs):.2%} of the draws"
                yield f"takes the upper neighbour of {name} too {'often' if over > 0 else 'seldom'}, {seen}", ""
        if alone.any():
            i = int(np.argmax(off))
            expected = f"expected {n * place[i]:,.1f}, at most {self.bound(1) + self.slack * n:,.0f} off"
            shown = f"{counts[i]:,} of {n:,} draws gave {float(self.high[i])!r}, {expected}"
            yield "takes one of the neighbours too often for single inputs", f"{self._input(i)}: {shown}"

    def _shared(self, up: Array) -> Iterator[tuple[str, str]]:
        """Elements so far apart, in a call or over calls, that go the same way, or opposite ways, too often."""
        off = (up - (self.x - self.low) / (self.high - self.low)).ravel()
        n = off.size
        spectrum = np.fft.rfft(off, 2 * n)
        sums = np.fft.irfft(spectrum * spectrum.conj())[1:n]
        pairs = np.arange(n - 1, 0, -1)
        bound = np.sqrt(pairs * (log(4 * (n - 1) / self.false_alarm) / 2)) + self.slack * pairs
        beyond = np.abs(sums) / bound
        apart = int(np.argmax(beyond)) + 1
        if beyond[apart - 1] > 1:
            in_call = up[0].size
            of = f"{apart:,} apart" if apart < in_call else f"{apart:,} apart, of calls {apart // in_call} later,"
            way = "the same way" if sums[apart - 1] > 0 else "opposite ways"
            yield f"does not draw for each element by itself: elements {of} go {way} too often", ""

    def _input(self, i: int) -> str:
        return f"x = {float(self.x[i]).hex()} ({float(self.x[i])!r})"

    def _shown(self, i: int, got: float) -> str:
        return f"{self._input(i)}: neighbours {float(self.low[i])!r} and {float(self.high[i])!r}, got {float(got)!r}"
