"""Calls for torchao's NVFP4: blocks whose scale is at its bounds or midway, one and two levels, zeros and NaN."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.arrays import step
from halfeven.conformance.calls.registry import Arguments, calls
from halfeven.reference.minifloat import decode

Array = npt.NDArray[Any]
Calls = Iterator[Arguments]

__all__: list[str] = []

_AMAX, _QUANTIZE, _DEQUANTIZE = (
    "torchao.per_tensor_amax_to_scale",
    "torchao.nvfp4_quantize",
    "torchao.nvfp4_dequantize",
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


@calls(_AMAX, "quotient")
def _quotient() -> Calls:
    for dtype in (np.dtype("float32"), _BFLOAT16, np.dtype("float16"), np.dtype("float64")):
        yield {"amax": np.array([1, 2688, 6, 0.1, 3.3, 1e-40, 0, 60000, _INF, _NAN]).astype(dtype)}
    yield {"amax": _scalar(5.0)}


@calls(_QUANTIZE, "one-level")
def _one_level() -> Calls:
    scales = decode(np.arange(8, 127), "float8_e4m3fn", "float32")
    yield {"data_hp": _blocks(6 * scales)}
    yield {"data_hp": _blocks(np.geomspace(0.1, 2000, 40)).astype(_BFLOAT16)}
    middle = 6 * (scales[1:] + scales[:-1]) / 2
    for ulps in (-1, 0, 1):
        yield {"data_hp": _blocks(step(middle.astype(np.float32), np.int64(ulps)))[::2]}


@calls(_QUANTIZE, "two-level")
def _two_level() -> Calls:
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


@calls(_QUANTIZE, "scale-per-matrix")
def _per_matrix() -> Calls:
    x = _blocks(np.geomspace(0.1, 90, 12)).reshape(3, 2, 32)
    yield {"data_hp": x, "per_tensor_scale": _f32(0.1, 0.3, 3.0).reshape(3, 1, 1)}
    yield {"data_hp": x[:1], "per_tensor_scale": _f32(0.7).reshape(1, 1, 1)}


@calls(_QUANTIZE, "scale-bounds")
def _scale_bounds() -> Calls:
    maxima = np.array([1e-45, 1e-38, 1e-10, 0.02, 0.0937, 0.09375, 0.0938, 0.1, 2687, 2688, 2689, 2700, 1e10, 3.4e38])
    yield {"data_hp": _blocks(maxima)}
    for s_t in (1e-5, 0.01, 100.0):
        yield {"data_hp": _blocks(maxima), "per_tensor_scale": _scalar(s_t)}


@calls(_QUANTIZE, "zeros")
def _zeros() -> Calls:
    x = np.zeros((2, 32), np.float32)
    x[0, ::3] = -0.0
    y = x.copy()
    y[0, 1], y[1, 31] = 1, -1e-3
    for s_t in (None, _scalar(0.01)):
        yield {"data_hp": x, "per_tensor_scale": s_t}
        yield {"data_hp": y, "per_tensor_scale": s_t}


@calls(_QUANTIZE, "zero-tensor-scale")
def _zero_tensor_scale() -> Calls:
    x = np.zeros((2, 32), np.float32)
    yield {"data_hp": x, "per_tensor_scale": _scalar(0.0)}
    yield {"data_hp": -x, "per_tensor_scale": _f32(0.0)}
    yield {"data_hp": x.astype(_BFLOAT16).reshape(2, 1, 32), "per_tensor_scale": _f32(0.0, 1.0).reshape(2, 1, 1)}


@calls(_QUANTIZE, "lost-tensor-scale")
def _lost_tensor_scale() -> Calls:
    x = np.zeros((3, 16), np.float32)
    x[0, :4], x[1, 5], x[2, 2:4] = (1, -2, 0, -0.0), 1e-30, (_NAN, 1)
    for s_t in (0.0, 1e-45, 1e-39, _INF, _NAN, -_NAN):
        yield {"data_hp": x, "per_tensor_scale": _scalar(s_t)}
        yield {"data_hp": x.astype(_BFLOAT16), "per_tensor_scale": _f32(s_t)}
    yield {"data_hp": x.reshape(3, 1, 16), "per_tensor_scale": _f32(1e-45, _NAN, 0).reshape(3, 1, 1)}


@calls(_QUANTIZE, "infinity")
def _infinity() -> Calls:
    x = _blocks(_f32(1, 100))
    x[0, 3], x[1, 5] = _INF, -_INF
    for s_t in (None, _scalar(0.5)):
        yield {"data_hp": x, "per_tensor_scale": s_t}


@calls(_QUANTIZE, "nan")
def _nan() -> Calls:
    x = _blocks(_f32(1, 100, 3))
    x[0, 3], x[1, 5], x[1, 6] = _NAN, -_NAN, 0
    for s_t in (None, _scalar(0.5)):
        yield {"data_hp": x, "per_tensor_scale": s_t}


@calls(_QUANTIZE, "shapes")
def _shapes() -> Calls:
    x = _blocks(np.geomspace(0.1, 90, 12))
    for shape in ((1, 192), (12, 16), (3, 64), (2, 3, 32), (2, 1, 3, 32)):
        yield {"data_hp": x.reshape(shape)}


@calls(_QUANTIZE, "refusals")
def _refusals() -> Calls:
    x = np.ones((2, 32), np.float32)
    yield {"data_hp": x.astype(np.float16)}
    yield {"data_hp": x.astype(np.float64)}
    yield {"data_hp": x, "block_size": 32}
    yield {"data_hp": x, "block_size": 8}
    yield {"data_hp": x[:, :24].copy()}
    yield {"data_hp": x[0].copy()}


def _codes(*shape: int) -> Array:
    return ((np.arange(int(np.prod(shape))) * 37) % 256).astype(np.uint8).reshape(shape)


@calls(_DEQUANTIZE, "product")
def _product() -> Calls:
    scale = np.array([8, 56, 63, 126, 0, 1, 127, 255], np.uint8)
    for s_t, dtype in product((None, 0.1, 1e-30, 1e36), ("float32", "bfloat16", "float16")):
        yield {"qdata": _codes(8, 8), "scale": scale.reshape(8, 1), "output_dtype": dtype} | {
            "per_tensor_scale": None if s_t is None else _scalar(s_t)
        }
    every = np.arange(127).astype(np.uint8)
    yield {"qdata": _codes(127, 8), "scale": every.reshape(127, 1), "per_tensor_scale": _scalar(0.3)}


@calls(_DEQUANTIZE, "shapes")
def _dequantize_shapes() -> Calls:
    scale = (np.arange(12) * 9 + 8).astype(np.uint8)
    for shape, s_shape in (((12, 8), (12, 1)), ((2, 48), (2, 6)), ((3, 2, 16), (3, 2, 2))):
        yield {"qdata": _codes(*shape), "scale": scale.reshape(s_shape)}
    s_t = _f32(0.1, 0.3, 3.0).reshape(3, 1, 1)
    yield {"qdata": _codes(3, 2, 16), "scale": scale.reshape(3, 2, 2), "per_tensor_scale": s_t}


@calls(_DEQUANTIZE, "refusals")
def _dequantize_refusals() -> Calls:
    yield {"qdata": _codes(2, 16), "scale": np.ones((2, 1), np.uint8)}
    yield {"qdata": _codes(2, 16), "scale": np.ones((3, 2), np.uint8)}
