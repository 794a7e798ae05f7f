"""torchao: the float8 of training, whose scale is the inverse: x̂ = q / scale, real per code 1 / scale."""

import ml_dtypes
import numpy as np

from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, FLOAT_FORMATS, encode
from halfeven.reference.profiles.profile import Array

__all__ = [
    "amax_to_scale",
    "amax_to_scale_0_18",
    "hp_tensor_and_scale_to_float8",
    "tensor_to_scale",
    "to_original_precision",
    "to_original_precision_0_18",
]

_EPS = 1e-12
_FLOAT8 = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
}


def _largest(float8_dtype: str) -> np.float64:
    if float8_dtype not in _FLOAT8:
        msg = f"float8_dtype={float8_dtype!r} is not accepted: give one of {tuple(_FLOAT8)}"
        raise ValueError(msg)
    return np.float64(FLOAT_FORMATS[float8_dtype].max)


def _floor_power_of_two(scale: Array, same: Array) -> Array:
    """The largest 2^k <= ``scale``; from ``same`` units of 2^-23 below 2^(k + 1) on, that. Zero, infinity, NaN stay."""
    fraction, exponent = np.frexp(scale.astype(np.float64))
    power = np.ldexp(1.0, exponent - 1 + (2 - 2 * fraction <= same * 2.0**-23))
    return np.where(np.isfinite(scale) & (scale > 0), power, scale.astype(np.float64)).astype(np.float32)


@formula(
    "torchao.amax_to_scale",
    equation=r"s = v_{max} / \max(a,\ 10^{-12});\quad \text{as a power of two: } s = 2^{\lfloor \log_2 s \rfloor}",
    basis=AsComputed(dtype="float64, then float32"),
    source="torchao.float8.float8_utils.amax_to_scale",
)
@np.errstate(all="ignore")
def amax_to_scale(amax: Array, float8_dtype: str, round_scales_to_power_of_2: bool = False) -> Array:
    """The scale by which a tensor is multiplied, as float32; NaN stays NaN.

    Args:
        amax: largest magnitudes, any float dtype and shape.
        float8_dtype: "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2" or "float8_e5m2fnuz".
        round_scales_to_power_of_2: round the float32 scale down to a power of two.

    Raises:
        ValueError: ``float8_dtype`` is another.
    """
    scale = np.asarray(_largest(float8_dtype) / np.maximum(amax.astype(np.float64), _EPS)).astype(np.float32)
    return _floor_power_of_two(scale, np.zeros(scale.shape)) if round_scales_to_power_of_2 else scale


# So many units of 2^-23 below 2^(k + 1), a float32 logarithm is k + 1. Measured on every positive float32.
_SAME = ((128, 88), (64, 44), (32, 22), (16, 11), (8, 5), (4, 2), (2, 1))


def _same(scale: Array) -> Array:
    k = np.frexp(scale)[1].astype(np.int64) - 1
    reach = np.where(k < 0, -k - 1, k)
    return np.select([reach >= least for least, _ in _SAME], [same for _, same in _SAME], 0)


@formula(
    "torchao.amax_to_scale@0.18",
    equation=r"s = (1 / \max(a,\ 10^{-12})) * v_{max};\quad s = 2^{\lfloor \mathrm{fl}_{32}(\log_2 s) \rfloor}",
    basis=AsComputed(dtype="float64, then float32"),
    source="torchao 0.18.0, measured",
)
@np.errstate(all="ignore")
def amax_to_scale_0_18(amax: Array, float8_dtype: str, round_scales_to_power_of_2: bool = False) -> Array:
    """As documented, but by the reciprocal, and with a logarithm in float32, which may round up to the next power."""
    reciprocal = 1.0 / np.maximum(amax.astype(np.float64), _EPS)
    scale = np.asarray(reciprocal * _largest(float8_dtype)).astype(np.float32)
    return _floor_power_of_two(scale, _same(scale)) if round_scales_to_power_of_2 else scale


@formula(
    "torchao.tensor_to_scale",
    equation=r"s = v_{max} / \max(\max |x|,\ 10^{-12})",
    basis=AsComputed(dtype="float64, then float32"),
    source="torchao.float8.float8_utils.tensor_to_scale",
)
@np.errstate(all="ignore")
def tensor_to_scale(
    hp_tensor: Array, float8_dtype: str, scaling_granularity: str = "TENSORWISE", axiswise_dim: int | None = None
) -> Array:
    """The scale of a tensor, without dimensions; or AXISWISE one of each slice along ``axiswise_dim``, kept as 1.

    Args:
        hp_tensor: float32, float16 or bfloat16, not empty.
        float8_dtype: as in ``amax_to_scale``.
        scaling_granularity: "TENSORWISE" or "AXISWISE".
        axiswise_dim: the dimension over which AXISWISE takes the maximum.

    Raises:
        AssertionError: AXISWISE without ``axiswise_dim``.
        IndexError: ``hp_tensor`` has no such dimension.
        ValueError: ``float8_dtype`` is another.
    """
    if scaling_granularity == "TENSORWISE":
        return amax_to_scale(np.asarray(np.abs(hp_tensor).max(), hp_tensor.dtype), float8_dtype)
    if axiswise_dim is None:
        msg = "axiswise_dim=None is not accepted: AXISWISE needs a dimension"
        raise AssertionError(msg)
    if not -hp_tensor.ndim <= axiswise_dim < hp_tensor.ndim:
        msg = f"axiswise_dim={axiswise_dim} is not accepted: hp_tensor has the shape {hp_tensor.shape}"
        raise IndexError(msg)
    return amax_to_scale(np.abs(hp_tensor).max(axis=axiswise_dim, keepdims=True), float8_dtype)


@formula(
    "torchao.hp_tensor_and_scale_to_float8",
    equation=r"q = \mathrm{float8}(\mathrm{clamp}(x * s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="float32"),
    source="torchao.float8.float8_training_tensor.hp_tensor_and_scale_to_float8",
)
@np.errstate(all="ignore")
def hp_tensor_and_scale_to_float8(hp_tensor: Array, s: Array, float8_dtype: str) -> Array:
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
    return encode(hp_tensor.astype(np.float32) * s, float8_dtype, overflow="saturate").view(_FLOAT8[float8_dtype])


@formula(
    "torchao.to_original_precision",
    equation=r"\hat x = q / s",
    basis=AsComputed(dtype="float32, then the original"),
    source="torchao.float8.float8_training_tensor.Float8TrainingTensor.to_original_precision",
)
@np.errstate(all="ignore")
def to_original_precision(data: Array, scale: Array, orig_dtype: str) -> Array:
    """Reals of float8 ``data`` as ``orig_dtype``: "float32", "float16" or "bfloat16".

    Args:
        data: a float8 dtype.
        scale: float32; broadcasts to ``data``.
        orig_dtype: the dtype of the tensor before it was cast.
    """
    reals: Array = (data.astype(np.float32) / scale).astype(FLOAT_DTYPES[orig_dtype])
    return reals


@formula(
    "torchao.to_original_precision@0.18",
    equation=r"\hat x = q / s",
    basis=AsComputed(dtype="float32, then the original for a scale without dimensions"),
    source="torchao 0.18.0, measured",
)
@np.errstate(all="ignore")
def to_original_precision_0_18(data: Array, scale: Array, orig_dtype: str) -> Array:
    """As documented, but a scale with dimensions leaves float32, whatever ``orig_dtype``."""
    return to_original_precision(data, scale, "float32" if scale.ndim else orig_dtype)
