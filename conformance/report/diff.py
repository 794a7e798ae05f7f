"""Two reports compared: what was fixed, what regressed, what moved, what newly ran and what no longer runs."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from halfeven.conformance.report.groups import SEVERITY, Group, flatten, group, largest, order
from halfeven.conformance.report.model import CONFORMING, OutcomeName, Report, Result
from halfeven.conformance.report.printable import printable
from halfeven.conformance.report.words import capped, code, count, progress, shorten, steps, table, text

Kind = Literal["regressed", "fixed", "moved", "newly ran", "no longer runs"]
KINDS: tuple[Kind, ...] = ("regressed", "no longer runs", "fixed", "moved", "newly ran")

__all__ = ["KINDS", "Change", "Diff", "Kind", "diff", "to_markdown"]

_ROWS = 60
_LABEL = {
    "regressed": "Regressed",
    "no longer runs": "No longer runs",
    "fixed": "Fixed",
    "moved": "Moved",
    "newly ran": "Newly ran",
}


@dataclass(frozen=True)
class Change:
    """The checks of one backend and requirement that changed in the same way.

    Attributes:
        before, after: the outcome in each report; "not run" also where the check is absent.
        regression: whether this change makes the comparison fail.
        checks: how many checks changed so.
        steps_before, steps_after: the largest difference in words, such as "1 code step".
        differing_before, differing_after: the values that differ.
        cause_before, cause_after: the causes in words.
        example: the id of one of the checks.
    """

    kind: Kind
    backend: str
    requirement: str
    before: OutcomeName
    after: OutcomeName
    regression: bool
    checks: int
    steps_before: str
    steps_after: str
    differing_before: int
    differing_after: int
    cause_before: str
    cause_after: str
    example: str


@dataclass(frozen=True)
class Diff:
    """What changed from a base report to a head report.

    Attributes:
        problems: what makes head no ground for a verdict: it is incomplete, it is empty, it shares nothing with base.
        notes: what limits the comparison without failing it.
        facts: what changed around the backends, as (fact, before, after).
        changes: what changed in the outcomes.
        compared: the checks that ran in both.
        coverage: for each backend the points compared in base and in head.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str, str], ...]
    changes: tuple[Change, ...]
    compared: int
    coverage: tuple[tuple[str, int, int], ...]

    @property
    def is_known(self) -> bool:
        """Whether anything is known of head: where no check ran in both, nothing is."""
        return bool(self.compared) or not self.problems

    @property
    def regressed(self) -> bool:
        """Whether head is worse than base, or cannot be judged."""
        return bool(self.problems) or any(change.regression for change in self.changes)


def diff(base: Report, head: Report) -> Diff:
    """Compare two reports.

    Checks are matched by backend, requirement, check and id; several results with the same four count as one,
    with their worst outcome. A check regresses where it

    - conformed (exact, as measured, bounded, budgeted, implementation-defined) and is now explained, differs or
      crashed;
    - parted and now parts for the worse: explained to differs, or either to crashed;
    - ran and does not run any more although its backend still runs: the check has vanished. A backend that does
      not run at all in head (its library is not installed, it was not named) is reported, but is no regression.

    A head that is incomplete, or in which nothing ran, or that shares no check with base, is a regression too,
    because a comparison that compares nothing must not pass. A check that newly runs never is one, whatever its
    outcome: there is nothing it got worse than. It moved where the outcome changed without regressing or being
    fixed, or where it still parts with other steps, another number of differing values or another cause.
    """
    before, after = _matched(base), _matched(head)
    running = {r.backend for r in head.ran}
    keys = sorted(before.keys() | after.keys(), key=lambda k: order((after.get(k) or before[k]).results[0]))
    nothing = Group((), ())
    pairs = [(before.get(key, nothing), after.get(key, nothing)) for key in keys]
    compared = sum(1 for b, a in pairs if b.ran and a.ran)
    found: dict[tuple[Kind, str, str, OutcomeName, OutcomeName], list[tuple[Group, Group]]] = {}
    for key, (b, a) in zip(keys, pairs, strict=True):
        kind = _kind(b, a)
        if kind is not None:
            found.setdefault((kind, key[0], key[1], b.outcome, a.outcome), []).append((b, a))
    changes = [
        _change(kind, backend, requirement, members, running)
        for (kind, backend, requirement, _, _), members in found.items()
    ]
    problems = [f"head: {said}"] if (said := progress(head)) else []
    if head.ran and not compared:
        problems.append(f"No check ran in both reports, so nothing was compared.{_apart(base, head)}")
    return Diff(
        problems=tuple(problems),
        notes=tuple(_notes(base, head)),
        facts=tuple(_facts(base, head)),
        changes=tuple(sorted(changes, key=lambda c: (KINDS.index(c.kind), c.backend))),
        compared=compared,
        coverage=tuple(_coverage(base, head)),
    )


def to_markdown(found: Diff) -> str:
    """The comparison for a reader: the verdict, what changed around it, and a table for each kind of change."""
    totals = {kind: sum(c.checks for c in found.changes if c.kind == kind) for kind in KINDS}
    said = ", ".join(f"{n:,} {kind}" for kind, n in totals.items() if n) or "nothing"
    # A check that no longer runs may or may not be a regression: count what decides, not the heading it stands under.
    worse = sum(c.checks for c in found.changes if c.regression)
    if not found.is_known:
        verdict = "Not known."
    elif worse:
        verdict = f"Regression: {count(worse, 'check')}."
    else:
        verdict = "Regression." if found.regressed else "No regression."
    parts = [
        *(f"**{text(problem, 400)}**" for problem in found.problems),
        "# Comparison of two conformance reports",
        f"**{verdict}** {count(found.compared, 'check')} ran in both. Changed: {said}.",
        "\n".join(f"- {text(note, 400)}" for note in found.notes),
    ]
    if found.facts:
        facts = [(text(fact), text(old or "absent"), text(new or "absent")) for fact, old, new in found.facts]
        parts.append("## What changed around it\n\n" + capped(facts, ("fact", "base", "head"), _ROWS, "fact"))
    for kind in KINDS:
        rows = [_row(change) for change in found.changes if change.kind == kind]
        if rows:
            headers = ("backend", "requirement", "checks", "outcome", "largest step", "differing", "cause", "example")
            parts.append(f"## {_LABEL[kind]}\n\n" + capped(rows, headers, _ROWS, "row", ("checks",)))
    if found.coverage:
        points = [(code(name), f"{old:,}", f"{new:,}") for name, old, new in found.coverage]
        parts.append("## Points compared\n\n" + table(("backend", "base", "head"), points, ("base", "head")))
    return printable("\n\n".join(part for part in parts if part) + "\n")


_Key = tuple[str, str, str]


def _matched(report: Report) -> dict[_Key, Group]:
    def key(r: Result) -> _Key:
        return r.backend, r.requirement, r.id

    return {key(g.results[0]): g for g in group(map(_today, report.results), key)}


def _today(result: Result) -> Result:
    """A result of a documented function with the ids of today; those of the first edition named its profile."""
    given = str(result.configuration.get("formula", ""))
    if not given or "/" in given:
        return result
    from halfeven.reference import FORMULAS  # noqa: PLC0415 - reports of today are compared without NumPy

    formula = FORMULAS.canonical(given).partition("@")[0]
    requirement = f"{formula}/{result.requirement.rpartition('/')[2]}"
    return replace(result, requirement=requirement, id=requirement + result.id.removeprefix(result.requirement))


def _kind(b: Group, a: Group) -> Kind | None:
    match bool(b.ran), bool(a.ran):
        case False, False:
            return None
        case False, True:
            return "newly ran"
        case True, False:
            return "no longer runs"
    was, now = b.outcome in CONFORMING, a.outcome in CONFORMING
    worse = SEVERITY.index(a.outcome) > SEVERITY.index(b.outcome)
    kind: Kind | None = None
    if now and not was:
        kind = "fixed"
    elif worse and not now:
        kind = "regressed"
    elif a.outcome != b.outcome or (not now and _seen(a) != _seen(b)):
        kind = "moved"
    return kind


def _seen(results: Group) -> tuple[dict[str, int], int, list[str]]:
    return largest(results.results), results.differing, results.causes


def _change(
    kind: Kind, backend: str, requirement: str, members: list[tuple[Group, Group]], running: set[str]
) -> Change:
    b = Group((), tuple(r for old, _ in members for r in old.results))
    a = Group((), tuple(r for _, new in members for r in new.results))
    lost = "; ".join(sorted({r.detail or r.cause for r in a.results} - {""})) or "the check is absent"
    return Change(
        kind=kind,
        backend=backend,
        requirement=requirement,
        before=b.outcome,
        after=a.outcome,
        regression=kind == "regressed" or (kind == "no longer runs" and backend in running),
        checks=len(members),
        steps_before=steps(largest(b.results)),
        steps_after=steps(largest(a.results)),
        differing_before=b.differing,
        differing_after=a.differing,
        cause_before="; ".join(b.causes),
        cause_after=lost if kind == "no longer runs" else "; ".join(a.causes),
        example=min(r.id for r in (a.results or b.results)),
    )


def _row(c: Change) -> tuple[str, ...]:
    def arrow(old: str, new: str) -> str:
        if c.kind in {"newly ran", "no longer runs"}:  # there is nothing on the other side
            return new if c.kind == "newly ran" else old
        return old if old == new else f"{old or 'none'} → {new or 'none'}"

    differing = arrow(f"{c.differing_before:,}", f"{c.differing_after:,}")
    cause = (
        c.cause_after
        if c.kind == "no longer runs"
        else arrow(*(shorten(x, 100) for x in (c.cause_before, c.cause_after)))
    )
    return (
        code(c.backend),
        code(c.requirement),
        f"{c.checks:,}",
        c.before if c.before == c.after else f"{c.before} → {c.after}",
        arrow(c.steps_before, c.steps_after),
        "" if differing == "0" else differing,
        text(cause, 220),
        code(c.example),
    )


def _apart(base: Report, head: Report) -> str:
    """Whose the reports are, where no backend is in both, and what compares two backends."""
    old, new = ([b.name for b in report.backends] for report in (base, head))
    if not old or not new or set(old) & set(new):
        return ""
    return (
        f" base is of {', '.join(old)}, head of {', '.join(new)};"
        f" halfeven compare {_asked(base) or old[0]} {_asked(head) or new[0]} asks two backends the same."
    )


def _asked(report: Report) -> str:
    """The one backend as the run was asked for it; a module's function is not found by its name alone."""
    try:
        words = shlex.split(report.command)
    except ValueError:  # a report is data, from anywhere
        return ""
    names = [w for w in words[2:] if ":" in w and "://" not in w]
    return shlex.quote(names[0]) if words[:2] == ["halfeven", "run"] and len(names) == len(report.backends) == 1 else ""


def _notes(base: Report, head: Report) -> Iterable[str]:
    if said := progress(base):
        yield f"base: {said}"
    if base.tier != head.tier:
        yield f"The tiers differ, {base.tier} and {head.tier}: checks of one only are newly run or no longer run."


def _facts(base: Report, head: Report) -> Iterable[tuple[str, str, str]]:
    old, new = _around(base), _around(head)
    for fact in [*new, *(f for f in old if f not in new)]:
        if old.get(fact) != new.get(fact):
            yield fact, old.get(fact, ""), new.get(fact, "")


def _around(report: Report) -> Mapping[str, str]:
    facts = {"tier": report.tier, "seed": str(report.seed)} | flatten(report.environment)
    for b in report.backends:
        facts |= {f"{b.name}: {name}": getattr(b, name) for name in ("profile", "library", "version", "device", "path")}
    return facts


def _coverage(base: Report, head: Report) -> Iterable[tuple[str, int, int]]:
    names = dict.fromkeys(r.backend for r in [*head.results, *base.results])
    points = [{g.key[0]: g.points for g in group(r.results, lambda x: (x.backend,))} for r in (base, head)]
    return ((name, points[0].get(name, 0), points[1].get(name, 0)) for name in sorted(names))
