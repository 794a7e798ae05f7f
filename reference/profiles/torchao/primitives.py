"""torchao: ``quantize_affine`` and ``dequantize_affine`` as documented, in the INT domain of the zero point.

Scales and zero points have one entry per block, in any shape of that many.
"""

import numpy as np
import numpy.typing as npt

from halfeven.reference.blocks import BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.torchao.equations import clamp, int_code, int_code_by_reciprocal, int_real
from halfeven.reference.profiles.torchao.granularity import per_element, some
from halfeven.reference.profiles.torchao.storage import (
    check_codes,
    check_reals,
    code_range,
    dtype_of,
    integers,
    limits,
    machine_codes,
    machine_integers,
)

__all__ = ["dequantize_affine", "dequantize_affine_0_11", "quantize_affine", "quantize_affine_0_18"]

_SOURCE = "torchao.quantization.quant_primitives"
_EQUATION = r"q = \mathrm{clamp}(\lceil x / s \rfloor + z,\ q_{min},\ q_{max})"


@formula(
    "torchao.quant_primitives.quantize_affine",
    equation=_EQUATION,
    basis=AsComputed(dtype="the one that the input and the scale promote to"),
    source=f"{_SOURCE}.quantize_affine; AffineQuantizedTensor.from_hp_to_intx_static, ZeroPointDomain.INT",
)
def quantize_affine(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    output_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
) -> Array:
    """Integer codes of ``input``; those of fewer than 8 bits lie in 8.

    Args:
        input: float32, float16 or bfloat16 of any shape.
        block_size: elements per block along each dimension; the whole shape is per tensor.
        scale: real per code.
        zero_point: the code of 0; a float is added as it is, and the sum cut to an integer (measured).
        output_dtype: int1 to int8, uint1 to uint8, int16 or int32, whose range is the grid where none is given.
        quant_min: the least code.
        quant_max: the greatest code.

    Raises:
        ValueError: there are no codes of ``output_dtype``, or a code is NaN, for which no document has an integer.
        AssertionError: the grid leaves that dtype's range, ``input`` has another dtype, or the blocks do not fit.
        RuntimeError: a parameter has not one entry per block, or float16 does not hold the grid's ends (measured).
        TypeError: there is no zero point.
    """
    qmin, qmax = code_range(output_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    z = per_element("zero_point", zero_point, input.shape, block_size)
    with np.errstate(all="ignore"):
        q = int_code(input, s, z)
        return integers(clamp(q, *limits(qmin, qmax, q.dtype)), output_dtype, qmin, qmax)


@formula(
    "torchao.quant_primitives.dequantize_affine",
    equation=r"\hat x = (q - z) * s",
    basis=AsComputed(dtype="the output's for the difference, its promotion with the scale's for the product"),
    source=f"{_SOURCE}.dequantize_affine; AffineQuantizedTensor.dequantize, ZeroPointDomain.INT",
)
def dequantize_affine(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    input_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
    *,
    output_dtype: npt.DTypeLike = "float32",
) -> Array:
    """Reals of integer codes; those of 32 bits become bfloat16 by way of float32, which rounds twice (measured).

    Args:
        input: codes, of ``input_dtype``; of any integer dtype where that is unsigned and below 8 bits (measured).
        block_size: elements per block along each dimension.
        scale: real per code.
        zero_point: the code of 0; absent, none is subtracted (measured).
        input_dtype: the dtype of the codes.
        quant_min: the least code; checked, and codes beyond it keep their value (measured).
        quant_max: the greatest code, likewise.
        output_dtype: float32, float16 or bfloat16.

    Raises:
        AssertionError: the codes have another dtype, the grid leaves it, ``output_dtype`` is another, or the blocks
            do not fit.
        ValueError: there are no codes of ``input_dtype``.
        RuntimeError: a parameter has not one entry per block.
    """
    check_codes(input, input_dtype, output_dtype)
    code_range(input_dtype, quant_min, quant_max)
    s = per_element("scale", scale, input.shape, block_size)
    z = None if zero_point is None else per_element("zero_point", zero_point, input.shape, block_size)
    with np.errstate(all="ignore"):
        return int_real(input, s, z, dtype_of(output_dtype))


@formula(
    "torchao.quant_primitives.quantize_affine@0.18",
    equation=r"q = \mathrm{clamp}(\lceil x \cdot s^{-1} \rfloor + z,\ q_{min},\ q_{max})",
    basis=AsComputed(dtype="the one that the input and the scale promote to; the reciprocal the scale's own"),
    source="torchao 0.18.0, measured on the CPU",
)
def quantize_affine_0_18(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    output_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
) -> Array:
    """As documented, but by the reciprocal of the scale, and with the integers that an x86 processor makes.

    NaN becomes 0 in 8 and 16 bits and the least integer in 32, and so does an end of the grid that the arithmetic
    rounds past the integer type: 2^31 - 1 in float32, 32767 in the 16-bit floats.

    Raises:
        NotImplementedError: ``output_dtype`` is signed and below 8 bits.
        ValueError, AssertionError, RuntimeError: as documented.
        TypeError: there is no zero point, or one without entries.
    """
    qmin, qmax = code_range(output_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    z = per_element("zero_point", some(zero_point), input.shape, block_size)
    with np.errstate(all="ignore"):
        q = int_code_by_reciprocal(input, s, z)
        return machine_codes(clamp(q, *limits(qmin, qmax, q.dtype)), output_dtype)


@formula(
    "torchao.quant_primitives.dequantize_affine@0.11",
    equation=r"\hat x = (q - z) * s",
    basis=AsComputed(dtype="int32 for the difference, the promotion of output and scale for the product"),
    source="torchao 0.11.0, measured; torchao.quantization.pt2e of 0.18.0 still computes so",
)
def dequantize_affine_0_11(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    input_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
    *,
    output_dtype: npt.DTypeLike = "float32",
) -> Array:
    """As documented, but the zero point is cut to int32 and subtracted there, where the difference wraps."""
    check_codes(input, input_dtype, output_dtype)
    code_range(input_dtype, quant_min, quant_max)
    s = per_element("scale", scale, input.shape, block_size)
    steps = machine_integers(input, "int32")
    with np.errstate(all="ignore"):
        if zero_point is not None:
            steps = steps - machine_integers(per_element("zero_point", zero_point, input.shape, block_size), "int32")
        return int_real(steps, s, None, dtype_of(output_dtype))
