"""Placement: which parameters an element meets, wherever it lies. The value tells its position.

Inputs sit in the middle of their codes, so that no two ways of rounding can part here: what differs is placement.
"""

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.conformance.arrays import arrange, code_dtype, layouts
from halfeven.conformance.checks.values import cases
from halfeven.conformance.configuration import Case
from halfeven.conformance.inputs import boundaries as inputs
from halfeven.conformance.inputs import parameters
from halfeven.conformance.inputs.strategies import Placement, placements
from halfeven.conformance.trial import Trial
from halfeven.reference.blocks import parameter_shape, per_element

Array = npt.NDArray[Any]

__all__ = ["granularity", "layout", "position"]

_LENGTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129)


def granularity(trial: Trial) -> None:
    """Shapes of rank 0 to 5 with prime and empty sizes, and blocks of the trial's granularity."""
    strategy = placements(trial.configuration.granularity, partial=trial.profile.partial_blocks)
    trial.explore(strategy, lambda p: _expect(trial, p, "contiguous"))


def layout(trial: Trial) -> None:
    """The same tensors, transposed, strided, offset, expanded and channels-last."""

    def every(p: Placement) -> None:
        for name in layouts(p.shape):
            _expect(trial, p, name)

    trial.explore(placements(trial.configuration.granularity, partial=trial.profile.partial_blocks), every)


def position(trial: Trial) -> None:
    """One hard value, at every position of vectors of many lengths, twice: all equal the first."""
    grid = trial.configuration.grid
    scale = parameters.scales(trial.dtype, trial.scale_dtype, grid, 3, trial.seed)[2:]
    zero = 0
    for base in cases(trial, scale, [zero], lambda s, z: _hard(trial, s, z)):
        hard = np.ravel(base.x)
        for length in _LENGTHS:
            rows = np.repeat(hard[:, None], length, axis=1)
            x = rows if trial.configuration.granularity == "tensor" else rows.reshape(1, -1)
            case = _resized(trial, base, x)
            first, second = np.array(trial.ask(case)), trial.ask(case)
            trial.compare(case, first, second, own=True)
            answers = first.reshape(rows.shape)
            trial.compare(case, np.repeat(answers[:, :1], length, axis=1).reshape(x.shape), first, own=True)


def _resized(trial: Trial, base: Case, x: Array) -> Case:
    c = base.configuration
    blocks = None if c.block_size is None else x.shape
    return Case(trial.case(x, 1.0, 0, block_size=blocks).configuration, x, base.scale, base.zero)


def _hard(trial: Trial, s: Array, z: Array) -> Array:
    grid = trial.configuration.grid
    if trial.configuration.operation == "dequantize":
        codes = np.unique(np.clip([grid.qmin, -1, 0, 1, 3, grid.qmax], grid.qmin, grid.qmax))
        return np.repeat(codes[None], len(s), axis=0).astype(_stored(trial))
    return inputs.boundaries(s, z, grid, trial.dtype)[:, :200]


def _expect(trial: Trial, p: Placement, layout_: Any) -> None:
    c, grid = trial.configuration, trial.configuration.grid
    blocks = None if c.granularity == "tensor" else p.block_size
    shape = () if blocks is None else parameter_shape(p.shape, p.block_size)
    count = int(np.prod(shape))
    scale = np.exp2(np.arange(count) % 5 - 2.0).reshape(shape)
    has_zero = len(trial.profile.parameters) > 1
    span = min(grid.qmax, 40) - max(grid.qmin, -40) + 1
    drift = np.arange(count) * 3 + p.zero
    zero = (max(grid.qmin, -40) + drift % span if has_zero else drift * 0).reshape(shape)
    # A mixed-up index gives another code: the codes run through the grid in steps that share no factor with it.
    # A real tensor of this size would repeat; the salt keeps rows from looking alike.
    index = np.arange(int(np.prod(p.shape))).reshape(p.shape) * 7 + zlib.crc32(repr(p.shape).encode()) % 5
    code = grid.qmin + index % (grid.num_steps + 1)
    if c.operation == "dequantize":
        x = code.astype(_stored(trial))
    else:
        s, z = (np.broadcast_to(per_element(a, p.shape, blocks), p.shape) for a in (scale, zero))
        x = ((code - z) * s).astype(trial.dtype)
    if layout_ == "expanded":
        if c.operation != "dequantize":
            x = (index - z).astype(trial.dtype) * 4  # whole quotients for every scale that the repeated value meets
        x = np.array(arrange(x, "expanded"))
    trial.expect(trial.case(x, scale, zero, block_size=blocks, layout=layout_))


def _stored(trial: Trial) -> np.dtype[Any]:
    return trial.dtype if trial.profile.codes == "input" else code_dtype(trial.configuration.grid)
