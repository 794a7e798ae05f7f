"""Results put together: by backend, requirement and cause, with the outcome, the counts and one witness of each."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from halfeven.conformance.report.model import CONFORMING, OPERATIONS, BackendRecord, OutcomeName, Report, Result

__all__ = ["SEVERITY", "Group", "aspect", "backends", "flatten", "group", "largest", "order", "worst"]

#: From what weighs nothing to what weighs most; the outcome of a group is the last one that occurs in it.
SEVERITY: tuple[OutcomeName, ...] = (
    "not run",
    "implementation-defined",
    "exact",
    "as measured",
    "bounded",
    "budgeted",
    "explained",
    "differs",
    "timed out",
    "crashed",
)


@dataclass(frozen=True)
class Group:
    """Results that share a key."""

    key: tuple[str, ...]
    results: tuple[Result, ...]

    @cached_property
    def outcome(self) -> OutcomeName:
        """The worst outcome; "not run" only where nothing ran."""
        return worst(r.outcome for r in self.results)

    @cached_property
    def ran(self) -> list[Result]:
        """The results in which the backend was called."""
        return [r for r in self.results if r.outcome != "not run"]

    @cached_property
    def parting(self) -> list[Result]:
        """The results that part from the profile: explained, differs, crashed."""
        return [r for r in self.ran if r.outcome not in CONFORMING]

    @cached_property
    def counts(self) -> Counter[OutcomeName]:
        """How many results have each outcome."""
        return Counter(r.outcome for r in self.results)

    @property
    def points(self) -> int:
        """The values compared."""
        return sum(r.points for r in self.results)

    @property
    def differing(self) -> int:
        """How many of them differ."""
        return sum(r.differing for r in self.results)

    @property
    def causes(self) -> list[str]:
        """The causes that occur, the most frequent first."""
        counted = Counter(r.cause for r in self.ran if r.cause)
        return sorted(counted, key=lambda cause: (-counted[cause], cause))

    @property
    def shown(self) -> Result:
        """The result to show: of the worst outcome, with a witness whose script was seen to differ, if there is one."""

        def rank(result: Result) -> tuple[Any, ...]:
            w = result.witness
            return (
                -SEVERITY.index(result.outcome),
                w is None,
                not (w and w.reproduced),
                not (w and w.script),
                len(result.causes),  # one that shows nothing else
                result.id,
            )

        return min(self.results, key=rank)


def worst(outcomes: Iterable[OutcomeName]) -> OutcomeName:
    """The worst of the outcomes; "not run" where there are none."""
    return max(outcomes, key=SEVERITY.index, default="not run")


def group(results: Iterable[Result], key: Callable[[Result], tuple[str, ...]]) -> list[Group]:
    """The results by ``key``, in the order in which the keys first occur."""
    found: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        found.setdefault(key(result), []).append(result)
    return [Group(k, tuple(members)) for k, members in found.items()]


def order(result: Result) -> tuple[int, str, str]:
    """A sort key: the operations in the documents' order, then the requirements by name, then the ids."""
    place = OPERATIONS.index(result.operation) if result.operation in OPERATIONS else len(OPERATIONS)
    return place, result.requirement, result.id


def aspect(requirement: str) -> str:
    """The last component of a requirement's id, ``profile/operation/aspect``."""
    return requirement.rpartition("/")[2]


def backends(report: Report) -> list[tuple[BackendRecord, Group]]:
    """Each backend with its results, in the report's order; one without a record of its own comes last."""
    by = {g.key: g for g in group(sorted(report.results, key=order), lambda r: (r.backend, r.profile))}
    records = {(b.name, b.profile): b for b in report.backends}
    for name, profile in sorted(by.keys() - records.keys()):
        records[name, profile] = BackendRecord(name, profile, "", "", "", "")
    return [(record, by.get(key, Group(key, ()))) for key, record in records.items()]


def largest(results: Sequence[Result]) -> dict[str, int]:
    """The largest difference in each unit that occurs; without those that are 0."""
    found: dict[str, int] = {}
    for r in results:
        if r.steps:
            found[r.unit] = max(found.get(r.unit, 0), r.steps)
    return found


def flatten(facts: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested facts as text, with dotted names: ``{"cpu": {"threads": 2}}`` gives ``{"cpu.threads": "2"}``."""
    flat: dict[str, str] = {}
    for key, value in facts.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return flat
