"""What gives most of the answers to a documented function where nothing gives all, and in which calls it does not."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from halfeven.conformance.engine.argument import Argument, of_arguments, of_sizes, some_arguments
from halfeven.conformance.engine.call import Answer, CallShape
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.engine.points import nearest_point
from halfeven.conformance.engine.region import Region, of_shapes
from halfeven.conformance.requirement import Arguments
from halfeven.reference.catalogue import Formula

__all__ = ["Mostly", "Row", "agrees", "by_size", "exactly", "gives", "holds", "mostly", "partly"]

_NOT_ALL = 1 - 1e-6  # what gives all of these is refuted by an answer that was not kept
_LEAST = 3  # calls: of fewer whatever they have in common may be an accident
_SECONDS = 10.0  # of a core, for the behaviours of single checks


@dataclass(frozen=True, eq=False)
class Row:
    """A call of a function, what came of it, and which check made it."""

    arguments: Arguments
    seen: Answer
    shape: CallShape
    check: str


@dataclass(frozen=True, eq=False)
class Mostly:
    """What gives most answers.

    Attributes:
        formula: the document's formula at another behaviour, or another version.
        share: of the answers that it gives.
        where: the calls in which it does not, if they have something in common.
    """

    formula: Formula
    share: float
    where: Region | Argument | None

    def leaves(self, row: Row) -> bool:
        """Whether a call is one of those in which it is not known what is done, or may be one."""
        is_open = isinstance(self.where, Argument) and self.where.is_open(row.arguments)
        return is_open or (self.where is not None and holds(self.where, row))


def holds(where: Region | Argument, row: Row) -> bool:
    """Whether a call is one of those."""
    return where.has(row.arguments) if isinstance(where, Argument) else where.holds(row.shape)


def gives(function: Callable[..., Any], row: Row) -> bool:
    """Whether a function gives the answer that was seen."""
    return not differences(answer_of(function, row.arguments), row.seen).differing


def agrees(claimed: Formula, row: Row) -> bool:
    """Whether the answer is the document's, in any of the readings that it admits."""
    readings = () if claimed.readings is None else claimed.readings.points
    return gives(claimed.function, row) or any(gives(claimed.at(point), row) for point in readings)


def _common(rows: Sequence[Row], differ: Sequence[bool]) -> Region | Argument | None:
    """What the calls that differ have in common, by how they were made or by an argument."""
    bad, good = ([r for r, d in zip(rows, differ, strict=True) if d is side] for side in (True, False))
    if len(bad) < _LEAST:
        return None
    shapes = [r.shape for r in bad], [r.shape for r in good]
    exact = of_shapes(*shapes, alone=True) or exactly(bad, good) or by_size(bad, good)
    return exact or of_shapes(*shapes) or partly(bad, good)


def exactly(bad: Sequence[Row], good: Sequence[Row]) -> Argument | None:
    """The argument by which all calls that differ are told from all that agree; a refusal tells nothing."""
    return of_arguments([r.arguments for r in bad], _answered(good))


def partly(bad: Sequence[Row], good: Sequence[Row]) -> Argument | None:
    """The argument that all calls that differ have in common, and few others.

    What calls of one check have in common tells of the check: only where several differ is anything said.
    """
    several = len({r.check for r in bad}) > 1
    return some_arguments([r.arguments for r in bad], _answered(good)) if several else None


def by_size(bad: Sequence[Row], good: Sequence[Row]) -> Argument | None:
    """The limit of an array's size above which all calls differ, and none below: of the same checks, and of all."""
    checks = {r.check for r in bad}
    if of_sizes([r.arguments for r in bad], _answered([r for r in good if r.check in checks])) is None:
        return None
    return of_sizes([r.arguments for r in bad], _answered(good))


def _answered(rows: Sequence[Row]) -> list[Arguments]:
    return [r.arguments for r in rows if r.seen.kind == "returned"]


def mostly(claimed: Formula, rows: Sequence[Row], versions: Sequence[Formula]) -> Mostly | None:
    """What gives more answers than the document, and the most; None where nothing does.

    Args:
        claimed: the formula that the backend is held to.
        rows: its calls, but for those that raised where the document gives an answer.
        versions: others to try, the likeliest first.
    """
    best, differ = claimed, [not agrees(claimed, r) for r in rows]
    for other in (*versions, *_at_points(claimed, rows)):
        if (other.id, other.behaviour) != (claimed.id, claimed.behaviour):
            wrong = [not gives(other.function, r) for r in rows]
            best, differ = (other, wrong) if sum(wrong) < sum(differ) else (best, differ)
    share = min(1 - sum(differ) / len(rows), _NOT_ALL)
    return None if best is claimed else Mostly(best, share, _common(rows, differ))


def _at_points(claimed: Formula, rows: Sequence[Row]) -> Iterator[Formula]:
    """The document's formula at the behaviours that give all answers of one check, each once."""
    if claimed.behaviour is None:
        return
    by: dict[str, list[Row]] = {}
    for row in rows:
        by.setdefault(row.check, []).append(row)
    until, known = time.process_time() + _SECONDS, {claimed.behaviour}
    for some in by.values():
        left = until - time.process_time()
        if left <= 0:
            return
        if any(not agrees(claimed, r) for r in some):
            point = nearest_point(claimed, [(r.arguments, r.seen) for r in some], left)
            if point is not None and point not in known:
                known.add(point)
                yield replace(claimed, behaviour=point)
