"""Carrying out one item of the plan: a worker is asked, its answers are judged, and a result comes of it."""

import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict
from weakref import WeakKeyDictionary

import numpy as np

from halfeven.conformance.engine import function_verdict, operation_verdict
from halfeven.conformance.engine.call import CHANGED
from halfeven.conformance.engine.checks import CHECKS
from halfeven.conformance.engine.evidence import Crash, Ended, Evidence, Fault
from halfeven.conformance.engine.item import SMOKE, UNDOCUMENTED, Item
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.tier import Tier
from halfeven.conformance.environment import restore
from halfeven.conformance.report.model import OutcomeName, Result
from halfeven.conformance.workers import Worker

__all__ = ["run"]

#: By worker, operation, tier and seed: why its smoke probe failed; empty where it passed.
_SMOKE: "WeakKeyDictionary[Worker, dict[tuple[str, Tier, int], Result | None]]" = WeakKeyDictionary()


def run(item: Item, worker: Worker, *, gate: bool = True, gather: Callable[[Evidence], None] | None = None) -> Result:
    """The result of ``item``; whatever the backend does is an outcome, never an exception.

    ``gather`` replaces what its check asks. Where the smoke probe of the operation fails, the item is not run;
    ``gate=False`` runs it all the same.
    """
    restore()  # the reference must lose neither its subnormals nor its rounding to what this process has switched on
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning is no outcome, even where pytest makes errors of them
        return _run(item, worker, time.perf_counter(), gate=gate, gather=gather or _gather)


def _run(item: Item, worker: Worker, start: float, *, gate: bool, gather: Callable[[Evidence], None]) -> Result:
    evidence = Evidence(item, worker)
    if item.check == UNDOCUMENTED:
        return _result(evidence, "not run", start, detail=item.requirement.text)
    gated = gate and item.configuration is not None
    if gated and item.check != SMOKE and (failed := _smoke_failure(item, worker)):
        # Where the probe's process ended, another try may come to an answer for this check too.
        return _result(evidence, "not run", start, detail=f"smoke failed: {failed.cause}", ended=failed.ended)
    try:
        try:
            outcome, cause, detail = _end(evidence, gather) or _conclusion(evidence)
        except Ended as end:
            return _ended(evidence, str(end), start)
        if gated and item.check == SMOKE and outcome == "exact" and (failed := _smoke_failure(item, worker)):
            # Else the probe passed, nothing more was run, and what was run conforms.
            cause = f"not deterministic: the probe passed, and failed when it was repeated: {failed.cause}"
            outcome = "differs"
        return _result(evidence, outcome, start, cause=cause, detail=detail)
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
        if e.item.requirement.basis == "silent" and e.item.check == "nan":  # to refuse NaN is an answer
            return "implementation-defined", "", f"raises {last}"
        return "crashed", last, str(crash)
    except Fault as fault:
        return "differs", str(fault), ""
    return None


def _ended(e: Evidence, said: str, start: float) -> Result:
    """The result of an item whose worker ended, or was given up before."""
    if said.startswith("not asked"):
        return _result(Evidence(e.item, e.worker), "not run", start, detail=said, ended=said)
    return _result(e, "timed out" if said.startswith("timed out") else "crashed", start, cause=said, ended=said)


def _conclusion(e: Evidence) -> tuple[OutcomeName, str, str]:
    refused = dict.fromkeys(e.refused)
    left = f"{len(e.refused)} calls were not offered: {', '.join(refused)}" if refused else ""
    left = "; ".join([*([left] if left else []), *(f"others raised {error}" for error in e.raised)])
    if e.findings:  # what differs is the cause, and may come of what was changed
        left = "; ".join([*e.changed, *([left] if left else [])])
    if not e.points:
        return "not run", "", next(iter(refused), "nothing was compared")
    if e.changed and (not e.findings or e.item.requirement.basis == "silent"):
        return "differs", next(iter(e.changed)), left
    if e.item.requirement.basis == "silent":
        return "implementation-defined", "", "; ".join(dict.fromkeys(e.seen))
    if not e.findings:
        return "exact", "", left
    if e.item.configuration is None:
        outcome, cause, detail = function_verdict.judged(e)
        return outcome, cause, "\n".join(filter(None, (left, detail)))
    return *operation_verdict.judged(e), left


def _result(
    e: Evidence, outcome: OutcomeName, start: float, *, cause: str = "", detail: str = "", ended: str = ""
) -> Result:
    item, c = e.item, e.item.configuration
    counted = outcome not in {"implementation-defined", "not run"}
    parting = (
        bool(e.findings)
        and not cause.startswith(CHANGED)
        and outcome in {"differs", "explained", "budgeted", "crashed"}
    )
    part = function_verdict if c is None else operation_verdict
    return Result(
        id=item.id,
        backend=item.offer.name,
        profile=item.offer.profile,
        operation=item.requirement.operation,
        requirement=item.requirement.id,
        check=item.check,
        configuration={"dtype": c.dtype, "grid": asdict(c.grid), "granularity": c.granularity}
        if c
        else function_verdict.configuration(e, shown=parting),
        outcome=outcome,
        points=e.points,
        differing=e.differing if counted else 0,
        steps=e.steps if counted else 0,
        unit=e.unit if counted else "",
        cause=cause,
        detail=detail,
        witness=part.shown(e) if parting else None,
        seconds=round(time.perf_counter() - start, 4),
        ended=ended,
        asked=e.made,
        refused=len(e.refused),
    )


def _smoke_failure(item: Item, worker: Worker) -> Result | None:
    """The probe of this operation that failed; None where all passed."""
    known = _SMOKE.setdefault(worker, {})
    key = (item.requirement.operation, item.tier, item.seed)
    if key not in known:
        probes = [
            i
            for i in plan(item.offer, item.tier, item.seed)
            if i.check == SMOKE and i.requirement.operation == item.requirement.operation
        ]
        failed = [r for r in (run(i, worker, gate=False) for i in probes) if r.outcome not in {"exact", "not run"}]
        known[key] = next((r for r in failed if r.cause and not r.cause.startswith(CHANGED)), None)
    return known[key]
