"""Placement: which parameters an element meets, wherever it lies. The value tells its position.

What is compared with the reference sits in the middle of its code, where no two ways of rounding can part: what
differs is placement. Values near ties are compared with the backend itself, placed otherwise.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.conformance.arrays import arrange, layouts
from halfeven.conformance.bits import step
from halfeven.conformance.checks.values import cases
from halfeven.conformance.configuration import Case
from halfeven.conformance.inputs import boundaries as inputs
from halfeven.conformance.inputs import parameters
from halfeven.conformance.inputs.strategies import Placement, placements
from halfeven.conformance.trial import Trial
from halfeven.reference.blocks import Array, parameter_shape, per_element

__all__ = ["granularity", "layout", "position"]

_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17, 19, 23, 29, 31, 33, 47, 63, 65, 127)
_SHIFTS = 8
_BLOCKS = 4


def granularity(trial: Trial) -> None:
    """Shapes of rank 0 to 5 with prime sizes, and blocks of the trial's granularity."""
    strategy = placements(trial.configuration.granularity, partial=trial.profile.partial_blocks)
    trial.explore(strategy, lambda p: _expect(trial, p, "contiguous"))


def layout(trial: Trial) -> None:
    """The same tensors, transposed, strided, offset, expanded and channels-last."""

    def every(p: Placement) -> None:
        for name in layouts(p.shape):
            _expect(trial, p, name)

    trial.explore(placements(trial.configuration.granularity, partial=trial.profile.partial_blocks), every)


def position(trial: Trial) -> None:
    """Hard values in vectors of many lengths, twice: each gives there what it gives deep inside a long vector.

    A vector kernel treats what does not fill its last vector apart, and there the hard values have to lie.
    """
    grid = trial.configuration.grid
    typed = parameters.scales(trial.dtype, trial.scale_dtype, grid, 3, trial.seed)
    for base in cases(trial, typed[[0, 2]], trial.zeros[:1], lambda s, z: _hard(trial, s, z)):
        for row in range(len(np.atleast_2d(base.x))):
            with trial.offered():
                _everywhere(trial, base, row)


def _everywhere(trial: Trial, base: Case, row: int) -> None:
    hard = np.atleast_2d(base.x)[row]
    # Every 64th element of a longer vector lies inside a full vector of any width up to 64.
    inside = np.array(np.ravel(trial.ask(_resized(base, row, np.repeat(np.append(hard, hard[:2]), 64)))))[::64]
    for length in _LENGTHS:
        for shift in range(0, len(hard), max(1, len(hard) // _SHIFTS)):
            index = (np.arange(length) + shift) % len(hard)
            case = _resized(base, row, hard[index])
            first, second = np.array(trial.ask(case)), trial.ask(case)
            trial.compare(case, first, second, own=True)
            trial.compare(case, inside[index].reshape(first.shape), first, own=True)


def _resized(base: Case, row: int, values: Array) -> Case:
    """The row's values with the row's parameters, per tensor or as one row."""
    blocked = base.configuration.block_size is not None
    x = values[None] if blocked else values
    c = replace(base.configuration, shape=x.shape, block_size=x.shape if blocked else None)
    return Case(c, x, *((p[row : row + 1] if blocked else p) for p in (base.scale, base.zero)))


def _hard(trial: Trial, s: Array, z: Array) -> Array:
    grid = trial.configuration.grid
    if trial.configuration.operation == "dequantize":
        codes = np.unique(np.clip([grid.qmin, -1, 0, 1, 3, grid.qmax], grid.qmin, grid.qmax))
        return np.repeat(codes[None], len(s), axis=0).astype(trial.code_dtype)
    return _odd_length(inputs.boundaries(s, z, grid, trial.dtype))


def _odd_length(x: Array) -> Array:
    """About 60 of the values, among them ties and their neighbours, in a number that no vector width divides."""
    return x[:, :: max(1, x.shape[1] // 61 | 1)][:, :59]


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
    # A mixed-up index gives another code, next door and a row or a plane away: sizes are below the prime 257.
    index = np.arange(int(np.prod(p.shape))).reshape(p.shape)
    index = index * 7 + index // 257
    code = grid.qmin + index % (grid.num_steps + 1)
    if c.operation == "dequantize":
        x = code.astype(trial.code_dtype)
    else:
        s, z = (np.broadcast_to(per_element(a, p.shape, blocks), p.shape) for a in (scale, zero))
        x = ((code - z) * s).astype(trial.dtype)
    if layout_ == "expanded":
        if c.operation != "dequantize":
            x = (index - z).astype(trial.dtype) * 4  # whole quotients for every scale that the repeated value meets
        x = np.array(arrange(x, "expanded"))
    trial.expect(trial.case(x, scale, zero, block_size=blocks, layout=layout_))
    if c.operation != "dequantize":
        _hard_placed(trial, p, blocks, (scale * 0.3, zero), code, layout_)


def _hard_placed(
    trial: Trial, p: Placement, blocks: Any, parameters_: tuple[Array, Array], code: Array, layout_: Any
) -> None:
    """Near ties, compared with the backend itself: contiguous for a layout, flat for a shape, alone for a block."""
    s, z = (np.broadcast_to(per_element(np.asarray(a), p.shape, blocks), p.shape) for a in parameters_)
    half = (code - z - 0.5) * s.astype(trial.scale_dtype).astype(np.float64)
    x = step(half.astype(trial.dtype), np.arange(half.size).reshape(half.shape) % 3 - 1)
    if layout_ == "expanded":
        x = np.array(arrange(x, "expanded"))
    case = trial.case(x, *parameters_, block_size=blocks, layout=layout_)
    actual = np.array(trial.ask(case))
    if layout_ != "contiguous":
        plain = trial.case(x, *parameters_, block_size=blocks)
        trial.compare(case, trial.ask(plain), actual, own=True)
    elif blocks is None:
        flat = trial.case(x.ravel(), *parameters_)
        trial.compare(case, trial.ask(flat).reshape(x.shape), actual, own=True)
    elif "tensor" in trial.backend.granularities:
        for index in list(np.ndindex(*parameter_shape(p.shape, blocks)))[:_BLOCKS]:
            block = tuple(slice(i * b, (i + 1) * b) for i, b in zip(index, blocks, strict=True))
            alone = trial.case(x[block], *(a[index] for a in parameters_), granularity="tensor")
            trial.compare(alone, trial.ask(alone), actual[block], own=True)
