"""Holding the answers of a documented function to a property: no document is asked what the single value is.

All of the formula's own calls are judged, those about which its document is silent too, and what was measured most of
all. Where the document's own formula breaks the property in a call that the document speaks of, the document wins.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from halfeven.conformance.engine.call import PLAIN, Answer, Call, breaches, sent
from halfeven.conformance.engine.evidence import Ended, Evidence, Finding, Judged
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.judge import Difference, answer_of
from halfeven.conformance.properties import CHECK, PROPERTIES, ROLES
from halfeven.conformance.properties.judged import breaches as broken_by
from halfeven.conformance.properties.judged import first_of, second_of
from halfeven.conformance.properties.property import Answered, Breach, Property
from halfeven.conformance.properties.role import number
from halfeven.conformance.requirement import REQUIREMENTS, Arguments, Basis
from halfeven.conformance.systems import call_sets
from halfeven.conformance.workers import Worker
from halfeven.reference.catalogue import FORMULAS

__all__ = ["Broken", "OwnCall", "call_of", "counts", "gather", "judged", "own_calls", "property_of", "words"]


@dataclass(frozen=True, eq=False)
class OwnCall:
    """One of the formula's own calls, and what the requirement that it was made for rests on."""

    arguments: Arguments
    basis: Basis


@dataclass(frozen=True, eq=False)
class Broken(Finding):
    """A call whose answer, or that to the second one made from it, breaks the property: the first is the finding's.

    Attributes:
        basis: what the requirement rests on that the call was made for.
    """

    basis: Basis = "expected"


#: By worker and formula the answers to its own calls: every property judges the same ones.
_ANSWERS: "WeakKeyDictionary[Worker, dict[str, list[Answer]]]" = WeakKeyDictionary()


def property_of(item: Item) -> Property | None:
    """The property that an item holds a function to, if it does."""
    return PROPERTIES.get(item.check.removeprefix(CHECK)) if item.check.startswith(CHECK) else None


def gather(e: Evidence) -> None:
    """Judge the formula's own calls, and where the property needs them second ones that are made from these.

    Raises:
        Ended: the worker's process ended, or was ended.
    """
    found, formula = property_of(e.item), e.item.requirement.formula
    assert found is not None, "asked of an item of a property alone"
    role, own = ROLES[formula], list(own_calls(formula))
    known = _ANSWERS.setdefault(e.worker, {})
    if formula not in known:
        known[formula] = list(e.answers([call_of(e, o.arguments) for o in own]))
    e.made = len(own)  # whichever property asked first, each judges them all
    answers = _taken(e, known[formula])
    firsts = [first_of(role, o.arguments, a.value) if counts(a) else None for o, a in zip(own, answers, strict=True)]
    if found.again is None:
        for o, a, first in zip(own, answers, firsts, strict=True):
            if first is not None:
                _judge(e, found, o, (first, None), a)
        return
    pairs = [
        (o, first, second)
        for o, first in zip(own, firsts, strict=True)
        if first is not None and (second := second_of(found, role, first)) is not None
    ]
    calls = [call_of(e, second) for _, _, second in pairs]
    for (o, first, arguments), a in zip(pairs, _taken(e, e.answers(calls)), strict=True):
        other = first_of(role, arguments, a.value) if counts(a) else None
        if other is not None:
            _judge(e, found, o, (first, other), a)


def own_calls(formula: str) -> Iterator[OwnCall]:
    """The formula's own calls, of all its requirements."""
    sets = call_sets()
    basis = {check: r.basis for r in REQUIREMENTS.values() if r.formula == formula and r.called for check in r.checks}
    for (of, name), calls in sets.items():
        if of == formula:
            yield from (OwnCall(arguments, basis[name]) for arguments in calls.build())


def call_of(e: Evidence, arguments: Arguments) -> Call:
    """The call of the item's formula, by keyword."""
    named = {name: sent(value) for name, value in arguments.items()}
    return Call(e.item.requirement.formula, (), named, PLAIN, e.item.requirement.text)


def _taken(e: Evidence, answers: Any) -> list[Answer]:
    """The answers, of which those refused are noted."""
    for a in answers:
        if a.kind == "ended":
            raise Ended(a.message)
        if a.kind == "unsupported":
            e.refused.append(a.message)
    return list(answers)


def counts(a: Answer) -> bool:
    """Whether an answer is a value; errors, and what a call may not do, are for other requirements."""
    return a.kind == "returned" and not breaches(a)


def _judge(e: Evidence, found: Property, own: OwnCall, pair: tuple[Answered, Answered | None], answer: Answer) -> None:
    for b in judged(found, e.item.requirement.formula, own, *pair):
        e.points += b.points
        if b.broken.size:
            i, e.differing = int(b.broken[0]), e.differing + b.broken.size
            asked = Judged(Answer("returned", b.expected(i)), answer, None, call_of(e, own.arguments))
            difference = Difference(b.points, int(b.broken.size), 0, "", words(b, i), b.leaf)
            e.findings.append(Broken(asked, difference, basis=own.basis))


def judged(found: Property, formula: str, own: OwnCall, first: Answered, second: Answered | None) -> Iterator[Breach]:
    """What a property finds in the answer to one of a formula's own calls, less what its document wants so."""
    seen = broken_by(found, first, second)
    said = _document(found, formula, own) if any(b.broken.size for b in seen) else {}
    for b in seen:
        yield replace(b, broken=np.setdiff1d(b.broken, said.get(b.leaf, np.zeros(0, np.int64))))


def _document(found: Property, formula: str, own: OwnCall) -> dict[str, Any]:
    """Where a reading that the document admits breaks the property in a call that it speaks of: there it wins."""
    if own.basis != "documented":
        return {}
    f, said = FORMULAS[formula], dict[str, Any]()
    readings = [] if f.readings is None else [f.at(point) for point in f.readings.points]
    for function in (f.function, *readings):
        for b in _breaches_of(function, found, formula, own):
            said[b.leaf] = np.union1d(said.get(b.leaf, np.zeros(0, np.int64)), b.broken)
    return said


def _breaches_of(function: Callable[..., Any], found: Property, formula: str, own: OwnCall) -> list[Breach]:
    """What the property finds in a function of the reference's."""
    first, second = _answered(formula, function, own.arguments), None
    if first is not None and found.again is not None:
        again = second_of(found, ROLES[formula], first)
        second = None if again is None else _answered(formula, function, again)
        first = None if second is None else first
    return [] if first is None else list(broken_by(found, first, second))


def _answered(formula: str, function: Any, arguments: Arguments) -> Answered | None:
    a = answer_of(function, arguments)
    return first_of(ROLES[formula], arguments, a.value) if counts(a) else None


def words(b: Breach, i: int) -> str:
    """What is at a place, and what a user expects there."""
    return f"{b.leaf}[{i}] is {number(b.values[i])} where a user expects {b.expected(i)}"
