"""torchao: floatx, finite floats of 2 to 8 bits with any exponent and mantissa width, scaled per row.

A code is sign | exponent | mantissa in the low bits of a uint8; the bias is 2^(ebits - 1) - 1, no code is infinity or
NaN. Real per code: x̂ = decode(q) * scale.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.minifloat import FloatFormat, decode, encode, floatx

__all__ = [
    "FloatxCodes",
    "FloatxNumbers",
    "FloatxQuotients",
    "FloatxReals",
    "FloatxRowScale",
    "FloatxScale",
    "choose_qparams_affine_floatx",
    "dequantize_affine_floatx",
    "f32_to_floatx_unpacked",
    "floatx_unpacked_to_f32",
    "format_of",
    "nan_as_a_normal_number",
    "quantize_affine_floatx",
    "scale_of",
]

_EPS = 1e-12
_DTYPES = {"float32": np.dtype("float32"), "float16": np.dtype("float16"), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
_SUBNORMALS = {
    "kept": "keeps numbers below the smallest normal one",
    "flushed": "takes numbers below the smallest normal one for zero",
}
_ARITHMETIC = {
    "float32": "divides in float32",
    "operands": "divides in the dtype of the operands",
}


@dataclass(frozen=True)
class FloatxCodes(Behaviour):
    """The choices in making codes of numbers."""

    rounding: str = roundings("to a number of the format")
    subnormals: str = choice(_SUBNORMALS)
    zeros: str = choice({
        "signed": "keeps the sign of zero",
        "positive": "drops the sign of zero",
    })  # fmt: skip
    nan: str = choice({
        "refused": "refuses NaN",
        "as-a-number": "rounds the bits of NaN as if it were a normal number",
        "largest": "makes the largest number of NaN",
    })  # fmt: skip


@dataclass(frozen=True)
class FloatxNumbers(Behaviour):
    """The choices in making numbers of codes."""

    subnormals: str = choice(_SUBNORMALS)
    last_exponent: str = choice({
        "numbers": "reads the last exponent as any other",
        "special": "reads the last exponent as infinity and NaN",
    })  # fmt: skip


@dataclass(frozen=True)
class FloatxReals(FloatxNumbers):
    """Also the dtype of their product with the scale."""

    product: str = choice({
        "float32": "computes the product in float32",
        "output": "computes the product in the output dtype",
    })  # fmt: skip


@dataclass(frozen=True)
class FloatxScale(Behaviour):
    """The choices in making the scale of a magnitude."""

    least: str = choice({
        "magnitude": "takes 1e-12 as the least magnitude",
        "scale": "takes 1e-12 as the least scale",
        "none": "leaves a row of zeros the scale zero",
    })  # fmt: skip
    scale_arithmetic: str = choice({
        "float32": "computes the scale in float32",
        "input": "computes the scale in the input's dtype",
    })  # fmt: skip
    scale_division: str = choice({
        "divide": "divides the magnitude by the largest number",
        "reciprocal": "multiplies the magnitude by the rounded reciprocal of the largest number",
    })  # fmt: skip


@dataclass(frozen=True)
class FloatxRowScale(FloatxScale):
    """Also what NaN does."""

    nan_magnitude: str = choice({
        "propagated": "gives a row with NaN the scale NaN",
        "ignored": "leaves NaN out of the magnitude",
    })  # fmt: skip


@dataclass(frozen=True)
class FloatxQuotients(FloatxCodes):
    """Also how numbers are divided by their scale."""

    quotient: str = choice({
        "divide": "divides by the scale",
        "reciprocal": "multiplies by the rounded reciprocal of the scale",
    })  # fmt: skip
    arithmetic: str = choice(_ARITHMETIC)


def format_of(ebits: int, mbits: int) -> FloatFormat:
    """The format of these widths.

    Raises:
        AssertionError: 1 + ebits + mbits exceeds 8.
        ValueError: a width is too small.
    """
    if 1 + ebits + mbits > 8:  # noqa: PLR2004 - bits of a byte
        msg = f"ebits={ebits}, mbits={mbits} is not accepted: 1 + ebits + mbits is at most 8"
        raise AssertionError(msg)
    if ebits < 1 or mbits < 0:
        msg = f"ebits={ebits}, mbits={mbits} is not accepted: give ebits of at least 1, mbits of at least 0"
        raise ValueError(msg)
    return floatx(ebits, mbits)


def _float32(x: Array, name: str) -> Array:
    if x.dtype != np.float32:
        msg = f"{name} of dtype {x.dtype} is not accepted: give float32"
        raise AssertionError(msg)
    return x


@formula(
    "torchao/f32_to_floatx_unpacked",
    equation=r"q = \arg\min_c \bigl| x - v_c \bigr|,\quad \text{ties to the even code},\quad |v_c| \le v_{max}",
    basis=Real(),
    source="torchao.prototype.custom_fp_utils._f32_to_floatx_unpacked; the page's from_hp_to_fpx",
    behaviour=FloatxCodes(),
    versions={"0.18": (FloatxCodes(nan="as-a-number"), "torchao 0.18.0, measured")},
)
@np.errstate(all="ignore")
def f32_to_floatx_unpacked(b: FloatxCodes, x: Array, ebits: int, mbits: int) -> Array:
    """Codes of ``x``: the nearest number, ties to the even code; what lies beyond the largest number becomes it.

    Args:
        x: float32, any shape. A zero keeps its sign, an infinity becomes the largest number.
        ebits: bits of the exponent, at least 1.
        mbits: bits of the mantissa, at least 0.

    Returns:
        uint8, the shape of ``x``.

    Raises:
        AssertionError: ``x`` is not float32, or 1 + ebits + mbits exceeds 8 (measured).
        ValueError: ``ebits`` or ``mbits`` is too small; or ``x`` holds NaN, for which there is no code.
    """
    form, is_nan = format_of(ebits, mbits), np.isnan(_float32(x, "x"))
    numbers = x if b.nan == "refused" else np.where(is_nan, np.inf, x)
    codes = encode(numbers, form, overflow="saturate", rounding=b.rounding)
    sign = codes & (1 << (form.bits - 1))
    if b.subnormals == "flushed":
        codes = np.where(codes ^ sign < 2**mbits, sign, codes)
    if b.zeros == "positive":
        codes = np.where(codes == sign, 0, codes)
    if b.nan == "as-a-number":
        codes = np.where(is_nan, nan_as_a_normal_number(x, form), codes)
    return codes


def nan_as_a_normal_number(x: Array, form: FloatFormat) -> Array:
    """The codes that the bits of float32 numbers leave when they are rounded as those of a normal number are."""
    shift = 23 - form.mantissa_bits
    bits = x.view(np.uint32).astype(np.int64)
    magnitude = bits & 0x7FFFFFFF
    rounded = (magnitude + (1 << (shift - 1)) - 1 + ((magnitude >> shift) & 1)) >> shift
    rebiased = (rounded + ((form.bias - 127) << form.mantissa_bits)) & 0xFF
    return (rebiased | (bits >> 31) << (form.bits - 1)).astype(np.uint8)


@formula(
    "torchao/floatx_unpacked_to_f32",
    equation=r"x = (-1)^S 2^{E - b} (1 + M / 2^m)\ \text{if } E > 0,\quad (-1)^S 2^{1 - b} M / 2^m\ \text{if } E = 0",
    basis=Real(),
    source="torchao.prototype.custom_fp_utils._floatx_unpacked_to_f32",
    behaviour=FloatxNumbers(),
)
def floatx_unpacked_to_f32(b: FloatxNumbers, x: Array, ebits: int, mbits: int) -> Array:
    """Numbers of the codes ``x`` (uint8, any shape), as float32, exact; every code is a number.

    The widths as in ``f32_to_floatx_unpacked``.

    Raises:
        AssertionError: ``x`` is not uint8, or 1 + ebits + mbits exceeds 8 (measured).
        ValueError: ``ebits`` or ``mbits`` is too small, or a code has more bits than the format.
    """
    if x.dtype != np.uint8:
        msg = f"x of dtype {x.dtype} is not accepted: give uint8"
        raise AssertionError(msg)
    form = format_of(ebits, mbits)
    numbers = decode(x, form, "float32")
    exponent = x >> mbits & (2**ebits - 1)
    if b.subnormals == "flushed":
        numbers = np.where(exponent == 0, np.copysign(np.float32(0), numbers), numbers)
    if b.last_exponent == "special":
        beyond = np.where(x & (2**mbits - 1), np.float32(np.nan), np.copysign(np.float32(np.inf), numbers))
        numbers = np.where(exponent == 2**ebits - 1, beyond, numbers)
    return numbers


@formula(
    "torchao/choose_qparams_affine_floatx",
    equation=r"s_r = \max(\max_c |x_{rc}|,\ 10^{-12}) / v_{max}",
    basis=AsComputed(dtype="float32, then the input's"),
    source="torchao.quantization.quant_primitives.choose_qparams_affine_floatx; the page's from_hp_to_fpx",
    behaviour=FloatxRowScale(),
)
@np.errstate(all="ignore")
def choose_qparams_affine_floatx(b: FloatxRowScale, tensor: Array, ebits: int, mbits: int) -> Array:
    """One scale per row (along dimension 1), in the dtype of ``tensor``; NaN where the row has one.

    In float16 the scale of a row below 6e-8 times the largest number is zero: the bound of 1e-12 holds in float32 only.

    Args:
        tensor: (rows, columns); float32, float16 or bfloat16.
        ebits: bits of the exponent, at least 1.
        mbits: bits of the mantissa, at least 0.

    Raises:
        IndexError: ``tensor`` has no dimension 1, or no columns (measured).
        AssertionError, ValueError: the widths, as in ``f32_to_floatx_unpacked``.
    """
    if tensor.ndim < 2 or tensor.shape[1] == 0:  # noqa: PLR2004 - rows and columns
        msg = f"tensor of shape {tensor.shape} is not accepted: give rows of at least one column"
        raise IndexError(msg)
    largest = np.max if b.nan_magnitude == "propagated" else np.fmax.reduce
    return scale_of(b, np.asarray(largest(np.abs(tensor), axis=1), tensor.dtype), format_of(ebits, mbits))


def scale_of(b: FloatxScale, amax: Array, form: FloatFormat) -> Array:
    """The scale of each magnitude, in the dtype of ``amax``."""
    wide = np.dtype(np.float32) if b.scale_arithmetic == "float32" else amax.dtype
    top, least = np.asarray(form.max, wide), np.asarray(_EPS, wide)
    magnitude = np.maximum(amax, least) if b.least == "magnitude" else amax
    scale = magnitude / top if b.scale_division == "divide" else magnitude * (np.ones((), wide) / top)
    scale = np.maximum(scale, least) if b.least == "scale" else scale
    return np.asarray(scale).astype(amax.dtype)


@formula(
    "torchao/quantize_affine_floatx",
    equation=r"q = \mathrm{encode}(x / s)",
    basis=AsComputed(dtype="float32"),
    source="torchao.quantization.quant_primitives.quantize_affine_floatx; the page's from_hp_to_fpx",
    behaviour=FloatxQuotients(),
    versions={
        "0.18": (
            FloatxQuotients(nan="as-a-number"),
            "torchao 0.18.0, measured on x86-64, where 0 / 0 is a NaN with the sign bit set",
        ),
    },
)
@np.errstate(all="ignore")
def quantize_affine_floatx(b: FloatxQuotients, tensor: Array, scale: Array, ebits: int, mbits: int) -> Array:
    """Codes of ``tensor`` divided by the scale of its row, uint8.

    Args:
        tensor: (rows, columns); float32, float16 or bfloat16.
        scale: real per code, one entry per row, or one; taken to float32. A zero makes zeros NaN.
        ebits: bits of the exponent, at least 1.
        mbits: bits of the mantissa, at least 0.

    Raises:
        RuntimeError: ``scale`` has another number of entries.
        AssertionError, ValueError: as in ``f32_to_floatx_unpacked``; a NaN has no code.
    """
    if scale.size not in {1, tensor.shape[0]}:
        msg = f"scale of shape {scale.shape} is not accepted: a tensor of shape {tensor.shape} needs one per row"
        raise RuntimeError(msg)
    wide = np.dtype(np.float32) if b.arithmetic == "float32" else np.promote_types(tensor.dtype, scale.dtype)
    x, s = tensor.astype(wide), scale.reshape(-1, 1)
    quotient = x / s if b.quotient == "divide" else x * (np.ones((), wide) / s)
    return f32_to_floatx_unpacked(b, np.asarray(quotient).astype(np.float32), ebits, mbits)


@formula(
    "torchao/dequantize_affine_floatx",
    equation=r"\hat x = \mathrm{decode}(q) * s",
    basis=AsComputed(dtype="float32, then the output's"),
    source="torchao.quantization.quant_primitives.dequantize_affine_floatx; the page's dequantize",
    behaviour=FloatxReals(),
)
@np.errstate(all="ignore")
def dequantize_affine_floatx(
    b: FloatxReals, tensor: Array, scale: Array, ebits: int, mbits: int, output_dtype: str = "float32"
) -> Array:
    """Reals of the codes ``tensor`` (uint8; rows, columns) as ``output_dtype``: float32, float16 or bfloat16.

    Args:
        tensor: codes as ``quantize_affine_floatx`` returns them.
        scale: real per code, one entry per row, or one; taken to float32.
        ebits: bits of the exponent, at least 1.
        mbits: bits of the mantissa, at least 0.
        output_dtype: what the float32 product is rounded to.

    Raises:
        RuntimeError: ``scale`` has another number of entries.
        AssertionError, ValueError: as in ``floatx_unpacked_to_f32``.
    """
    numbers = floatx_unpacked_to_f32(b, tensor, ebits, mbits)
    if scale.size not in {1, tensor.shape[0]}:
        msg = f"scale of shape {scale.shape} is not accepted: codes of shape {tensor.shape} need one per row"
        raise RuntimeError(msg)
    output = _DTYPES[output_dtype]
    wide = np.dtype(np.float32) if b.product == "float32" else output
    return np.asarray(numbers.astype(wide) * scale.reshape(-1, 1).astype(wide)).astype(output)
