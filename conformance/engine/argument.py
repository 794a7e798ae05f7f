"""Where a function gives other answers, by an argument: a value, a dtype, a number of dimensions, or what is in it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from halfeven.conformance.codes import region_code
from halfeven.conformance.requirement import Arguments

__all__ = ["Argument", "of_arguments"]

Kind = Literal["value", "dtype", "holds", "rank"]
_ORDER: tuple[Kind, ...] = ("value", "dtype", "holds", "rank")  # what is said first where several are true
_LEAST = 3  # calls on either side: of fewer all may have something in common by accident
_LEVELS = 3  # that are named
_CHANCE = 1e-4  # that all calls that differ have a level by accident, where others that have it agree
_ABSENT, _SOME = "not given", ", in some calls"


@dataclass(frozen=True)
class Argument:
    """The calls whose argument has one of some levels.

    Attributes:
        name: of the argument.
        kind: ``value``; ``dtype`` or ``rank`` of an array; or what it ``holds``, such as NaN.
        levels: any of them.
        is_sure: whether every such call differs, and not only some of them.

    >>> Argument("x", "dtype", ("float16",)).words
    'x of float16'
    >>> Argument("mode", "value", ("symmetric",), is_sure=False).words
    "mode='symmetric', in some calls"
    """

    name: str
    kind: Kind
    levels: tuple[Any, ...]
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
                given = (_ABSENT if v is _ABSENT else repr(v) for v in self.levels)
                said = " or ".join(f"{self.name} {v}" if v is _ABSENT else f"{self.name}={v}" for v in given)
            case "dtype":
                said = f"{self.name} of {listed}"
            case "holds":
                said = f"{listed} in {self.name}"
            case "rank":
                said = f"{self.name} of rank {listed}"
        return said + ("" if self.is_sure else _SOME)

    @property
    def outside(self) -> str:
        """All other calls, in words."""
        return f"outside of {self.words.removesuffix(_SOME)}"

    def has(self, arguments: Arguments) -> bool:
        """Whether a call is one of them."""
        return _facts(arguments).get((self.kind, self.name), _ABSENT) in self.levels


def of_arguments(bad: Sequence[Arguments], good: Sequence[Arguments], *, wide: bool = False) -> Argument | None:
    """What every call of ``bad`` has and none of ``good``; else what few calls have, but all of ``bad``.

    Args:
        bad: the arguments of the calls that differ.
        good: those of the others.
        wide: whether the former are of several checks: what calls of one check have in common tells of the check, so
            only of several is it said what others have, too.

    >>> half, single = {"x": np.zeros(2, np.float16)}, {"x": np.zeros(2, np.float32)}
    >>> of_arguments([half] * 3, [single] * 3).words
    'x of float16'
    >>> of_arguments([half] * 3, [single, single, half]) is None
    True
    """
    if len(bad) < _LEAST or len(good) < _LEAST:
        return None
    differing, agreeing = [_facts(a) for a in bad], [_facts(a) for a in good]
    keys = sorted({k for f in (*differing, *agreeing) for k in f}, key=lambda k: _ORDER.index(k[0]))
    found = [(k, _counted(k, differing), _counted(k, agreeing)) for k in keys]
    for (kind, name), mine, others in found:
        if not mine.keys() & others.keys() and len(mine) <= _LEVELS and min(mine.values()) > 1:
            return Argument(name, kind, tuple(sorted(mine, key=repr)))
    for (kind, name), mine, others in found if wide else ():
        [*levels] = mine
        if len(levels) == 1 and others.total() - others[levels[0]] >= _LEAST:
            share = (mine.total() + others[levels[0]]) / (mine.total() + others.total())
            if share ** mine.total() < _CHANCE:
                return Argument(name, kind, (levels[0],), is_sure=False)
    return None


def _counted(key: tuple[Kind, str], calls: Sequence[Mapping[tuple[Kind, str], Any]]) -> Counter[Any]:
    return Counter(facts.get(key, _ABSENT) for facts in calls)


def _facts(arguments: Arguments) -> dict[tuple[Kind, str], Any]:
    found: dict[tuple[Kind, str], Any] = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray | np.generic):
            found |= {("dtype", name): value.dtype.name, ("rank", name): value.ndim}
            found["holds", name] = _holds(np.asarray(value))
        elif value is None or isinstance(value, bool | int | str):
            found["value", name] = value
    return found


def _holds(array: np.ndarray[Any, Any]) -> str:
    """What is peculiar to the numbers of an array, the first that is true."""
    if not array.size:
        return "no elements"
    if array.dtype.kind in "iub":
        return "only zeros" if not array.any() else "integers"
    with np.errstate(all="ignore"):
        numbers = array.astype(np.float64)
        for said, is_so in (("NaN", np.isnan(numbers).any()), ("infinities", np.isinf(numbers).any())):
            if is_so:
                return said
    return "numbers" if numbers.any() else "only zeros"
