"""torchao: float8 before 0.18: quantized by the reciprocal of the scale up to 0.11, by division since."""

import numpy as np

from halfeven.reference.blocks import BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_FORMATS
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.torchao.domains import quantize_affine_no_zero_point_0_11
from halfeven.reference.profiles.torchao.float8 import (
    choose_scale_float8_0_18,
    dequantize_affine_float8,
    quantize_affine_float8,
    quantize_affine_float8_0_18,
)
from halfeven.reference.profiles.torchao.qparams_releases import choose_qparams_affine_0_11
from halfeven.reference.profiles.torchao.storage import is_float8

__all__ = [
    "dequantize_affine_float8_0_11",
    "from_hp_to_floatx_0_11",
    "from_hp_to_floatx_0_17",
    "from_hp_to_floatx_static_0_11",
    "from_hp_to_floatx_static_0_17",
    "quantize_affine_float8_0_11",
]

_LEAST_SCALE = 2.0**-23


@formula(
    "torchao.quantize_affine_float8@0.11",
    equation=r"q = \mathrm{float8}(\mathrm{clamp}(x / s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="float32"),
    source="torchao 0.11.0, measured",
)
def quantize_affine_float8_0_11(tensor: Array, scale: Array, float8_dtype: str = "float8_e4m3fn") -> Array:
    """As documented, but tensor and scale are broadcast: a scale of blocks is not repeated.

    Raises:
        RuntimeError: they do not broadcast.
    """
    return quantize_affine_float8(*_broadcast(tensor, scale), float8_dtype)


@formula(
    "torchao.dequantize_affine_float8@0.11",
    equation=r"\hat x = q * s",
    basis=AsComputed(dtype="float32, then the output's"),
    source="torchao 0.11.0, measured",
)
def dequantize_affine_float8_0_11(tensor: Array, scale: Array, output_dtype: str = "float32") -> Array:
    """As documented, but tensor and scale are broadcast, as in ``quantize_affine_float8@0.11``."""
    return dequantize_affine_float8(*_broadcast(tensor, scale), output_dtype)


@formula(
    "torchao.from_hp_to_floatx@0.11",
    equation=r"s = \max(\max_{block} |x| / v_{max},\ 2^{-23}),\quad "
    r" q = \mathrm{float8}(\mathrm{clamp}(x \cdot s^{-1},\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="the input's; for the codes its promotion with the scale's, which the reciprocal has"),
    source="torchao 0.11.0, measured on the CPU",
)
def from_hp_to_floatx_0_11(
    input_float: Array, block_size: BlockSize, target_dtype: str, scale_dtype: str | None = None
) -> dict[str, Array]:
    """As documented, but by the rounded reciprocal of a scale of at least 2^-23, in the input's dtype.

    The scale has that dtype where ``scale_dtype`` is absent, and no dimension where a block fills one.

    Raises:
        NotImplementedError: also for a scale of float8_e8m0fnu, which has no reciprocal.
    """
    _check_float8(target_dtype)
    if scale_dtype == "float8_e8m0fnu":
        msg = f"scale_dtype={scale_dtype!r} is not accepted: it has no reciprocal"
        raise NotImplementedError(msg)
    top = int(FLOAT_FORMATS[target_dtype].max)
    scale, _ = choose_qparams_affine_0_11(
        input_float, "SYMMETRIC", block_size, target_dtype, -top, top, _LEAST_SCALE, scale_dtype, None,
        zero_point_domain="NONE",
    )  # fmt: skip
    return {
        "data": quantize_affine_no_zero_point_0_11(input_float, block_size, scale, None, target_dtype),
        "scale": scale,
    }


@formula(
    "torchao.from_hp_to_floatx_static@0.11",
    equation=r"q = \mathrm{float8}(\mathrm{clamp}(x \cdot s^{-1},\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="the promotion of input and scale; the reciprocal the scale's own"),
    source="torchao 0.11.0, measured on the CPU",
)
def from_hp_to_floatx_static_0_11(
    input_float: Array, scale: Array, block_size: BlockSize, target_dtype: str
) -> dict[str, Array]:
    """As documented, but by the rounded reciprocal of the scale, which may have any shape of one entry per block.

    Raises:
        RuntimeError: it has another number of entries.
    """
    _check_float8(target_dtype)
    return {
        "data": quantize_affine_no_zero_point_0_11(input_float, block_size, scale, None, target_dtype),
        "scale": scale,
    }


@formula(
    "torchao.from_hp_to_floatx@0.17",
    equation=r"s = \max_{block} |x| / v_{max},\quad q = \mathrm{float8}(\mathrm{clamp}(x / s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="the input's for the scale, float32 for the codes"),
    source="torchao 0.17.0, measured; 0.15.0 is the same",
)
def from_hp_to_floatx_0_17(
    input_float: Array,
    block_size: BlockSize,
    target_dtype: str,
    scale_dtype: str | None = None,  # noqa: ARG001 - in the signature only
) -> dict[str, Array]:
    """As documented, but ``scale_dtype`` is not read."""
    _check_float8(target_dtype)
    scale = choose_scale_float8_0_18(input_float, block_size, target_dtype)
    return {"data": quantize_affine_float8_0_18(input_float, scale, target_dtype), "scale": scale}


@formula(
    "torchao.from_hp_to_floatx_static@0.17",
    equation=r"q = \mathrm{float8}(\mathrm{clamp}(x / s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="float32"),
    source="torchao 0.17.0, measured; 0.15.0 is the same",
)
def from_hp_to_floatx_static_0_17(
    input_float: Array,
    scale: Array,
    block_size: BlockSize,  # noqa: ARG001 - in the signature only
    target_dtype: str,
) -> dict[str, Array]:
    """As documented, but ``block_size`` is not read: the shape of the scale says what its blocks are."""
    _check_float8(target_dtype)
    return {"data": quantize_affine_float8_0_18(input_float, scale, target_dtype), "scale": scale}


def _broadcast(tensor: Array, scale: Array) -> tuple[Array, Array]:
    try:
        shape = np.broadcast_shapes(tensor.shape, scale.shape)
    except ValueError as error:
        msg = f"scale of shape {scale.shape} is not accepted: it does not broadcast to shape {tensor.shape}"
        raise RuntimeError(msg) from error
    return np.broadcast_to(tensor, shape), np.broadcast_to(scale, shape)


def _check_float8(target_dtype: str) -> None:
    if not is_float8(target_dtype):
        msg = f"target_dtype={target_dtype!r} is not accepted: give a float8 with a sign"
        raise NotImplementedError(msg)
