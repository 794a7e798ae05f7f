"""torchao: quantize and dequantize where the zero point is a real (FLOAT) or where there is none (NONE).

Scales and zero points have one entry per block, in any shape of that many.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.reference.behaviour import choice
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.torchao.affine import (
    EMPTY_ZERO_POINT,
    Codes,
    Reals,
    add,
    kept,
    multiply,
    quotient,
    stored,
    subtract,
)
from halfeven.reference.systems.torchao.granularity import per_element, some
from halfeven.reference.systems.torchao.storage import check_codes, check_reals, code_range, dtype_of, is_float8

__all__ = [
    "FLOAT8",
    "MIDDLE",
    "dequantize_affine_float_domain",
    "dequantize_affine_no_zero_point",
    "float_code",
    "float_real",
    "none_code",
    "none_real",
    "quantize_affine_float_domain",
    "quantize_affine_no_zero_point",
]

MIDDLE: Mapping[Any, str] = {
    "grid": "counts from (quant_min + quant_max + 1) / 2",
    "half-codes": "counts from half the number of codes, wherever the grid begins",
}  # fmt: skip
FLOAT8: Mapping[Any, str] = {
    "cast": "casts the quotient to a float8 without rounding it to an integer",
    "rounded": "rounds the code to an integer for a float8 too",
}  # fmt: skip


@dataclass(frozen=True)
class FloatCodes(Codes):
    """What implementations do differently where they make codes in the FLOAT domain."""

    middle: str = choice(MIDDLE)
    empty_zero_point: str = choice(EMPTY_ZERO_POINT)


@dataclass(frozen=True)
class NoneCodes(Codes):
    """What they do differently where they make codes in the NONE domain."""

    float8: str = choice(FLOAT8)
    zero_point: str = choice({
        "unread": "does not read a zero point in the NONE domain",
        "refused": "refuses a zero point in the NONE domain",
    })  # fmt: skip


@dataclass(frozen=True)
class FloatReals(Reals):
    """What they do differently where they make reals in the FLOAT domain."""

    middle: str = choice(MIDDLE)


@dataclass(frozen=True)
class NoneReals(Reals):
    """What they do differently where they make reals in the NONE domain."""

    refusal: str = choice({
        "AssertionError": "refuses a zero point in the NONE domain by an AssertionError",
        "ValueError": "refuses a zero point in the NONE domain by a ValueError, before all else",
    })  # fmt: skip


_SOURCE = "torchao.quantization.quant_primitives, ZeroPointDomain"
_0_18, _0_11 = "torchao 0.18.0, measured on the CPU", "torchao 0.11.0, measured on the CPU"
_NONE_0_18 = NoneCodes(division="reciprocal", nan="least", ends="wrapped", signed="refused", float8="rounded")


def float_code(b: Any, x: Array, s: Array, z: Array, qmin: float, qmax: float, division: str) -> Array:
    """FLOAT: a code as a float, not yet limited: the quotient counts from the real of code 0."""
    if b.compute == "input":
        s, z = s.astype(x.dtype), z.astype(x.dtype)
    # A Python number takes part in float32, whatever the array's dtype.
    steps = (s * np.float32(_middle(b, qmin, qmax))).astype(s.dtype)
    return ROUNDINGS[b.rounding](quotient(division, subtract(x, subtract(z, steps)), s))


def float_real(b: Any, q: Array, s: Array, z: Array | None, qmin: float, qmax: float, dtype: "np.dtype[Any]") -> Array:
    """FLOAT: steps from the middle times the scale, plus the zero point, in the output's dtype."""
    steps = (q.astype(np.float32) - np.float32(_middle(b, qmin, qmax))).astype(dtype)
    product = multiply(steps, s if b.product == "promoted" else s.astype(dtype)).astype(dtype)
    return product if z is None else add(product, z).astype(dtype)


def none_code(b: Any, x: Array, s: Array, dtype: npt.DTypeLike) -> Array:
    """NONE: a code as a float, not yet limited."""
    v = quotient(b.division, x, s if b.compute == "promoted" else s.astype(x.dtype))
    return v if b.float8 == "cast" and is_float8(dtype) else ROUNDINGS[b.rounding](v)


def none_real(b: Any, q: Array, s: Array, dtype: "np.dtype[Any]") -> Array:
    """NONE: code times scale."""
    return multiply(q.astype(dtype), s if b.product == "promoted" else s.astype(dtype)).astype(dtype)


@formula(
    "torchao/quantize_affine_float_domain",
    equation=r"q = \mathrm{clamp}(\lceil (x - (z - s \cdot mid)) / s \rfloor,\ q_{min},\ q_{max})",
    basis=AsComputed(dtype="the promotion of the operands of each operation"),
    source=f"{_SOURCE}.FLOAT; AffineQuantizedTensor, field zero_point_domain",
    behaviour=FloatCodes(),
    versions={
        "0.18": (
            FloatCodes(nan="least", ends="wrapped", signed="refused", empty_zero_point="refused"),
            f"{_0_18}: _quantize_affine_tinygemm",
        )
    },
)
def quantize_affine_float_domain(
    b: FloatCodes,
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    output_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
) -> Array:
    """Integer codes of ``input`` where the zero point is the real of the middle code, (qmin + qmax + 1) / 2.

    Arguments and errors as in ``quantize_affine``; ``zero_point`` is in reals.
    """
    qmin, qmax = code_range(output_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    z = per_element("zero_point", some(b.empty_zero_point, zero_point), input.shape, block_size)
    with np.errstate(all="ignore"):
        return stored(b, float_code(b, input, s, z, qmin, qmax, b.division), output_dtype, qmin, qmax)


@formula(
    "torchao/dequantize_affine_float_domain",
    equation=r"\hat x = (q - mid) * s + z",
    basis=AsComputed(dtype="the output's after each operation"),
    source=f"{_SOURCE}.FLOAT; AffineQuantizedTensor.dequantize",
    behaviour=FloatReals(),
)
def dequantize_affine_float_domain(
    b: FloatReals,
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

    Arguments and errors as in ``dequantize_affine``; ``zero_point`` is in reals, and none is added where it is absent
    (measured).
    """
    check_codes(input, input_dtype, output_dtype)
    qmin, qmax = code_range(input_dtype, quant_min, quant_max)
    s = per_element("scale", scale, input.shape, block_size)
    z = None if zero_point is None else per_element("zero_point", zero_point, input.shape, block_size)
    with np.errstate(all="ignore"):
        return float_real(b, kept(b, input, qmin, qmax), s, z, qmin, qmax, dtype_of(output_dtype))


@formula(
    "torchao/quantize_affine_no_zero_point",
    equation=r"q = \mathrm{clamp}(x / s,\ q_{min},\ q_{max})",
    basis=AsComputed(dtype="the one that the input and the scale promote to"),
    source=f"{_SOURCE}.NONE: scaled and cast, not rounded to an integer",
    behaviour=NoneCodes(),
    versions={
        "0.18": (_NONE_0_18, f"{_0_18}: _quantize_affine_no_zero_point"),
        "0.11": (
            replace(_NONE_0_18, float8="cast", zero_point="refused"),
            f"{_0_11}: quantize_affine, ZeroPointDomain.NONE",
        ),
    },
)
def quantize_affine_no_zero_point(
    b: NoneCodes,
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    output_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
) -> Array:
    """Codes of ``input`` without a zero point; a float8 is cast from the quotient, an integer dtype takes the nearest.

    Arguments and errors as in ``quantize_affine``, with the dtypes float8_e4m3fn, float8_e4m3fnuz, float8_e5m2 and
    float8_e5m2fnuz; ``zero_point`` is not read (measured).
    """
    if b.zero_point == "refused":
        _no_zero_point(zero_point, ValueError)
    qmin, qmax = code_range(output_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    with np.errstate(all="ignore"):
        return stored(b, none_code(b, input, s, output_dtype), output_dtype, qmin, qmax)


@formula(
    "torchao/dequantize_affine_no_zero_point",
    equation=r"\hat x = q * s",
    basis=AsComputed(dtype="the promotion of output and scale, rounded to the output's"),
    source=f"{_SOURCE}.NONE; AffineQuantizedTensor.dequantize",
    behaviour=NoneReals(),
    versions={"0.11": (NoneReals(refusal="ValueError"), f"{_0_11}: dequantize_affine, ZeroPointDomain.NONE")},
)
def dequantize_affine_no_zero_point(
    b: NoneReals,
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

    Arguments and errors as in ``dequantize_affine``.

    Raises:
        AssertionError: also where there is a zero point.
    """
    if b.refusal == "ValueError":
        _no_zero_point(zero_point, ValueError)
    check_codes(input, input_dtype, output_dtype)
    q = kept(b, input, *code_range(input_dtype, quant_min, quant_max))
    s = per_element("scale", scale, input.shape, block_size)
    _no_zero_point(zero_point, AssertionError)
    with np.errstate(all="ignore"):
        return none_real(b, q, s, dtype_of(output_dtype))


def _middle(b: Any, qmin: float, qmax: float) -> float:
    """The code, maybe a half, in the middle of the grid: 8 of 0 to 15, 0 of -128 to 127."""
    return (qmax + qmin + 1) / 2 if b.middle == "grid" else (qmax - qmin + 1) / 2


def _no_zero_point(zero_point: Array | None, error: type[Exception]) -> None:
    if zero_point is not None:
        msg = f"zero_point of shape {zero_point.shape} is not accepted in the NONE domain: give None"
        raise error(msg)
