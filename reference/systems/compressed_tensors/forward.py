"""compressed-tensors: the forward pass, with integer and float codes, a global scale and the dtype of the result.

The scale is real per code: x̂ = (q - zero_point) * scale.
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.affine import spread
from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.minifloat import FLOAT_FORMATS, cast
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.compressed_tensors.floats import CastToFp4, cast_to_fp4
from halfeven.reference.systems.compressed_tensors.qparams import CodeRange, calculate_range

__all__ = ["COMPRESSED_TENSORS", "Dequantize", "FakeQuantize", "Quantize", "dequantize", "fake_quantize", "quantize"]

_FORWARD = "compressed_tensors.quantization.lifecycle.forward"
_BASIS = AsComputed(dtype="that to which input, scale and global scale promote")


@dataclass(frozen=True)
class _GlobalScale(Behaviour):
    """The choice of what the global scale meets."""

    global_scale: str = choice(
        {
            "scale": "divides the scale by the global scale first",
            "apart": "applies the global scale to what the scale is applied to",
        }
    )


@dataclass(frozen=True)
class Quantize(_GlobalScale):
    """The choices in quantizing."""

    division: str = choice(
        {
            "divide": "divides by the scale",
            "reciprocal": "multiplies by the rounded reciprocal of the scale",
        }
    )
    rounding: str = roundings("to integer codes")
    clamp: str = choice(
        {
            "before-rounding": "limits before rounding",
            "after-rounding": "limits after rounding",
        }
    )


@dataclass(frozen=True)
class FakeQuantize(Quantize):
    """The choices in quantizing and dequantizing."""


@dataclass(frozen=True)
class Dequantize(_GlobalScale):
    """The choices in dequantizing."""

    dtype: str = choice(
        {
            "given": "casts to the dtype that is asked for",
            "scale's": "returns the scale's dtype whatever is asked for, unless the strategy is group",
        }
    )
    difference: str = choice(
        {
            "scale-dtype": "subtracts the zero point in the scale's dtype",
            "code-dtype": "subtracts the zero point in the dtype of the codes, which wraps",
        }
    )


COMPRESSED_TENSORS = Profile(
    name="compressed-tensors",
    title="round(clamp(x / s + zero_point, qmin, qmax)); (q - zero_point) * s",
    source="compressed-tensors: compressed_tensors.quantization, QuantizationArgs of type int",
    model=EvaluationModel(zero_point="before-rounding", clamp="before-rounding"),
    dtypes=("float32", "float64", "float16", "bfloat16"),
    scale_dtype="input",
    codes="input",
    grids=tuple(
        Grid(-(2 ** (b - 1)), 2 ** (b - 1) - 1) for b in (8, 4, 16, 1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15)
    ),
)


def _arguments(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    if grid != Grid.from_bitwidth(grid.bits, signed=True):
        msg = f"grid {grid} is not accepted: the functions use all signed codes"
        raise ValueError(msg)
    s, z = (spread(p, x.shape, block_size) for p in (scale, zero))
    return {"x": x, "scale": s, "zero_point": z, "num_bits": grid.bits, "type": "int"}


def _dequantize_arguments(
    q: Array, scale: Array, zero: Array, _grid: Grid, block_size: BlockSize | None, dtype: "np.dtype[Any]"
) -> dict[str, Any]:
    s, z = (spread(p, q.shape, block_size) for p in (scale, zero))
    return {"x_q": q, "scale": s, "zero_point": z, "dtype": dtype.name}


@formula(
    "compressed-tensors/quantize",
    equation=r"q = \mathrm{round}(\mathrm{clamp}(x / (s / g) + z,\ q_{min},\ q_{max}))",
    basis=_BASIS,
    source=f"{_FORWARD}.quantize",
    behaviour=Quantize(),
    affine=AffineView("compressed-tensors", "quantize", _arguments),
)
def quantize(
    b: Quantize,
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
    ends = calculate_range(CodeRange(), type, num_bits)
    with np.errstate(all="ignore"):
        if global_scale is not None and b.global_scale == "apart":
            x = x * global_scale
            scaled = _scaled(b, x, scale, zero_point)
        else:
            scaled = _scaled(b, x, _effective(scale, global_scale), zero_point)
        rounded = _limited(b, scaled, ends, type, num_bits)
    return rounded if dtype is None else _cast(rounded, dtype)


def _effective(scale: Array, global_scale: Array | None) -> Array:
    with np.errstate(all="ignore"):
        return scale if global_scale is None else np.asarray(scale / global_scale)


def _scaled(b: Quantize, x: Array, s: Array, zero_point: Array | None) -> Array:
    scaled = x / s if b.division == "divide" else x * (np.ones((), s.dtype) / s)
    return np.asarray(scaled if zero_point is None else scaled + zero_point.astype(x.dtype))


def _limited(b: Quantize, scaled: Array, ends: tuple[Array, Array], type: str, num_bits: int) -> Array:  # noqa: A002
    """The nearest codes of quotients: integers, or numbers of the float of ``num_bits``."""
    t = scaled.dtype
    limited = np.clip(scaled, *ends).astype(t) if b.clamp == "before-rounding" else scaled
    match (type, num_bits):
        case ("float", 8):
            rounded = limited.astype(ml_dtypes.float8_e4m3fn).astype(t)
        case ("float", 6):
            rounded = _cast_to_fp6(limited)
        case ("float", _):
            rounded = cast_to_fp4(CastToFp4(), limited)
        case _:
            rounded = ROUNDINGS[b.rounding](limited)
    return np.asarray(np.clip(rounded, *ends)).astype(t)


def _cast_to_fp6(x: Array) -> Array:
    """The nearest E2M3 value, ties to the even code; a zero keeps its sign (measured), NaN stays."""
    known = np.where(np.isnan(x), np.zeros((), x.dtype), x)
    return np.where(np.isnan(x), x, cast(known, FLOAT_FORMATS["float6_e2m3fn"], overflow="saturate"))


def _cast(values: Array, dtype: str) -> Array:
    to: Any = getattr(ml_dtypes, dtype, dtype)
    return values.astype(to)


@formula(
    "compressed-tensors/fake_quantize",
    equation=r"\hat x = (\mathrm{quantize}(x) - z) * (s / g)",
    basis=_BASIS,
    source=f"{_FORWARD}.fake_quantize",
    behaviour=FakeQuantize(),
    affine=AffineView("compressed-tensors", "fake_quantize", _arguments),
)
def fake_quantize(
    b: FakeQuantize,
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
    quantized = quantize(b, x, scale, zero_point, num_bits, type, global_scale=global_scale)
    return _reals(b, quantized, scale, zero_point, global_scale)


@formula(
    "compressed-tensors/dequantize",
    equation=r"\hat x = (q - z) * (s / g)",
    basis=_BASIS,
    source=f"{_FORWARD}.dequantize",
    behaviour=Dequantize(),
    versions={
        "0.20": (Dequantize(dtype="scale's"), "compressed-tensors 0.20.0, measured: per tensor, channel and token")
    },
    affine=AffineView("compressed-tensors", "dequantize", _dequantize_arguments),
)
def dequantize(
    b: Dequantize,
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
    reals = _reals(b, x_q, scale, zero_point, global_scale)
    return reals if dtype is None or b.dtype == "scale's" else _cast(reals, dtype)


def _reals(b: _GlobalScale, x_q: Array, scale: Array, zero_point: Array | None, global_scale: Array | None) -> Array:
    s = _effective(scale, global_scale)
    in_codes = isinstance(b, Dequantize) and b.difference == "code-dtype"
    with np.errstate(all="ignore"):
        d = x_q if in_codes else x_q.astype(s.dtype)
        if zero_point is not None:
            d = d - zero_point.astype(d.dtype)
        if global_scale is not None and b.global_scale == "apart":
            return np.asarray(d * scale / global_scale)
        return np.asarray(d * s)
