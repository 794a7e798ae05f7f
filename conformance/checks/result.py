"""The result as an object: its shape and dtype, for every rank, for empty and 0-d inputs."""

from typing import Any

import numpy as np

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.call import Fault
from halfeven.conformance.trial import Trial
from halfeven.reference import Grid

__all__ = ["result"]

_SHAPES = ((), (1,), (5,), (0,), (2, 3), (0, 3), (3, 0), (2, 3, 5), (1, 2, 1, 3), (2, 1, 2, 1, 2))


def result(trial: Trial) -> None:
    """The documented dtype and the input's shape, values at the middle of codes."""
    c = trial.configuration
    refused: list[str] = []
    for shape in _SHAPES:
        if c.granularity != "tensor" and not shape:
            continue
        codes = c.grid.qmin + np.arange(int(np.prod(shape))).reshape(shape) % (c.grid.num_steps + 1)
        case = trial.plain(codes)
        try:
            actual = trial.expect(case)
        except Unsupported as reason:
            refused.append(str(reason))
            continue
        if c.operation == "quantize" and not _documented(actual.dtype, trial.code_dtype, c.grid):
            msg = f"wrong dtype: {actual.dtype} for codes that the profile holds in {trial.code_dtype}"
            raise Fault(msg)
    if not trial.points and refused:
        raise Unsupported(refused[0])


def _documented(actual: np.dtype[Any], stored: np.dtype[Any], grid: Grid) -> bool:
    """Float codes have the input's dtype; integer codes any integer dtype that holds the grid."""
    if stored.kind not in "iu":
        return actual == stored
    if actual.kind not in "iu":
        return False
    info = np.iinfo(actual)
    return info.min <= grid.qmin and grid.qmax <= info.max
