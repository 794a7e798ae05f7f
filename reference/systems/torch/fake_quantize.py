"""torch: ``fake_quantize_per_tensor_affine``, ``fake_quantize_per_channel_affine``, and their gradients."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfeven.reference import model as evaluation
from halfeven.reference.affine import channel_of, no_blocks
from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, BlockSize, per_channel
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.choices import Faking
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile, along_axis
from halfeven.reference.rounding import ROUNDINGS

__all__ = [
    "TORCH_FAKE_QUANTIZE",
    "TORCH_FAKE_QUANTIZE_2_13",
    "TORCH_FAKE_QUANTIZE_PER_CHANNEL_2_13",
    "CodeOfReciprocal",
    "FixedGradient",
    "along",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
    "fixed_per_channel_gradient",
    "fixed_per_tensor_gradient",
]

_EQUATION = r"\hat x = (\min(q_{max}, \max(q_{min}, \mathrm{nearby\_int}(x / s) + z)) - z) \times s"
_BASIS = AsComputed(dtype="the input's")


# The code less the zero point is exact. For channels the code is converted to an int64 before it is limited.
_PER_TENSOR_2_13 = Faking(division="reciprocal", nan="qmin", subtract="exact")
_PER_CHANNEL_2_13 = Faking(division="reciprocal", integer="int64-sum", subtract="exact")
_MODEL = EvaluationModel()

TORCH_FAKE_QUANTIZE = Profile(
    name="torch.fake_quantize",
    title="(min(qmax, max(qmin, nearby_int(x / s) + zero_point)) - zero_point) * s",
    source="torch: torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine",
    model=_MODEL,
    operations=("fake_quantize",),
)

TORCH_FAKE_QUANTIZE_2_13 = replace(
    TORCH_FAKE_QUANTIZE,
    name="torch.fake_quantize@2.13",
    title="(clamp(round(x * (1 / s)) + zero_point, qmin, qmax) - zero_point) * s, and the code of NaN is qmin",
    source="torch 2.13.0, fake_quantize_per_tensor_affine measured on the CPU in float32",
    model=_MODEL.at(_PER_TENSOR_2_13),
)

TORCH_FAKE_QUANTIZE_PER_CHANNEL_2_13 = replace(
    TORCH_FAKE_QUANTIZE,
    name="torch.fake_quantize@2.13-per-channel",
    title="(clamp(int64(round(x * (1 / s)) + zero_point), qmin, qmax) - zero_point) * s",
    source="torch 2.13.0, fake_quantize_per_channel_affine measured on the CPU in float32",
    model=_MODEL.at(_PER_CHANNEL_2_13),
)


def _arguments(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    no_blocks(block_size)
    return {"input": x, "scale": scale, "zero_point": zero, "quant_min": grid.qmin, "quant_max": grid.qmax}


def _channel_arguments(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    parameters = {
        "scale": scale.ravel(),
        "zero_point": zero.ravel(),
        "axis": channel_of(block_size, x.shape, scale.size),
    }
    return {"input": x, "quant_min": grid.qmin, "quant_max": grid.qmax} | parameters


# The documented signatures.


@formula(
    "torch/fake_quantize_per_tensor_affine",
    equation=_EQUATION,
    basis=_BASIS,
    source="torch.fake_quantize_per_tensor_affine",
    behaviour=Faking(),
    versions={"2.13": (_PER_TENSOR_2_13, TORCH_FAKE_QUANTIZE_2_13.source)},
    affine=AffineView("torch.fake_quantize", "fake_quantize", _arguments),
)
def fake_quantize_per_tensor_affine(
    b: Faking,
    input: Array,  # noqa: A002 - the document's own word
    scale: float | Array,
    zero_point: int | Array,
    quant_min: int,
    quant_max: int,
) -> Array:
    """``input`` on the grid with one scale and one zero point.

    Args:
        input: reals, any shape; the result has shape and dtype.
        scale: real per code, held in float32.
        zero_point: the code of 0, held in int32.
        quant_min: the lowest code.
        quant_max: the highest code.
    """
    s, z = np.asarray(scale, np.float32).reshape(()), np.asarray(zero_point).reshape(())
    return evaluation.fake_quantize(_MODEL.at(b), input, s, z, Grid(quant_min, quant_max))


@formula(
    "torch/fake_quantize_per_channel_affine",
    equation=_EQUATION,
    basis=_BASIS,
    source="torch.fake_quantize_per_channel_affine",
    behaviour=Faking(),
    versions={"2.13": (_PER_CHANNEL_2_13, TORCH_FAKE_QUANTIZE_PER_CHANNEL_2_13.source)},
    affine=AffineView("torch.fake_quantize", "fake_quantize", _channel_arguments),
)
def fake_quantize_per_channel_affine(
    b: Faking,
    input: Array,  # noqa: A002 - the document's own word
    scale: Array,
    zero_point: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> Array:
    """``input`` on the grid with one scale and one zero point per index along ``axis``.

    Args:
        input: reals, of at least one dimension; the result has shape and dtype.
        scale: real per code, float32, one per channel.
        zero_point: the codes of 0, likewise.
        axis: the dimension of the channels.
        quant_min: the lowest code.
        quant_max: the highest code.

    Raises:
        ValueError: ``axis`` is outside [-D, D), or the parameters are not as many as the channels.
    """
    blocks = per_channel(input.shape, axis)
    s, z = (along_axis(p, input.shape, axis) for p in (scale, zero_point))
    return evaluation.fake_quantize(_MODEL.at(b), input, s, z, Grid(quant_min, quant_max), blocks)


# The gradients: no document has an equation; they are measured.

_MASK = r"\partial_x = g\,[q_{min} \le \mathrm{round}(x \cdot (1/s)) + z \le q_{max}]"


@dataclass(frozen=True)
class CodeOfReciprocal(Behaviour):
    """The choices in computing a code as torch's kernels do, by the reciprocal of the scale."""

    division: str = choice(
        {
            "reciprocal": "multiplies by the rounded reciprocal of the scale",
            "divide": "divides by the scale",
        }
    )
    rounding: str = roundings("the quotient")


@dataclass(frozen=True)
class FixedGradient(CodeOfReciprocal):
    """The choices in the gradient of a quantizer whose parameters do not learn."""

    ends: str = choice(
        {
            "inside": "passes the gradient on at the ends of the grid",
            "outside": "passes no gradient on at the ends of the grid",
        }
    )
    outside: str = choice(
        {
            "product": "multiplies the gradient by 0 outside the grid, which keeps NaN",
            "zero": "gives the gradient 0 outside the grid",
        }
    )
    zero_point: str = choice(
        {
            "after-rounding": "adds the zero point after rounding",
            "before-rounding": "adds the zero point before rounding",
        }
    )


def along(parameter: Array, x: Array, axis: int) -> Array:
    """A list of parameters, one per index along ``axis``, as it broadcasts to ``x``.

    Raises:
        IndexError: ``axis`` is beyond the dimensions, counted from either end.
        RuntimeError: ``axis`` is negative otherwise, or the list is not as long as that dimension.
    """
    if not -x.ndim <= axis < x.ndim:
        msg = f"axis={axis} is not accepted for x of shape {x.shape}: give one of its {x.ndim} dimensions"
        raise IndexError(msg)
    if axis < 0 or parameter.shape != (x.shape[axis],):
        msg = f"axis={axis}, parameters of shape {parameter.shape} are not accepted: x has the shape {x.shape}"
        raise RuntimeError(msg)
    return parameter.reshape([x.shape[axis] if i == axis else 1 for i in range(x.ndim)])


@formula(
    "torch/fake_quantize_per_tensor_affine.backward",
    equation=_MASK,
    basis=AsComputed(dtype="float32"),
    source="torch 2.13.0, measured",
    behaviour=FixedGradient(),
)
def fixed_per_tensor_gradient(
    b: FixedGradient, x: Array, scale: float, zero_point: int, quant_min: int, quant_max: int, grad: Array
) -> Array:
    """The gradient of ``torch.fake_quantize_per_tensor_affine`` with respect to ``x``: ``grad`` times 1 or 0.

    Args:
        x: float32, float16 or bfloat16, any shape; the code is computed in float32.
        scale: real per code, held in float32.
        zero_point: a code of the grid.
        quant_min: the lowest code.
        quant_max: the highest code.
        grad: the gradient with respect to the result, as ``x``.

    Raises:
        RuntimeError: ``zero_point`` outside the grid.
    """
    if not quant_min <= zero_point <= quant_max:
        msg = f"zero_point={zero_point} is not accepted: give one from {quant_min} to {quant_max}"
        raise RuntimeError(msg)
    ends = float(np.float32(quant_min)), float(np.float32(quant_max))  # the kernel's own are float32
    return _masked(b, x, np.asarray(scale, np.float32), np.asarray(zero_point), *ends, grad)


def _masked(b: FixedGradient, x: Array, s: Array, z: Array, low: float, high: float, grad: Array) -> Array:
    wide, round_ = x.astype(np.float32), ROUNDINGS[b.rounding]
    with np.errstate(all="ignore"):
        quotient = wide / s if b.division == "divide" else wide * (np.float32(1) / s)
        z = z.astype(np.float32)  # and so the code is a float32: beyond 2^24 it is rounded
        q = round_(quotient + z) if b.zero_point == "before-rounding" else round_(quotient) + z
        q = q.astype(np.float64)
        inside = (q >= low) & (q <= high) if b.ends == "inside" else (q > low) & (q < high)
        passed: Array = grad * inside
        return passed if b.outside == "product" else np.where(inside, grad, np.zeros((), grad.dtype))


@formula(
    "torch/fake_quantize_per_channel_affine.backward",
    equation=_MASK,
    basis=AsComputed(dtype="float32"),
    source="torch 2.13.0, measured",
    behaviour=FixedGradient(),
)
def fixed_per_channel_gradient(
    b: FixedGradient,
    x: Array,
    scale: Array,
    zero_point: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad: Array,
) -> Array:
    """The gradient of ``torch.fake_quantize_per_channel_affine`` with respect to ``x``, as in the one per tensor.

    Scale (real per code, float32) and zero point (codes, int32) have one entry per index along ``axis``.

    Raises:
        RuntimeError: a zero point outside the grid; parameters and ``axis`` as in ``along``.
        IndexError: as in ``along``.
    """
    s, z = along(scale, x, axis), along(zero_point, x, axis)
    if ((z < quant_min) | (z > quant_max)).any():
        msg = f"zero_point={zero_point.tolist()} is not accepted: give codes from {quant_min} to {quant_max}"
        raise RuntimeError(msg)
    return _masked(b, x, s, z, quant_min, quant_max, grad)
