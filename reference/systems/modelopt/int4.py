"""ModelOpt: INT4QTensor, codes from 0 to 15 with a scale per block, which multiplies.

Real per code: x̂ = (q - 8) / scale.
"""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES
from halfeven.reference.nibbles import AS_ONE_RUN, nibbles, packed, unpacked
from halfeven.reference.rounding import ROUNDINGS

__all__ = ["Int4Codes", "Int4Values", "int4_dequantize", "int4_quantize"]

_ZERO = 8


@dataclass(frozen=True)
class Int4Codes(Behaviour):
    """The choices in making codes of 4 bits."""

    scale: str = choice({
        "divide": "divides 7 by the largest magnitude",
        "reciprocal": "multiplies the largest magnitude's rounded reciprocal by 7",
    })  # fmt: skip
    zeros: str = choice({
        "middle": "gives a zero the code 8 where the scale is infinite",
        "least": "gives a zero the code 0 where the scale is infinite",
    })  # fmt: skip
    rounding: str = roundings("elements")
    halves: str = nibbles("high-first", AS_ONE_RUN)


@dataclass(frozen=True)
class Int4Values(Behaviour):
    """The choices in making elements of codes of 4 bits."""

    quotient: str = choice({
        "scale": "computes the quotient in the dtype of the scales",
        "float32": "computes the quotient in float32",
    })  # fmt: skip
    halves: str = nibbles("high-first", AS_ONE_RUN)


@formula(
    "modelopt/int4_quantize",
    equation=r"s = 7 / \max_b |x|,\quad q = \mathrm{clamp}(\lfloor x * s \rceil,\ -8,\ 7) + 8",
    basis=AsComputed(dtype="the input's"),
    source="modelopt.torch.quantization.qtensor.INT4QTensor.quantize",
    behaviour=Int4Codes(),
    versions={
        "0.47": (Int4Codes(scale="reciprocal", zeros="least"), "nvidia-modelopt 0.47.0 on the CPU, measured on x86-64"),
    },
)
@np.errstate(all="ignore")
def int4_quantize(b: Int4Codes, input: Array, block_size: int) -> tuple[Array, Array]:  # noqa: A002 - its word
    """Packed codes and scales of ``input``, taken as one run and filled up with zeros.

    Args:
        input: float32, float16 or bfloat16, its last dimension even.
        block_size: elements with one scale, an even number.

    Returns:
        Two codes per byte, the even index in the high half, uint8, in rows as ``input`` has them; the scales in the
        dtype of ``input``, (blocks, 1), an infinity where the block has none but zeros. NaN has the code 0.

    Raises:
        AssertionError: the last dimension is odd.
        RuntimeError: the filled up codes are no whole rows.
    """
    if input.shape[-1] % 2:
        msg = f"input of shape {input.shape} is not accepted: give an even last dimension"
        raise AssertionError(msg)
    dtype = input.dtype
    x = np.concatenate([input.reshape(-1), np.zeros(-input.size % block_size, dtype)]).reshape(-1, block_size)
    amax = np.max(np.abs(x), axis=1, keepdims=True)
    seven, one = np.asarray(7, dtype), np.asarray(1, dtype)
    scale = seven / amax if b.scale == "divide" else (one / amax) * seven
    product = (x * scale).astype(np.float32)
    product = np.where((x == 0) & (b.zeros == "middle") & ~np.isnan(scale), np.float32(0), product)
    codes = np.clip(ROUNDINGS[b.rounding](product), -8, 7) + _ZERO
    codes = np.where(np.isnan(codes), 0, codes).astype(np.uint8)
    data = packed(codes.reshape(-1), b.halves)
    rows = int(np.prod(input.shape[:-1]))
    if data.size % rows:
        msg = f"block_size={block_size} is not accepted: it fills up {input.shape} to {codes.size} elements"
        raise RuntimeError(msg)
    return data.reshape(*input.shape[:-1], -1), scale


@formula(
    "modelopt/int4_dequantize",
    equation=r"\hat x = (q - 8) / s",
    basis=AsComputed(dtype="that of the scales, then the one asked for"),
    source="modelopt.torch.quantization.qtensor.INT4QTensor.dequantize",
    behaviour=Int4Values(),
)
@np.errstate(all="ignore")
def int4_dequantize(
    b: Int4Values, quantized_data: Array, scale: Array, shape: Shape, block_size: int, dtype: str = "float32"
) -> Array:
    """Elements of ``shape`` as ``dtype``.

    Args:
        b: where the quotient is computed, and the order of two codes.
        quantized_data: bytes of two codes, uint8, the first in the high half.
        scale: float32, float16 or bfloat16, one per block in the order of the blocks.
        shape: that of the elements; what the last block was filled up with is cut off.
        block_size: elements of a block.
        dtype: "float32", "float16" or "bfloat16".
    """
    wide = scale.dtype if b.quotient == "scale" else np.dtype(np.float32)
    codes = unpacked(quantized_data, b.halves).astype(np.int64) - _ZERO
    reals = codes.reshape(-1, block_size).astype(wide) / scale.astype(wide).reshape(-1, 1)
    return reals.reshape(-1)[: int(np.prod(shape))].reshape(shape).astype(FLOAT_DTYPES[dtype])
