"""What is required of torch's fused observer, the calls that decide it, and the library's answers."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, documented, measured
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS"]

_FUSED = "torch/fused_moving_avg_obs_fake_quant"
_DOCSTRING = "FusedMovingAvgObsFakeQuantize: docstring"
_MEASURED = "torch 2.13.0, fused_moving_avg_obs_fake_quant"
_INF, _NAN = np.inf, np.nan
_GRIDS = ((0, 255), (-128, 127), (-127, 127), (0, 15))
_UNSEEN = (_INF, -_INF)


def _f(values: Any) -> Array:
    return np.asarray(values, np.float32)


def _asked(x: Any, ends: tuple[Any, Any] = _UNSEEN, grid: tuple[int, int] = (0, 255), **more: Any) -> Arguments:
    """A call with one range; ``ends`` are the running ones."""
    low, high = (np.atleast_1d(_f(end)) for end in ends)
    state = {"running_min": low, "running_max": high, "scale": np.ones_like(low)}
    state["zero_point"] = np.zeros(low.shape, np.int32)
    common = {"observer_on": 1, "fake_quant_on": 1, "averaging_const": 0.01, "ch_axis": 0}
    return {"x": _f(x), **common, **state, "quant_min": grid[0], "quant_max": grid[1], **more}


@documented(_FUSED, f"{_DOCSTRING}, MovingAverageMinMaxObserver (the first range: measured)")
def averages() -> Calls:
    """Minimum and maximum are (1 - c) times the old plus c times the new; the first are taken as they are."""
    x = [-1, 0.3, 2, 5]
    for c in (0.01, 0.1, 0.5, 1.0, 1 / 3, 0.0):
        for ends in (_UNSEEN, (-0.7, 3.3), (-3, 9), (0.1, 0.2), (-1, 5)):
            yield _asked(x, ends, averaging_const=c)
    for k in range(8):  # a sequence of calls: the state of each is that of the one before, or near it
        yield _asked([0.1 * k, -0.3 / (k + 1)], (-0.3 / (k + 1) - 0.01 * k, 0.09 * k), averaging_const=0.3)


@documented(_FUSED, f"{_DOCSTRING}, x_out")
def output() -> Calls:
    """The result is (clamp(round(x / scale + zero_point), quant_min, quant_max) - zero_point) * scale."""
    for (low, high), grid, symmetric in product(((-1, 5), (-3, 1), (-0.1, 0.7), (-12.7, 12.8)), _GRIDS, (False, True)):
        steps = (high - low) / (grid[1] - grid[0])
        near = _f((np.arange(-40, 40) + 0.5) * steps)
        x = np.concatenate([near, np.nextafter(near, _f(9e9)), np.nextafter(near, _f(-9e9)), _f([low, high, 99, -99])])
        yield _asked(x, (low, high), grid, observer_on=0, symmetric_quant=symmetric)
        yield _asked(x.reshape(4, -1), (low, high), grid, symmetric_quant=symmetric)


@documented(_FUSED, f"{_DOCSTRING}, qscheme")
def symmetric() -> Calls:
    """A symmetric scheme maps 0 to the middle of the codes, whatever the range."""
    for low, high in ((-1, 5), (-5, 1), (1, 2), (-2, -1), (0, 3), (-3, 0)):
        for grid in _GRIDS:
            yield _asked([low, high], grid=grid, symmetric_quant=True)


@measured(_FUSED, _MEASURED)
def qparams() -> Calls:
    """Scale and zero point are those of the range widened to hold zero; a scale of zero is 0.1, and others are at least
    6.1e-5."""
    ranges = ((1, 2), (-2, -1), (0, 0), (0, 3.3), (-1e-3, 0), (0, 1e-3), (1e-30, -1e-30), (-1e-3, 5e-4), (-3e38, 3e38))
    for values, grid, symmetric_quant in product((*ranges, (-1e-40, 1e-40), (-100, 1e-3)), _GRIDS, (False, True)):
        yield _asked(sorted(values), grid=grid, symmetric_quant=symmetric_quant)
    for below, scale, (low, high) in product((0.5, 1.5, 42.5, 63.5, 127.5, 190.5, 253.5), (1.0, 0.1, 1e36), _GRIDS):
        if below < high - low:  # zero points at a tie
            yield _asked([-below * scale, (high - low - below) * scale], grid=(low, high))


@measured(_FUSED, _MEASURED)
def switches() -> Calls:
    """Without the observer the range stays, and before any it is that of zero; without fake quantization scale and
    zero point stay and the input comes back."""
    for observer_on, fake_quant_on, ends in product((0, 1), (0, 1), (_UNSEEN, (-0.7, 3.3))):
        for grid in _GRIDS:
            yield _asked([-1, 0, 0.3, 5], ends, grid, observer_on=observer_on, fake_quant_on=fake_quant_on)
    yield _asked([], (-0.7, 3.3))
    yield _asked(np.zeros((0, 2)))


@measured(_FUSED, _MEASURED)
def channels() -> Calls:
    """With a range per channel every index along the first dimension has its own."""
    x = _f(np.arange(24) * 0.3 - 2)
    for shape, c, symmetric_quant in product(((2, 12), (4, 6), (2, 3, 4), (24, 1)), (0.01, 0.3), (False, True)):
        n = shape[0]
        more = {"per_row_fake_quant": True, "averaging_const": c, "symmetric_quant": symmetric_quant}
        for ends in ((np.full(n, _INF), np.full(n, -_INF)), (-np.arange(1, n + 1) * 0.1, np.arange(n) * 0.7)):
            yield _asked(x.reshape(shape), ends, (-128, 127), **more)


@measured(_FUSED, _MEASURED)
def specials() -> Calls:
    """NaN and infinities become the running ends; each end that is infinite is replaced by the next."""
    for values in ([_NAN, 1], [_INF, 1], [-_INF, 1], [_INF, -_INF]):
        for grid in _GRIDS[:2]:
            yield _asked(values, grid=grid)
            yield _asked(values, (-1, 5), grid, observer_on=0)
    for ends in ((1, _INF), (-_INF, 1), (_NAN, 1)):
        yield _asked([-1, 0.3, 5], ends)
    x = _f([[_INF, -_INF, 1], [3e38, -3e38, 0.5]])
    yield _asked(x, ([-1, -2], [5, 1]), observer_on=0, per_row_fake_quant=True)


@measured(_FUSED, _MEASURED)
def refusals() -> Calls:
    """Refused are ends in the wrong order, another dtype than float32, an axis that is no dimension, channels along
    another than the first, and in a channel NaN."""
    yield _asked([1, 2], grid=(5, 3))
    for dtype in (np.float64, np.float16):
        yield {**_asked([1, 2]), "x": np.array([1, 2], dtype)}
    yield _asked([1, 2], ch_axis=1)
    two = (np.full(2, _INF), np.full(2, -_INF))
    yield _asked([[1, 2], [3, 4]], two, ch_axis=1, per_row_fake_quant=True)
    yield _asked([[1, _NAN], [3, 4]], two, per_row_fake_quant=True)


def _fused(x: Any, observer_on: int, fake_quant_on: int, **given: Any) -> Any:
    import torch

    state: dict[str, Any] = {n: given.pop(n).clone() for n in ("running_min", "running_max", "scale", "zero_point")}
    on: dict[str, Any] = {"observer_on": torch.tensor([observer_on]), "fake_quant_on": torch.tensor([fake_quant_on])}
    return torch.fused_moving_avg_obs_fake_quant(x, **on, **state, **given), *state.values()


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {"torch.observers": {_FUSED: _fused}}
