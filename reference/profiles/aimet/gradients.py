"""AIMET: the gradients of the affine functions, and of scale and offset with respect to min and max.

No document gives one. The formulas are the derivatives of the documented equations, straight through the rounding:
an element is inside where its *rounded* code lies in [qmin, qmax]. What that leaves open is measured, aimet-torch 2.42:
the ends are inside, and what becomes of infinities and NaN. Where the library's own differ the formula is ``@2.42``.

A parameter's gradient is the exact sum over its elements, rounded once. The library adds in an order of its own, so
that it is tried on sums alone that no order rounds.
"""

from fractions import Fraction

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import Array, BlockSize, Shape, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.profiles.aimet.affine import aligned_blocks, internal_dtype, quantize, quantize_dequantize

__all__ = [
    "dequantize_gradient",
    "quantize_dequantize_gradient",
    "quantize_dequantize_gradient_2_42",
    "quantize_gradient",
    "quantize_gradient_2_42",
    "range_gradient",
]

_BASIS = AsComputed(dtype="the working dtype of the function; the sum over a parameter's elements is exact")
_DERIVATIVE = "aimet_torch.quantization.affine.{}: the derivative (ends, infinities and NaN: measured)"
_MEASURED = "aimet-torch 2.42, measured: autograd"
_QUANTIZE = (
    r"(\partial x, \partial s, \partial o) = (\frac{g m}{s},\ -\sum \frac{g m}{s} \frac{x}{s},\ -\sum g m),"
    r"\quad m = [q_{min} \le \lceil x / s \rfloor - o \le q_{max}]"
)
_QUANTIZE_DEQUANTIZE = (
    r"\partial x = g m,\quad \partial s = \sum g \begin{cases} R - u & m \\ \mathrm{clamp}(R, o + q_{min}, o + q_{max})"
    r" + z & else \end{cases},\quad \partial o = \sum g s (1 - m),\quad u = x / s - z,\ R = \lceil u \rfloor"
)


@formula("aimet.quantize_gradient", equation=_QUANTIZE, basis=_BASIS, source=_DERIVATIVE.format("quantize"))
def quantize_gradient(
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
    return _quantize_gradient(tensor, scale, offset, qmin, qmax, gradient, block_size, narrow_quotient=False)


@formula("aimet.quantize_gradient@2.42", equation=_QUANTIZE, basis=_BASIS, source=_MEASURED)
def quantize_gradient_2_42(
    tensor: Array,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    gradient: Array,
    block_size: BlockSize | None = None,
) -> tuple[Array, Array, Array]:
    """``quantize_gradient``, save that the last x / s is rounded to the tensor's dtype where the scale is a scalar."""
    scalar = scale.ndim == 0 < tensor.ndim and not block_size
    return _quantize_gradient(tensor, scale, offset, qmin, qmax, gradient, block_size, narrow_quotient=scalar)


def _quantize_gradient(
    tensor: Array,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    gradient: Array,
    block_size: BlockSize | None,
    *,
    narrow_quotient: bool,
) -> tuple[Array, Array, Array]:
    quantize(tensor, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size)  # its errors
    t = internal_dtype(tensor.dtype, Grid(qmin, qmax))
    x, s, o, g = _wide(tensor, scale, offset, gradient, block_size, t)
    q = np.rint(x / s) - o
    inside = ((q >= qmin) & (q <= qmax)).astype(t)
    u = (x / s).astype(tensor.dtype).astype(t) if narrow_quotient else x / s
    d_tensor = g * inside / s
    d_scale = _collected(-(g * inside / s) * u, tensor.shape, scale, block_size)
    d_offset = _collected(-(g * inside), tensor.shape, offset, block_size)
    return d_tensor.astype(tensor.dtype), d_scale, d_offset


@formula(
    "aimet.dequantize_gradient",
    equation=r"(\partial q, \partial s, \partial o) = (g s,\ \sum g (q + o),\ \sum g s)",
    basis=AsComputed(dtype="the tensor's; the sum over a parameter's elements is exact"),
    source=_DERIVATIVE.format("dequantize"),
)
def dequantize_gradient(
    tensor: Array, scale: Array, offset: Array, gradient: Array, block_size: BlockSize | None = None
) -> tuple[Array, Array, Array]:
    """Gradients of ``dequantize`` with respect to tensor, scale and offset, each of its shape and dtype.

    ``gradient``, of the result, has the shape and dtype of ``tensor``, floats; the rest as in ``dequantize``.

    Raises:
        RuntimeError, IndexError: shapes or blocks that do not fit, as in ``dequantize``.
    """
    q, s, o, g = _wide(tensor, scale, offset, gradient, block_size, tensor.dtype)
    d_scale = _collected(g * (q + o), tensor.shape, scale, block_size)
    d_offset = _collected(g * s, tensor.shape, offset, block_size)
    return g * s, d_scale, d_offset


@formula(
    "aimet.quantize_dequantize_gradient",
    equation=_QUANTIZE_DEQUANTIZE,
    basis=_BASIS,
    source=_DERIVATIVE.format("quantize_dequantize"),
)
def quantize_dequantize_gradient(
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
    return _quantize_dequantize_gradient(
        tensor, scale, offset, qmin, qmax, gradient, block_size, zero_point_shift, shift_where_clipped=True
    )


def _quantize_dequantize_gradient(
    tensor: Array,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    gradient: Array,
    block_size: BlockSize | None,
    zero_point_shift: float,
    *,
    shift_where_clipped: bool,
) -> tuple[Array, Array, Array]:
    quantize_dequantize(tensor, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size)  # its errors
    t = internal_dtype(tensor.dtype, Grid(qmin, qmax))
    x, s, o, g = _wide(tensor, scale, offset, gradient, block_size, t)
    z, lo, hi, none = (np.asarray(v, t) for v in (zero_point_shift, qmin, qmax, 0))
    u = x / s - z
    rounded = np.rint(u)
    inside = (rounded - o >= lo) & (rounded - o <= hi)
    clipped = np.where(rounded < o + lo, o + lo, np.where(rounded > o + hi, o + hi, rounded))
    if zero_point_shift and shift_where_clipped:
        clipped = clipped + z
    d_tensor = np.where(inside, g, none)
    d_scale = _collected(g * np.where(inside, rounded - u, clipped), tensor.shape, scale, block_size)
    d_offset = _collected(np.where(inside, none, g * s), tensor.shape, offset, block_size)
    return d_tensor.astype(tensor.dtype), d_scale, d_offset


@formula("aimet.quantize_dequantize_gradient@2.42", equation=_QUANTIZE_DEQUANTIZE, basis=_BASIS, source=_MEASURED)
def quantize_dequantize_gradient_2_42(
    tensor: Array,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    gradient: Array,
    block_size: BlockSize | None = None,
    zero_point_shift: float = 0.0,
) -> tuple[Array, Array, Array]:
    """``quantize_dequantize_gradient``, save that the scale's gradient lacks the shift where the code is clipped."""
    return _quantize_dequantize_gradient(
        tensor, scale, offset, qmin, qmax, gradient, block_size, zero_point_shift, shift_where_clipped=False
    )


@formula(
    "aimet.range_gradient",
    equation=(
        r"\partial max = \frac{\sigma (\partial s - \partial o \frac{min}{s^2})}{q_{max} - q_{min}},"
        r"\quad \partial min = \frac{\partial o}{s} - \partial max,\quad \sigma = \mathrm{sgn}(max - min)"
    ),
    basis=AsComputed(dtype="float32"),
    source="class QuantizeDequantize, variables min and max: the derivative of aimet.scale_and_offset (ends: measured)",
)
def range_gradient(
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
    n, smallest = np.float32(qmax - qmin), np.float32(np.minimum(2.0**-23, 0.01 / (qmax - qmin)))
    width = (max - min) / n
    scale = np.maximum(np.abs(width), smallest)
    d_scale = scale_gradient
    if not symmetric:
        offset = np.rint(min / scale) - np.float32(qmin)
        d_offset = np.where((offset >= -qmax) & (offset <= -qmin), offset_gradient, np.float32(0))
        d_scale = d_scale + -d_offset * (min / scale / scale)
    d_scale = np.where(np.abs(width) >= smallest, d_scale, np.float32(0))
    d_max: Array = d_scale * np.sign(width) / n
    return (-d_max if symmetric else d_offset / scale - d_max), d_max


def _wide(
    tensor: Array, scale: Array, offset: Array, gradient: Array, block_size: BlockSize | None, t: "np.dtype[np.generic]"
) -> tuple[Array, Array, Array, Array]:
    """Tensor, scale and offset for each element, and gradient in the working dtype."""
    s, o, blocks = aligned_blocks(tensor.shape, scale, offset, block_size)
    s, o = (np.broadcast_to(per_element(p, tensor.shape, blocks), tensor.shape).astype(t) for p in (s, o))
    return tensor.astype(t), s, o, gradient.astype(t)


def _collected(each: Array, shape: Shape, parameter: Array, block_size: BlockSize | None) -> Array:
    """The sum of ``each`` over the elements that share a parameter, exact, then in the parameter's dtype."""
    if parameter.shape == shape and block_size is None:
        return each.astype(parameter.dtype)
    place = np.arange(parameter.size).reshape(parameter.shape)
    place, _, blocks = aligned_blocks(shape, place, place, block_size)
    owner = np.broadcast_to(per_element(place, shape, blocks), shape)
    sums = [_sum(each[owner == p]) for p in range(parameter.size)]
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
