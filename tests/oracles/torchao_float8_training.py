"""torchao's float8 of training, each scalar by itself; logarithms in binary digits."""

from fractions import Fraction
from math import floor, isinf

import ml_dtypes
import numpy as np

from oracles.exact import FORMATS, round_to
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, soft, softs
from oracles.torchao_float8 import float8_code, float8_number, logarithm, power_below

__all__: list[str] = []

_F32 = FORMATS["float32"]
_LARGEST = {"float8_e4m3fn": 448, "float8_e4m3fnuz": 240, "float8_e5m2": 57344, "float8_e5m2fnuz": 57344}


def _largest(float8_dtype: str) -> Soft:
    if float8_dtype not in _LARGEST:
        msg = f"float8_dtype={float8_dtype!r} is not accepted"
        raise ValueError(msg)
    return soft(float(_LARGEST[float8_dtype]), "float64")


def _limited(amax: Array) -> list[Soft]:
    """The magnitudes in float64, at least 1e-12; NaN stays."""
    eps = soft(1e-12, "float64")
    return [eps if a.value < eps.value else a for a in softs(amax.astype(np.float64))]


def _below(scale: float, rounded: bool) -> float:
    if scale <= 0 or isinf(scale) or scale != scale:  # noqa: PLR0124 - NaN
        return scale
    k = power_below(Fraction(scale))
    if rounded and (y := logarithm(Fraction(scale))):
        k = floor(round_to(y, _F32))
    return float(Fraction(2) ** k)


@derives("torchao/amax_to_scale")
def _amax_to_scale(amax: Array, float8_dtype: str, round_scales_to_power_of_2: bool = False) -> Array:
    largest = _largest(float8_dtype)
    scales = [(largest / a).to(_F32).value for a in _limited(amax)]
    return array([_below(s, False) if round_scales_to_power_of_2 else s for s in scales], amax.shape, np.float32)


@derives("torchao/amax_to_scale@0.18")
def _amax_to_scale_0_18(amax: Array, float8_dtype: str, round_scales_to_power_of_2: bool = False) -> Array:
    largest, one = _largest(float8_dtype), soft(1.0, "float64")
    scales = [(one / a * largest).to(_F32).value for a in _limited(amax)]
    return array([_below(s, True) if round_scales_to_power_of_2 else s for s in scales], amax.shape, np.float32)


@derives("torchao/tensor_to_scale")
def _tensor_to_scale(
    hp_tensor: Array, float8_dtype: str, scaling_granularity: str = "TENSORWISE", axiswise_dim: int | None = None
) -> Array:
    if scaling_granularity != "TENSORWISE" and axiswise_dim is None:
        msg = "axiswise_dim=None is not accepted"
        raise AssertionError(msg)
    shape, rank = hp_tensor.shape, max(hp_tensor.ndim, 1)
    if scaling_granularity != "TENSORWISE" and axiswise_dim not in range(-rank, rank):
        msg = f"axiswise_dim={axiswise_dim} is not accepted for the shape {shape}"
        raise IndexError(msg)
    kept = () if axiswise_dim is None else tuple(1 if i == axiswise_dim % rank else n for i, n in enumerate(shape))
    largest: dict[tuple[int, ...], Soft] = {}
    for index in np.ndindex(*shape):
        x = abs(softs(hp_tensor[index])[0])
        place = tuple(j % n for j, n in zip(index, kept, strict=True)) if kept else ()
        held = largest.get(place)
        if held is None or x.nan or x.value > held.value:
            largest[place] = x
    amax = array([largest[place] for place in np.ndindex(*kept)], kept, hp_tensor.dtype)
    return _amax_to_scale(amax, float8_dtype)


def _at(scale: Array, shape: tuple[int, ...]) -> list[Soft]:
    """The scale of each element: along dimensions of one entry that entry."""
    whole = scale.reshape((1,) * (len(shape) - scale.ndim) + scale.shape)
    return [softs(whole[tuple(j % n for j, n in zip(i, whole.shape, strict=True))])[0] for i in np.ndindex(*shape)]


@derives("torchao/hp_tensor_and_scale_to_float8")
def _to_float8(hp_tensor: Array, s: Array, float8_dtype: str) -> Array:
    _largest(float8_dtype)
    pairs = zip(softs(hp_tensor.astype(np.float32)), _at(s, hp_tensor.shape), strict=True)
    codes = [float8_code((x * scale).value, float8_dtype) for x, scale in pairs]
    return np.array(codes, np.uint8).reshape(hp_tensor.shape).view(getattr(ml_dtypes, float8_dtype))


@derives("torchao/to_original_precision")
def _original(data: Array, scale: Array, orig_dtype: str) -> Array:
    codes = [int(c) for c in data.view(np.uint8).ravel()]
    numbers = [soft(float8_number(c, data.dtype.name), "float32") for c in codes]
    target = DTYPES[orig_dtype]
    reals = [(q / s).to(form(target)) for q, s in zip(numbers, _at(scale, data.shape), strict=True)]
    return array(reals, data.shape, target)


@derives("torchao/to_original_precision@0.18")
def _original_0_18(data: Array, scale: Array, orig_dtype: str) -> Array:
    return _original(data, scale, orig_dtype if scale.shape == () else "float32")
