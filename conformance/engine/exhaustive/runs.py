"""Runs of equal values along a line of inputs, and where two lines differ."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.conformance.engine.compare import compare_codes, compare_reals
from halfeven.reference.blocks import Array

__all__ = ["Differing", "Runs", "differing", "runs_of"]

_DENSE = 8  # inputs to a run: with fewer, one comparison of all inputs is faster than one of the runs
_SHOWN = 64  # differing inputs of one comparison that are kept


@dataclass(frozen=True, eq=False)
class Runs:
    """Values, each held up to (not including) the place ``ends`` says; the places begin at 0.

    Attributes:
        judged: of each run, whether anything is expected of it; None where of all.
    """

    values: Array
    ends: Array
    judged: Array | None = None

    @property
    def size(self) -> int:
        """The number of places."""
        return int(self.ends[-1]) if self.ends.size else 0

    @property
    def points(self) -> int:
        """The places of which anything is expected."""
        if self.judged is None:
            return self.size
        return int(np.diff(self.ends, prepend=0)[self.judged].sum())

    def at(self, places: Array) -> Array:
        """The values at places."""
        return np.asarray(self.values[np.searchsorted(self.ends, places, "right")])

    def part(self, first: int, count: int) -> "Runs":
        """The runs of the places from ``first`` on, which becomes place 0."""
        begin = int(np.searchsorted(self.ends, first, "right"))
        end = int(np.searchsorted(self.ends, first + count, "left")) + 1
        ends = np.minimum(self.ends[begin:end], first + count) - first
        return Runs(self.values[begin:end], ends, None if self.judged is None else self.judged[begin:end])


@dataclass(frozen=True, eq=False)
class Differing:
    """How many of ``points`` places differ; the first and last of each run that does, and what came there."""

    points: int
    count: int
    places: Array
    values: Array


def runs_of(value: Any, size: int) -> Runs | None:
    """The runs that an answer to ``size`` inputs holds; None where it holds none, or not as many."""
    match value:
        case {"values": np.ndarray() as values, "counts": np.ndarray() as counts}:
            ends = np.cumsum(counts, dtype=np.int64)
            if values.ndim == counts.ndim == 1 and len(values) == len(counts) > 0 and ends[-1] == size:
                return Runs(values, ends) if counts.min() > 0 else None
    return None


def differing(expected: Runs, actual: Runs, *, codes: bool) -> Differing:
    """Where two lines of the same length differ: codes by value, reals by bits, any NaN being any NaN."""
    compare = compare_codes if codes else compare_reals
    if len(actual.ends) * _DENSE > actual.size:
        every, came = _spread(expected.values, expected), _spread(actual.values, actual)
        judged = None if expected.judged is None else _spread(expected.judged, expected)
        where = compare(every, came).where
        where = where if judged is None else where[judged[where]]
        return Differing(expected.points, len(where), where[:_SHOWN], came[where[:_SHOWN]])
    ends = np.union1d(expected.ends, actual.ends)
    starts = np.concatenate([[0], ends[:-1]])
    wanted, came = expected.at(starts), actual.at(starts)
    bad = compare(wanted, came).where
    if expected.judged is not None:
        bad = bad[expected.judged[np.searchsorted(expected.ends, starts[bad], "right")]]
    places = np.unique(np.concatenate([starts[bad], ends[bad] - 1]))[:_SHOWN]
    return Differing(expected.points, int((ends[bad] - starts[bad]).sum()), places, actual.at(places))


def _spread(values: Array, over: Runs) -> Array:
    return np.repeat(values, np.diff(over.ends, prepend=0))
