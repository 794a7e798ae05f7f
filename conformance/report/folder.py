"""The folder of a run: the report as JSON and as Markdown, and the journal that outlives the process."""

from dataclasses import replace
from pathlib import Path

from halfeven.conformance.report import codec, markdown
from halfeven.conformance.report.model import Report

__all__ = ["JOURNAL", "REPORT", "recover", "write"]

REPORT = "report.json"
JOURNAL = "journal.jsonl"


def write(report: Report, folder: Path) -> None:
    """Write ``report.json`` and ``report.md`` into ``folder``.

    Raises:
        OSError: the folder cannot be written to.
    """
    codec.write_json(report, folder / REPORT)
    (folder / "report.md").write_text(markdown.to_markdown(report), encoding="utf-8")


def recover(folder: Path) -> Report:
    """The report of a run that ended without one: what was planned, with the results that the journal holds.

    It is incomplete, and written in place of the one from the run's start.

    Raises:
        ValueError: a file in ``folder`` is damaged; the message names it.
        OSError: there is no report of the run's start.
    """
    begun = codec.read_json(folder / REPORT)
    journal = folder / JOURNAL
    kept = {(r.backend, r.id): r for r in (codec.read_journal(journal) if journal.exists() else ())}
    results = tuple(kept[key] for key in sorted(kept))
    report = replace(begun, results=results, expected=max(begun.expected, len(results)), complete=False)
    write(report, folder)
    return report
