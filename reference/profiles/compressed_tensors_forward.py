"""compressed-tensors: the forward pass as documented, with float codes, a global scale and the dtype of the result."""

from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_FORMATS, cast
from halfeven.reference.profiles.compressed_tensors import calculate_range, cast_to_fp4
from halfeven.reference.profiles.profile import Array

__all__ = ["dequantize", "dequantize_0_20", "fake_quantize", "quantize"]

_FORWARD = "compressed_tensors.quantization.lifecycle.forward"
_BASIS = AsComputed(dtype="that to which input, scale and global scale promote")


def _effective(scale: Array, global_scale: Array | None) -> Array:
    with np.errstate(all="ignore"):
        effective: Array = scale if global_scale is None else scale / global_scale
    return effective


@formula(
    "compressed_tensors.forward.quantize",
    equation=r"q = \mathrm{round}(\mathrm{clamp}(x / (s / g) + z,\ q_{min},\ q_{max}))",
    basis=_BASIS,
    source=f"{_FORWARD}.quantize",
)
def quantize(
    x: Array,
    scale: Array,
    zero_point: Array | None = None,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002 - the document's own word
    dtype: str | None = None,
    global_scale: Array | None = None,
) -> Array:
    """Codes of ``x``: integers, or numbers of E4M3, E2M3 or E2M1, which is what round means for floats.

    Args:
        x: float32 or bfloat16, of at least one dimension.
        scale: real per code, of the dtype and rank of ``x``, broadcastable to it.
        zero_point: in codes, int8, likewise; without one nothing is added, so that a zero keeps its sign.
        num_bits: 8, 6 or 4, or for integers any width.
        type: int or float.
        dtype: what the codes are cast to: int8, or float8_e4m3fn; without one they are floats as computed.
        global_scale: float32 of shape (1,); divides the scale.

    Raises:
        ValueError: ``type`` is unknown.
        NotImplementedError: a float of a width that has no format.
    """
    q_min, q_max = calculate_range(type, num_bits)
    with np.errstate(all="ignore"):
        scaled = x / _effective(scale, global_scale)
        if zero_point is not None:
            scaled = scaled + zero_point.astype(x.dtype).astype(scaled.dtype)
        t = scaled.dtype
        limited = np.clip(scaled, q_min.astype(t), q_max.astype(t)).astype(t)
        match (type, num_bits):
            case ("float", 8):
                rounded = limited.astype(ml_dtypes.float8_e4m3fn).astype(t)
            case ("float", 6):
                rounded = _cast_to_fp6(limited)
            case ("float", _):
                rounded = cast_to_fp4(limited)
            case _:
                rounded = np.rint(limited)
    return rounded if dtype is None else _cast(rounded, dtype)


def _cast_to_fp6(x: Array) -> Array:
    """The nearest E2M3 value, ties to the even code; a zero keeps its sign (measured), NaN stays."""
    known = np.where(np.isnan(x), np.zeros((), x.dtype), x)
    return np.where(np.isnan(x), x, cast(known, FLOAT_FORMATS["float6_e2m3fn"], overflow="saturate")).astype(x.dtype)


def _cast(values: Array, dtype: str) -> Array:
    to: Any = getattr(ml_dtypes, dtype, dtype)
    return values.astype(to)


@formula(
    "compressed_tensors.forward.fake_quantize",
    equation=r"\hat x = (q - z) * (s / g)",
    basis=_BASIS,
    source=f"{_FORWARD}.fake_quantize",
)
def fake_quantize(
    x: Array,
    scale: Array,
    zero_point: Array | None = None,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002
    global_scale: Array | None = None,
) -> Array:
    """``x`` on the grid: ``quantize``, then ``dequantize`` by the same scale, in the dtype of scale and global scale.

    Arguments and errors as in ``quantize``.
    """
    quantized = quantize(x, scale, zero_point, num_bits, type, global_scale=global_scale)
    return dequantize_0_20(quantized, scale, zero_point, global_scale=global_scale)


@formula(
    "compressed_tensors.forward.dequantize",
    equation=r"\hat x = (q - z) * (s / g)",
    basis=_BASIS,
    source=f"{_FORWARD}.dequantize",
)
def dequantize(
    x_q: Array,
    scale: Array,
    zero_point: Array | None = None,
    dtype: str | None = None,
    global_scale: Array | None = None,
) -> Array:
    """Reals of codes, cast to ``dtype`` where one is given; else of the dtype of scale and global scale.

    Args:
        x_q: codes, int8 or floats, of at least one dimension.
        scale: float32 or bfloat16, of the rank of the codes, broadcastable to them.
        zero_point: in codes, int8, likewise.
        dtype: float32, float16 or bfloat16.
        global_scale: float32 of shape (1,); divides the scale.
    """
    reals = dequantize_0_20(x_q, scale, zero_point, global_scale=global_scale)
    return reals if dtype is None else _cast(reals, dtype)


@formula(
    "compressed_tensors.forward.dequantize@0.20",
    equation=r"\hat x = (q - z) * (s / g)",
    basis=_BASIS,
    source="compressed-tensors 0.20.0, measured: per tensor, channel and token",
)
def dequantize_0_20(
    x_q: Array,
    scale: Array,
    zero_point: Array | None = None,
    dtype: str | None = None,
    global_scale: Array | None = None,
) -> Array:
    """``dequantize``, but the result has the scale's dtype whatever ``dtype`` says, unless the strategy is group."""
    del dtype
    s = _effective(scale, global_scale)
    with np.errstate(all="ignore"):
        dequant_value = x_q.astype(s.dtype)
        if zero_point is not None:
            dequant_value = dequant_value - zero_point.astype(s.dtype)
        reals: Array = dequant_value * s
    return reals
