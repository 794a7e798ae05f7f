"""torch: ``quantize_per_tensor`` and ``quantize_per_channel``, and ``dequantize`` of their results."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.reference.affine import channel_of, no_blocks
from halfeven.reference.blocks import BlockSize, per_channel, per_element
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Array, Profile, along_axis, integers

__all__ = [
    "TORCH_QUANTIZE",
    "TORCH_QUANTIZE_2_13",
    "TORCH_QUANTIZE_PER_CHANNEL_2_13",
    "dequantized",
    "quantize_per_channel",
    "quantize_per_tensor",
]

MODEL = EvaluationModel(zero_point="before-rounding")


def quantize(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """Codes of ``x`` as floats; the zero point is added to the quotient, before the rounding.

    Arguments and errors as in ``Profile.quantize``; the codes have the dtype of ``x``.
    """
    t = x.dtype
    with np.errstate(all="ignore"):
        s = per_element(scale, x.shape, block_size).astype(t)
        z = per_element(zero_point, x.shape, block_size).astype(t)
        qmin, qmax = np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)
        q = np.rint(x / s + z)
        return np.where(q < qmin, qmin, np.where(q > qmax, qmax, q))


def dequantize(
    q: Array, scale: Array, zero_point: Array, _grid: Grid, dtype: "np.dtype[Any]", block_size: BlockSize | None = None
) -> Array:
    """Reals of the codes ``q`` in ``dtype``. Arguments and errors as in ``Profile.dequantize``."""
    with np.errstate(all="ignore"):
        s = per_element(scale, q.shape, block_size).astype(dtype)
        z = per_element(zero_point, q.shape, block_size).astype(dtype)
        reals: Array = (q.astype(dtype) - z) * s
    return reals


TORCH_QUANTIZE = Profile(
    name="torch.quantize",
    title="clamp(round(x / s + zero_point), qmin, qmax); (q - zero_point) * s",
    source="torch: torch.quantize_per_tensor, torch.quantize_per_channel; torch.ao.quantization.FakeQuantize",
    model=MODEL,
    bits=(8, 8),
    # The third type, qint32, is left out: no float32 holds its codes.
    grids=(Grid(-128, 127), Grid(0, 255)),
    numpy={
        "quantize": "np.clip(np.rint(x / scale + np.float32(zero_point)), qmin, qmax)",
        "dequantize": "(np.float32(q) - np.float32(zero_point)) * scale",
    },
    transcriptions={"quantize": quantize, "dequantize": dequantize},
)

TORCH_QUANTIZE_2_13 = replace(
    TORCH_QUANTIZE,
    name="torch.quantize@2.13",
    title="clamp(round(fma(x, 1 / s, zero_point)), qmin, qmax), and the code of NaN is qmax; (q - zero_point) * s",
    source="torch 2.13.0, quantize_per_tensor measured on the CPU",
    model=replace(MODEL, division="reciprocal", zero_point="fused", nan="qmax"),
    numpy={
        # float64 holds the product exactly and rounds the sum once; float32 after it shows only in rare double ties.
        "quantize": (
            "np.clip(np.rint(np.nan_to_num(np.float32(np.float64(x) * (1 / scale) + np.float64(zero_point)),"
            " nan=np.inf, posinf=np.inf, neginf=-np.inf)), qmin, qmax)"
        ),
        "dequantize": "(np.float32(q) - np.float32(zero_point)) * scale",
    },
    transcriptions={},
)

TORCH_QUANTIZE_PER_CHANNEL_2_13 = replace(
    TORCH_QUANTIZE,
    name="torch.quantize@2.13-per-channel",
    title="clamp(round(x * (1 / s) + zero_point), qmin, qmax), and the code of NaN is 0; (q - zero_point) * s",
    source="torch 2.13.0, quantize_per_channel measured on the CPU",
    model=replace(MODEL, division="reciprocal", nan="zero"),
    numpy={
        "quantize": "np.nan_to_num(np.clip(np.rint(x * (1 / scale) + np.float32(zero_point)), qmin, qmax), nan=0)",
        "dequantize": "(np.float32(q) - np.float32(zero_point)) * scale",
    },
    transcriptions={},
)

_GRIDS = {"quint8": Grid(0, 255), "qint8": Grid(-128, 127)}

_SOURCE = "torch.ao.quantization.FakeQuantize: its equation; the functions' own texts give none"
_EQUATION = r"q = \mathrm{clamp}(\lceil x / s + z \rfloor,\ q_{min},\ q_{max})"
_BASIS = AsComputed(dtype="float32")


def _arguments(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    no_blocks(block_size)
    return {"input": x, "scale": scale, "zero_point": zero, "dtype": _named(grid)}


def _channel_arguments(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    axis = channel_of(block_size, x.shape, scale.size)
    return {"input": x, "scales": scale.ravel(), "zero_points": zero.ravel(), "axis": axis, "dtype": _named(grid)}


def _dequantize_arguments(
    q: Array, scale: Array, zero: Array, _grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    if block_size is None:
        return {"q": q, "scale": scale, "zero_point": zero}
    return {
        "q": q,
        "scale": scale.ravel(),
        "zero_point": zero.ravel(),
        "axis": channel_of(block_size, q.shape, scale.size),
    }


def _named(grid: Grid) -> str:
    return next(name for name, own in _GRIDS.items() if own == grid)


# The documented signatures; the result is the integers that ``int_repr`` shows.


@formula(
    "torch/quantize_per_tensor",
    equation=_EQUATION,
    basis=_BASIS,
    source=_SOURCE,
    affine=AffineView("torch.quantize", "quantize", _arguments),
)
def quantize_per_tensor(
    input: Array,  # noqa: A002 - the document's own word
    scale: float | Array,
    zero_point: int | Array,
    dtype: str,
) -> Array:
    """Codes of ``input`` with one scale and one zero point, as the integers of ``dtype``, quint8 or qint8.

    Raises:
        ValueError: another ``dtype``, or ``input`` holds NaN.
    """
    s, z = np.asarray(scale, np.float32).reshape(()), np.asarray(zero_point, np.int32).reshape(())
    grid = _grid(dtype)
    return integers(quantize(input, s, z, grid), str(grid))


@formula(
    "torch/quantize_per_channel",
    equation=_EQUATION,
    basis=_BASIS,
    source=_SOURCE,
    affine=AffineView("torch.quantize", "quantize", _channel_arguments),
)
def quantize_per_channel(
    input: Array,  # noqa: A002 - the document's own word
    scales: Array,
    zero_points: Array,
    axis: int,
    dtype: str,
) -> Array:
    """Codes of ``input`` with one scale and one zero point per index along ``axis``; errors as per tensor.

    Raises:
        ValueError: ``axis`` is outside [-D, D), or the parameters are not as many as the channels.
    """
    s, z = (along_axis(p, input.shape, axis) for p in (scales, zero_points))
    grid = _grid(dtype)
    as_dtype: npt.DTypeLike = str(grid)
    return integers(quantize(input, s, z, grid, per_channel(input.shape, axis)), as_dtype)


@formula(
    "torch/dequantize",
    equation=r"\hat x = (q - z) * s",
    basis=_BASIS,
    source="torch.dequantize; torch.ao.quantization.FakeQuantize: its equation",
    affine=AffineView("torch.quantize", "dequantize", _dequantize_arguments),
)
def dequantized(q: Array, scale: Array, zero_point: Array, axis: int | None = None) -> Array:
    """Reals, float32, of the codes ``q`` of a quantized tensor with these parameters.

    Raises:
        ValueError: ``axis`` is outside [-D, D), or the parameters are not as many as the channels.
    """
    if axis is None:
        return dequantize(q, scale, zero_point, Grid(0, 255), np.dtype(np.float32))
    s, z = (along_axis(p, q.shape, axis) for p in (scale, zero_point))
    return dequantize(q, s, z, Grid(0, 255), np.dtype(np.float32), per_channel(q.shape, axis))


def _grid(dtype: str) -> Grid:
    if dtype not in _GRIDS:
        msg = f"dtype={dtype!r} is not accepted: give one of {', '.join(_GRIDS)}"
        raise ValueError(msg)
    return _GRIDS[dtype]
