"""torchao: NVFP4. Calls: blocks whose scale is at its bounds or midway, one and two levels, zeros and NaN."""

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, calls, expected, measured
from halfeven.conformance.systems.torchao.by_release import absent, by_release
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import decode

__all__ = ["ANSWERS"]

_AMAX, _QUANTIZE, _DEQUANTIZE = (
    "torchao/per_tensor_amax_to_scale",
    "torchao/nvfp4_quantize",
    "torchao/nvfp4_dequantize",
)
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_INF, _NAN = np.inf, np.nan
# About the midpoints of e2m1, relative to the largest number.
_STEPS = np.array([6, 0.24, 0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 5.1, -0.2, -0.75, -2.5, -5, -6]) / 6


def _f32(*values: float) -> Array:
    return np.array(values, np.float32)


def _blocks(maxima: Array) -> Array:
    with np.errstate(all="ignore"):
        return (maxima.astype(np.float32)[:, None] * _STEPS.astype(np.float32)).astype(np.float32)


def _scalar(value: float) -> Array:
    return np.array(value, np.float32)


@measured(_AMAX, "torchao.prototype.mx_formats.nvfp4_tensor.per_tensor_amax_to_scale")
def quotient() -> Calls:
    """The scale of a tensor is its largest magnitude over 2688, the product of the largest numbers of e4m3 and e2m1, in
    float32."""
    for dtype in (np.dtype("float32"), _BFLOAT16, np.dtype("float16"), np.dtype("float64")):
        yield {"amax": np.array([1, 2688, 6, 0.1, 3.3, 1e-40, 0, 60000, _INF, _NAN]).astype(dtype)}
    yield {"amax": _scalar(5.0)}


@measured(_QUANTIZE, "torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize")
def one_level() -> Calls:
    """A block's scale is its largest magnitude over 6, rounded to e4m3; an element is multiplied by the float32
    reciprocal of the rounded scale, and rounded to e2m1."""
    scales = decode(np.arange(8, 127), "float8_e4m3fn", "float32")
    yield {"data_hp": _blocks(6 * scales)}
    yield {"data_hp": _blocks(np.geomspace(0.1, 2000, 40)).astype(_BFLOAT16)}
    middle = 6 * (scales[1:] + scales[:-1]) / 2
    for ulps in (-1, 0, 1):
        yield {"data_hp": _blocks(step(middle.astype(np.float32), np.int64(ulps)))[::2]}


@measured(_QUANTIZE, "torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize: per_tensor_scale")
def two_level() -> Calls:
    """With a tensor scale the block's scale is divided by it before it is rounded, and an element is multiplied by the
    reciprocal of the tensor scale, which has been divided by the rounded one."""
    for amax in (1.0, 3.3, 2688.0, 1e-10, 1e10, 3e38):
        s_t = np.float32(amax) / np.float32(2688)
        yield {
            "data_hp": _blocks(amax * np.array([1, 0.7, 0.31, 0.01, 1e-3, 1e-6])),
            "per_tensor_scale": np.asarray(s_t),
        }
    x = _blocks(np.geomspace(0.1, 90, 24))
    for outer in (0.1, 0.3, 41.0, 1e-30, 1e30):
        yield {"data_hp": x, "per_tensor_scale": _scalar(outer)}
        yield {"data_hp": x.astype(_BFLOAT16), "per_tensor_scale": _f32(outer)}


@calls(_QUANTIZE, "two-level")
def two_level_midpoints() -> Calls:
    """Quotients midway between two numbers under both scales."""
    scales = decode(np.arange(8, 127), "float8_e4m3fn", "float32").astype(np.float64)
    for s_t in (0.1, 0.3, 41.0):
        middle = 3 * (scales[1:] + scales[:-1]) * np.float32(s_t)
        for ulps in (-1, 0, 1):
            x = _blocks(step(middle.astype(np.float32), np.int64(ulps)))
            yield {"data_hp": x, "per_tensor_scale": _scalar(s_t)}


@measured(_QUANTIZE, "torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize: per_tensor_scale")
def scale_per_matrix() -> Calls:
    """A stack of matrices may have a tensor scale for each."""
    x = _blocks(np.geomspace(0.1, 90, 12)).reshape(3, 2, 32)
    yield {"data_hp": x, "per_tensor_scale": _f32(0.1, 0.3, 3.0).reshape(3, 1, 1)}
    yield {"data_hp": x[:1], "per_tensor_scale": _f32(0.7).reshape(1, 1, 1)}


@measured(_QUANTIZE, "torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize")
def scale_bounds() -> Calls:
    """The scale of a block lies in [2^-6, 448], the normal numbers of e4m3, and elements beyond 6 become 6."""
    maxima = np.array([1e-45, 1e-38, 1e-10, 0.02, 0.0937, 0.09375, 0.0938, 0.1, 2687, 2688, 2689, 2700, 1e10, 3.4e38])
    yield {"data_hp": _blocks(maxima)}
    for s_t in (1e-5, 0.01, 100.0):
        yield {"data_hp": _blocks(maxima), "per_tensor_scale": _scalar(s_t)}


@measured(_QUANTIZE, "torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize")
def zeros() -> Calls:
    """A block of zeros has the smallest scale, and its elements stay zeros of their sign."""
    x = np.zeros((2, 32), np.float32)
    x[0, ::3] = -0.0
    y = x.copy()
    y[0, 1], y[1, 31] = 1, -1e-3
    for s_t in (None, _scalar(0.01)):
        yield {"data_hp": x, "per_tensor_scale": s_t}
        yield {"data_hp": y, "per_tensor_scale": s_t}


@expected(
    _QUANTIZE,
    "torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize: a tensor of zeros is representable",
    aspect="zero-tensor",
)
def zero_tensor_scale() -> Calls:
    """Zeros under a tensor scale of zero, which a tensor of zeros has, stay zeros with a finite scale."""
    x = np.zeros((2, 32), np.float32)
    yield {"data_hp": x, "per_tensor_scale": _scalar(0.0)}
    yield {"data_hp": -x, "per_tensor_scale": _f32(0.0)}
    yield {"data_hp": x.astype(_BFLOAT16).reshape(2, 1, 32), "per_tensor_scale": _f32(0.0, 1.0).reshape(2, 1, 1)}


@expected(_QUANTIZE, "no document says what such a tensor scale gives")
def lost_tensor_scale() -> Calls:
    """Under a tensor scale that has no reciprocal, or of NaN, a zero stays a zero."""
    x = np.zeros((3, 16), np.float32)
    x[0, :4], x[1, 5], x[2, 2:4] = (1, -2, 0, -0.0), 1e-30, (_NAN, 1)
    for s_t in (0.0, 1e-45, 1e-39, _INF, _NAN, -_NAN):
        yield {"data_hp": x, "per_tensor_scale": _scalar(s_t)}
        yield {"data_hp": x.astype(_BFLOAT16), "per_tensor_scale": _f32(s_t)}
    yield {"data_hp": x.reshape(3, 1, 16), "per_tensor_scale": _f32(1e-45, _NAN, 0).reshape(3, 1, 1)}
    x = np.zeros((1, 16), np.float32)
    x[0, 3] = 1e-45  # a sixth of which is zero
    yield {"data_hp": x, "per_tensor_scale": _scalar(0.0)}


@measured(_QUANTIZE, "torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize")
def infinity() -> Calls:
    """An infinity becomes the largest element, of a block whose scale is the largest."""
    x = _blocks(_f32(1, 100))
    x[0, 3], x[1, 5] = _INF, -_INF
    for s_t in (None, _scalar(0.5)):
        yield {"data_hp": x, "per_tensor_scale": s_t}


@measured(
    _QUANTIZE,
    "torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize; its elements are without meaning",
    aspect="nan-block",
)
def nan() -> Calls:
    """A block with NaN has the scale NaN."""
    x = _blocks(_f32(1, 100, 3))
    x[0, 3], x[1, 5], x[1, 6] = _NAN, -_NAN, 0
    for s_t in (None, _scalar(0.5)):
        yield {"data_hp": x, "per_tensor_scale": s_t}


@measured(_QUANTIZE, "torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize")
def shapes() -> Calls:
    """Blocks run along the last dimension; scales have a row for each entry of the first dimension."""
    x = _blocks(np.geomspace(0.1, 90, 12))
    for shape in ((1, 192), (12, 16), (3, 64), (2, 3, 32), (2, 1, 3, 32)):
        yield {"data_hp": x.reshape(shape)}


@measured(_QUANTIZE, "torchao.prototype.mx_formats.nvfp4_tensor.nvfp4_quantize")
def refusals() -> Calls:
    """The input is float32 or bfloat16 of two dimensions or more, the block has 16 elements and divides the last
    dimension."""
    x = np.ones((2, 32), np.float32)
    yield {"data_hp": x.astype(np.float16)}
    yield {"data_hp": x.astype(np.float64)}
    yield {"data_hp": x, "block_size": 32}
    yield {"data_hp": x, "block_size": 8}
    yield {"data_hp": x[:, :24].copy()}
    yield {"data_hp": x[0].copy()}


def _codes(*shape: int) -> Array:
    return ((np.arange(int(np.prod(shape))) * 37) % 256).astype(np.uint8).reshape(shape)


@measured(_DEQUANTIZE, "torchao.prototype.mx_formats.nvfp4_tensor.NVFP4Tensor.dequantize")
def _product() -> Calls:
    """A real is the element times the float32 product of the tensor scale and the block's scale, rounded to the output
    dtype."""
    scale = np.array([8, 56, 63, 126, 0, 1, 127, 255], np.uint8)
    for s_t, dtype in product((None, 0.1, 1e-30, 1e36), ("float32", "bfloat16", "float16")):
        yield {"qdata": _codes(8, 8), "scale": scale.reshape(8, 1), "output_dtype": dtype} | {
            "per_tensor_scale": None if s_t is None else _scalar(s_t)
        }
    every = np.arange(127).astype(np.uint8)
    yield {"qdata": _codes(127, 8), "scale": every.reshape(127, 1), "per_tensor_scale": _scalar(0.3)}


@measured(_DEQUANTIZE, "torchao.prototype.mx_formats.nvfp4_tensor.NVFP4Tensor.dequantize", aspect="shapes")
def dequantize_shapes() -> Calls:
    """The low half of a byte is the element of the even index, and each block has its scale."""
    scale = (np.arange(12) * 9 + 8).astype(np.uint8)
    for shape, s_shape in (((12, 8), (12, 1)), ((2, 48), (2, 6)), ((3, 2, 16), (3, 2, 2))):
        yield {"qdata": _codes(*shape), "scale": scale.reshape(s_shape)}
    yield {"qdata": _codes(3, 16), "scale": scale.reshape(3, 4), "block_size": 8}
    yield {"qdata": _codes(12, 16), "scale": scale.reshape(12, 1), "block_size": 32, "per_tensor_scale": _scalar(0.3)}
    yield {"qdata": _codes(2, 48), "scale": scale}
    s_t = _f32(0.1, 0.3, 3.0).reshape(3, 1, 1)
    yield {"qdata": _codes(3, 2, 16), "scale": scale.reshape(3, 2, 2), "per_tensor_scale": s_t}


@measured(_DEQUANTIZE, "torchao.prototype.mx_formats.nvfp4_tensor.NVFP4Tensor.dequantize", aspect="refusals")
def dequantize_refusals() -> Calls:
    """There is one scale for each block."""
    yield {"qdata": _codes(2, 16), "scale": np.ones((2, 1), np.uint8)}
    yield {"qdata": _codes(2, 16), "scale": np.ones((3, 2), np.uint8)}


def _per_tensor_amax_to_scale(amax: Any) -> Any:
    from torchao.prototype.mx_formats.nvfp4_tensor import per_tensor_amax_to_scale

    return per_tensor_amax_to_scale(amax)


def _nvfp4_quantize(data_hp: Any, block_size: int = 16, per_tensor_scale: Any = None) -> Any:
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize

    return nvfp4_quantize(data_hp, block_size, per_tensor_scale)


def _nvfp4_dequantize(
    qdata: Any, scale: Any, block_size: int = 16, per_tensor_scale: Any = None, output_dtype: str = "float32"
) -> Any:
    import torch
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor

    dtype = getattr(torch, output_dtype)
    codes = scale.view(torch.float8_e4m3fn)
    return NVFP4Tensor(qdata, codes, block_size, dtype, per_tensor_scale).dequantize(dtype)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torchao/per_tensor_amax_to_scale": _per_tensor_amax_to_scale,
    "torchao/nvfp4_quantize": _nvfp4_quantize,
    "torchao/nvfp4_dequantize": _nvfp4_dequantize,
}
ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(_FUNCTIONS, v0_11=dict.fromkeys(_FUNCTIONS, absent)),
}
