"""What is done in one region and what elsewhere, where no one model gives every answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, log2
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
_APART = frozenset({"whole", "zero point", "parity", "scale"})
_FEW = 3  # inputs that tell, in calls of a region: by fewer, these may be of any other
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


def regional(
    found: Explanation | None, seen: Sequence[Seen], *, apart: bool = False, calls: bool = True
) -> Regional | None:
    """Each choice in the region and elsewhere; None where the explanation has no two parts, or too little was seen.

    Without ``calls`` the same was answered alike at all places and in all calls: no place and no size is a region then,
    whatever it splits. With ``apart`` one model gives all but some calls, of other parameters or as a whole: then these
    are a region. A choice that the region does not decide is taken to be made as elsewhere.
    """
    if found is None or len(found.parts) != 2 or found.parts[0].model is None:  # noqa: PLR2004 - a region, and the rest
        return None
    rest, inside = found.parts
    assert rest.model is not None, "asked before"
    if not (_may_be(inside, apart=apart, calls=calls) and _is_seen(rest, inside, seen, apart=apart)):
        return None
    where, fields, alternatives = inside.place, dict[str, Any](), dict[str, tuple[Any, ...]]()
    open_ = {} if inside.model is None else _open(rest.model, inside, seen)
    for name in FIELDS[seen[0].given.asked.operation]:
        known = _values(rest, name, seen)
        there = () if inside.model is None else _values(inside, name, seen)
        if len(known) > 1:
            alternatives[name] = known
        own = known[0] if len(known) == 1 else UNDECIDED
        if name in open_:
            fields[name], alternatives[name] = UNDECIDED, tuple(dict.fromkeys((*known, *open_[name])))
        elif not there:
            fields[name] = f"depends on the region ({where}): there {_UNKNOWN}, else {own}"
        elif set(known) & set(there):
            fields[name] = own
        else:
            one, other = (" or ".join(map(str, v)) for v in (known, there))
            fields[name] = f"depends on the region ({where}): there {other}, else {one}"
            alternatives.pop(name, None)
    return Regional(fields, alternatives, rest.model, rest.words, where)


def _may_be(inside: Part, *, apart: bool, calls: bool) -> bool:
    """Whether anything like the region was asked of it."""
    levels = {KINDS[r.kind].level for r in inside.where}
    if apart:
        return levels <= _APART
    return calls or not (levels & _OF_PLACES or any(r.is_of_calls for r in inside.where))


def _is_seen(rest: Part, inside: Part, seen: Sequence[Seen], *, apart: bool) -> bool:
    """Whether enough was seen to believe in a region; of one in which nothing is known, enough of the rest."""
    assert rest.mask is not None, "a part with a model"
    of_calls = any(r.is_of_calls for r in inside.where)
    if inside.model is not None:
        return not of_calls or _telling(rest, inside, seen) >= _FEW
    if apart:
        return False
    codes = np.unique(np.concatenate([s.value.astype(np.float64) for s in seen])[rest.mask])
    grid = seen[0].given.asked.grid
    if rest.mask.mean() < _SHARE or codes.size < min(_CODES, grid.num_steps):
        return False
    if not of_calls:
        return True
    ends = np.cumsum([s.value.size for s in seen])[:-1]
    outside = sum(bool(part.any()) for part in np.split(rest.mask, ends))
    return log2(comb(len(seen), outside)) >= _BITS


def _open(rest: EvaluationModel, inside: Part, seen: Sequence[Seen]) -> dict[str, tuple[Any, ...]]:
    """The choices, with their values, of which one may be made otherwise in the region in place of another one."""
    words: Any = EvaluationModel.choices()
    assert inside.model is not None, "asked before"
    own = inside.model
    found: dict[str, dict[Any, None]] = {}
    changed = [name for name in FIELDS[seen[0].given.asked.operation] if getattr(own, name) != getattr(rest, name)]
    for name in changed:
        as_elsewhere = replace(own, **{name: getattr(rest, name)})
        for other in FIELDS[seen[0].given.asked.operation]:
            for value in words[other] if other not in changed else ():
                if value != getattr(own, other) and _gives(replace(as_elsewhere, **{other: value}), inside, seen):
                    found.setdefault(name, {})[getattr(own, name)] = None
                    found.setdefault(other, {})[value] = None
    return {name: tuple(values) for name, values in found.items()}


def _telling(rest: Part, inside: Part, seen: Sequence[Seen]) -> int:
    """How many inputs of a region, each once in a call, are not answered as elsewhere."""
    assert inside.mask is not None, "a part with a model"
    assert rest.model is not None, "asked before"
    ends = np.cumsum([s.value.size for s in seen])[:-1]
    return sum(
        len(np.unique(s.given.x[mask & differ(of_model(rest.model, s.given), s.value)]))
        for s, mask in zip(seen, np.split(inside.mask, ends), strict=True)
    )


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
    shape = replace(seen.shape, rank=seen.shape.rank or 1)
    return Observed(case, seen.value, shape=shape, place=place, size=n, last=last, traits=seen.whole)
