"""torchao: NVFP4, e2m1 elements with an e4m3 scale per 16, and a float32 scale above those where there is one.

Real per code: x̂ = decode(q) * (per_tensor_scale * scale).
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, FLOAT_FORMATS, decode, encode
from halfeven.reference.systems.torchao.floatx import nan_as_a_normal_number
from halfeven.reference.systems.torchao.mx import Halves, pack_uint4, unpack_uint4

__all__ = ["Nvfp4", "Nvfp4Reals", "OuterScale", "nvfp4_dequantize", "nvfp4_quantize", "per_tensor_amax_to_scale"]

_E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_BLOCK = 16
_LARGEST, _LARGEST_ELEMENT = np.float32(448), np.float32(6)
_ONE = np.float32(1)


@dataclass(frozen=True)
class OuterScale(Behaviour):
    """The choices in making the scale of a tensor."""

    division: str = choice({
        "divide": "divides the magnitude by 2688",
        "reciprocal": "multiplies the magnitude by the rounded reciprocal of 2688",
    })  # fmt: skip
    arithmetic: str = choice({
        "float32": "computes the scale in float32",
        "input": "computes the scale in the input's dtype",
    })  # fmt: skip


@dataclass(frozen=True)
class Nvfp4(Halves):
    """The choices in making blocks of e2m1."""

    least: float = choice({
        2.0**-6: "takes 2^-6 as the least scale of a block",
        2.0**-9: "takes 2^-9, the smallest number of e4m3, as the least scale of a block",
        0.0: "lets the scale of a block be zero",
    })  # fmt: skip
    ratio: str = choice({
        "twice": "divides the magnitude by 6, and then by the tensor scale",
        "product": "divides the magnitude by the product of 6 and the tensor scale",
    })  # fmt: skip
    factor: str = choice({
        "reciprocal": "multiplies elements by the reciprocal of the tensor scale over the block's",
        "product": "multiplies elements by the reciprocal of the product of both scales",
        "divide": "divides elements by the product of both scales",
    })  # fmt: skip
    scale_rounding: str = choice({  # no scale is negative
        "half-even": "rounds scales of blocks to e4m3, ties to even",
        "half-away": "rounds scales of blocks to e4m3, ties up",
        "half-to-zero": "rounds scales of blocks to e4m3, ties down",
        "toward-zero": "rounds scales of blocks to e4m3 down",
        "ceil": "rounds scales of blocks to e4m3 up",
    })  # fmt: skip
    rounding: str = roundings("elements")
    zeros: str = choice({
        "kept": "keeps zeros, and the least scale of their block, under any tensor scale",
        "computed": "divides and multiplies zeros as any number, so that zero over zero is NaN",
    })  # fmt: skip
    nan: str = choice({
        "zero": "gives an element of NaN the code zero",
        "bits": "rounds the bits of NaN as if it were a normal number",
    })  # fmt: skip
    nan_magnitude: str = choice({
        "propagated": "gives a block with NaN the scale NaN",
        "ignored": "leaves NaN out of the magnitude",
    })  # fmt: skip


@dataclass(frozen=True)
class Nvfp4Reals(Halves):
    """The choices in making reals of blocks."""

    order: str = choice({
        "scales-first": "multiplies the two scales first",
        "elements-first": "multiplies an element by the scale of its block first",
    })  # fmt: skip
    product: str = choice({
        "float32": "computes the product in float32",
        "output": "computes the product in the output dtype",
    })  # fmt: skip


@formula(
    "torchao/per_tensor_amax_to_scale",
    equation=r"s_t = a / (448 \cdot 6)",
    basis=AsComputed(dtype="float32"),
    source="torchao.prototype.mx_formats.nvfp4_tensor.per_tensor_amax_to_scale",
    behaviour=OuterScale(),
)
@np.errstate(all="ignore")
def per_tensor_amax_to_scale(b: OuterScale, amax: Array) -> Array:
    """The scale of a tensor whose largest magnitude is ``amax`` (any float dtype and shape), as float32."""
    wide = np.dtype(np.float32) if b.arithmetic == "float32" else amax.dtype
    a, top = amax.astype(wide), np.asarray(2688, wide)
    return np.asarray(a / top if b.division == "divide" else a * (np.ones((), wide) / top)).astype(np.float32)


def _blocks(data_hp: Array, block_size: int) -> Array:
    """Blocks of 16, (n_0, the rest / 16, 16)."""
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
    return data_hp.reshape(data_hp.shape[0], count, _BLOCK)


def _outer(per_tensor_scale: Array) -> Array:
    """One scale; or one per matrix, (n_0, 1, 1), as (n_0, 1)."""
    return per_tensor_scale.reshape(per_tensor_scale.shape[:2])


@formula(
    "torchao/nvfp4_quantize",
    equation=(
        r"s = \mathrm{e4m3}(\mathrm{clamp}((a / 6) / s_t,\ 2^{-6},\ 448)),\quad "
        r"q = \mathrm{e2m1}(\mathrm{clamp}(x * ((1 / s_t) / s),\ -6,\ 6))"
    ),
    basis=AsComputed(dtype="float32"),
    source="torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize",
    behaviour=Nvfp4(),
    versions={
        "0.18": (
            Nvfp4(zeros="computed", nan="bits"),
            "torchao 0.18.0, measured on x86-64, where 0 / 0 is a NaN with the sign bit set",
        ),
    },
)
@np.errstate(all="ignore")
def nvfp4_quantize(
    b: Nvfp4, data_hp: Array, block_size: int = 16, per_tensor_scale: Array | None = None
) -> tuple[Array, Array]:
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
    amax = (np.max if b.nan_magnitude == "propagated" else np.fmax.reduce)(np.abs(x), axis=-1)
    s_t = np.asarray(_ONE) if per_tensor_scale is None else _outer(per_tensor_scale)
    ratio = amax / _LARGEST_ELEMENT / s_t if b.ratio == "twice" else amax / (_LARGEST_ELEMENT * s_t)
    ratio = np.where(amax == 0, amax, ratio) if b.zeros == "kept" else ratio
    scale = encode(np.clip(ratio, b.least, _LARGEST), "float8_e4m3fn", overflow="saturate", rounding=b.scale_rounding)
    scaled = _scaled(b, x, s_t, decode(scale, "float8_e4m3fn"))
    is_nan = np.isnan(scaled)
    codes = encode(np.where(is_nan, 0, scaled), "float4_e2m1fn", overflow="saturate", rounding=b.rounding)
    if b.nan == "bits":
        codes = np.where(is_nan, _code_of_nan(amax, s_t)[..., None], codes).astype(np.uint8)
    return scale.view(_E4M3), pack_uint4(b, codes.reshape(data_hp.shape))


def _scaled(b: Nvfp4, x: Array, s_t: Array, s: Array) -> Array:
    """Elements over both scales; zeros stay where ``b`` keeps them."""
    match b.factor:
        case "reciprocal":
            scaled = x * ((_ONE / s_t) / s)[..., None]
        case "product":
            scaled = x * (_ONE / (s_t * s))[..., None]
        case _:
            scaled = x / (s_t * s)[..., None]
    return np.where(x == 0, x, scaled) if b.zeros == "kept" else scaled


def _code_of_nan(amax: Array, s_t: Array) -> Array:
    """The code that the bits of a NaN leave in each block.

    They are those of a tensor scale of NaN; else of the block's scale, 4 for a NaN that e4m3 has held, with the sign
    bit where a quotient made it: 12; else 11, for a zero times an infinity or an infinity times zero.
    """
    of_outer = nan_as_a_normal_number(np.atleast_1d(s_t), FLOAT_FORMATS["float4_e2m1fn"])
    of_block = np.where(np.isnan(amax), 4, np.where(np.isnan(amax / _LARGEST_ELEMENT / s_t), 12, 11))
    return np.where(np.isnan(s_t), of_outer, of_block)


@formula(
    "torchao/nvfp4_dequantize",
    equation=r"\hat x = \mathrm{decode}(q) * (s_t * s)",
    basis=AsComputed(dtype="float32, then the output's"),
    source="torchao.prototype.mx_formats.nvfp4_tensor.NVFP4Tensor.dequantize",
    behaviour=Nvfp4Reals(),
)
@np.errstate(all="ignore")
def nvfp4_dequantize(
    b: Nvfp4Reals,
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
    numbers = decode(unpack_uint4(b, qdata), "float4_e2m1fn")
    if numbers.size != scale.size * block_size:
        msg = f"scale of shape {scale.shape} is not accepted: {numbers.size} elements in blocks of {block_size}"
        raise RuntimeError(msg)
    s = decode(scale.view(np.uint8), "float8_e4m3fn").reshape(*numbers.shape[:-1], -1)
    wide = np.dtype(np.float32) if b.product == "float32" else FLOAT_DTYPES[output_dtype]
    blocks, s = numbers.reshape(*s.shape, block_size).astype(wide), s.astype(wide)
    s_t = None if per_tensor_scale is None else per_tensor_scale.astype(wide)
    if b.order == "scales-first" or s_t is None:
        reals = blocks * (s if s_t is None else s_t * s)[..., None]
    else:
        reals = (blocks * s[..., None]) * s_t[..., None]
    return np.asarray(reals).reshape(numbers.shape).astype(FLOAT_DTYPES[output_dtype])
