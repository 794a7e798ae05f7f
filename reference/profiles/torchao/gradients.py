"""torchao: the gradients of fake quantization in the INT and NONE domains, element by element.

Rounding passes the gradient on. The gradient of a parameter is the sum of its block's elements, in no stated order.
"""

import numpy as np

from halfeven.reference.blocks import BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.torchao.granularity import per_element
from halfeven.reference.profiles.torchao.storage import check_reals, code_range, limits

__all__ = [
    "fake_quantize_affine_gradients",
    "fake_quantize_affine_gradients_0_11",
    "fake_quantize_affine_gradients_0_18",
]


@formula(
    "torchao.fake_quantize_affine_gradients",
    equation=r"\partial x = g\,[q_{min} \le r \le q_{max}];\quad \partial s = g\,((q - z) - [\cdot]\,x / s);\quad "
    r"\partial z = -g\,s\,(1 - [\cdot]);\quad r = \lceil x / s \rfloor + z",
    basis=AsComputed(dtype="the input's"),
    source="torchao.quantization.quant_primitives.fake_quantize_affine, whose rounding passes the gradient on",
)
def fake_quantize_affine_gradients(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    grad: Array,
    quant_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
) -> tuple[Array, Array, Array | None]:
    """What each element adds to the gradients of input, scale and zero point.

    Args:
        input: float32, float16 or bfloat16 of any shape.
        block_size: elements per block along each dimension.
        scale: real per code, of the input's dtype, one entry per block.
        zero_point: floats of the input's dtype, or None in the NONE domain, whose gradient is None.
        grad: the gradient of the result, of the input's shape and dtype.
        quant_dtype: the dtype whose range is the grid where none is given.
        quant_min: the least code; it and the greatest belong to the grid.
        quant_max: the greatest code.

    Returns:
        Three arrays of the input's shape and dtype.

    Raises:
        AssertionError, ValueError, RuntimeError: as ``torchao.quant_primitives.quantize_affine``.
    """
    qmin, qmax = code_range(quant_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    z = None if zero_point is None else per_element("zero_point", zero_point, input.shape, block_size)
    low, high = limits(qmin, qmax, input.dtype)
    with np.errstate(all="ignore"):
        r = np.rint(input / s) if z is None else np.rint(input / s) + z
        inside = (r >= low) & (r <= high)
        q = np.where(r < low, low, np.where(r > high, high, r))
        steps = q if z is None else q - z
        of_input = np.where(inside, grad, np.zeros_like(grad))
        of_scale = grad * np.where(inside, steps - input / s, steps)
        of_zero_point = np.where(inside, np.zeros_like(grad), -(grad * s))
    return of_input, of_scale, None if zero_point is None else of_zero_point


@formula(
    "torchao.fake_quantize_affine_gradients@0.18",
    equation=r"\partial x = (g s [\cdot])\,s^{-1};\quad \partial s = g\,(q - z) - (g s [\cdot])\,x\,(s^{-1} s^{-1});"
    r"\quad \partial z = g s [\cdot] - g s",
    basis=AsComputed(dtype="the input's"),
    source="torchao 0.18.0, measured on the CPU: the chain of its operations",
)
def fake_quantize_affine_gradients_0_18(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    grad: Array,
    quant_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
) -> tuple[Array, Array, Array | None]:
    """As documented, but each factor by itself: the gradient times the scale, then times its rounded reciprocal.

    An infinite input has a gradient of the scale of NaN: the 0 of what is outside times infinity.
    """
    qmin, qmax = code_range(quant_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    z = None if zero_point is None else per_element("zero_point", zero_point, input.shape, block_size)
    low, high = limits(qmin, qmax, input.dtype)
    with np.errstate(all="ignore"):
        reciprocal = np.ones((), s.dtype) / s
        r = np.rint(input * reciprocal) if z is None else np.rint(input * reciprocal) + z
        inside = (r >= low) & (r <= high)
        q = np.where(r < low, low, np.where(r > high, high, r))
        steps = q if z is None else q - z
        through = np.where(inside, grad * s, np.zeros_like(grad))
        of_input = through * reciprocal
        of_scale = grad * steps + -(through * input) * (reciprocal * reciprocal)
        of_zero_point = through + -(grad * s)
    return of_input, of_scale, None if zero_point is None else of_zero_point


@formula(
    "torchao.fake_quantize_affine_gradients@0.11",
    equation=r"\partial x = 0 \cdot s^{-1};\quad \partial s = g\,q - (0 \cdot x)\,(s^{-1} s^{-1})",
    basis=AsComputed(dtype="the input's"),
    source="torchao 0.11.0, measured on the CPU: rounding passes nothing on",
)
def fake_quantize_affine_gradients_0_11(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    grad: Array,
    quant_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
) -> tuple[Array, Array, Array | None]:
    """In the NONE domain as documented, but without what goes through the rounding; in the INT domain no gradient.

    Raises:
        RuntimeError: also where there is a zero point: the codes become int32, behind which nothing is differentiated.
    """
    fake_quantize_affine_gradients_0_18(input, block_size, scale, zero_point, grad, quant_dtype, quant_min, quant_max)
    if zero_point is not None:
        msg = f"zero_point of shape {zero_point.shape} is not accepted: there is no gradient in the INT domain"
        raise RuntimeError(msg)
    s = per_element("scale", scale, input.shape, block_size)
    low, high = limits(*code_range(quant_dtype, quant_min, quant_max), input.dtype)
    with np.errstate(all="ignore"):
        reciprocal, nothing = np.ones((), s.dtype) / s, np.zeros_like(grad)
        r = np.rint(input * reciprocal)
        q = np.where(r < low, low, np.where(r > high, high, r))
        return nothing * reciprocal, grad * q + -(nothing * input) * (reciprocal * reciprocal), None
