"""Plain casts to a small float: format, rounding, and what becomes of what the format does not hold, each by itself.

The inputs are of seven sorts: those that the format holds but for its rounding, those too large, those too small, NaN,
infinities, and where a format has them not, negative numbers and zeros. The first decide format and rounding, and each
other sort decides a choice of its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.fingerprints.kinds import same
from halfeven.conformance.fingerprints.reading import Answered, Reading, decided, witnessed
from halfeven.conformance.fingerprints.result import UNDECIDED, Witnessed
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FLOAT_FORMATS, FloatFormat, decode
from halfeven.reference.rounding import cast_once

__all__ = ["BY_PLACE", "STOCHASTIC", "ends", "reading_of_cast"]

#: The rounding of what gives one of the two nearest numbers, another one when the same call is made again.
STOCHASTIC = "depends on the draw: one of the two numbers beside x"
#: Of what gives the same in the same call, but equal inputs otherwise where they stand elsewhere, or among others.
BY_PLACE = "depends on the place: one of the two numbers beside x"
_HALF = 0.5
_LEAST = 64  # inputs, of which a format is told
_LOST = 0.01  # of all numbers, that no value of a choice gives where the format is told all the same
_NOT_FINITE = frozenset({"nan", "infinity"})
_ROOT = float(np.sqrt(2.0))
_BITS = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}
_LOWEST = -126  # exponent of a normal float32


@dataclass(frozen=True)
class Target:
    """A format as numbers.

    Attributes:
        name: what it is called.
        mantissa_bits: after the first.
        lowest: the exponent of its least normal number.
        largest: its largest number.
        specials: as in ``FloatFormat``.
        codes: of those that have codes of at most 16 bits.
    """

    name: str
    mantissa_bits: int
    lowest: int
    largest: float
    specials: str
    codes: FloatFormat | None = None

    @property
    def powers(self) -> bool:
        """Whether it has powers of two alone."""
        return self.specials == "e8m0"


def _wide(name: str, mantissa_bits: int) -> Target:
    """A format with the exponents of float32."""
    return Target(name, mantissa_bits, _LOWEST, (2 - 2.0**-mantissa_bits) * 2.0**127, "ieee")


TARGETS = (
    *(Target(n, f.mantissa_bits, f.lowest_exponent, f.max, f.specials, f) for n, f in FLOAT_FORMATS.items()),
    _wide("tensorfloat32", 10),
    _wide("float32", 23),
)

_LOW_FIRST = "two codes to a byte, the first in the low bits"
_FORMS = ("reals", "codes", _LOW_FIRST, "two codes to a byte, the first in the high bits")
_TARGET = {t.name: t for t in TARGETS}
_NEAREST = ("half-even", "half-away", "half-to-zero", "half-up", "half-down")
_DIRECTED = ("toward-zero", "away-from-zero", "floor", "ceil", "odd")
_ROUNDINGS = (*_NEAREST, *_DIRECTED)
#: Of numbers that have no sign.
_OF_POWERS = ("half-even", "half-away", "half-to-zero", "toward-zero", "away-from-zero", "odd", "logarithm")
_AT_BOUNDS = frozenset({"half-away", "toward-zero"})
_THROUGH: Mapping[str, Callable[[Array], Array]] = {
    "directly": lambda x: x,
    "float16": lambda x: cast_once(x, DTYPES["float16"]),
    "bfloat16": lambda x: cast_once(x, DTYPES["bfloat16"]),
    "bfloat16, cut off": lambda x: (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32),
    "float32": lambda x: cast_once(x, DTYPES["float32"]),
}
_PRECISION = {"float16": 10, "bfloat16": 7, "bfloat16, cut off": 7, "float32": 23}


@dataclass(frozen=True)
class Core:
    """What decides the numbers that a format holds."""

    format: str
    rounding: str
    through: str
    gives: str


@dataclass(eq=False)
class _Call:
    """A call as a core sees it: what it rounds, as float64, and the reals that came."""

    x: Array
    v: Array
    came: Array
    known: dict[str, Array] = field(default_factory=dict)


def _up(rounding: str, rest: Array, odd: Array, negative: Array) -> Array:
    """Whether a magnitude goes to the number above it: ``rest`` of a step is left, the number below is ``odd``."""
    if rounding == "logarithm":
        return np.asarray(rest > _ROOT - 1)
    yes = np.ones(rest.shape, np.bool_)
    if rounding in _DIRECTED:
        ends = {"toward-zero": ~yes, "away-from-zero": yes, "floor": negative, "ceil": ~negative, "odd": ~odd}
        return np.asarray((rest > 0) & ends[rounding])
    ties = {"half-even": odd, "half-away": yes, "half-to-zero": ~yes, "half-up": ~negative, "half-down": negative}
    return np.asarray((rest > _HALF) | ((rest == _HALF) & ties[rounding]))


def _rounded(v: Array, target: Target, rounding: str, *, unbounded: bool = False) -> Array:
    """Magnitudes rounded to the format's steps, however large; ``unbounded`` however small too."""
    magnitude = np.where(np.isfinite(v), np.abs(v), 0.0)
    fraction, exponent = np.frexp(magnitude)
    exponent = np.where(fraction == 0, target.lowest, exponent - 1)
    if not unbounded:
        exponent = np.maximum(exponent, target.lowest)
    steps = np.ldexp(magnitude, target.mantissa_bits - exponent)
    below = np.floor(steps)
    odd = (exponent - target.lowest) % 2 == 1 if target.powers else below % 2 == 1
    up = _up(rounding, steps - below, odd, np.signbit(v))
    return np.asarray(np.ldexp(below + up, exponent - target.mantissa_bits))


_Options = Iterator[tuple[dict[str, str], Array]]


def _ordinary(core: Core, call: _Call, at: Array) -> _Options:
    """What becomes of the numbers that a format holds but for its rounding."""
    yield {}, np.copysign(_rounded(call.v[at], _TARGET[core.format], core.rounding), call.v[at])


def _is_exact(core: Core) -> bool:
    """Whether what it is rounded to first has no more bits: then the format is told by its ends alone."""
    return core.through != "directly" and _PRECISION[core.through] <= _TARGET[core.format].mantissa_bits


def _large(core: Core, call: _Call, at: Array) -> _Options:
    """What becomes of numbers around the largest and beyond it."""
    target, v = _TARGET[core.format], call.v[at]
    y = np.where(np.isinf(v), np.inf, _rounded(v, target, core.rounding))
    every = {"nan": np.nan} if target.specials != "ieee" else {"infinity": np.inf, "nan": np.nan}
    yield {"overflow": "saturate"}, np.copysign(np.minimum(y, target.largest), v)
    for name, value in every.items() if target.specials != "finite" else ():
        yield {"overflow": name}, np.copysign(np.where(y > target.largest, value, y), v)
        beyond = np.abs(v) > target.largest
        yield {"overflow": f"{name} where x is beyond the largest"}, np.copysign(np.where(beyond, value, y), v)
    if not _is_exact(core):
        yield {"overflow": "none: no number is too large"}, np.copysign(y, v)


def _small(core: Core, call: _Call, at: Array) -> _Options:
    """What becomes of numbers around the least normal one, and of zeros, with their signs."""
    target, v, x = _TARGET[core.format], call.v[at], call.x[at].astype(np.float64)
    y, least = _rounded(v, target, core.rounding), 2.0**target.lowest
    if target.powers:
        for name, value in {"the least": least, "zero": 0.0, "nan": np.nan}.items():
            yield {"underflow": name}, np.where(y == 0, value, y)
        return
    every = {
        "kept": y,
        "flushed": np.where(np.abs(v) < least, 0.0, y),
        "flushed once they are rounded": np.where(y < least, 0.0, y),
    }
    if not _is_exact(core):
        every["none: no number is too small"] = _rounded(v, target, core.rounding, unbounded=True)
    for name, magnitude in every.items():
        signed = np.copysign(magnitude, x)
        yield {"subnormals": name, "zeros": "signed"}, signed
        yield {"subnormals": name, "zeros": "positive"}, np.where(magnitude == 0, 0.0, signed)
        yield {"subnormals": name, "zeros": "those of underflow alone signed"}, np.where(x == 0, 0.0, signed)


def _infinite(core: Core, call: _Call, at: Array) -> _Options:
    """What becomes of infinities."""
    x = call.x[at].astype(np.float64)
    yield {"infinity": "saturate"}, np.copysign(_TARGET[core.format].largest, x)
    yield {"infinity": "infinity"}, x
    yield from (({"infinity": name}, np.full(x.shape, value)) for name, value in {"nan": np.nan, "zero": 0.0}.items())


def _not_a_number(core: Core, call: _Call, at: Array) -> _Options:
    """What becomes of NaN."""
    largest = _TARGET[core.format].largest
    every = {"nan": np.nan, "zero": 0.0, "negative zero": -0.0, "the largest": largest, "infinity": np.inf}
    for name, value in {**every, "the largest, negative": -largest}.items():
        yield {"nan": name}, np.full(call.v[at].shape, value)


def _zero(core: Core, call: _Call, at: Array) -> _Options:
    """What becomes of a zero where there is none."""
    least = 2.0 ** _TARGET[core.format].lowest
    for name, value in {"nan": np.nan, "the least": least, "zero": 0.0, "one": 1.0}.items():
        yield {"zero": name}, np.full(call.v[at].shape, value)


def _negative(core: Core, call: _Call, at: Array) -> _Options:
    """What becomes of negative numbers where there are none."""
    target, v = _TARGET[core.format], call.v[at]
    least = 2.0**target.lowest
    for name, value in {"nan": np.nan, "the least": least, "zero": 0.0, "one": 1.0}.items():
        yield {"negative": name}, np.full(v.shape, value)
    y = np.minimum(np.maximum(_rounded(np.abs(v), target, core.rounding), least), target.largest)
    yield {"negative": "its magnitude"}, y
    yield {"negative": "signed"}, -y


_SORTS: Mapping[str, Callable[[Core, _Call, Array], _Options]] = {
    "": _ordinary,
    "overflow": _large,
    "small": _small,
    "infinity": _infinite,
    "nan": _not_a_number,
    "negative": _negative,
    "zero": _zero,
}


def _sorts(target: Target, call: _Call) -> dict[str, Array]:
    """Which inputs are of which sort."""
    x, v = call.x.astype(np.float64), np.abs(call.v)
    nan, infinite = np.isnan(x), np.isinf(x)
    usual = ~nan & ~infinite
    negative = usual & target.powers & (x < 0)
    zero = usual & target.powers & (x == 0)
    large = usual & ~negative & (v > target.largest / 2)
    small = usual & ~negative & ~zero & (v < 2.0 ** (target.lowest + 1))
    ordinary = usual & ~large & ~small & ~negative & ~zero
    return {"": ordinary, "overflow": large, "small": small, "infinity": infinite, "nan": nan} | (
        {"negative": negative, "zero": zero} if target.powers else {}
    )


def _decoded(target: Target, answer: Array, size: int, gives: str) -> Array | None:
    """The reals that an answer stands for; None where it does not stand for any in this way."""
    f = target.codes
    if gives == "reals":
        return answer if answer.size == size else None
    if f is None or not ((answer >= 0) & (answer == np.floor(answer)) & (answer < 1 << 16)).all():
        return None
    codes = answer.astype(np.int64)
    if gives != "codes":
        if f.bits != 4 or 2 * answer.size != size or codes.max() > 255:  # noqa: PLR2004 - two to a byte
            return None
        pair = (codes & 15, codes >> 4) if gives == _LOW_FIRST else (codes >> 4, codes & 15)
        codes = np.stack(pair, -1).reshape(-1)
    if codes.size != size or codes.max() >= 1 << f.bits:
        return None
    return decode(codes, f, "float64")


@cache
def _cores(dtype: str) -> tuple[Core, ...]:
    bits = _BITS[dtype]
    info: Any = ml_dtypes.finfo(DTYPES[dtype])  # type: ignore[no-untyped-call]
    found = []
    for t in TARGETS:
        if t.name == dtype or (t.mantissa_bits >= bits and t.largest >= float(info.max)):
            continue
        for through in _THROUGH:
            needless = _PRECISION.get(through, bits) >= bits if through != "directly" else False
            exact = _is_exact(Core(t.name, "", through, ""))
            if needless or (exact and t.name != "float16") or through.partition(",")[0] == t.name:
                continue
            if through.endswith("cut off") and dtype != "float32":
                continue
            # What is cut off first passes no bound that a number of the format, or the middle of two, is.
            same_as = _AT_BOUNDS if through.endswith("cut off") else frozenset()
            found += [
                Core(t.name, rounding, through, gives)
                for rounding in (_OF_POWERS if t.powers else _ROUNDINGS)
                if rounding not in same_as
                for gives in _FORMS
            ]
    return tuple(found)


def _calls(core: Core, seen: Sequence[Answered]) -> list[_Call] | None:
    """The calls as a core sees them; None where an answer is none of its numbers."""
    found = []
    for s in seen:
        if len(s.answer) != 1:
            return None
        came = _decoded(_TARGET[core.format], s.answer[0], s.x.size, core.gives)
        if came is None:
            return None
        x = s.x.reshape(-1)
        with np.errstate(all="ignore"):
            found.append(_Call(x, np.asarray(_THROUGH[core.through](x)).astype(np.float64), came))
    return found


def _agrees(cores: Sequence[Core], calls: Sequence[_Call], least: int = _LEAST) -> bool:
    """Whether a core, of several any one, gives all numbers that its format holds, at least so many."""
    target, every = _TARGET[cores[0].format], 0
    for call in calls:
        at = _sorts(target, call)[""]
        [(_, given)] = _given(cores, "", call, at)
        if not given.all():
            return False
        every += int(at.sum())
    return every >= least


def _given(cores: Sequence[Core], sort: str, call: _Call, at: Array) -> _Options:
    """Each option of a sort with the numbers that came of it; of several cores each number may be of any."""
    for options in zip(*(_SORTS[sort](core, call, at) for core in cores), strict=True):
        yield options[0][0], np.any([same(call.came[at], y) for _, y in options], axis=0)


def _values(cores: Sequence[Core], calls: Sequence[_Call]) -> tuple[dict[str, tuple[Any, ...]], int, int]:
    """The values of each choice that give what came; how many numbers none gives, and how many of these are finite."""
    core = cores[0]
    target = _TARGET[core.format]
    found: dict[str, tuple[Any, ...]] = {
        name: (getattr(core, name),) for name in ("format", "rounding", "through", "gives")
    }
    lost = finite = 0
    for sort in _sorts(target, calls[0]):
        if not sort:
            continue
        left: dict[tuple[tuple[str, str], ...], int] = {}
        came = []
        for call in calls:
            at = _sorts(target, call)[sort]
            came.append(call.came[at])
            for names, given in _given(cores, sort, call, at):
                key = tuple(names.items())
                left[key] = left.get(key, 0) + int((~given).sum())
        kept = [dict(key) for key, missed in left.items() if not missed]
        own = [name for name, _ in next(iter(left))]
        if kept:
            found |= {name: tuple(dict.fromkeys(k[name] for k in kept)) for name in own}
            continue
        lost += min(left.values())
        finite += 0 if sort in _NOT_FINITE else min(left.values())
        numbers = np.unique(np.concatenate(came))
        said = f"gives {float(numbers[0])!r}" if numbers.size == 1 else UNDECIDED
        found |= dict.fromkeys(own, (said,))
    return found, lost, finite


def _is_wide(core: Core, calls: Sequence[_Call]) -> bool:
    """Whether many of a format's numbers came: of few another function than a cast has them too."""
    ordinary = [call.came[_sorts(_TARGET[core.format], call)[""]] for call in calls]
    return np.unique(np.concatenate(ordinary)).size >= _LEAST


def _uneven(seen: Sequence[Answered]) -> bool:
    """Whether equal inputs have different answers, in one call or in two."""
    known: dict[bytes, float] = {}
    for s in seen:
        if len(s.answer) != 1 or s.answer[0].size != s.x.size:
            return False
        for x, y in zip(s.x.reshape(-1), s.answer[0].tolist(), strict=True):
            if known.setdefault(x.tobytes(), y) != y and y == y:  # noqa: PLR0124 - NaN
                return True
    return False


def ends(dtype: str) -> Array:
    """16 rows of 64 inputs at both ends of every format: around its largest and its least numbers."""
    found = [0.0, -0.0, np.inf, -np.inf, np.nan]
    for t in TARGETS:
        steps = np.arange(-4, 9)
        large = t.largest * (1 + steps * 2.0 ** -(t.mantissa_bits + 3))
        least = 2.0 ** (t.lowest - t.mantissa_bits) if not t.powers else 2.0**t.lowest
        small = np.concatenate(
            [least * np.arange(1, 8) / 4, 2.0**t.lowest * (1 + steps * 2.0 ** -(t.mantissa_bits + 3))]
        )
        found += [*large, *-large, *small, *-small]
    with np.errstate(all="ignore"):
        return np.resize(np.array(found), (16, 64)).astype(DTYPES[dtype])


def reading_of_cast(seen: Sequence[Answered], dtype: str) -> Reading | None:
    """What a cast does, choice by choice; None where it is none that rounds to a known format.

    Args:
        seen: the calls, of one dtype, and what came.
        dtype: of the data.
    """
    if not (values := _standing([(core,) for core in _cores(dtype)], seen)):
        return _by_chance(seen, dtype)
    every = sum(s.answer[0].size for s in seen)
    values = _least_lost(values, every)
    if not values:
        return None
    fields, left = decided(row[2] for row in values)
    cores, calls, own, lost, _ = values[0]
    witnesses = {name: w for name in fields if name not in left and (w := _witnessed(cores[0], calls, own, name))}
    return Reading(fields, left, witnesses, 1 - lost / every)


_Row = tuple[Sequence[Core], list[_Call], dict[str, tuple[Any, ...]], int, int]


def _standing(some: Sequence[Sequence[Core]], seen: Sequence[Answered]) -> list[_Row]:
    """The cores that give all that their formats hold, with the values of their choices; of several any one may."""
    kept = [cores for cores in some if (calls := _calls(cores[0], seen[:1])) and _agrees(cores, calls, 0)]
    found = [(cores, calls) for cores in kept if (calls := _calls(cores[0], seen)) and _agrees(cores, calls)]
    return [(cores, calls, *_values(cores, calls)) for cores, calls in found]


def _least_lost(values: Sequence[_Row], every: int) -> list[_Row]:
    """Those that leave the fewest numbers; none that leaves many finite ones, or has given few different ones."""
    kept = [row for row in values if not row[4] or (row[4] <= _LOST * every and _is_wide(row[0][0], row[1]))]
    least = min((row[3] for row in kept), default=0)
    return [row for row in kept if row[3] == least]


def _by_chance(seen: Sequence[Answered], dtype: str) -> Reading | None:
    """What rounds equal inputs to one of the two numbers beside them, and not always the same one."""
    again = _again(seen)
    drawn = any(not same(a, b).all() for one, two in again for a, b in zip(one.answer, two.answer, strict=False))
    if not drawn and not _uneven(seen):
        return None
    down = [core for core in _cores(dtype) if core.rounding == "toward-zero"]
    values = _standing([(core, replace(core, rounding="away-from-zero")) for core in down], seen)
    every = sum(s.answer[0].size for s in seen)
    if not (values := _least_lost(values, every)):
        return None
    roundings: tuple[str, ...] = (STOCHASTIC,) if drawn else (BY_PLACE,)
    if not drawn and sum(_inexact(values[0], one.x.reshape(-1)) for one, _ in again) < _LEAST:
        roundings = (STOCHASTIC, BY_PLACE)  # nothing shows that a draw would have shown
    fields, left = decided({**row[2], "rounding": roundings} for row in values)
    said = "the same input has different answers: no fixed choice rounds it"
    return Reading(fields, left, share=1 - values[0][3] / every, notes=(said,))


def _again(seen: Sequence[Answered]) -> list[tuple[Answered, Answered]]:
    """The calls that were made twice."""
    known: dict[bytes, Answered] = {}
    pairs = [(known.setdefault(s.x.tobytes(), s), s) for s in seen]
    return [(one, two) for one, two in pairs if one is not two]


def _inexact(row: _Row, x: Array) -> int:
    """Of how many inputs a draw could show."""
    cores, calls, *_ = row
    target = _TARGET[cores[0].format]
    [call, *_] = [c for c in calls if c.x.tobytes() == x.tobytes()]
    v = call.v[_sorts(target, call)[""]]
    return int((_rounded(v, target, "toward-zero") != _rounded(v, target, "away-from-zero")).sum())


def _witnessed(core: Core, calls: Sequence[_Call], own: Mapping[str, tuple[Any, ...]], name: str) -> Witnessed | None:
    """An input at which another value of a choice gives something else."""
    target = _TARGET[core.format]
    if name in {"format", "gives"}:
        return None
    if name in {"rounding", "through"}:
        for other in (_OF_POWERS if target.powers else _ROUNDINGS) if name == "rounding" else _THROUGH:
            if other == getattr(core, name) or other.endswith("cut off"):
                continue
            changed = replace(core, **{name: other})
            for call in calls:
                at = _sorts(target, call)[""]
                with np.errstate(all="ignore"):
                    v = np.asarray(_THROUGH[changed.through](call.x)).astype(np.float64)[at]
                y = np.copysign(_rounded(v, target, changed.rounding), v)
                if (w := witnessed(call.x[at], call.came[at], y, other)) is not None:
                    return w
        return None
    sort = {"subnormals": "small", "zeros": "small", "underflow": "small"}.get(name, name)
    chosen = {k: v[0] for k, v in own.items()}
    for call in calls:
        at = _sorts(target, call)[sort]
        for names, y in _SORTS[sort](core, call, at):
            others = [k for k, v in names.items() if chosen.get(k) != v]
            if others == [name] and (w := witnessed(call.x[at], call.came[at], y, names[name])) is not None:
                return w
    return None
