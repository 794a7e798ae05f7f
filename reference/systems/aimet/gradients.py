"""AIMET: the gradients of the affine functions, and of scale and offset with respect to min and max.

No document gives one. The formulas are the derivatives of the documented equations, straight through the rounding:
an element is inside where its *rounded* code lies in [qmin, qmax]. What that leaves open is measured, aimet-torch 2.42:
the ends are inside, and what becomes of infinities and NaN. Where the library's own differ the formula is ``@2.42``.

A parameter's gradient is the exact sum over its elements, rounded once; the library adds in an order of its own, in
float32 where elements have 16 bits, and what any such order may give is proved (``halfeven.reference.sums``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, BlockSize, Shape, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.sums import Open, rounded, within
from halfeven.reference.systems.aimet.affine import (
    CODES,
    VALUES,
    internal_dtype,
    quantize,
    quantize_dequantize,
)
from halfeven.reference.systems.aimet.blocks import aligned_blocks
from halfeven.reference.systems.aimet.encodings import LeastScale, min_scale

__all__ = ["dequantize_gradient", "quantize_dequantize_gradient", "quantize_gradient", "range_gradient"]

#: The gradient of the tensor, and what each element adds to those of scale and offset.
Elements = tuple[Array, Array, Array]


@dataclass(frozen=True)
class CodesGradient(Behaviour):
    """The choices in the gradient of reals with respect to codes."""

    scale: str = choice({
        "code-and-offset": "gives the scale the code plus the offset",
        "code": "gives the scale the code without the offset",
    })  # fmt: skip


@dataclass(frozen=True)
class _Masked(Behaviour):
    """The choices of what lies inside the grid."""

    inside: str = choice({
        "rounded": "decides by the rounded code whether a gradient passes",
        "real": "decides by the quotient less the offset, before rounding, whether a gradient passes",
    })  # fmt: skip
    ends: str = choice(
        {"inside": "counts the ends of the grid as inside", "outside": "counts the ends of the grid as outside"}
    )


@dataclass(frozen=True)
class QuantizeGradient(_Masked):
    """The choices in the gradient of codes."""

    outside: str = choice({
        "product": "multiplies the gradient by 0 outside the grid, so that NaN and infinities give NaN",
        "zero": "gives 0 outside the grid whatever the gradient",
    })  # fmt: skip
    quotient: str = choice({
        "working": "keeps the quotient in the scale's gradient in the dtype of the computation",
        "input-where-scalar": "rounds the quotient in the scale's gradient to the input's dtype for a scalar scale",
    })  # fmt: skip


@dataclass(frozen=True)
class QuantizeDequantizeGradient(_Masked):
    """The choices in the gradient of the reals of codes."""

    outside: str = choice({
        "zero": "gives 0 outside the grid whatever the gradient",
        "product": "multiplies the gradient by 0 outside the grid, so that NaN and infinities give NaN",
    })  # fmt: skip
    clipped: str = choice({
        "shifted": "gives the scale the clipped code with the shift",
        "unshifted": "gives the scale the clipped code without the shift",
    })  # fmt: skip


@dataclass(frozen=True)
class RangeGradient(LeastScale):
    """The choices in the gradient of scale and offset with respect to min and max."""

    narrow: str = choice({
        "at": "lets the scale's gradient through at the least scale",
        "above": "lets the scale's gradient through above the least scale only",
        "all": "lets the scale's gradient through however narrow the range",
    })  # fmt: skip
    offset: str = choice({
        "ends": "lets the offset's gradient through where the offset is limited by nothing, ends included",
        "inside": "lets the offset's gradient through strictly between the offset's limits",
        "all": "lets the offset's gradient through where the offset is limited, too",
    })  # fmt: skip
    swapped: str = choice({
        "sign": "turns the scale's gradient round where max lies below min",
        "plain": "gives max the scale's gradient in whichever order min and max are",
    })  # fmt: skip


def _open_quantize(b: QuantizeGradient, **given: Any) -> dict[str, Open]:
    return _open_sums(_of_quantize(b, **given)[1:], given)


def _open_dequantize(b: CodesGradient, **given: Any) -> dict[str, Open]:
    return _open_sums(_of_dequantize(b, **given)[1:], given)


def _open_quantize_dequantize(b: QuantizeDequantizeGradient, **given: Any) -> dict[str, Open]:
    return _open_sums(_of_quantize_dequantize(b, **given)[1:], given)


_BASIS = AsComputed(dtype="the working dtype of the function; the sum over a parameter's elements is exact")
_DERIVATIVE = "aimet_torch.quantization.affine.{}: the derivative (ends, infinities and NaN: measured)"
_MEASURED = "aimet-torch 2.42, measured: autograd"


@formula(
    "aimet/quantize_gradient",
    equation=(
        r"(\partial x, \partial s, \partial o) = (\frac{g m}{s},\ -\sum \frac{g m}{s} \frac{x}{s},\ -\sum g m),"
        r"\quad m = [q_{min} \le \lceil x / s \rfloor - o \le q_{max}]"
    ),
    basis=_BASIS,
    source=_DERIVATIVE.format("quantize"),
    behaviour=QuantizeGradient(),
    versions={"2.42": (QuantizeGradient(quotient="input-where-scalar"), _MEASURED)},
    open=_open_quantize,
)
def quantize_gradient(
    b: QuantizeGradient,
    tensor: Array,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    gradient: Array,
    block_size: BlockSize | None = None,
) -> tuple[Array, Array, Array]:
    """Gradients of ``quantize`` with respect to tensor, scale and offset, each of its shape and dtype.

    Args:
        tensor: as in ``quantize``, and so the next four, ``block_size`` and the errors.
        scale: real per code.
        offset: in codes.
        qmin: the lowest code.
        qmax: the highest code.
        gradient: of the result, of the shape and dtype of ``tensor``.
        block_size: elements per block.
    """
    quantize(CODES, tensor, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size)  # its errors
    of_tensor, *each = _of_quantize(b, tensor, scale, offset, qmin, qmax, gradient, block_size)
    return of_tensor, *_collected(each, tensor, scale, offset, block_size)


def _of_quantize(
    b: QuantizeGradient,
    tensor: Array,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    gradient: Array,
    block_size: BlockSize | None,
) -> Elements:
    t = internal_dtype(tensor.dtype, Grid(qmin, qmax))
    x, s, o, g = _wide(tensor, scale, offset, gradient, block_size, t)
    u = x / s
    inside = _inside(b, (np.rint(u) if b.inside == "rounded" else u) - o, qmin, qmax)
    passed = g * inside if b.outside == "product" else np.where(inside, g, t.type(0))
    if b.quotient == "input-where-scalar" and scale.ndim == 0 < tensor.ndim:
        u = u.astype(tensor.dtype)
    return (passed / s).astype(tensor.dtype), -(passed / s) * u, -passed


@formula(
    "aimet/dequantize_gradient",
    equation=r"(\partial q, \partial s, \partial o) = (g s,\ \sum g (q + o),\ \sum g s)",
    basis=AsComputed(dtype="the tensor's; the sum over a parameter's elements is exact"),
    source=_DERIVATIVE.format("dequantize"),
    behaviour=CodesGradient(),
    open=_open_dequantize,
)
def dequantize_gradient(
    b: CodesGradient,
    tensor: Array,
    scale: Array,
    offset: Array,
    gradient: Array,
    block_size: BlockSize | None = None,
) -> tuple[Array, Array, Array]:
    """Gradients of ``dequantize`` with respect to tensor, scale and offset, each of its shape and dtype.

    ``gradient``, of the result, has the shape and dtype of ``tensor``, floats; the rest as in ``dequantize``.

    Raises:
        RuntimeError, IndexError: shapes or blocks that do not fit, as in ``dequantize``.
    """
    of_tensor, *each = _of_dequantize(b, tensor, scale, offset, gradient, block_size)
    return of_tensor, *_collected(each, tensor, scale, offset, block_size)


def _of_dequantize(
    b: CodesGradient,
    tensor: Array,
    scale: Array,
    offset: Array,
    gradient: Array,
    block_size: BlockSize | None,
) -> Elements:
    q, s, o, g = _wide(tensor, scale, offset, gradient, block_size, tensor.dtype)
    return g * s, g * (q if b.scale == "code" else q + o), g * s


@formula(
    "aimet/quantize_dequantize_gradient",
    equation=(
        r"\partial x = g m,\quad \partial s = \sum g \begin{cases} R - u & m \\ \mathrm{clamp}(R, o + q_{min},"
        r" o + q_{max}) + z & else \end{cases},\quad \partial o = \sum g s (1 - m),"
        r"\quad u = x / s - z,\ R = \lceil u \rfloor"
    ),
    basis=_BASIS,
    source=_DERIVATIVE.format("quantize_dequantize"),
    behaviour=QuantizeDequantizeGradient(),
    versions={"2.42": (QuantizeDequantizeGradient(clipped="unshifted"), _MEASURED)},
    open=_open_quantize_dequantize,
)
def quantize_dequantize_gradient(
    b: QuantizeDequantizeGradient,
    tensor: Array,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    gradient: Array,
    block_size: BlockSize | None = None,
    zero_point_shift: float = 0.0,
) -> tuple[Array, Array, Array]:
    """Gradients of ``quantize_dequantize`` with respect to tensor, scale and offset, each of its shape and dtype.

    Where the code is clipped the value is (end + offset + shift) * scale, and so the scale's gradient has the shift.

    Args:
        tensor: as in ``quantize_dequantize``, and so the next four, ``block_size`` and the errors.
        scale: real per code.
        offset: in codes.
        qmin: the lowest code.
        qmax: the highest code.
        gradient: of the result, of the shape and dtype of ``tensor``.
        block_size: elements per block.
        zero_point_shift: in codes; moves every real of the grid.
    """
    quantize_dequantize(VALUES, tensor, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size)  # its errors
    given = (tensor, scale, offset, qmin, qmax, gradient, block_size, zero_point_shift)
    of_tensor, *each = _of_quantize_dequantize(b, *given)
    return of_tensor, *_collected(each, tensor, scale, offset, block_size)


def _of_quantize_dequantize(
    b: QuantizeDequantizeGradient,
    tensor: Array,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    gradient: Array,
    block_size: BlockSize | None,
    zero_point_shift: float,
) -> Elements:
    t = internal_dtype(tensor.dtype, Grid(qmin, qmax))
    x, s, o, g = _wide(tensor, scale, offset, gradient, block_size, t)
    z, lo, hi, none = (np.asarray(v, t) for v in (zero_point_shift, qmin, qmax, 0))
    u = x / s - z
    near = np.rint(u)
    inside = _inside(b, (near if b.inside == "rounded" else u) - o, lo, hi)
    clipped = np.where(near < o + lo, o + lo, np.where(near > o + hi, o + hi, near))
    if b.clipped == "shifted":
        clipped = clipped + z
    d_tensor = np.where(inside, g, g * none if b.outside == "product" else none)
    return d_tensor.astype(tensor.dtype), g * np.where(inside, near - u, clipped), np.where(inside, none, g * s)


@formula(
    "aimet/range_gradient",
    equation=(
        r"\partial max = \frac{\sigma (\partial s - \partial o \frac{min}{s^2})}{q_{max} - q_{min}},"
        r"\quad \partial min = \frac{\partial o}{s} - \partial max,\quad \sigma = \mathrm{sgn}(max - min)"
    ),
    basis=AsComputed(dtype="float32"),
    source="class QuantizeDequantize, variables min and max: the derivative of aimet.scale_and_offset (ends: measured)",
    behaviour=RangeGradient(),
)
def range_gradient(
    b: RangeGradient,
    min: Array,  # noqa: A002 - the document's names
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    scale_gradient: Array,
    offset_gradient: Array,
) -> tuple[Array, Array]:
    """Gradients with respect to ``min`` and ``max`` from those of the scale and offset they give.

    The smallest scale stops the scale's, strictly below it; the offset's stops where the offset is clamped to keep
    zero in the range, and a symmetric quantizer's offset has none.

    Args:
        min: float32, in reals, any shape.
        max: likewise, of the same shape.
        qmin: the lowest code.
        qmax: the highest code, above ``qmin``.
        symmetric: the offset does not depend on ``min``.
        scale_gradient: float32 of the shape of ``min``.
        offset_gradient: likewise; not read if symmetric.

    Returns:
        The gradients of ``min`` and of ``max``, float32 of their shape.

    Raises:
        ValueError: ``qmin`` is not below ``qmax``.
    """
    if qmin >= qmax:
        msg = f"qmin={qmin}, qmax={qmax} is not accepted: give qmin below qmax"
        raise ValueError(msg)
    n, smallest = np.float32(qmax - qmin), np.float32(min_scale(b, qmax - qmin))
    width = (max - min) / n
    scale = np.maximum(np.abs(width), smallest)
    d_scale = scale_gradient
    if not symmetric:
        offset = np.rint(min / scale) - qmin
        free: Callable[[Array], Array] = {
            "ends": lambda o: (o >= -qmax) & (o <= -qmin),
            "inside": lambda o: (o > -qmax) & (o < -qmin),
            "all": lambda o: np.ones(o.shape, np.bool_),
        }[b.offset]
        d_offset = np.where(free(offset), offset_gradient, np.float32(0))
        d_scale = d_scale + -d_offset * (min / scale / scale)
    if b.narrow != "all":
        wide = np.abs(width) > smallest if b.narrow == "above" else np.abs(width) >= smallest
        d_scale = np.where(wide, d_scale, np.float32(0))
    sign = np.sign(width) if b.swapped == "sign" else np.float32(1)
    d_max: Array = d_scale * sign / n
    return (-d_max if symmetric else d_offset / scale - d_max), d_max


def _inside(b: _Masked, code: Array, qmin: float | Array, qmax: float | Array) -> Array:
    return (code > qmin) & (code < qmax) if b.ends == "outside" else (code >= qmin) & (code <= qmax)


def _wide(
    tensor: Array, scale: Array, offset: Array, gradient: Array, block_size: BlockSize | None, t: "np.dtype[np.generic]"
) -> tuple[Array, Array, Array, Array]:
    """Tensor, scale and offset for each element, and gradient in the working dtype."""
    s, o, blocks = aligned_blocks(tensor.shape, scale, offset, block_size)
    s, o = (np.broadcast_to(per_element(p, tensor.shape, blocks), tensor.shape).astype(t) for p in (s, o))
    return tensor.astype(t), s, o, gradient.astype(t)


def _collected(
    each: Sequence[Array], tensor: Array, scale: Array, offset: Array, block_size: BlockSize | None
) -> tuple[Array, Array]:
    """The gradients of scale and offset, in their dtypes: the sums of the elements' over what shares them."""
    found = []
    for values, parameter in zip(each, (scale, offset), strict=True):
        if (sets := _sets(values, parameter, tensor.shape, block_size)) is None:
            found.append(values.astype(parameter.dtype))
        else:
            total = np.array([rounded(terms) for terms in sets], values.dtype)
            found.append(total.astype(parameter.dtype).reshape(parameter.shape))
    return found[0], found[1]


def _sets(each: Array, parameter: Array, shape: Shape, block_size: BlockSize | None) -> list[Array] | None:
    """The elements that share each of the parameters; None where each has its own."""
    if parameter.shape == shape and block_size is None:
        return None
    place = np.arange(parameter.size).reshape(parameter.shape)
    place, _, blocks = aligned_blocks(shape, place, place, block_size)
    owner = np.broadcast_to(per_element(place, shape, blocks), shape).ravel()
    ends = np.cumsum(np.bincount(owner, minlength=parameter.size))[:-1]
    return np.split(each.ravel()[np.argsort(owner, kind="stable")], ends)


def _open_sums(each: Sequence[Array], given: Mapping[str, Any]) -> dict[str, Open]:
    found = {}
    shape, blocks = given["tensor"].shape, given["block_size"]
    for i, (values, name) in enumerate(zip(each, ("scale", "offset"), strict=True), 1):
        parameter = given[name]
        if (sets := _sets(values, parameter, shape, blocks)) is not None:
            added = np.promote_types(values.dtype, np.float32)
            found[f"result[{i}]"] = within(sets, parameter.shape, added, values.dtype, parameter.dtype)
    return found
