"""Calls for torchao's float8 of training: magnitudes at their bound, scales about powers of two, both granularities."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.arrays import step
from halfeven.conformance.calls.registry import Arguments, calls
from halfeven.reference.minifloat import FLOAT_FORMATS, decode

Array = npt.NDArray[Any]
Calls = Iterator[Arguments]

__all__: list[str] = []

_AMAX, _SCALE, _TO, _FROM = (
    "torchao.amax_to_scale",
    "torchao.tensor_to_scale",
    "torchao.hp_tensor_and_scale_to_float8",
    "torchao.to_original_precision",
)
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_DTYPES = (np.dtype("float32"), np.dtype("float16"), np.dtype(ml_dtypes.bfloat16))
_INF, _NAN = np.inf, np.nan


def _f32(*values: float) -> Array:
    return np.array(values, np.float32)


def _mixed(*shape: int) -> Array:
    k = np.arange(int(np.prod(shape))) * 37 + 5
    return np.ldexp((k % 251 - 125).astype(np.float32), -(k % 9)).astype(np.float32).reshape(shape)


@calls(_AMAX, "quotient")
def _quotient() -> Calls:
    values = [1, 448, 0.1, 3.3, 10.2, 57344, 60000, 1e-3, 0.3]
    for name, dtype in product(_FLOAT8, (*_DTYPES, np.dtype("float64"))):
        yield {"amax": np.array(values).astype(dtype), "float8_dtype": name}
    yield {"amax": np.array(5.0, np.float32), "float8_dtype": "float8_e4m3fn"}


@calls(_AMAX, "smallest-magnitude")
def _smallest() -> Calls:
    bound = _f32(1e-12)
    near = np.concatenate([_f32(0, -0.0, 1e-45, 1e-30, 1e-11), step(bound, np.arange(-1, 2))])
    for name in _FLOAT8:
        yield {"amax": near, "float8_dtype": name}
        yield {"amax": near.astype(np.float64), "float8_dtype": name, "round_scales_to_power_of_2": True}


@calls(_AMAX, "specials")
def _specials() -> Calls:
    for name, power in product(_FLOAT8, (False, True)):
        yield {"amax": _f32(_NAN, _INF, 3.4e38), "float8_dtype": name, "round_scales_to_power_of_2": power}


@calls(_AMAX, "powers-of-two")
def _powers() -> Calls:
    for name in _FLOAT8:
        largest = FLOAT_FORMATS[name].max
        amax = largest / np.ldexp(np.array([1, 1.2, 1.5, 1.9]), np.array([-60, -9, -3, -1, 0, 2, 9, 30])[:, None])
        yield {"amax": amax.ravel(), "float8_dtype": name, "round_scales_to_power_of_2": True}


@calls(_AMAX, "just-below-a-power-of-two")
def _just_below() -> Calls:
    reach = np.array([0, 1, 2, 3, 5, 6, 11, 12, 22, 23, 44, 45, 88, 89])
    for k in (-132, -129, -100, -64, -63, -32, -31, -16, -15, -8, -7, -4, -3, -2, -1, 0, 1, 2, 4, 5, 8, 9, 17, 33, 39):
        below = step(np.ldexp(np.float32(1), k)[None].astype(np.float32), -reach)
        amax = 448 / below.astype(np.float64)  # float64 brings the same scale back
        yield {"amax": amax, "float8_dtype": "float8_e4m3fn", "round_scales_to_power_of_2": True}


@calls(_AMAX, "divides")
def _divides() -> Calls:
    # Magnitudes whose scale lies midway between two float32 to within a rounding of float64.
    middle = np.ldexp(2.0**24 + 1 + 2 * np.arange(0, 4000, 7), -22)
    for name in _FLOAT8[:3]:
        yield {"amax": FLOAT_FORMATS[name].max / middle, "float8_dtype": name}


@calls(_AMAX, "refusals")
def _refusals() -> Calls:
    for name in ("int8", "float16", "float8_e8m0fnu"):
        yield {"amax": _f32(1), "float8_dtype": name}


@calls(_SCALE, "granularity")
def _granularity() -> Calls:
    for name, dtype in product(_FLOAT8, _DTYPES):
        x = _mixed(3, 4).astype(dtype)
        yield {"hp_tensor": x, "float8_dtype": name}
        for dim in (0, 1, -1):
            yield {"hp_tensor": x, "float8_dtype": name, "scaling_granularity": "AXISWISE", "axiswise_dim": dim}
    yield {"hp_tensor": np.array(-3, np.float32), "float8_dtype": "float8_e5m2"}
    yield {"hp_tensor": _f32(0, _NAN, 1, -_INF).reshape(2, 2), "float8_dtype": "float8_e5m2"}
    yield {"hp_tensor": np.zeros((2, 2), np.float32), "float8_dtype": "float8_e5m2"}


@calls(_SCALE, "refusals")
def _scale_refusals() -> Calls:
    yield {"hp_tensor": _mixed(3, 4), "float8_dtype": "float8_e5m2", "scaling_granularity": "AXISWISE"}
    yield {"hp_tensor": _mixed(3, 4), "float8_dtype": "int8"}
    for dim in (-3, 2):
        given = {"hp_tensor": _mixed(3, 4), "float8_dtype": "float8_e5m2", "axiswise_dim": dim}
        yield {**given, "scaling_granularity": "AXISWISE"}


@calls(_TO, "nearest")
def _nearest() -> Calls:
    for name in _FLOAT8:
        v = decode(np.arange(FLOAT_FORMATS[name].max_code + 1), name, "float32")
        middle = (v[1:] + v[:-1]) / 2
        points = np.concatenate([v, middle, step(middle, 1), step(middle, -1)]).astype(np.float32)
        points[::2] *= -1
        yield {"hp_tensor": points, "s": np.array(1.0, np.float32), "float8_dtype": name}
        yield {"hp_tensor": points[:200] / 3, "s": np.array(3.0, np.float32), "float8_dtype": name}


@calls(_TO, "saturation-and-specials")
def _saturation() -> Calls:
    x = _f32(0.0, -0.0, 1e-45, -1e-45, _NAN, 1.0, -1.0, _INF, -_INF, 3e38, 448, 449, -57344, 57345)
    for name, scale in product(_FLOAT8, (1.0, 0.0, 1e3, _INF, _NAN, 4.48e14)):
        yield {"hp_tensor": x, "s": np.array(scale, np.float32), "float8_dtype": name}


@calls(_TO, "granularity")
def _to_granularity() -> Calls:
    for name, dtype in product(_FLOAT8, _DTYPES):
        for scale in (_f32(0.1, 7, 41).reshape(3, 1), _f32(0.1, 7, 41, 3).reshape(1, 4)):
            yield {"hp_tensor": _mixed(3, 4).astype(dtype), "s": scale, "float8_dtype": name}
        yield {"hp_tensor": _mixed(2, 60).astype(dtype), "s": _f32(0.3, 7.7).reshape(2, 1), "float8_dtype": name}


@calls(_TO, "refusals")
def _to_refusals() -> Calls:
    yield {"hp_tensor": _mixed(3, 4), "s": np.array(1, np.float32), "float8_dtype": "int8"}


def _codes(name: str, *shape: int) -> Array:
    codes = np.arange(int(np.prod(shape))).astype(np.uint8)
    numbers: Array = codes.view(np.dtype(getattr(ml_dtypes, name))).reshape(shape)
    return numbers


@calls(_FROM, "one-scale")
def _one_scale() -> Calls:
    for name, dtype, scale in product(_FLOAT8, ("float32", "float16", "bfloat16"), (3.1234567, 1e-3, 0.0, _INF, 1e30)):
        yield {"data": _codes(name, 256), "scale": np.array(scale, np.float32), "orig_dtype": dtype}


@calls(_FROM, "scale-per-slice")
def _per_slice() -> Calls:
    for name, scale in product(_FLOAT8, (_f32(0.1, 7, 41).reshape(3, 1), _f32(0.1, 7, 41, 3).reshape(1, 4))):
        yield {"data": _codes(name, 3, 4), "scale": scale, "orig_dtype": "float32"}


@calls(_FROM, "scale-per-slice-in-16-bits")
def _per_slice_16() -> Calls:
    for dtype in ("float16", "bfloat16"):
        yield {"data": _codes("float8_e5m2", 3, 4), "scale": _f32(0.1, 7, 41).reshape(3, 1), "orig_dtype": dtype}
