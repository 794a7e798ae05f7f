"""ONNX: ``QuantizeLinear`` and ``DequantizeLinear``. Real per code, x̂ = (q - zero_point) * scale."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.reference.blocks import BlockSize, Shape, per_channel, per_element, per_group
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profiles.profile import Array, Profile, along_axis, integers

__all__ = ["ONNX", "ONNXRUNTIME_1_31", "ONNX_REFERENCE_1_23", "dequantize_linear", "quantize_linear"]

MODEL = EvaluationModel(integer="exact", subtract="exact")


@formula(
    "onnx.QuantizeLinear",
    equation=r"y = \mathrm{saturate}(\lceil x / s \rfloor + z)",
    basis=AsComputed(dtype="the scale's for the division; integers after it"),
    source="ONNX operator QuantizeLinear, opset 25",
)
def quantize(x: Array, y_scale: Array, y_zero_point: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """Codes of ``x`` as float64; the zero point is an integer, and so the sum is exact.

    Arguments and errors as in ``Profile.quantize``.
    """
    with np.errstate(all="ignore"):
        s = per_element(y_scale, x.shape, block_size)
        z = per_element(y_zero_point, x.shape, block_size).astype(np.float64)
        y = np.rint(x.astype(s.dtype) / s).astype(np.float64) + z
        return np.where(y < grid.qmin, float(grid.qmin), np.where(y > grid.qmax, float(grid.qmax), y))


@formula(
    "onnx.DequantizeLinear",
    equation=r"y = (x - z) * s",
    basis=AsComputed(dtype="the output's for the product; integers before it"),
    source="ONNX operator DequantizeLinear, opset 25",
)
def dequantize(
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    _grid: Grid,
    dtype: "np.dtype[Any]",
    block_size: BlockSize | None = None,
) -> Array:
    """Reals of the codes ``x`` in ``dtype``; the difference is exact and rounded to ``dtype`` for the product.

    Arguments and errors as in ``Profile.dequantize``.
    """
    with np.errstate(all="ignore"):
        s = per_element(x_scale, x.shape, block_size).astype(dtype)
        z = per_element(x_zero_point, x.shape, block_size).astype(np.float64)
        y: Array = (x.astype(np.float64) - z).astype(dtype) * s
    return y


def fake_quantize(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """QuantizeLinear and DequantizeLinear, one after the other, in ``x.dtype``."""
    return dequantize(quantize(x, scale, zero_point, grid, block_size), scale, zero_point, grid, x.dtype, block_size)


ONNX = Profile(
    name="onnx",
    title="saturate(round(x / s) + zero_point); (q - zero_point) * s",
    source="ONNX: operators QuantizeLinear and DequantizeLinear, opset 25",
    model=MODEL,
    dtypes=("float32", "float16", "bfloat16"),
    scale_dtype="input",
    bits=(2, 16),
    grids=tuple(Grid.from_bitwidth(b, signed=s) for b in (8, 4, 16, 2) for s in (True, False)),
    partial_blocks=True,
    numpy={
        "quantize": "np.clip(np.rint(x / scale) + np.float32(zero_point), qmin, qmax)",
        "dequantize": "(np.float32(q) - np.float32(zero_point)) * scale",
        "fake_quantize": (
            "(np.clip(np.rint(x / scale) + np.float32(zero_point), qmin, qmax) - np.float32(zero_point)) * scale"
        ),
    },
    transcriptions={"quantize": quantize, "dequantize": dequantize, "fake_quantize": fake_quantize},
)

ONNXRUNTIME_1_31 = replace(
    ONNX,
    name="onnx@onnxruntime-1.31",
    title="as onnx, and the code of NaN is qmin; float32",
    source="ONNX Runtime 1.31.0, measured on the CPU in float32",
    model=replace(MODEL, nan="qmin"),
    dtypes=("float32",),
    transcriptions={},
)

ONNX_REFERENCE_1_23 = replace(
    ONNX,
    name="onnx@reference-1.23",
    title="as onnx, but the rounded quotient is cast to int32 before the zero point is added; float32",
    source="onnx 1.23.0: onnx.reference, measured in float32",
    model=replace(MODEL, integer="int32"),
    dtypes=("float32",),
    transcriptions={},
)


# The operators with their attributes. A single scale is per tensor, a list of them per axis, else one per block.


def quantize_linear(
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: npt.DTypeLike = np.uint8,
) -> Array:
    """The codes of ``x``, as the dtype of ``y_zero_point`` or, without one, as ``output_dtype``.

    Raises:
        TypeError: that dtype is not an integer dtype.
        ValueError: ``axis`` or the parameters do not fit ``x``, or ``x`` holds NaN.
    """
    zero = np.zeros(y_scale.shape, output_dtype) if y_zero_point is None else y_zero_point
    s, z, blocks = _blocks(x.shape, y_scale, zero, axis, block_size)
    return integers(quantize(x, s, z, Grid.from_dtype(zero.dtype), blocks), zero.dtype)


def dequantize_linear(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: npt.DTypeLike | None = None,
) -> Array:
    """The reals of the codes ``x``, as ``output_dtype`` or, without one, as the dtype of ``x_scale``.

    Raises:
        TypeError: ``x`` is not of an integer dtype.
        ValueError: ``axis`` or the parameters do not fit ``x``.
    """
    grid = Grid.from_dtype(x.dtype)
    zero = np.zeros(x_scale.shape, x.dtype) if x_zero_point is None else x_zero_point
    s, z, blocks = _blocks(x.shape, x_scale, zero, axis, block_size)
    return dequantize(x, s, z, grid, x_scale.dtype if output_dtype is None else np.dtype(output_dtype), blocks)


def _blocks(
    shape: Shape, scale: Array, zero: Array, axis: int, block_size: int
) -> tuple[Array, Array, BlockSize | None]:
    if scale.size == 1 and not block_size:
        return scale.reshape(()), zero.reshape(()), None
    if block_size:
        return scale, zero, per_group(shape, block_size, axis)
    return along_axis(scale, shape, axis), along_axis(zero, shape, axis), per_channel(shape, axis)
