"""Carrying out one item for a documented function: its calls are made, compared, and the difference named."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.formulas import Answer, Difference, answer, ask, differences
from halfeven.conformance.plan import Item
from halfeven.conformance.points import nearest_point
from halfeven.conformance.quote import spelt
from halfeven.conformance.report.model import OutcomeName, Result, Witness
from halfeven.conformance.requirement import Arguments
from halfeven.conformance.systems import call_sets
from halfeven.conformance.witness import array_source, tensor_source
from halfeven.reference.catalogue import FORMULAS, Formula

__all__ = ["formula_of", "run_formula"]

_WORDS = 400  # of an argument in a witness


@dataclass(eq=False)
class _Evidence:
    """What the calls came to."""

    asked: list[tuple[Arguments, Answer]] = field(default_factory=list)
    failing: list[tuple[Arguments, Answer, Answer, Difference]] = field(default_factory=list)
    points: int = 0
    refused: list[str] = field(default_factory=list)

    @property
    def smallest(self) -> tuple[Arguments, Answer, Answer, Difference]:
        """The call that parts with the fewest numbers in it: the one to show."""
        return min(self.failing, key=lambda f: _size(f[0]))


def formula_of(formula: str, profile: str) -> Formula:
    """The formula that a profile holds a backend to: for ``name@version`` that version's, where there is one."""
    version = profile.partition("@")[2]
    versions = (f for f in FORMULAS.versions(formula) if f.version and f"{version}-".startswith(f"{f.version}-"))
    return next(versions, FORMULAS[formula])


def _origin(formula: Formula) -> str:
    """Whose behaviour it is, to follow "as": ``torchao 0.18 was measured to do``."""
    system, version = formula.system, formula.version
    return f"{system} {version} was measured to do" if version else f"{system} documents it"


def run_formula(item: Item) -> Result:
    """The result of an item of a documented function; errors of the backend are answers, never exceptions."""
    start = time.perf_counter()
    claimed = formula_of(item.requirement.formula, item.backend.profile)
    evidence = _gather(item, claimed)
    changes, words = _choices(item, claimed, evidence)
    outcome, cause, detail = _judge(item, claimed, evidence, words)
    shown = outcome in {"differs", "explained", "crashed"}
    steps, unit = _largest(evidence) if shown else (0, "")
    return Result(
        id=item.id,
        backend=item.backend.name,
        profile=item.backend.profile,
        operation=item.requirement.operation,
        requirement=item.requirement.id,
        check=item.check,
        configuration={"formula": claimed.id, "calls": len(evidence.asked)}
        | ({"choices": {name: str(does) for name, (_, does) in changes.items()}} if shown and changes else {}),
        outcome=outcome,
        points=evidence.points,
        differing=sum(f[3].differing for f in evidence.failing) if shown else 0,
        steps=steps,
        unit=unit,
        cause=cause,
        detail=detail,
        witness=_witness(item, evidence) if shown else None,
        seconds=round(time.perf_counter() - start, 4),
    )


def _gather(item: Item, claimed: Formula) -> _Evidence:
    found = _Evidence()
    function = item.backend.functions[item.requirement.formula]
    for arguments in call_sets()[item.requirement.formula, item.check].build():
        expected = answer(claimed.function, arguments)  # before the call, which may change how the process computes
        try:
            actual = ask(function, arguments, item.backend.array)
        except Unsupported as reason:
            found.refused.append(str(reason))
            continue
        difference = differences(expected, actual)
        found.asked.append((arguments, actual))
        found.points += difference.points
        if difference.differing:
            found.failing.append((arguments, expected, actual, difference))
    return found


def _choices(item: Item, claimed: Formula, evidence: _Evidence) -> tuple[Mapping[str, tuple[Any, Any]], str]:
    """The choices other than those claimed that give all the answers, and what they do; none where nobody judges."""
    judged = evidence.failing and item.requirement.basis != "silent"
    point = nearest_point(claimed, evidence.asked) if judged else None
    if point is None or claimed.behaviour is None:
        return {}, ""
    return claimed.behaviour.changes(point), claimed.behaviour.against(point)


def _judge(item: Item, claimed: Formula, evidence: _Evidence, words: str) -> tuple[OutcomeName, str, str]:
    """The outcome, the cause and what is left to say; ``words`` tell the point that gives the answers, if one does."""
    left = f"not offered: {len(evidence.refused)} calls, such as: {evidence.refused[0]}" if evidence.refused else ""
    if not evidence.points:
        return "not run", "", left or "nothing was compared"
    if item.requirement.basis == "silent":
        seen = dict.fromkeys(f[3].words for f in evidence.failing)
        return "implementation-defined", "", "; ".join(seen) or f"as {claimed.id}"
    if not evidence.failing:
        return "exact", "", left
    smallest = evidence.smallest
    words = words or smallest[3].words
    if (version := _reproducing(item, claimed, evidence)) is not None:
        return "explained", f"as {_origin(version)}: {words}", left
    if all(f[2].raised and not f[1].raised for f in evidence.failing):
        return "crashed", smallest[3].words, f"{smallest[2].raised[0]}: {smallest[2].message}"
    return "differs", words, left


def _reproducing(item: Item, claimed: Formula, evidence: _Evidence) -> Formula | None:
    """The document or a version of it that gives all the answers, where that is not what is claimed."""
    # A version named for the backend, its library or its release goes first.
    release = ".".join(item.backend.version.split(".")[:2])
    own = (item.backend.name.rpartition(".")[2], f"{item.backend.library}-", release)
    for other in sorted(
        FORMULAS.versions(item.requirement.formula), key=lambda f: not (f.version and f.version.startswith(own))
    ):
        if other is not claimed and all(
            not differences(answer(other.function, a), given).differing for a, given in evidence.asked
        ):
            return other
    return None


def _largest(evidence: _Evidence) -> tuple[int, str]:
    """The largest difference, in ulps where a real differs, else in code steps."""
    units = {f[3].unit for f in evidence.failing}
    unit = "ulp" if "ulp" in units else "code steps" if "code steps" in units else ""
    return max((f[3].steps for f in evidence.failing if f[3].unit == unit), default=0), unit


def _witness(item: Item, evidence: _Evidence) -> Witness:
    """The smallest call that parts."""
    arguments, expected, actual, difference = evidence.smallest
    try:
        again = ask(item.backend.functions[item.requirement.formula], arguments, item.backend.array)
        reproduced = bool(differences(expected, again).differing)
    except Unsupported:
        reproduced = False
    wanted, got = (_said(a, difference.leaf) for a in (expected, actual))
    return Witness(
        x=", ".join(f"{name}={_short(value)}" for name, value in arguments.items()),
        scale="",
        zero="",
        expected=wanted,
        actual=got,
        where=difference.words,
        script=_script(item, arguments, wanted, actual, difference.leaf),
        reproduced=reproduced,
    )


def _size(value: Any) -> int:
    """The numbers in an argument, or in all of a call's."""
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    if isinstance(value, tuple | list):
        return sum(map(_size, value))
    return value.size if isinstance(value, np.ndarray) else 1


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        small = value  # numbers of ml_dtypes have words of their own
        if value.dtype.kind == "V":
            small = value.astype(np.int64 if value.dtype.name.startswith(("int", "uint")) else np.float64)
        text = f"{small.tolist()} {value.dtype}"
    elif isinstance(value, tuple | list):
        text = f"({', '.join(map(_short, value))})"
    else:
        text = repr(value)
    return text if len(text) <= _WORDS else f"{text[:_WORDS]} ..."


def _said(found: Answer, leaf: str) -> str:
    if found.raised:
        return found.raised[0]
    if leaf in found.leaves:
        return _short(found.leaves[leaf])
    return ", ".join(f"{name} = {_short(value)}" for name, value in found.leaves.items())


def _script(item: Item, arguments: Arguments, wanted: str, actual: Answer, leaf: str) -> str:
    """Python that makes the call with the library alone; the function that stands for the library's is quoted."""
    tensors = item.backend.array == "torch"
    passed = {key: _source(value, tensors=tensors) for key, value in arguments.items()}
    if (found := spelt(item.backend.functions[item.requirement.formula], passed)) is None:
        return ""
    source, call = found
    future = [line for line in source.splitlines() if line.startswith("from __future__")]
    rest = source.removeprefix("\n".join([*future, ""])) if future else source
    lines = [*future, *([item.backend.prelude] if item.backend.prelude else [])]
    lines += ["import ml_dtypes", "import numpy as np", *(["import torch"] if tensors else []), rest]
    is_array = isinstance(actual.leaves.get(leaf), np.ndarray)
    shown = f"{leaf}.tolist(), {leaf}.dtype" if is_array else f"repr({leaf or 'result'})"
    lines += [f"result = {call}", f"print({shown})  # expected {' '.join(wanted.split())}"]
    return "\n".join(lines)


def _source(value: Any, *, tensors: bool) -> str:
    if isinstance(value, np.ndarray):
        return tensor_source(array_source(value), value) if tensors else array_source(value)
    if isinstance(value, tuple | list):
        inner = "".join(f"{_source(v, tensors=tensors)}, " for v in value)
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    return repr(value)
