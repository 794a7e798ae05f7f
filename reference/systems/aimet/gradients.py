"""AIMET: the gradients of the affine functions, and of scale and offset with respect to min and max.

No document gives one. The formulas are the derivatives of the documented equations, straight through the rounding:
an element is inside where its *rounded* code lies in [qmin, qmax]. What that leaves open is measured, aimet-torch 2.42:
the ends are inside, and what becomes of infinities and NaN. Where the library's own differ the formula is ``@2.42``.

A parameter's gradient is the exact sum over its elements, rounded once. The library adds in an order of its own, so
that it is tried on sums alone that no order rounds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, BlockSize, Shape, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
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


@dataclass(frozen=True)
class Sums(Behaviour):
    """The choice of a sum over the elements that share a parameter."""

    sum: str = choice({
        "exact": "rounds the sum over a parameter's elements once",
        "in-order": "adds a parameter's elements one after the other, each sum rounded",
    })  # fmt: skip


@dataclass(frozen=True)
class CodesGradient(Sums):
    """The choices in the gradient of reals with respect to codes."""

    scale: str = choice({
        "code-and-offset": "gives the scale the code plus the offset",
        "code": "gives the scale the code without the offset",
    })  # fmt: skip


@dataclass(frozen=True)
class _Masked(Sums):
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
    t = internal_dtype(tensor.dtype, Grid(qmin, qmax))
    x, s, o, g = _wide(tensor, scale, offset, gradient, block_size, t)
    u = x / s
    inside = _inside(b, (np.rint(u) if b.inside == "rounded" else u) - o, qmin, qmax)
    passed = g * inside if b.outside == "product" else np.where(inside, g, t.type(0))
    if b.quotient == "input-where-scalar" and scale.ndim == 0 < tensor.ndim:
        u = u.astype(tensor.dtype)
    d_scale = _collected(b, -(passed / s) * u, tensor.shape, scale, block_size)
    d_offset = _collected(b, -passed, tensor.shape, offset, block_size)
    return (passed / s).astype(tensor.dtype), d_scale, d_offset


@formula(
    "aimet/dequantize_gradient",
    equation=r"(\partial q, \partial s, \partial o) = (g s,\ \sum g (q + o),\ \sum g s)",
    basis=AsComputed(dtype="the tensor's; the sum over a parameter's elements is exact"),
    source=_DERIVATIVE.format("dequantize"),
    behaviour=CodesGradient(),
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
    q, s, o, g = _wide(tensor, scale, offset, gradient, block_size, tensor.dtype)
    d_scale = _collected(b, g * (q if b.scale == "code" else q + o), tensor.shape, scale, block_size)
    d_offset = _collected(b, g * s, tensor.shape, offset, block_size)
    return g * s, d_scale, d_offset


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
    t = internal_dtype(tensor.dtype, Grid(qmin, qmax))
    x, s, o, g = _wide(tensor, scale, offset, gradient, block_size, t)
    z, lo, hi, none = (np.asarray(v, t) for v in (zero_point_shift, qmin, qmax, 0))
    u = x / s - z
    rounded = np.rint(u)
    inside = _inside(b, (rounded if b.inside == "rounded" else u) - o, lo, hi)
    clipped = np.where(rounded < o + lo, o + lo, np.where(rounded > o + hi, o + hi, rounded))
    if b.clipped == "shifted":
        clipped = clipped + z
    d_tensor = np.where(inside, g, g * none if b.outside == "product" else none)
    d_scale = _collected(b, g * np.where(inside, rounded - u, clipped), tensor.shape, scale, block_size)
    d_offset = _collected(b, np.where(inside, none, g * s), tensor.shape, offset, block_size)
    return d_tensor.astype(tensor.dtype), d_scale, d_offset


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


def _collected(b: Sums, each: Array, shape: Shape, parameter: Array, block_size: BlockSize | None) -> Array:
    """The sum of ``each`` over the elements that share a parameter, in the parameter's dtype."""
    if parameter.shape == shape and block_size is None:
        return each.astype(parameter.dtype)
    place = np.arange(parameter.size).reshape(parameter.shape)
    place, _, blocks = aligned_blocks(shape, place, place, block_size)
    owner = np.broadcast_to(per_element(place, shape, blocks), shape)
    add = _sum if b.sum == "exact" else _in_order
    sums = [add(each[owner == p]) for p in range(parameter.size)]
    return np.array(sums, each.dtype).astype(parameter.dtype).reshape(parameter.shape)


def _sum(terms: Array) -> np.float64:
    """The exact sum of ``terms``, rounded once, ties to even, to their dtype's precision; beyond float64 infinite."""
    values = terms.astype(np.float64)
    if not np.isfinite(values).all():
        return np.float64(np.add.reduce(values[~np.isfinite(values)]))
    total = sum(map(Fraction, values.tolist()), Fraction(0))
    kept = ml_dtypes.finfo(terms.dtype)  # type: ignore[no-untyped-call]
    # total is an integer over a power of two, and lies below 2^exponent.
    exponent = total.numerator.bit_length() - total.denominator.bit_length() + 1
    last = max(exponent - 1, int(kept.minexp)) - int(kept.nmant)  # 2^last is the unit of the last bit kept
    return np.float64(np.ldexp(float(round(total / Fraction(2) ** last)), last))


def _in_order(terms: Array) -> np.float64:
    """The sum of ``terms`` from the first to the last, every sum rounded to their dtype."""
    total = terms.dtype.type(0)
    for term in terms:
        total = total + term
    return np.float64(total)
