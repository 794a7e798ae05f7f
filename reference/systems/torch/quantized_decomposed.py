"""torch: the operators ``torch.ops.quantized_decomposed.{quantize,dequantize}_per_{tensor,channel}``."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.reference.affine import channel_of, held, no_blocks
from halfeven.reference.blocks import BlockSize, per_channel, per_element
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Array, Profile, along_axis, integers

__all__ = [
    "QUANTIZED_DECOMPOSED",
    "QUANTIZED_DECOMPOSED_2_13",
    "QUANTIZED_DECOMPOSED_PER_TOKEN_2_13",
    "dequantize_per_channel",
    "dequantize_per_tensor",
    "quantize_per_channel",
    "quantize_per_tensor",
]

MODEL = EvaluationModel(compute="float32", product="promoted")

# The docstrings say "affine quantization" and give no equation; this is the textbook's.
_SOURCE = "torch.ops.quantized_decomposed: affine quantization; its docstrings give no equation"


def quantize(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """Codes of ``x`` as float32; 16-bit floats are widened first. Arguments and errors as in ``Profile.quantize``."""
    t = np.dtype(np.float32)
    with np.errstate(all="ignore"):
        s = per_element(scale, x.shape, block_size).astype(t)
        z = per_element(zero_point, x.shape, block_size).astype(t)
        quant_min, quant_max = np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)
        q = np.rint(x.astype(t) / s) + z
        return np.where(q < quant_min, quant_min, np.where(q > quant_max, quant_max, q))


def dequantize(
    q: Array, scale: Array, zero_point: Array, _grid: Grid, dtype: "np.dtype[Any]", block_size: BlockSize | None = None
) -> Array:
    """Reals of the codes ``q`` in ``dtype``: the difference in it, the product in the wider of it and the scale.

    Arguments and errors as in ``Profile.dequantize``.
    """
    wide = np.promote_types(dtype, scale.dtype)
    with np.errstate(all="ignore"):
        s = per_element(scale, q.shape, block_size).astype(wide)
        z = per_element(zero_point, q.shape, block_size).astype(dtype)
        reals: Array = ((q.astype(dtype) - z).astype(wide) * s).astype(dtype)
    return reals


QUANTIZED_DECOMPOSED = Profile(
    name="torch.quantized_decomposed",
    title="clamp(round(x / s) + zero_point, qmin, qmax); (q - zero_point) * s",
    source="torch: torch.ops.quantized_decomposed",
    model=MODEL,
    dtypes=("float32", "bfloat16"),
    numpy={
        "quantize": "np.clip(np.rint(x / scale) + np.float32(zero_point), qmin, qmax)",
        "dequantize": "(np.float32(q) - np.float32(zero_point)) * scale",
    },
    transcriptions={"quantize": quantize, "dequantize": dequantize},
)

QUANTIZED_DECOMPOSED_2_13 = replace(
    QUANTIZED_DECOMPOSED,
    name="torch.quantized_decomposed@2.13",
    title="clamp(round(x * (1 / s)) + zero_point, qmin, qmax), and the code of NaN is 0; (q - zero_point) * s",
    source="torch 2.13.0, measured on the CPU",
    model=replace(MODEL, division="reciprocal", nan="zero"),
    numpy={
        "quantize": ("np.nan_to_num(np.clip(np.rint(x * (1 / scale)) + np.float32(zero_point), qmin, qmax), nan=0)"),
        "dequantize": "(np.float32(q) - np.float32(zero_point)) * scale",
    },
    transcriptions={},
)

QUANTIZED_DECOMPOSED_PER_TOKEN_2_13 = replace(
    QUANTIZED_DECOMPOSED_2_13,
    name="torch.quantized_decomposed@2.13-per-token",
    title="clamp(round(x * (1 / s) + zero_point), qmin, qmax); (q - zero_point) * s",
    source="torch 2.13.0, quantize_per_token and quantize_per_channel_group measured on the CPU",
    model=replace(MODEL, division="reciprocal", zero_point="before-rounding", nan="zero"),
    numpy={
        "quantize": "np.nan_to_num(np.clip(np.rint(x * (1 / scale) + np.float32(zero_point)), qmin, qmax), nan=0)",
        "dequantize": "(np.float32(q) - np.float32(zero_point)) * scale",
    },
)


def _arguments(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    no_blocks(block_size)
    ends = {"quant_min": grid.qmin, "quant_max": grid.qmax, "dtype": held(grid, _HELD)}
    return {"input": x, "scale": float(scale), "zero_point": int(zero)} | ends


def _channel_arguments(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    ends = {"quant_min": grid.qmin, "quant_max": grid.qmax, "dtype": held(grid, _HELD)}
    parameters = {
        "scales": scale.ravel(),
        "zero_points": zero.ravel(),
        "axis": channel_of(block_size, x.shape, scale.size),
    }
    return {"input": x} | parameters | ends


def _dequantize_arguments(
    q: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, dtype: "np.dtype[Any]"
) -> dict[str, Any]:
    given = _arguments(q, scale, zero, grid, block_size)
    del given["dtype"]
    return given | {"out_dtype": dtype.name}


def _dequantize_channel_arguments(
    q: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, dtype: "np.dtype[Any]"
) -> dict[str, Any]:
    given = _channel_arguments(q, scale, zero, grid, block_size)
    del given["dtype"]
    return given | {"out_dtype": dtype.name}


_HELD = ("int8", "uint8", "int16", "uint16", "int32")
_BACK = AsComputed(dtype="the output's for the difference, its promotion with the scale's for the product")


# The documented signatures.


@formula(
    "torch/quantized_decomposed.quantize_per_tensor",
    equation=r"q = \mathrm{clamp}(\lceil x / s \rfloor + z,\ q_{min},\ q_{max})",
    basis=AsComputed(dtype="float32"),
    source=_SOURCE,
    affine=AffineView("torch.quantized_decomposed", "quantize", _arguments),
)
def quantize_per_tensor(
    input: Array,  # noqa: A002 - the document's own word
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: npt.DTypeLike,
) -> Array:
    """Codes of ``input`` as ``dtype``, with one scale and one zero point.

    Raises:
        ValueError: ``input`` holds NaN.
    """
    s, z = np.asarray(scale, np.float32), np.asarray(zero_point)
    return integers(quantize(input, s, z, Grid(quant_min, quant_max)), dtype)


@formula(
    "torch/quantized_decomposed.dequantize_per_tensor",
    equation=r"\hat x = (q - z) * s",
    basis=_BACK,
    source=_SOURCE,
    affine=AffineView("torch.quantized_decomposed", "dequantize", _dequantize_arguments),
)
def dequantize_per_tensor(
    input: Array,  # noqa: A002 - the document's own word
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    *,
    out_dtype: npt.DTypeLike = np.float32,
) -> Array:
    """Reals of the codes ``input`` as ``out_dtype``; the grid takes no part."""
    s, z = np.asarray(scale, np.float32), np.asarray(zero_point)
    return dequantize(input, s, z, Grid(quant_min, quant_max), np.dtype(out_dtype))


@formula(
    "torch/quantized_decomposed.quantize_per_channel",
    equation=r"q = \mathrm{clamp}(\lceil x / s \rfloor + z,\ q_{min},\ q_{max})",
    basis=AsComputed(dtype="float32"),
    source=_SOURCE,
    affine=AffineView("torch.quantized_decomposed", "quantize", _channel_arguments),
)
def quantize_per_channel(
    input: Array,  # noqa: A002 - the document's own word
    scales: Array,
    zero_points: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: npt.DTypeLike,
) -> Array:
    """Codes of ``input`` as ``dtype``, with one scale and one zero point per index along ``axis``.

    Raises:
        ValueError: ``input`` holds NaN, ``axis`` is outside [-D, D), or the parameters are not as many as the channels.
    """
    s, z = (along_axis(p, input.shape, axis) for p in (scales, zero_points))
    return integers(quantize(input, s, z, Grid(quant_min, quant_max), per_channel(input.shape, axis)), dtype)


@formula(
    "torch/quantized_decomposed.dequantize_per_channel",
    equation=r"\hat x = (q - z) * s",
    basis=_BACK,
    source=_SOURCE,
    affine=AffineView("torch.quantized_decomposed", "dequantize", _dequantize_channel_arguments),
)
def dequantize_per_channel(
    input: Array,  # noqa: A002 - the document's own word
    scales: Array,
    zero_points: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
    *,
    out_dtype: npt.DTypeLike = np.float32,
) -> Array:
    """Reals of the codes ``input`` as ``out_dtype``; errors as in ``quantize_per_channel``."""
    s, z = (along_axis(p, input.shape, axis) for p in (scales, zero_points))
    blocks = per_channel(input.shape, axis)
    return dequantize(input, s, z, Grid(quant_min, quant_max), np.dtype(out_dtype), blocks)
