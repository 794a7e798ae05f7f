"""Plain choices of scales: what is shared, of what number, divided by what, at least how much, and how it is stored.

Parts of ordinary size decide how a scale is made; the small ones what is the least; zeros, infinities and NaN each a
choice of its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.fingerprints.kinds import same
from halfeven.conformance.fingerprints.reading import Answered
from halfeven.conformance.fingerprints.units import LEAST, MOST, NO_OTHER, Units, overs, units
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FLOAT_FORMATS, decode, encode
from halfeven.reference.rounding import cast_once

__all__ = [
    "AMOUNTS",
    "DIVISIONS",
    "DIVISORS",
    "OF",
    "PER_REAL",
    "POWERS",
    "TENSOR",
    "Made",
    "Scaling",
    "is_power",
    "made_scales",
    "nearest_scales",
    "ordinary",
    "quotient",
    "same_power",
    "scale_of",
    "splitting",
]

#: By what a number is divided: the ends of integers, of small floats, and powers of two.
DIVISORS = (
    *(1.0, 3.0, 6.0, 7.0, 7.5, 15.0, 28.0, 31.0, 63.0, 127.0, 127.5, 240.0, 255.0, 448.0, 511.0, 1023.0, 2688.0),
    *(32767.0, 57344.0, 65504.0, 65535.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 32768.0, 65536.0),
    *(-7.0, -8.0, -127.0, -128.0),
)
_EPS = np.finfo(np.float32).eps
#: Least amounts that people write.
AMOUNTS = (
    *(1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-15, 1e-20, 1e-30, 5e-5, 5e-6),
    *(float(_EPS), 2.0**-10, 2.0**-7, 2.0**-14, 2.0**-24, 2.0**-126, 2.0**-127, 2.0**-9, 2.0**-6, 2.0**-52),
)
OF: Mapping[str, Callable[[Units], Array]] = {
    "the largest magnitude": lambda u: u.amax,
    "the number of the largest magnitude": lambda u: u.signed,
    "greatest - least": lambda u: u.high - u.low,
    "greatest - least, 0 between them": lambda u: np.maximum(u.high, 0.0) - np.minimum(u.low, 0.0),
    "the greatest": lambda u: u.high,
    "the greatest, 0 at least": lambda u: np.maximum(u.high, 0.0),
    "the least": lambda u: u.low,
}
DIVISIONS = ("divide", "reciprocal", "codes-per-real", "times-inverse", "inverse", "inverse-of-inverse")
PER_REAL = frozenset({"codes-per-real", "times-inverse", "inverse"})
#: Of a division by a power of two those that are no other function than one before.
_PLAIN = frozenset({"reciprocal", "times-inverse", "inverse"})
#: Within a scale of the tensor it does not show by what both are divided, but by what rounds.
_CANCELLED = (6.0,)
_WITHIN = (
    NO_OTHER,
    "divided by the tensor's",
    "times the tensor's inverse",
    "times the tensor's codes per real",
    "times the tensor's codes per real, by 1 / amax",
)
TENSOR = 448.0  # of a scale within a tensor's, the largest
POWERS = {
    "power of two, down": (Fraction(1), True, 0),
    "power of two, up": (Fraction(1), False, 1),
    "power of two, rounded as e2m1": (Fraction(7, 4), True, 1),
    "power of two, rounded as e5m2": (Fraction(15, 8), True, 1),
    "power of two, rounded as e4m3": (Fraction(31, 16), True, 1),
    "power of two, nearest": (Fraction(3, 2), True, 1),
}
#: By a logarithm in float32, which rounds what is beside a power of two.
_LOGARITHMS: Mapping[str, Callable[[Array], Array]] = {
    "power of two, down by a rounded logarithm": np.floor,
    "power of two, up by a rounded logarithm": np.ceil,
    "power of two, nearest logarithm": np.rint,
}
#: Of the number beside that the divisor is.
_ROUNDED_AS = {"e2m1": {4.0}, "e5m2": {32768.0}, "e4m3": {256.0}}
#: How far a scale that is stored so is from what it was.
_LOOSE = {
    "float8_e4m3fn": 0.07,
    "float8_e4m3fn, not saturating": 0.07,
    "float8_e5m2": 0.13,
    "float8_e5m2, not saturating": 0.13,
}
_NEAR = 2.0**-7
_CLEAN = 2.0**-21
_POWERS_APART = 0.45  # of what powers of two are made, from its median
_DRAWN = 50_000
_PART = 8
_ADDED = (1e-6, 1e-5, 1e-4, 1e-3)
_UNITS = 4  # of ordinary size, that there have to be


@dataclass(frozen=True)
class Scaling:
    """How a scale of ordinary size is made.

    Attributes:
        over: what shares one.
        of: the number that it is made of.
        divisor: by what that is divided.
        division: how.
        compute: the dtype in which it is.
        held: as what it is stored.
        within: how it stands to a scale of the tensor.
        gives: the scale, or codes of it.
        added: what is added to it, so large that it shows in scales of ordinary size.
    """

    over: str
    of: str
    divisor: float
    division: str
    compute: str
    held: str
    within: str
    gives: str
    added: float = 0.0

    def chosen(self) -> dict[str, tuple[Any, ...]]:
        """Each choice with its value; what is stored with few bits may as well be computed in float64."""
        own = {f.name: (getattr(self, f.name),) for f in fields(self) if f.name != "added"}
        narrow = self.held not in {"as computed", "float32"} and self.compute != "float64"
        return {**own, "compute": (self.compute, "float64")} if narrow else own


@dataclass(frozen=True, eq=False)
class Made:
    """A way to make scales that gives those of ordinary size.

    Attributes:
        scaling: the way.
        calls: of each call its parts.
        came: the scales that came, as reals.
        missed: how many of ordinary size it does not give, if it is the nearest way and no more.
        zeros: the zero points that came with them, if they differ from part to part.
    """

    scaling: Scaling
    calls: tuple[Units, ...]
    came: tuple[Array, ...]
    missed: int = 0
    zeros: tuple[Array, ...] = ()


def stored(v: Array, held: str) -> Array:
    """A scale as it is stored, as float64."""
    wide = np.asarray(v, np.float64)
    if held in _LOGARITHMS:
        with np.errstate(all="ignore"):
            logarithm = np.log2(np.abs(wide).astype(np.float32))
            found = np.copysign(np.exp2(_LOGARITHMS[held](logarithm)), wide)
        return np.where(np.isfinite(wide) & (wide != 0), found, wide)
    if held in POWERS:
        bound, at, level = POWERS[held]
        fraction, exponent = (np.asarray(part) for part in np.frexp(np.abs(wide)))
        up = 2 * fraction >= float(bound) if at else 2 * fraction > float(bound)
        beyond = up.astype(int) * level if level else 0
        found = np.ldexp(1.0, np.clip(exponent - 1 + beyond, -149, 127))
        return np.where(np.isfinite(wide) & (wide != 0), np.copysign(found, wide), wide)
    if held in _LOOSE:
        name, not_saturating, _ = held.partition(", ")
        return decode(encode(wide, name, overflow="special" if not_saturating else "saturate"), name, "float64")
    return wide if held == "as computed" else np.asarray(cast_once(np.asarray(v), DTYPES[held])).astype(np.float64)


def quotient(a: Array, c: Any, division: str) -> Array:
    """A number divided by a constant, or the constant by it, in one of ``DIVISIONS``."""
    one = a.dtype.type(1)
    match division:
        case "divide":
            found = a / c
        case "reciprocal":
            found = a * (one / c)
        case "codes-per-real":
            found = c / a
        case "times-inverse":
            found = c * (one / a)
        case "inverse":
            found = one / (a / c)
        case _:
            found = one / (c / a)
    return np.asarray(found)


def _same(a: Array) -> Array:
    return a


def _within(v: Array, s: Scaling, whole: Any) -> Array:
    """A scale against that of the tensor, whose largest magnitude is ``whole``."""
    one, whole_divisor = v.dtype.type(1), v.dtype.type(s.divisor * TENSOR)
    match s.within:
        case "divided by the tensor's":
            found = v / (whole / whole_divisor)
        case "times the tensor's inverse":
            found = v * (one / (whole / whole_divisor))
        case "times the tensor's codes per real":
            found = v * (whole_divisor / whole)
        case _:
            found = v * (whole_divisor * (one / whole))
    return np.asarray(found)


def scale_of(s: Scaling, u: Units, dtype: str, *, least: Callable[[Array], Array] = _same, store: bool = True) -> Array:
    """The scales of some parts, as float64; ``least`` is done to the number that they are made of."""
    t, data = DTYPES[s.compute], DTYPES[dtype]
    with np.errstate(all="ignore"):
        a = OF[s.of](u)
        a = a if t.itemsize > data.itemsize else a.astype(data)  # a difference is rounded
        after = s.divisor if "logarithm" in s.held and is_power(s.divisor) else 1.0
        v = quotient(np.asarray(least(a.astype(t)), t), t.type(s.divisor / after), s.division)
        v = v + t.type(s.added) if s.added else v
        v = v if s.within == NO_OTHER else _within(v, s, t.type(u.whole))
        return stored(v, s.held) / after if store else np.asarray(v).astype(np.float64)


def is_power(divisor: float) -> bool:
    """Whether a number is a power of two, with any sign."""
    return bool(abs(np.frexp(divisor)[0]) == 0.5)  # noqa: PLR2004 - what frexp gives


def ordinary(u: Units, of: str, within: str = NO_OTHER) -> Array:
    """Which parts are of ordinary size."""
    with np.errstate(all="ignore"):
        return np.asarray(~u.lost(within) & (u.amax >= LEAST) & (u.amax <= MOST) & (np.abs(OF[of](u)) >= LEAST / 2))


def _ordinary(u: Units) -> int:
    """How many parts are of ordinary size, in data of ordinary size."""
    return int(ordinary(u, "the largest magnitude").sum()) * (u.whole <= MOST)


def _reals(a: Array) -> Iterator[tuple[str, Array]]:
    """What an array of scales can stand for."""
    yield "the scale", a
    if ((a >= 0) & (a <= 255) & (a == np.floor(a))).all():  # noqa: PLR2004 - a byte
        for name in ("float8_e8m0fnu", "float8_e4m3fn"):
            yield f"the code of a {name}", decode(a.astype(np.uint8), name, "float64")
    if ((np.abs(a) < 160) & (a == np.floor(a))).all():  # noqa: PLR2004 - exponents of float32
        yield "the exponent", np.exp2(a)


def _divisors(own: Array, came: Array) -> list[float]:
    """By what a number can have been divided: what people divide by, and what the answers say, if it is simple."""
    found = list(DIVISORS)
    with np.errstate(all="ignore"):
        for ratio in (own / came, own * came):
            middle = float(np.median(ratio))
            if np.isfinite(middle) and middle and (np.abs(ratio / middle - 1) < 2 * _NEAR).all():
                near = float(Fraction(middle).limit_denominator(64))
                if near and abs(middle / near - 1) < _CLEAN:
                    found.append(near)
    return list(dict.fromkeys(found))


def _close(v: Array, came: Array) -> Iterator[str]:
    """As what scales can be stored that came of these."""
    with np.errstate(all="ignore"):
        ratio = came / v
    if not np.isfinite(ratio).all():
        return
    off = np.abs(ratio - 1)
    if (off < _NEAR).all():
        yield from ("as computed", "float32", "float16", "bfloat16")
    for name, most in _LOOSE.items():
        inside = came < FLOAT_FORMATS[name.partition(", ")[0]].max
        if inside.any() and (off[inside] < most).all():
            yield name
    if (ratio > 0.49).all() and (ratio < 2.05).all() and (np.frexp(came)[0] == np.copysign(0.5, came)).all():  # noqa: PLR2004
        yield from (*POWERS, *_LOGARITHMS)


def _alike(own: Array, came: Array) -> Iterator[Array]:
    """Which scales stand to what they are made of as most do: nearly, or as powers of two would."""
    with np.errstate(all="ignore"):
        ratio = own / came
        off = np.abs(ratio / np.median(ratio) - 1)
    for most in (_NEAR / 16, 2 * _NEAR, _POWERS_APART):
        if 2 * (off < most).sum() > off.size:
            yield off < most


def _tried(over: str, gives: str, first: Units, came: Array, dtype: str, *, mostly: bool = False) -> Iterator[Scaling]:
    """The ways that may give the first scales of ordinary size, or most of them."""
    parts = over not in {"the tensor", "each column"}
    for of in OF:
        at = ordinary(first, of)
        own = OF[of](first)[at]
        if not at.any():
            continue
        some = _alike(own, came[at]) if mostly else [np.ones(own.shape, bool)]
        for kept in some:
            for way in _ways(own[kept], came[at][kept], first.whole, parts=parts):
                yield from _computed(replace(way, over=over, of=of, gives=gives), dtype)


def _ways(own: Array, came: Array, whole: float, *, parts: bool) -> Iterator[Scaling]:
    """The ways in which such scales may be made of such numbers, whatever they are of."""
    alone = product(_divisors(own, came), (NO_OTHER,))
    for divisor, within in (*alone, *(product(_CANCELLED, _WITHIN[1:]) if parts else ())):
        v = own / divisor if within == NO_OTHER else own / (whole / TENSOR)
        for division in DIVISIONS:
            per_real = division in PER_REAL
            if (per_real and within != NO_OTHER) or (division in _PLAIN and is_power(divisor)):
                continue
            for held in _close(1 / v if per_real else v, came):
                if _is_told(held, divisor, within):
                    yield Scaling("", "", divisor, division, "", held, within, "")


def _is_told(held: str, divisor: float, within: str) -> bool:
    """Whether a way of storing a scale goes with the rest."""
    rounded = held.rpartition(" ")[2]
    return (rounded not in _ROUNDED_AS or divisor in _ROUNDED_AS[rounded]) and (
        within == NO_OTHER or (held in _LOOSE and divisor > 0)
    )


def _computed(s: Scaling, dtype: str) -> Iterator[Scaling]:
    """The same in each dtype in which it is another function.

    In float64 a quotient of two floats that is rounded to float32 is the one of float32, if it is not one of a
    difference; and what is stored with fewer bits is told apart by hardly any input, so it is not tried: both remain.
    """
    for compute in dict.fromkeys((dtype, "float32", "float64")):
        if DTYPES[compute].itemsize < DTYPES[dtype].itemsize or s.held == compute:
            continue
        wide = compute == "float64" != dtype
        if wide and not (s.held == "as computed" or (s.held == "float32" and " - " in s.of and s.division == "divide")):
            continue
        yield replace(s, compute=compute)


def same_power(s: Scaling) -> Any:
    """Of a power of two where it changes: two ways that change it at the same numbers are one function.

    None where that is not proved. A quotient of two floats is below 1 where the real one is, and not above it where
    that is not; one by a power of two is exact. So this holds of what is computed too, but of no difference.
    """
    if s.held not in POWERS or s.division != "divide" or s.added or s.within != NO_OTHER or " - " in s.of:
        return None
    bound, at, level = POWERS[s.held]
    if bound != 1 and not is_power(s.divisor):
        return None
    fraction, exponent = np.frexp(float(bound * Fraction(s.divisor)))
    return s.over, s.of, s.gives, float(fraction), at, level - int(exponent)


def _counted(s: Scaling, calls: Sequence[Units], came: Sequence[Array], dtype: str) -> tuple[int, int]:
    """How many scales are of ordinary size, and how many of them a way does not give."""
    every = missed = 0
    for u, c in zip(calls, came, strict=True):
        at = ordinary(u, s.of, s.within)
        every += int(at.sum())
        missed += int((~same(scale_of(s, u, dtype)[at], c[at])).sum()) if at.any() else 0
    return every, missed


def _agrees(s: Scaling, calls: Sequence[Units], came: Sequence[Array], dtype: str) -> int:
    """How many scales of ordinary size a way gives; -1 where it does not give one."""
    every = 0
    for u, c in zip(calls, came, strict=True):
        own, missed = _counted(s, (u,), (c,), dtype)
        if missed:
            return -1
        every += own
    return every


@dataclass(frozen=True, eq=False)
class _Shared:
    """What can share a scale, and for what a number that came can stand: the parts, and the scales that came so."""

    over: str
    gives: str
    calls: tuple[Units, ...]
    came: tuple[Array, ...]
    first: int

    def tried(self, added: float, dtype: str, *, mostly: bool = False) -> Iterator[Scaling]:
        """The ways that may give the scales, or most of them, of the call that has most of ordinary size."""
        first, came = self.calls[self.first], self.came[self.first]
        for way in _tried(self.over, self.gives, first, came - added, dtype, mostly=mostly):
            yield replace(way, added=added)

    def the_first(self) -> tuple[tuple[Units, ...], tuple[Array, ...]]:
        """That call alone."""
        alone = slice(self.first, self.first + 1)
        return self.calls[alone], self.came[alone]


def _shared(seen: Sequence[Answered], which: int) -> Iterator[_Shared]:
    for over, elements in overs(seen[0].answer[which].size):
        calls = tuple(units(s.x, elements) for s in seen)
        for gives, _ in _reals(np.concatenate([s.answer[which] for s in seen])):
            came = tuple(dict(_reals(s.answer[which]))[gives] for s in seen)
            first = max(range(len(calls)), key=lambda i: _ordinary(calls[i]))
            if _ordinary(calls[first]):
                yield _Shared(over, gives, calls, came, first)


def made_scales(seen: Sequence[Answered], which: int, dtype: str) -> list[Made]:
    """The ways that give all scales of ordinary size in an array of the answers.

    Args:
        seen: the calls.
        which: of the arrays that came.
        dtype: of the data.
    """
    found: dict[Scaling, Made] = {}
    for one in _shared(seen, which):
        for added in (0.0, *_ADDED):
            for s in one.tried(added, dtype):
                if _agrees(s, *one.the_first(), dtype) >= 0 and _agrees(s, one.calls, one.came, dtype) >= _UNITS:
                    found.setdefault(s, Made(s, one.calls, one.came))
            if found:
                break
    return list(found.values())


def nearest_scales(seen: Sequence[Answered], which: int, dtype: str) -> Made | None:
    """Where no way gives all scales of ordinary size: the one that gives most, if that is more than half.

    Args:
        seen: the calls.
        which: of the arrays that came.
        dtype: of the data.
    """
    best, most = None, 0.5
    for one in _shared(seen, which):
        for s in one.tried(0.0, dtype, mostly=True):
            every, missed = _counted(s, one.calls, one.came, dtype)
            if every >= _UNITS and 1 - missed / every > most:
                best, most = Made(s, one.calls, one.came, missed), 1 - missed / every
    return best


def splitting(made: Sequence[Made], dtype: str, turn: int) -> Array | None:
    """Data at which ways that remain make different scales; None where none was found."""
    rng = np.random.default_rng([turn, len(made)])
    divisor = abs(made[0].scaling.divisor)
    # Beside the middles of two numbers of few bits, and beside powers of two.
    bits = rng.choice([0, 2, 3, 7, 10], _DRAWN)
    middles = np.ldexp(2 * np.ldexp(rng.uniform(1, 2, _DRAWN), bits).astype(int) + (bits > 0), -bits - 1)
    middles = middles * (1 + rng.integers(-2, 3, _DRAWN) * 2.0**-23)
    beside = divisor / middles if made[0].scaling.division in PER_REAL else divisor * middles
    fraction, _ = np.frexp(beside)
    beside = np.ldexp(fraction, rng.integers(10, 15, _DRAWN))
    amax = np.concatenate([np.exp2(rng.uniform(np.log2(LEAST), np.log2(MOST / 2), _DRAWN)), beside])
    amax = amax[(amax >= LEAST) & (amax < MOST)].astype(DTYPES[dtype]).astype(np.float64)
    sign = -1.0 if made[0].scaling.of == "the least" else 1.0
    drawn = units((sign * amax)[:, None], 1)
    # What is subtracted is 0, and a scale of the tensor is that of the largest.
    drawn = replace(drawn, low=np.minimum(drawn.low, 0.0), high=np.maximum(drawn.high, 0.0), whole=MOST)
    answers = [scale_of(m.scaling, drawn, dtype) for m in made]
    told = np.flatnonzero(np.any([~same(answers[0], a) for a in answers[1:]], axis=0))
    if not told.size:
        return None
    own = sign * rng.permutation(amax[told])
    x = np.zeros((16, 64))
    x[:, ::_PART] = np.resize(own, (16, 64 // _PART)) if made[0].scaling.over.startswith("blocks") else own[0]
    if made[0].scaling.over == "each row":
        x[:] = np.resize(own, (16, 1)) * (np.arange(64) % _PART == 0)
    if made[0].scaling.over == "each column":
        x[:] = np.resize(own, (1, 64)) * (np.arange(16)[:, None] % _PART == 0)
    if made[0].scaling.within != NO_OTHER:
        x[0, 0] = MOST
    return x.astype(DTYPES[dtype])
