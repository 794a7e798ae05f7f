"""The report as text for a terminal: a line for each backend, the causes across all of them, and what to do next."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from halfeven.conformance.report.causes import by_cause
from halfeven.conformance.report.groups import SEVERITY, Group, backends, largest
from halfeven.conformance.report.model import Report, Result
from halfeven.conformance.report.words import count, progress, share, shorten, steps

__all__ = ["short", "to_text"]

_NAME, _VERDICT = 44, 30  # the widest name that has its verdict beside it, and the least width of that
_CAUSES, _SHOWN = 8, 3  # causes in all, and those with a witness
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
    return "\n\n".join("\n".join(map(_printable, lines)) for lines in parts if lines)


def _backends(report: Report, width: int) -> list[str]:
    rows = [(r.name, share(g, so_far=not report.complete), g.outcome) for r, g in backends(report)]
    rows = sorted(rows, key=lambda row: -SEVERITY.index(row[2]))
    rows += [(", ".join(v for k, v in e.items() if k != "reason"), _absent(e), "not run") for e in report.not_run]
    column = max((len(name) for name, _, _ in rows if len(name) <= min(_NAME, width - _VERDICT)), default=0)
    lines = []
    for name, said, _ in rows:
        if len(name) <= column:
            beside = column + 2
            lines += _wrapped(said, width, first=f"{name:<{beside}}", then=" " * beside)
        else:
            lines += [name, *_wrapped(said, width, first="  ", then="  ")]
    return lines


def _absent(entry: dict[str, str]) -> str:
    return f"not run: {shorten(entry.get('reason', '') or 'no reason was recorded', _WORDS)}"


def _causes(report: Report, found: Sequence[Group], width: int) -> list[str]:
    several = len({r.backend for r in report.results}) > 1
    lines = []
    for place, one in enumerate(found[:_CAUSES]):
        names = {r.backend for r in one.results}
        counted = count(len(one.results), "check") + (f", {count(len(names), 'backend')}" if several else "")
        lines += _with_count(shorten(one.key[0], _WORDS), counted, width)
        if place < _SHOWN:
            lines += _wrapped(_witness(one.shown), width, first="    ", then="    ")
    if len(found) > _CAUSES:
        lines.append(f"{count(len(found) - _CAUSES, 'cause')} more in the report")
    return lines


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
    return f"{result.backend}: {_element(result)}"


def _element(result: Result) -> str:
    w = result.witness
    if w is None:
        return ""
    zero = f", zero point {w.zero}" if w.zero else ""
    return f"x {w.x}, scale {w.scale}{zero}: expected {w.expected}, got {w.actual}"


def _totals(report: Report, causes: int) -> str:
    outcomes = Counter("differ" if g.parting else "conform" if g.ran else "did not run" for _, g in backends(report))
    outcomes["did not run"] += len(report.not_run)
    said = [
        f"{count(n, 'backend')} {_third(n, verb)}"
        for verb in ("conform", "differ", "did not run")
        if (n := outcomes[verb])
    ]
    return ", ".join(said) + (f"; {count(causes, 'cause')} in all" if causes else "")


def _third(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 and " " not in verb else verb


def _next(found: Sequence[Group], width: int, out: str) -> list[str]:
    lines = _wrapped(f"Report: {out}/report.md, every result: {out}/report.json", width, then="  ")
    if found:
        lines += _wrapped("See one check again: halfeven run ... --item ID, as in the report", width, then="  ")
    return [*lines, *_wrapped(f"Compare with another run: halfeven diff {out} OTHER", width, then="  ")]


def _wrapped(said: str, width: int, first: str = "", then: str = "") -> list[str]:
    """The words in lines that break between words alone, so that a name stays whole."""
    return textwrap.wrap(
        said, width, initial_indent=first, subsequent_indent=then, break_long_words=False, break_on_hyphens=False
    )


def _printable(line: str) -> str:
    """The line without control characters, which a backend's message may hold."""
    return "".join(c if c.isprintable() else "?" for c in line)


def short(results: Sequence[Result]) -> str:
    """What ``check`` prints: the share that conforms or differs, the causes, and the first witness with its script."""
    whole = Group((), tuple(results))
    if not whole.ran:
        reasons = sorted({r.detail or r.cause for r in results} - {""})
        said = ["nothing ran: no value was compared, so this is a failure", *(f"  {r}" for r in reasons[:3])]
        return "\n".join(map(_printable, said))
    shown = whole.shown
    head = f"{shown.backend} against profile {shown.profile}: {share(whole)}"
    return "\n".join(map(_printable, [f"{head}; {count(whole.points, 'value')} compared", *_differences(whole, shown)]))


def _differences(whole: Group, shown: Result) -> Iterator[str]:
    if not whole.parting:
        return
    found = by_cause(whole.results)
    for one in found[:_SHOWN]:
        yield f"  {shorten(one.key[0], _WORDS)} ({count(len(one.results), 'check')})"
    if len(found) > _SHOWN:
        yield f"  {count(len(found) - _SHOWN, 'cause')} more in .results"
    far = steps(largest([shown]))
    yield f"  {shown.requirement}" + (f", by {far}:" if far else ":")
    w = shown.witness
    if w is None:
        yield from (f"    {line}" for line in shown.detail.strip().splitlines()[-3:])
    elif w.scale:
        yield f"    {_element(shown)}"
        if w.quotient:
            yield f"    exact quotient {shorten(w.quotient, _WORDS)}, {shorten(w.to_tie, _WORDS)} from a tie"
        script = w.script.strip().splitlines()
        # One line more is shown rather than announced.
        yield from (f"    {line}" for line in script[: None if len(script) == _SCRIPT + 1 else _SCRIPT])
        if len(script) > _SCRIPT + 1:
            yield f"    # {len(script) - _SCRIPT} lines more in .witness.script"
    else:
        yield f"    {shorten(w.where, _WORDS)}"
        said = {"arguments": w.x, "expected": w.expected, "actual": w.actual}
        yield from (f"    {name} {shorten(value, _WORDS)}" for name, value in said.items())
        yield "    .witness.script makes the call"
