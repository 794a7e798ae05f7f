"""Smoke: values that every quantizer maps alike, so that a broken adapter is told from a differing backend."""

import numpy as np

from halfeven.conformance.call import Fault
from halfeven.conformance.trial import Trial
from halfeven.reference.blocks import Array

__all__ = ["smoke"]


def smoke(trial: Trial) -> None:
    """Identity: scale 1, zero point 0, small whole numbers. Constants: one value in every place, then another."""
    grid = trial.configuration.grid
    start = min(max(0, grid.qmin), grid.qmax)
    inside = np.arange(max(grid.qmin, start - 3), min(grid.qmax, start + 3) + 1)
    _probe(trial, "identity", inside)
    first = _probe(trial, "constant", np.full(9, inside[-1]))
    _probe(trial, "constant", np.full(9, inside[0]), before=first)


def _probe(trial: Trial, name: str, values: Array, before: Array | None = None) -> Array:
    case = trial.plain(values if trial.configuration.granularity == "tensor" else values[None])
    answer = np.array(np.ravel(trial.ask(case)))
    trial.points += answer.size
    # To the nearest whole number: a last bit that differs is for the checks to judge.
    if not np.array_equal(np.rint(answer.astype(np.float64)), values):
        if before is not None and np.array_equal(answer, before):
            msg = "stale output: the answer to the call before came back"
            raise Fault(msg)
        msg = f"broken adapter: the {name} probe (scale 1, zero point 0) gave {answer.tolist()} for {values.tolist()}"
        raise Fault(msg)
    return answer
