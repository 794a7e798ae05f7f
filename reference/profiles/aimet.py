"""AIMET: ``aimet_torch.quantization.affine``. Real per code, offset subtracted; x̂ = (q + offset) * scale."""

from typing import Any, overload

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import BlockSize, Shape, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profiles.profile import Array, Profile

__all__ = ["AIMET", "dequantize", "quantize", "quantize_dequantize"]

MODEL = EvaluationModel(sign="q+o", compute="widened")

_BASIS = AsComputed(dtype="the input's, widened to float32 or float64 until the grid is exact")
_WIDER = (np.dtype(np.float32), np.dtype(np.float64))


def _internal_dtype(given: "np.dtype[Any]", grid: Grid) -> "np.dtype[Any]":
    """The first of the input's dtype, float32 and float64 with eps <= 0.25 / num_steps and the grid's ends exact.

    Exact are the lowest two codes and the highest two. Measured: the document names no dtype.
    """
    ends = np.clip([grid.qmin, grid.qmin + 1, grid.qmax - 1, grid.qmax], grid.qmin, grid.qmax).astype(np.float64)
    for t in (given, *_WIDER):
        eps = float(ml_dtypes.finfo(t).eps)  # type: ignore[no-untyped-call]
        with np.errstate(over="ignore"):  # an end beyond the largest float16 is an infinity there, and not exact
            exact = bool((ends.astype(t).astype(np.float64) == ends).all())
        if exact and (grid.num_steps == 0 or eps <= 0.25 / grid.num_steps):
            return t
    return _WIDER[-1]


@formula(
    "aimet.affine.quantize",
    equation=(
        r"q_j = \mathrm{clamp}(\lceil x_j / s_i \rfloor - o_i,\ q_{min},\ q_{max}),"
        r"\quad i_d = \lfloor j_d / B_d \rfloor"
    ),
    basis=_BASIS,
    source="aimet_torch.quantization.affine.quantize",
)
def affine_quantize(x: Array, scale: Array, offset: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """Codes of ``x``, shape (j_0, ..., j_{D-1}), held in ``x.dtype``; scale real per code, offset in codes."""
    t = _internal_dtype(x.dtype, grid)
    with np.errstate(all="ignore"):
        s = per_element(scale, x.shape, block_size).astype(t)
        o = per_element(offset, x.shape, block_size).astype(t)
        qmin, qmax = np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)
        q = np.rint(x.astype(t) / s) - o
        # A code of -0.0 stays what it is where qmin is 0; np.clip does not promise which zero it returns.
        return np.where(q < qmin, qmin, np.where(q > qmax, qmax, q)).astype(x.dtype)


@formula(
    "aimet.affine.dequantize",
    equation=r"\hat x_j = (q_j + o_i) * s_i",
    basis=AsComputed(dtype="the output's"),
    source="aimet_torch.quantization.affine.dequantize",
)
def affine_dequantize(
    q: Array, scale: Array, offset: Array, _grid: Grid, dtype: "np.dtype[Any]", block_size: BlockSize | None = None
) -> Array:
    """Reals of the codes ``q`` in ``dtype``; codes, offset and scale are each rounded to ``dtype`` first."""
    with np.errstate(all="ignore"):
        s = per_element(scale, q.shape, block_size).astype(dtype)
        o = per_element(offset, q.shape, block_size).astype(dtype)
        reals: Array = (q.astype(dtype) + o) * s
    return reals


@formula(
    "aimet.affine.quantize_dequantize",
    equation=r"\hat x_j = (\mathrm{clamp}(\lceil x_j / s_i \rfloor - o_i, q_{min}, q_{max}) + o_i) * s_i",
    basis=_BASIS,
    source="aimet_torch.quantization.affine.quantize_dequantize",
)
def affine_quantize_dequantize(
    x: Array, scale: Array, offset: Array, grid: Grid, block_size: BlockSize | None = None
) -> Array:
    """``x`` on the grid, in ``x.dtype``; the whole computation in the wide dtype, rounded once at the end."""
    t = _internal_dtype(x.dtype, grid)
    with np.errstate(all="ignore"):
        s = per_element(scale, x.shape, block_size).astype(t)
        o = per_element(offset, x.shape, block_size).astype(t)
        qmin, qmax = np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)
        q = np.rint(x.astype(t) / s) - o
        q = np.where(q < qmin, qmin, np.where(q > qmax, qmax, q))
        reals: Array = ((q + o) * s).astype(x.dtype)
    return reals


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
        "quantize": (
            "np.where((q := np.rint(x / scale) - np.float32(offset)) < qmin, "
            "np.float32(qmin), np.where(q > qmax, np.float32(qmax), q))"
        ),
        "dequantize": "(np.float32(q) + np.float32(offset)) * scale",
        "fake_quantize": (
            "(np.clip(np.rint(x / scale) - np.float32(offset), qmin, qmax) + np.float32(offset)) * scale"
        ),
    },
    transcriptions={
        "quantize": affine_quantize,
        "dequantize": affine_dequantize,
        "fake_quantize": affine_quantize_dequantize,
    },
)


# The documented signatures. A bitwidth of b stands for 2^b - 1 steps; the three overloads end in one grid.


@overload
def quantize(
    tensor: Array, scale: Array, offset: Array, bitwidth: int, signed: bool = ..., block_size: BlockSize | None = ...
) -> Array: ...


@overload
def quantize(
    tensor: Array,
    scale: Array,
    offset: Array,
    *,
    num_steps: int,
    signed: bool = ...,
    block_size: BlockSize | None = ...,
) -> Array: ...


@overload
def quantize(
    tensor: Array, scale: Array, offset: Array, *, qmin: int, qmax: int, block_size: BlockSize | None = ...
) -> Array: ...


def quantize(
    tensor: Array,
    scale: Array,
    offset: Array,
    bitwidth: int | None = None,
    signed: bool = False,
    block_size: BlockSize | None = None,
    *,
    num_steps: int | None = None,
    qmin: int | None = None,
    qmax: int | None = None,
) -> Array:
    """Codes of ``tensor``, held in its dtype. The grid is ``bitwidth`` or ``num_steps`` with ``signed``, or its ends.

    ``block_size`` has one entry per dimension of ``scale`` and meets the last dimensions of ``tensor``; -1 stands for
    the dimension's size over the number of its scales.

    Raises:
        TypeError: not exactly one of the three ways to give the grid.
        ValueError: a grid or a block size that is not accepted.
    """
    s, o, blocks = _blocks(tensor.shape, scale, offset, block_size)
    return affine_quantize(tensor, s, o, _grid(bitwidth, num_steps, qmin, qmax, signed), blocks)


@overload
def quantize_dequantize(
    tensor: Array, scale: Array, offset: Array, bitwidth: int, signed: bool = ..., block_size: BlockSize | None = ...
) -> Array: ...


@overload
def quantize_dequantize(
    tensor: Array,
    scale: Array,
    offset: Array,
    *,
    num_steps: int,
    signed: bool = ...,
    block_size: BlockSize | None = ...,
) -> Array: ...


@overload
def quantize_dequantize(
    tensor: Array, scale: Array, offset: Array, *, qmin: int, qmax: int, block_size: BlockSize | None = ...
) -> Array: ...


def quantize_dequantize(
    tensor: Array,
    scale: Array,
    offset: Array,
    bitwidth: int | None = None,
    signed: bool = False,
    block_size: BlockSize | None = None,
    *,
    num_steps: int | None = None,
    qmin: int | None = None,
    qmax: int | None = None,
) -> Array:
    """``tensor`` on the grid, in its dtype; arguments and errors as in ``quantize``."""
    s, o, blocks = _blocks(tensor.shape, scale, offset, block_size)
    return affine_quantize_dequantize(tensor, s, o, _grid(bitwidth, num_steps, qmin, qmax, signed), blocks)


def dequantize(tensor: Array, scale: Array, offset: Array, block_size: BlockSize | None = None) -> Array:
    """Reals of the codes in ``tensor``, a float array, in its dtype.

    Raises:
        TypeError: ``tensor`` is not of a float dtype.
        ValueError: a block size that is not accepted.
    """
    if tensor.dtype.name not in AIMET.dtypes:
        msg = f"tensor of dtype {tensor.dtype.name} is not accepted: give one of {', '.join(AIMET.dtypes)}"
        raise TypeError(msg)
    s, o, blocks = _blocks(tensor.shape, scale, offset, block_size)
    return affine_dequantize(tensor, s, o, Grid(0, 0), tensor.dtype, blocks)


def _grid(bitwidth: int | None, num_steps: int | None, qmin: int | None, qmax: int | None, signed: bool) -> Grid:
    match (bitwidth, num_steps, qmin, qmax):
        case (int(), None, None, None):
            return Grid.from_bitwidth(bitwidth, signed=signed)
        case (None, int(), None, None):
            return Grid.from_num_steps(num_steps, signed=signed)
        case (None, None, int(), int()):
            return Grid(qmin, qmax)
    msg = (
        f"bitwidth={bitwidth!r}, num_steps={num_steps!r}, qmin={qmin!r}, qmax={qmax!r} is not accepted: "
        "give an int bitwidth, an int num_steps, or ints qmin and qmax"
    )
    raise TypeError(msg)


def _blocks(
    shape: Shape, scale: Array, offset: Array, block_size: BlockSize | None
) -> tuple[Array, Array, BlockSize | None]:
    """Scale, offset and block size with one entry for every dimension of the tensor, aligned at the last."""
    if block_size is None:
        return scale, offset, None
    lead = len(shape) - scale.ndim
    sizes = tuple(
        n // max(c, 1) if b == -1 else b for n, c, b in zip(shape[lead:], scale.shape, block_size, strict=False)
    )
    if (
        lead < 0
        or len(block_size) != scale.ndim
        or any(b * c != n for n, c, b in zip(shape[lead:], scale.shape, sizes, strict=True))
    ):
        msg = (
            f"block_size={block_size} is not accepted for a scale of shape {scale.shape} "
            f"and a tensor of shape {shape}: block size times scales must give the tensor's last dimensions"
        )
        raise ValueError(msg)
    ones = (1,) * lead
    aligned = np.broadcast_to(offset, scale.shape).reshape(ones + scale.shape)
    return scale.reshape(ones + scale.shape), aligned, tuple(max(n, 1) for n in shape[:lead]) + sizes
