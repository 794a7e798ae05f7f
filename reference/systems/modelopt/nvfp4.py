"""ModelOpt: NVFP4QTensor, e2m1 elements with an e4m3 scale per block and a float32 scale per tensor.

Real per code: x̂ = decode(q) * (scale * double_scale).
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, decode, encode
from halfeven.reference.nibbles import ALONG_ROWS, nibbles, packed, unpacked

__all__ = ["Nvfp4Codes", "Nvfp4Values", "nvfp4_dequantize", "nvfp4_quantize"]

_F32 = np.float32
_E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
_TOP, _TOP_SCALE, _LEAST_SCALE = _F32(6), _F32(448), _F32(2.0**-9)
_NAN = 127  # of e4m3


@dataclass(frozen=True)
class Nvfp4Codes(Behaviour):
    """The choices in making codes of NVFP4."""

    zeros: str = choice({
        "kept": "gives a block of zeros the scale 1 under a tensor scale of zero too",
        "divided": "divides zeros by a tensor scale of zero, so that the block's scale is NaN",
    })  # fmt: skip
    negative_zero: str = choice({
        "kept": "gives a zero with a sign the code of minus zero",
        "lost": "gives a zero with a sign the code of zero",
    })  # fmt: skip
    rounding: str = roundings("elements")
    halves: str = nibbles("low-first", ALONG_ROWS)


@dataclass(frozen=True)
class Nvfp4Values(Behaviour):
    """The choices in making elements of codes of NVFP4."""

    negative_zero: str = choice({
        "kept": "makes minus zero of its code",
        "lost": "makes plus zero of the code of minus zero",
    })  # fmt: skip
    rest: str = choice({
        "cut": "cuts off what the last dimension was filled up with",
        "refused": "refuses codes of which the last dimension was filled up",
    })  # fmt: skip
    halves: str = nibbles("low-first", ALONG_ROWS)


@formula(
    "modelopt/nvfp4_quantize",
    equation=r"s_2 = \max |x| / 2688,\quad s = \mathrm{e4m3}(\mathrm{clamp}(\max_b |x| / (6\,s_2),\ 2^{-9},\ 448)),"
    r"\quad q = \mathrm{e2m1}(x / (s\,s_2))",
    basis=AsComputed(dtype="float32"),
    source="modelopt.torch.quantization.qtensor.NVFP4QTensor.quantize",
    behaviour=Nvfp4Codes(),
    versions={
        "0.47": (Nvfp4Codes(zeros="divided", negative_zero="lost"), "nvidia-modelopt 0.47.0 on the CPU, measured"),
    },
)
@np.errstate(all="ignore")
def nvfp4_quantize(
    b: Nvfp4Codes,
    input: Array,  # noqa: A002 - the library's own word
    block_size: int = 16,
    weights_scaling_factor_2: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Packed codes, block scales and the tensor scale of ``input``, whose last dimension is filled up with zeros.

    Args:
        input: float32, float16 or bfloat16, of rank 1 or more.
        block_size: elements of the last dimension with one scale, an even number.
        weights_scaling_factor_2: the tensor scale, float32, (); by default the largest magnitude over 2688.

    Returns:
        Two codes per byte, the even index in the low half; scales as float8_e4m3fn, (..., blocks), at least 2^-9, 1 of
        a block whose largest magnitude over the tensor scale is zero; the tensor scale, float32. An element of NaN has
        the code of 6, its block the scale NaN.
    """
    x = _filled(input.astype(_F32), block_size)
    s_2 = np.max(np.abs(x)) / _F32(2688) if weights_scaling_factor_2 is None else weights_scaling_factor_2
    s_2 = np.asarray(s_2, _F32)
    amax = np.max(np.abs(x), axis=-1)
    ratio = amax / (_TOP * s_2)
    none = (ratio == 0) | (amax == 0) if b.zeros == "kept" else ratio == 0
    ratio = np.clip(np.where(none, _F32(1), ratio), _LEAST_SCALE, _TOP_SCALE)
    scale = encode(ratio, "float8_e4m3fn", overflow="saturate").astype(np.uint8)
    scale = np.where(np.isnan(ratio), np.uint8(_NAN), scale)
    scaled = x / (decode(scale, "float8_e4m3fn", "float32") * s_2)[..., None]
    scaled = np.where(x == 0, x, scaled) if b.zeros == "kept" else scaled
    magnitude = np.where(np.isnan(scaled), _TOP, np.abs(scaled))
    negative = np.signbit(scaled) & ~np.isnan(scaled) if b.negative_zero == "kept" else scaled < 0
    signed = np.where(negative, -magnitude, magnitude)
    codes = encode(signed, "float4_e2m1fn", overflow="saturate", rounding=b.rounding)
    codes = codes.reshape(*input.shape[:-1], -1)
    return packed(codes, b.halves), scale.view(_E4M3), s_2


def _filled(x: Array, block_size: int) -> Array:
    """The last dimension as blocks, the last of which is filled up with zeros."""
    filling = [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % block_size)]
    return np.pad(x, filling).reshape(*x.shape[:-1], -1, block_size)


@formula(
    "modelopt/nvfp4_dequantize",
    equation=r"\hat x = \mathrm{decode}(q) * (s * s_2)",
    basis=AsComputed(dtype="float32, then the dtype asked for"),
    source="modelopt.torch.quantization.qtensor.NVFP4QTensor.dequantize",
    behaviour=Nvfp4Values(),
    versions={
        "0.47": (Nvfp4Values(negative_zero="lost", rest="refused"), "nvidia-modelopt 0.47.0 on the CPU, measured"),
    },
)
@np.errstate(all="ignore")
def nvfp4_dequantize(
    b: Nvfp4Values,
    quantized_data: Array,
    scale: Array,
    double_scale: Array,
    shape: Shape,
    block_size: int = 16,
    dtype: str = "float32",
) -> Array:
    """Elements of ``shape`` as ``dtype``.

    Args:
        b: what becomes of minus zero, and of a last block that was filled up; the order of two codes.
        quantized_data: bytes of two codes as ``nvfp4_quantize`` gives them.
        scale: float8_e4m3fn or float32, (..., blocks).
        double_scale: float32, ().
        shape: that of the elements.
        block_size: elements of a block.
        dtype: "float32", "float16" or "bfloat16".

    Raises:
        RuntimeError: the release refuses a last dimension that is no multiple of ``block_size``.
    """
    if b.rest == "refused" and shape[-1] % block_size:
        msg = f"shape={shape} is not accepted: give a last dimension of whole blocks of {block_size}"
        raise RuntimeError(msg)
    codes = unpacked(quantized_data, b.halves).reshape(*scale.shape, block_size)
    numbers = decode(codes, "float4_e2m1fn", "float32")
    numbers = numbers + _F32(0) if b.negative_zero == "lost" else numbers
    s = decode(scale.view(np.uint8), "float8_e4m3fn", "float32") if scale.dtype == _E4M3 else scale
    reals = numbers * (s * double_scale)[..., None]
    whole = np.asarray(reals).reshape(*scale.shape[:-1], -1)
    return whole[..., : shape[-1]].reshape(shape).astype(FLOAT_DTYPES[dtype])
