"""torch: ``quantize_per_tensor`` and ``quantize_per_channel``, and ``dequantize`` of their results."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.reference import model as evaluation
from halfeven.reference.affine import channel_of, no_blocks
from halfeven.reference.blocks import Array, BlockSize, per_channel
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.choices import Coding, Signed
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile, along_axis, integers

__all__ = [
    "TORCH_QUANTIZE",
    "TORCH_QUANTIZE_2_13",
    "TORCH_QUANTIZE_PER_CHANNEL_2_13",
    "dequantized",
    "quantize_per_channel",
    "quantize_per_tensor",
]

_DOCUMENTED = Coding(zero_point="before-rounding")
_PER_TENSOR_2_13 = Coding(zero_point="fused", division="reciprocal", nan="qmax")
_PER_CHANNEL_2_13 = Coding(zero_point="before-rounding", division="reciprocal", nan="zero")
_MODEL = EvaluationModel().at(_DOCUMENTED)
_MEASURED = "torch 2.13.0, {} measured on the CPU"

TORCH_QUANTIZE = Profile(
    name="torch.quantize",
    title="clamp(round(x / s + zero_point), qmin, qmax); (q - zero_point) * s",
    source="torch: torch.quantize_per_tensor, torch.quantize_per_channel; torch.ao.quantization.FakeQuantize",
    model=_MODEL,
    operations=("quantize", "dequantize"),
    # The third type, qint32, is left out: no float32 holds its codes.
    grids=(Grid(-128, 127), Grid(0, 255)),
)

TORCH_QUANTIZE_2_13 = replace(
    TORCH_QUANTIZE,
    name="torch.quantize@2.13",
    title="clamp(round(fma(x, 1 / s, zero_point)), qmin, qmax), and the code of NaN is qmax; (q - zero_point) * s",
    source=_MEASURED.format("quantize_per_tensor"),
    model=_MODEL.at(_PER_TENSOR_2_13),
)

TORCH_QUANTIZE_PER_CHANNEL_2_13 = replace(
    TORCH_QUANTIZE,
    name="torch.quantize@2.13-per-channel",
    title="clamp(round(x * (1 / s) + zero_point), qmin, qmax), and the code of NaN is 0; (q - zero_point) * s",
    source=_MEASURED.format("quantize_per_channel"),
    model=_MODEL.at(_PER_CHANNEL_2_13),
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
    behaviour=_DOCUMENTED,
    versions={"2.13": (_PER_TENSOR_2_13, TORCH_QUANTIZE_2_13.source)},
    affine=AffineView("torch.quantize", "quantize", _arguments),
)
def quantize_per_tensor(
    b: Coding,
    input: Array,  # noqa: A002 - the document's own word
    scale: float | Array,
    zero_point: int | Array,
    dtype: str,
) -> Array:
    """Codes of ``input`` with one scale and one zero point, as the integers that ``dtype`` holds.

    Args:
        input: float32, any shape.
        scale: real per code, held in float32.
        zero_point: the code of 0.
        dtype: quint8 or qint8.

    Raises:
        ValueError: another ``dtype``, or ``input`` holds NaN.
    """
    s, z = np.asarray(scale, np.float32).reshape(()), np.asarray(zero_point).reshape(())
    grid = _grid(dtype)
    return integers(evaluation.quantize(_MODEL.at(b), input, s, z, grid), str(grid))


@formula(
    "torch/quantize_per_channel",
    equation=_EQUATION,
    basis=_BASIS,
    source=_SOURCE,
    behaviour=_DOCUMENTED,
    versions={"2.13": (_PER_CHANNEL_2_13, TORCH_QUANTIZE_PER_CHANNEL_2_13.source)},
    affine=AffineView("torch.quantize", "quantize", _channel_arguments),
)
def quantize_per_channel(
    b: Coding,
    input: Array,  # noqa: A002 - the document's own word
    scales: Array,
    zero_points: Array,
    axis: int,
    dtype: str,
) -> Array:
    """Codes of ``input`` with one scale and one zero point per index along ``axis``; errors as per tensor.

    Args:
        input: float32, of at least one dimension.
        scales: real per code, float32, one per channel.
        zero_points: the codes of 0, likewise.
        axis: the dimension of the channels.
        dtype: quint8 or qint8.

    Raises:
        ValueError: ``axis`` is outside [-D, D), or the parameters are not as many as the channels.
    """
    s, z = (along_axis(p, input.shape, axis) for p in (scales, zero_points))
    grid = _grid(dtype)
    as_dtype: npt.DTypeLike = str(grid)
    return integers(evaluation.quantize(_MODEL.at(b), input, s, z, grid, per_channel(input.shape, axis)), as_dtype)


@formula(
    "torch/dequantize",
    equation=r"\hat x = (q - z) * s",
    basis=_BASIS,
    source="torch.dequantize; torch.ao.quantization.FakeQuantize: its equation",
    behaviour=Signed(),
    affine=AffineView("torch.quantize", "dequantize", _dequantize_arguments),
)
def dequantized(b: Signed, q: Array, scale: Array, zero_point: Array, axis: int | None = None) -> Array:
    """Reals, float32, of the codes of a quantized tensor.

    Args:
        q: codes, of any integer dtype and shape.
        scale: real per code, float32: one, or one per channel.
        zero_point: the code of 0, likewise.
        axis: the dimension of the channels, where there are several.

    Raises:
        ValueError: ``axis`` is outside [-D, D), or the parameters are not as many as the channels.
    """
    if axis is None:
        return evaluation.dequantize(_MODEL.at(b), q, scale, zero_point, np.dtype(np.float32))
    s, z = (along_axis(p, q.shape, axis) for p in (scale, zero_point))
    return evaluation.dequantize(_MODEL.at(b), q, s, z, np.dtype(np.float32), per_channel(q.shape, axis))


def _grid(dtype: str) -> Grid:
    if dtype not in _GRIDS:
        msg = f"dtype={dtype!r} is not accepted: give one of {', '.join(_GRIDS)}"
        raise ValueError(msg)
    return _GRIDS[dtype]
