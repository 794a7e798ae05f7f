"""The witness of one cause among several: a call that differs by it alone, or else one that would not differ without.

The witness of a check was found before its causes were known. Where several things are done otherwise its call may
differ by any of them, so each cause that no check has alone gets a call of its own, if one is found.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from halfeven.conformance.configuration import Case, Configuration
from halfeven.conformance.engine.call import Answer, Call, numbers, sent
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.kept import Sample, Subject
from halfeven.conformance.engine.shrink import shrunk
from halfeven.conformance.engine.told import Deciding, Why, unsaid
from halfeven.conformance.engine.tries import Trial, Tries, aside, trial_of
from halfeven.conformance.engine.witness import shown
from halfeven.conformance.report.causes import witnessed
from halfeven.conformance.report.model import Cause, Result, Witness
from halfeven.conformance.requirement import Requirement
from halfeven.conformance.workers import Worker

__all__ = ["decided"]

_RESULTS = 4  # in which a call is sought, of those with one cause
_ASKED = 16  # calls, the simplest


def decided(
    results: Iterable[Result],
    samples: Iterable[Sample],
    whys: Mapping[Subject, Why],
    workers: Mapping[str, Worker],
) -> dict[str, Result]:
    """By name the results of which a cause has a witness of its own now.

    Args:
        results: with their causes.
        samples: what is kept of their answers.
        whys: the explanations that the causes come from.
        workers: by backend's name, where a call is asked.
    """
    every, kept = list(results), {s.name: s for s in samples}
    alone = {(r.backend, *c.key) for r in every for c in r.causes if c.witness or (r.witness and len(r.causes) == 1)}
    asked = Counter[tuple[str, ...]]()
    found: dict[str, Result] = {}
    for r in reversed(every):  # of a run that goes on the last are its own, whose scripts can be run
        several = len(r.causes) > 1 and r.name in kept and r.backend in workers
        for cause in r.causes if several else ():
            key = (r.backend, *cause.key)
            if key in alone or asked[key] == _RESULTS:
                continue
            of, deciding = _deciding(kept[r.name], cause, whys)
            if deciding is None:
                continue
            asked[key] += 1
            now, worker = found.get(r.name, r), workers[r.backend]
            try:
                w = aside(worker, partial(_witness, r, of, deciding, worker))
            except Exception as error:  # noqa: BLE001 - a mistake of ours must not lose what was found
                found[r.name] = unsaid(now, error)
            else:
                if w is not None:
                    alone.add(key)
                    found[r.name] = witnessed(now, cause, w)
    return found


def _deciding(sample: Sample, cause: Cause, whys: Mapping[Subject, Why]) -> tuple[Subject, Deciding | None]:
    """What to ask, of the first operation or formula of which anything is known."""
    known = ((of, whys[of].deciding(sample, cause)) for of in sample.subjects if of in whys)
    return next(((of, deciding) for of, deciding in known if deciding is not None), (("", "", ""), None))


def _witness(r: Result, of: Subject, deciding: Deciding, worker: Worker) -> Witness | None:
    """The smallest call found that shows the cause; its script has not been run yet."""

    def judged(e: Evidence, call: Call, actual: Answer, before: tuple[Call, ...] = ()) -> Trial | None:
        if actual.kind not in {"returned", "raised"} or actual.faults:
            return None
        t = trial_of(e, call, actual, before)
        return t if t is not None and deciding.shows(e, t) else None

    e, calls = _asking(r, of, deciding, worker)
    trials = (judged(e, call, answer) for call, answer in zip(calls, worker.answers(calls), strict=True))
    best = min((t for t in trials if t is not None), key=lambda t: t.clear.rank, default=None)
    return None if best is None else replace(shown(e, shrunk(best, Tries(e, judged))), longer="")


def _asking(r: Result, of: Subject, deciding: Deciding, worker: Worker) -> tuple[Evidence, list[Call]]:
    """An item like the result's, and the simplest calls."""
    formula, offer = of[1], worker.offer
    says = "One cause decides this call."
    requirement = Requirement(r.requirement, says, "expected", "", (r.check,), formula=formula)
    cases = [a for a in deciding.asked if isinstance(a, Case)]
    if not cases:
        calls = sorted((a for a in deciding.asked if isinstance(a, Call)), key=lambda c: numbers(c.named))
        e = Evidence(Item(offer, requirement, r.check, None, "quick", 0), worker)
        return e, [Call(c.formula, (), sent(c.named), reason=says) for c in calls[:_ASKED]]
    first = cases[0].configuration
    granularity = "tensor" if "tensor" in offer.granularities else offer.granularities[0]
    configuration = replace(first, shape=(), granularity=granularity)
    e = Evidence(Item(offer, requirement, r.check, configuration, "quick", 0), worker)
    alike = sorted((c for c in cases if c.configuration.grid == first.grid), key=_size)
    return e, [e.call(_placed(c, configuration)) for c in alike[:_ASKED]]


def _placed(case: Case, like: Configuration) -> Case:
    """One element in the plainest call of a granularity."""
    if like.granularity == "tensor":
        return replace(case, configuration=replace(like, shape=(1,)))
    x, scale, zero = (np.reshape(a, (1, 1)) for a in (case.x, case.scale, case.zero))
    return Case(replace(like, shape=(1, 1), block_size=(1, 1)), x, scale, zero)


def _size(case: Case) -> tuple[bool, float]:
    """Small quotients and zero points are the easiest to follow; what is not finite is the last."""
    x, scale, zero = (float(np.ravel(a)[0]) for a in (case.x, case.scale, case.zero))
    size = abs(x) / abs(scale) + abs(zero) if scale else np.inf
    return not np.isfinite(size), size
