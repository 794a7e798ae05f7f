"""Where a function gives other answers, by an argument: a value, a dtype, how large it is, or what is in it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from halfeven.conformance.codes import region_code
from halfeven.conformance.engine.region import SOME, limit_words
from halfeven.conformance.requirement import Arguments

__all__ = ["Argument", "of_arguments", "of_sizes", "some_arguments"]

Kind = Literal["value", "dtype", "holds", "rank", "remainder", "total", "either", "length", "size"]
_ORDER: tuple[Kind, ...] = ("value", "dtype", "holds", "rank", "remainder", "total")  # what is said first of several
_LIMITS: dict[Kind, str] = {
    "length": "{} whose rows have more than {{}} elements",
    "size": "{} of more than {{}} elements",
}
_DIVIDED: dict[Kind, str] = {
    "remainder": "whose rows have n elements",
    "total": "of n elements",
    "either": "of n elements, in a row or in all",
}
_OR = " or "  # between divisors that no call tells apart
_DIVISORS = ("2", "4", "8", "16", "32", "64")
_LEAST = 4  # different calls on either side: of fewer all may have something in common by accident
_LEVELS = 3  # that are named
_OPPOSITE = {
    "NaN": "no NaN",
    "infinities": "no infinities",
    "no elements": "elements",
    "only zeros": "numbers other than zero",
}
_CHANCE = 1e-4  # that all calls that differ have a level by accident, where others that have it agree
_Fact = tuple[Kind, str, str]
"""A kind, an argument's name, and of what it holds the word."""


class _Absent:
    """The level of an argument that is not given."""

    def __repr__(self) -> str:
        return "not given"


_ABSENT = _Absent()


@dataclass(frozen=True)
class Argument:
    """The calls whose argument has one of some levels.

    Attributes:
        name: of the argument.
        kind: ``value``; ``dtype`` or ``rank`` of an array; whether it ``holds`` numbers of a kind; whether there is a
            ``remainder`` of the length of its rows, of its ``total`` of elements, or of ``either``, which is not known;
            a limit of the ``length`` of its rows, or of its ``size``.
        levels: any of them; of a limit the least number above it, and the greatest that is known to be below.
        what: of what an array holds, such as NaN; of a remainder the divisor, or the divisors that it may be.
        is_sure: whether every such call differs, and not only some of them.

    >>> Argument("x", "dtype", ("float16",)).words
    'x of float16'
    >>> Argument("mode", "value", ("symmetric",), is_sure=False).words
    "mode='symmetric', in some calls"
    """

    name: str
    kind: Kind
    levels: tuple[Any, ...]
    what: str = ""
    is_sure: bool = True

    @property
    def code(self) -> str:
        """The code of something that is done there."""
        return region_code("size" if self.kind in {*_LIMITS, *_DIVIDED} else "argument")

    @property
    def words(self) -> str:
        """Such calls, in words."""
        listed = " or ".join(map(str, self.levels))
        match self.kind:
            case "value":
                said = " or ".join(f"{self.name} {v!r}" if v is _ABSENT else f"{self.name}={v!r}" for v in self.levels)
            case "dtype":
                said = f"{self.name} of {listed}"
            case "holds":
                said = f"{self.what if self.levels[0] else _OPPOSITE[self.what]} in {self.name}"
            case "rank":
                said = f"{self.name} of rank {listed}"
            case "remainder" | "total" | "either":
                which = "no multiple" if self.levels[0] else "a multiple"
                said = f"{self.name} {_DIVIDED[self.kind]}, n {which} of {self.what}"
            case "length" | "size":
                said = limit_words(_LIMITS[self.kind].format(self.name))(*self.levels)
        return said + ("" if self.is_sure else SOME)

    @property
    def outside(self) -> str:
        """All other calls, in words."""
        return f"outside of {self.words.removesuffix(SOME)}"

    def has(self, arguments: Arguments) -> bool:
        """Whether a call is one of them."""
        if self.kind in _LIMITS:
            return bool(_sizes(arguments).get((self.kind, self.name), 0) >= self.levels[0])
        return self._of_each(arguments) == {True}

    def is_open(self, arguments: Arguments) -> bool:
        """Whether it is not known if a call is one of them: a limit is between two numbers, a divisor one of some."""
        if self.kind in _LIMITS:
            least, most = self.levels
            return bool(most < _sizes(arguments).get((self.kind, self.name), 0) < least)
        return len(self._of_each(arguments)) > 1

    def _of_each(self, arguments: Arguments) -> set[bool]:
        """Whether a call is one of them, by each divisor of what it may divide; else there is one."""
        facts = _facts(arguments)
        kinds: tuple[Kind, ...] = ("remainder", "total") if self.kind == "either" else (self.kind,)
        keys = ((kind, self.name, what) for kind in kinds for what in self.what.split(_OR))
        return {facts.get(key, _ABSENT) in self.levels for key in keys}


def of_arguments(bad: Sequence[Arguments], good: Sequence[Arguments]) -> Argument | None:
    """What every call of ``bad`` has and none of ``good``; None where there are few different ones of either.

    >>> halves = [{"x": np.zeros(n, np.float16)} for n in range(1, 5)]
    >>> singles = [{"x": np.zeros(n, np.float32)} for n in range(1, 5)]
    >>> of_arguments(halves, singles).words
    'x of float16'
    >>> of_arguments(halves, [*singles, halves[0]]) is None
    True
    """
    found = [
        Argument(name, kind, tuple(sorted(mine, key=repr)), what)
        for (kind, name, what), mine, others in _counted(bad, good)
        if not mine.keys() & others.keys() and len(mine) <= _LEVELS and min(mine.values()) > 1
    ]
    return _joined(found)


def of_sizes(bad: Sequence[Arguments], good: Sequence[Arguments]) -> Argument | None:
    """The limit above which every call of ``bad`` is and none of ``good``.

    >>> few, many = ([{"x": np.zeros(n)} for n in sizes] for sizes in ((1, 3, 8, 31), (32, 33, 64, 99)))
    >>> of_sizes(many, few).words
    'x whose rows have more than k elements, k = 31'
    """
    sides = [{_key(a): _sizes(a) for a in side}.values() for side in (bad, good)]
    if min(map(len, sides)) < _LEAST:
        return None
    known = set.intersection(*({*sizes} for side in sides for sizes in side))
    for kind, name in sorted(known):
        least, most = (f(sizes[kind, name] for sizes in side) for f, side in zip((min, max), sides, strict=True))
        if least > most:
            return Argument(name, kind, (least, most))
    return None


def some_arguments(bad: Sequence[Arguments], good: Sequence[Arguments]) -> Argument | None:
    """What every call of ``bad`` has, and so few of ``good`` that this is hardly an accident; the least likely one."""
    found: list[tuple[float, Argument]] = []
    for (kind, name, what), mine, others in _counted(bad, good):
        level, *more = mine
        if not more and others.total() - others[level] >= _LEAST:
            share = (mine.total() + others[level]) / (mine.total() + others.total())
            found.append((share ** mine.total(), Argument(name, kind, (level,), what, is_sure=False)))
    least = min((chance for chance, _ in found), default=1.0)
    return _joined([a for chance, a in found if chance == least]) if least < _CHANCE else None


def _joined(found: Sequence[Argument]) -> Argument | None:
    """The first, with all divisors that are not told apart, of whatever they may divide."""
    if not found or found[0].kind not in _DIVIDED:
        return found[0] if found else None
    first = found[0]
    alike = [a for a in found if (a.name, a.levels) == (first.name, first.levels) and a.kind in _DIVIDED]
    known = _OR.join(sorted({a.what for a in alike}, key=int))
    return replace(first, what=known, kind=first.kind if len({a.kind for a in alike}) == 1 else "either")


def _counted(
    bad: Sequence[Arguments], good: Sequence[Arguments]
) -> Iterator[tuple[_Fact, "Counter[Any]", "Counter[Any]"]]:
    """Of each fact how often it has each level, among different calls; of arrays those that all calls have.

    A remainder is not asked of calls that agree and have no rows, or empty ones; that of all elements only where there
    are several rows.
    """
    sides = [{_key(a): _facts(a) for a in side} for side in (bad, good)]
    if min(map(len, sides)) < _LEAST:
        return
    every = [facts for side in sides for facts in side.values()]
    known = sorted({k for facts in every for k in facts}, key=lambda k: (_ORDER.index(k[0]), k))
    for key in known:
        one, other = (list(side.values()) for side in sides)
        other = [facts for facts in other if key in facts or key[0] not in _DIVIDED]
        if key[0] == "total" and all(f.get(("rank", key[1], ""), 1) < 2 for f in (*one, *other)):  # noqa: PLR2004
            continue
        if len(other) >= _LEAST and (key[0] == "value" or all(key in facts for facts in (*one, *other))):
            mine, others = (Counter(facts.get(key, _ABSENT) for facts in side) for side in (one, other))
            yield key, mine, others


def _key(arguments: Arguments) -> str:
    """The same for calls with the same values."""
    return repr([(k, v.tobytes() if isinstance(v, np.ndarray) else v, _facts({k: v})) for k, v in arguments.items()])


def _facts(arguments: Arguments) -> dict[_Fact, Any]:
    found: dict[_Fact, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray | np.generic):
            found |= {("dtype", name, ""): value.dtype.name, ("rank", name, ""): value.ndim}
            row = (0, *value.shape)[-1] if value.size else 0  # an empty call tells nothing of the rest
            found |= {("remainder", name, k): bool(row % int(k)) for k in _DIVISORS if row}
            found |= {("total", name, k): bool(value.size % int(k)) for k in _DIVISORS if row}
            found |= {("holds", name, what): is_so for what, is_so in _held(np.asarray(value)).items()}
        else:
            plain = value is None or isinstance(value, bool | int | str)
            found["value", name, ""] = value if plain else f"a {type(value).__name__}"
    return found


def _sizes(arguments: Arguments) -> dict[tuple[Kind, str], int]:
    arrays = ((name, value) for name, value in arguments.items() if isinstance(value, np.ndarray) and value.ndim)
    found: dict[tuple[Kind, str], int] = {}
    for name, a in arrays:
        found |= {("length", name): a.shape[-1], ("size", name): a.size}
    return found


def _held(array: np.ndarray[Any, Any]) -> dict[str, bool]:
    """What is peculiar to the numbers of an array, and whether it is so."""
    if array.dtype.kind in "iub":
        return {"no elements": not array.size, "only zeros": not array.any()}
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):  # strings, objects
        return {}
    return {
        "NaN": bool(np.isnan(numbers).any()),
        "infinities": bool(np.isinf(numbers).any()),
        "no elements": not array.size,
        "only zeros": not numbers.any(),
    }
