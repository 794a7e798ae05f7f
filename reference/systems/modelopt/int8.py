"""ModelOpt: INT8QTensor, codes from -128 to 127 with a scale per tensor, per index of an axis or per block.

Real per code: x̂ = q * scale.
"""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, roundings
from halfeven.reference.blocks import Array, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.modelopt.fp8 import Fp8Values
from halfeven.reference.systems.modelopt.scales import counts, largest, only_axes, quotients, spread

__all__ = ["Int8Codes", "int8_dequantize", "int8_quantize"]


@dataclass(frozen=True)
class Int8Codes(Behaviour):
    """The choices in making codes of 8 bits."""

    quotient: str = quotients()
    only_axis: str = only_axes()
    rounding: str = roundings("elements")


@formula(
    "modelopt/int8_quantize",
    equation=r"s = \max |x| / 127,\quad q = \mathrm{clamp}(\lfloor x / s \rceil,\ -128,\ 127)",
    basis=AsComputed(dtype="the input's"),
    source="modelopt.torch.quantization.qtensor.INT8QTensor.quantize",
    behaviour=Int8Codes(),
    versions={
        "0.47": (Int8Codes(only_axis="tensor"), "nvidia-modelopt 0.47.0 with torch 2.13 on the CPU, measured"),
    },
)
@np.errstate(all="ignore")
def int8_quantize(
    b: Int8Codes,
    input: Array,  # noqa: A002 - the library's own word
    scales: Array | None = None,
    axis: int | None = None,
    block_sizes: Shape | None = None,
) -> tuple[Array, Array]:
    """Codes of ``input`` as int8, and the scales; with blocks it is filled up with zeros to whole ones.

    NaN has the code 0, and so has what is divided by a scale of NaN, or zero by zero.

    Args:
        input: float32, float16 or bfloat16.
        scales: in the dtype of ``input``; by default the largest magnitude over 127. With blocks one for each.
        axis: the axis with a scale for each index; by default the tensor has one.
        block_sizes: elements of a block in each dimension.

    Raises:
        AssertionError: with ``scales`` and blocks, these are not whole, or there is not one scale for each.
    """
    dtype = input.dtype if b.quotient == "input" else np.dtype(np.float32)
    x = input.astype(dtype)
    if block_sizes:
        if scales is not None:
            _check("scales", scales, x.shape, block_sizes)
        x = np.pad(x, [(0, -n % size) for n, size in zip(x.shape, block_sizes, strict=True)])
    s = largest(x, axis, block_sizes, b.only_axis) / np.asarray(127, dtype) if scales is None else scales
    by = spread(s, x.shape, block_sizes) if block_sizes else s
    codes = np.clip(ROUNDINGS[b.rounding]((x / by.astype(dtype)).astype(np.float32)), -128, 127)
    return np.where(np.isnan(codes), 0, codes).astype(np.int8), np.asarray(s).astype(input.dtype)


def _check(name: str, scales: Array, shape: Shape, block_sizes: Shape) -> None:
    """Refuse blocks that are not whole, and scales that are not one for each."""
    blocks = counts(shape, block_sizes)
    if any(n % size for n, size in zip(shape, block_sizes, strict=True)) or scales.shape != blocks:
        msg = f"{name} of shape {scales.shape} is not accepted: give whole blocks, and {blocks}"
        raise AssertionError(msg)


@formula(
    "modelopt/int8_dequantize",
    equation=r"\hat x = q * s",
    basis=AsComputed(dtype="the one asked for"),
    source="modelopt.torch.quantization.qtensor.INT8QTensor.dequantize",
    behaviour=Fp8Values(),
)
@np.errstate(all="ignore")
def int8_dequantize(
    b: Fp8Values,
    quantized_data: Array,
    scale: Array,
    shape: Shape,
    dtype: str = "float32",
    block_sizes: Shape | None = None,
) -> Array:
    """Elements of ``shape`` as ``dtype``.

    Args:
        b: where the product is computed.
        quantized_data: int8, filled up to whole blocks.
        scale: as ``int8_quantize`` gives it.
        shape: that of the elements; what was filled up is cut off.
        dtype: "float32", "float16" or "bfloat16".
        block_sizes: elements of a block in each dimension.

    Raises:
        AssertionError: blocks are not whole, or there is not one of ``scale`` for each.
    """
    s = scale
    if block_sizes:
        _check("scale", scale, quantized_data.shape, block_sizes)
        s = spread(scale, quantized_data.shape, block_sizes)
    target = FLOAT_DTYPES[dtype]
    wide = target if b.product == "output" else np.dtype(np.float32)
    reals = np.asarray(quantized_data.astype(wide) * s.astype(wide)).astype(target)
    return reals[tuple(slice(n) for n in shape)]
