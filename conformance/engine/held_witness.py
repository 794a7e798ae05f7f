"""Witnesses of broken properties: the smallest call, or pair of calls, and a script that evaluates the property."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import ml_dtypes
import numpy as np

from halfeven.conformance.engine.call import Answer, Call, arguments_of, numbers
from halfeven.conformance.engine.evidence import Evidence, Finding
from halfeven.conformance.engine.held import Broken, OwnCall, call_of, counts, judged, property_of, words
from halfeven.conformance.engine.judge import Difference, answer_of
from halfeven.conformance.engine.literal import tensor_source
from halfeven.conformance.engine.script import LONG, Script, numbers_of
from halfeven.conformance.engine.shrink import shrunk
from halfeven.conformance.engine.tries import Trial, Tries
from halfeven.conformance.engine.witness import spoken
from halfeven.conformance.properties import ROLES
from halfeven.conformance.properties.judged import first_of, second_of
from halfeven.conformance.properties.property import Answered, Breach, Place, Property
from halfeven.conformance.properties.role import number
from halfeven.conformance.quote import NoScript
from halfeven.conformance.report.model import Witness
from halfeven.conformance.requirement import Arguments
from halfeven.reference.catalogue import FORMULAS

__all__ = ["held_witness"]

_LOOKED_AT = 8  # findings
_DERIVED = 64  # elements that a script computes one by one


@dataclass(frozen=True, eq=False)
class HeldTrial(Trial):
    """A call that breaks the property.

    Attributes:
        first: its answer as the property sees it.
        again: the arguments of the second call, and its answer; None where one call is judged alone.
        breach: what the property found.
    """

    first: Answered | None = None
    again: tuple[Arguments, Answer] | None = None
    breach: Breach | None = None


def held_witness(e: Evidence) -> Witness | None:
    """The smallest call that breaks the property; None where none does. Its script has not been run yet."""
    found = [f for f in e.findings if isinstance(f, Broken)]
    found.sort(key=lambda f: (_refused(f), numbers(f.compared.call and f.compared.call.named)))
    for f in found[:_LOOKED_AT]:
        call = f.compared.call
        assert call is not None, "a finding of a function's has its call"
        tries = Tries(e, partial(_trial, like=f))
        t = tries(call)
        if isinstance(t, HeldTrial):
            smallest = shrunk(t, tries)
            assert isinstance(smallest, HeldTrial), "it is one of those tried"
            return _shown(e, smallest)
    if not found:
        return None
    said = found[0].difference.words
    return Witness(
        x=spoken(found[0].compared.arguments),
        scale="",
        zero="",
        expected=str(found[0].compared.expected.value),
        actual=said.partition(" is ")[2].partition(" where ")[0],
        where=said,
        unshown="the call alone did not differ when it was asked again",
    )


def _refused(f: Finding) -> bool:
    """Whether the formula itself refuses the call: others are shown first."""
    call = f.compared.call
    return call is not None and answer_of(FORMULAS[call.formula].function, f.compared.arguments).kind != "returned"


def _trial(e: Evidence, call: Call, actual: Answer, before: tuple[Call, ...], *, like: Broken) -> HeldTrial | None:
    """A call and its answer, where that breaks the property; with the arguments ``like`` that, taken or refused so."""
    found, formula, arguments = property_of(e.item), FORMULAS[call.formula], arguments_of(call.named)
    assert found is not None, "asked of an item of a property alone"
    original = like.compared.arguments
    kinds = {answer_of(formula.function, a).kind for a in (arguments, original)}
    if arguments.keys() != original.keys() or not counts(actual) or len(kinds) > 1:
        return None
    role = ROLES[formula.id]
    first, second, again = first_of(role, arguments, actual.value), None, None
    if first is None:
        return None
    if found.again is not None:
        other = second_of(found, role, first)
        if other is None:
            return None
        [came] = e.worker.answers([call_of(e, other)])
        second, again = first_of(role, other, came.value) if counts(came) else None, (other, came)
        if second is None:
            return None
    for b in judged(found, formula.id, OwnCall(arguments, like.basis), first, second):
        if b.broken.size:
            i = int(b.broken[0])
            kind = "finite" if np.isfinite(float(b.values[i])) else "not finite"
            difference = Difference(b.points, int(b.broken.size), words=f"{b.leaf}, {kind}: {words(b, i)}", leaf=b.leaf)
            expected = Answer("returned", b.expected(i))
            return HeldTrial(call, expected, actual, difference, i, before, first=first, again=again, breach=b)
    return None


def _shown(e: Evidence, t: HeldTrial) -> Witness:
    b, found = t.breach, property_of(e.item)
    assert b is not None, "a trial has one"
    assert found is not None, "asked of an item of a property alone"
    found_witness = Witness(
        x=spoken(arguments_of(t.call.named)),
        scale="",
        zero="",
        expected=b.expected(t.at),
        actual=number(b.values[t.at]),
        where=words(b, t.at),
    )
    try:
        return replace(found_witness, script=_script(e, t, found, b))
    except NoScript as reason:
        return replace(found_witness, unshown=str(reason))


def _script(e: Evidence, t: HeldTrial, found: Property, b: Breach) -> str:
    """Python that makes the calls, evaluates the property, and prints ``expected`` and ``actual``.

    Raises:
        NoScript: there is none; the message is the reason.
    """
    if numbers_of(t.call) > LONG:
        msg = f"the call has more than {LONG} numbers"
        raise NoScript(msg)
    parts = Script(e, t)
    arguments = [*parts.arguments()]
    body = [*arguments, *parts.spelt.steps.splitlines(), f"result = {parts.spelt.called}"]
    others = []
    if t.again is not None:
        second = call_of(e, t.again[0])
        spelt = parts.spelt_of(second)
        others = [spelt.header]
        body += [*_changed(e, t, found, parts, arguments, second), *spelt.steps.splitlines(), f"again = {spelt.called}"]
    shown = b.shown(t.at)
    for name, place in shown.numbers.items():
        body.append(f"{name} = {_element(e, t, place)}")
    body += [
        *shown.lines,
        f'print("expected", actual if {shown.holds} else {shown.expected})',
        'print("actual  ", actual)',
    ]
    return "\n".join([*parts.header("\n".join(body), *others), "", *body])


def _changed(
    e: Evidence, t: HeldTrial, found: Property, parts: Script, arguments: list[str], second: Call
) -> Iterator[str]:
    """The arguments that the second call has others of; what came of the first may be one."""
    if found.derived is None or t.first is None:
        yield from (line for line in parts.arguments(second) if line not in arguments)
        return
    role = ROLES[e.item.requirement.formula]
    given = np.asarray(t.first.arguments[role.data])
    if given.size > _DERIVED:
        msg = f"what came has more than {_DERIVED} elements, which are given again"
        raise NoScript(msg)
    leaf = next(name for name in ("codes", "reals") if name in t.first.leaves)
    elements = [found.derived(t.first, i, _element(e, t, Place(leaf, i))) for i in range(given.size)]
    dtype = f"{'np' if hasattr(np, given.dtype.name) else ml_dtypes.__name__}.{given.dtype.name}"
    source = f"np.array([{', '.join(elements)}], {dtype}).reshape({given.shape})"
    yield f"{role.data} = {tensor_source(source, given) if parts.tensors else source}"


def _element(e: Evidence, t: HeldTrial, place: Place) -> str:
    """A number that came, as Python."""
    assert t.first is not None, "a trial has it"
    arguments, value = (t.first.arguments, t.actual.value)
    if place.again:
        assert t.again is not None, "there is a second call"
        arguments, value = t.again[0], t.again[1].value
    said: str = ROLES[e.item.requirement.formula].element(arguments, value, place.leaf, place.index)
    if not said:
        msg = f"no short expression gives the {place.leaf} of what is stored"
        raise NoScript(msg)
    return re.sub(r"\bresult\b", "again", said) if place.again else said
