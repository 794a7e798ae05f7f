"""torchao: quantize and dequantize where the zero point is a real (FLOAT) or where there is none (NONE).

Scales and zero points have one entry per block, in any shape of that many.
"""

import numpy as np
import numpy.typing as npt

from halfeven.reference.blocks import BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.torchao.equations import (
    clamp,
    float_code,
    float_real,
    middle,
    none_code,
    none_code_by_reciprocal,
    none_product,
    none_real,
)
from halfeven.reference.profiles.torchao.granularity import per_element
from halfeven.reference.profiles.torchao.storage import (
    check_codes,
    check_reals,
    code_range,
    dtype_of,
    integers,
    is_float8,
    limits,
    machine_codes,
)

__all__ = [
    "dequantize_affine_float_domain",
    "dequantize_affine_no_zero_point",
    "dequantize_affine_no_zero_point_0_11",
    "quantize_affine_float_domain",
    "quantize_affine_float_domain_0_18",
    "quantize_affine_no_zero_point",
    "quantize_affine_no_zero_point_0_11",
    "quantize_affine_no_zero_point_0_18",
]

_SOURCE = "torchao.quantization.quant_primitives, ZeroPointDomain"
_FLOAT = r"q = \mathrm{clamp}(\lceil (x - (z - s \cdot mid)) / s \rfloor,\ q_{min},\ q_{max})"


@formula(
    "torchao.quantize_affine_float_domain",
    equation=_FLOAT,
    basis=AsComputed(dtype="the promotion of the operands of each operation"),
    source=f"{_SOURCE}.FLOAT; AffineQuantizedTensor, field zero_point_domain",
)
def quantize_affine_float_domain(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    output_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
) -> Array:
    """Integer codes of ``input`` where the zero point is the real of the middle code, (qmin + qmax + 1) / 2.

    Arguments and errors as in ``torchao.quant_primitives.quantize_affine``; ``zero_point`` is in reals.
    """
    qmin, qmax = code_range(output_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    z = per_element("zero_point", zero_point, input.shape, block_size)
    with np.errstate(all="ignore"):
        q = float_code(input, s, z, middle(qmin, qmax))
        return integers(clamp(q, *limits(qmin, qmax, q.dtype)), output_dtype, qmin, qmax)


@formula(
    "torchao.dequantize_affine_float_domain",
    equation=r"\hat x = (q - mid) * s + z",
    basis=AsComputed(dtype="the output's after each operation"),
    source=f"{_SOURCE}.FLOAT; AffineQuantizedTensor.dequantize",
)
def dequantize_affine_float_domain(
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
    """Reals of codes that count from the middle one; the grid, by default that of ``input_dtype``, says which it is.

    Arguments and errors as in ``torchao.quant_primitives.dequantize_affine``; ``zero_point`` is in reals, and none
    is added where it is absent (measured).
    """
    check_codes(input, input_dtype, output_dtype)
    qmin, qmax = code_range(input_dtype, quant_min, quant_max)
    s = per_element("scale", scale, input.shape, block_size)
    z = None if zero_point is None else per_element("zero_point", zero_point, input.shape, block_size)
    with np.errstate(all="ignore"):
        return float_real(input, s, z, middle(qmin, qmax), dtype_of(output_dtype))


@formula(
    "torchao.quantize_affine_no_zero_point",
    equation=r"q = \mathrm{clamp}(x / s,\ q_{min},\ q_{max})",
    basis=AsComputed(dtype="the one that the input and the scale promote to"),
    source=f"{_SOURCE}.NONE: scaled and cast, not rounded to an integer",
)
def quantize_affine_no_zero_point(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,  # noqa: ARG001 - in the signature only
    output_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
) -> Array:
    """Codes of ``input`` without a zero point; a float8 is cast from the quotient, an integer dtype takes the nearest.

    Arguments and errors as in ``torchao.quant_primitives.quantize_affine``, with the dtypes float8_e4m3fn,
    float8_e4m3fnuz, float8_e5m2 and float8_e5m2fnuz; ``zero_point`` is not read (measured).
    """
    qmin, qmax = code_range(output_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    with np.errstate(all="ignore"):
        q = none_code(input, s)
        if is_float8(output_dtype):
            return clamp(q, *limits(qmin, qmax, q.dtype)).astype(dtype_of(output_dtype))
        return integers(clamp(np.rint(q), *limits(qmin, qmax, q.dtype)), output_dtype, qmin, qmax)


@formula(
    "torchao.dequantize_affine_no_zero_point",
    equation=r"\hat x = q * s",
    basis=AsComputed(dtype="the promotion of output and scale, rounded to the output's"),
    source=f"{_SOURCE}.NONE; AffineQuantizedTensor.dequantize",
)
def dequantize_affine_no_zero_point(
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
    """Reals of integer or float8 codes without a zero point.

    Arguments and errors as in ``torchao.quant_primitives.dequantize_affine``.

    Raises:
        AssertionError: also where there is a zero point.
    """
    check_codes(input, input_dtype, output_dtype)
    code_range(input_dtype, quant_min, quant_max)
    s = per_element("scale", scale, input.shape, block_size)
    if zero_point is not None:
        msg = f"zero_point of shape {zero_point.shape} is not accepted in the NONE domain: give None"
        raise AssertionError(msg)
    with np.errstate(all="ignore"):
        return none_real(input, s, dtype_of(output_dtype))


@formula(
    "torchao.quantize_affine_float_domain@0.18",
    equation=_FLOAT,
    basis=AsComputed(dtype="the promotion of the operands of each operation"),
    source="torchao 0.18.0, measured on the CPU: _quantize_affine_tinygemm",
)
def quantize_affine_float_domain_0_18(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    output_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
) -> Array:
    """As documented, but for the integers that an x86 processor makes: as ``quantize_affine@0.18`` says."""
    qmin, qmax = code_range(output_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    z = per_element("zero_point", zero_point, input.shape, block_size)
    with np.errstate(all="ignore"):
        q = float_code(input, s, z, middle(qmin, qmax))
        return machine_codes(clamp(q, *limits(qmin, qmax, q.dtype)), output_dtype)


@formula(
    "torchao.quantize_affine_no_zero_point@0.18",
    equation=r"q = \mathrm{clamp}(\lceil x \cdot s^{-1} \rfloor,\ q_{min},\ q_{max})",
    basis=AsComputed(dtype="the one that the input and the scale promote to; the reciprocal the scale's own"),
    source="torchao 0.18.0, measured on the CPU: _quantize_affine_no_zero_point",
)
def quantize_affine_no_zero_point_0_18(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,  # noqa: ARG001 - as above
    output_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
) -> Array:
    """The code is rounded to an integer for a float8 too; the reciprocal and integers as ``quantize_affine@0.18``."""
    qmin, qmax = code_range(output_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    with np.errstate(all="ignore"):
        q = none_code_by_reciprocal(input, s)
        return machine_codes(clamp(q, *limits(qmin, qmax, q.dtype)), output_dtype)


@formula(
    "torchao.quantize_affine_no_zero_point@0.11",
    equation=r"q = \mathrm{clamp}(x \cdot s^{-1},\ q_{min},\ q_{max})",
    basis=AsComputed(dtype="the one that the input and the scale promote to; the reciprocal the scale's own"),
    source="torchao 0.11.0, measured on the CPU: quantize_affine, ZeroPointDomain.NONE",
)
def quantize_affine_no_zero_point_0_11(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    output_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
) -> Array:
    """As 0.18, but a float8 is cast from the product itself, as documented.

    Raises:
        ValueError: also where there is a zero point.
    """
    _check_no_zero_point(zero_point)
    if not is_float8(output_dtype):
        return quantize_affine_no_zero_point_0_18(
            input, block_size, scale, zero_point, output_dtype, quant_min, quant_max
        )
    qmin, qmax = code_range(output_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    with np.errstate(all="ignore"):
        q = none_product(input, s)
        return machine_codes(clamp(q, *limits(qmin, qmax, q.dtype)), output_dtype)


@formula(
    "torchao.dequantize_affine_no_zero_point@0.11",
    equation=r"\hat x = q * s",
    basis=AsComputed(dtype="the promotion of output and scale, rounded to the output's"),
    source="torchao 0.11.0, measured: dequantize_affine, ZeroPointDomain.NONE",
)
def dequantize_affine_no_zero_point_0_11(
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
    """As documented, but a zero point is refused with a ValueError, and before all else."""
    _check_no_zero_point(zero_point)
    return dequantize_affine_no_zero_point(
        input, block_size, scale, zero_point, input_dtype, quant_min, quant_max, output_dtype=output_dtype
    )


def _check_no_zero_point(zero_point: Array | None) -> None:
    if zero_point is None:
        return
    msg = f"zero_point of shape {zero_point.shape} is not accepted in the NONE domain: give None"
    raise ValueError(msg)
