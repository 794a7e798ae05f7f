"""AIMET: ``aimet_torch.quantization.affine``. Real per code, offset subtracted; x̂ = (q + offset) * scale."""

from typing import Any

import numpy as np

from halfeven.reference.blocks import BlockSize, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel, compute_dtype
from halfeven.reference.profiles.profile import Array, Profile

__all__ = ["AIMET"]

_BASIS = AsComputed(dtype="the input's, widened to float32 or float64 until the grid is exact")


@formula(
    "aimet.affine.quantize",
    equation=r"q_j = \mathrm{clamp}(\lceil x_j / s_i \rfloor - o_i,\ q_{min},\ q_{max}),\quad i_d = \lfloor j_d / B_d \rfloor",
    basis=_BASIS,
    source="aimet_torch.quantization.affine.quantize",
)
def quantize(x: Array, scale: Array, offset: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """Codes of ``x``, shape (j_0, ..., j_{D-1}), held in ``x.dtype``; scale real per code, offset in codes."""
    t = compute_dtype(MODEL, x.dtype, scale.dtype, grid)
    s = per_element(scale, x.shape, block_size).astype(t)
    o = per_element(offset, x.shape, block_size).astype(t)
    with np.errstate(all="ignore"):
        q = np.rint(x.astype(t) / s) - o
    return np.clip(q, np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)).astype(x.dtype)


MODEL = EvaluationModel(sign="q+o", compute="widened")


@formula(
    "aimet.affine.dequantize",
    equation=r"\hat x_j = (q_j + o_i) * s_i",
    basis=AsComputed(dtype="the output's"),
    source="aimet_torch.quantization.affine.dequantize",
)
def dequantize(
    q: Array, scale: Array, offset: Array, _grid: Grid, dtype: "np.dtype[Any]", block_size: BlockSize | None = None
) -> Array:
    """Reals of the codes ``q`` in ``dtype``; codes, offset and scale are each rounded to ``dtype`` first."""
    s = per_element(scale, q.shape, block_size).astype(dtype)
    o = per_element(offset, q.shape, block_size).astype(dtype)
    with np.errstate(all="ignore"):
        return (q.astype(dtype) + o) * s


@formula(
    "aimet.affine.quantize_dequantize",
    equation=r"\hat x_j = (\mathrm{clamp}(\lceil x_j / s_i \rfloor - o_i, q_{min}, q_{max}) + o_i) * s_i",
    basis=_BASIS,
    source="aimet_torch.quantization.affine.quantize_dequantize",
)
def quantize_dequantize(
    x: Array, scale: Array, offset: Array, grid: Grid, block_size: BlockSize | None = None
) -> Array:
    """``x`` on the grid, in ``x.dtype``; the whole computation in the wide dtype, rounded once at the end."""
    t = compute_dtype(MODEL, x.dtype, scale.dtype, grid)
    s = per_element(scale, x.shape, block_size).astype(t)
    o = per_element(offset, x.shape, block_size).astype(t)
    with np.errstate(all="ignore"):
        q = np.clip(np.rint(x.astype(t) / s) - o, np.asarray(grid.qmin, t), np.asarray(grid.qmax, t))
        return ((q + o) * s).astype(x.dtype)


AIMET = Profile(
    name="aimet",
    title="clamp(round(x / s) - offset, qmin, qmax), codes held in the input's dtype; (q + offset) * s",
    source="AIMET: aimet_torch.quantization.affine",
    model=MODEL,
    parameters=("scale", "offset"),
    dtypes=("float32", "float64", "float16", "bfloat16"),
    codes="input",
    bits=(1, 32),
    numpy={
        "quantize": "np.clip(np.rint(x / scale) - offset, qmin, qmax)",
        "dequantize": "(q + offset) * scale",
        "fake_quantize": "(np.clip(np.rint(x / scale) - offset, qmin, qmax) + offset) * scale",
    },
    transcriptions={"quantize": quantize, "dequantize": dequantize, "fake_quantize": quantize_dequantize},
)
