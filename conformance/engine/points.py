"""The point of a formula's behaviour that gives the answers seen: the cause of a difference, for any implementation.

A call decides only the choices that the formula reads while it answers it. Where a point fails a call, one of the
choices read there must be another; and for all points that agree in what a call reads, the call is answered once.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from typing import Any

from halfeven.conformance.engine.call import Answer
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.requirement import Arguments
from halfeven.reference.behaviour import Behaviour
from halfeven.reference.catalogue import Formula

__all__ = ["nearest_point", "recording"]

_CHANGES = 3  # choices, away from where a search begins
_SECONDS = 30.0  # of a core, for formulas that are slow; others come to an end before


def nearest_point(
    formula: Formula,
    asked: Sequence[tuple[Arguments, Answer]],
    seconds: float = _SECONDS,
    releases: Iterable[Behaviour] = (),
) -> Behaviour | None:
    """The behaviour with the fewest choices other than the formula's own, or a release's, that gives all the answers.

    Args:
        formula: one that has a behaviour; of one without there is no point.
        asked: the calls, and what came of each.
        seconds: of a core, after which nothing is found.
        releases: behaviours of the same formula, from which it is begun again where nothing near its own is found.
    """
    document = formula.behaviour
    if document is None:
        return None
    rows = [_Row(formula, arguments, seen) for arguments, seen in asked]
    begin = time.process_time()
    # The fewer choices a call reads, the more its failure tells.
    rows.sort(key=lambda row: len(row.fits(document)[0]))
    starts = dict.fromkeys((document, *releases))
    until = [begin + seconds * (i + 1) / len(starts) for i in range(len(starts))]
    tried = (_near(start, rows, end) for start, end in zip(starts, until, strict=True))
    return next((found for found in tried if found is not None), None)


def _near(start: Behaviour, rows: Sequence["_Row"], until: float) -> Behaviour | None:
    """The behaviour nearest to one that gives all the answers, if there is one."""
    order = count()
    waiting: list[tuple[int, int, Behaviour]] = [(0, next(order), start)]
    tried = {start}
    while waiting and time.process_time() < until:
        away, _, point = heappop(waiting)
        read = next((read for read, fits in (row.fits(point) for row in rows) if not fits), None)
        if read is None:
            return point
        if away == _CHANGES:
            continue
        for near in _changed(point, read):
            if near not in tried:
                tried.add(near)
                heappush(waiting, (len(start.changes(near)), next(order), near))
    return None


def _changed(point: Behaviour, read: Mapping[str, Any]) -> Iterator[Behaviour]:
    words = point.choices()
    for name in read:
        yield from (replace(point, **{name: value}) for value in words[name])


class _Row:
    """A call and the answer seen; for what was read so far, whether the formula gives that answer."""

    def __init__(self, formula: Formula, arguments: Arguments, seen: Answer) -> None:
        self._formula, self._arguments, self._seen = formula, arguments, seen
        self._known: list[tuple[dict[str, Any], bool]] = []

    def fits(self, point: Behaviour) -> tuple[dict[str, Any], bool]:
        """The choices that the call reads at a point, and whether the point gives the answer."""
        for read, fits in self._known:
            if all(getattr(point, name) == value for name, value in read.items()):
                return read, fits
        read = {}
        given = answer_of(self._formula.at(recording(point, read)), self._arguments)
        self._known.append((read, not differences(given, self._seen).differing))
        return self._known[-1]


def recording(point: Behaviour, read: dict[str, Any]) -> Behaviour:
    """The same behaviour, which notes in ``read`` each choice that is looked at."""
    names = set(point.choices())

    kind: Any = type(point)

    class Recording(kind):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            if name in names:
                read[name] = value
            return value

    made: Behaviour = Recording(**{name: getattr(point, name) for name in names})
    read.clear()  # the constructor checks every choice
    return made
