"""torchao: floatx, finite floats of 2 to 8 bits with any exponent and mantissa width, scaled per row.

A code is sign | exponent | mantissa in the low bits of a uint8; the bias is 2^(ebits - 1) - 1, no code is infinity or
NaN. Real per code: x̂ = decode(q) * scale.
"""

from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.minifloat import FloatFormat, decode, encode, floatx
from halfeven.reference.profiles.profile import Array

__all__ = [
    "choose_qparams_affine_floatx",
    "dequantize_affine_floatx",
    "f32_to_floatx_unpacked",
    "f32_to_floatx_unpacked_0_18",
    "floatx_unpacked_to_f32",
    "from_hp_to_fpx",
    "quantize_affine_floatx",
    "quantize_affine_floatx_0_18",
]

_EPS = np.float32(1e-12)
_DTYPES = {"float32": np.dtype("float32"), "float16": np.dtype("float16"), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def _format(ebits: int, mbits: int) -> FloatFormat:
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
    "torchao.f32_to_floatx_unpacked",
    equation=r"q = \arg\min_c \bigl| x - v_c \bigr|,\quad \text{ties to the even code},\quad |v_c| \le v_{max}",
    basis=Real(),
    source="torchao.prototype.custom_fp_utils._f32_to_floatx_unpacked; the page's from_hp_to_fpx",
)
def f32_to_floatx_unpacked(x: Array, ebits: int, mbits: int) -> Array:
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
    return encode(_float32(x, "x"), _format(ebits, mbits), overflow="saturate")


@formula(
    "torchao.f32_to_floatx_unpacked@0.18",
    equation=r"q(\mathrm{NaN}) = \text{bits that the rounding of a normal number leaves}",
    basis=AsComputed(dtype="int32"),
    source="torchao 0.18.0, measured",
)
@np.errstate(all="ignore")
def f32_to_floatx_unpacked_0_18(x: Array, ebits: int, mbits: int) -> Array:
    """As documented, but NaN is rounded as if it were a normal number: the code depends on its payload."""
    form, is_nan = _format(ebits, mbits), np.isnan(_float32(x, "x"))
    numbers = encode(np.where(is_nan, np.float32(0), x), form, overflow="saturate")
    shift = 23 - mbits
    bits = x.view(np.uint32).astype(np.int64)
    magnitude = bits & 0x7FFFFFFF
    rounded = (magnitude + (1 << (shift - 1)) - 1 + ((magnitude >> shift) & 1)) >> shift
    rebiased = (rounded + ((form.bias - 127) << mbits)) & 0xFF
    codes: Array = np.where(is_nan, rebiased | (bits >> 31) << (ebits + mbits), numbers).astype(np.uint8)
    return codes


@formula(
    "torchao.floatx_unpacked_to_f32",
    equation=r"x = (-1)^S 2^{E - b} (1 + M / 2^m)\ \text{if } E > 0,\quad (-1)^S 2^{1 - b} M / 2^m\ \text{if } E = 0",
    basis=Real(),
    source="torchao.prototype.custom_fp_utils._floatx_unpacked_to_f32",
)
def floatx_unpacked_to_f32(x: Array, ebits: int, mbits: int) -> Array:
    """Numbers of the codes ``x`` (uint8, any shape), as float32, exact; every code is a number.

    The widths as in ``f32_to_floatx_unpacked``.

    Raises:
        AssertionError: ``x`` is not uint8, or 1 + ebits + mbits exceeds 8 (measured).
        ValueError: ``ebits`` or ``mbits`` is too small, or a code has more bits than the format.
    """
    if x.dtype != np.uint8:
        msg = f"x of dtype {x.dtype} is not accepted: give uint8"
        raise AssertionError(msg)
    return decode(x, _format(ebits, mbits), "float32")


@formula(
    "torchao.choose_qparams_affine_floatx",
    equation=r"s_r = \max(\max_c |x_{rc}|,\ 10^{-12}) / v_{max}",
    basis=AsComputed(dtype="float32, then the input's"),
    source="torchao.quantization.quant_primitives.choose_qparams_affine_floatx; the page's from_hp_to_fpx",
)
@np.errstate(all="ignore")
def choose_qparams_affine_floatx(tensor: Array, ebits: int, mbits: int) -> Array:
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
    max_normal = np.float32(_format(ebits, mbits).max)
    amax = np.abs(tensor.astype(np.float32)).max(axis=1)
    scale: Array = (np.maximum(amax, _EPS) / max_normal).astype(tensor.dtype)
    return scale


@formula(
    "torchao.quantize_affine_floatx",
    equation=r"q = \mathrm{encode}(x / s)",
    basis=AsComputed(dtype="float32"),
    source="torchao.quantization.quant_primitives.quantize_affine_floatx; the page's from_hp_to_fpx",
)
@np.errstate(all="ignore")
def quantize_affine_floatx(tensor: Array, scale: Array, ebits: int, mbits: int) -> Array:
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
    return f32_to_floatx_unpacked(_quotient(tensor, scale), ebits, mbits)


@formula(
    "torchao.quantize_affine_floatx@0.18",
    equation=r"q(\mathrm{NaN}) = \text{bits that the rounding of a normal number leaves}",
    basis=AsComputed(dtype="float32"),
    source="torchao 0.18.0, measured on x86-64, where 0 / 0 is a NaN with the sign bit set",
)
@np.errstate(all="ignore")
def quantize_affine_floatx_0_18(tensor: Array, scale: Array, ebits: int, mbits: int) -> Array:
    """As documented, but a NaN gets the code that ``f32_to_floatx_unpacked@0.18`` gives it."""
    return f32_to_floatx_unpacked_0_18(_quotient(tensor, scale), ebits, mbits)


def _quotient(tensor: Array, scale: Array) -> Array:
    if scale.size not in {1, tensor.shape[0]}:
        msg = f"scale of shape {scale.shape} is not accepted: a tensor of shape {tensor.shape} needs one per row"
        raise RuntimeError(msg)
    quotient: Array = tensor.astype(np.float32) / scale.reshape(-1, 1).astype(np.float32)
    return quotient


@formula(
    "torchao.dequantize_affine_floatx",
    equation=r"\hat x = \mathrm{decode}(q) * s",
    basis=AsComputed(dtype="float32, then the output's"),
    source="torchao.quantization.quant_primitives.dequantize_affine_floatx; the page's dequantize",
)
@np.errstate(all="ignore")
def dequantize_affine_floatx(
    tensor: Array, scale: Array, ebits: int, mbits: int, output_dtype: str = "float32"
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
    numbers = floatx_unpacked_to_f32(tensor, ebits, mbits)
    if scale.size not in {1, tensor.shape[0]}:
        msg = f"scale of shape {scale.shape} is not accepted: codes of shape {tensor.shape} need one per row"
        raise RuntimeError(msg)
    reals: Array = (numbers * scale.reshape(-1, 1).astype(np.float32)).astype(_DTYPES[output_dtype])
    return reals


@formula(
    "torchao.from_hp_to_fpx",
    equation=r"s_r = \max(\max_c |x_{rc}|,\ 10^{-12}) / v_{max},\quad q = \mathrm{encode}(x / s)",
    basis=AsComputed(dtype="float32; the scale as in the input's"),
    source="AffineQuantizedTensor: from_hp_to_fpx",
)
@np.errstate(all="ignore")
def from_hp_to_fpx(input_float: Array, ebits: int, mbits: int) -> dict[str, Any]:
    """The codes and the row scales of ``input_float``; the layout of the document gives the two widths.

    Args:
        input_float: (rows, columns), both multiples of 64; float32, float16 or bfloat16.
        ebits: bits of the exponent, at least 1.
        mbits: bits of the mantissa; a code has at most 7 bits.

    Returns:
        ``codes``: uint8, before they are packed; ``scale``: one per row, in the dtype of the input.

    Raises:
        AssertionError: the rows or columns are no multiples of 64, or there are more dimensions.
        IndexError: there are fewer (measured on 0.11 and 0.15).
        ValueError: a code of more than 7 bits, which torchao does not pack; or as in ``quantize_affine_floatx``.
    """
    if input_float.ndim < 2:  # noqa: PLR2004 - rows and columns
        msg = f"input_float of shape {input_float.shape} is not accepted: give rows and columns"
        raise IndexError(msg)
    if input_float.ndim != 2 or any(n % 64 for n in input_float.shape):  # noqa: PLR2004 - rows and columns
        msg = f"input_float of shape {input_float.shape} is not accepted: give rows and columns, multiples of 64"
        raise AssertionError(msg)
    if 1 + ebits + mbits > 7:  # noqa: PLR2004 - float7 is the largest that the document names
        msg = f"ebits={ebits}, mbits={mbits} is not accepted: 1 + ebits + mbits is at most 7"
        raise ValueError(msg)
    scale = choose_qparams_affine_floatx(input_float, ebits, mbits)
    return {"codes": quantize_affine_floatx(input_float, scale, ebits, mbits), "scale": scale}
