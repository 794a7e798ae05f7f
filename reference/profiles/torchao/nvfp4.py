"""torchao: NVFP4, e2m1 elements with an e4m3 scale per 16, and a float32 scale above those where there is one.

Real per code: x̂ = decode(q) * (per_tensor_scale * scale).
"""

import ml_dtypes
import numpy as np

from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, decode, encode
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.torchao.floatx import f32_to_floatx_unpacked_0_18
from halfeven.reference.profiles.torchao.mx import pack_uint4, unpack_uint4

__all__ = ["nvfp4_dequantize", "nvfp4_quantize", "nvfp4_quantize_0_18", "per_tensor_amax_to_scale"]

_E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_BLOCK = 16
_SMALLEST, _LARGEST, _LARGEST_ELEMENT = np.float32(2.0**-6), np.float32(448), np.float32(6)
_ONE = np.float32(1)


@formula(
    "torchao.per_tensor_amax_to_scale",
    equation=r"s_t = a / (448 \cdot 6)",
    basis=AsComputed(dtype="float32"),
    source="torchao.prototype.mx_formats.nvfp4_tensor.per_tensor_amax_to_scale",
)
@np.errstate(all="ignore")
def per_tensor_amax_to_scale(amax: Array) -> Array:
    """The scale of a tensor whose largest magnitude is ``amax`` (any float dtype and shape), as float32."""
    return np.asarray(amax.astype(np.float32) / np.float32(2688))


def _blocks(data_hp: Array, block_size: int) -> Array:
    """Float32 blocks of 16, (n_0, the rest / 16, 16)."""
    if data_hp.dtype not in {np.dtype(np.float32), _BFLOAT16}:
        msg = f"data_hp of dtype {data_hp.dtype} is not accepted: give float32 or bfloat16"
        raise AssertionError(msg)
    if block_size != _BLOCK or data_hp.shape[-1] % _BLOCK:
        msg = f"block_size={block_size} is not accepted for shape {data_hp.shape}: 16, a divisor of the last dimension"
        raise AssertionError(msg)
    if data_hp.ndim < 2:  # noqa: PLR2004 - rows and columns
        msg = f"data_hp of shape {data_hp.shape} is not accepted: give at least two dimensions"
        raise RuntimeError(msg)
    count = int(np.prod(data_hp.shape[1:])) // _BLOCK
    return data_hp.astype(np.float32).reshape(data_hp.shape[0], count, _BLOCK)


def _outer(per_tensor_scale: Array) -> Array:
    """One scale; or one per matrix, (n_0, 1, 1), as (n_0, 1)."""
    return per_tensor_scale.reshape(per_tensor_scale.shape[:2])


@formula(
    "torchao.nvfp4_quantize",
    equation=(
        r"s = \mathrm{e4m3}(\mathrm{clamp}((a / 6) / s_t,\ 2^{-6},\ 448)),\quad "
        r"q = \mathrm{e2m1}(\mathrm{clamp}(x * ((1 / s_t) / s),\ -6,\ 6))"
    ),
    basis=AsComputed(dtype="float32"),
    source="torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize",
)
@np.errstate(all="ignore")
def nvfp4_quantize(data_hp: Array, block_size: int = 16, per_tensor_scale: Array | None = None) -> tuple[Array, Array]:
    """Block scales and packed element codes of ``data_hp``; zeros stay zeros, also under a tensor scale of zero.

    Args:
        data_hp: float32 or bfloat16, rank 2 or more; the last dimension a multiple of 16.
        block_size: 16.
        per_tensor_scale: float32, one entry, or (n_0, 1, 1) for one per matrix; a scale, not an amax. None is 1.

    Returns:
        The scales as float8_e4m3fn, (n_0, elements / n_0 / 16), at least 2^-6, NaN where the block has one; two codes
        per byte, the even index in the low half, zero in a block with NaN.

    Raises:
        AssertionError: the dtype, the block size or the last dimension is not accepted.
        RuntimeError: ``data_hp`` has fewer than two dimensions.
    """
    x = _blocks(data_hp, block_size)
    block_scale = np.abs(x).max(axis=-1) / _LARGEST_ELEMENT
    s_t = _ONE if per_tensor_scale is None else _outer(per_tensor_scale)
    ratio = np.where(block_scale == 0, block_scale, block_scale / s_t)
    scale = encode(np.clip(ratio, _SMALLEST, _LARGEST), "float8_e4m3fn", overflow="saturate")
    factor = (_ONE / s_t) / decode(scale, "float8_e4m3fn")
    scaled = np.where(x == 0, x, x * factor[..., None])
    scaled = np.where(np.isnan(scaled), np.float32(0), scaled)
    codes = encode(np.clip(scaled, -_LARGEST_ELEMENT, _LARGEST_ELEMENT), "float4_e2m1fn", overflow="saturate")
    return scale.view(_E4M3), pack_uint4(codes.reshape(data_hp.shape))


@formula(
    "torchao.nvfp4_quantize@0.18",
    equation=r"0 / 0 = \mathrm{NaN}:\ s = \mathrm{NaN}",
    basis=AsComputed(dtype="float32"),
    source="torchao 0.18.0, measured on x86-64, where 0 / 0 is a NaN with the sign bit set",
)
@np.errstate(all="ignore")
def nvfp4_quantize_0_18(
    data_hp: Array, block_size: int = 16, per_tensor_scale: Array | None = None
) -> tuple[Array, Array]:
    """As documented, but a block of zeros over a tensor scale of zero has the scale NaN, and an element of NaN a code.

    The code is the one that ``f32_to_floatx_unpacked@0.18`` gives the bits of the NaN: those of a tensor scale of NaN;
    else of the block's scale, 4 for a NaN that e4m3 has held, with the sign bit where a quotient made it: 12; else 11,
    for a zero times an infinity or an infinity times zero.
    """
    x = _blocks(data_hp, block_size)
    block_scale = np.abs(x).max(axis=-1) / _LARGEST_ELEMENT
    s_t = _ONE if per_tensor_scale is None else _outer(per_tensor_scale)
    scale = encode(np.clip(block_scale / s_t, _SMALLEST, _LARGEST), "float8_e4m3fn", overflow="saturate")
    factor = (_ONE / s_t) / decode(scale, "float8_e4m3fn")
    scaled = np.clip(x * factor[..., None], -_LARGEST_ELEMENT, _LARGEST_ELEMENT)
    is_nan = np.isnan(scaled)
    codes = encode(np.where(is_nan, np.float32(0), scaled), "float4_e2m1fn", overflow="saturate")
    of_outer = f32_to_floatx_unpacked_0_18(np.atleast_1d(s_t), 2, 1).reshape(np.shape(s_t))
    of_block = np.where(np.isnan(block_scale), 4, np.where(np.isnan(block_scale / s_t), 12, 11))
    of_nan = np.where(np.isnan(s_t), of_outer, of_block)
    codes = np.where(is_nan, of_nan[..., None], codes).astype(np.uint8)
    return scale.view(_E4M3), pack_uint4(codes.reshape(data_hp.shape))


@formula(
    "torchao.nvfp4_dequantize",
    equation=r"\hat x = \mathrm{decode}(q) * (s_t * s)",
    basis=AsComputed(dtype="float32, then the output's"),
    source="torchao.prototype.mx_formats.nvfp4_tensor.NVFP4Tensor.dequantize",
)
@np.errstate(all="ignore")
def nvfp4_dequantize(
    qdata: Array,
    scale: Array,
    block_size: int = 16,
    per_tensor_scale: Array | None = None,
    output_dtype: str = "float32",
) -> Array:
    """Reals of packed codes (uint8, rank 2 or 3) as ``output_dtype`` ("float32", "bfloat16", "float16", "float64").

    Args:
        qdata: two codes per byte, as ``nvfp4_quantize`` returns them.
        scale: codes of float8_e4m3fn, as that dtype or as uint8, one per block in the order of the blocks.
        block_size: elements per scale.
        per_tensor_scale: float32, one entry, or (n_0, 1, 1) for one per matrix. None is 1.
        output_dtype: what the float32 product is rounded to.

    Raises:
        RuntimeError: there is not one scale per block.
    """
    numbers = decode(unpack_uint4(qdata), "float4_e2m1fn")
    if numbers.size != scale.size * block_size:
        msg = f"scale of shape {scale.shape} is not accepted: {numbers.size} elements in blocks of {block_size}"
        raise RuntimeError(msg)
    s = decode(scale.view(np.uint8), "float8_e4m3fn").reshape(*numbers.shape[:-1], -1)
    s = s if per_tensor_scale is None else per_tensor_scale * s
    blocks = numbers.reshape(*s.shape, block_size)
    reals: Array = (blocks * s[..., None]).reshape(numbers.shape).astype(FLOAT_DTYPES[output_dtype])
    return reals
