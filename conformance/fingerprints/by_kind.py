"""The fingerprint of a cast, or of what chooses scales, with no formula named.

The answers are held against all known formulas, and against a model of what people write plainly, choice by choice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.engine.call import Call
from halfeven.conformance.engine.memory import plain
from halfeven.conformance.fingerprints.asking import Asking
from halfeven.conformance.fingerprints.casting import ends, reading_of_cast
from halfeven.conformance.fingerprints.formulas import PROVED, program
from halfeven.conformance.fingerprints.kinds import Candidate, candidates, matches, numbers_of, same
from halfeven.conformance.fingerprints.reading import Answered, Reading
from halfeven.conformance.fingerprints.result import INDISTINGUISHABLE, UNDECIDED, Fingerprint, Nearest, Witnessed
from halfeven.conformance.fingerprints.scaled import reading_of_scale, splitting_of_scale
from halfeven.conformance.fingerprints.subject import differ
from halfeven.conformance.fingerprints.telling import SHAPE, data
from halfeven.conformance.fingerprints.units import probes
from halfeven.conformance.inputs.nans import nans
from halfeven.reference.blocks import Array

__all__ = ["fingerprint_of_kind"]

_FIRST = {"cast": 12, "scale": 4, "block scale": 4}  # calls that are made of whatever remains: each sort of data
_DRAWS = 60  # that are looked at in all
_QUIET = 12  # draws, one after the other, that tell nothing apart
_SILENT = 3  # calls without an answer, after which no more are made
_NEAREST = 8  # candidates whose neighbours are tried where none gives all
_SHARED = 4  # calls by which they are ranked
_SPLITS = 8  # calls that tell plain ways to make scales apart
_LITTLE = 0.5  # of all numbers, that a known formula gives by chance
_STEPS = 2  # choices that are changed

_READINGS: Mapping[str, Callable[[Sequence[Answered], str], Reading | None]] = {
    "cast": reading_of_cast,
    "scale": reading_of_scale,
    "block scale": reading_of_scale,
}


class _Search:
    def __init__(self, kind: str, asking: Asking, dtype: str) -> None:
        self.kind, self.asking, self.dtype = kind, asking, DTYPES[dtype]
        self.seen: list[Answered] = []
        self.turn = 0

    def ask(self, x: Array) -> Answered | None:
        """What comes of data; None where it is no number."""
        answer = next(iter(self.asking.answers([Call(self.kind, (plain(x),), reason="splits what remains")])), None)
        if answer is None or answer.kind != "returned":
            return None
        if not (numbers := numbers_of(answer.value)):
            self.asking.note(f"returned {type(answer.value).__name__} where an array of numbers is expected")
            return None
        self.seen.append(Answered(x, numbers))
        return self.seen[-1]

    def first(self) -> None:
        """The first calls."""
        while self.turn < _FIRST[self.kind]:
            self.ask(data(self.kind, self.turn, self.dtype) if self.turn else _data_of(self.kind, self.dtype.name))
            self.turn += 1
            if self.asking.spent or (not self.seen and self.turn >= _SILENT):
                return

    def agreeing(self, some: Sequence[Candidate]) -> list[Candidate]:
        """Those that give every answer; the first call, which is always the same, is computed once for all."""
        first = _first(self.kind, self.dtype.name) if self.seen[0].x is _data_of(self.kind, self.dtype.name) else {}
        found = [c for c in some if c not in first or matches(first[c], self.seen[0].answer) == 1]
        return [c for c in found if all(_share(s, c) == 1 for s in self.seen)]

    def split(self, some: list[Candidate]) -> list[Candidate]:
        """Ask with data that tell some candidates apart, until many draws tell nothing; those that remain."""
        quiet = 0
        while len(some) > 1 and quiet < _QUIET and self.turn < _DRAWS and not self.asking.spent:
            x = data(self.kind, self.turn, self.dtype)
            self.turn += 1
            if len({_key(c.answer(x)) for c in some}) == 1:
                quiet += 1
                continue
            seen = self.ask(x)
            kept = [] if seen is None else [c for c in some if _share(seen, c) == 1]
            if seen is not None and not kept:
                return []
            quiet = quiet + 1 if seen is None or len(kept) == len(some) else 0
            some = kept or some
        return some

    def nearest(self, some: Sequence[Candidate]) -> list[Candidate]:
        """Of these and their neighbours all that give every answer, or the one that gives most."""
        share = partial(self.share, most=_SHARED)
        best = sorted(some, key=share, reverse=True)[:_NEAREST]
        for _ in range(_STEPS):
            tried = [*best, *(n for c in best for n in c.near())]
            if found := self.agreeing(tried):
                return found
            best = sorted(tried, key=share, reverse=True)[:_NEAREST]
        return best[:1]

    def share(self, candidate: Candidate, most: int | None = None) -> float:
        """Of all numbers those that a candidate gives; of those of the first calls alone."""
        seen = self.seen[:most]
        every = [sum(a.size for a in s.answer) for s in seen]
        return sum(n * _share(s, candidate) for n, s in zip(every, seen, strict=True)) / sum(every)


@cache
def _data_of(kind: str, dtype: str) -> Array:
    """The data of the first call."""
    return data(kind, 0, DTYPES[dtype])


@cache
def _first(kind: str, dtype: str) -> dict[Candidate, tuple[Array, ...]]:
    """What each candidate gives for them."""
    x = _data_of(kind, dtype)
    return {c: c.answer(x) for c in candidates(kind)}


def _share(seen: Answered, candidate: Candidate) -> float:
    """Of the numbers of a call those that a candidate gives."""
    return matches(candidate.answer(seen.x), seen.answer)


def fingerprint_of_kind(kind: str, asking: Asking, name: str, dtype: str) -> Fingerprint:
    """Which of all known formulas of a kind, with which settings and choices, give what an implementation answers.

    Args:
        kind: one of ``KINDS``.
        asking: what answers.
        name: of the implementation.
        dtype: of the data.
    """
    search = _Search(kind, asking, dtype)
    search.first()
    if not search.seen:
        return Fingerprint(name, f"{kind}, {dtype}", {"formula": UNDECIDED}, calls=asking.calls, refused=asking.notes())
    found, known = _found(search, name)
    return _with_every_nan(search, found, known) if kind == "cast" else found


def _found(search: _Search, name: str) -> tuple[Fingerprint, Sequence[Candidate]]:
    """What is told, and the known formulas that give every answer."""
    asking, kind, dtype = search.asking, search.kind, search.dtype.name
    # A draw shows in a call that is made again: the last, of which most inputs are between two numbers.
    for x in (ends(dtype), search.seen[-1].x) if kind == "cast" else probes(dtype):
        if not asking.spent:
            search.ask(x)
    for turn in range(_SPLITS if kind != "cast" else 0):
        told = None if asking.spent else splitting_of_scale(search.seen, dtype, turn)
        if told is None:
            break
        search.ask(told)
    known = search.split(search.agreeing(candidates(kind)))
    found = _plain(search, dtype)
    if found is not None and not known and found.share == 1:
        return _plainly(search, found, name), known
    alike = known or search.nearest(candidates(kind))
    near = search.agreeing(list(alike[0].near())) if search.share(alike[0]) == 1 else []
    if near:
        alike = search.split([*alike, *near])
        known = [c for c in known if c in alike]
    alike = alike or search.nearest(candidates(kind))
    if near and found is not None:
        found = _plain(search, dtype)
    documented = _told(search, alike, known, name)
    if found is not None and documented.nearest is not None and _tells_more(found, documented.nearest.share):
        return _plainly(search, found, name), known
    return _both(documented, found), known


def _tells_more(found: Reading, share: float) -> bool:
    """Whether a plain function tells more than the nearest known formula: of how scales are made, beside odd codes."""
    decides = any(value != UNDECIDED for value in found.fields.values())
    return found.share >= share < 1 or (decides and share < _LITTLE)


def _with_every_nan(search: _Search, told: Fingerprint, known: Sequence[Candidate]) -> Fingerprint:
    """NaN of other bits too: what is made of the usual one may not be made of all."""
    x = np.resize(nans(search.dtype), SHAPE)
    seen = None if search.asking.spent else search.ask(x)
    if seen is None:
        return told
    agreeing = {c.formula.id for c in known if _share(seen, c) == 1}
    told = replace(told, profiles=tuple(p for p in told.profiles if p in agreeing), calls=search.asking.calls)
    given = seen.answer[0].reshape(-1)
    odd = np.zeros(0, int) if given.size != x.size else np.flatnonzero(differ(given, given[:1]))
    if not odd.size:
        return told
    bits = x.view(f"u{x.dtype.itemsize}").reshape(-1)
    said = ", ".join(f"{int(bits[i]):#x} gives {float(given[i])!r}" for i in (0, odd[0]))
    fields = {**told.fields, **({"nan": "depends on its bits"} if "nan" in told.fields else {})}
    left = {name: values for name, values in told.alternatives.items() if name != "nan"}
    note = f"not every NaN is answered alike: {said}"
    return replace(told, fields=fields, alternatives=left, refused=(*told.refused, note))


def _plain(search: _Search, dtype: str) -> Reading | None:
    """What the model of plain functions of the kind has found so far."""
    return _READINGS[search.kind](search.seen, dtype)


def _plainly(search: _Search, found: Reading, name: str) -> Fingerprint:
    """What is told where a plain function gives all answers and no known formula does, or where none gives more."""
    return Fingerprint(
        name=name,
        about=f"{search.kind}, {search.dtype.name}",
        fields=found.fields,
        alternatives=found.alternatives,
        witnesses=found.witnesses,
        proofs=found.proofs,
        nearest=Nearest(found.words, found.share),
        calls=search.asking.calls,
        refused=(*search.asking.notes(), *found.notes),
    )


def _both(documented: Fingerprint, found: Reading | None) -> Fingerprint:
    """What known formulas tell, and first what is told plainly.

    A field of both is the plain one, and that of the formula is called ``formula: field``, unless they agree.
    """
    if found is None or found.share < 1 or not documented.explained:
        return documented
    family = (documented.nearest.name if documented.nearest else "").partition("@")[0]
    clash = {n: f"{family}: {n}" for n in found.fields if n in documented.fields}
    gone = {n for n, other in clash.items() if other in documented.fields or documented.fields[n] == found.fields[n]}

    def theirs(some: Mapping[str, Any]) -> dict[str, Any]:
        return {clash.get(n, n): value for n, value in some.items() if n not in gone}

    fields = {"formula": documented.fields["formula"], **found.fields}
    return replace(
        documented,
        fields={**fields, **{n: v for n, v in theirs(documented.fields).items() if n not in fields}},
        alternatives={**theirs(documented.alternatives), **found.alternatives},
        witnesses={**theirs(documented.witnesses), **found.witnesses},
        proofs={**theirs(documented.proofs), **found.proofs},
        refused=(*documented.refused, *found.notes),
    )


def _told(search: _Search, alike: Sequence[Candidate], known: Sequence[Candidate], name: str) -> Fingerprint:
    """What all that are alike have in common; a field that only one of several formulas has is that one's.

    A setting and a choice of one name are one field, but for a formula that has both.
    """
    own, about = alike[0], f"{search.kind}, {search.dtype.name}"
    fields: dict[str, Any] = {}
    left: dict[str, tuple[Any, ...]] = {}
    proofs: dict[str, str] = {}
    share = search.share(own)
    families = tuple(dict.fromkeys(c.family for c in alike))
    fields["formula"] = own.family if len(families) == 1 and share == 1 else UNDECIDED
    if len(families) > 1:
        left["formula"] = families
    for field, value, of in _fields(own):
        others = [c for c in alike if (its := of(c)) and str(value) not in its]
        fields[field] = value if share == 1 and not others else UNDECIDED
        if others:
            left[field] = tuple(dict.fromkeys([str(value), *(v for c in others for v in of(c))]))
            if field not in own.settings and _one_program(own, others):
                fields[field], proofs[field] = INDISTINGUISHABLE, PROVED
    words = own.formula.behaviour.against(own.point) if own.formula.behaviour is not None and own.point else ""
    said = ", ".join(f"{k}={v}" for k, v in own.settings.items())
    return Fingerprint(
        name=name,
        about=f"{about}, as {own.formula.id}",
        fields=fields,
        alternatives=left,
        witnesses={n: w for n, w in _witnesses(search, own) if fields.get(n) not in {UNDECIDED, INDISTINGUISHABLE}},
        proofs=proofs,
        profiles=tuple(dict.fromkeys(c.formula.id for c in known)),
        nearest=Nearest("; ".join(filter(None, (said, words))) or "as the document says", share, own.formula.id),
        calls=search.asking.calls,
        refused=search.asking.notes(),
    )


def _fields(own: Candidate) -> Iterator[tuple[str, Any, Callable[[Candidate], tuple[str, ...]]]]:
    """Of each setting and choice the name of its field, its value, and what any candidate has of that field."""

    def either(c: Candidate, key: str) -> tuple[str, ...]:
        return tuple(str(known[key]) for known in (c.settings, c.chosen) if key in known)

    def chosen(c: Candidate, key: str) -> tuple[str, ...]:
        return (str(c.chosen[key]),) if c.family == own.family and key in c.chosen else ()

    for key, value in own.settings.items():
        yield key, value, partial(either, key=key)
    for key, value in own.chosen.items():
        both = key in own.settings
        yield (f"{own.family}: {key}" if both else key), value, partial(chosen if both else either, key=key)


def _one_program(own: Candidate, others: Sequence[Candidate]) -> bool:
    assert own.point is not None, "it has choices"
    same_as = program(own.family, own.point)
    return all(
        c.family == own.family and c.point is not None and program(own.family, c.point) == same_as for c in others
    )


def _witnesses(search: _Search, own: Candidate) -> Iterator[tuple[str, Witnessed]]:
    """Of each choice and setting that is decided a number that another value gives otherwise."""
    done: set[str] = set()
    others = [(c, k) for c in own.near() for k in (own.point.changes(c.point) if own.point and c.point else ())]
    for c in candidates(search.kind):
        if c.formula is own.formula and c.settings.keys() == own.settings.keys():
            changed = [k for k in own.settings if c.settings[k] != own.settings[k]]
            others += [(c, k) for k in changed[:1] if len(changed) == 1]
    for c, key in others:
        if key not in done and (found := _witnessed(search.seen, own, c, key)) is not None:
            done.add(key)
            yield key, found


def _witnessed(seen: Sequence[Answered], own: Candidate, other: Candidate, key: str) -> Witnessed | None:
    value = other.settings.get(key, getattr(other.point, key, ""))
    for turn, s in enumerate(seen):
        for a in s.answer:
            for one, instead in zip(own.answer(s.x), other.answer(s.x), strict=False):
                if a.size == one.size == instead.size and same(a, one).all() and not same(a, instead).all():
                    i = int(np.flatnonzero(~same(a, instead))[0])
                    x = f"x {float(s.x.reshape(-1)[i])!r}" if a.size == s.x.size else f"number {i} of call {turn}"
                    return Witnessed(x, f"{float(a[i])!r}", f"{float(instead[i])!r}", str(value))
    return None


def _key(answer: tuple[Array, ...]) -> tuple[bytes, ...]:
    return tuple(np.where(np.isnan(a), np.nan, a).tobytes() for a in answer)
