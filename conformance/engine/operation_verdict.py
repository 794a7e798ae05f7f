"""What the evidence of an operation comes to, before it is explained."""

import numpy as np

from halfeven.conformance.engine.contract import OWN
from halfeven.conformance.engine.evidence import Evidence, Finding
from halfeven.conformance.engine.fitting.elements import flat
from halfeven.conformance.report.model import OutcomeName
from halfeven.conformance.requirement import CALL_SHAPES
from halfeven.reference.profile import Profile

__all__ = ["judged"]

_WORDS = {
    "composition": "fake_quantize is not dequantize after quantize",
    "idempotence": "quantize after dequantize does not return the code",
    "monotone": "a larger input gets a lower code",
    "powers-of-two": "x * 2^k with s * 2^k gets another code than x with s",
}
_SIGN = "gives a zero of the other sign"  # no model has a field for it


def judged(e: Evidence) -> tuple[OutcomeName, str, bool]:
    """What a difference is, what is known of it by now, and whether its cause is still to be found."""
    profile = e.setting.profile
    budget = _waived(e)
    if budget is not None and e.steps <= budget and all(_at_ties(profile, f) for f in e.findings):
        return "budgeted", f"within the waiver of {budget} {e.unit} at ties", False
    if any(f.own for f in e.findings):
        return "differs", _WORDS.get(e.item.check, "the backend differs from itself"), e.item.check not in OWN
    return ("differs", _SIGN, False) if e.item.check == "zero-sign" else ("differs", "", True)


def _waived(e: Evidence) -> int | None:
    """The steps that a waiver of the requirement allows; in any call shape those that one of the operation does."""
    waivers, requirement = e.item.offer.waivers, e.item.requirement
    if e.item.check != CALL_SHAPES:
        return waivers.get(requirement.id)
    same = requirement.id.rpartition("/")[0]
    return max((steps for id_, steps in waivers.items() if id_.rpartition("/")[0] == same), default=None)


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
