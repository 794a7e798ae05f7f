"""Carrying out one item of the plan: evidence is gathered and judged, and a result comes of it, whatever happens."""

import time
import traceback
import warnings
from dataclasses import asdict
from functools import lru_cache

import numpy as np
import torch

from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.call import Crash, Fault
from halfeven.conformance.checks import CHECKS
from halfeven.conformance.environment import THREADS
from halfeven.conformance.explain import Answer, explain, flat
from halfeven.conformance.formula_run import run_formula
from halfeven.conformance.plan import SMOKE, UNDOCUMENTED, Item, plan
from halfeven.conformance.report.causes import UNKNOWN
from halfeven.conformance.report.model import OutcomeName, Result
from halfeven.conformance.trial import Finding, Tier, Trial
from halfeven.conformance.witness import witness
from halfeven.reference.profile import Profile

__all__ = ["run"]

_PLACED = {
    "zero-sign": "a zero of the other sign",
    "granularity": "elements meet the parameters of another block",
    "layout": "the layout of the input changes the result",
}
_OWN = {
    "composition": "fake_quantize is not dequantize after quantize",
    "idempotence": "quantize after dequantize does not return the code",
    "granularity": "a block gives other results than the same elements alone, with its scale",
    "layout": "the layout of the input changes the result",
    "position": "the same value gives different results at different positions or calls",
}


def run(item: Item, *, gate: bool = True) -> Result:
    """The result of ``item``; errors of the backend are outcomes, never exceptions.

    Where the smoke probe of the operation fails, the item is not run; ``gate=False`` runs it all the same.
    torch computes on ``THREADS`` threads meanwhile.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning is no outcome, even where pytest makes errors of them
            return _run(item, time.perf_counter(), gate=gate)
    finally:
        torch.set_num_threads(threads)


def _run(item: Item, start: float, *, gate: bool) -> Result:
    if item.check == UNDOCUMENTED:
        return _result(item, None, "not run", start, detail=item.requirement.text)
    if gate and item.configuration and item.check != SMOKE and (reason := _smoke_failure(item.backend, item)):
        return _result(item, None, "not run", start, detail=f"smoke failed: {reason}")
    try:
        if item.configuration is None:
            return run_formula(item)
        trial = Trial(item.backend, item.requirement, item.check, item.configuration, item.tier, item.seed)
        outcome, cause, detail = _end(item, trial) or _conclusion(item, trial)
        if gate and item.check == SMOKE and outcome == "exact" and (reason := _smoke_failure(item.backend, item)):
            # Else the probe passed, nothing more was run, and what was run conforms.
            outcome, cause = (
                "differs",
                f"not deterministic: the probe passed, and failed when it was repeated: {reason}",
            )
        return _result(item, trial, outcome, start, cause=cause, detail=detail)
    except Exception as error:  # noqa: BLE001 - a mistake of ours must not lose the result, nor pass for the backend's
        cause = f"error in halfeven itself: {type(error).__name__}: {error}"
        return _result(item, None, "crashed", start, cause=cause, detail=traceback.format_exc())


def _end(item: Item, trial: Trial) -> tuple[OutcomeName, str, str] | None:
    """Gather the evidence; how the check ended, where the backend cut it short."""
    try:
        CHECKS[item.check].run(trial)
    except Unsupported as reason:
        trial.refused.append(str(reason) or "not offered by the backend")
    except Crash as crash:
        last = str(crash).strip().splitlines()[-1]
        if item.requirement.basis == "silent" and item.check == "nan":  # to refuse NaN is an answer
            return "implementation-defined", "", f"raises {last}"
        return "crashed", last, str(crash)
    except Fault as fault:
        return "differs", str(fault), ""
    return None


def _conclusion(item: Item, trial: Trial) -> tuple[OutcomeName, str, str]:
    if not trial.points:
        return "not run", "", trial.refused[0] if trial.refused else "nothing was compared"
    if item.requirement.basis == "silent":
        return "implementation-defined", "", "; ".join(dict.fromkeys(trial.seen))
    if not trial.differing:
        left = f"{len(trial.refused)} calls were not offered: {trial.refused[0]}" if trial.refused else ""
        return "exact", "", left
    return *_judge(item, trial), ""


def _judge(item: Item, trial: Trial) -> tuple[OutcomeName, str]:
    """What a difference is: within a waiver, a model that is known, or neither."""
    budget = item.backend.waivers.get(item.requirement.id)
    if budget is not None and trial.steps <= budget and all(_at_ties(trial.profile, f) for f in trial.findings):
        return "budgeted", f"within the waiver of {budget} {trial.unit} at ties"
    if any(f.own for f in trial.findings):
        return "differs", _OWN.get(item.check, "the backend differs from itself")
    if item.check == "zero-sign":  # no model has a field for it
        return "differs", _PLACED["zero-sign"]
    failing = [Answer(f.case, f.actual) for f in trial.findings]
    found = explain(trial.profile, trial.answers, failing)
    if found is None:
        return "differs", _PLACED.get(item.check, UNKNOWN)
    if found.profile:
        return "explained", f"as {found.profile}: {found.words}"
    return "differs", found.words


def _at_ties(profile: Profile, finding: Finding) -> bool:
    """Whether every point that differs lies within four ulps of a tie."""
    elements = flat(finding.case)
    if finding.own or finding.case.configuration.operation == "dequantize":
        return False
    with np.errstate(all="ignore"):
        w = finding.comparison.where
        reals = profile.real_per_code(elements.scale[w], finding.case.configuration.grid)
        quotient = elements.x[w].astype(np.float64) / reals
        distance = np.abs(quotient - np.floor(quotient) - 0.5)
        near = 4 * float(np.finfo(np.float32).eps) * np.maximum(np.abs(quotient), 1.0)
    # Past about 2^20 codes no float is far from a tie, so nothing there is excused.
    return bool(np.all((distance <= near) & (near < 0.25)))  # noqa: PLR2004 - halfway to the next code's middle


def _result(
    item: Item, trial: Trial | None, outcome: OutcomeName, start: float, *, cause: str = "", detail: str = ""
) -> Result:
    shown = None
    if trial is not None and trial.findings and outcome in {"differs", "explained", "budgeted"}:
        f = trial.findings[-1] if trial.minimal_last else min(trial.findings, key=lambda f: f.actual.size)
        shown = witness(item.backend, f.case, f.expected, f.actual, f.comparison.where)
    c = item.configuration
    configuration = {"dtype": c.dtype, "grid": asdict(c.grid), "granularity": c.granularity} if c else {}
    return Result(
        id=item.id,
        backend=item.backend.name,
        profile=item.backend.profile,
        operation=item.requirement.operation,
        requirement=item.requirement.id,
        check=item.check,
        configuration=configuration,
        outcome=outcome,
        points=trial.points if trial else 0,
        differing=trial.differing if trial and outcome != "implementation-defined" else 0,
        steps=trial.steps if trial and outcome != "implementation-defined" else 0,
        unit=trial.unit if trial else "",
        cause=cause,
        detail=detail,
        witness=shown,
        seconds=round(time.perf_counter() - start, 4),
    )


def _smoke_failure(backend: Backend, item: Item) -> str:
    """Why the probe of this operation failed in this process; empty where it passed."""
    return _smoke_failures(_Same(backend), item.requirement.operation, item.tier, item.seed)


class _Same:
    """A backend as a cache key: the object itself, which need not be hashable."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __hash__(self) -> int:
        return id(self.backend)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.backend is self.backend


@lru_cache(maxsize=256)
def _smoke_failures(same: _Same, operation: str, tier: Tier, seed: int) -> str:
    probes = [i for i in plan(same.backend, tier, seed) if i.check == SMOKE and i.requirement.operation == operation]
    failed = [r for r in (run(i, gate=False) for i in probes) if r.outcome not in {"exact", "not run"}]
    return failed[0].cause if failed else ""
