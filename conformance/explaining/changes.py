"""Which choices give a result: every single change of the document's, and pairs of them where no single one does."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.codes import codes_between, reading_code
from halfeven.conformance.codes import other as other_codes
from halfeven.conformance.explaining.given import Given, by_profile
from halfeven.conformance.explaining.known import spelled
from halfeven.conformance.explaining.numbers import bits, decimal, exactly
from halfeven.conformance.explaining.steps import is_tie, steps
from halfeven.reference import Grid
from halfeven.reference.blocks import Array
from halfeven.reference.exact import quotient
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES

__all__ = ["Change", "changes"]

_BEFORE = ("scale", "codes per real", "1/s", "quotient")
Wanted = Callable[[Profile, Given], bool]


@dataclass(frozen=True)
class Change:
    """What an implementation does otherwise than the document, and what that makes of the value.

    Attributes:
        codes: of each choice that is changed.
        words: what it does where the document does what.
        result: the code or real that it gives, in decimal.
        because: the first step that comes out otherwise; empty where the words say it all.
    """

    codes: tuple[str, ...]
    words: str
    result: str
    because: str = ""


def changes(profile: Profile, given: Given, wanted: Wanted) -> tuple[Change, ...]:
    """The fewest changes of the profile's model, or of what it is given, that give what is ``wanted``.

    Choices that a known system makes come first.
    """
    single = sorted(
        (m for m in profile.model.neighbours() if _gives(profile, m, given, wanted)),
        key=lambda m: not any(_has(p.model, profile.model, m) for p in PROFILES.values()),
    )
    found = [_change(profile, m, given) for m in single] + [*_readings(profile, given, wanted)]
    if found:
        return tuple(found)
    return tuple(_change(profile, m, given) for m in _pairs(profile.model) if _gives(profile, m, given, wanted))


def _has(known: EvaluationModel, claimed: EvaluationModel, changed: EvaluationModel) -> bool:
    return all(getattr(known, name) == does for name, (_, does) in claimed.changes(changed).items())


def _pairs(claimed: EvaluationModel) -> Iterator[EvaluationModel]:
    singles = [(next(iter(claimed.changes(m))), m) for m in claimed.neighbours()]
    for (first, a), (second, b) in combinations(singles, 2):
        if first != second:
            yield replace(a, **{second: getattr(b, second)})


def _gives(profile: Profile, model: EvaluationModel, given: Given, wanted: Wanted) -> bool:
    try:
        return wanted(replace(profile, model=model), given)
    except (ValueError, TypeError):  # a model that is not defined for these dtypes
        return False


def _change(profile: Profile, model: EvaluationModel, given: Given) -> Change:
    found = replace(profile, model=model)
    document, does = steps(profile, given), steps(found, given)
    return Change(
        codes_between(profile.model, model),
        profile.model.against(model),
        spelled(given, by_profile(found, given)),
        _because(given, model.rounding, document, does),
    )


def _because(given: Given, rounding: str, document: dict[str, Array], does: dict[str, Array]) -> str:
    """The steps before the rounding that come out otherwise; where none does, what the rounding had to decide."""
    other = {name: value for name, value in does.items() if name in _BEFORE and _differs(document.get(name), value)}
    if not other and "half" in rounding and "rounded" in does and _differs(document["rounded"], does["rounded"]):
        return _tie(given, does["quotient"])
    said = [f"{name} is {decimal(value)} ({bits(value)})" for name, value in other.items()]
    return ", ".join(said) + (", a tie" if "quotient" in other and is_tie(other["quotient"]) else "")


def _differs(document: Array | None, value: Array) -> bool:
    return document is None or document.dtype != value.dtype or bits(document) != bits(value)


def _tie(given: Given, computed: Array) -> str:
    if not is_tie(computed) or given.operation == "dequantize":
        return ""
    x, s = float(given.x[0]), float(given.scale)
    if not (np.isfinite([x, s]).all() and s):
        return ""
    exact = quotient(x, s)
    if (2 * exact).denominator == 1:
        return f"{exactly(exact)} is a tie"
    return f"{computed.dtype.name} makes a tie of {exactly(exact, quotient(float(computed[0]), 1))}"


def _readings(profile: Profile, given: Given, wanted: Wanted) -> Iterator[Change]:
    for name, misread in _READINGS.items():
        other = misread(given)
        if other is not None and _gives(profile, profile.model, other, wanted):
            code, words = reading_code(name), other_codes()["reading"][name][1]
            yield Change((code,), words, spelled(other, by_profile(profile, other)))


def _narrow(given: Given) -> Given | None:
    g = given.grid
    return replace(given, grid=Grid(g.qmin + 1, g.qmax)) if g.qmin < 0 and g.qmin + g.qmax < 0 else None


def _scale_off(ulps: int) -> Callable[[Given], Given | None]:
    def misread(given: Given) -> Given | None:
        return replace(given, scale=step(given.scale, ulps)) if np.isfinite(given.scale) else None

    return misread


#: By the name of the code: the value as it is given to one who misreads an argument; None where that is the same.
_READINGS: dict[str, Callable[[Given], Given | None]] = {
    "narrow grid": _narrow,
    "scale above": _scale_off(1),
    "scale below": _scale_off(-1),
    "zero point": lambda given: replace(given, zero=0) if given.zero else None,
    "negated zero point": lambda given: replace(given, zero=-given.zero) if given.zero else None,
}
