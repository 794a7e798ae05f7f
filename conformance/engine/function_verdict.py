"""The evidence of a documented function: its calls are made and compared, and what differs is named."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from halfeven.conformance.engine import held
from halfeven.conformance.engine.call import PLAIN, Answer, Call, breaches, numbers, sent
from halfeven.conformance.engine.evidence import Evidence, Finding, Judged
from halfeven.conformance.engine.explore import beyond
from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.function_calls import function_calls
from halfeven.conformance.engine.judge import answer_of
from halfeven.conformance.engine.readings import follows
from halfeven.conformance.report.model import OutcomeName
from halfeven.conformance.requirement import CALL_SHAPES
from halfeven.conformance.systems import call_sets, judged_sets
from halfeven.reference.catalogue import FORMULAS, Formula

__all__ = ["configuration", "expected_calls", "gather", "judged", "refuting"]


def gather(e: Evidence) -> None:
    """Make the calls of the item, and compare their answers with the formula's."""
    claimed = _claimed(e)
    item, formula = e.item, e.item.requirement.formula
    if held.property_of(item) is not None:
        held.gather(e)
        return
    if item.check == CALL_SHAPES:
        numpy, sets = item.offer.array == "numpy", judged_sets(formula)
        asked = function_calls(formula, sets, item.tier, item.seed, negative=numpy, function=claimed.function)
        e.expect_calls((a.call, a.expected) for a in asked)
        beyond(e)
    else:
        e.expect_calls(expected_calls(claimed, call_sets()[formula, item.check].build(), item.requirement.text))
    e.seen += dict.fromkeys(f.difference.words for f in e.findings) or [f"as {claimed.id}"]


def judged(e: Evidence) -> tuple[OutcomeName, str, str]:
    """The outcome, what differs first, and for a crash the error; why is for the stage that concludes."""
    if (broken := held.property_of(e.item)) is not None:
        return "differs", broken.words, ""
    smallest = _smallest(e)
    words, actual = smallest.difference.words, smallest.compared.actual
    if all(_crashed(f.compared) for f in e.findings):
        return "crashed", words, f"{actual.error[0]}: {actual.message}"
    return "differs", words, ""


def refuting(e: Evidence) -> dict[str, Judged]:
    """Of each version of the formula that does not give all answers the smallest call in which it does not.

    An error that is not the document's is left out, as a fault is: these have causes of their own.
    """
    claimed = _claimed(e)
    erring = {id(f.compared) for f in e.erring}
    asked = [a for a in e.compared if a.call is not None and not breaches(a.actual) and id(a) not in erring]
    asked.sort(key=lambda a: numbers(a.call and a.call.named))
    found: dict[str, Judged] = {}
    for version in FORMULAS.versions(claimed.id):
        if version.id != claimed.id:
            first = next((a for a in asked if not follows(version.function, a)), None)
            found |= {} if first is None else {version.id: first}
    return found


def _crashed(asked: Judged) -> bool:
    return asked.actual.kind == "raised" and asked.expected.kind != "raised"


def configuration(e: Evidence) -> dict[str, Any]:
    """What a result says of the calls that it stands for."""
    said: dict[str, Any] = {"formula": _claimed(e).id, "calls": len(e.compared)}
    if (held_to := held.property_of(e.item)) is not None:
        said |= {"calls": e.made, "property": held_to.name}
    return said


def _claimed(e: Evidence) -> Formula:
    return formula_of(e.item.requirement.formula, e.item.offer.profile)


def expected_calls(claimed: Formula, calls: Iterable[Mapping[str, Any]], reason: str) -> Iterator[tuple[Call, Answer]]:
    """Calls by keyword, and the answers that the formula has to them."""
    for arguments in calls:
        named = {name: sent(value) for name, value in arguments.items()}
        yield Call(claimed.id.partition("@")[0], (), named, PLAIN, reason), answer_of(claimed.function, arguments)


def _smallest(e: Evidence) -> Finding:
    """The call that parts with the fewest numbers in it: the one to show."""
    if e.minimal_last:
        return e.findings[-1]
    return min(e.findings, key=lambda f: numbers(f.compared.call and f.compared.call.named))
