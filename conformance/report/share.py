"""How much of the plan a verdict rests on, and whether that is as much as was required.

A check that the backend refused (``Unsupported``) counts as missing: to refuse must not look better than to differ.
"""

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halfeven.conformance.report.model import Result

__all__ = ["EACH", "UNDOCUMENTED", "counted", "requirement_share", "share", "unmet"]

EACH = "each"
"""The default: each requirement of what the backend offers was checked at least once, a quarter of the checks ran."""
UNDOCUMENTED = "undocumented"
"""The check of what the profile does not speak of: nobody can run it, so it is no part of a share."""
_WORDS = (EACH, "all", "any")
_PERCENT = 100
_CROSSED = "call-shapes"
_LEAST = 4  # of so many checks one is to run


def requirement_share(given: str) -> str:
    """What ``--require`` was given, checked: ``each``, ``all``, ``any``, or a share as a number from 0 to 1.

    Raises:
        ValueError: it is none of these.

    >>> requirement_share("90%")
    '0.9'
    """
    word = str(given).strip()
    if word in _WORDS:
        return word
    try:
        number = float(word.removesuffix("%")) / (_PERCENT if word.endswith("%") else 1)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        msg = f"require={given!r} is not accepted: give {', '.join(_WORDS)}, or a share such as 0.9 or 90%"
        raise ValueError(msg)
    return repr(number)


def counted(results: Sequence["Result"]) -> list["Result"]:
    """The results that a share is a share of."""
    return [r for r in results if r.check not in {UNDOCUMENTED, "waiver"}]


def share(results: Sequence["Result"]) -> float:
    """The checks that ran, of those planned; 0 where nothing was planned."""
    planned = counted(results)
    return sum(map(_ran, planned)) / len(planned) if planned else 0.0


def _ran(r: "Result") -> float:
    """How much of a check ran: the share of its calls that the backend did not refuse."""
    if r.outcome == "not run":
        return 0.0
    return 1 - r.refused / r.asked if r.asked else 1.0


def _checked(results: Sequence["Result"]) -> bool:
    """Whether a check of these ran, and most of the calls were answered."""
    ran = [r for r in results if r.outcome != "not run"]
    if ran and ran[0].check == _CROSSED:  # a backend may lack one of the granularities that it crosses
        return True
    return bool(ran) and 2 * sum(r.refused for r in ran) <= sum(r.asked for r in ran)


def unmet(results: Sequence["Result"], require: str, lacks: Collection[str] = ()) -> str:
    """Why the results of one backend are less than ``require``, in words; empty where they are enough.

    Args:
        results: one for each check that was planned.
        require: as ``requirement_share`` gives it.
        lacks: the requirements that the backend declares not to offer; what it refuses of these is not missed.
    """
    planned = [r for r in counted(results) if r.outcome != "not run" or r.requirement not in lacks]
    refused = [r for r in planned if r.outcome == "not run" or r.refused]
    if not refused or require == "any":
        return ""
    whole, what = len(planned), "checks were not run"
    if require == EACH:
        by: dict[str, list[Result]] = {}
        for r in planned:
            by.setdefault(r.requirement, []).append(r)
        never = [name for name, some in by.items() if name not in lacks and not _checked(some)]
        if never:
            hardly = any(r.outcome != "not run" for name in never for r in by[name])
            what = f"requirements were never checked{', or in less than half of their calls' if hardly else ''}"
            missing, whole = len(never), len(by)
            refused = [r for r in refused if r.requirement in never]
        else:
            missing = round(whole * (1 - share(planned))) if _LEAST * share(planned) < 1 else 0
    else:
        missing = sum(r.outcome == "not run" for r in refused)
        if require != "all" and share(planned) >= float(require):
            return ""
    if not missing:
        return ""
    first = min(refused, key=lambda r: (r.outcome != "not run", r.id))
    return f"{missing:,} of {whole:,} {what}, such as {first.requirement}: {first.detail or 'no reason was recorded'}"
