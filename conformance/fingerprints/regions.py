"""What is done in one region and what elsewhere, where no one model gives every answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np

from halfeven.conformance.configuration import Case, Configuration
from halfeven.conformance.engine.explain import Explanation, Part, explain
from halfeven.conformance.engine.fitting.elements import Observed
from halfeven.conformance.engine.region import KINDS
from halfeven.conformance.fingerprints.models import FIELDS, of_model
from halfeven.conformance.fingerprints.result import UNDECIDED
from halfeven.conformance.fingerprints.search import Seen
from halfeven.conformance.fingerprints.subject import differ
from halfeven.reference.blocks import Array
from halfeven.reference.model import EvaluationModel
from halfeven.reference.systems import PROFILES

__all__ = ["Regional", "explained", "regional"]

_TEXTBOOK = PROFILES["onnx"]
_UNKNOWN = "what no known model does"
_CODES = 8  # that a model gives outside a region in which none is known: with fewer some model gives anything
_SHARE = 0.25  # of all answers, those that it gives there at least
_OF_PLACES = frozenset({"tail", "block", "position"})
_BITS = 10.0  # of evidence for a region of calls: chance splits them so once in 2^10


@dataclass(frozen=True)
class Regional:
    """What is told of an implementation that does not do the same everywhere.

    Attributes:
        fields: each choice; one that depends on the region says so.
        alternatives: of a choice without one value those that remain.
        rest: the model of what is in no region.
        words: what it does, in words.
        where: the region, in words.
    """

    fields: Mapping[str, Any]
    alternatives: Mapping[str, tuple[Any, ...]]
    rest: EvaluationModel
    words: str
    where: str


def explained(seen: Sequence[Seen]) -> Explanation | None:
    """One explanation for all answers."""
    return explain(_TEXTBOOK, [_observed(s) for s in seen])


def regional(found: Explanation | None, seen: Sequence[Seen], *, calls: bool = True) -> Regional | None:
    """Each choice in the region and elsewhere; None where the explanation has no two parts.

    Without ``calls`` the same was answered alike at all places and in all calls: no place and no size is a region then,
    whatever it splits. A choice that the region does not decide is taken to be made as elsewhere.
    """
    if found is None or len(found.parts) != 2 or found.parts[0].model is None:  # noqa: PLR2004 - a region, and the rest
        return None
    rest, inside = found.parts
    if not calls and any(r.is_of_calls or KINDS[r.kind].level in _OF_PLACES for r in inside.where):
        return None
    assert rest.model is not None, "asked before"
    if inside.model is None and not _is_seen(rest, inside, seen):
        return None
    where, fields, alternatives = inside.place, dict[str, Any](), dict[str, tuple[Any, ...]]()
    for name in FIELDS[seen[0].given.asked.operation]:
        known = _values(rest, name, seen)
        there = () if inside.model is None else _values(inside, name, seen)
        if len(known) > 1:
            alternatives[name] = known
        own = known[0] if len(known) == 1 else UNDECIDED
        if not there:
            fields[name] = f"depends on the region ({where}): there {_UNKNOWN}, else {own}"
        elif set(known) & set(there):
            fields[name] = own
        else:
            one, other = (" or ".join(map(str, v)) for v in (known, there))
            fields[name] = f"depends on the region ({where}): there {other}, else {one}"
            alternatives.pop(name, None)
    return Regional(fields, alternatives, rest.model, rest.words, where)


def _is_seen(rest: Part, inside: Part, seen: Sequence[Seen]) -> bool:
    """Whether enough was seen of the rest to believe in a region of which nothing is known."""
    assert rest.mask is not None, "a part with a model"
    codes = np.unique(np.concatenate([s.value.astype(np.float64) for s in seen])[rest.mask])
    grid = seen[0].given.asked.grid
    if rest.mask.mean() < _SHARE or codes.size < min(_CODES, grid.num_steps):
        return False
    if not inside.where or not inside.where[0].is_of_calls:
        return True
    ends = np.cumsum([s.value.size for s in seen])[:-1]
    outside = sum(bool(part.any()) for part in np.split(rest.mask, ends))
    return float(np.log2(comb(len(seen), outside))) >= _BITS


def _values(part: Part, name: str, seen: Sequence[Seen]) -> tuple[Any, ...]:
    """The values of a choice with which, all others as they stand, a part still gives its answers."""
    words: Any = EvaluationModel.choices()
    assert part.model is not None, "asked before"
    model, own = part.model, getattr(part.model, name)
    others = (v for v in words[name] if v != own)
    return (own, *(v for v in others if _gives(replace(model, **{name: v}), part, seen)))


def _gives(model: EvaluationModel, part: Part, seen: Sequence[Seen]) -> bool:
    assert part.mask is not None, "a part with a model"
    begin = 0
    for s in seen:
        mask = part.mask[begin : begin + s.value.size]
        begin += s.value.size
        if mask.any() and differ(of_model(model, s.at(np.flatnonzero(mask)).given), s.value[mask]).any():
            return False
    return True


def _observed(seen: Seen) -> Observed:
    g, n = seen.given, seen.value.size
    c = Configuration(g.asked.operation, g.asked.dtype.name, g.asked.grid, (n,))
    place: Array = np.arange(n)
    last = 8 if seen.shape.rank == 2 else n  # noqa: PLR2004 - dimensions
    case = Case(c, g.x, g.scale, np.asarray(g.zero, np.int32))
    return Observed(
        case, seen.value, shape=replace(seen.shape, rank=seen.shape.rank or 1), place=place, size=n, last=last
    )
