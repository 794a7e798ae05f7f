"""Where a function gives other answers, by an argument: a value, a dtype, a number of dimensions, or what is in it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from halfeven.conformance.codes import region_code
from halfeven.conformance.engine.region import SOME
from halfeven.conformance.requirement import Arguments

__all__ = ["Argument", "of_arguments", "some_arguments"]

Kind = Literal["value", "dtype", "holds", "rank"]
_ORDER: tuple[Kind, ...] = ("value", "dtype", "holds", "rank")  # what is said first where several are true
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
        kind: ``value``; ``dtype`` or ``rank`` of an array; or whether it ``holds`` numbers of a kind.
        levels: any of them.
        what: of what an array holds, such as NaN.
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
        return region_code("argument")

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
        return said + ("" if self.is_sure else SOME)

    @property
    def outside(self) -> str:
        """All other calls, in words."""
        return f"outside of {self.words.removesuffix(SOME)}"

    def has(self, arguments: Arguments) -> bool:
        """Whether a call is one of them."""
        return _facts(arguments).get((self.kind, self.name, self.what), _ABSENT) in self.levels


def of_arguments(bad: Sequence[Arguments], good: Sequence[Arguments]) -> Argument | None:
    """What every call of ``bad`` has and none of ``good``; None where there are few different ones of either.

    >>> halves = [{"x": np.zeros(n, np.float16)} for n in range(1, 5)]
    >>> singles = [{"x": np.zeros(n, np.float32)} for n in range(1, 5)]
    >>> of_arguments(halves, singles).words
    'x of float16'
    >>> of_arguments(halves, [*singles, halves[0]]) is None
    True
    """
    for (kind, name, what), mine, others in _counted(bad, good):
        if not mine.keys() & others.keys() and len(mine) <= _LEVELS and min(mine.values()) > 1:
            return Argument(name, kind, tuple(sorted(mine, key=repr)), what)
    return None


def some_arguments(bad: Sequence[Arguments], good: Sequence[Arguments]) -> Argument | None:
    """What every call of ``bad`` has, and so few of ``good`` that this is hardly an accident; the least likely one."""
    found: list[tuple[float, Argument]] = []
    for (kind, name, what), mine, others in _counted(bad, good):
        level, *more = mine
        if not more and others.total() - others[level] >= _LEAST:
            share = (mine.total() + others[level]) / (mine.total() + others.total())
            found.append((share ** mine.total(), Argument(name, kind, (level,), what, is_sure=False)))
    chance, least = min(found, key=lambda pair: pair[0], default=(1.0, None))
    return least if chance < _CHANCE else None


def _counted(
    bad: Sequence[Arguments], good: Sequence[Arguments]
) -> Iterator[tuple[_Fact, "Counter[Any]", "Counter[Any]"]]:
    """Of each fact how often it has each level, among different calls; of arrays those that all calls have."""
    sides = [{_key(a): _facts(a) for a in side} for side in (bad, good)]
    if min(map(len, sides)) < _LEAST:
        return
    every = [facts for side in sides for facts in side.values()]
    known = sorted({k for facts in every for k in facts}, key=lambda k: (_ORDER.index(k[0]), k))
    for key in known:
        if key[0] == "value" or all(key in facts for facts in every):
            mine, others = (Counter(facts.get(key, _ABSENT) for facts in side.values()) for side in sides)
            yield key, mine, others


def _key(arguments: Arguments) -> str:
    """The same for calls with the same values."""
    return repr([(k, v.tobytes() if isinstance(v, np.ndarray) else v, _facts({k: v})) for k, v in arguments.items()])


def _facts(arguments: Arguments) -> dict[_Fact, Any]:
    found: dict[_Fact, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray | np.generic):
            found |= {("dtype", name, ""): value.dtype.name, ("rank", name, ""): value.ndim}
            found |= {("holds", name, what): is_so for what, is_so in _held(np.asarray(value)).items()}
        else:
            plain = value is None or isinstance(value, bool | int | str)
            found["value", name, ""] = value if plain else f"a {type(value).__name__}"
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
