"""What the evidence of an operation comes to: the cause of what differs, and the witness that shows it."""

from dataclasses import replace

import numpy as np

from halfeven.conformance.configuration import Array
from halfeven.conformance.engine.evidence import Evidence, Finding, Judged
from halfeven.conformance.engine.explain import Observed, explain, flat
from halfeven.conformance.engine.region import region
from halfeven.conformance.engine.witness import witness
from halfeven.conformance.report.causes import UNKNOWN
from halfeven.conformance.report.model import OutcomeName, Witness
from halfeven.conformance.requirement import CALL_SHAPES
from halfeven.reference.profile import Profile

__all__ = ["judged", "shown"]

_OWN = {
    "composition": "fake_quantize is not dequantize after quantize",
    "idempotence": "quantize after dequantize does not return the code",
}


def judged(e: Evidence) -> tuple[OutcomeName, str]:
    """What a difference is: within a waiver, a model that is known, a way of calling, or none of these."""
    profile = e.setting.profile
    budget = _waived(e)
    if budget is not None and e.steps <= budget and all(_at_ties(profile, f) for f in e.findings):
        return "budgeted", f"within the waiver of {budget} {e.unit} at ties"
    if any(f.own for f in e.findings):
        return "differs", _OWN.get(e.item.check, "the backend differs from itself")
    if e.item.check == "zero-sign":  # no model has a field for it
        return "differs", "a zero of the other sign"
    found = explain(profile, [_answered(a) for a in e.compared], [_failing(f) for f in e.findings])
    if found is None:
        return "differs", region(e) or UNKNOWN
    if found.profile:
        return "explained", f"as {found.profile}: {found.words}"
    return "differs", found.words


def _waived(e: Evidence) -> int | None:
    """The steps that a waiver of the requirement allows; in any call shape those that one of the operation does."""
    waivers, requirement = e.item.offer.waivers, e.item.requirement
    if e.item.check != CALL_SHAPES:
        return waivers.get(requirement.id)
    same = requirement.id.rpartition("/")[0]
    return max((steps for id_, steps in waivers.items() if id_.rpartition("/")[0] == same), default=None)


def shown(e: Evidence) -> Witness:
    """The witness of the smallest call that differs."""
    last = e.findings[-1]
    finding = last if e.minimal_last else min(e.findings, key=lambda f: f.compared.actual.value.size)
    asked, comparison = finding.compared, finding.difference.comparison
    where: Array = comparison.where if comparison is not None else np.zeros(1, np.int64)
    return witness(e, asked, where)


def _answered(asked: Judged) -> Observed:
    assert asked.case is not None, "an operation's"
    return Observed(asked.case, asked.actual.value)


def _failing(finding: Finding) -> Observed:
    comparison = finding.difference.comparison
    return replace(_answered(finding.compared), where=None if comparison is None else comparison.where)


def _at_ties(profile: Profile, finding: Finding) -> bool:
    """Whether every point that differs lies within four ulps of a tie."""
    case, comparison = finding.compared.case, finding.difference.comparison
    if case is None or comparison is None or finding.own or case.configuration.operation == "dequantize":
        return False
    elements = flat(case)
    with np.errstate(all="ignore"):
        w = comparison.where
        reals = profile.real_per_code(elements.scale[w], case.configuration.grid)
        quotient = elements.x[w].astype(np.float64) / reals
        distance = np.abs(quotient - np.floor(quotient) - 0.5)
        near = 4 * float(np.finfo(np.float32).eps) * np.maximum(np.abs(quotient), 1.0)
    # Past about 2^20 codes no float is far from a tie, so nothing there is excused.
    return bool(np.all((distance <= near) & (near < 0.25)))  # noqa: PLR2004 - halfway to the next code's middle
