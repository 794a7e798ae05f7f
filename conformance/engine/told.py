"""What is said of one result once all answers are explained; what explanations of operations and functions share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from halfeven.conformance.codes import NEAREST, UNKNOWN, code_of
from halfeven.conformance.configuration import Array, Case, Granularity
from halfeven.conformance.engine.call import Call
from halfeven.conformance.engine.evidence import Evidence, Judged
from halfeven.conformance.engine.kept import Sample
from halfeven.conformance.engine.tries import Trial
from halfeven.conformance.report import causes
from halfeven.conformance.report.model import Cause, OutcomeName, Result
from halfeven.conformance.report.words import percent
from halfeven.reference import Grid
from halfeven.reference.behaviour import Behaviour

__all__ = ["Deciding", "Told", "Why", "choices", "fewest", "said", "unknown", "unsaid"]


@dataclass(frozen=True)
class Told:
    """What is said of a result: its outcome, where that is known better by now, its cause in words, and one by one."""

    outcome: OutcomeName
    cause: str
    causes: tuple[Cause, ...]


@dataclass(frozen=True, eq=False)
class Deciding:
    """Calls that differ by one cause alone, or else such as would not differ without it.

    Attributes:
        asked: of a function its calls; of an operation single elements, of any grid and granularity.
        shows: whether a trial differs by the cause.
    """

    asked: Sequence[Call | Case]
    shows: Callable[[Evidence, Trial], bool]


class Why(Protocol):
    """An explanation of all that a backend answered to an operation or a formula in a dtype."""

    @property
    def key(self) -> object:
        """What it says: equal where two explanations say the same, None where there is nothing to try."""

    @property
    def pieces(self) -> Sequence[tuple[Grid, Granularity]]:
        """Of an operation the grids and granularities of which it says what it does not say of all."""

    def told(self, sample: Sample, outcome: OutcomeName, differs: str) -> Told:
        """What it says of a result with these answers, which ``differs`` so."""

    def deciding(self, sample: Sample, cause: Cause) -> Deciding | None:
        """Of a result with these answers the calls that differ by one of its causes alone, else by it beside others.

        None where there is none, or the cause is no choice.
        """

    def refuted(self, compared: Sequence[Judged]) -> Mapping[int, Array]:
        """By ``id``, the answers that it does not give, and where in them."""

    def doubted(self) -> "Why":
        """The same where fresh answers have refuted it: it says what is nearest, and no cause."""


def choices(claimed: Behaviour, found: Behaviour, names: Sequence[str], where: str = "") -> tuple[Cause, ...]:
    """A cause for each of the choices named, in which ``found`` differs from what is claimed."""
    words = claimed.choices()
    return tuple(
        Cause(
            code_of(name, getattr(found, name), claimed),
            f"{words[name][getattr(found, name)]} where the document {words[name][getattr(claimed, name)]}",
            where,
        )
        for name in names
    )


def fewest(names: Sequence[str], fits: Any) -> tuple[str, ...]:
    """The fewest of the names that fit; all of them where no fewer do."""
    some = (few for n in range(1, len(names)) for few in combinations(names, n))
    return next((few for few in some if fits(few)), tuple(names))


def said(found: Sequence[Cause]) -> str:
    """The causes in one line."""
    return "; ".join(f"{c.sentence} ({c.where})" if c.where else c.sentence for c in found)


def unknown(nearest: str = "", share: float = 0.0, where: str = "") -> Cause:
    """The cause where nothing known gives all the answers; ``nearest`` gives a share of them."""
    if not nearest:
        return Cause(UNKNOWN, causes.UNKNOWN, where)
    counted = percent(int(np.floor(share * 1_000_000)), 1_000_000)
    return Cause(NEAREST, f"{causes.UNKNOWN}; the nearest {nearest}", where, f"{counted} of the answers")


def unsaid(result: Result, error: Exception) -> Result:
    """A result of which not all is said, because of a mistake of ours: that is told instead."""
    said_ = f"error in halfeven itself: {type(error).__name__}: {error}"
    return replace(result, cause=result.cause or said_, detail="\n".join(filter(None, (result.detail, said_))))
