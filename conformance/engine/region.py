"""Where in the calls something is done: regions as values, each with its code, its words and the elements in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import comb
from typing import Any

import numpy as np

from halfeven.conformance.codes import region_code
from halfeven.conformance.engine.call import PLAIN, CallShape
from halfeven.reference.blocks import Array

__all__ = ["KINDS", "SHAPES", "SOME", "Facts", "Region", "limit_words", "of_shapes", "words_of"]

_FEW = 4
_MANY = 8  # calls: of fewer all may be made in one way by accident
_LEAST = 3  # calls, for what they have in common to be said where others have it, too
_CHANCE = 1e-3  # that all calls that differ are made in a way in which others are made, too
#: What is said after a region in which other calls agree.
SOME = ", in some calls"
_POWER = 0.5  # the significand of a power of two


@dataclass(frozen=True, eq=False)
class Facts:
    """What decides whether elements are in a region: an entry for each element, or for each call.

    Attributes:
        call: the number of the call that each element is of.
        shapes, ranks, granularities, traits: of each call; the last are names of ``TRAITS``, None where not known.
        place, size, last: of each element its flat index, the call's elements, and the length of its last axis.
        x, scale, zero, lo, hi: of each element, in float64.
        tiny: the smallest normal number of its dtype.
    """

    call: Array
    shapes: Sequence[CallShape]
    ranks: Sequence[int | None]
    granularities: Sequence[str]
    traits: Sequence[Sequence[str] | None]
    place: Array
    size: Array
    last: Array
    x: Array
    scale: Array
    zero: Array
    lo: Array
    hi: Array
    tiny: Array

    def of_calls(self, holds: Sequence[bool]) -> Array:
        """The elements of some calls."""
        return np.array(holds, bool)[self.call]

    @property
    def quotient(self) -> Array:
        """The magnitude of x / scale."""
        with np.errstate(all="ignore"):
            return np.asarray(np.abs(self.x / self.scale))

    @property
    def magnitude(self) -> Array:
        """That of the scale."""
        return np.asarray(np.abs(self.scale))

    @property
    def real(self) -> Array:
        """The magnitude of x."""
        return np.asarray(np.abs(self.x))

    @property
    def group(self) -> Array:
        """How many elements of a row share a parameter, and the whole row where that is not a group."""
        groups = [s.block.partition(" ")[2] if s.block.startswith("group ") else "" for s in self.shapes]
        own = np.array([int(g) if g.isdigit() else 0 for g in groups])[self.call]
        return np.where(own > 0, own, np.maximum(self.last, 1))


@dataclass(frozen=True)
class Region:
    """A kind of region, and what it is of; what a kind means stands in ``KINDS``.

    >>> Region("tail", (8,)).words
    'the last n mod 8 elements'
    >>> Region("tail", (8,)).code
    'HE601'
    """

    kind: str
    of: tuple[Any, ...] = ()

    @property
    def code(self) -> str:
        """The code of something that is done there."""
        return region_code(KINDS[self.kind].level)

    @property
    def words(self) -> str:
        """The region in words, such as ``the last n mod 8 elements``."""
        said = KINDS[self.kind].words
        return said(*self.of) if callable(said) else said.format(*self.of)

    @property
    def outside(self) -> str:
        """What is not in it, in words.

        >>> Region("lanes", (4, 0, 1, 3)).outside
        'elements 2 of every 4'
        """
        match self.kind:
            case "lanes":
                k, *lanes = self.of
                return Region("lanes", (k, *(i for i in range(k) if i not in lanes))).words
            case "zero points":
                return "zero points that are 0"
            case "scales":
                return self.words.replace(">=", "<")
            case "whole" if self.of[0].startswith("without "):
                return self.words.replace("without", "with")
        return f"outside of {self.words.removesuffix(SOME)}"

    @property
    def is_of_calls(self) -> bool:
        """Whether it is made of whole calls."""
        return KINDS[self.kind].is_of_calls

    def mask(self, facts: Facts) -> Array:
        """Which of the elements are in it."""
        return np.asarray(KINDS[self.kind].holds(facts, *self.of))

    def holds(self, shape: CallShape) -> bool:
        """Whether a call that is made so is in it, of a region that ``of_shapes`` found.

        >>> Region("other threads", ("one",)).holds(CallShape(threads="all"))
        True
        """
        match self.kind:
            case "size":
                return bool((shape.size or 0) >= self.of[0])
            case "sizes":
                return shape.size in self.of
            case kind if kind.startswith("other "):
                return getattr(shape, kind.removeprefix("other ")) not in self.of
        return getattr(shape, self.kind.removeprefix("some ")) in self.of

    def open(self, facts: Facts) -> Array:
        """Which elements may as well be in it or not: those beyond the last known outside, before the first inside."""
        if self.kind not in _LIMITS:
            return np.zeros(facts.call.size, bool)
        least, above = self.of
        numbers = getattr(facts, _LIMITS[self.kind])
        with np.errstate(invalid="ignore"):
            return np.asarray((numbers > above) & (numbers < least))

    def others(self, facts: Facts, differing: Array) -> "Region | None":
        """Other calls, where they have words of their own: of other granularities, those in which elements differ."""
        if self.kind != "granularity":
            return None
        seen = [facts.granularities[i] for i in np.unique(facts.call[differing])]
        return Region(self.kind, tuple(dict.fromkeys(g for g in seen if g not in self.of)))

    def within(self, facts: Facts, inside: Array, outside: Array) -> "Region":
        """This region as far as elements that are known to be in it, and others known not to be, decide its limit."""
        if self.kind not in _LIMITS:
            return self
        numbers = getattr(facts, _LIMITS[self.kind])
        with np.errstate(invalid="ignore"):
            least = numbers[inside].min().item() if inside.any() else self.of[0]
            below = numbers[outside & (numbers < least)]
        return Region(self.kind, (least, below.max().item() if below.size else -1))


@dataclass(frozen=True)
class _Kind:
    """A row of the table: the level of its code, its words, and which elements are in it."""

    level: str
    words: str | Callable[..., str]
    holds: Callable[..., Array]
    is_of_calls: bool = False


def _listed(levels: Sequence[Any]) -> str:
    known = sorted(levels, key=lambda level: (str(type(level)), level))
    return ", ".join(map(str, known[:_FEW])) + (", ..." if len(known) > _FEW else "")


def _listing(words: str) -> Callable[..., str]:
    return lambda *of: words.format(_listed(of))


def limit_words(words: str) -> Callable[[int, int], str]:
    """Of a limit k that lies between two numbers seen: ``above`` is the last that is known to be outside."""

    def said(least: int, above: int) -> str:
        low, high = max(above, 0), least - 1
        return words.format("k") + (f", k = {high:,}" if low == high else f", k from {low:,} to {high:,}")

    return said


def _from(of: str) -> Callable[[float, float], str]:
    """Of a limit that is no whole number: the least that is known to be inside, and the last outside."""

    def said(least: float, above: float) -> str:
        ends = [[f"{k:.{digits}g}" for k in (max(above, 0.0), least)] for digits in (6, 9)]
        low, high = ends[0] if ends[0][0] != ends[0][1] else ends[1]
        return f"{of} >= k, k from {low} to {high}"

    return said


def _of_shape(name: str) -> Callable[..., Array]:
    return lambda f, *of: f.of_calls([getattr(s, name) in of for s in f.shapes])


def _else(name: str) -> Callable[..., Array]:
    return lambda f, plain: f.of_calls([getattr(s, name) != plain for s in f.shapes])


def _calls(level: str, words: str | Callable[..., str], holds: Callable[..., Array]) -> _Kind:
    return _Kind(level, words, holds, is_of_calls=True)


#: How a call can be made, by the field of ``CallShape``: what is said of some of its levels.
SHAPES: Mapping[str, str] = {
    "layout": "layout {}",
    "offset": "arrays that begin {} elements past a multiple of 64 bytes",
    "parameters": "parameters {}",
    "block": "blocks: {}",
    "threads": "threads: {}",
    "mode": "mode {}",
    "repeats": "calls made {} times",
    "rank": "rank {}",
    "each": "calls that stand for many: {}",
}

KINDS: Mapping[str, _Kind] = {
    **{name: _calls(name, _listing(words), _of_shape(name)) for name, words in SHAPES.items() if name != "rank"},
    **{
        f"other {name}": _calls(name, f"{words.format('other than {}')}{SOME}", _else(name))
        for name, words in SHAPES.items()
        if name != "rank"
    },
    **{
        f"some {name}": _calls(name, _listing(f"{words}{SOME}"), _of_shape(name))
        for name, words in SHAPES.items()
        if name != "rank"
    },
    "rank": _calls("rank", _listing("rank {}"), lambda f, *of: f.of_calls([r in of for r in f.ranks])),
    "granularity": _calls(
        "block", _listing("parameters per {}"), lambda f, *of: f.of_calls([g in of for g in f.granularities])
    ),
    "sizes": _calls("size", _listing("tensors of {} elements"), lambda f, *of: np.isin(f.size, of)),
    "size": _calls("size", limit_words("tensors of more than {} elements"), lambda f, least, _: f.size >= least),
    "remainder": _calls("size", "tensors of n elements, n no multiple of {}", lambda f, k: f.size % k != 0),
    "unsigned": _calls("dtype", "unsigned grids", lambda f: f.lo >= 0),
    "grids": _calls(
        "dtype",
        lambda *of: ", ".join(map(str, of)),
        lambda f, *of: np.logical_or.reduce([(f.lo == g.qmin) & (f.hi == g.qmax) for g in of]),
    ),
    "codes": _calls("dtype", "grids of {:,} codes or more", lambda f, least: f.hi - f.lo >= least - 1),
    "tail": _Kind("tail", "the last n mod {} elements", lambda f, k: f.place >= f.size - f.size % k),
    "row tail": _Kind(
        "tail",
        "the last n mod {} elements of each row",
        lambda f, k: (f.place % f.last >= f.last - f.last % k) & (f.last < f.size),
    ),
    "end": _Kind("tail", "the last {} of a tensor's elements", lambda f, k: f.place >= f.size - k),
    "last row": _Kind("tail", "the last row", lambda f: (f.place >= f.size - f.last) & (f.last < f.size)),
    "last block": _Kind(
        "block",
        "the last block of each row",
        lambda f: (f.place % f.last // f.group == (f.last - 1) // f.group) & (f.group < f.last),
    ),
    "later blocks": _Kind(
        "block", "all blocks but the first of each row", lambda f: (f.place % f.last >= f.group) & (f.group < f.last)
    ),
    "lanes": _Kind(
        "position",
        lambda k, *lanes: f"elements {_listed(lanes)} of every {k}",
        lambda f, k, *lanes: np.isin(f.place % k, lanes),
    ),
    "from": _Kind("position", limit_words("elements of an index above {}"), lambda f, least, _: f.place >= least),
    "quotient": _Kind("quotient", "|x/s| >= 2^{}", lambda f, power: f.quotient >= 2.0**power),
    "quotients": _Kind("quotient", _from("|x/s|"), lambda f, least, _: f.quotient >= least),
    "scales": _Kind("scale", _from("s"), lambda f, least, _: f.magnitude >= least),
    "reals": _Kind("real", _from("|x|"), lambda f, least, _: f.real >= least),
    "nan": _Kind("nan", "x is NaN", lambda f: np.isnan(f.x)),
    "whole": _calls("whole", "calls {}", lambda f, trait: f.of_calls([trait in (has or ()) for has in f.traits])),
    "infinite": _Kind("infinite", "x is infinite", lambda f: np.isinf(f.x)),
    "negative": _Kind("sign", "x is negative", lambda f: f.x < 0),
    "zero": _Kind("zero", "x is 0", lambda f: f.x == 0),
    "negative zero": _Kind("zero", "x is -0.0", lambda f: (f.x == 0) & np.signbit(f.x)),
    "odd": _Kind("parity", "odd zero points", lambda f: f.zero % 2 == 1),
    "zero points": _Kind("zero point", "zero points other than 0", lambda f: f.zero != 0),
    "least zero point": _Kind("zero point", "the least zero point, qmin", lambda f: (f.zero == f.lo) & (f.lo < 0)),
    "negative zero points": _Kind("zero point", "negative zero points", lambda f: f.zero < 0),
    "subnormal": _Kind("subnormal", "subnormal x", lambda f: (np.abs(f.x) < f.tiny) & (f.x != 0)),
    "subnormal scales": _Kind("scale", "subnormal scales", lambda f: np.abs(f.scale) < f.tiny),
    "one": _Kind("scale", "scales that are 1", lambda f: f.scale == 1),
    "powers": _Kind("scale", "scales that are powers of two", lambda f: np.abs(np.frexp(f.scale)[0]) == _POWER),
}
_LIMITS = {"size": "size", "from": "place", "quotients": "quotient", "scales": "magnitude", "reals": "real"}


def words_of(regions: Sequence[Region]) -> str:
    """Regions that hold together, in words; empty for none.

    >>> words_of([Region("layout", ("transposed",)), Region("odd")])
    'layout transposed: odd zero points'
    """
    return ": ".join(r.words for r in regions)


def of_shapes(bad: Sequence[CallShape], others: Sequence[CallShape], *, alone: bool = False) -> Region | None:
    """What every call that differs has and no other; else what no such call lacks, where that is hardly an accident.

    Args:
        bad: how the calls were made that differ.
        others: and how those that do not.
        alone: whether to name only what no other call has.
    """
    good = [s for s in others if s.size != 0]  # an empty call tells nothing
    if not bad or not good or PLAIN in bad:
        return None
    only = (found for f in fields(CallShape) if (found := _levels(f.name, bad, good)))
    if (found := next(only, None)) is not None or alone:
        return found
    return _by_chance_least(bad, good)


def _by_chance_least(bad: Sequence[CallShape], good: Sequence[CallShape]) -> Region | None:
    """What all calls have that differ, and some others too: that which so many would have least by chance."""
    found: list[tuple[float, Region]] = []
    every = (*bad, *good)
    for f in fields(CallShape):
        known, levels = ({getattr(s, f.name) for s in some} for some in (every, bad))
        if f.default is None or f.default in levels or f.default not in known:
            continue
        others = known - {f.default}
        for region, chosen, ways in (
            (Region(f"some {f.name}", tuple(sorted(levels, key=str))), levels, comb(len(others), len(levels))),
            (Region(f"other {f.name}", (f.default,)), others, 1),
        ):
            share = sum(getattr(s, f.name) in chosen for s in every) / len(every)
            if len(region.of) <= _FEW:  # more are not all said
                found.append((ways * share ** len(bad), region))
    chance, least = min(found, key=lambda pair: pair[0], default=(1.0, None))
    if chance < _CHANCE and len(bad) >= _LEAST:
        return least
    # Few calls have no blocks, but they are other code; a trial makes many.
    tensor = PLAIN.block
    apart = all(s.block != tensor for s in bad) and any(s.block == tensor for s in good)
    return Region("other block", (tensor,)) if apart and len(bad) >= _MANY else None


def _levels(name: str, bad: Sequence[CallShape], good: Sequence[CallShape]) -> Region | None:
    differing = {getattr(s, name) for s in bad}
    exact = {level for s in good if (level := getattr(s, name)) is not None}
    if None in differing or not exact or differing & exact:
        return None
    if name != "size":
        return Region(name, tuple(sorted(differing, key=lambda level: (str(type(level)), level))))
    least, most = min(differing), max(exact)
    return Region("size", (least, most)) if least > most else Region("sizes", tuple(sorted(differing)))
