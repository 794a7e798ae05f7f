"""Why the answers to a documented function differ: the choices of its behaviour, a release, or the calls' shape."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from halfeven.conformance.codes import property_code
from halfeven.conformance.configuration import Array, Granularity
from halfeven.conformance.engine.argument import Argument
from halfeven.conformance.engine.call import CallShape, arguments_of, breaches
from halfeven.conformance.engine.contract import by_kind, fault, formed, raised
from halfeven.conformance.engine.evidence import Evidence, Judged
from halfeven.conformance.engine.judge import Difference, answer_of, differences, in_form
from halfeven.conformance.engine.kept import Sample
from halfeven.conformance.engine.misread import Misread, misread
from halfeven.conformance.engine.mostly import Mostly, Row, agrees, by_size, exactly, gives, holds, mostly, partly
from halfeven.conformance.engine.points import nearest_point
from halfeven.conformance.engine.region import Region, of_shapes
from halfeven.conformance.engine.told import Deciding, Told, choices, fewest, said, unknown
from halfeven.conformance.engine.tries import Trial
from halfeven.conformance.report.model import Cause, OutcomeName
from halfeven.reference import Grid
from halfeven.reference.behaviour import Behaviour
from halfeven.reference.catalogue import FORMULAS, Formula

__all__ = ["FunctionWhy"]


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
    def rows(self) -> list[Row]:
        """All calls that were answered without a fault, and their answers."""
        return [row for sample in self.samples for row in _rows(sample) if not breaches(row.seen)]

    @cached_property
    def answered(self) -> list[Row]:
        """Those but for errors and forms that are not the document's: what else is done may be known all the same."""
        return self._parted[0]

    @cached_property
    def point(self) -> Behaviour | None:
        """A behaviour that gives all answers: a release's, or else the one with the fewest choices changed."""
        if self.is_doubted or self.claimed.behaviour is None:
            return None
        if self.version is not None and type(self.version.behaviour) is type(self.claimed.behaviour):
            return self.version.behaviour
        if self._has_lost_answers or (self._is_admitted and not self._parted[1]):
            return None
        own = type(self.claimed.behaviour)
        releases = [f.behaviour for f in self._versions if type(f.behaviour) is own]
        some = [self.rows]
        some += [self.answered] if not self._is_admitted and 0 < len(self.answered) < len(self.rows) else []
        if len(self._numbers) > len(self.answered) and not self._admits(self._numbers):
            some.append(self._numbers)
        points = (
            nearest_point(self.claimed, [(r.arguments, r.seen) for r in rows], releases=releases) for rows in some
        )
        found = next((p for p in points if p is not None), None)
        return None if found == self.claimed.behaviour else found

    @cached_property
    def version(self) -> Formula | None:
        """The document or a version of it that gives all the answers, where that is not what is claimed."""
        if self.is_doubted or not self.rows:
            return None
        others = [f for f in self._versions if f.id not in {self.claimed.id, *self._refuted}]
        some = [self.rows, self.answered] if self.answered else [self.rows]
        given = (f for rows in some for f in others if all(gives(f.function, row) for row in rows))
        # Where the document gives all but errors and forms, a version is known by these.
        apart = self._parted[1] if self._is_admitted else []
        return next((f for f in given if not apart or any(gives(f.function, row) for row in apart)), None)

    @cached_property
    def misread(self) -> Misread | None:
        """The argument that is read otherwise, where no behaviour gives all answers, and this does."""
        if self.is_doubted or self.point or self.version or self._is_admitted:
            return None
        some = [self.rows, self.answered] if len(self.answered) < len(self.rows) else [self.rows]
        return next((found for rows in some if (found := misread(self.claimed, rows))), None)

    @cached_property
    def mostly(self) -> Mostly | None:
        """What gives more answers than the document, where nothing gives all or tells those that differ apart."""
        if self.point or self.version or self.misread or self._alone or not self.answered:
            return None
        found = mostly(self.claimed, self.answered, self._versions)
        return replace(found, where=None) if found and self.is_doubted else found

    @cached_property
    def where(self) -> Region | Argument | None:
        """What tells the calls that differ from all others; where nothing else is known, also from most others."""
        if self.is_doubted or self.point or self.version or self.misread:
            return None
        if self._alone or self.mostly:
            return self._alone
        return by_size(*self._sides) or of_shapes(*self._shapes) or partly(*self._sides)

    @property
    def key(self) -> object:
        """What it says."""
        if self.point or self.version:
            return self.point, self.version and self.version.id
        if self.misread:
            return self.misread
        if self.mostly and self.mostly.where:
            return self.mostly.formula.id, self.mostly.formula.behaviour, self.mostly.where
        return self.where

    @property
    def pieces(self) -> Sequence[tuple[Grid, Granularity]]:
        """No pieces: its calls have grids and granularities of their own."""
        return ()

    def doubted(self) -> "FunctionWhy":
        """Without what was refuted."""
        return replace(self, is_doubted=True)

    def told(self, sample: Sample, outcome: OutcomeName, differs: str) -> Told:
        """The choices that a result's own calls need, else a release, the calls' shape, or nothing; and its errors."""
        rows = _rows(sample)
        found = self._choices(self.point, [self._as_found(row) for row in rows]) if self.point else ()
        apart = self._apart(rows)
        other = [row for row in rows if not breaches(row.seen) and not self._is_right(row)]
        if self.version is not None and other and not apart:
            words = said(found) or differs
            return Told("explained", f"as {_origin(self.version)}: {words}", found or (_measured(self.version),))
        answered = [row for row in other if not self._unexplained(row)]
        if self.version is not None and answered:
            found = found or (_measured(self.version),)
        if found:
            spoilt = next((words for row in rows for words in breaches(row.seen)), "")  # comes first
            return Told("differs", "; ".join(filter(None, (spoilt, said((*found, *apart))))), (*found, *apart))
        if apart and not answered:
            return Told(outcome, differs, apart)
        rest = self._rest(rows, outcome, differs)
        return replace(rest, cause="; ".join(filter(None, (rest.cause, said(apart)))), causes=(*rest.causes, *apart))

    def deciding(self, sample: Sample, cause: Cause) -> Deciding | None:
        """Calls that the choice alone gives; where there are none, those that need it beside others."""
        asked = ((call, self._as_found(row)) for call, row in zip(sample.calls, _rows(sample), strict=True))
        differ = [(call, row) for call, row in asked if not breaches(row.seen) and not self._agrees(row)]
        for shows in self._tests(cause):
            if found := [call for call, row in differ if shows(row)]:
                return Deciding(found, partial(_decides, shows))
        return None

    def refuted(self, compared: Sequence[Judged]) -> Mapping[int, Array]:
        """The calls that are answered otherwise than it says."""
        rows = ((a, Row(a.arguments, a.actual, a.shape, "")) for a in compared if not breaches(a.actual))
        wrong = (a for a, row in rows if not self._foretells(row))
        return {id(a): np.zeros(1, int) for a in wrong}

    @cached_property
    def _parted(self) -> tuple[list[Row], list[Row]]:
        """The rows that are answered in the document's form, and those that are not."""
        known = [(row, self._is_apart(row)) for row in self.rows]
        return [row for row, apart in known if not apart], [row for row, apart in known if apart]

    @cached_property
    def _numbers(self) -> list[Row]:
        """All rows in the document's form, those of another form by their numbers."""
        answered, apart = self._parted
        kept = {id(row): row for row in answered}
        kept |= {id(row): new for row in apart if not self._is_apart(new := self._by_number(row))}
        return [kept[id(row)] for row in self.rows if id(row) in kept]

    def _by_number(self, row: Row) -> Row:
        """A row of another form, in the document's as far as it can be; any other as it is."""
        if not self._is_apart(row):
            return row
        return replace(row, seen=in_form(answer_of(self.claimed.function, row.arguments), row.seen))

    def _as_found(self, row: Row) -> Row:
        """A row as it is where the behaviour found gives it, else by its numbers."""
        return row if self.point and gives(self.claimed.at(self.point), row) else self._by_number(row)

    @cached_property
    def _shapes(self) -> tuple[list[CallShape], list[CallShape]]:
        """How the calls were made that differ, and the others."""
        bad, good = ([c for s in self.samples for c in getattr(s, side)] for side in ("differing", "agreeing"))
        return bad, good

    @cached_property
    def _refuted(self) -> set[str]:
        """The versions that do not give all answers, those that are not kept included."""
        return {name for sample in self.samples for name in sample.refuted}

    @cached_property
    def _has_lost_answers(self) -> bool:
        """Whether a version gives all answers that are kept, and not all others: these would refute its choices too."""
        rows, lost = self.answered or self.rows, (f for f in self._versions if f.id in self._refuted)
        return any(all(gives(f.function, row) for row in rows) for f in lost)

    @cached_property
    def _sides(self) -> tuple[list[Row], list[Row]]:
        """The answers that are not the document's, and the others."""
        known = [(row, self._agrees(row)) for row in self.answered]
        return [row for row, good in known if not good], [row for row, good in known if good]

    @cached_property
    def _is_admitted(self) -> bool:
        """Whether one reading that the document admits gives all answers."""
        return bool(self.answered) and self._admits(self.answered)

    def _admits(self, rows: Sequence[Row]) -> bool:
        points = () if self.claimed.readings is None else self.claimed.readings.points
        functions = (self.claimed.function, *map(self.claimed.at, points))
        return any(all(gives(f, row) for row in rows) for f in functions)

    @cached_property
    def _alone(self) -> Region | Argument | None:
        """What all calls that differ have and no other."""
        return None if self.is_doubted else of_shapes(*self._shapes, alone=True) or exactly(*self._sides)

    @cached_property
    def _versions(self) -> list[Formula]:
        """The document and its versions, the library's own first."""
        name, library, version = self.release
        release = ".".join(version.split(".")[:2])
        own = (name.rpartition(".")[2], f"{library}-", *([release] if release else []))
        versions = FORMULAS.versions(self.claimed.id.partition("@")[0])
        return sorted(versions, key=lambda f: _rank(f.version, own, release))

    def _rest(self, rows: Sequence[Row], outcome: OutcomeName, differs: str) -> Told:
        """Where no behaviour gives all answers: an argument misread, the calls that differ, the nearest, or nothing."""
        if self.misread is not None:
            return Told(outcome, f"{self.misread.words}: {differs}", (Cause(self.misread.code, self.misread.words),))
        if self.where is not None:
            return Told(outcome, f"differs only with {self.where.words}: {differs}", (_elsewhere(self.where),))
        if self.mostly is not None:
            causes = self._but_for(self.mostly, rows)
            return Told(outcome, f"{said(causes)}: {differs}", causes)
        return Told(outcome, differs, (unknown(),))

    def _foretells(self, row: Row) -> bool:
        """Whether a call is answered as it says; of what is not known nothing is said."""
        by_shape = isinstance(self.where, Region)
        row = row if by_shape else self._as_found(row)
        if not by_shape and self._numbers and self._is_apart(row):  # it has a cause of its own, if not all are so
            return True
        if self.misread is not None:
            return agrees(self.claimed, self.misread.read(row))
        if isinstance(self.where, Argument) and self.where.is_open(row.arguments):
            return True
        if self.where is not None:
            good = self._agrees(row)
            sure = isinstance(self.where, Argument) and self.where.is_sure and row.seen.kind == "returned"
            return not (good and sure) if holds(self.where, row) else good
        if self.mostly is not None:
            return self.mostly.leaves(row) or gives(self.mostly.formula.function, row)
        functions = [] if self.point is None else [self.claimed.at(self.point)]
        functions += [] if self.version is None else [self.version.function]
        return all(gives(f, row) for f in functions)

    def _but_for(self, most: Mostly, rows: Sequence[Row]) -> tuple[Cause, ...]:
        """What gives most answers, outside of the calls in which it does not; the nearest, where these are any."""
        claimed, point = self.claimed.behaviour, most.formula.behaviour
        if claimed is None or type(point) is not type(claimed):
            every = found = tuple[Cause, ...]()
        else:
            every = choices(claimed, point, [*claimed.changes(point)])
            found = self._choices(point, [row for row in rows if not most.leaves(row)])
        near = unknown(said(every) or _measured(most.formula).sentence, most.share)
        if most.where is None:
            return (near,)
        wrong = [row for row in rows if not self._agrees(row)]
        if not found and not all(map(most.leaves, wrong)):
            found = (_measured(most.formula),)
        left = (_elsewhere(most.where),) if any(map(most.leaves, wrong)) else ()
        return (*(replace(c, where=most.where.outside) for c in found), *left) or (near,)

    def _agrees(self, row: Row) -> bool:
        return agrees(self.claimed, row)

    def _is_right(self, row: Row) -> bool:
        """Whether an answer needs no cause: the document's; by a reading too, where no release gives all answers."""
        return gives(self.claimed.function, row) or (self.version is None and self._agrees(row))

    def _is_apart(self, row: Row) -> bool:
        """Whether it raises as the document does not, or has another form: that has a cause of its own."""
        if row.seen.kind != "raised" and not self._difference(row).form:
            return False
        return not self._agrees(row)

    def _difference(self, row: Row) -> Difference:
        return differences(answer_of(self.claimed.function, row.arguments), row.seen)

    def _apart(self, rows: Sequence[Row]) -> tuple[Cause, ...]:
        """What has a cause of its own, whatever else is known: faults, and what is said of errors and of forms."""
        where = self.where
        faults = [
            replace(fault(words), where=where.words if where is not None and holds(where, row) else "")
            for row in rows
            for words in breaches(row.seen)
        ]
        found = [self._difference(row) for row in rows if self._unexplained(row)]
        errors = [raised(d.words) for d in found if not d.form]
        forms = [formed(d.form, d.words) for d in found if d.form]
        return tuple(cause for some in (faults, errors, forms) for cause in by_kind(some, lambda c: c.sentence))

    def _unexplained(self, row: Row) -> bool:
        """Whether it is apart, and so neither by the release nor by the choices found, in no region that is said."""
        if not self._is_apart(row) or (isinstance(self.where, Region) and holds(self.where, row)):
            return False
        found = [] if self.version is None else [self.version.function]
        found += [] if self.point is None else [self.claimed.at(self.point)]
        is_read = self.misread is not None and agrees(self.claimed, self.misread.read(row))
        return not is_read and not any(gives(function, row) for function in found)

    def _tests(self, cause: Cause) -> Iterator[Callable[[Row], bool]]:
        """Which calls show a cause: given with it alone, those that need it first; then given beside others."""
        behaviour, point = self.claimed.behaviour, self.point
        if behaviour is None or point is None:
            return
        for name in behaviour.changes(point):
            if choices(behaviour, point, [name]) == (cause,):
                only = self.claimed.at(replace(behaviour, **{name: getattr(point, name)}))
                rest = self.claimed.at(replace(point, **{name: getattr(behaviour, name)}))
                yield partial(_given_but, only, rest)
                yield partial(gives, only)
                yield partial(_given_but, self.claimed.at(point), rest)

    def _choices(self, point: Behaviour | None, rows: Sequence[Row]) -> tuple[Cause, ...]:
        behaviour = self.claimed.behaviour
        if behaviour is None or point is None:
            return ()

        def fits(names: tuple[str, ...]) -> bool:
            near = replace(behaviour, **{name: getattr(point, name) for name in names})
            return all(gives(self.claimed.at(near), row) for row in told)

        # Of a point that not all answers follow, those that do say which choices they need.
        told = [row for row in rows if gives(self.claimed.at(point), row)]
        if not told or fits(()):
            return ()
        return choices(behaviour, point, fewest([*behaviour.changes(point)], fits))


def _rows(sample: Sample) -> list[Row]:
    pairs = zip(sample.calls, sample.answers, strict=True)
    return [Row(arguments_of(c.named), a, c.shape, sample.name) for c, a in pairs]


def _given_but(function: Callable[..., Any], other: Callable[..., Any], row: Row) -> bool:
    """Whether the one function gives an answer, and the other does not."""
    return gives(function, row) and not gives(other, row)


def _decides(shows: Callable[[Row], bool], _: Evidence, t: Trial) -> bool:
    """Whether a trial is such a call; one of another form would show that."""
    return not t.difference.form and shows(Row(arguments_of(t.call.named), t.actual, t.call.shape, ""))


def _rank(version: str, own: tuple[str, ...], release: str) -> tuple[bool, bool]:
    """The versions of the library first, of those the installed release."""
    return not (version and version.startswith(own)), not (release and version.endswith(release))


def _measured(formula: Formula) -> Cause:
    return Cause(property_code("documented"), f"does what {_origin(formula)}")


def _elsewhere(where: Region | Argument) -> Cause:
    return Cause(where.code, "gives other answers", where.words)


def _origin(formula: Formula) -> str:
    """Whose behaviour it is, to follow "as": ``torchao 0.18 was measured to do``."""
    system, version = formula.system, formula.version
    return f"{system} {version} was measured to do" if version else f"{system} documents it"
