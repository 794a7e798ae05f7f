"""Another reading of the document: answers that follow one throughout, where the document leaves something open."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.conformance.engine.clear import clarity
from halfeven.conformance.engine.compare import but_for, compare_codes, compare_reals
from halfeven.conformance.engine.evidence import Evidence, Finding, Judged
from halfeven.conformance.engine.fitting.elements import flat
from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.engine.setting import evaluation_of
from halfeven.reference.behaviour import Behaviour
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile

__all__ = ["follows", "nearer", "read_otherwise"]

_LOOKED_AT = 64
_NEARER = {0: "what was expected", 2: "the answer that came"}  # by the rank of what exact numbers say


def read_otherwise(e: Evidence) -> str:
    """Which other reading that the document admits gives every answer, in words; empty where none does.

    Errors that are not the document's are no answers, and are charged whatever is read.
    """
    erring = {id(f.compared) for f in e.erring}
    if len(erring) == len(e.findings) or any(f.own for f in e.findings):
        return ""
    answered = [a for a in e.compared if id(a) not in erring]
    if e.item.configuration is None:
        claimed = formula_of(e.item.requirement.formula, e.item.offer.profile)
        if claimed.readings is None or claimed.behaviour is None:
            return ""
        document: Behaviour = claimed.behaviour
        fits = (p for p in claimed.readings.points if all(follows(claimed.at(p), a) for a in answered))
        gap = claimed.readings.gap
    else:
        profile = e.setting.profile
        if profile.readings is None:
            return ""
        document, gap = profile.model, profile.readings.gap
        fits = (p for p in profile.readings.points if all(_evaluates(e, profile, p, a) for a in answered))
    point = next(fits, None)
    if point is None:
        return ""
    near = nearer(e.setting.profile, e.findings[0]) if e.item.configuration is not None else ""
    said = [f"another reading that the document admits: {document.against(point).replace('the document', 'ours')}", gap]
    return "; ".join([*said, *([near] if near else [])])


def follows(function: Callable[..., Any], asked: Judged) -> bool:
    """Whether a formula's function gives the answer that came."""
    return not differences(answer_of(function, asked.arguments), asked.actual).differing


def _evaluates(e: Evidence, profile: Profile, model: Behaviour, asked: Judged) -> bool:
    if asked.case is None or not isinstance(model, EvaluationModel):
        return False
    actual = np.asarray(asked.actual.value)
    found = evaluation_of(replace(profile, model=model), asked.case)
    compare = compare_codes if asked.case.configuration.operation == "quantize" else compare_reals
    return not but_for(e.open_nans(asked.case), compare, np.broadcast_to(found, actual.shape), actual).differing


def nearer(profile: Profile, finding: Finding) -> str:
    """Which of the two, expected and actual, is nearer to the real equation at the points that differ."""
    case, comparison = finding.compared.case, finding.difference.comparison
    if case is None or comparison is None or not len(comparison.where):
        return ""
    elements, where = flat(case), comparison.where[:_LOOKED_AT]
    ends = [np.asarray(a.value).ravel() for a in (finding.compared.expected, finding.compared.actual)]
    points = ((elements.x[i], elements.scale[i], elements.zero[i], *(end[i] for end in ends)) for i in where)
    ranks = Counter(clarity(profile, case, (x, s, z), e, a).rank for x, s, z, e, a in points)
    near = [rank for rank in _NEARER if ranks[rank]]
    at = {rank: f" at {ranks[rank]} of {len(where)} points" if len(near) > 1 else "" for rank in near}
    said = " and ".join(f"{_NEARER[rank]}{at[rank]}" for rank in near)
    return f"nearer to the real equation is {said}" if near else ""
