"""The report as text for a terminal: a line for each backend, the causes across all of them, and what to do next."""

import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from halfeven.conformance.report.causes import by_cause, measured, showing, together, with_own_witness, words
from halfeven.conformance.report.groups import SEVERITY, Group, backends, largest
from halfeven.conformance.report.model import Report, Result, Witness
from halfeven.conformance.report.printable import printable
from halfeven.conformance.report.share import EACH, unmet
from halfeven.conformance.report.words import count, not_run, percent, progress, share, shorten, steps, verdict

__all__ = ["short", "to_text"]

_CAUSES, _SHOWN = 8, 3  # causes in all, and those with a witness
_BACKENDS = 6  # of one cause
_WORDS = 200  # of an argument, of an answer, of a reason
_SCRIPT = 12


def to_text(report: Report, width: int = 80, out: str = "") -> str:
    """The end of a run in lines of at most ``width`` characters; only a single word may be longer.

    ``out`` is the folder that holds the report; where it is empty, nothing is said of it.
    """
    found = by_cause(report.results)
    parts = [
        _wrapped(progress(report), width),
        _backends(report, width),
        _causes(report, found, width),
        _wrapped(_totals(report, len(found)), width) if len(report.backends) > 1 and report.ran else [],
        _next(found, width, out) if out else [],
    ]
    return printable("\n\n".join("\n".join(lines) for lines in parts if lines))


def _backends(report: Report, width: int) -> list[str]:
    """A line for each backend, the worst first: name, verdict, checks that differ of those that ran, share not run.

    Where any only does as a release was measured to, a column says in how many checks.

    A name that is too long for the width has a line of its own. Below comes why a backend has few results or none.
    """
    rows: list[tuple[str, ...]] = [
        ("backend", "verdict" if report.complete else "so far", "checks", "as measured", "not run")
    ]
    worst_first = sorted(backends(report), key=lambda pair: -SEVERITY.index(pair[1].outcome))
    rows += [_row(printable(r.name, ""), verdict(g, report.require, r.lacks), g) for r, g in worst_first]
    rows += [(_name(entry), "not run", "", "", "") for entry in report.not_run]
    if not any(r.outcome == "as measured" for r in report.results):
        rows = [(*row[:-2], row[-1]) for row in rows]
    name, said, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    numbers = "  ".join([f"{{:<{said}}}", *(f"{{:>{n}}}" for n in others)])
    left = width - len(numbers.format("", *[""] * len(others))) - 2
    name = max((len(row[0]) for row in rows if len(row[0]) <= left), default=0)
    lines = []
    for row in rows:
        cells = numbers.format(*row[1:]).rstrip()
        lines += [f"{row[0]:<{name}}  {cells}"] if len(row[0]) <= name else [row[0], " " * (name + 2) + cells]
    notes = [line for note in _notes(report) for line in _wrapped(note, width, then="  ")]
    return [*lines, "", *notes] if notes else lines


def _row(name: str, said: str, results: Group) -> tuple[str, ...]:
    ran, planned = len(results.ran), len(results.results)
    checks = f"{len(results.parting):,}/{ran:,}" if results.parting else f"{ran:,}"
    alike = results.counts["as measured"]
    return name, said, checks, f"{alike:,}" if alike else "", percent(planned - ran, planned) if planned else ""


def _name(entry: dict[str, str]) -> str:
    """The backend of an entry that did not run; older reports name it otherwise."""
    return shorten(", ".join(value for key, value in entry.items() if key != "reason"), _WORDS)


def _notes(report: Report) -> Iterator[str]:
    for record, results in backends(report):
        skipped, planned = results.counts["not run"], len(results.results)
        missed = "" if results.parting else unmet(results.results, report.require, record.lacks)
        if not results.ran:
            yield f"{record.name}: nothing ran: {not_run(results)}"
        elif missed:
            yield f"{record.name}: {shorten(missed, _WORDS)}"
        elif 2 * skipped > planned:  # a few have their reasons in the report
            yield f"{record.name}: {skipped:,} of {count(planned, 'check')} not run: {not_run(results)}"
        if results.ran and results.counts["implementation-defined"] == len(results.ran):
            yield f"{record.name}: the document leaves {count(len(results.ran), 'check')} open"
    for entry in report.not_run:
        yield f"{_name(entry)}: {shorten(entry.get('reason', '') or 'no reason was recorded', _WORDS)}"


def _causes(report: Report, found: Sequence[Group], width: int) -> list[str]:
    several = len({r.backend for r in report.results}) > 1
    lines = []
    for place, one in enumerate(found[:_CAUSES]):
        names = Counter(r.backend for r in one.results)
        counted = count(len(one.results), "check") + (f", {count(len(names), 'backend')}" if several else "")
        lines += _with_count(shorten(_headed(one), _WORDS), counted, width)
        below = [_by_backend(names)] if len(names) > 1 else []
        below += [*_shares(one), _witness(showing(one)), *_claims(one)] if place < _SHOWN else []
        lines += [line for said in below for line in _wrapped(said, width, first="    ", then="    ")]
    if len(found) > _CAUSES:
        lines.append(f"{count(len(found) - _CAUSES, 'more cause')} in the report")
    return lines


def _headed(one: Group) -> str:
    """``HE118  adds the zero point before rounding ... (with HE101)``."""
    also = together(one)
    return words(one.key) + (f" (with {', '.join(also)})" if also and one.key[0] else "")


def _by_backend(names: Counter[str]) -> str:
    """The backends, and in how many checks of each: ``torch.learnable 12, torch.compiled 3``."""
    some = [f"{name} {number:,}" for name, number in names.most_common(_BACKENDS)]
    left = len(names) - _BACKENDS
    return ", ".join(some) + (f" and {left:,} more" if left > 0 else "")


def _shares(one: Group) -> list[str]:
    found = {c.share: None for r in one.results for c in r.causes if c.key == one.key}
    return [f"it gives {share}" for share in found if share][:1]


def _claims(one: Group) -> list[str]:
    """What to claim instead, where some release does the same; and where the cause is told in full."""
    names = list(dict.fromkeys(filter(None, (measured(r.cause) for r in one.results))))
    claim = f"claim {names[0]}, or change it; " if names and " " not in names[0] else ""
    return [f"help: {claim}halfeven explain {one.key[0]}"] if one.key[0] else []


def _with_count(words: str, counted: str, width: int) -> list[str]:
    """A cause, and flush right on its last line how often it occurs; on a line of its own where it does not fit."""
    lines = _wrapped(words, width, then="  ")
    gap = width - len(lines[-1]) - len(counted)
    return [*lines[:-1], lines[-1] + " " * gap + counted] if gap > 1 else [*lines, counted.rjust(width)]


def _witness(result: Result) -> str:
    w = result.witness
    if w is None:
        return f"{result.backend}, {result.requirement}"
    if not w.scale:
        return f"{result.backend}, {result.operation}: {shorten(w.where, _WORDS)}"
    return f"{result.backend}: {_input(w)}: expected {w.expected}, got {w.actual}"


def _input(w: Witness) -> str:
    return f"x {w.x}, scale {w.scale}" + (f", zero point {w.zero}" if w.zero else "")


def _totals(report: Report, causes: int) -> str:
    plural = {"differs": "differ", "conforms": "conform", "not judged": "were not judged", "not run": "did not run"}
    outcomes = Counter(plural[verdict(g, report.require, r.lacks)] for r, g in backends(report))
    outcomes["did not run"] += len(report.not_run)
    said = [
        f"{count(n, 'backend')} {_third(n, verb)}"
        for verb in ("conform", "differ", "were not judged", "did not run")
        if (n := outcomes[verb])
    ]
    return ", ".join(said) + (f"; {count(causes, 'cause')} in all" if causes else "")


def _third(number: int, verb: str) -> str:
    if number != 1:
        return verb
    return verb.replace("were", "was") if " " in verb else f"{verb}s"


def _next(found: Sequence[Group], width: int, out: str) -> list[str]:
    lines = _wrapped(f"Report: {out}/report.md, every result: {out}/report.json", width, then="  ")
    if found:
        lines += _wrapped("Repeat one check: halfeven run ... --item ID, with its ID in the report", width, then="  ")
    return [*lines, *_wrapped(f"Compare with another run: halfeven diff {out} OTHER", width, then="  ")]


def _wrapped(said: str, width: int, first: str = "", then: str = "") -> list[str]:
    """The words in lines that break between words alone, so that a name stays whole."""
    return textwrap.wrap(
        said, width, initial_indent=first, subsequent_indent=then, break_long_words=False, break_on_hyphens=False
    )


def short(results: Sequence[Result], require: str = EACH, lacks: Collection[str] = ()) -> str:
    """What ``check`` prints: the share that conforms or differs, the causes, and the first witness with its script."""
    whole = Group((), tuple(results))
    if not whole.ran:
        reasons = sorted({shorten(r.detail or r.cause, _WORDS) for r in results} - {""})
        said = ["nothing ran: no value was compared, so this is a failure", *(f"  {r}" for r in reasons[:3])]
        return printable("\n".join(said))
    worst = whole.shown
    head = f"{worst.backend} against profile {worst.profile}: {share(whole, require, lacks)}"
    return printable("\n".join([f"{head}; {count(whole.points, 'value')} compared", *_differences(whole, worst)]))


def _differences(whole: Group, worst: Result) -> Iterator[str]:
    if not whole.parting:
        return
    found = by_cause(whole.results)
    for one in found[:_SHOWN]:
        yield f"  {shorten(_headed(one), _WORDS)} ({count(len(one.results), 'check')})"
        if with_own_witness(one.results, one.key):
            yield f"    {_witness(showing(one))}"
    if len(found) > _SHOWN:
        yield f"  {count(len(found) - _SHOWN, 'more cause')} in .results"
    far = steps(largest([worst]))
    yield f"  {worst.requirement}" + (f", by {'up to ' if worst.steps > 1 else ''}{far}:" if far else ":")
    w = worst.witness
    if w is None:
        yield from (f"    {line}" for line in worst.detail.strip().splitlines()[-3:])
    elif w.scale:
        yield f"    {_input(w)}"
        yield f"    expected {w.expected}, got {w.actual}"
        if w.quotient:
            yield f"    exact quotient {shorten(w.quotient, _WORDS)}"
            yield f"    distance to the nearest tie {shorten(w.to_tie, _WORDS)}"
        yield from (f"    {said}" for said in (w.nearer, w.unshown and f"no script: {w.unshown}") if said)
        script = w.script.strip().splitlines() if w.reproduced else []
        # One line more is shown rather than announced.
        yield from (f"    {line}" for line in script[: None if len(script) == _SCRIPT + 1 else _SCRIPT])
        if len(script) > _SCRIPT + 1:
            yield f"    # {count(len(script) - _SCRIPT, 'more line')} in .witness.script"
    else:
        yield f"    {shorten(w.where, _WORDS)}"
        said = {"arguments": w.x, "expected": w.expected, "actual": w.actual}
        yield from (f"    {name} {shorten(value, _WORDS)}" for name, value in said.items())
        yield "    .witness.script makes the call" if w.reproduced else f"    no script: {w.unshown}"
