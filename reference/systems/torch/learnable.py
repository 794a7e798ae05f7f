"""torch: fake quantization with learnable parameters, and gradients; no document has the equations: all is measured.

The scale is real per code; the zero point is a float that stands for a code. Gradients are sums over the elements that
share a parameter: the terms as float32, their sum exact but for one rounding. The order in which torch adds is not
stated; what any order of additions in float32 may give is proved (``halfeven.reference.sums``).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.rounding import ROUNDINGS, fused_multiply_add
from halfeven.reference.sums import Open, rounded, rounded_each, within
from halfeven.reference.systems.torch.fake_quantize import CodeOfReciprocal, along

__all__ = [
    "LearnableGradients",
    "LearnableQuantizer",
    "per_channel",
    "per_channel_gradients",
    "per_tensor",
    "per_tensor_gradients",
]

_F32 = AsComputed(dtype="float32")
_WIDE = AsComputed(dtype="float32, the quotient in float64 where x is; then rounded to the dtype of x")
_FLOATS = ("float32", "float16", "bfloat16", "float64")
_FORWARD = r"y = (\mathrm{clamp}(\mathrm{round}(x \cdot (1 / s)) + z, q_{min}, q_{max}) - z) \cdot s"
_BACKWARD = (
    r"q = \mathrm{round}(x \cdot (1/s) + z),\quad \partial_x = g\,[q_{min} \le q \le q_{max}],\quad "
    r"\partial_s = \sum g\,((q - z) s - x)(1/s)\ \text{inside},\ g\,(q_{lim} - z)\ \text{outside},\quad "
    r"\partial_z = \sum -g s\ \text{outside}"
)


@dataclass(frozen=True)
class LearnableQuantizer(CodeOfReciprocal):
    """The choices in quantizing with learnable parameters."""

    zero_point_rounding: str = roundings("the zero point")
    limited: str = choice(
        {
            "grid": "limits the zero point to the grid",
            "free": "does not limit the zero point to the grid",
        }
    )
    zero_point: str = choice(
        {
            "after-rounding": "adds the zero point after rounding",
            "before-rounding": "adds the zero point before rounding",
        }
    )
    beyond: str = choice(
        {
            "saturates": "saturates however large a code is",
            "int64": "gives the lowest code where an int64 does not hold the code",
        }
    )
    nan: str = choice(
        {
            "qmin": "gives NaN the lowest code",
            "qmax": "gives NaN the highest code",
            "stays": "keeps NaN",
        }
    )
    float64: str = choice(
        {
            "quotient": "computes of float64 the quotient alone in float64",
            "throughout": "computes float64 in float64 throughout",
            "float32": "computes float64 in float32",
        }
    )


@dataclass(frozen=True)
class LearnableGradients(CodeOfReciprocal):
    """The choices in the gradients of a quantizer whose parameters learn."""

    ends: str = choice(
        {
            "inside": "takes the ends of the grid for inside",
            "outside": "takes the ends of the grid for outside",
        }
    )
    zero_point: str = choice(
        {
            "half-added": "adds 0.5 to the zero point, limits it to the grid and cuts its fraction",
            "rounded": "rounds the zero point, ties to even, and limits it to the grid",
        }
    )
    sum: str = choice(
        {
            "fused": "multiplies and adds in one rounding",
            "separate": "rounds the product before it adds",
        }
    )
    factor: str = choice(
        {
            "both": "multiplies the gradients of scale and zero point by grad_factor",
            "scale": "multiplies the gradient of the scale alone by grad_factor",
        }
    )
    empty: str = choice(
        {
            "parameters": "gives the parameters for their gradients where there is no element",
            "zeros": "gives gradients of 0 where there is no element",
        }
    )


def _check(x: Array, quant_min: Any, quant_max: Any, zero_point: Array) -> None:
    for name, value in (("quant_min", quant_min), ("quant_max", quant_max)):
        if not isinstance(value, int):
            msg = f"{name}={value!r} is not accepted: give an int"
            raise TypeError(msg)
    if x.dtype.name not in _FLOATS:
        msg = f"x of {x.dtype.name} is not accepted: give one of {', '.join(_FLOATS)}"
        raise NotImplementedError(msg)
    if quant_min > quant_max:
        msg = f"quant_min={quant_min} is not accepted above quant_max={quant_max}: give quant_min <= quant_max"
        raise RuntimeError(msg)
    if np.isnan(zero_point).any():
        msg = "zero_point=nan is not accepted: give a number"
        raise RuntimeError(msg)


def _check_gradients(x: Array, quant_min: int, quant_max: int) -> None:
    if not quant_min <= 0 <= quant_max:
        msg = f"quant_min={quant_min}, quant_max={quant_max} are not accepted: zero lies between them"
        raise RuntimeError(msg)
    if x.dtype != np.float32:
        msg = f"x of {x.dtype.name} is not accepted: give float32"
        raise RuntimeError(msg)


def _int64(q: Array) -> Array:
    """Rounded numbers as an int64 has them: the least one where it does not hold them."""
    return np.where(np.abs(q) < np.float32(2.0**63), q, np.float32(-(2.0**63)))


def _open(*sums: Array) -> dict[str, Open]:
    """What the gradients of scale and zero point may be, from the terms of each."""
    return {f"result[{i}]": within(sets, (len(sets),), np.float32) for i, sets in enumerate(sums, 1)}


def _open_per_tensor(b: LearnableGradients, x: Array, **given: Any) -> dict[str, Open]:
    return _open(*(t[None] for t in _tensor_gradients(b, x, **given)[1:])) if x.size else {}


def _open_per_channel(b: LearnableGradients, x: Array, **given: Any) -> dict[str, Open]:
    return _open(*_channel_gradients(b, x, **given)[1:]) if x.size else {}


@formula(
    "torch/_fake_quantize_learnable_per_tensor_affine",
    equation=_FORWARD,
    basis=_WIDE,
    source="torch 2.13.0, measured",
    behaviour=LearnableQuantizer(),
)
def per_tensor(
    b: LearnableQuantizer, x: Array, scale: Array, zero_point: Array, quant_min: int, quant_max: int
) -> Array:
    """``x`` on the grid, in its dtype; NaN takes the lowest code.

    Args:
        x: float32, float16, bfloat16 or float64, any shape; of float64 only the quotient is in that.
        scale: float32 of one element.
        zero_point: float32 of one element; it is rounded, a tie to the even integer, and limited to the grid.
        quant_min: the lowest code.
        quant_max: the highest code.

    Raises:
        TypeError: an end of the grid is no int.
        NotImplementedError: ``x`` is of no such dtype.
        RuntimeError: ``quant_min`` above ``quant_max``, or a zero point of NaN.
    """
    _check(x, quant_min, quant_max, zero_point)
    return _forward(b, x, np.asarray(scale[0]), np.asarray(zero_point[0]), quant_min, quant_max)


def _forward(b: LearnableQuantizer, x: Array, s: Array, zero_point: Array, quant_min: int, quant_max: int) -> Array:
    low, high = np.float32(quant_min), np.float32(quant_max)
    wide = x.astype(np.float32 if b.float64 == "float32" else np.promote_types(x.dtype, np.float32))
    with np.errstate(all="ignore"):
        z = ROUNDINGS[b.zero_point_rounding](zero_point)
        z = np.clip(z, low, high) if b.limited == "grid" else z
        quotient = wide / s if b.division == "divide" else wide * (np.float32(1) / s)
        round_ = ROUNDINGS[b.rounding]
        q = round_(quotient) + z if b.zero_point == "after-rounding" else round_(quotient + z)
        code = _int64(q) if b.beyond == "int64" else q
        code = np.fmin(np.fmax(code, low), high)
        if b.nan != "qmin":
            code = np.where(np.isnan(q), high if b.nan == "qmax" else np.nan, code)
        code = code.astype(np.float32) if b.float64 == "quotient" else code
        y: Array = (code - z) * s
    return np.asarray(y).astype(x.dtype)


@formula(
    "torch/_fake_quantize_learnable_per_channel_affine",
    equation=_FORWARD,
    basis=_WIDE,
    source="torch 2.13.0, measured",
    behaviour=LearnableQuantizer(beyond="int64", float64="throughout"),
)
def per_channel(
    b: LearnableQuantizer, x: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int
) -> Array:
    """``x`` on the grid, in its dtype; what an int64 does not hold, and NaN, take the lowest code.

    Arguments and errors as in ``per_tensor``, but scale and zero point have one entry per index along ``axis``, and a
    float64 ``x`` is computed with in float64 throughout.

    Raises:
        IndexError: ``axis`` is beyond the dimensions, counted from either end.
        RuntimeError: ``axis`` is negative otherwise, or the parameters are not as many as the channels.
    """
    _check(x, quant_min, quant_max, zero_point)
    s, z = along(scale, x, axis), along(zero_point, x, axis)
    return _forward(b, x, s, z, quant_min, quant_max)


@formula(
    "torch/_fake_quantize_learnable_per_tensor_affine.backward",
    equation=_BACKWARD,
    basis=_F32,
    source="torch 2.13.0, measured",
    behaviour=LearnableGradients(),
    open=_open_per_tensor,
)
def per_tensor_gradients(
    b: LearnableGradients,
    x: Array,
    scale: Array,
    zero_point: Array,
    quant_min: int,
    quant_max: int,
    grad: Array,
    grad_factor: float = 1.0,
) -> tuple[Array, Array, Array]:
    """The gradients of ``per_tensor`` with respect to ``x``, ``scale`` and ``zero_point``, float32 in their shapes.

    The zero point is another than forward: 0.5 is added, it is limited to the grid and cut towards zero, which makes 0
    of -1. Product and sum are fused. Without elements the gradients are scale and zero point themselves.

    Args:
        x: as in ``per_tensor``, and so the next four.
        scale: real per code.
        zero_point: a float that stands for a code.
        quant_min: the lowest code, at most 0.
        quant_max: the highest code, at least 0.
        grad: the gradient with respect to the result, float32, the shape of ``x``.
        grad_factor: what the gradients of scale and zero point are multiplied by.

    Raises:
        RuntimeError: as in ``per_tensor``; a range without zero, or ``x`` of another dtype than float32.
    """
    _check(x, quant_min, quant_max, zero_point)
    _check_gradients(x, quant_min, quant_max)
    if not x.size:
        return _without_elements(b, x, scale, zero_point)
    grad_x, *others = _tensor_gradients(b, x, scale, zero_point, quant_min, quant_max, grad, grad_factor)
    of_scale, of_zero_point = (np.full(1, rounded(terms)) for terms in others)
    return grad_x, of_scale, of_zero_point


def _tensor_gradients(
    b: LearnableGradients,
    x: Array,
    scale: Array,
    zero_point: Array,
    quant_min: int,
    quant_max: int,
    grad: Array,
    grad_factor: float,
) -> tuple[Array, Array, Array]:
    s, z = np.asarray(scale[0]), np.asarray(zero_point[0])
    return _gradients(b, x, s, z, quant_min, quant_max, grad, grad_factor)


def _without_elements(b: LearnableGradients, x: Array, scale: Array, zero_point: Array) -> tuple[Array, Array, Array]:
    if b.empty == "zeros":
        return x, np.zeros_like(scale), np.zeros_like(zero_point)
    return x, scale, zero_point


def _gradients(
    b: LearnableGradients,
    x: Array,
    s: Array,
    zero_point: Array,
    quant_min: int,
    quant_max: int,
    grad: Array,
    grad_factor: float,
) -> tuple[Array, Array, Array]:
    """The gradient of ``x``, and the terms of those of scale and zero point."""
    low, high, g = np.float32(quant_min), np.float32(quant_max), np.float32(grad_factor)

    def sum_of(a: Array, factor: Array, addend: Array) -> Array:
        return fused_multiply_add(a, factor, addend) if b.sum == "fused" else np.asarray(a * factor + addend)

    with np.errstate(all="ignore"):
        if b.zero_point == "half-added":
            z = np.trunc(np.clip(zero_point + np.float32(0.5), low, high))
        else:
            z = np.clip(np.rint(zero_point), low, high)
        inv_s = np.float32(1) / s
        quotient = x / s + z if b.division == "divide" else sum_of(x, inv_s, z)
        q = _int64(ROUNDINGS[b.rounding](quotient))
        inside = (q >= low) & (q <= high) if b.ends == "inside" else (q > low) & (q < high)
        error = sum_of(q - z, s, -x)
        outside_s = (np.where(q <= low, low - z, high - z) * grad) * g
        grad_s = np.where(inside, ((grad * error) * inv_s) * g, outside_s)
        of_zero = -grad * s
        grad_z = np.where(inside, 0, of_zero * g if b.factor == "both" else of_zero)
        return grad * inside, grad_s, grad_z


@formula(
    "torch/_fake_quantize_learnable_per_channel_affine.backward",
    equation=_BACKWARD,
    basis=_F32,
    source="torch 2.13.0, measured",
    behaviour=LearnableGradients(zero_point="rounded"),
    open=_open_per_channel,
)
def per_channel_gradients(
    b: LearnableGradients,
    x: Array,
    scale: Array,
    zero_point: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad: Array,
    grad_factor: float = 1.0,
) -> tuple[Array, Array, Array]:
    """The gradients of ``per_channel``, as in ``per_tensor_gradients``, with the zero point that the result has.

    Raises:
        IndexError: as in ``per_channel``.
        RuntimeError: as in ``per_channel`` and ``per_tensor_gradients``; or ``x`` has one dimension.
    """
    _check(x, quant_min, quant_max, zero_point)
    _check_gradients(x, quant_min, quant_max)
    along(scale, x, axis), along(zero_point, x, axis)  # their errors
    if not x.size:
        return _without_elements(b, x, scale, zero_point)
    if x.ndim == 1:
        msg = f"x of shape {x.shape} is not accepted: give two dimensions or more"
        raise RuntimeError(msg)
    grad_x, *others = _channel_gradients(b, x, scale, zero_point, axis, quant_min, quant_max, grad, grad_factor)
    of_scale, of_zero_point = (rounded_each(sets) for sets in others)
    return grad_x, of_scale, of_zero_point


def _channel_gradients(
    b: LearnableGradients,
    x: Array,
    scale: Array,
    zero_point: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad: Array,
    grad_factor: float,
) -> tuple[Array, Array, Array]:
    s, z = along(scale, x, axis), along(zero_point, x, axis)
    grad_x, of_s, of_z = _gradients(b, x, s, z, quant_min, quant_max, grad, grad_factor)
    return grad_x, np.moveaxis(of_s, axis, 0), np.moveaxis(of_z, axis, 0)
