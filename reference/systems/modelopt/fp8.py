"""ModelOpt: FP8QTensor, codes of float8_e4m3fn with a scale per tensor, per index of an axis or per block.

Real per code: x̂ = decode(q) * scale.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, decode, encode
from halfeven.reference.systems.modelopt.scales import counts, largest, only_axes, quotients, spread

__all__ = ["Fp8Codes", "Fp8Values", "fp8_dequantize", "fp8_quantize"]

_E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)


@dataclass(frozen=True)
class Fp8Codes(Behaviour):
    """The choices in making codes of float8_e4m3fn."""

    zeros: str = choice({
        "kept": "keeps zeros under a scale of zero",
        "divided": "divides zeros by a scale of zero, so that they become NaN",
    })  # fmt: skip
    quotient: str = quotients()
    only_axis: str = only_axes()


@dataclass(frozen=True)
class Fp8Values(Behaviour):
    """The choices in making elements of codes of float8_e4m3fn."""

    product: str = choice({
        "output": "rounds the scale to the dtype asked for, and multiplies there",
        "float32": "computes the product in float32",
    })  # fmt: skip


@formula(
    "modelopt/fp8_quantize",
    equation=r"s = \max |x| / 448,\quad q = \mathrm{e4m3}(x / s)",
    basis=AsComputed(dtype="the input's; the quotient is then rounded to float8_e4m3fn"),
    source="modelopt.torch.quantization.qtensor.FP8QTensor.quantize",
    behaviour=Fp8Codes(),
    versions={
        "0.47": (
            Fp8Codes(zeros="divided", only_axis="tensor"),
            "nvidia-modelopt 0.47.0 with torch 2.13 on the CPU, measured",
        ),
    },
)
@np.errstate(all="ignore")
def fp8_quantize(
    b: Fp8Codes,
    input: Array,  # noqa: A002 - the library's own word
    scales: Array | None = None,
    axis: int | None = None,
    block_sizes: Shape | None = None,
) -> tuple[Array, Array]:
    """Codes of ``input`` as float8_e4m3fn, in its shape, and the scales.

    A quotient beyond 448, infinity included, is 448 of that sign; NaN stays NaN.

    Args:
        input: float32, float16 or bfloat16.
        scales: in the dtype of ``input``; by default the largest magnitude over 448. With blocks one for each.
        axis: the axis with a scale for each index; by default the tensor has one.
        block_sizes: elements of a block in each dimension, the last block of which may have fewer.

    Raises:
        AssertionError: with blocks, there is not one of ``scales`` for each.
    """
    dtype = input.dtype if b.quotient == "input" else np.dtype(np.float32)
    x = input.astype(dtype)
    s = largest(x, axis, block_sizes, b.only_axis) / np.asarray(448, dtype) if scales is None else scales
    if block_sizes and s.shape != (blocks := counts(x.shape, block_sizes)):
        if s.size != int(np.prod(blocks)):
            msg = f"scales of shape {s.shape} is not accepted: give {blocks}"
            raise AssertionError(msg)
        s = s.reshape(blocks)
    by = spread(s, x.shape, block_sizes) if block_sizes else s
    quotient = x / by.astype(dtype)
    quotient = np.where((x == 0) & (by == 0), x, quotient) if b.zeros == "kept" else quotient
    return encode(quotient, "float8_e4m3fn", overflow="saturate").view(_E4M3), np.asarray(s).astype(input.dtype)


@formula(
    "modelopt/fp8_dequantize",
    equation=r"\hat x = \mathrm{decode}(q) * s",
    basis=AsComputed(dtype="the one asked for"),
    source="modelopt.torch.quantization.qtensor.FP8QTensor.dequantize",
    behaviour=Fp8Values(),
)
@np.errstate(all="ignore")
def fp8_dequantize(
    b: Fp8Values, quantized_data: Array, scale: Array, dtype: str = "float32", block_sizes: Shape | None = None
) -> Array:
    """Elements of codes as ``dtype``.

    Args:
        b: where the product is computed.
        quantized_data: float8_e4m3fn.
        scale: as ``fp8_quantize`` gives it.
        dtype: "float32", "float16" or "bfloat16".
        block_sizes: elements of a block in each dimension, the last block of which may have fewer.

    Raises:
        AssertionError: with blocks, there is not one of ``scale`` for each.
    """
    if block_sizes and scale.shape != (blocks := counts(quantized_data.shape, block_sizes)):
        msg = f"scale of shape {scale.shape} is not accepted: give {blocks}"
        raise AssertionError(msg)
    target = FLOAT_DTYPES[dtype]
    wide = target if b.product == "output" else np.dtype(np.float32)
    s = spread(scale, quantized_data.shape, block_sizes) if block_sizes else scale
    numbers = decode(quantized_data.view(np.uint8), "float8_e4m3fn", "float32").astype(wide)
    return np.asarray(numbers * s.astype(wide)).astype(target)
