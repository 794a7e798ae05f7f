"""pytorch-quantization: gradients. Straight through between the ends, which belong to it, except in ``clip``."""

import math
from typing import Any

import numpy as np

from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.pytorch_quantization.tensor_quant import operands

__all__ = [
    "clip",
    "clip_backward",
    "fake_affine_tensor_quant_backward",
    "scaled_e4m3_backward",
    "scaled_e4m3_backward_modelopt_0_47",
    "tensor_quant_backward",
]

_MASK = r"g_x = g \text{ where } -\mathrm{amax} \le x \le \mathrm{amax},\ 0 \text{ elsewhere}"


@formula(
    "pytorch_quantization.legacy_fake_tensor_quant_backward",
    equation=_MASK,
    basis=Real(),
    source="pytorch_quantization.tensor_quant.LegacyFakeTensorQuantFunction.backward: measured",
)
@formula(
    "pytorch_quantization.fake_tensor_quant_backward",
    equation=_MASK,
    basis=Real(),
    source="pytorch_quantization.tensor_quant.FakeTensorQuantFunction.backward: measured",
)
@formula(
    "pytorch_quantization.tensor_quant_backward",
    equation=_MASK,
    basis=Real(),
    source="pytorch_quantization.tensor_quant.TensorQuantFunction.backward",
)
def tensor_quant_backward(inputs: Array, amax: Array, grad_outputs: Array) -> Array:
    """The gradient of ``inputs``, in the dtype of ``grad_outputs``; the one of the scale is not used.

    Neither the grid nor a tiny amax matters.

    Args:
        inputs: floats of any shape.
        amax: floats, in reals, that broadcast with ``inputs``; without dimensions it is brought to the inputs' dtype.
        grad_outputs: the gradient of the result, floats of the shape of ``inputs``.

    Raises:
        RuntimeError: ``amax`` does not broadcast with ``inputs``.
    """
    _, _, dtype = operands(inputs, amax)
    passes = np.abs(inputs.astype(dtype)) <= amax.astype(dtype)
    return np.where(passes, grad_outputs, grad_outputs.dtype.type(0))


@formula(
    "pytorch_quantization.scaled_e4m3_backward",
    equation=_MASK,
    basis=Real(),
    source="pytorch_quantization.tensor_quant.ScaledE4M3Function.backward: measured",
)
def scaled_e4m3_backward(inputs: Array, amax: Array | None, grad_outputs: Array) -> Array:
    """The gradient of ``inputs``, as in ``tensor_quant_backward``; without an ``amax`` it is 448."""
    return tensor_quant_backward(inputs, np.asarray(448, np.float32) if amax is None else amax, grad_outputs)


@formula(
    "pytorch_quantization.scaled_e4m3_backward@modelopt-0.47",
    equation=_MASK,
    basis=Real(),
    source="nvidia-modelopt 0.47, ScaledE4M3Function.backward: measured",
)
def scaled_e4m3_backward_modelopt_0_47(inputs: Array, amax: Array | None, grad_outputs: Array) -> Array:
    """Without an ``amax`` every gradient passes, whatever the input; the document's end is 448."""
    return grad_outputs if amax is None else tensor_quant_backward(inputs, amax, grad_outputs)


@formula(
    "pytorch_quantization.fake_affine_tensor_quant_backward",
    equation=r"g_x = g \text{ where } min \le x \le max,\ 0 \text{ elsewhere}",
    basis=Real(),
    source="pytorch_quantization.tensor_quant.FakeAffineTensorQuantFunction.backward: measured",
)
def fake_affine_tensor_quant_backward(inputs: Array, min_range: Array, max_range: Array, grad_outputs: Array) -> Array:
    """The gradient of ``inputs``, in the dtype of ``grad_outputs``; NaN does not pass.

    Args:
        inputs: float32 of any shape.
        min_range: 0-d float32, in reals; the end passes.
        max_range: likewise.
        grad_outputs: the gradient of the result, float32 of the shape of ``inputs``.
    """
    passes = (inputs >= min_range) & (inputs <= max_range)
    return np.where(passes, grad_outputs, grad_outputs.dtype.type(0))


@formula(
    "pytorch_quantization.clip",
    equation=r"y = \max(\min(x, hi), lo)",
    basis=Real(),
    source="pytorch_quantization.nn.functional.ClipFunction.forward: measured",
)
def clip(inputs: Array, clip_value_min: Any, clip_value_max: Any) -> Array:
    """``inputs`` within the bounds; the lower one wins over an upper one below it; NaN stays.

    Args:
        inputs: floats of any shape.
        clip_value_min: in reals, an array of the dtype of ``inputs`` that broadcasts to it.
        clip_value_max: likewise.

    Raises:
        TypeError: a bound that is no array.
    """
    for name, bound in (("clip_value_min", clip_value_min), ("clip_value_max", clip_value_max)):
        if not isinstance(bound, np.ndarray | np.generic):
            msg = f"{name}={bound!r} is not accepted: give an array"
            raise TypeError(msg)
    return np.asarray(np.maximum(np.minimum(inputs, clip_value_max), clip_value_min))


def _sum(terms: Array) -> float:
    if np.isfinite(terms).all():
        return math.fsum(terms.ravel().tolist())
    return float(np.sum(terms.astype(np.float64)))


@formula(
    "pytorch_quantization.clip_backward",
    equation=r"g_x = g * [x > lo] * [x < hi],\quad g_{lo} = \sum g * (1 - [x > lo]),"
    r"\quad g_{hi} = \sum g * (1 - [x < hi])",
    basis=AsComputed(dtype="float32; the sums are the real ones, rounded once"),
    source="pytorch_quantization.nn.functional.ClipFunction.backward: measured",
)
def clip_backward(
    inputs: Array, clip_value_min: Array, clip_value_max: Array, grad_outputs: Array
) -> tuple[Array, Array, Array]:
    """The gradients of the inputs and of the bounds, float32. In another order a sum is within n * 2**-24 * sum |g|.

    Args:
        inputs: float32 of any shape.
        clip_value_min: float32 of one element, in reals; its gradient has its shape.
        clip_value_max: likewise.
        grad_outputs: the gradient of the result, float32 of the shape of ``inputs``.

    Raises:
        ValueError: a bound with more than one element.
    """
    for name, bound in (("clip_value_min", clip_value_min), ("clip_value_max", clip_value_max)):
        if bound.size != 1:
            msg = f"{name} of shape {bound.shape} is not accepted: give one element"
            raise ValueError(msg)
    f32 = np.float32
    above, below = (inputs > clip_value_min).astype(f32), (inputs < clip_value_max).astype(f32)
    with np.errstate(all="ignore"):
        grad_min, grad_max = _sum(grad_outputs * (1 - above)), _sum(grad_outputs * (1 - below))
        grad_inputs = grad_outputs * above * below
    return grad_inputs, np.full_like(clip_value_min, grad_min), np.full_like(clip_value_max, grad_max)
