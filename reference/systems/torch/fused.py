"""torch: the fused observer, which averages a range, chooses scale and zero point of it, and fake quantizes.

The scale is real per code; zero points are codes.
"""

from dataclasses import dataclass, replace

import numpy as np

from halfeven.reference import model as evaluation
from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, per_channel
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel

__all__ = ["FusedObserver", "fused_moving_avg_obs_fake_quant"]

_F32, _F64 = np.float32, np.float64
_LEAST_SCALE = np.float32(6.1e-5)
_LEAST_INT32 = -(2**31)
_SOURCE = "torch.ao.quantization.fake_quantize.FusedMovingAvgObsFakeQuantize: docstring"


@dataclass(frozen=True)
class FusedObserver(Behaviour):
    """The choices in observing and fake quantizing at once."""

    mean: str = choice(
        {
            "weighted": "adds the old value times 1 - c and the new one times c",
            "step": "adds c times the difference of the new value and the old one to the old one",
        }
    )
    symmetric: str = choice(
        {
            "every": "maps every range symmetrically where that is asked for",
            "two-sided": "maps a range of one sign as an affine one where a symmetric one is asked for",
        }
    )
    division: str = choice(
        {
            "divide": "divides by s",
            "reciprocal": "multiplies by 1/s",
        }
    )
    zero_point: str = choice(
        {
            "before-rounding": "adds the zero point before rounding",
            "after-rounding": "adds the zero point after rounding",
        }
    )


def _averaged(b: FusedObserver, old: Array, new: Array, averaging_const: float) -> Array:
    """The running value of each channel; one that is infinite becomes the new one."""
    c = _F32(averaging_const)
    mean = _F32(1 - averaging_const) * old + c * new if b.mean == "weighted" else old + c * (new - old)
    return np.where(np.isinf(old), new, mean)


def _qparams(b: FusedObserver, low: np.float32, high: np.float32, grid: Grid, *, symmetric: bool) -> tuple[float, int]:
    """The scale, a float32, and the zero point, of a quotient in float64 (measured)."""
    steps, half = grid.num_steps, grid.num_steps // 2
    symmetric = symmetric and bool((low < 0 and high > 0) or (b.symmetric == "every" and low <= high))
    if symmetric:
        largest = max(float(abs(low / _F32(half + 1))), float(abs(high / _F32(half)))) if half else float(abs(low))
        low, high = _F32(-largest * (half + 1)), _F32(largest * half)
    low, high = (_F32(0) if low > 0 else low), (_F32(0) if high < 0 else high)
    scale = _F32((float(high) - float(low)) / steps) if steps else _F32(np.nan)
    if scale == 0 or np.isinf(_F32(1) / scale):
        scale = _F32(0.1)
    if scale < _LEAST_SCALE:
        given, scale = scale, _LEAST_SCALE
        if low == 0:
            high = _F32(_LEAST_SCALE * _F32(steps))
        elif high == 0:
            low = _F32(-_LEAST_SCALE * _F32(steps))
        else:
            low, high = low * (_LEAST_SCALE / given), high * (_LEAST_SCALE / given)
    below, above = _F64(low) / _F64(scale), _F64(high) / _F64(scale)
    nearer = abs(grid.qmin) + abs(below) < abs(grid.qmax) + abs(above)
    point = grid.qmin - below if nearer else grid.qmax - above
    if symmetric and low < 0 and high > 0:
        point = _F64(grid.qmin + grid.qmax) / 2
    if np.isnan(point):
        return float(scale), _LEAST_INT32
    return float(scale), int(np.rint(np.clip(point, grid.qmin, grid.qmax)))


@formula(
    "torch/fused_moving_avg_obs_fake_quant",
    equation=(
        r"x_{min} = (1 - c)\,x_{min} + c \min(X),\quad x_{max} = (1 - c)\,x_{max} + c \max(X),\quad"
        r"\hat x = (\mathrm{clamp}(\mathrm{round}(x / s + z),\ q_{min},\ q_{max}) - z) * s"
    ),
    basis=AsComputed(dtype="float32; float64 for scale and zero point"),
    source=_SOURCE,
    behaviour=FusedObserver(),
    versions={
        "2.13": (
            FusedObserver(mean="step", symmetric="two-sided", division="reciprocal", zero_point="after-rounding"),
            "torch 2.13.0, fused_moving_avg_obs_fake_quant measured on the CPU",
        )
    },
)
def fused_moving_avg_obs_fake_quant(
    b: FusedObserver,
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
) -> tuple[Array, Array, Array, Array, Array]:
    """``x`` fake quantized, and the state after the call.

    Measured, since the document has no equation for it: scale and zero point of a range. It is widened to hold zero;
    the scale is divided in float64 and rounded once, at least 6.1e-5, and of a range of zero 0.1; the zero point comes
    from the end of the grid where |q| + |x / s| is smaller. Symmetrically the range reaches as many steps below 0 as
    above, and one more. NaN gives the zero point -2^31. Without fake quantization scale and zero point stay, and ``x``
    comes back.

    Args:
        x: float32, any shape; of no element it changes nothing.
        observer_on: whether the range is averaged.
        fake_quant_on: whether scale and zero point are chosen, and ``x`` is fake quantized.
        running_min: float32, one per channel or one; infinite before the first call, which takes the range as it is.
        running_max: likewise.
        scale: real per code, float32, likewise.
        zero_point: the code of 0, int32, likewise.
        averaging_const: c, the share of the new range.
        quant_min: the lowest code.
        quant_max: the highest code.
        ch_axis: the dimension of the channels, below the dimensions of ``x``.
        per_row_fake_quant: one range per channel.
        symmetric_quant: the zero point is the middle of the codes.

    Returns:
        The result, and running_min, running_max, scale and zero_point as they were given.

    Raises:
        RuntimeError: ``ch_axis`` is no dimension, or not 0 with one range per channel; ``x`` is not float32;
            ``quant_min`` is above ``quant_max``; a channel's zero point is -2^31 (all measured).
    """
    state = running_min, running_max, scale, zero_point
    if not x.size:
        return x.copy(), *state
    if ch_axis >= x.ndim or (per_row_fake_quant and ch_axis != 0):
        msg = f"ch_axis={ch_axis} is not accepted for x of shape {x.shape}: give a dimension, 0 for channels"
        raise RuntimeError(msg)
    if x.dtype != _F32:
        msg = f"x of {x.dtype.name} is not accepted: give float32"
        raise RuntimeError(msg)
    if quant_min > quant_max:
        msg = f"quant_min={quant_min} is above quant_max={quant_max}"
        raise RuntimeError(msg)
    rows = x.reshape(x.shape[0], -1) if per_row_fake_quant else x.reshape(1, -1)
    with np.errstate(all="ignore"):
        if observer_on:
            running_min = _averaged(b, running_min, rows.min(axis=1), averaging_const)
            running_max = _averaged(b, running_max, rows.max(axis=1), averaging_const)
        if not fake_quant_on:
            return x.copy(), running_min, running_max, scale, zero_point
        grid = Grid(quant_min, quant_max)
        ends = zip(running_min, running_max, strict=True)
        found = [_qparams(b, low, high, grid, symmetric=symmetric_quant) for low, high in ends]
        scale, zero_point = np.array([s for s, _ in found], _F32), np.array([z for _, z in found], np.int32)
        if per_row_fake_quant and not all(z in grid for _, z in found):
            msg = f"zero_point={zero_point.tolist()} is not accepted: give codes of {grid}"
            raise RuntimeError(msg)
        model = EvaluationModel(division=b.division, zero_point=b.zero_point, nan="qmin", subtract="exact")
        if not per_row_fake_quant:
            return (
                evaluation.fake_quantize(model, x, scale[0], zero_point[0], grid),
                *(running_min, running_max, scale, zero_point),
            )
        model = replace(model, nan="propagate", integer="int64-sum")
        ones = [-1] + [1] * (x.ndim - 1)
        blocks = per_channel(x.shape, 0)
        faked = evaluation.fake_quantize(model, x, scale.reshape(ones), zero_point.reshape(ones), grid, blocks)
    return faked, running_min, running_max, scale, zero_point
