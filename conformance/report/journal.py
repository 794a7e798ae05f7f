"""What a run writes down while it runs, and the report that follows from it: a function of the plan and the journal.

The plan is written before the first check, the journal check by check, so that whatever ends a run, the report says
what was planned and what of it is there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from halfeven.conformance.report.model import SCHEMA_VERSION, BackendRecord, Result

__all__ = ["Absent", "Entry", "Journal", "Kept", "Known", "Plan"]


@dataclass(frozen=True)
class Plan:
    """What a run sets out to do.

    Attributes:
        created: when it began.
        require: how much of it must have been checked to conform.
        names: what is planned, as ``backend::id``, or the name of a backend that is absent; None until it is known.
    """

    created: str
    command: str
    tier: str
    seed: int
    require: str
    environment: Mapping[str, Any]
    names: tuple[str, ...] | None = None
    schema_version: str = SCHEMA_VERSION


@dataclass(frozen=True)
class Known:
    """What is known of a backend by now: its record, and the code steps that its waivers allow."""

    record: BackendRecord
    waivers: Mapping[str, int]


@dataclass(frozen=True)
class Absent:
    """A backend that could not be had, under the name it was asked for."""

    absent: str
    reason: str


@dataclass(frozen=True)
class Kept:
    """A bounded choice of the answers to a check, for the stage that concludes; written before the check's result.

    Attributes:
        name: the result's, or that of the trial that an explanation was put to.
        answers: as ``engine/kept.py`` writes them.
    """

    name: str
    answers: str


Entry = Result | Known | Absent | Kept


@dataclass
class Journal:
    """What came of a run so far. A check that was asked again counts once, with what came last."""

    results: dict[str, Result] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)

    def add(self, entry: Entry) -> bool:
        """Take one line up; whether it says anything new."""
        match entry:
            case Result():
                self.results[entry.name] = entry
                return True
            case Kept():
                self.kept[entry.name] = entry.answers
                return True
            case Absent():
                new = self.absent.get(entry.absent) != entry.reason
                self.absent[entry.absent] = entry.reason
                return new
        name = entry.record.name
        before = self.known.get(name)
        if before is not None and not entry.record.path:  # a path is known once the backend has run
            entry = replace(entry, record=replace(entry.record, path=before.record.path))
        self.known[name] = entry
        return entry != before

    @property
    def names(self) -> set[str]:
        """What of the plan came to something."""
        return {*self.results, *self.absent}

    @property
    def answered(self) -> set[str]:
        """The checks that need not be asked again: of those that died, another try may come to an answer."""
        return {name for name, r in self.results.items() if not r.died}
