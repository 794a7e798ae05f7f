"""torch's fused observer, number by number: running ends in float32, scale and zero point in float64."""

from fractions import Fraction
from math import inf, isinf, isnan, nan
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from oracles import exact
from oracles.exact import FORMATS, round_integer
from oracles.registry import derives
from oracles.soft import Soft, array, soft, softs

Array = npt.NDArray[Any]

__all__: list[str] = []

_F, _D = "float32", "float64"


def _ends(values: list[Soft]) -> tuple[Soft, Soft]:
    if lost := [v for v in values if v.nan]:
        return lost[0], lost[0]
    return min(values, key=lambda v: v.value), max(values, key=lambda v: v.value)


def _wide(v: Soft) -> Soft:
    return v.to(FORMATS[_D])


def _chosen(low: Soft, high: Soft, grid: Grid, *, middle: bool) -> tuple[Soft, int]:
    """The scale, a float32, and the zero point; ``middle``: the range is mapped symmetrically."""
    n, zero = grid.qmax - grid.qmin, soft(0.0, _F)
    if middle:
        sizes = [abs(low / soft(float(n // 2 + 1), _F)), abs(high / soft(float(n // 2), _F))]
        size = _wide(max(sizes, key=lambda v: v.value))
        low = (-(size * soft(float(n // 2 + 1), _D))).to(FORMATS[_F])
        high = (size * soft(float(n // 2), _D)).to(FORMATS[_F])
    low, high = (zero if low.value > 0 else low), (zero if high.value < 0 else high)
    scale = ((_wide(high) - _wide(low)) / soft(float(n), _D)).to(FORMATS[_F])
    if scale.value == 0 or isinf((soft(1.0, _F) / scale).value):
        scale = soft(0.1, _F)
    least = soft(6.1e-5, _F)
    if scale.value < least.value:
        given, scale = scale, least
        if low.value == 0:
            high = least * soft(float(n), _F)
        elif high.value == 0:
            low = -least * soft(float(n), _F)
        else:
            low, high = low * (least / given), high * (least / given)
    below, above = _wide(low) / _wide(scale), _wide(high) / _wide(scale)
    errors = [soft(float(abs(end)), _D) + abs(v) for end, v in ((grid.qmin, below), (grid.qmax, above))]
    point = soft(float(grid.qmax), _D) - above
    if errors[0].value < errors[1].value:
        point = soft(float(grid.qmin), _D) - below
    if middle and low.value < 0 < high.value:
        point = soft(Fraction(grid.qmin + grid.qmax, 2), _D)
    if point.nan:
        return scale, -(2**31)
    if isinf(point.value):
        return scale, grid.qmax if point.value == inf else grid.qmin
    return scale, round_integer(min(max(Fraction(point.value), Fraction(grid.qmin)), Fraction(grid.qmax)), "half-even")


def _fake(model: EvaluationModel, x: Soft, scale: float, zero: int, grid: Grid) -> float:
    return exact.fake_quantize(model, x.value, scale, zero, grid, FORMATS[_F], FORMATS[_F])


def _fused(
    x: Array,
    observer_on: int,
    fake_quant_on: int,
    running_min: Array,
    running_max: Array,
    scale: Array,
    zero_point: Array,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    *,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
    measured: bool,
) -> tuple[Array, ...]:
    if x.size == 0:
        return x, running_min, running_max, scale, zero_point
    wrong_axis = ch_axis > x.ndim - 1 or (per_row_fake_quant and ch_axis > 0)
    if wrong_axis or x.dtype.name != _F or quant_max < quant_min:
        msg = f"{ch_axis}, {x.dtype}, {quant_min}, {quant_max}"
        raise RuntimeError(msg)
    values = softs(x)
    length = len(values) // x.shape[0] if per_row_fake_quant else len(values)
    rows = [values[i : i + length] for i in range(0, len(values), length)]
    c, rest = soft(averaging_const, _F), soft(1 - averaging_const, _F)

    def running(old: Soft, new: Soft) -> Soft:
        if isinf(old.value):
            return new
        return old + c * (new - old) if measured else rest * old + c * new

    lows, highs = softs(running_min), softs(running_max)
    if observer_on:
        lows = [running(old, _ends(row)[0]) for old, row in zip(lows, rows, strict=True)]
        highs = [running(old, _ends(row)[1]) for old, row in zip(highs, rows, strict=True)]
    seen = array(lows, running_min.shape, np.float32), array(highs, running_max.shape, np.float32)
    if not fake_quant_on:
        return x, *seen, scale, zero_point
    grid = Grid(quant_min, quant_max)
    pairs = []
    for low, high in zip(lows, highs, strict=True):
        both = low.value < 0 < high.value
        ordered = low.value <= high.value
        middle = symmetric_quant and (both or (ordered and not measured))
        pairs.append(_chosen(low, high, grid, middle=middle))
    if per_row_fake_quant and any(z < grid.qmin or z > grid.qmax for _, z in pairs):
        msg = "zero points"
        raise RuntimeError(msg)
    model = EvaluationModel(
        division="reciprocal" if measured else "divide",
        zero_point="after-rounding" if measured else "before-rounding",
        nan="propagate" if per_row_fake_quant else "qmin",
        integer="int64-sum" if per_row_fake_quant else "none",
        subtract="exact",
    )
    scales = [s.value for s, _ in pairs]
    faked = [_fake(model, v, s, z, grid) for row, s, (_, z) in zip(rows, scales, pairs, strict=True) for v in row]
    made = array(scales, scale.shape, np.float32), np.array([z for _, z in pairs], np.int32)
    return np.array([nan if isnan(v) else v for v in faked]).astype(np.float32).reshape(x.shape), *seen, *made


@derives("torch/fused_moving_avg_obs_fake_quant")
def _(**given: Any) -> tuple[Array, ...]:
    return _fused(**given, measured=False)


@derives("torch/fused_moving_avg_obs_fake_quant@2.13")
def _(**given: Any) -> tuple[Array, ...]:
    return _fused(**given, measured=True)
