"""ModelOpt: NF4QTensor, 16 levels of a normal distribution with a scale per block, and codes of those scales.

Real per code: x̂ = L_q * (s_q / d + z), where s_q is the code of the block's scale.
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES
from halfeven.reference.nibbles import AS_ONE_RUN, nibbles, packed, unpacked
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.bitsandbytes import get_4bit_type
from halfeven.reference.systems.modelopt.scales import quotients

__all__ = ["Nf4Codes", "Nf4Scales", "Nf4Values", "nf4_dequantize", "nf4_double_quantize", "nf4_levels", "nf4_quantize"]

_F32 = np.dtype(np.float32)
_ZERO = 7
_DECIMALS = 4
_MEASURED = "nvidia-modelopt 0.47.0 with torch 2.13 on the CPU, measured"


def _tables() -> Any:
    """A choice of the levels."""
    return choice({
        "bfloat16": "has the levels rounded to four decimals, and these to bfloat16",
        "float32": "has the levels in float32",
    })  # fmt: skip


@dataclass(frozen=True)
class Nf4Codes(Behaviour):
    """The choices in making codes of NF4."""

    levels: str = _tables()
    quotient: str = quotients()
    tie: str = choice({
        "lower": "takes the lower of two levels that are equally near",
        "upper": "takes the upper of two levels that are equally near",
    })  # fmt: skip
    zeros: str = choice({
        "middle": "gives a zero the code 7 in a block of zeros",
        "least": "gives a zero the code 0, which is -1, in a block of zeros",
    })  # fmt: skip
    scales: str = choice({
        "optional": "leaves the scales as they are without scale_block_size",
        "needed": "raises without scale_block_size",
    })  # fmt: skip
    halves: str = nibbles("high-first", AS_ONE_RUN)


@dataclass(frozen=True)
class Nf4Scales(Behaviour):
    """The choices in making codes of scales."""

    factor: str = choice({
        "divide": "divides the largest code by the largest difference from the mean",
        "reciprocal": "multiplies the largest difference's rounded reciprocal by the largest code",
    })  # fmt: skip
    rounding: str = roundings("scales")


@dataclass(frozen=True)
class Nf4Values(Behaviour):
    """The choices in making elements of codes of NF4."""

    levels: str = _tables()
    double_scale: str = choice({
        "own": "divides the code of a scale by the double_scale of its block",
        "every": "divides the code of each scale by every double_scale, and raises where there is more than one",
    })  # fmt: skip
    halves: str = nibbles("high-first", AS_ONE_RUN)


def nf4_levels(b: Nf4Codes | Nf4Values) -> Array:
    """The 16 levels, float32."""
    found = get_4bit_type("nf4")
    return found if b.levels == "float32" else found.round(_DECIMALS).astype(ml_dtypes.bfloat16).astype(_F32)


@formula(
    "modelopt/nf4_quantize",
    equation=r"s = \max_b |x|,\quad q = \arg\min_k |x / s - L_k|",
    basis=AsComputed(dtype="the input's"),
    source="modelopt.torch.quantization.qtensor.NF4QTensor.quantize; QLoRA, section 3 and appendix E",
    behaviour=Nf4Codes(),
    versions={"0.47": (Nf4Codes(zeros="least", scales="needed"), _MEASURED)},
)
@np.errstate(all="ignore")
def nf4_quantize(
    b: Nf4Codes,
    input: Array,  # noqa: A002 - the library's own word
    block_size: int,
    scale_block_size: int | None = None,
) -> tuple[Array, Array]:
    """Packed codes and scales of ``input``, taken as one run and filled up with zeros.

    Args:
        input: float32, float16 or bfloat16, of any shape.
        block_size: elements with one scale, an even number.
        scale_block_size: the scales are filled up with zeros to a multiple of it.

    Returns:
        Two codes per byte, the even index in the high half, uint8, (bytes,); the scales, the largest magnitudes in the
        dtype of ``input``, (scales,). NaN has the code 0, and so has every element beside NaN, and an infinity.

    Raises:
        TypeError: the scales are to be filled up, and ``scale_block_size`` is None.
    """
    if scale_block_size is None and b.scales == "needed":
        msg = "scale_block_size=None is not accepted: give an integer"
        raise TypeError(msg)
    x = np.pad(input.reshape(-1), (0, -input.size % block_size)).reshape(-1, block_size)
    scale = np.max(np.abs(x), axis=1)
    dtype = x.dtype if b.quotient == "input" else _F32
    quotient = (x.astype(dtype) / scale.astype(dtype)[:, None]).astype(np.float64).reshape(-1, 1)
    distance = np.abs(quotient - nf4_levels(b).astype(np.float64))
    last = distance.shape[1] - 1
    codes = np.argmin(distance, axis=1) if b.tie == "lower" else last - np.argmin(distance[:, ::-1], axis=1)
    codes = np.where(np.isnan(quotient[:, 0]), 0, codes)
    if b.zeros == "middle":
        codes = np.where(np.repeat(scale == 0, block_size), _ZERO, codes)
    codes = codes.astype(np.uint8)
    return packed(codes, b.halves), np.pad(scale, (0, -scale.size % (scale_block_size or 1)))


@formula(
    "modelopt/nf4_double_quantize",
    equation=r"z = \mathrm{mean}(s),\quad d = (2^{n-1} - 1) / \max_b |s - z|,\quad "
    r"q = \mathrm{clamp}(\lfloor (s - z) * d \rceil,\ 1 - 2^{n-1},\ 2^{n-1} - 1)",
    basis=AsComputed(dtype="the scales'"),
    source="modelopt.torch.quantization.qtensor.NF4QTensor.double_quantization; QLoRA, section 3",
    behaviour=Nf4Scales(),
    versions={"0.47": (Nf4Scales(factor="reciprocal"), _MEASURED)},
)
@np.errstate(all="ignore")
def nf4_double_quantize(
    b: Nf4Scales, scales: Array, scale_block_size: int, num_scale_bits: int
) -> tuple[Array, Array, Array]:
    """Codes of scales, what a block of them was multiplied by, and their mean.

    NaN has the code 0, and so has what is as large as the mean of a block in which all are.

    Args:
        b: how the factor is made, and products are rounded.
        scales: float32, float16 or bfloat16, (scales,).
        scale_block_size: scales of a block.
        num_scale_bits: of a code, at most 8.

    Returns:
        int8, (blocks, scale_block_size); (blocks,) and (), in the dtype of ``scales``.

    Raises:
        AssertionError: the blocks are not whole.
    """
    if scales.size % scale_block_size:
        msg = f"scales of shape {scales.shape} is not accepted: give a multiple of scale_block_size={scale_block_size}"
        raise AssertionError(msg)
    dtype, bound = scales.dtype, 2 ** (num_scale_bits - 1) - 1
    zero = np.asarray(np.mean(scales.astype(np.float64))).astype(dtype)
    blocks = scales.reshape(-1, scale_block_size) - zero
    most, largest = np.asarray(bound, dtype), np.max(np.abs(blocks), axis=1)
    by = most / largest if b.factor == "divide" else np.ones((), dtype) / largest * most
    product = (blocks * by[:, None]).astype(_F32)
    codes = np.clip(ROUNDINGS[b.rounding](product), -bound, bound)
    return np.where(np.isnan(codes), 0, codes).astype(np.int8), by, zero


@formula(
    "modelopt/nf4_dequantize",
    equation=r"\hat x = L_q * (s_q / d + z)",
    basis=AsComputed(dtype="that of double_scale, then the one asked for"),
    source="modelopt.torch.quantization.qtensor.NF4QTensor.dequantize; QLoRA, section 3 and appendix E",
    behaviour=Nf4Values(),
    versions={"0.47": (Nf4Values(double_scale="every"), _MEASURED)},
)
@np.errstate(all="ignore")
def nf4_dequantize(
    b: Nf4Values,
    quantized_data: Array,
    scale: Array,
    double_scale: Array,
    scale_zeros: Array,
    shape: Shape,
    block_size: int,
    dtype: str = "float32",
) -> Array:
    """Elements of ``shape`` as ``dtype``.

    Args:
        b: the levels, whose double_scale a scale has, and the order of two codes.
        quantized_data: bytes of two codes, uint8, the first in the high half.
        scale: codes of the scales, int8, in the order of the blocks; those beyond the last block are left out.
        double_scale: of each block of scales, in the dtype in which their quotient is rounded, (blocks,).
        scale_zeros: the mean of the scales, 0-d.
        shape: that of the elements; what the last block was filled up with is cut off.
        block_size: elements of a block, an even number.
        dtype: "float32", "float16" or "bfloat16".

    Raises:
        RuntimeError: there is more than one ``double_scale``, and every scale is divided by each.
    """
    target = FLOAT_DTYPES[dtype]
    count = quantized_data.size * 2 // block_size
    if b.double_scale == "every" and double_scale.size > 1:
        msg = f"double_scale of shape {double_scale.shape} is not accepted: give one"
        raise RuntimeError(msg)
    by = np.repeat(double_scale, -(-scale.size // double_scale.size))[: scale.size]
    quotient = (scale.reshape(-1).astype(by.dtype) / by).astype(target)
    s = (quotient + scale_zeros.astype(target))[:count]
    codes = unpacked(quantized_data, b.halves).reshape(-1, block_size)
    reals = nf4_levels(b).astype(target)[codes] * s[:, None]
    return np.asarray(reals).reshape(-1)[: int(np.prod(shape))].reshape(shape)
