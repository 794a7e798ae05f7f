"""torchao: ``quant_primitives`` in the INT zero-point domain. Real per code, x̂ = (q - zero_point) * scale."""

from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.reference.blocks import BlockSize, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profiles.profile import Array, Profile

__all__ = ["TORCHAO", "TORCHAO_0_18"]

MODEL = EvaluationModel(compute="promoted", product="promoted")

_BASIS = AsComputed(dtype="the one that the input and the scale promote to")


@formula(
    "torchao.quantize_affine",
    equation=r"q = \mathrm{clamp}(\lceil x / s \rfloor + z,\ q_{min},\ q_{max})",
    basis=_BASIS,
    source="torchao.quantization.quant_primitives.quantize_affine, ZeroPointDomain.INT",
)
def quantize(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """Codes of ``x`` as floats: the quotient becomes an integer, to which the integer zero point is added.

    Arguments and errors as in ``Profile.quantize``.
    """
    t = np.promote_types(x.dtype, scale.dtype)
    with np.errstate(all="ignore"):
        s = per_element(scale, x.shape, block_size).astype(t)
        z = per_element(zero_point, x.shape, block_size).astype(t)
        qmin, qmax = np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)
        q = np.rint(x.astype(t) / s) + z
        return np.where(q < qmin, qmin, np.where(q > qmax, qmax, q))


@formula(
    "torchao.dequantize_affine",
    equation=r"\hat x = (q - z) * s",
    basis=AsComputed(dtype="the output's for the difference, its promotion with the scale's for the product"),
    source="torchao.quantization.quant_primitives.dequantize_affine, ZeroPointDomain.INT",
)
def dequantize(
    q: Array, scale: Array, zero_point: Array, _grid: Grid, dtype: "np.dtype[Any]", block_size: BlockSize | None = None
) -> Array:
    """Reals of the codes ``q`` in ``dtype``: the difference in it, the product in the wider of it and the scale.

    Arguments and errors as in ``Profile.dequantize``.
    """
    wide = np.promote_types(dtype, scale.dtype)
    with np.errstate(all="ignore"):
        s = per_element(scale, q.shape, block_size).astype(wide)
        z = per_element(zero_point, q.shape, block_size).astype(dtype)
        reals: Array = ((q.astype(dtype) - z).astype(wide) * s).astype(dtype)
    return reals


@formula(
    "torchao.fake_quantize_affine",
    equation=r"\hat x = (\mathrm{clamp}(\lceil x / s \rfloor + z,\ q_{min},\ q_{max}) - z) * s",
    basis=AsComputed(dtype="the promotion of input and scale; the input's for the difference of the codes"),
    source="torchao.quantization.quant_primitives.fake_quantize_affine, ZeroPointDomain.INT",
)
def fake_quantize(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """``x`` on the grid, in ``x.dtype``: codes in the dtype of the arithmetic, reals as ``dequantize`` gives them.

    Arguments and errors as in ``Profile.quantize``.
    """
    t = np.promote_types(x.dtype, scale.dtype)
    with np.errstate(all="ignore"):
        s, z = (per_element(p, x.shape, block_size) for p in (scale, zero_point))
        qmin, qmax = np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)
        q = np.rint(x.astype(t) / s.astype(t)) + z.astype(t)
        q = np.where(q < qmin, qmin, np.where(q > qmax, qmax, q)).astype(x.dtype)
        reals: Array = ((q - z.astype(x.dtype)).astype(t) * s.astype(t)).astype(x.dtype)
    return reals


TORCHAO = Profile(
    name="torchao",
    title="clamp(round(x / s) + zero_point, qmin, qmax); (q - zero_point) * s",
    source="torchao: torchao.quantization.quant_primitives, ZeroPointDomain.INT",
    model=MODEL,
    dtypes=("float32", "float16", "bfloat16"),
    numpy={
        "quantize": "np.clip(np.rint(x / scale) + np.float32(zero_point), qmin, qmax)",
        "dequantize": "(np.float32(q) - np.float32(zero_point)) * scale",
        "fake_quantize": (
            "(np.clip(np.rint(x / scale) + np.float32(zero_point), qmin, qmax) - np.float32(zero_point)) * scale"
        ),
    },
    transcriptions={"quantize": quantize, "dequantize": dequantize, "fake_quantize": fake_quantize},
)

TORCHAO_0_18 = replace(
    TORCHAO,
    name="torchao@0.18",
    title="clamp(round(x * (1 / s)) + zero_point, qmin, qmax); (q - zero_point) * s",
    source="torchao 0.18.0, measured on the CPU",
    model=replace(MODEL, division="reciprocal"),
    numpy={
        "quantize": "np.clip(np.rint(x * (1 / scale)) + np.float32(zero_point), qmin, qmax)",
        "dequantize": "(np.float32(q) - np.float32(zero_point)) * scale",
        "fake_quantize": (
            "(np.clip(np.rint(x * (1 / scale)) + np.float32(zero_point), qmin, qmax) - np.float32(zero_point)) * scale"
        ),
    },
    transcriptions={},
)
