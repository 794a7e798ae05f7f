"""The stage that concludes: one explanation for all that a backend answered, and what it says of every check.

Each check has kept a bounded choice of its answers. Here they come together, by backend, operation or formula, and
dtype; one explanation has to give all of them, so that no cause is said that an answer elsewhere refutes. What is
found is tried on fresh calls before it is said; their answers are kept as any others.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from halfeven.conformance.engine.contract import raised
from halfeven.conformance.engine.decisive import decided
from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.function_causes import FunctionWhy
from halfeven.conformance.engine.kept import Sample, Subject
from halfeven.conformance.engine.operation_causes import OperationWhy
from halfeven.conformance.engine.told import Told, Why, unknown, unsaid
from halfeven.conformance.engine.trial import tried
from halfeven.conformance.environment import restore
from halfeven.conformance.report.model import OutcomeName, Result
from halfeven.conformance.workers import Worker
from halfeven.reference import Grid
from halfeven.reference.systems import PROFILES

__all__ = ["Release", "concluded"]

_TRIALS = 3
Release = tuple[str, str, str]
"""Of a backend the profile it claims, its library, and that one's version."""


def concluded(
    results: Sequence[Result],
    samples: Sequence[Sample],
    workers: Mapping[str, Worker] | None = None,
    *,
    releases: Mapping[str, Release] | None = None,
    tell: Callable[[Subject], None] = lambda _: None,
    each: bool = True,
) -> tuple[list[Result], list[Sample]]:
    """The results with their causes, and what was kept of the trials.

    Args:
        results: of any number of backends; those whose samples are open are explained, from all samples.
        samples: what was kept of the answers, of these results, and of earlier trials.
        workers: by backend's name, where to ask for fresh answers; without one an explanation is not tried.
        releases: by backend's name what it claims to be; of workers it is known.
        tell: is called with each subject before its explanation is sought.
        each: whether a witness is sought for each cause that no result has alone.
    """
    workers = workers or {}
    known = dict(releases or {}) | {name: _release(worker) for name, worker in workers.items()}
    by: dict[Subject, list[Sample]] = {}
    for sample in samples:
        for of in sample.subjects:
            by.setdefault(of, []).append(sample)
    names = {r.name: r for r in results}
    told: dict[str, Result] = {}
    trials: list[Sample] = []
    whys: dict[Subject, Why] = {}
    restore()  # in this process a backend may have been called
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for of, some in by.items():
            mine = [s for s in some if s.open and s.name in names]
            if not mine:
                continue
            tell(of)
            release = known.get(of[0], (names[mine[0].name].profile, "", ""))
            try:
                why, fresh = _explained(of, some, release, workers.get(of[0]))
                trials += fresh
                whys[of] = why
                told |= {s.name: _told(names[s.name], s, why) for s in mine}
            except Exception as error:  # noqa: BLE001 - a mistake of ours must not lose what was found
                told |= {s.name: unsaid(names[s.name], error) for s in mine}
        if each:
            told |= decided([told.get(r.name, r) for r in results], samples, whys, workers)
    lost = {s.name for s in samples if s.open} - told.keys()  # of answers that have no form outside their process
    told |= {name: _nothing_kept(names[name]) for name in lost & names.keys()}
    return [told.get(r.name, r) for r in results], trials


def _explained(
    of: Subject, samples: Sequence[Sample], release: Release, worker: Worker | None
) -> tuple[Why, list[Sample]]:
    """An explanation that fresh answers do not refute, and these."""
    why, fresh = _why(of, samples, release), list[Sample]()
    if worker is None:
        return why, fresh
    grids = _grids(of, samples)
    refuted = calm = 0
    # Each of another piece, or on another grid.
    while refuted < _TRIALS and calm < min(max(len(grids) + len(why.pieces), 1), _TRIALS):
        if why.key is None:
            return why, fresh
        trial = tried(why, of, grids, worker, len(fresh))
        if trial is None:
            return why, fresh
        fresh.append(trial)
        if trial.open:
            refuted, calm = refuted + 1, 0
            why = _why(of, [*samples, *fresh], release, refuted)
        else:
            calm += 1
    return (why.doubted() if refuted == _TRIALS else why), fresh


def _why(of: Subject, samples: Sequence[Sample], release: Release, turn: int = 0) -> Why:
    backend, formula, _ = of
    profile, library, version = release
    if ":" in formula:
        return OperationWhy(PROFILES[profile], of, samples, turn=turn)
    return FunctionWhy(formula_of(formula, profile), samples, (backend, library, version))


def _told(result: Result, sample: Sample, why: Why) -> Result:
    first = result.witness.where if result.witness is not None and not result.witness.scale else result.cause
    before: OutcomeName = (
        "differs" if result.outcome == "explained" else result.outcome
    )  # by fewer answers than there are now
    said = why.told(sample, before, first)
    if sample.raised:
        crashes = [raised(words) for words in sample.raised]
        cause = "; ".join([said.cause, *(crash.sentence for crash in crashes)])
        said = Told("differs", cause, (*said.causes, *crashes))
    known = {c.key: c.witness for c in result.causes}  # of a run that goes on
    causes = (replace(c, witness=known.get(c.key)) for c in said.causes)
    return replace(result, outcome=said.outcome, cause=said.cause, causes=tuple(causes))


def _nothing_kept(result: Result) -> Result:
    cause = unknown()
    return replace(result, cause=result.cause or cause.sentence, causes=(cause,))


def _grids(of: Subject, samples: Sequence[Sample]) -> list[Grid]:
    """Of an operation those of the answers, each once, those of answers that differ first."""
    if ":" not in of[1]:
        return []
    answers = [a for s in samples for a in s.observed(of)]
    differing = [a for a in answers if a.where is not None and len(a.where)]
    return list(dict.fromkeys(a.case.configuration.grid for a in differing or answers))


def _release(worker: Worker) -> Release:
    return worker.offer.profile, worker.offer.library, worker.offer.version
