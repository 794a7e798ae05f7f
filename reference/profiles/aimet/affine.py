"""AIMET: ``aimet_torch.quantization.affine``. Real per code, offset subtracted; x̂ = (q + offset) * scale."""

from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import BlockSize, Shape, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profiles.profile import Array, Profile
from halfeven.reference.rounding import cast_once

__all__ = [
    "AIMET",
    "aligned_blocks",
    "dequantize",
    "dequantize_2_42",
    "internal_dtype",
    "quantize",
    "quantize_2_42",
    "quantize_dequantize",
    "quantize_dequantize_2_42",
]

MODEL = EvaluationModel(sign="q+o", compute="widened")

_BASIS = AsComputed(dtype="the input's, widened to float32 or float64 until the grid is exact")
_WIDER = (np.dtype(np.float32), np.dtype(np.float64))


def _holds(dtype: "np.dtype[Any]", grid: Grid) -> bool:
    """Whether ``dtype`` holds the lowest two codes and the highest two."""
    ends = np.clip([grid.qmin, grid.qmin + 1, grid.qmax - 1, grid.qmax], grid.qmin, grid.qmax)
    with np.errstate(over="ignore"):  # an end beyond the largest float16 is an infinity there
        return all(float(held) == int(end) for held, end in zip(ends.astype(dtype), ends, strict=True))


def internal_dtype(given: "np.dtype[Any]", grid: Grid) -> "np.dtype[Any]":
    """The first of the input's dtype, float32 and float64 with eps <= 0.25 / num_steps and the grid's ends exact.

    Measured: the document names no dtype.
    """
    for t in (given, *_WIDER):
        eps = float(ml_dtypes.finfo(t).eps)  # type: ignore[no-untyped-call]
        if _holds(t, grid) and (grid.num_steps == 0 or eps <= 0.25 / grid.num_steps):
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
    """Codes of ``x``, shape (j_0, ..., j_{D-1}), held in ``x.dtype``; scale real per code, offset in codes.

    Arguments and errors as in ``Profile.quantize``.
    """
    t = internal_dtype(x.dtype, grid)
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
    """Reals of the codes ``q`` in ``dtype``; codes, offset and scale are each rounded to ``dtype`` first.

    Arguments and errors as in ``Profile.dequantize``.
    """
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
    x: Array,
    scale: Array,
    offset: Array,
    grid: Grid,
    block_size: BlockSize | None = None,
    zero_point_shift: float = 0.0,
) -> Array:
    """``x`` on the grid, in ``x.dtype``; the whole computation in the wide dtype, rounded once at the end.

    A ``zero_point_shift`` of z moves every real of the grid by z scales (measured: the document does not name it).

    Arguments and errors as in ``Profile.quantize``.
    """
    t = internal_dtype(x.dtype, grid)
    with np.errstate(all="ignore"):
        s = per_element(scale, x.shape, block_size).astype(t)
        o = per_element(offset, x.shape, block_size).astype(t)
        qmin, qmax = np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)
        real_code, back = x.astype(t) / s, o
        if zero_point_shift:  # without one nothing is added, and zeros keep their sign
            real_code, back = real_code - np.asarray(zero_point_shift, t), o + np.asarray(zero_point_shift, t)
        q = np.rint(real_code) - o
        q = np.where(q < qmin, qmin, np.where(q > qmax, qmax, q))
        return cast_once((q + back) * s, x.dtype)


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

_EQUATION = (
    r"q_j = \mathrm{clamp}(\lceil x_j / s_i \rfloor - o_i,\ q_{min},\ q_{max}),\quad i_d = \lfloor j_d / B_d \rfloor,"
    r"\quad (q_{min}, q_{max}) = \begin{cases}(-\lceil n / 2 \rceil, \lfloor n / 2 \rfloor) & signed \\"
    r" (0, n) & else \end{cases},\quad n = 2^{bitwidth} - 1"
)


@formula("aimet.quantize", equation=_EQUATION, basis=_BASIS, source="aimet_torch.quantization.affine.quantize")
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

    Args:
        tensor: float32, float64, float16 or bfloat16 of any shape.
        scale: real per code, floats that broadcast to ``tensor`` or have one entry per block.
        offset: in codes, likewise.
        bitwidth: width of the codes, 0 or more.
        signed: codes of both signs; not read beside the ends of the grid.
        block_size: elements per block, one entry per dimension of ``scale``, which meet the last dimensions of
            ``tensor``; -1 stands for the dimension's size over the number of its scales.
        num_steps: codes less one.
        qmin: the lowest code.
        qmax: the highest code.

    Raises:
        TypeError: not exactly one of the three ways to give the grid.
        ValueError: ``tensor`` is not of a float dtype that AIMET takes.
        RuntimeError: a negative ``bitwidth`` or ``num_steps``, ``qmin`` above ``qmax``, a grid that the dtype does not
            hold, shapes or blocks that do not fit.
        IndexError: ``scale`` has more dimensions than ``tensor`` (with ``block_size``).
    """
    grid = _grid(bitwidth, num_steps, qmin, qmax, signed)
    s, o, blocks = aligned_blocks(tensor.shape, scale, offset, block_size)
    _float(tensor)
    if not _holds(tensor.dtype, grid):
        named = _named(bitwidth, num_steps, qmin, qmax, signed)
        msg = f"{named} is not accepted for tensor of dtype {tensor.dtype.name}: give a grid whose ends it holds"
        raise RuntimeError(msg)
    return affine_quantize(tensor, s, o, grid, blocks)


@formula(
    "aimet.quantize_dequantize",
    equation=r"\hat x_j = (\mathrm{clamp}(\lceil x_j / s_i \rfloor - o_i, q_{min}, q_{max}) + o_i) * s_i",
    basis=_BASIS,
    source="aimet_torch.quantization.affine.QuantizeDequantize",
)
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
    zero_point_shift: float = 0.0,
) -> Array:
    """``tensor`` on the grid, in its dtype; arguments and errors as in ``quantize``, for the grid the widened dtype.

    ``zero_point_shift``, in codes, moves every real of the grid by as many scales (measured).
    """
    grid = _grid(bitwidth, num_steps, qmin, qmax, signed)
    s, o, blocks = aligned_blocks(tensor.shape, scale, offset, block_size)
    _float(tensor)
    if not _holds(t := internal_dtype(tensor.dtype, grid), grid):
        msg = (
            f"{_named(bitwidth, num_steps, qmin, qmax, signed)} is not accepted: give a grid whose ends {t.name} holds"
        )
        raise RuntimeError(msg)
    return affine_quantize_dequantize(tensor, s, o, grid, blocks, zero_point_shift)


@formula(
    "aimet.dequantize",
    equation=r"\hat x_j = (q_j + o_i) * s_i,\quad i_d = \lfloor j_d / B_d \rfloor",
    basis=AsComputed(dtype="the input's"),
    source="aimet_torch.quantization.affine.dequantize; class QuantizeDequantize",
)
def dequantize(tensor: Array, scale: Array, offset: Array, block_size: BlockSize | None = None) -> Array:
    """Reals of the codes in ``tensor``, a float array, in its dtype; no code is limited to a grid.

    Scale, offset and ``block_size`` as in ``quantize``.

    Raises:
        TypeError: ``tensor`` is not of a float dtype.
        RuntimeError, IndexError: shapes or blocks that do not fit, as in ``quantize``.
    """
    s, o, blocks = aligned_blocks(tensor.shape, scale, offset, block_size)
    if tensor.dtype.name not in AIMET.dtypes:
        msg = f"tensor of dtype {tensor.dtype.name} is not accepted: give one of {', '.join(AIMET.dtypes)}"
        raise TypeError(msg)
    return affine_dequantize(tensor, s, o, Grid(0, 0), tensor.dtype, blocks)


@formula("aimet.quantize@2.42", equation=_EQUATION, basis=_BASIS, source="aimet-torch 2.42, measured")
def quantize_2_42(
    tensor: Array,
    scale: Array,
    offset: Array,
    bitwidth: int | None = None,
    signed: bool | None = None,
    block_size: BlockSize | None = None,
    *,
    num_steps: int | None = None,
    qmin: int | None = None,
    qmax: int | None = None,
) -> Array:
    """``quantize``; ``num_steps`` without ``signed`` is a KeyError, a float ``bitwidth`` unsigned an AttributeError."""
    _refuse_overload(bitwidth, num_steps, qmin, signed)
    given = (tensor, scale, offset, bitwidth, bool(signed), block_size)
    return quantize(*given, num_steps=num_steps, qmin=qmin, qmax=qmax)


@formula(
    "aimet.quantize_dequantize@2.42",
    equation=_EQUATION,
    basis=AsComputed(dtype="the working dtype; from float64 by way of float32"),
    source="aimet-torch 2.42, measured",
)
def quantize_dequantize_2_42(
    tensor: Array,
    scale: Array,
    offset: Array,
    bitwidth: int | None = None,
    signed: bool | None = None,
    block_size: BlockSize | None = None,
    *,
    num_steps: int | None = None,
    qmin: int | None = None,
    qmax: int | None = None,
    zero_point_shift: float = 0.0,
) -> Array:
    """``quantize_dequantize``; ``num_steps`` alone is a KeyError, a float ``bitwidth`` unsigned an AttributeError.

    A float64 result for a 16-bit tensor is rounded twice, to float32 first.
    """
    _refuse_overload(bitwidth, num_steps, qmin, signed)
    given = (scale, offset, bitwidth, bool(signed), block_size)
    ends: dict[str, Any] = {"num_steps": num_steps, "qmin": qmin, "qmax": qmax, "zero_point_shift": zero_point_shift}
    found = quantize_dequantize(tensor, *given, **ends)
    grid = _grid(bitwidth, num_steps, qmin, qmax, bool(signed))
    if internal_dtype(tensor.dtype, grid) != np.float64:
        return found
    with np.errstate(all="ignore"):
        wide = quantize_dequantize(tensor.astype(np.float64), *given, **ends)
        return wide if tensor.dtype == np.float64 else wide.astype(np.float32).astype(tensor.dtype)


@formula(
    "aimet.dequantize@2.42",
    equation=r"\hat x_j = (q_j + \mathrm{trunc}(o_i)) * \mathrm{trunc}(s_i)",
    basis=AsComputed(dtype="the input's, integers too"),
    source="aimet-torch 2.42, measured",
)
def dequantize_2_42(tensor: Array, scale: Array, offset: Array, block_size: BlockSize | None = None) -> Array:
    """``dequantize``, save that integers are accepted: scale and offset lose their fractions, and the sum wraps."""
    s, o, blocks = aligned_blocks(tensor.shape, scale, offset, block_size)
    return affine_dequantize(tensor, s, o, Grid(0, 0), tensor.dtype, blocks)


def _refuse_overload(bitwidth: object, num_steps: object, qmin: object, signed: bool | None) -> None:
    """The library reads ``signed`` from the keywords where ``num_steps`` is given, and knows no default for it.

    Raises:
        KeyError: ``num_steps`` without ``signed``, or no grid at all.
        AttributeError: a float ``bitwidth`` with ``signed`` not true.
    """
    if bitwidth is None and qmin is None and (num_steps is None or signed is None):
        msg = f"num_steps={num_steps!r}, signed={signed!r} is not accepted: give both"
        raise KeyError(msg)
    if isinstance(bitwidth, float) and not signed:
        msg = f"bitwidth={bitwidth!r} is not accepted: give an int"
        raise AttributeError(msg)


def _float(tensor: Array) -> None:
    if tensor.dtype.name not in AIMET.dtypes:
        msg = f"tensor of dtype {tensor.dtype.name} is not accepted: give one of {', '.join(AIMET.dtypes)}"
        raise ValueError(msg)


def _grid(bitwidth: int | None, num_steps: int | None, qmin: int | None, qmax: int | None, signed: bool) -> Grid:
    match (bitwidth, num_steps, qmin, qmax):
        case (int(), None, None, None):
            low, high = _ends(2**bitwidth - 1 if bitwidth >= 0 else -1, signed)
        case (None, int(), None, None):
            low, high = _ends(num_steps, signed)
        case (None, None, int(), int()):
            low, high = qmin, qmax
        case _:
            msg = (
                f"bitwidth={bitwidth!r}, num_steps={num_steps!r}, qmin={qmin!r}, qmax={qmax!r} is not accepted: "
                "give an int bitwidth, an int num_steps, or ints qmin and qmax"
            )
            raise TypeError(msg)
    if low > high:
        msg = f"{_named(bitwidth, num_steps, qmin, qmax, signed)} is not accepted: give 0 or more, or qmin <= qmax"
        raise RuntimeError(msg)
    return Grid(low, high)


def _ends(n: int, signed: bool) -> tuple[int, int]:
    return (-((n + 1) // 2), n // 2) if signed else (0, n)


def _named(bitwidth: int | None, num_steps: int | None, qmin: int | None, qmax: int | None, signed: bool) -> str:
    """What gave the grid, as messages name it."""
    if qmin is not None:
        return f"qmin={qmin}, qmax={qmax}"
    return f"{f'num_steps={num_steps}' if bitwidth is None else f'bitwidth={bitwidth}'}, signed={signed}"


def aligned_blocks(
    shape: Shape, scale: Array, offset: Array, block_size: BlockSize | None
) -> tuple[Array, Array, BlockSize | None]:
    """Scale, offset and block size with one entry for every dimension of a tensor of ``shape``, aligned at the last.

    Raises:
        RuntimeError: shapes or blocks that do not fit.
        IndexError: ``scale`` has more dimensions than the tensor.
    """
    if block_size is None:
        own = shape[len(shape) - scale.ndim :] if scale.ndim <= len(shape) else ()
        if len(own) != scale.ndim or any(c not in {1, n} for c, n in zip(scale.shape, own, strict=True)):
            msg = f"scale of shape {scale.shape} is not accepted: give one that broadcasts to a tensor of shape {shape}"
            raise RuntimeError(msg)
        return scale, offset, None
    if len(block_size) != scale.ndim:
        msg = f"block_size={block_size} is not accepted for a scale of shape {scale.shape}: give {scale.ndim} entries"
        raise RuntimeError(msg)
    if (lead := len(shape) - scale.ndim) < 0:
        msg = (
            f"scale of shape {scale.shape} is not accepted for a tensor of shape {shape}: give {len(shape)} dimensions"
        )
        raise IndexError(msg)
    dimensions = list(zip(shape[lead:], scale.shape, block_size, strict=True))
    if any(n % c if b == -1 else b * c != n for n, c, b in dimensions):
        msg = (
            f"block_size={block_size} is not accepted for a scale of shape {scale.shape} "
            f"and a tensor of shape {shape}: give what makes, times the scales, the tensor's last dimensions"
        )
        raise RuntimeError(msg)
    sizes = tuple(n // c if b == -1 else b for n, c, b in dimensions)
    aligned = tuple(min(n, 1) for n in shape[:lead]) + scale.shape
    blocks = tuple(max(n, 1) for n in shape[:lead]) + sizes
    return np.broadcast_to(scale, aligned), np.broadcast_to(offset, aligned), blocks
