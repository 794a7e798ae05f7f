"""The evidence of a documented function: its calls are made and compared, and what differs is named."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from halfeven.conformance.engine.call import PLAIN, Answer, Call, leaves, sent
from halfeven.conformance.engine.evidence import Evidence, Finding, Judged
from halfeven.conformance.engine.explore import beyond
from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.function_calls import function_calls
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.engine.literal import source
from halfeven.conformance.engine.memory import Strided
from halfeven.conformance.engine.points import nearest_point
from halfeven.conformance.engine.region import region
from halfeven.conformance.report.model import OutcomeName, Witness
from halfeven.conformance.requirement import CALL_SHAPES
from halfeven.conformance.systems import call_sets, judged_sets
from halfeven.reference.catalogue import FORMULAS, Formula

__all__ = ["configuration", "gather", "judged", "shown"]

_WORDS = 400  # of an argument in a witness
_LONG = 4096  # numbers in a call that a script spells out


def gather(e: Evidence) -> None:
    """Make the calls of the item, and compare their answers with the formula's."""
    claimed = _claimed(e)
    item, formula = e.item, e.item.requirement.formula
    if item.check == CALL_SHAPES:
        numpy, sets = item.offer.array == "numpy", judged_sets(formula)
        asked = function_calls(formula, sets, item.tier, item.seed, negative=numpy, function=claimed.function)
        e.expect_calls((a.call, a.expected) for a in asked)
        beyond(e)
    else:
        e.expect_calls(_expected(claimed, call_sets()[formula, item.check].build(), item.requirement.text))
    e.seen += dict.fromkeys(f.difference.words for f in e.findings) or [f"as {claimed.id}"]


def judged(e: Evidence) -> tuple[OutcomeName, str, str]:
    """The outcome, the cause, and for a crash the error."""
    smallest = _smallest(e)
    changes, words = _choices(e)
    if not changes and e.item.check == CALL_SHAPES and (where := region(e)):
        return "differs", f"{where}: {smallest.difference.words}", ""
    words = words or smallest.difference.words
    if (version := _reproducing(e)) is not None:
        return "explained", f"as {_origin(version)}: {words}", ""
    actual = smallest.compared.actual
    if all(f.compared.actual.kind == "raised" and f.compared.expected.kind != "raised" for f in e.findings):
        return "crashed", smallest.difference.words, f"{actual.error[0]}: {actual.message}"
    return "differs", words, ""


def configuration(e: Evidence, *, shown: bool) -> dict[str, Any]:
    """What a result says of the calls that it stands for."""
    said: dict[str, Any] = {"formula": _claimed(e).id, "calls": len(e.compared)}
    changes, _ = _choices(e) if shown else ({}, "")
    return said | ({"choices": {name: str(does) for name, (_, does) in changes.items()}} if changes else {})


def shown(e: Evidence) -> Witness:
    """The smallest call that differs."""
    finding = _smallest(e)
    call, expected, actual = finding.compared.call, finding.compared.expected, finding.compared.actual
    assert call is not None, "a function's"
    [again] = e.worker.answers([call])
    wanted, got = (_said(a, finding.difference.leaf) for a in (expected, actual))
    return Witness(
        x=", ".join(f"{name}={_short(value)}" for name, value in finding.compared.arguments.items()),
        scale="",
        zero="",
        expected=wanted,
        actual=got,
        where=finding.difference.words,
        script=_script(e, call, wanted, actual, finding.difference.leaf),
        reproduced=again.kind != "unsupported" and bool(differences(expected, again).differing),
    )


def _claimed(e: Evidence) -> Formula:
    return formula_of(e.item.requirement.formula, e.item.offer.profile)


def _expected(claimed: Formula, calls: Iterable[Mapping[str, Any]], reason: str) -> Iterator[tuple[Call, Answer]]:
    for arguments in calls:
        named = {name: sent(value) for name, value in arguments.items()}
        yield Call(claimed.id.partition("@")[0], (), named, PLAIN, reason), answer_of(claimed.function, arguments)


def _choices(e: Evidence) -> tuple[Mapping[str, tuple[Any, Any]], str]:
    """The choices other than those claimed that give all the answers, and what they do."""
    claimed = _claimed(e)
    if claimed.behaviour is None or not e.findings:
        return {}, ""
    point = e.once("point", lambda: nearest_point(claimed, [(a.arguments, a.actual) for a in e.compared]))
    if point is None:
        return {}, ""
    return claimed.behaviour.changes(point), claimed.behaviour.against(point)


def _reproducing(e: Evidence) -> Formula | None:
    """The document or a version of it that gives all the answers, where that is not what is claimed."""
    offer, claimed = e.item.offer, _claimed(e)
    # A version named for the backend, its library or its release goes first.
    release = ".".join(offer.version.split(".")[:2])
    own = (offer.name.rpartition(".")[2], f"{offer.library}-", release)
    versions = FORMULAS.versions(e.item.requirement.formula)
    for other in sorted(versions, key=lambda f: not (f.version and f.version.startswith(own))):
        if other is not claimed and all(_gives(other, a) for a in e.compared):
            return other
    return None


def _gives(formula: Formula, asked: Judged) -> bool:
    return not differences(answer_of(formula.function, asked.arguments), asked.actual).differing


def _origin(formula: Formula) -> str:
    """Whose behaviour it is, to follow "as": ``torchao 0.18 was measured to do``."""
    system, version = formula.system, formula.version
    return f"{system} {version} was measured to do" if version else f"{system} documents it"


def _smallest(e: Evidence) -> Finding:
    """The call that parts with the fewest numbers in it: the one to show."""
    if e.minimal_last:
        return e.findings[-1]
    return min(e.findings, key=lambda f: _size(f.compared.call and f.compared.call.named))


def _size(value: Any) -> int:
    """The numbers in an argument, or in all of a call's."""
    match value:
        case Strided():
            return int(np.prod(value.shape))
        case Mapping():
            return sum(map(_size, value.values()))
        case tuple() | list():
            return sum(map(_size, value))
    return 1


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        few = value.ravel()[:_WORDS]
        small = few  # numbers of ml_dtypes have words of their own
        if value.dtype.kind == "V":
            small = few.astype(np.int64 if value.dtype.name.startswith(("int", "uint")) else np.float64)
        listed = small.reshape(value.shape) if few.size == value.size else small
        text = f"{listed.tolist()} {value.dtype}"
    elif isinstance(value, tuple | list):
        text = f"({', '.join(map(_short, value))})"
    else:
        text = repr(value)
    return text if len(text) <= _WORDS else f"{text[:_WORDS]} ..."


def _said(found: Answer, leaf: str) -> str:
    if found.kind == "raised":
        return found.error[0]
    if found.faults or found.kind == "ended":
        return found.faults[0] if found.faults else found.message
    values = dict(leaves(found.value))
    if leaf in values:
        return _short(values[leaf])
    return ", ".join(f"{name} = {_short(value)}" for name, value in values.items())


def _script(e: Evidence, call: Call, wanted: str, actual: Answer, leaf: str) -> str:
    """Python that makes the call with the library alone; the function that stands for the library's is quoted."""
    if _size(call.named) > _LONG:
        return ""
    tensors = e.item.offer.array == "torch"
    passed = {key: source(value, tensors=tensors) for key, value in call.named.items()}
    if (found := e.worker.quoted(call.formula, passed)) is None:
        return ""
    lines_, called = found
    future = [line for line in lines_.splitlines() if line.startswith("from __future__")]
    rest = lines_.removeprefix("\n".join([*future, ""])) if future else lines_
    lines = [*future, *([e.item.offer.prelude] if e.item.offer.prelude else [])]
    lines += ["import ml_dtypes", "import numpy as np", *(["import torch"] if tensors else []), rest]
    is_array = isinstance(dict(leaves(actual.value)).get(leaf), np.ndarray)
    shown = f"{leaf}.tolist(), {leaf}.dtype" if is_array else f"repr({leaf or 'result'})"
    times = range(call.shape.repeats)
    lines += [f"result = {called}" for _ in times] + [f"print({shown})  # expected {' '.join(wanted.split())}"]
    return "\n".join(lines)
