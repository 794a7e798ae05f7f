"""ModelOpt: MXFP4QTensor, e2m1 elements with a power of two per block.

A scale code E is 2^(E - 127), the code 255 NaN. Real per code: x̂ = decode(q) * 2^(E - 127).
"""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, decode, encode
from halfeven.reference.nibbles import ALONG_ROWS, nibbles, packed, unpacked
from halfeven.reference.systems.torchao.mx import ceil_log2

__all__ = ["Mxfp4Codes", "Mxfp4Values", "PackedValues", "mxfp4_dequantize", "mxfp4_quantize", "powers"]

_F32 = np.float32
_BIAS, _NAN = 127, 255
_MINUS_ZERO = 8


@dataclass(frozen=True)
class Mxfp4Codes(Behaviour):
    """The choices in making codes of MXFP4."""

    ceil: str = choice({
        "exact": "takes the next power of two, however close the quotient lies above one",
        "rounded-logarithm": "rounds the quotient's logarithm to float32 before it is rounded up",
    })  # fmt: skip
    zero: str = choice({
        "signed": "keeps the sign of a zero",
        "minus": "gives a zero of either sign the code of minus zero",
    })  # fmt: skip
    infinity: str = choice({
        "largest": "gives a block with an infinity the largest scale, and the infinity the largest element",
        "zeros": "gives a block with an infinity the scale code 0, and all of its elements the code of minus zero",
    })  # fmt: skip
    nan: str = choice({
        "nan": "gives a block with NaN the scale code 255, which is NaN",
        "zeros": "gives a block with NaN the scale code 0, and all of its elements the code of minus zero",
    })  # fmt: skip
    rounding: str = roundings("elements")
    halves: str = nibbles("low-first", ALONG_ROWS)


@dataclass(frozen=True)
class Mxfp4Values(Behaviour):
    """The choices in making elements of codes."""

    last: str = choice({
        "nan": "takes the scale code 255 for NaN",
        "infinity": "takes the scale code 255 for infinity",
    })  # fmt: skip


@dataclass(frozen=True)
class PackedValues(Mxfp4Values):
    """The choices in making elements of codes of MXFP4, two to a byte."""

    halves: str = nibbles("low-first", ALONG_ROWS)


@formula(
    "modelopt/mxfp4_quantize",
    equation=r"E = 127 + \max(\lceil \log_2 (\max_b |x| / 6) \rceil,\ -127),\quad q = \mathrm{e2m1}(x / 2^{E - 127})",
    basis=AsComputed(dtype="float32"),
    source="modelopt.torch.quantization.qtensor.MXFP4QTensor.quantize; OCP MX 1.0, sections 5.3, 5.4",
    behaviour=Mxfp4Codes(),
    versions={
        "0.47": (
            Mxfp4Codes("rounded-logarithm", "minus", "zeros", "zeros", "half-to-zero"),
            "nvidia-modelopt 0.47.0 on the CPU, measured on x86-64",
        ),
    },
)
@np.errstate(all="ignore")
def mxfp4_quantize(b: Mxfp4Codes, input: Array, block_size: int = 32) -> tuple[Array, Array]:  # noqa: A002 - its word
    """Packed codes and scale codes of ``input``, taken as one run of blocks.

    Args:
        input: float32, float16 or bfloat16, its last dimension even.
        block_size: elements with one scale, which divides their number.

    Returns:
        Two codes per byte, the even index in the low half, (..., n / 2); the scale codes, uint8, (blocks, 1).

    Raises:
        RuntimeError: ``block_size`` does not divide the number of elements.
    """
    if input.size % block_size:
        msg = f"block_size={block_size} is not accepted: give a divisor of {input.size} elements"
        raise RuntimeError(msg)
    x = input.astype(_F32).reshape(-1, block_size)
    amax = np.max(np.abs(x), axis=-1, keepdims=True)
    exponent = ceil_log2(amax / _F32(6), rounded=b.ceil == "rounded-logarithm")
    exponent = np.where(np.isnan(amax), 0, np.maximum(exponent, -_BIAS))
    # The quotient of a float32 by a power of two, which only below the normal numbers is rounded.
    quotient = np.ldexp(x.astype(np.float64), -exponent).astype(_F32)
    numbers = np.where(np.isnan(quotient), 0, quotient)
    codes = encode(numbers, "float4_e2m1fn", overflow="saturate", rounding=b.rounding)
    codes = np.where(numbers == 0, np.uint8(_MINUS_ZERO), codes) if b.zero == "minus" else codes
    codes = np.where(np.isnan(amax), np.uint8(0), codes)
    scale = np.where(np.isnan(amax), _NAN, exponent + _BIAS)
    lost = (np.isinf(amax) & (b.infinity == "zeros")) | (np.isnan(amax) & (b.nan == "zeros"))
    codes, scale = np.where(lost, _MINUS_ZERO, codes).astype(np.uint8), np.where(lost, 0, scale).astype(np.uint8)
    codes = codes.reshape(input.shape)
    return packed(codes, b.halves), scale


@formula(
    "modelopt/mxfp4_dequantize",
    equation=r"\hat x = \mathrm{decode}(q) * 2^{E - 127}",
    basis=AsComputed(dtype="float32, then the dtype asked for"),
    source="modelopt.torch.quantization.qtensor.MXFP4QTensor.dequantize; OCP MX 1.0, section 5",
    behaviour=PackedValues(),
    versions={"0.47": (PackedValues(last="infinity"), "nvidia-modelopt 0.47.0 on the CPU, measured")},
)
@np.errstate(all="ignore")
def mxfp4_dequantize(
    b: PackedValues, quantized_data: Array, scale: Array, block_size: int = 32, dtype: str = "float32"
) -> Array:
    """Elements of packed codes, (..., 2 n), as ``dtype``.

    Args:
        b: what the last scale code is, and the order of two codes.
        quantized_data: bytes of two codes, uint8, the first in the low half.
        scale: scale codes, uint8, one per block in the order of the blocks.
        block_size: elements of a block.
        dtype: "float32", "float16" or "bfloat16".
    """
    codes = unpacked(quantized_data, b.halves)
    numbers = decode(codes, "float4_e2m1fn", "float32").reshape(-1, block_size)
    reals = (numbers * powers(b, scale).reshape(-1, 1)).reshape(*quantized_data.shape[:-1], -1)
    return reals.astype(FLOAT_DTYPES[dtype])


def powers(b: Mxfp4Values, scale: Array) -> Array:
    """The powers of two that scale codes are, in float32."""
    power = np.ldexp(_F32(1), scale.astype(np.int32) - _BIAS)
    return np.where(scale == _NAN, _F32(np.nan) if b.last == "nan" else _F32(np.inf), power)
