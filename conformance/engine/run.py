"""Carrying out one item of the plan: a worker is asked, its answers are compared, and a result comes of it."""

import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from halfeven.conformance.engine import function_verdict, held, operation_verdict
from halfeven.conformance.engine.call import CHANGED
from halfeven.conformance.engine.checks import CHECKS
from halfeven.conformance.engine.conclude import concluded
from halfeven.conformance.engine.contract import broken
from halfeven.conformance.engine.evidence import Crash, Ended, Evidence, Fault
from halfeven.conformance.engine.held_witness import held_witness
from halfeven.conformance.engine.item import SMOKE, UNDOCUMENTED, Item
from halfeven.conformance.engine.kept import Sample, sampled
from halfeven.conformance.engine.norm import is_measured
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.readings import nearer, read_otherwise
from halfeven.conformance.engine.tier import Tier
from halfeven.conformance.engine.tries import aside
from halfeven.conformance.engine.witness import witness
from halfeven.conformance.environment import restore
from halfeven.conformance.report.model import OutcomeName, Result
from halfeven.conformance.workers import Worker

__all__ = ["Answered", "answered", "run"]

SIGN = "zero-sign"  # no model has a field for the sign of a zero

_LEAST_SHARE = 0.001  # of a bound that is said in numbers

#: By worker, operation, tier and seed: why its smoke probe failed; empty where it passed.
_SMOKE: "WeakKeyDictionary[Worker, dict[tuple[str, Tier, int], Result | None]]" = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Answered:
    """What one item came to: its result, whose causes are still to be found, and what is kept of the answers."""

    result: Result
    sample: Sample | None = None


def run(item: Item, worker: Worker, *, gather: Callable[[Evidence], None] | None = None) -> Result:
    """The result of ``item`` concluded on its own; arguments as in ``answered``.

    What a run of many items says is concluded from all of them, by ``conclude``.
    """
    found = answered(item, worker, gather=gather)
    samples = [found.sample] if found.sample is not None else []
    [result], _ = concluded([found.result], samples, {item.offer.name: worker}, each=False)
    return result


def answered(
    item: Item,
    worker: Worker,
    *,
    gate: bool = True,
    gather: Callable[[Evidence], None] | None = None,
    folder: Path | None = None,
) -> Answered:
    """Ask and compare; whatever the backend does is an outcome, never an exception.

    ``gather`` replaces what its check asks. Where the smoke probe of the operation found that the adapter answers
    nothing sensible, the item is not run; ``gate=False`` runs it all the same. A check that takes long goes on
    with what it finds in ``folder``.
    """
    restore()  # the reference must lose neither its subnormals nor its rounding to what this process has switched on
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning is no outcome, even where pytest makes errors of them
        return _answered(
            Evidence(item, worker, folder=folder), time.perf_counter(), gate=gate, gather=gather or _gather
        )


def _answered(evidence: Evidence, start: float, *, gate: bool, gather: Callable[[Evidence], None]) -> Answered:
    item, worker = evidence.item, evidence.worker
    if item.check == UNDOCUMENTED:
        return _result(evidence, "not run", start, detail=item.requirement.text)
    gated = gate and item.configuration is not None
    if gated and item.check != SMOKE and (failed := _smoke_failure(item, worker)):
        # Where the probe's process ended, another try may come to an answer for this check too.
        return _result(evidence, "not run", start, detail=f"smoke failed: {failed.cause}", ended=failed.ended)
    try:
        try:
            ended = _end(evidence, gather)
            outcome, cause, detail, is_open = (*ended, False) if ended else _conclusion(evidence)
        except Ended as end:
            return _ended(evidence, str(end), start)
        if gated and item.check == SMOKE and outcome == "exact" and (failed := _smoke_failure(item, worker)):
            # Else the probe passed, nothing more was run, and what was run conforms.
            cause = f"not deterministic: the probe passed, and failed when it was repeated: {failed.cause}"
            outcome = "differs"
        return _result(evidence, outcome, start, cause=cause, detail=detail, is_open=is_open)
    except Exception as error:  # noqa: BLE001 - a mistake of ours must not lose the result, nor pass for the backend's
        cause = f"error in halfeven itself: {type(error).__name__}: {error}"
        return _result(Evidence(item, worker), "crashed", start, cause=cause, detail=traceback.format_exc())


def _gather(e: Evidence) -> None:
    if e.item.configuration is None:
        function_verdict.gather(e)
    else:
        CHECKS[e.item.check].run(e)


def _end(e: Evidence, gather: Callable[[Evidence], None]) -> tuple[OutcomeName, str, str] | None:
    """Gather the evidence; how the item ended, where the backend cut it short."""
    try:
        gather(e)
    except Crash as crash:
        last = str(crash).strip().splitlines()[-1]
        if e.item.basis == "silent" and e.item.check == "nan":  # to refuse NaN is an answer
            return "implementation-defined", "", f"raises {last}"
        return "crashed", last, str(crash)
    except Fault as fault:
        return "differs", str(fault), ""
    return None


def _ended(e: Evidence, said: str, start: float) -> Answered:
    """The result of an item whose worker ended, or was given up before."""
    if said.startswith("not asked"):
        return _result(Evidence(e.item, e.worker), "not run", start, detail=said, ended=said)
    return _result(e, "timed out" if said.startswith("timed out") else "crashed", start, cause=said, ended=said)


def _conclusion(e: Evidence) -> tuple[OutcomeName, str, str, bool]:
    """The outcome, the cause and the detail, and whether the cause is still to be found."""
    refused = dict.fromkeys(e.refused)
    left = f"{len(e.refused)} calls were not offered: {', '.join(refused)}" if refused else ""
    left = "; ".join([*([left] if left else []), *(f"others raised {error}" for error in e.raised)])
    if e.findings:  # what differs is the cause, and may come of what was changed
        left = "; ".join([*e.changed, *([left] if left else [])])
    left = "\n".join([*([left] if left else []), *e.covered])
    if not e.points:
        return "not run", "", next(iter(refused), "nothing was compared"), False
    if e.changed and (not e.findings or e.item.basis == "silent"):
        return "differs", next(iter(e.changed)), left, False
    if e.item.basis == "silent":
        return "implementation-defined", "", "; ".join(dict.fromkeys(e.seen)), False
    reading = "" if held.property_of(e.item) is not None else read_otherwise(e)
    if reading:
        e.admit()
    if not e.findings:
        return _agreed(e, reading, left)
    if e.item.configuration is None:
        outcome, cause, detail = function_verdict.judged(e)
        is_open = held.property_of(e.item) is None  # a property broken is a cause by itself
        return outcome, cause, "\n".join(filter(None, (reading, left, detail))), is_open
    outcome, cause, is_open = operation_verdict.judged(e)
    return outcome, cause, "; ".join(filter(None, [nearer(e.setting.profile, e.findings[0]), left])), is_open


def _agreed(e: Evidence, reading: str, left: str) -> tuple[OutcomeName, str, str, bool]:
    """What is said where no answer differs from what the document gives, in a reading that it admits."""
    said = "; ".join(filter(None, [reading, _sums(e), left]))
    if e.raised:
        return "crashed", next(iter(e.raised)), said, False
    return "as measured" if is_measured(e) else "bounded" if e.sums.bounded else "exact", "", said, False


def _sums(e: Evidence) -> str:
    """How near to the bound the sums are whose order no document states, in words."""
    found = e.sums
    said = []
    if found.bounded:
        share, terms = found.share
        near = "less than 0.1 %" if share < _LEAST_SHARE else f"at most {share:.1%} (n = {terms:,})".replace("%", " %")
        said = [f"{found.bounded:,} sums use {near} of the bound proved for any order, n up to {found.terms:,}"]
    if found.unproved:
        said.append(f"{found.unproved:,} were not judged, for which no bound is proved")
    return "; ".join(said)


def _result(
    e: Evidence,
    outcome: OutcomeName,
    start: float,
    *,
    cause: str = "",
    detail: str = "",
    ended: str = "",
    is_open: bool = False,
) -> Answered:
    item, c = e.item, e.item.configuration
    counted = outcome not in {"implementation-defined", "not run"}
    parting = outcome in {"differs", "explained", "budgeted", "crashed", "timed out"} and e.made > 0
    show = held_witness if held.property_of(item) is not None else partial(witness, cause=cause)
    result = Result(
        id=item.id,
        backend=item.offer.name,
        profile=item.offer.profile,
        operation=item.requirement.operation,
        requirement=item.requirement.id,
        check=item.check,
        configuration={"dtype": c.dtype, "grid": asdict(c.grid), "granularity": c.granularity}
        if c
        else function_verdict.configuration(e),
        outcome=outcome,
        points=e.points,
        differing=e.differing if counted else 0,
        steps=e.steps if counted else 0,
        unit=e.unit if counted else "",
        cause=cause,
        detail=detail,
        witness=aside(e.worker, lambda: show(e)) if parting else None,
        seconds=round(time.perf_counter() - start, 4),
        ended=ended,
        asked=e.made,
        refused=len(e.refused),
    )
    against = function_verdict.refuting(e) if is_open and c is None else None
    of_values = item.check != SIGN and held.property_of(item) is None
    kept = of_values and outcome not in {"implementation-defined", "not run"}
    return Answered(
        result if is_open else replace(result, causes=broken(result, e.raised)),
        sampled(e, result.name, is_open=is_open, against=against) if kept else None,
    )


def _smoke_failure(item: Item, worker: Worker) -> Result | None:
    """The probe of this operation that found no sensible answer; None where there is none."""
    known = _SMOKE.setdefault(worker, {})
    key = (item.requirement.operation, item.tier, item.seed)
    if key not in known:
        probes = [
            i
            for i in plan(item.offer, item.tier, item.seed)
            if i.check == SMOKE and i.requirement.operation == item.requirement.operation
        ]
        # A probe that differs and can be explained is evidence like any other.
        asked = (answered(i, worker, gate=False) for i in probes)
        failed = [a.result for a in asked if a.sample is None or not a.sample.open]
        failed = [r for r in failed if r.outcome not in {"exact", "not run", "implementation-defined"}]
        known[key] = next((r for r in failed if r.cause and not r.cause.startswith(CHANGED)), None)
    return known[key]
