"""Why the answers to a documented function differ: the choices of its behaviour, a release, or the calls' shape."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from halfeven.conformance.codes import property_code
from halfeven.conformance.configuration import Array
from halfeven.conformance.engine.call import Answer, arguments_of, breaches
from halfeven.conformance.engine.contract import raised
from halfeven.conformance.engine.evidence import Judged
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.engine.kept import Sample
from halfeven.conformance.engine.points import nearest_point
from halfeven.conformance.engine.region import Region, of_shapes
from halfeven.conformance.engine.told import Told, choices, fewest, said, unknown
from halfeven.conformance.report.model import Cause, OutcomeName
from halfeven.conformance.requirement import Arguments
from halfeven.reference.behaviour import Behaviour
from halfeven.reference.catalogue import FORMULAS, Formula

__all__ = ["FunctionWhy"]

_Row = tuple[Arguments, Answer]


@dataclass(frozen=True, eq=False)
class FunctionWhy:
    """The explanation of all answers to the calls of one formula.

    Attributes:
        claimed: the formula that the backend is held to.
        samples: what is kept of the answers.
        release: the backend's name, its library and that one's version, to name a version of its own first.
        is_doubted: whether fresh answers have refuted what was found.
    """

    claimed: Formula
    samples: Sequence[Sample]
    release: tuple[str, str, str] = ("", "", "")
    is_doubted: bool = False

    @cached_property
    def rows(self) -> list[_Row]:
        """All calls that were answered, and their answers."""
        return [row for sample in self.samples for row in _rows(sample)]

    @cached_property
    def answered(self) -> list[_Row]:
        """Those but for errors where the document gives a result: what else is done may be known all the same."""
        return [row for row in self.rows if not self._crashes(row)]

    @cached_property
    def point(self) -> Behaviour | None:
        """A behaviour that gives all answers: a release's, or else the one with the fewest choices changed."""
        if self.is_doubted or self.claimed.behaviour is None:
            return None
        if self.version is not None and type(self.version.behaviour) is type(self.claimed.behaviour):
            return self.version.behaviour
        found = nearest_point(self.claimed, self.rows)
        if found is None and 0 < len(self.answered) < len(self.rows):
            found = nearest_point(self.claimed, self.answered)
        return None if found == self.claimed.behaviour else found

    @cached_property
    def version(self) -> Formula | None:
        """The document or a version of it that gives all the answers, where that is not what is claimed."""
        if self.is_doubted or not self.answered:
            return None
        name, library, version = self.release
        release = ".".join(version.split(".")[:2])
        own = (name.rpartition(".")[2], f"{library}-", *([release] if release else []))
        versions = FORMULAS.versions(self.claimed.id.partition("@")[0])
        for other in sorted(versions, key=lambda f: _rank(f.version, own, release)):
            if other.id != self.claimed.id and all(_gives(other.function, row) for row in self.answered):
                return other
        return None

    @cached_property
    def region(self) -> Region | None:
        """What every call that differs has and no other, as far as the calls' shapes tell."""
        bad, good = ([c for s in self.samples for c in getattr(s, side)] for side in ("differing", "agreeing"))
        return of_shapes(bad, good)

    @property
    def key(self) -> object:
        """What it says."""
        return (self.point, self.version and self.version.id) if self.point or self.version else None

    def doubted(self) -> "FunctionWhy":
        """Without what was refuted."""
        return replace(self, is_doubted=True)

    def told(self, sample: Sample, outcome: OutcomeName, differs: str) -> Told:
        """The choices that a result's own calls need; else a release, the calls' shape, the error, or nothing."""
        rows = _rows(sample)
        found = self._choices(rows)
        words = said(found) or differs
        crashes = any(map(self._unexplained, rows)) and differs.startswith("raises")
        also = (raised(differs),) if crashes else ()
        if self.version is not None and not crashes:
            origin = _origin(self.version)
            measured = Cause(property_code("documented"), f"does what {origin}")
            return Told("explained", f"as {origin}: {words}", found or (measured,))
        if found:
            return Told("differs", words, (*found, *also))
        if self.region is not None:
            where = self.region.words
            cause = Cause(self.region.code, f"gives other answers with {where}", where)
            return Told(outcome, f"differs only with {where}: {differs}", (cause,))
        if differs.startswith("raises"):
            return Told(outcome, differs, (raised(differs),))
        return Told(outcome, differs, (unknown(),))

    def refuted(self, compared: Sequence[Judged]) -> Mapping[int, Array]:
        """The calls that the behaviour found, or the version, does not answer so."""
        functions = [] if self.point is None else [self.claimed.at(self.point)]
        functions += [] if self.version is None else [self.version.function]
        rows = ((a, (a.arguments, a.actual)) for a in compared if not breaches(a.actual))
        wrong = (a for a, row in rows if not self._crashes(row) and not all(_gives(f, row) for f in functions))
        return {id(a): np.zeros(1, int) for a in wrong}

    def _crashes(self, row: _Row) -> bool:
        """Whether it raises where the document gives a result: an error has a cause of its own."""
        arguments, seen = row
        return seen.kind == "raised" and answer_of(self.claimed.function, arguments).kind != "raised"

    def _unexplained(self, row: _Row) -> bool:
        """Whether it raises where neither the document nor the release found does."""
        return self._crashes(row) and (self.version is None or not _gives(self.version.function, row))

    def _choices(self, rows: Sequence[_Row]) -> tuple[Cause, ...]:
        behaviour, point = self.claimed.behaviour, self.point
        if behaviour is None or point is None:
            return ()

        def fits(names: tuple[str, ...]) -> bool:
            near = replace(behaviour, **{name: getattr(point, name) for name in names})
            return all(_gives(self.claimed.at(near), row) for row in told)

        # Of a point that not all answers follow, those that do say which choices they need.
        told = [row for row in rows if _gives(self.claimed.at(point), row)]
        if not told or fits(()):
            return ()
        return choices(behaviour, point, fewest([*behaviour.changes(point)], fits))


def _rows(sample: Sample) -> list[_Row]:
    return [(arguments_of(c.named), a) for c, a in zip(sample.calls, sample.answers, strict=True)]


def _gives(function: Callable[..., Any], row: _Row) -> bool:
    arguments, seen = row
    return not differences(answer_of(function, arguments), seen).differing


def _rank(version: str, own: tuple[str, ...], release: str) -> tuple[bool, bool]:
    """The versions of the library first, of those the installed release."""
    return not (version and version.startswith(own)), not (release and version.endswith(release))


def _origin(formula: Formula) -> str:
    """Whose behaviour it is, to follow "as": ``torchao 0.18 was measured to do``."""
    system, version = formula.system, formula.version
    return f"{system} {version} was measured to do" if version else f"{system} documents it"
