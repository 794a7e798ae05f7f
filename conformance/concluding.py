"""The stage that concludes, for a journal: what it adds to one that says what differs, and not yet why."""

from collections.abc import Callable, Iterator, Mapping

from halfeven.conformance.engine.conclude import concluded
from halfeven.conformance.engine.kept import decoded, encoded
from halfeven.conformance.report.journal import Entry, Journal, Kept
from halfeven.conformance.report.model import CONFORMING, Result, Witness
from halfeven.conformance.workers import Worker

__all__ = ["conclusions", "unexplained"]


def unexplained(journal: Journal) -> set[str]:
    """The backends that differ in a way that is not yet explained."""
    return {r.backend for r in journal.results.values() if _is_open(r)}


def conclusions(
    journal: Journal,
    workers: Mapping[str, Worker] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Entry]:
    """What is to be added to the journal: what was kept of trials, and every result that says more by it.

    Args:
        journal: of a run, finished or not. Where all that differs has its causes, nothing is added.
        workers: by backend's name, where to try what is found.
        tell: is called with the backend whose answers are looked at.

    Raises:
        ValueError: what is kept of some answers is damaged.
    """
    names = unexplained(journal)
    if not names:
        return
    results = [r for r in journal.results.values() if r.backend in names]
    samples = [decoded(name, text) for name, text in journal.kept.items() if name.partition("::")[0] in names]
    known = {name: k.record for name, k in journal.known.items()}
    releases = {name: (r.profile, r.library, r.version) for name, r in known.items()}
    found, trials = concluded(results, samples, workers, releases=releases, tell=lambda of: tell(of[0]))
    yield from (Kept(trial.name, encoded(trial)) for trial in trials)
    yield from (
        now for before, now in zip(results, found, strict=True) if now != before or _shows(now) != _shows(before)
    )


def _shows(result: Result) -> list[Witness | None]:
    """The witnesses of its causes, which are equal without."""
    return [c.witness for c in result.causes]


def _is_open(result: Result) -> bool:
    return not result.causes and result.outcome not in {*CONFORMING, "not run"}
