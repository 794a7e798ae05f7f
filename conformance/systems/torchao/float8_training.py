"""torchao: the float8 of training. Calls: magnitudes at their bound, scales about powers of two, granularities."""

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, calls, documented, measured
from halfeven.conformance.systems.torchao.by_release import absent, by_release
from halfeven.conformance.systems.torchao.float8 import mixed
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FLOAT_FORMATS, decode

__all__ = ["ANSWERS"]

_AMAX, _SCALE, _TO, _FROM = (
    "torchao/amax_to_scale",
    "torchao/tensor_to_scale",
    "torchao/hp_tensor_and_scale_to_float8",
    "torchao/to_original_precision",
)
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_DTYPES = (np.dtype("float32"), np.dtype("float16"), np.dtype(ml_dtypes.bfloat16))
_INF, _NAN = np.inf, np.nan


def _f32(*values: float) -> Array:
    return np.array(values, np.float32)


@measured(_AMAX, "torchao.float8.float8_utils.amax_to_scale")
def quotient() -> Calls:
    """The scale of training is the largest number of the float8 dtype over the largest magnitude, in float64, rounded
    to float32."""
    values = [1, 448, 0.1, 3.3, 10.2, 57344, 60000, 1e-3, 0.3]
    for name, dtype in product(_FLOAT8, (*_DTYPES, np.dtype("float64"))):
        yield {"amax": np.array(values).astype(dtype), "float8_dtype": name}
    yield {"amax": np.array(5.0, np.float32), "float8_dtype": "float8_e4m3fn"}


@measured(_AMAX, "torchao.float8.float8_utils.amax_to_scale")
def smallest_magnitude() -> Calls:
    """The magnitude is at least 1e-12, so a tensor of zeros has a finite scale."""
    bound = _f32(1e-12)
    near = np.concatenate([_f32(0, -0.0, 1e-45, 1e-30, 1e-11), step(bound, np.arange(-1, 2))])
    for name in _FLOAT8:
        yield {"amax": near, "float8_dtype": name}
        yield {"amax": near.astype(np.float64), "float8_dtype": name, "round_scales_to_power_of_2": True}


@measured(_AMAX, "torchao.float8.float8_utils.amax_to_scale")
def specials() -> Calls:
    """NaN stays NaN, and an infinite magnitude has the scale zero."""
    for name, power in product(_FLOAT8, (False, True)):
        yield {"amax": _f32(_NAN, _INF, 3.4e38), "float8_dtype": name, "round_scales_to_power_of_2": power}


@measured(_AMAX, "torchao.float8.float8_utils.amax_to_scale: round_scales_to_power_of_2")
def powers_of_two() -> Calls:
    """On request the scale is rounded down to a power of two."""
    for name in _FLOAT8:
        largest = FLOAT_FORMATS[name].max
        amax = largest / np.ldexp(np.array([1, 1.2, 1.5, 1.9]), np.array([-60, -9, -3, -1, 0, 2, 9, 30])[:, None])
        yield {"amax": amax.ravel(), "float8_dtype": name, "round_scales_to_power_of_2": True}


@documented(
    _AMAX,
    "torchao.float8.float8_utils.amax_to_scale: rounded down to the nearest power of two",
    aspect="rounds-down-next-to-a-power-of-two",
)
def just_below_a_power_of_two() -> Calls:
    """A scale just below a power of two is rounded down, however close to it."""
    reach = np.array([0, 1, 2, 3, 5, 6, 11, 12, 22, 23, 44, 45, 88, 89])
    low = (-132, -129, -128, -100, -64, -63, -32, -31, -16, -15, -8, -7, -4, -3, -2, -1)
    for k in (*low, 0, 1, 2, 4, 5, 8, 9, 17, 33, 39):
        below = step(np.ldexp(np.float32(1), k)[None].astype(np.float32), -reach)
        amax = 448 / below.astype(np.float64)  # float64 brings the same scale back
        yield {"amax": amax, "float8_dtype": "float8_e4m3fn", "round_scales_to_power_of_2": True}


@documented(_AMAX, "torchao.float8.float8_utils.amax_to_scale: the largest number over the magnitude")
def divides() -> Calls:
    # Magnitudes whose scale lies midway between two float32 to within a rounding of float64.
    """The scale is one division: a reciprocal that is multiplied rounds twice."""
    middle = np.ldexp(2.0**24 + 1 + 2 * np.arange(0, 4000, 7), -22)
    for name in _FLOAT8[:3]:
        yield {"amax": FLOAT_FORMATS[name].max / middle, "float8_dtype": name}


@measured(_AMAX, "torchao.float8.float8_utils.amax_to_scale")
def refusals() -> Calls:
    """Dtypes other than the four float8 dtypes are refused."""
    for name in ("int8", "float16", "float8_e8m0fnu"):
        yield {"amax": _f32(1), "float8_dtype": name}


@measured(_SCALE, "torchao.float8.float8_utils.tensor_to_scale")
def _granularity() -> Calls:
    """One scale serves the tensor; or one serves each slice along a dimension, which is kept with one entry."""
    for name, dtype in product(_FLOAT8, _DTYPES):
        x = mixed(3, 4).astype(dtype)
        yield {"hp_tensor": x, "float8_dtype": name}
        for dim in (0, 1, -1, -2):
            yield {"hp_tensor": x, "float8_dtype": name, "scaling_granularity": "AXISWISE", "axiswise_dim": dim}
    one = {"hp_tensor": np.array(-3, np.float32), "float8_dtype": "float8_e5m2"}
    yield from (one, {**one, "scaling_granularity": "AXISWISE", "axiswise_dim": 0})
    yield {"hp_tensor": _f32(0, _NAN, 1, -_INF).reshape(2, 2), "float8_dtype": "float8_e5m2"}
    yield {"hp_tensor": np.zeros((2, 2), np.float32), "float8_dtype": "float8_e5m2"}


@measured(_SCALE, "torchao.float8.float8_utils.tensor_to_scale", aspect="refusals")
def scale_refusals() -> Calls:
    """Scales of slices need the dimension to reduce, which the tensor has, and the dtype is one of the four."""
    yield {"hp_tensor": mixed(3, 4), "float8_dtype": "float8_e5m2", "scaling_granularity": "AXISWISE"}
    yield {"hp_tensor": mixed(3, 4), "float8_dtype": "int8"}
    for dim in (-3, 2):
        given = {"hp_tensor": mixed(3, 4), "float8_dtype": "float8_e5m2", "axiswise_dim": dim}
        yield {**given, "scaling_granularity": "AXISWISE"}


@measured(_TO, "torchao.float8.float8_training_tensor.hp_tensor_and_scale_to_float8")
def nearest() -> Calls:
    """A code is the float8 number nearest to the float32 product of the number and its scale, ties to the even code."""
    for name in _FLOAT8:
        v = decode(np.arange(FLOAT_FORMATS[name].max_code + 1), name, "float32")
        middle = (v[1:] + v[:-1]) / 2
        points = np.concatenate([v, middle, step(middle, 1), step(middle, -1)]).astype(np.float32)
        points[::2] *= -1
        yield {"hp_tensor": points, "s": np.array(1.0, np.float32), "float8_dtype": name}
        yield {"hp_tensor": points[:200] / 3, "s": np.array(3.0, np.float32), "float8_dtype": name}


@measured(_TO, "torchao.float8.float8_training_tensor.hp_tensor_and_scale_to_float8", aspect="saturation")
def saturation_and_specials() -> Calls:
    """What is beyond the largest number, and an infinity, becomes the largest number; NaN stays, and zero keeps its
    sign where the dtype has one."""
    x = _f32(0.0, -0.0, 1e-45, -1e-45, _NAN, 1.0, -1.0, _INF, -_INF, 3e38, 448, 449, -57344, 57345)
    for name, scale in product(_FLOAT8, (1.0, 0.0, 1e3, _INF, _NAN, 4.48e14)):
        yield {"hp_tensor": x, "s": np.array(scale, np.float32), "float8_dtype": name}


@calls(_TO, "nearest")
def to_granularity() -> Calls:
    """A scale for each slice."""
    for name, dtype in product(_FLOAT8, _DTYPES):
        for scale in (_f32(0.1, 7, 41).reshape(3, 1), _f32(0.1, 7, 41, 3).reshape(1, 4)):
            yield {"hp_tensor": mixed(3, 4).astype(dtype), "s": scale, "float8_dtype": name}
        yield {"hp_tensor": mixed(2, 60).astype(dtype), "s": _f32(0.3, 7.7).reshape(2, 1), "float8_dtype": name}


@measured(_TO, "torchao.float8.float8_training_tensor.hp_tensor_and_scale_to_float8", aspect="refusals")
def to_refusals() -> Calls:
    """Dtypes other than the four float8 dtypes are refused."""
    for name in ("int8", "float16"):
        yield {"hp_tensor": mixed(3, 4), "s": np.array(1, np.float32), "float8_dtype": name}


def _codes(name: str, *shape: int) -> Array:
    codes = np.arange(int(np.prod(shape))).astype(np.uint8)
    numbers: Array = codes.view(np.dtype(getattr(ml_dtypes, name))).reshape(shape)
    return numbers


@measured(_FROM, "torchao.float8.float8_training_tensor.Float8TrainingTensor.to_original_precision", aspect="quotient")
def one_scale() -> Calls:
    """A real is the number of the code over the scale, in float32, rounded to the original dtype."""
    for name, dtype, scale in product(_FLOAT8, ("float32", "float16", "bfloat16"), (3.1234567, 1e-3, 0.0, _INF, 1e30)):
        yield {"data": _codes(name, 256), "scale": np.array(scale, np.float32), "orig_dtype": dtype}


@calls(_FROM, "quotient")
def scale_per_slice() -> Calls:
    """A scale for each slice."""
    for name, scale in product(_FLOAT8, (_f32(0.1, 7, 41).reshape(3, 1), _f32(0.1, 7, 41, 3).reshape(1, 4))):
        yield {"data": _codes(name, 3, 4), "scale": scale, "orig_dtype": "float32"}


@documented(
    _FROM,
    "torchao.float8.float8_training_tensor.Float8TrainingTensor.to_original_precision: its name",
    aspect="original-dtype",
)
def scale_per_slice_in_16_bits() -> Calls:
    """The reals have the original dtype, for one scale and for scales of slices."""
    for dtype in ("float16", "bfloat16"):
        yield {"data": _codes("float8_e5m2", 3, 4), "scale": _f32(0.1, 7, 41).reshape(3, 1), "orig_dtype": dtype}


def _amax_to_scale(amax: Any, float8_dtype: str, round_scales_to_power_of_2: bool = False) -> Any:
    import torch
    from torchao.float8.float8_utils import amax_to_scale

    return amax_to_scale(amax, getattr(torch, float8_dtype), round_scales_to_power_of_2)


def _tensor_to_scale(
    hp_tensor: Any, float8_dtype: str, scaling_granularity: str = "TENSORWISE", axiswise_dim: int | None = None
) -> Any:
    import torch
    from torchao.float8.config import ScalingGranularity
    from torchao.float8.float8_utils import tensor_to_scale

    granularity = ScalingGranularity[scaling_granularity]
    return tensor_to_scale(
        hp_tensor, getattr(torch, float8_dtype), scaling_granularity=granularity, axiswise_dim=axiswise_dim
    )


def _hp_tensor_and_scale_to_float8(hp_tensor: Any, s: Any, float8_dtype: str) -> Any:
    import torch
    from torchao.float8.float8_training_tensor import hp_tensor_and_scale_to_float8

    return hp_tensor_and_scale_to_float8(hp_tensor, s, getattr(torch, float8_dtype))._data  # noqa: SLF001


def _to_original_precision(data: Any, scale: Any, orig_dtype: str) -> Any:
    import torch
    from torchao.float8.float8_training_tensor import Float8TrainingTensor

    return Float8TrainingTensor(data, scale, getattr(torch, orig_dtype), None).to_original_precision()


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {
            "torchao/amax_to_scale": _amax_to_scale,
            "torchao/tensor_to_scale": _tensor_to_scale,
            "torchao/hp_tensor_and_scale_to_float8": _hp_tensor_and_scale_to_float8,
            "torchao/to_original_precision": _to_original_precision,
        },
        v0_11=dict.fromkeys(("torchao/hp_tensor_and_scale_to_float8", "torchao/to_original_precision"), absent),
    ),
}
