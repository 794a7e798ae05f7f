"""The folder of a run: its plan, its journal, the lock that one run holds, and the report as JSON and Markdown."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from halfeven.conformance.claim import unused_waivers
from halfeven.conformance.report import codec, markdown
from halfeven.conformance.report.journal import Journal, Plan
from halfeven.conformance.report.model import BackendRecord, Report

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None

__all__ = ["JOURNAL", "LOCK", "PLAN", "REPORT", "Lock", "locked", "read", "report_of", "write"]

REPORT = "report.json"
PLAN = "planned.json"
JOURNAL = "journal.jsonl"
LOCK = "lock"


class Lock:
    """The right to write into a folder, until it is released or the process ends, however that ends.

    It is a lock of the operating system on the file ``lock``, which says nothing by being there. What the process
    forks does not hold it. Where there are no such locks, nothing is locked, and standard error says so.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock of ``folder``, which is made as needed.

        Raises:
            ValueError: another process holds it.
            OSError: the folder cannot be written to.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] | None = None
        if fcntl is None:
            print(f"halfeven: this system has no file locks: let no other run write to {folder}", file=sys.stderr)
            return
        file = (folder / LOCK).open("a+", encoding="ascii", errors="replace")
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read(20).strip()
            file.close()
            who = f" (process {holder})" if holder.isdigit() else ""
            msg = f"{folder} is in use by another run{who}: wait for its end, or give another folder"
            raise ValueError(msg) from None
        self._file = file
        with contextlib.suppress(OSError):  # a full disk; the number is for the message alone
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()

    def release(self) -> None:
        """Let another process write."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder`` meanwhile.

    Raises:
        ValueError, OSError: as ``Lock``.
    """
    lock = Lock(folder)
    try:
        yield
    finally:
        lock.release()


def read(folder: Path) -> tuple[Plan, Journal]:
    """What a run has written down.

    Raises:
        ValueError: a file is damaged, or there is no plan; the message names it.
        OSError: a file cannot be read.
    """
    if not (folder / PLAN).exists():
        msg = f"{folder} has no {PLAN}, which a run writes before its first check: no run was begun there"
        raise ValueError(msg)
    plan = codec.read_plan(folder / PLAN)
    journal = folder / JOURNAL
    return plan, codec.read_journal(journal, plan) if journal.exists() else Journal()


def report_of(plan: Plan, journal: Journal) -> Report:
    """The report of a run, finished or not: complete where nothing that was planned is missing, name by name."""
    names = set(plan.names or ())
    missing = names - journal.names
    complete = plan.names is not None and not missing
    results = [*journal.results.values()]
    waived = [
        w
        for known in journal.known.values()
        for w in (unused_waivers(known.record.name, known.record.profile, known.waivers, results) if complete else ())
    ]
    records = {name: known.record for name, known in journal.known.items()}
    for r in results:  # of a backend that never lived long enough to say more
        records.setdefault(r.backend, BackendRecord(r.backend, r.profile, "", "", "", ""))
    return Report(
        command=plan.command,
        tier=plan.tier,
        seed=plan.seed,
        environment=dict(plan.environment),
        backends=tuple(record for _, record in sorted(records.items())),
        results=tuple(sorted([*results, *waived], key=lambda r: (r.backend, r.id))),
        expected=len(names | journal.names) + len(waived),
        complete=complete,
        not_run=tuple({"backend": name, "reason": reason} for name, reason in sorted(journal.absent.items())),
        created=plan.created,
        require=plan.require,
        missing=tuple(sorted(missing)),
    )


def write(report: Report, folder: Path) -> None:
    """Write ``report.json`` and ``report.md`` into ``folder``.

    Raises:
        OSError: the folder cannot be written to; the message names the file.
    """
    codec.write_json(report, folder / REPORT)
    codec.write_text(markdown.to_markdown(report), folder / "report.md")
