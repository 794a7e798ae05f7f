"""torch: the operators ``torch.ops.quantized_decomposed.{quantize,dequantize}_per_{tensor,channel}``."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.reference import model as evaluation
from halfeven.reference.affine import channel_of, held, no_blocks
from halfeven.reference.blocks import Array, BlockSize, per_channel
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.choices import Decoding, Storing
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile, along_axis, integers

__all__ = [
    "QUANTIZED_DECOMPOSED",
    "QUANTIZED_DECOMPOSED_2_13",
    "QUANTIZED_DECOMPOSED_PER_TOKEN_2_13",
    "dequantize_per_channel",
    "dequantize_per_tensor",
    "quantize_per_channel",
    "quantize_per_tensor",
]

_MODEL = EvaluationModel(compute="float32", product="promoted")
_DECODING = Decoding(product="promoted")
_2_13 = Storing(division="reciprocal", nan="zero", ends="rounded")
_PER_CHANNEL_2_13 = replace(_DECODING, subtract="exact")

# The docstrings say "affine quantization" and give no equation; this is the textbook's.
_SOURCE = "torch.ops.quantized_decomposed: affine quantization; its docstrings give no equation"


QUANTIZED_DECOMPOSED = Profile(
    name="torch.quantized_decomposed",
    title="clamp(round(x / s) + zero_point, qmin, qmax); (q - zero_point) * s",
    source="torch: torch.ops.quantized_decomposed",
    model=_MODEL,
    operations=("quantize", "dequantize"),
    dtypes=("float32", "bfloat16"),
    bits=(1, 32),
    within=Grid.from_dtype(np.int32),
)

QUANTIZED_DECOMPOSED_2_13 = replace(
    QUANTIZED_DECOMPOSED,
    name="torch.quantized_decomposed@2.13",
    title="clamp(round(x * (1 / s)) + zero_point, qmin, qmax), and the code of NaN is 0; (q - zero_point) * s",
    source="torch 2.13.0, measured on the CPU",
    model=_MODEL.at(_2_13),
)

QUANTIZED_DECOMPOSED_PER_TOKEN_2_13 = replace(
    QUANTIZED_DECOMPOSED_2_13,
    name="torch.quantized_decomposed@2.13-per-token",
    title="clamp(round(x * (1 / s) + zero_point), qmin, qmax); (q - zero_point) * s",
    source="torch 2.13.0, quantize_per_token and quantize_per_channel_group measured on the CPU",
    model=_MODEL.at(replace(_2_13, zero_point="before-rounding")),
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
    behaviour=Storing(),
    versions={"2.13": (_2_13, QUANTIZED_DECOMPOSED_2_13.source)},
    affine=AffineView("torch.quantized_decomposed", "quantize", _arguments),
)
def quantize_per_tensor(
    b: Storing,
    input: Array,  # noqa: A002 - the document's own word
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: npt.DTypeLike,
) -> Array:
    """Codes of ``input``, with one scale and one zero point.

    Args:
        input: float32, float16 or bfloat16, any shape.
        scale: real per code, held in float32.
        zero_point: the code of 0.
        quant_min: the lowest code.
        quant_max: the highest code.
        dtype: that of the codes, an integer's.

    Raises:
        ValueError: ``input`` holds NaN.
    """
    s, z = np.asarray(scale, np.float32), np.asarray(zero_point)
    return integers(evaluation.quantize(_MODEL.at(b), input, s, z, Grid(quant_min, quant_max)), dtype)


@formula(
    "torch/quantized_decomposed.dequantize_per_tensor",
    equation=r"\hat x = (q - z) * s",
    basis=_BACK,
    source=_SOURCE,
    behaviour=_DECODING,
    affine=AffineView("torch.quantized_decomposed", "dequantize", _dequantize_arguments),
)
def dequantize_per_tensor(
    b: Decoding,
    input: Array,  # noqa: A002 - the document's own word
    scale: float,
    zero_point: int,
    quant_min: int,  # noqa: ARG001 - the grid takes no part
    quant_max: int,  # noqa: ARG001
    *,
    out_dtype: npt.DTypeLike = np.float32,
) -> Array:
    """Reals of codes; the grid takes no part.

    Args:
        input: codes, of any shape.
        scale: real per code, held in float32.
        zero_point: the code of 0.
        quant_min: the lowest code.
        quant_max: the highest code.
        out_dtype: that of the reals.
    """
    s, z = np.asarray(scale, np.float32), np.asarray(zero_point)
    return evaluation.dequantize(_MODEL.at(b), input, s, z, np.dtype(out_dtype))


@formula(
    "torch/quantized_decomposed.quantize_per_channel",
    equation=r"q = \mathrm{clamp}(\lceil x / s \rfloor + z,\ q_{min},\ q_{max})",
    basis=AsComputed(dtype="float32"),
    source=_SOURCE,
    behaviour=Storing(),
    versions={"2.13": (_2_13, QUANTIZED_DECOMPOSED_2_13.source)},
    affine=AffineView("torch.quantized_decomposed", "quantize", _channel_arguments),
)
def quantize_per_channel(
    b: Storing,
    input: Array,  # noqa: A002 - the document's own word
    scales: Array,
    zero_points: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: npt.DTypeLike,
) -> Array:
    """Codes of ``input``, with one scale and one zero point per index along ``axis``.

    Args:
        input: float32, float16 or bfloat16, of at least one dimension.
        scales: real per code, float32, one per channel.
        zero_points: the codes of 0, likewise.
        axis: the dimension of the channels, which may be negative.
        quant_min: the lowest code.
        quant_max: the highest code.
        dtype: that of the codes, an integer's.

    Raises:
        ValueError: ``input`` holds NaN, ``axis`` is outside [-D, D), or the parameters are not as many as the channels.
    """
    s, z = (along_axis(p, input.shape, axis) for p in (scales, zero_points))
    return integers(
        evaluation.quantize(_MODEL.at(b), input, s, z, Grid(quant_min, quant_max), per_channel(input.shape, axis)),
        dtype,
    )


@formula(
    "torch/quantized_decomposed.dequantize_per_channel",
    equation=r"\hat x = (q - z) * s",
    basis=_BACK,
    source=_SOURCE,
    behaviour=_DECODING,
    versions={"2.13": (_PER_CHANNEL_2_13, QUANTIZED_DECOMPOSED_2_13.source)},
    affine=AffineView("torch.quantized_decomposed", "dequantize", _dequantize_channel_arguments),
)
def dequantize_per_channel(
    b: Decoding,
    input: Array,  # noqa: A002 - the document's own word
    scales: Array,
    zero_points: Array,
    axis: int,
    quant_min: int,  # noqa: ARG001 - the grid takes no part
    quant_max: int,  # noqa: ARG001
    *,
    out_dtype: npt.DTypeLike = np.float32,
) -> Array:
    """Reals of codes; the grid takes no part. Errors as in ``quantize_per_channel``.

    Args:
        input: codes, of at least one dimension.
        scales: real per code, float32, one per channel.
        zero_points: the codes of 0, likewise.
        axis: the dimension of the channels, which may be negative.
        quant_min: the lowest code.
        quant_max: the highest code.
        out_dtype: that of the reals.
    """
    s, z = (along_axis(p, input.shape, axis) for p in (scales, zero_points))
    blocks = per_channel(input.shape, axis)
    return evaluation.dequantize(_MODEL.at(b), input, s, z, np.dtype(out_dtype), blocks)
