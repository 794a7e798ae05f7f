"""The smoke probe: it tells a broken adapter from a backend that differs."""

import numpy as np

from halfeven.conformance.configuration import Array
from halfeven.conformance.engine.evidence import Evidence, Fault

__all__ = ["smoke"]


def smoke(e: Evidence) -> None:
    """Identity: scale 1, zero point 0, small whole numbers. Constants: one value in every place, then another."""
    grid = e.setting.grid
    start = min(max(0, grid.qmin), grid.qmax)
    inside = np.arange(max(grid.qmin, start - 3), min(grid.qmax, start + 3) + 1)
    first = None
    for name, values in (
        ("identity", inside),
        ("constant", np.full(9, inside[-1])),
        ("constant", np.full(9, inside[0])),
    ):
        first = _probe(e, name, values, before=first if name == "constant" else None)


def _probe(e: Evidence, name: str, values: Array, before: Array | None) -> Array | None:
    [given] = e.ask([e.setting.plain(values if e.setting.configuration.granularity == "tensor" else values[None])])
    if given is None:
        return None
    answer: Array = np.array(np.ravel(given))
    e.points += answer.size
    # To the nearest whole number: a last bit that differs is for the checks to judge.
    if not np.array_equal(np.rint(answer.astype(np.float64)), values):
        if before is not None and np.array_equal(answer, before):
            msg = "stale output: the answer to the call before came back"
            raise Fault(msg)
        msg = f"broken adapter: the {name} probe (scale 1, zero point 0) gave {answer.tolist()} for {values.tolist()}"
        raise Fault(msg)
    return answer
