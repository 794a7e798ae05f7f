"""AIMET: ``aimet_torch.quantization.affine``. Real per code, offset subtracted; x̂ = (q + offset) * scale."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, BlockSize, Shape, parameter_shape, per_element
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.rounding import ROUNDINGS, cast_once
from halfeven.reference.systems.aimet.blocks import aligned_blocks
from halfeven.reference.systems.aimet.encodings import ends_of

__all__ = [
    "AIMET",
    "CODES",
    "REALS",
    "VALUES",
    "Codes",
    "Reals",
    "Values",
    "dequantize",
    "internal_dtype",
    "quantize",
    "quantize_dequantize",
]

MODEL = EvaluationModel(sign="q+o", compute="widened")

_BASIS = AsComputed(dtype="the input's, widened to float32 or float64 until the grid is exact")
_MEASURED = "aimet-torch 2.42, measured"
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


@dataclass(frozen=True)
class _Affine(Behaviour):
    """The choices in finding the code of a real."""

    rounding: str = roundings("the quotient")
    division: str = choice(
        {"divide": "divides by the scale", "reciprocal": "multiplies by the rounded reciprocal of the scale"}
    )
    offset: str = choice({
        "after": "subtracts the offset from the rounded quotient",
        "before": "subtracts the offset from the quotient before it rounds",
        "added": "adds the offset to the rounded quotient",
    })  # fmt: skip
    working: str = choice({
        "widened": "computes in the first of the input's dtype, float32 and float64 that the grid fits",
        "input": "computes in the input's dtype whatever the grid",
        "float32": "computes in float32 whatever the grid",
        "float64": "computes in float64 whatever the grid",
    })  # fmt: skip
    nan: str = choice({"kept": "keeps NaN", "qmin": "gives NaN the least code"})
    overloads: str = choice({
        "ints": "takes False for signed by default, and raises TypeError for what is no overload",
        "keywords": "needs signed with num_steps, raises KeyError without it, and takes a fraction of bits",
    })  # fmt: skip


@dataclass(frozen=True)
class Codes(_Affine):
    """The choices in giving codes."""

    zero: str = choice({"signed": "keeps the sign of a code of zero", "plain": "gives every code of zero as +0"})


@dataclass(frozen=True)
class Values(_Affine):
    """The choices in giving the reals of the codes at once."""

    result: str = choice({
        "once": "rounds the product to the input's dtype once",
        "by-float32": "rounds a float64 product to float32 on its way to a dtype of 16 bits",
    })  # fmt: skip
    shift: str = choice(
        {"moves": "moves every real of the grid by zero_point_shift", "ignored": "ignores zero_point_shift"}
    )


@dataclass(frozen=True)
class Reals(Behaviour):
    """The choices in giving the reals of codes."""

    offset: str = choice({"added": "adds the offset to the code", "subtracted": "subtracts the offset from the code"})
    arithmetic: str = choice({
        "input": "rounds offset, scale and sum to the dtype of the codes",
        "float32": "computes in float32 or wider, and rounds the product alone to the dtype of the codes",
    })  # fmt: skip
    integers: str = choice({
        "refused": "refuses codes of an integer dtype",
        "cut": "computes with integer codes in their dtype, offset and scale cut to integers",
    })  # fmt: skip


CODES, VALUES, REALS = Codes(), Values(), Reals()


def _code(b: _Affine, x: Array, s: Array, o: Array, grid: Grid, shift: Array | None = None) -> Array:
    """The codes of ``x``, all in one dtype; ``shift`` is taken from the quotient before it rounds."""
    qmin, qmax = np.asarray(grid.qmin, x.dtype), np.asarray(grid.qmax, x.dtype)
    real_code = x * (x.dtype.type(1) / s) if b.division == "reciprocal" else x / s
    if shift is not None:
        real_code = real_code - shift
    rounded = ROUNDINGS[b.rounding]
    match b.offset:
        case "before":
            q = rounded(real_code - o)
        case "added":
            q = rounded(real_code) + o
        case _:
            q = rounded(real_code) - o
    if b.nan == "qmin":
        q = np.where(np.isnan(q), qmin, q)
    # A code of -0.0 stays what it is where qmin is 0; np.clip does not promise which zero it returns.
    return np.where(q < qmin, qmin, np.where(q > qmax, qmax, q))


def _working(b: _Affine, given: "np.dtype[Any]", grid: Grid) -> "np.dtype[Any]":
    match b.working:
        case "widened":
            return internal_dtype(given, grid)
        case "input":
            return given
        case fixed:
            return np.dtype(fixed)


AIMET = Profile(
    name="aimet",
    title="clamp(round(x / s) - offset, qmin, qmax), codes held in the input's dtype; (q + offset) * s",
    source="AIMET: aimet_torch.quantization.affine",
    model=MODEL,
    parameters=("scale", "offset"),
    dtypes=("float32", "float64", "float16", "bfloat16"),
    codes="input",
    bits=(1, 32),
)


def _arguments(
    x: Array, scale: Array, offset: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    ends = {"qmin": grid.qmin, "qmax": grid.qmax}
    return {"tensor": x, "scale": scale, "offset": offset, "block_size": _blocks(block_size, x.shape)} | ends


def _dequantize_arguments(
    q: Array, scale: Array, offset: Array, _grid: Grid, block_size: BlockSize | None, dtype: "np.dtype[Any]"
) -> dict[str, Any]:
    return {"tensor": q.astype(dtype), "scale": scale, "offset": offset, "block_size": _blocks(block_size, q.shape)}


def _blocks(block_size: BlockSize | None, shape: Shape) -> BlockSize | None:
    """None where the parameters broadcast, which is how AIMET is called per tensor, channel and token."""
    parts = () if block_size is None else parameter_shape(shape, block_size)
    return None if all(p == 1 or b == 1 for p, b in zip(parts, block_size or (), strict=True)) else block_size


# The documented signatures. A bitwidth of b stands for 2^b - 1 steps; the three overloads end in one grid.

_EQUATION = (
    r"q_j = \mathrm{clamp}(\lceil x_j / s_i \rfloor - o_i,\ q_{min},\ q_{max}),\quad i_d = \lfloor j_d / B_d \rfloor,"
    r"\quad (q_{min}, q_{max}) = \begin{cases}(-\lceil n / 2 \rceil, \lfloor n / 2 \rfloor) & signed \\"
    r" (0, n) & else \end{cases},\quad n = 2^{bitwidth} - 1"
)


@formula(
    "aimet/affine.quantize",
    equation=_EQUATION,
    basis=_BASIS,
    source="aimet_torch.quantization.affine.quantize",
    behaviour=CODES,
    versions={"2.42": (Codes(overloads="keywords"), _MEASURED)},
    affine=AffineView("aimet", "quantize", _arguments),
)
def quantize(
    b: Codes,
    tensor: Array,
    scale: Array,
    offset: Array,
    bitwidth: float | None = None,
    signed: bool | None = None,
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
        bitwidth: width of the codes, an int, 0 or more; with ``signed`` a fraction too (2.42).
        signed: codes of both signs, by default False; not read with the ends of the grid.
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
    grid = _grid(b, bitwidth, num_steps, qmin, qmax, signed)
    s, o, blocks = aligned_blocks(tensor.shape, scale, offset, block_size)
    _float(tensor)
    if not _holds(tensor.dtype, grid):
        named = _named(bitwidth, num_steps, qmin, qmax, signed)
        msg = f"{named} is not accepted for tensor of dtype {tensor.dtype.name}: give a grid whose ends it holds"
        raise RuntimeError(msg)
    t = _working(b, tensor.dtype, grid)
    with np.errstate(all="ignore"):
        s, o = (per_element(p, tensor.shape, blocks).astype(t) for p in (s, o))
        q = _code(b, tensor.astype(t), s, o, grid)
        return (q + t.type(0) if b.zero == "plain" else q).astype(tensor.dtype)


@formula(
    "aimet/affine.quantize_dequantize",
    equation=r"\hat x_j = (\mathrm{clamp}(\lceil x_j / s_i \rfloor - o_i, q_{min}, q_{max}) + o_i) * s_i",
    basis=_BASIS,
    source="aimet_torch.quantization.affine.QuantizeDequantize",
    behaviour=VALUES,
    versions={"2.42": (Values(overloads="keywords", result="by-float32"), _MEASURED)},
    affine=AffineView("aimet", "fake_quantize", _arguments),
)
def quantize_dequantize(
    b: Values,
    tensor: Array,
    scale: Array,
    offset: Array,
    bitwidth: float | None = None,
    signed: bool | None = None,
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
    grid = _grid(b, bitwidth, num_steps, qmin, qmax, signed)
    s, o, blocks = aligned_blocks(tensor.shape, scale, offset, block_size)
    _float(tensor)
    if not _holds(t := internal_dtype(tensor.dtype, grid), grid):
        msg = (
            f"{_named(bitwidth, num_steps, qmin, qmax, signed)} is not accepted: give a grid whose ends {t.name} holds"
        )
        raise RuntimeError(msg)
    t = _working(b, tensor.dtype, grid)
    with np.errstate(all="ignore"):
        s, o = (per_element(p, tensor.shape, blocks).astype(t) for p in (s, o))
        # Without a shift nothing is added, and zeros keep their sign.
        shift = np.asarray(zero_point_shift, t) if zero_point_shift and b.shift == "moves" else None
        q = _code(b, tensor.astype(t), s, o, grid, shift)
        values = (q + (o if shift is None else o + shift)) * s
        by_float32 = b.result == "by-float32" and tensor.dtype != np.float64
        return cast_once(values.astype(np.float32) if by_float32 else values, tensor.dtype)


@formula(
    "aimet/affine.dequantize",
    equation=r"\hat x_j = (q_j + o_i) * s_i,\quad i_d = \lfloor j_d / B_d \rfloor",
    basis=AsComputed(dtype="the input's"),
    source="aimet_torch.quantization.affine.dequantize; class QuantizeDequantize",
    behaviour=REALS,
    versions={"2.42": (Reals(integers="cut"), _MEASURED)},
    affine=AffineView("aimet", "dequantize", _dequantize_arguments),
)
def dequantize(b: Reals, tensor: Array, scale: Array, offset: Array, block_size: BlockSize | None = None) -> Array:
    """Reals of the codes in ``tensor``, a float array, in its dtype; no code is limited to a grid.

    Scale, offset and ``block_size`` as in ``quantize``.

    Raises:
        TypeError: ``tensor`` is not of a float dtype.
        RuntimeError, IndexError: shapes or blocks that do not fit, as in ``quantize``.
    """
    s, o, blocks = aligned_blocks(tensor.shape, scale, offset, block_size)
    if tensor.dtype.name not in AIMET.dtypes and b.integers == "refused":
        msg = f"tensor of dtype {tensor.dtype.name} is not accepted: give one of {', '.join(AIMET.dtypes)}"
        raise TypeError(msg)
    dtype = tensor.dtype
    t = np.promote_types(dtype, np.float32) if b.arithmetic == "float32" and dtype.kind not in "iu" else dtype
    with np.errstate(all="ignore"):
        q, s, o = tensor.astype(t), *(per_element(p, tensor.shape, blocks).astype(t) for p in (s, o))
        return cast_once((q - o if b.offset == "subtracted" else q + o) * s, dtype)


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


def _grid(
    b: _Affine, bitwidth: float | None, num_steps: int | None, qmin: int | None, qmax: int | None, signed: bool | None
) -> Grid:
    if b.overloads == "keywords":
        _refuse_overload(bitwidth, num_steps, qmin, signed)
    match (bitwidth, num_steps, qmin, qmax):
        case (int() | float(), None, None, None) if isinstance(bitwidth, int) or b.overloads == "keywords":
            low, high = ends_of(2**bitwidth - 1 if bitwidth >= 0 else -1, signed)
        case (None, int(), None, None):
            low, high = ends_of(num_steps, signed)
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


def _named(
    bitwidth: float | None, num_steps: int | None, qmin: int | None, qmax: int | None, signed: bool | None
) -> str:
    """What gave the grid, as messages name it."""
    if qmin is not None:
        return f"qmin={qmin}, qmax={qmax}"
    return f"{f'num_steps={num_steps}' if bitwidth is None else f'bitwidth={bitwidth}'}, signed={bool(signed)}"
