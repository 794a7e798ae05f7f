"""torchao: the float8 of training, whose scale is the inverse: x̂ = q / scale, real per code 1 / scale."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, FLOAT_FORMATS
from halfeven.reference.systems.torchao.float8 import FLOAT8, Cast, to_float8

__all__ = [
    "AmaxScale",
    "Inverse",
    "Original",
    "Product",
    "TensorScale",
    "amax_to_scale",
    "hp_tensor_and_scale_to_float8",
    "tensor_to_scale",
    "to_original_precision",
]


@dataclass(frozen=True)
class Inverse(Behaviour):
    """The choices in the bound of a magnitude."""

    least: float = choice({
        1e-12: "takes 1e-12 as the least magnitude",
        0.0: "takes any magnitude, zero too",
    })  # fmt: skip
    nan: str = choice({
        "kept": "gives a magnitude of NaN the scale NaN",
        "ignored": "leaves NaN out of the magnitude",
    })  # fmt: skip


@dataclass(frozen=True)
class AmaxScale(Inverse):
    """Also how the scale of a magnitude is computed and rounded."""

    arithmetic: str = choice({
        "float64": "computes the scale in float64",
        "float32": "computes the scale in float32",
    })  # fmt: skip
    division: str = choice({
        "divide": "divides the largest number by the magnitude",
        "reciprocal": "multiplies the largest number by the rounded reciprocal of the magnitude",
    })  # fmt: skip
    power: str = choice({
        "down": "rounds the scale down to a power of two",
        "rounded-logarithm": "rounds the scale down by a float32 logarithm, which may be that of the next power",
        "nearest": "rounds the scale to the nearest power of two",
        "up": "rounds the scale up to a power of two",
    })  # fmt: skip


@dataclass(frozen=True)
class TensorScale(Inverse):
    """Also the dimensions of the scales of slices."""

    dimension: str = choice({
        "kept": "keeps the dimension that is reduced, with one entry",
        "dropped": "drops the dimension that is reduced",
    })  # fmt: skip


@dataclass(frozen=True)
class Product(Cast):
    """The choices in making codes by the scale of training."""

    arithmetic: str = choice({
        "float32": "computes the product in float32",
        "input": "computes the product in the input's dtype",
    })  # fmt: skip


@dataclass(frozen=True)
class Original(Behaviour):
    """The choices in making reals of codes."""

    quotient: str = choice({
        "divide": "divides by the scale",
        "reciprocal": "multiplies by the rounded reciprocal of the scale",
    })  # fmt: skip
    arithmetic: str = choice({
        "float32": "computes the quotient in float32",
        "original": "computes the quotient in the original dtype",
    })  # fmt: skip
    slices: str = choice({
        "original": "gives reals the original dtype",
        "float32": "leaves reals in float32 where the scale has dimensions",
    })  # fmt: skip


def _largest(float8_dtype: str) -> float:
    if float8_dtype not in FLOAT8:
        msg = f"float8_dtype={float8_dtype!r} is not accepted: give one of {tuple(FLOAT8)}"
        raise ValueError(msg)
    return FLOAT_FORMATS[float8_dtype].max


def _bounded(b: AmaxScale, amax: Array) -> Array:
    """The magnitude in the dtype of the arithmetic, limited from below."""
    limited = np.maximum if b.nan == "kept" else np.fmax
    return np.asarray(limited(amax.astype(b.arithmetic), np.asarray(b.least, b.arithmetic)))


# So many units of 2^-23 below 2^(k + 1), a float32 logarithm is k + 1. Measured on every positive float32.
_SAME = ((128, 88), (64, 44), (32, 22), (16, 11), (8, 5), (4, 2), (2, 1))


def _power_of_two(b: AmaxScale, scale: Array) -> Array:
    """2^k of a float32 ``scale`` = m * 2^k, and 2^(k + 1) from some m on. Zero, infinity, NaN stay."""
    fraction, exponent = np.frexp(scale)
    k = exponent - 1
    reach = np.where(k < 0, -k - 1, k)
    same = np.select([reach >= least for least, _ in _SAME], [units for _, units in _SAME], 0) * 2.0**-23
    first = {"down": 2.0, "rounded-logarithm": 2 - same, "nearest": 1.5, "up": 1 + 2.0**-23}[b.power]
    power = np.ldexp(1.0, k + (2 * fraction >= first))
    return np.where(np.isfinite(scale) & (scale > 0), power, scale).astype(np.float32)


@formula(
    "torchao/amax_to_scale",
    equation=r"s = v_{max} / \max(a,\ 10^{-12});\quad \text{as a power of two: } s = 2^{\lfloor \log_2 s \rfloor}",
    basis=AsComputed(dtype="float64, then float32"),
    source="torchao.float8.float8_utils.amax_to_scale",
    behaviour=AmaxScale(),
    versions={
        "0.18": (AmaxScale(division="reciprocal", power="rounded-logarithm"), "torchao 0.18.0, measured"),
    },
)
@np.errstate(all="ignore")
def amax_to_scale(b: AmaxScale, amax: Array, float8_dtype: str, round_scales_to_power_of_2: bool = False) -> Array:
    """The scale by which a tensor is multiplied, as float32; NaN stays NaN.

    Args:
        amax: largest magnitudes, any float dtype and shape.
        float8_dtype: "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2" or "float8_e5m2fnuz".
        round_scales_to_power_of_2: round the float32 scale down to a power of two.

    Raises:
        ValueError: ``float8_dtype`` is another.
    """
    top, magnitude = np.asarray(_largest(float8_dtype), b.arithmetic), _bounded(b, amax)
    one = np.ones((), b.arithmetic)
    scale = np.asarray(top / magnitude if b.division == "divide" else one / magnitude * top).astype(np.float32)
    return _power_of_two(b, scale) if round_scales_to_power_of_2 else scale


@formula(
    "torchao/tensor_to_scale",
    equation=r"s = v_{max} / \max(\max |x|,\ 10^{-12})",
    basis=AsComputed(dtype="float64, then float32"),
    source="torchao.float8.float8_utils.tensor_to_scale",
    behaviour=TensorScale(),
)
@np.errstate(all="ignore")
def tensor_to_scale(
    b: TensorScale,
    hp_tensor: Array,
    float8_dtype: str,
    scaling_granularity: str = "TENSORWISE",
    axiswise_dim: int | None = None,
) -> Array:
    """The scale of a tensor, without dimensions; or AXISWISE one of each slice along ``axiswise_dim``, kept as 1.

    Args:
        hp_tensor: float32, float16 or bfloat16, not empty.
        float8_dtype: as in ``amax_to_scale``.
        scaling_granularity: "TENSORWISE" or "AXISWISE".
        axiswise_dim: the dimension over which AXISWISE takes the maximum.

    Raises:
        AssertionError: AXISWISE without ``axiswise_dim``.
        IndexError: ``hp_tensor`` has no such dimension; without any, 0 and -1 stand for one (measured).
        ValueError: ``float8_dtype`` is another.
    """
    choices = AmaxScale(least=b.least, nan=b.nan)
    largest: Callable[..., Any] = np.max if b.nan == "kept" else np.fmax.reduce
    if scaling_granularity == "TENSORWISE":
        return amax_to_scale(choices, np.asarray(largest(np.abs(hp_tensor), axis=None), hp_tensor.dtype), float8_dtype)
    if axiswise_dim is None:
        msg = "axiswise_dim=None is not accepted: AXISWISE needs a dimension"
        raise AssertionError(msg)
    rank = max(hp_tensor.ndim, 1)
    if not -rank <= axiswise_dim < rank:
        msg = f"axiswise_dim={axiswise_dim} is not accepted: hp_tensor has the shape {hp_tensor.shape}"
        raise IndexError(msg)
    amax = np.asarray(largest(np.abs(hp_tensor), axis=axiswise_dim, keepdims=b.dimension == "kept"))
    return amax_to_scale(choices, amax, float8_dtype)


@formula(
    "torchao/hp_tensor_and_scale_to_float8",
    equation=r"q = \mathrm{float8}(\mathrm{clamp}(x * s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="float32"),
    source="torchao.float8.float8_training_tensor.hp_tensor_and_scale_to_float8",
    behaviour=Product(),
)
@np.errstate(all="ignore")
def hp_tensor_and_scale_to_float8(b: Product, hp_tensor: Array, s: Array, float8_dtype: str) -> Array:
    """``hp_tensor`` times its scale, limited to the largest number and rounded once, ties to even; NaN stays NaN.

    Args:
        hp_tensor: float32, float16 or bfloat16.
        s: float32; broadcasts to ``hp_tensor``.
        float8_dtype: as in ``amax_to_scale``.

    Returns:
        ``float8_dtype``, the shape of ``hp_tensor``.

    Raises:
        ValueError: ``float8_dtype`` is another.
    """
    _largest(float8_dtype)
    wide = np.dtype(np.float32) if b.arithmetic == "float32" else hp_tensor.dtype
    return to_float8(b, np.asarray(hp_tensor * s.astype(wide)), float8_dtype)


@formula(
    "torchao/to_original_precision",
    equation=r"\hat x = q / s",
    basis=AsComputed(dtype="float32, then the original"),
    source="torchao.float8.float8_training_tensor.Float8TrainingTensor.to_original_precision",
    behaviour=Original(),
    versions={"0.18": (Original(slices="float32"), "torchao 0.18.0, measured")},
)
@np.errstate(all="ignore")
def to_original_precision(b: Original, data: Array, scale: Array, orig_dtype: str) -> Array:
    """Reals of float8 ``data`` as ``orig_dtype``: "float32", "float16" or "bfloat16".

    Args:
        data: a float8 dtype.
        scale: float32; broadcasts to ``data``.
        orig_dtype: the dtype of the tensor before it was cast.
    """
    output = FLOAT_DTYPES["float32" if b.slices == "float32" and scale.ndim else orig_dtype]
    wide = np.dtype(np.float32) if b.arithmetic == "float32" else output
    numbers, s = data.astype(wide), scale.astype(wide)
    reals = numbers / s if b.quotient == "divide" else numbers * (np.ones((), wide) / s)
    return np.asarray(reals).astype(output)
