"""The report as a few lines of plain text, for the end of a run and for ``check``."""

from collections.abc import Sequence

from tabulate import tabulate

from halfeven.conformance.report.groups import SEVERITY, Group, aspect, backends, largest
from halfeven.conformance.report.model import OutcomeName, Report, Result
from halfeven.conformance.report.words import SHORT, count, progress, shorten, steps

__all__ = ["short", "to_text"]

_BACKENDS = 14
_WORDS = 200  # of an argument, or of an answer
_ABSENT = 3
_COLUMNS: tuple[OutcomeName, ...] = (
    "exact",
    "implementation-defined",
    "budgeted",
    "explained",
    "differs",
    "crashed",
    "not run",
)
_SCRIPT = 12


def to_text(report: Report) -> str:
    """One line per backend with the outcomes counted, the worst first where they do not all fit."""
    found = backends(report)
    columns = [o for o in _COLUMNS if any(results.counts[o] for _, results in found)]
    rows = []
    for record, results in sorted(found, key=lambda pair: -SEVERITY.index(pair[1].outcome))[:_BACKENDS]:
        name = record.name if not record.version else f"{record.name} {record.version}"
        counts = [f"{results.counts[o]:,}" if results.counts[o] else "" for o in columns]
        far = steps(largest(results.results))
        rows.append((shorten(name, 44), record.profile, *counts, f"{results.points:,}", far))
    lines = [progress(report)]
    if rows:
        headers = ("backend", "profile", *(SHORT.get(o, o) for o in columns), "points", "worst difference")
        align = ["left", "left", *("right" for _ in columns), "right", "left"]
        lines.append(tabulate(rows, headers, tablefmt="simple", disable_numparse=True, colalign=align))
    if len(found) > _BACKENDS:
        lines.append(f"{count(len(found) - _BACKENDS, 'backend')} more; the report has them all.")
    for entry in report.not_run[:_ABSENT]:
        what = ", ".join(value for key, value in entry.items() if key != "reason")
        lines.append(f"not run: {shorten(what, 40)}: {shorten(entry.get('reason', 'no reason was recorded'), 70)}")
    if len(report.not_run) > _ABSENT:
        lines.append(f"not run: {len(report.not_run) - _ABSENT:,} more; the report has them all.")
    return "\n".join(line for line in lines if line)


def short(results: Sequence[Result]) -> str:
    """What ``check`` prints: the outcome, the points compared, and the first witness with its script."""
    whole = Group((), tuple(results))
    if not whole.ran:
        reasons = sorted({r.detail or r.cause for r in results} - {""})
        return "\n".join(["nothing ran: no value was compared, so this is a failure", *(f"  {r}" for r in reasons[:3])])
    shown = whole.shown
    outcome = "differs" if whole.outcome == "explained" else whole.outcome
    head = f"{shown.backend} against profile {shown.profile}: {outcome}"
    lines = [f"{head}; {len(whole.parting):,} of {count(len(whole.ran), 'check')} part, {whole.points:,} points"]
    if not whole.parting:
        return lines[0]
    far = steps(largest([shown]))
    lines.append(
        f"  {shown.requirement}: {shorten(shown.cause, 100) or 'no known cause'}" + (f" ({far})" if far else "")
    )
    if shown.witness is not None:
        w = shown.witness
        script = w.script.strip().splitlines()
        if w.scale:
            lines.append(f"  x {w.x}, scale {w.scale}, zero {w.zero}: expected {w.expected}, actual {w.actual}")
            if w.quotient:
                lines.append(f"  exact quotient {shorten(w.quotient, _WORDS)}, {shorten(w.to_tie, _WORDS)} from a tie")
            lines += [f"    {line}" for line in script[: None if len(script) == _SCRIPT + 1 else _SCRIPT]]
            if len(script) > _SCRIPT + 1:
                lines.append(f"    # {len(script) - _SCRIPT} lines more in .witness.script")
        else:
            said = {"arguments": w.x, "expected": w.expected, "actual": w.actual}
            lines += [f"  {name} {shorten(value, _WORDS)}" for name, value in said.items()]
            parting = sorted({f"{r.operation}/{aspect(r.requirement)}" for r in whole.parting})
            lines.append(f"  parting: {', '.join(parting)}; .witness.script makes the call")
    elif shown.detail:
        lines += [f"    {line}" for line in shown.detail.strip().splitlines()[-3:]]
    return "\n".join(lines)
