"""The result as an object: its shape and dtype, for every rank, for empty and 0-d inputs."""

import numpy as np

from halfeven.conformance.engine.evidence import Evidence, Fault

__all__ = ["result"]

_SHAPES = ((), (1,), (5,), (0,), (2, 3), (0, 3), (3, 0), (2, 3, 5), (1, 2, 1, 3), (2, 1, 2, 1, 2))


def result(e: Evidence) -> None:
    """The documented dtype and the input's shape, values at the middle of codes."""
    c, grid = e.setting.configuration, e.setting.grid
    shapes = [s for s in _SHAPES if c.granularity == "tensor" or s]
    codes = [grid.qmin + np.arange(int(np.prod(s))).reshape(s) % (grid.num_steps + 1) for s in shapes]
    for actual in e.expect([e.setting.plain(q) for q in codes]):
        if actual is None or c.operation != "quantize":
            continue
        if not e.setting.holds(actual.dtype):
            msg = f"wrong dtype: {actual.dtype} for codes that the profile holds in {e.setting.code_dtype}"
            raise Fault(msg)
