"""pytorch-quantization: gradients. Straight through between the ends, which belong to it, except in ``clip``."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.sums import Open, rounded, within
from halfeven.reference.systems.pytorch_quantization.tensor_quant import operands

__all__ = [
    "clip",
    "clip_backward",
    "fake_affine_tensor_quant_backward",
    "scaled_e4m3_backward",
    "tensor_quant_backward",
]


@dataclass(frozen=True)
class Mask(Behaviour):
    """The choices of what a gradient goes straight through."""

    ends: str = choice({"inside": "lets a gradient through at the ends", "outside": "stops the gradient at the ends"})
    nan: str = choice(
        {"stops": "stops the gradient of a NaN input", "passes": "lets the gradient of a NaN input through"}
    )
    outside: str = choice(
        {"zero": "gives 0 outside whatever the gradient", "product": "multiplies the gradient by 0 outside"}
    )


@dataclass(frozen=True)
class AmaxMask(Mask):
    """The choices, the dtype in which inputs and amax are compared too."""

    compared: str = choice({
        "promoted": "compares in the dtype that torch promotes inputs and amax to",
        "float64": "compares inputs and amax without rounding either",
    })  # fmt: skip


@dataclass(frozen=True)
class E4M3Mask(Mask):
    """The choices where there may be no amax."""

    without: str = choice({
        "448": "takes 448 for the amax where there is none",
        "all": "lets every gradient through where there is no amax",
    })  # fmt: skip


@dataclass(frozen=True)
class Clip(Behaviour):
    """The choices in clipping."""

    last: str = choice(
        {"lower": "gives the lower bound where both are passed", "upper": "gives the upper bound where both are passed"}
    )
    nan: str = choice({"kept": "keeps NaN, of a bound too", "dropped": "gives the other operand for NaN"})


@dataclass(frozen=True)
class ClipMask(Behaviour):
    """The choices in the gradients of clipping."""

    ends: str = choice({
        "outside": "gives the gradient at a bound to the bound",
        "inside": "gives the gradient at a bound to the input",
    })  # fmt: skip
    nan: str = choice({
        "both": "gives the gradient of a NaN input to both bounds",
        "none": "gives the gradient of a NaN input to the input",
    })  # fmt: skip
    outside: str = choice({
        "product": "multiplies gradients by the masks, so that infinite ones give NaN outside",
        "zero": "gives 0 outside whatever the gradient",
    })  # fmt: skip


_MASK = r"g_x = g \text{ where } -\mathrm{amax} \le x \le \mathrm{amax},\ 0 \text{ elsewhere}"


@formula(
    "pytorch-quantization/legacy_fake_tensor_quant_backward",
    equation=_MASK,
    basis=Real(),
    source="pytorch_quantization.tensor_quant.LegacyFakeTensorQuantFunction.backward: measured",
    behaviour=AmaxMask(),
)
@formula(
    "pytorch-quantization/fake_tensor_quant_backward",
    equation=_MASK,
    basis=Real(),
    source="pytorch_quantization.tensor_quant.FakeTensorQuantFunction.backward: measured",
    behaviour=AmaxMask(),
)
@formula(
    "pytorch-quantization/tensor_quant_backward",
    equation=_MASK,
    basis=Real(),
    source="pytorch_quantization.tensor_quant.TensorQuantFunction.backward",
    behaviour=AmaxMask(),
)
def tensor_quant_backward(b: AmaxMask, inputs: Array, amax: Array, grad_outputs: Array) -> Array:
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
    wide = np.dtype(np.float64) if b.compared == "float64" else dtype
    x, limit = inputs.astype(wide), amax.astype(wide)
    return _through(b, x, -limit, limit, grad_outputs)


def _through(b: Mask, x: Array, low: Array, high: Array, g: Array) -> Array:
    passes = (x > low) & (x < high) if b.ends == "outside" else (x >= low) & (x <= high)
    if b.nan == "passes":
        passes |= np.isnan(x)
    none = g.dtype.type(0)
    with np.errstate(all="ignore"):
        return np.where(passes, g, g * none if b.outside == "product" else none)


@formula(
    "pytorch-quantization/scaled_e4m3_backward",
    equation=_MASK,
    basis=Real(),
    source="pytorch_quantization.tensor_quant.ScaledE4M3Function.backward: measured",
    behaviour=E4M3Mask(),
    versions={
        "modelopt-0.47": (E4M3Mask(without="all"), "nvidia-modelopt 0.47, ScaledE4M3Function.backward: measured")
    },
)
def scaled_e4m3_backward(b: E4M3Mask, inputs: Array, amax: Array | None, grad_outputs: Array) -> Array:
    """The gradient of ``inputs``, as in ``tensor_quant_backward``; without an ``amax`` it is 448."""
    if amax is None and b.without == "all":
        return grad_outputs
    limit = np.asarray(448, np.float32) if amax is None else amax
    return tensor_quant_backward(AmaxMask(b.ends, b.nan, b.outside), inputs, limit, grad_outputs)


@formula(
    "pytorch-quantization/fake_affine_tensor_quant_backward",
    equation=r"g_x = g \text{ where } min \le x \le max,\ 0 \text{ elsewhere}",
    basis=Real(),
    source="pytorch_quantization.tensor_quant.FakeAffineTensorQuantFunction.backward: measured",
    behaviour=Mask(),
)
def fake_affine_tensor_quant_backward(
    b: Mask, inputs: Array, min_range: Array, max_range: Array, grad_outputs: Array
) -> Array:
    """The gradient of ``inputs``, in the dtype of ``grad_outputs``; NaN does not pass.

    Args:
        inputs: float32 of any shape.
        min_range: 0-d float32, in reals; the end passes.
        max_range: likewise.
        grad_outputs: the gradient of the result, float32 of the shape of ``inputs``.
    """
    return _through(b, inputs, min_range, max_range, grad_outputs)


@formula(
    "pytorch-quantization/clip",
    equation=r"y = \max(\min(x, hi), lo)",
    basis=Real(),
    source="pytorch_quantization.nn.functional.ClipFunction.forward: measured",
    behaviour=Clip(),
)
def clip(b: Clip, inputs: Array, clip_value_min: Any, clip_value_max: Any) -> Array:
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
    least, most = (np.fmin, np.fmax) if b.nan == "dropped" else (np.minimum, np.maximum)
    if b.last == "upper":
        return np.asarray(least(most(inputs, clip_value_min), clip_value_max))
    return np.asarray(most(least(inputs, clip_value_max), clip_value_min))


def _open_bounds(
    b: ClipMask, inputs: Array, clip_value_min: Array, clip_value_max: Array, grad_outputs: Array
) -> dict[str, Open]:
    """What the gradients of the bounds may be."""
    _, *terms = _clip_gradients(b, inputs, clip_value_min, clip_value_max, grad_outputs)
    bounds = (clip_value_min, clip_value_max)
    return {
        f"result[{i}]": within([t], v.shape, np.float32) for i, (t, v) in enumerate(zip(terms, bounds, strict=True), 1)
    }


@formula(
    "pytorch-quantization/clip_backward",
    equation=r"g_x = g * [x > lo] * [x < hi],\quad g_{lo} = \sum g * (1 - [x > lo]),"
    r"\quad g_{hi} = \sum g * (1 - [x < hi])",
    basis=AsComputed(dtype="float32; the sums are the real ones, rounded once"),
    source="pytorch_quantization.nn.functional.ClipFunction.backward: measured",
    behaviour=ClipMask(),
    open=_open_bounds,
)
def clip_backward(
    b: ClipMask, inputs: Array, clip_value_min: Array, clip_value_max: Array, grad_outputs: Array
) -> tuple[Array, Array, Array]:
    """The gradients of the inputs and of the bounds, float32; the order of the sums is open.

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
    grad_inputs, *terms = _clip_gradients(b, inputs, clip_value_min, clip_value_max, grad_outputs)
    of_min, of_max = (rounded(t, np.float32) for t in terms)
    return grad_inputs, np.full_like(clip_value_min, of_min), np.full_like(clip_value_max, of_max)


def _clip_gradients(
    b: ClipMask, inputs: Array, clip_value_min: Array, clip_value_max: Array, grad_outputs: Array
) -> tuple[Array, Array, Array]:
    """The gradient of the inputs, and the terms of those of the bounds."""
    g, none = grad_outputs, np.float32(0)
    with np.errstate(all="ignore"):
        above, below = inputs > clip_value_min, inputs < clip_value_max
        if b.ends == "inside":
            above, below = inputs >= clip_value_min, inputs <= clip_value_max
        if b.nan == "none":
            above, below = above | np.isnan(inputs), below | np.isnan(inputs)

        def masked(mask: Array) -> Array:
            return np.where(mask, g, none) if b.outside == "zero" else g * mask

        grad_inputs = np.where(above & below, g, none) if b.outside == "zero" else masked(above) * below
        return grad_inputs, masked(~above), masked(~below)
