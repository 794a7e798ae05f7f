"""The smoke probe: it tells an adapter that answers nothing sensible from a backend that differs."""

import numpy as np

from halfeven.conformance.configuration import Array
from halfeven.conformance.engine.evidence import Evidence, Fault
from halfeven.conformance.engine.setting import evaluation_of

__all__ = ["smoke"]


def smoke(e: Evidence) -> None:
    """Identity: scale 1, zero point 0, small whole numbers. Constants: one value in every place, then another.

    What differs is evidence as any other. What comes whatever is asked, or comes again, is a fault.
    """
    grid = e.setting.grid
    start = min(max(0, grid.qmin), grid.qmax)
    inside = np.arange(max(grid.qmin, start - 3), min(grid.qmax, start + 3) + 1)
    probes = (inside, np.full(9, inside[-1]), np.full(9, inside[0]))
    found = [_probe(e, values) for values in probes]
    answers = [np.ravel(given) for given, _ in found if given is not None]
    wanted = [np.ravel(expected) for given, expected in found if given is not None]
    if len(answers) < len(probes) or _one(wanted):
        return
    if _one(answers):
        msg = f"broken adapter: the constant {answers[0][0]} comes, whatever the probes ask"
        raise Fault(msg)
    if not np.array_equal(answers[1], answers[2]) or np.array_equal(answers[2], wanted[2]):
        return
    # A function may give the same for both, such as of magnitudes: what it gives is the same after another call, too.
    between, again = (_probe(e, np.full(9, value))[0] for value in inside[[1, 0]])
    if between is not None and again is not None:
        stays = bool(inside[1] != inside[-1]) and np.array_equal(np.ravel(between), answers[1])
        if stays or not np.array_equal(np.ravel(again), answers[2]):
            msg = "stale output: the answer to the call before came back"
            raise Fault(msg)


def _probe(e: Evidence, values: Array) -> tuple[Array | None, Array]:
    """What came, and what is documented."""
    case = e.setting.plain(values if e.setting.configuration.granularity == "tensor" else values[None])
    [given] = e.expect([case])
    return None if given is None else np.array(given), evaluation_of(e.setting.profile, case)


def _one(arrays: list[Array]) -> bool:
    """Whether one value stands in every place of all of them."""
    return len(np.unique(np.concatenate(arrays).astype(np.float64))) == 1
