"""torch: fake quantization with learnable parameters, and gradients; no document has the equations: all is measured.

The scale is real per code; the zero point is a float that stands for a code. Gradients are sums over the elements that
share a parameter: the terms as float32, their sum exact but for one rounding to float64 and one to float32, for the
order in which torch adds is not stated.
"""

from math import fsum
from typing import Any

import numpy as np

from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array

__all__ = [
    "fixed_per_channel_gradient",
    "fixed_per_tensor_gradient",
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
_MASK = r"\partial_x = g\,[q_{min} \le \mathrm{round}(x \cdot (1/s)) + z \le q_{max}]"


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


def _along(parameter: Array, x: Array, axis: int) -> Array:
    if not -x.ndim <= axis < x.ndim:
        msg = f"axis={axis} is not accepted for x of shape {x.shape}: give one of its {x.ndim} dimensions"
        raise IndexError(msg)
    if axis < 0 or parameter.shape != (x.shape[axis],):
        msg = f"axis={axis}, parameters of shape {parameter.shape} are not accepted: x has the shape {x.shape}"
        raise RuntimeError(msg)
    return parameter.reshape([x.shape[axis] if i == axis else 1 for i in range(x.ndim)])


def _fused(x: Array, y: Array, z: Array) -> Array:
    """X * y + z of float32 numbers, rounded once."""
    product, addend = np.broadcast_arrays(x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64))
    total = product + addend
    # The sum in float64 and what it lost. Where it lost something its last bit is made odd, away from the numbers that
    # float32 ties between; so the second rounding is the only one that shows.
    back = total - product
    lost = (product - (total - back)) + (addend - back)
    even = np.isfinite(total) & (lost != 0) & (total.view(np.int64) % 2 == 0)
    odd: Array = np.where(even, np.nextafter(total, np.copysign(np.inf, lost)), total)
    return odd.astype(np.float32)


def _int64(q: Array) -> Array:
    return np.where(np.abs(q) < np.float32(2.0**63), q, np.float32(-(2.0**63)))


def _sum(terms: Array) -> np.float32:
    if np.isfinite(terms).all():
        return np.float32(fsum(terms.ravel().tolist()))
    return np.float32(np.sum(terms.astype(np.float64)))


@formula("torch.learnable.per_tensor", equation=_FORWARD, basis=_WIDE, source="torch 2.13.0, measured")
def per_tensor(x: Array, scale: Array, zero_point: Array, quant_min: int, quant_max: int) -> Array:
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
    s, low, high = scale[0], np.float32(quant_min), np.float32(quant_max)
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    with np.errstate(all="ignore"):
        z = np.clip(np.rint(zero_point[0]), low, high)
        q = np.rint(wide * (np.float32(1) / s)) + z
        y: Array = (np.fmin(np.fmax(q, low), high).astype(np.float32) - z) * s
    return np.asarray(y).astype(x.dtype)


@formula("torch.learnable.per_channel", equation=_FORWARD, basis=_WIDE, source="torch 2.13.0, measured")
def per_channel(x: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int) -> Array:
    """``x`` on the grid, in its dtype; what an int64 does not hold, and NaN, take the lowest code.

    Arguments and errors as in ``per_tensor``, but scale and zero point have one entry per index along ``axis``, and a
    float64 ``x`` is computed with in float64 throughout.

    Raises:
        IndexError: ``axis`` is beyond the dimensions, counted from either end.
        RuntimeError: ``axis`` is negative otherwise, or the parameters are not as many as the channels.
    """
    _check(x, quant_min, quant_max, zero_point)
    s, low, high = _along(scale, x, axis), np.float32(quant_min), np.float32(quant_max)
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    with np.errstate(all="ignore"):
        z = np.clip(np.rint(_along(zero_point, x, axis)), low, high)
        q = _int64(np.rint(wide * (np.float32(1) / s)) + z)
        y: Array = (np.minimum(np.maximum(q, low), high) - z) * s
    return np.asarray(y).astype(x.dtype)


@formula("torch.learnable.per_tensor_gradients", equation=_BACKWARD, basis=_F32, source="torch 2.13.0, measured")
def per_tensor_gradients(
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
        return x, scale, zero_point
    s, low, high, g = scale[0], np.float32(quant_min), np.float32(quant_max), np.float32(grad_factor)
    with np.errstate(all="ignore"):
        z = np.trunc(np.clip(zero_point[0] + np.float32(0.5), low, high))
        inv_s = np.float32(1) / s
        q = _int64(np.rint(_fused(x, np.asarray(inv_s), np.asarray(z))))
        inside = (q >= low) & (q <= high)
        error = _fused(np.clip(q, low, high) - z, np.asarray(s), -x)
        outside_s = (np.where(q < low, low - z, high - z) * grad) * g
        grad_s = np.where(inside, ((grad * error) * inv_s) * g, outside_s)
        grad_z = np.where(inside, np.float32(0), (-grad * s) * g)
        return grad * inside.astype(np.float32), np.full(1, _sum(grad_s)), np.full(1, _sum(grad_z))


@formula("torch.learnable.per_channel_gradients", equation=_BACKWARD, basis=_F32, source="torch 2.13.0, measured")
def per_channel_gradients(
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
    s, low, high, g = _along(scale, x, axis), np.float32(quant_min), np.float32(quant_max), np.float32(grad_factor)
    if not x.size:
        return x, scale, zero_point
    if x.ndim == 1:
        msg = f"x of shape {x.shape} is not accepted: give two dimensions or more"
        raise RuntimeError(msg)
    with np.errstate(all="ignore"):
        z = np.clip(np.rint(_along(zero_point, x, axis)), low, high)
        inv_s = np.float32(1) / s
        q = _int64(np.rint(_fused(x, inv_s, z)))
        inside = (q >= low) & (q <= high)
        error = _fused(np.clip(q, low, high) - z, s, -x)
        outside_s = (np.where(q < low, low - z, high - z) * grad) * g
        grad_s = np.where(inside, ((grad * error) * inv_s) * g, outside_s)
        grad_z = np.where(inside, np.float32(0), (-grad * s) * g)
        sums = [np.array([_sum(t) for t in np.moveaxis(terms, axis, 0)]) for terms in (grad_s, grad_z)]
        return grad * inside.astype(np.float32), sums[0], sums[1]


@formula("torch.learnable.fixed_per_tensor_gradient", equation=_MASK, basis=_F32, source="torch 2.13.0, measured")
def fixed_per_tensor_gradient(
    x: Array, scale: float, zero_point: int, quant_min: int, quant_max: int, grad: Array
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
    with np.errstate(all="ignore"):
        r = np.rint(x.astype(np.float32) * (np.float32(1) / np.float32(scale)))
        q = _int64(r).astype(np.float64) + zero_point
        inside = (q >= quant_min) & (q <= quant_max)
        y: Array = grad * inside.astype(grad.dtype)
    return y


@formula("torch.learnable.fixed_per_channel_gradient", equation=_MASK, basis=_F32, source="torch 2.13.0, measured")
def fixed_per_channel_gradient(
    x: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int, grad: Array
) -> Array:
    """The gradient of ``torch.fake_quantize_per_channel_affine`` with respect to ``x``, as in the one per tensor.

    Scale (real per code, float32) and zero point (codes, int32) have one entry per index along ``axis``.

    Raises:
        RuntimeError: a zero point outside the grid; parameters and ``axis`` as in ``per_channel``.
        IndexError: as in ``per_channel``.
    """
    s, z = _along(scale, x, axis), _along(zero_point, x, axis).astype(np.float64)
    if ((z < quant_min) | (z > quant_max)).any():
        msg = f"zero_point={zero_point.tolist()} is not accepted: give codes from {quant_min} to {quant_max}"
        raise RuntimeError(msg)
    with np.errstate(all="ignore"):
        r = np.rint(x.astype(np.float32) * (np.float32(1) / s))
        q = _int64(r).astype(np.float64) + z
        inside = (q >= quant_min) & (q <= quant_max)
        y: Array = grad * inside.astype(grad.dtype)
    return y
