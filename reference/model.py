"""The evaluation model: a quantizer's behaviour as a value, and ``quantize``/``dequantize`` that carry it out.

The fields are the choices in which real implementations differ, each value with its words.
A model knows nothing of a system's argument names: parameters come as (scale, zero), where ``zero`` enters by
the model's own ``sign``.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, BlockSize, per_element
from halfeven.reference.grid import Grid
from halfeven.reference.rounding import ROUNDINGS, cast_once, fused_multiply_add

DType = np.dtype[Any]

__all__ = [
    "Coding",
    "Converting",
    "Decoding",
    "EvaluationModel",
    "Faking",
    "Signed",
    "Subtracting",
    "compute_dtype",
    "dequantize",
    "fake_quantize",
    "quantize",
]


@dataclass(frozen=True)
class Signed(Behaviour):
    """The choice in undoing a zero point."""

    # x̂ = (q - z) * s, (q + o) * s, or q * s, so that a code of -0.0 stays.
    sign: str = choice(
        {
            "q-z": "subtracts the zero point from the code",
            "q+o": "adds the offset to the code",
            "none": "has no zero point",
        }
    )


@dataclass(frozen=True)
class Coding(Signed):
    """The choices in making codes of reals."""

    # 1/s is rounded, and so is the product.
    division: str = choice(
        {
            "divide": "divides by s",
            "reciprocal": "multiplies by 1/s",
            "multiply-by-q-per-real": "multiplies by s, the codes per real",
        }
    )
    rounding: str = choice(
        {
            "half-even": "rounds ties to even",
            "half-away": "rounds ties away from zero",
            "half-up": "rounds ties up",
            "half-down": "rounds ties down",
            "half-to-zero": "rounds ties toward zero",
            "toward-zero": "truncates toward zero",
            "floor": "rounds down",
            "ceil": "rounds up",
        }
    )
    zero_point: str = choice(
        {
            "after-rounding": "adds the zero point after rounding",
            "before-rounding": "adds the zero point before rounding",
            "fused": "multiplies and adds the zero point in one rounding",
        }
    )
    # Codes wrap modulo their number.
    overflow: str = choice(
        {
            "saturate": "saturates codes beyond the grid",
            "wrap": "wraps codes beyond the grid",
        }
    )
    nan: str = choice(
        {
            "propagate": "passes NaN on",
            "zero": "gives code 0 for NaN",
            "zero-point": "gives the zero point for NaN",
            "qmin": "gives qmin for NaN",
            "qmax": "gives qmax for NaN",
        }
    )


@dataclass(frozen=True)
class Converting(Coding):
    """And with zero points that the arithmetic may not hold."""

    # A conversion makes the minimum of NaN and of what is out of range, as x86 does; a sum after it wraps.
    integer: str = choice(
        {
            "none": "adds the zero point in floating point",
            "exact": "adds the zero point as integers without bound",
            "int32": "converts to int32 before adding the zero point",
            "int64": "converts to int64 before adding the zero point",
            "int64-sum": "converts to int64 after adding the zero point",
        }
    )


@dataclass(frozen=True)
class Subtracting(Signed):
    """The choices in undoing such zero points."""

    # Exactly, then rounded once to the dtype of the product; int32 wraps, and there NaN is the minimum.
    subtract: str = choice(
        {
            "float": "subtracts the zero point in floating point",
            "exact": "subtracts the zero point exactly",
            "int32": "subtracts the zero point in int32",
        }
    )


@dataclass(frozen=True)
class Decoding(Subtracting):
    """And in multiplying where the dtypes of scale and reals are not one."""

    # Other than in the output's dtype, fake quantization puts back codes in the input's dtype, not the computed one.
    product: str = choice(
        {
            "output": "multiplies in the output's dtype",
            "promoted": "multiplies in the promotion of the output's and the scale's dtype",
            "narrowed": "rounds codes and scale to the input's dtype before it multiplies",
        }
    )


@dataclass(frozen=True)
class Faking(Subtracting, Converting):
    """The choices in making codes and at once their reals."""


@dataclass(frozen=True)
class EvaluationModel(Decoding, Converting):
    """How one quantizer computes. The default is the textbook: clamp(half_even(x / s) + z, qmin, qmax).

    A formula whose calls tell fewer choices apart has one of the behaviours above.
    """

    # Before a zero point that is still to come, the bounds are shifted by it.
    clamp: str = choice(
        {
            "after": "clamps last",
            "before-rounding": "clamps before rounding",
            "before-zero-point": "clamps before adding the zero point",
        }
    )
    # Wide enough: the first of the input's dtype, float32 and float64 that holds the grid with a quarter step to spare.
    compute: str = choice(
        {
            "input": "computes in the input's dtype",
            "widened": "computes in a dtype wide enough for the grid",
            "promoted": "computes in the promotion of the input's and the scale's dtype",
            "float32": "computes in float32",
            "float64": "computes in float64",
            "bfloat16": "computes in bfloat16",
        }
    )

    def at(self, point: Behaviour) -> Self:
        """This model with the choices of ``point``, a behaviour that has some of its fields."""
        return replace(self, **{name: getattr(point, name) for name in point.choices()})


def compute_dtype(model: EvaluationModel, x: DType, scale: DType, grid: Grid) -> DType:
    """The dtype in which ``model`` divides an ``x`` of one dtype by a ``scale`` of another."""
    match model.compute:
        case "input":
            return x
        case "promoted":
            promoted: DType = np.promote_types(x, scale)
            return promoted
        case "widened":
            wider = (t for t in (x, np.dtype(np.float32)) if _holds(t, grid))
            return next(wider, np.dtype(np.float64))
        case fixed:
            return np.dtype(fixed)


def quantize(
    model: EvaluationModel, x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None = None
) -> Array:
    """The codes of ``x`` under ``model``, as floats of the compute dtype (float64 where ``integer`` is set).

    Args:
        model: what to carry out.
        x: reals, a float array of any shape.
        scale: real per code, or codes per real where ``division`` says so; broadcasts to ``x`` or, with
            ``block_size``, has one entry per block.
        zero: the zero point or offset, in codes and shaped as ``scale``; not read where ``sign`` is none.
        grid: the codes that the result is limited to.
        block_size: elements per block, one entry per dimension of ``x``.

    Raises:
        ValueError: the parameters do not fit ``x`` and ``block_size``, or a fused zero point meets float64.
    """
    t = compute_dtype(model, x.dtype, scale.dtype, grid)
    s = per_element(scale, x.shape, block_size)
    exact = per_element(zero, x.shape, block_size).astype(np.float64)
    exact = -exact if model.sign == "q+o" else exact
    exact = np.zeros(()) if model.sign == "none" else exact
    add = model.zero_point == "after-rounding" and model.sign != "none"
    with np.errstate(all="ignore"):
        z = exact.astype(t)
        lo, hi = np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)
        v = _quotient(model, x.astype(t), s, z)
        if model.clamp == "before-rounding":
            v = _clamp(v, lo - z, hi - z) if add else _clamp(v, lo, hi)
        r = ROUNDINGS[model.rounding](v)
        if model.clamp == "before-zero-point":
            r = _clamp(r, lo, hi)
        match model.integer:
            case "none":
                q = r + z if add else r
            case "exact":
                q = r.astype(np.float64) + exact if add else r.astype(np.float64)
            case "int64-sum":
                q = _integer_sum(r + z if add else r, exact, False, np.dtype(np.int64))
            case integer:
                q = _integer_sum(r, exact, add, np.dtype(integer))
        return _nan(model, _to_grid(model, q, grid), np.isnan(v), exact, grid)


def dequantize(
    model: EvaluationModel,
    q: Array,
    scale: Array,
    zero: Array,
    dtype: DType,
    block_size: BlockSize | None = None,
) -> Array:
    """The reals of the codes ``q``, in ``dtype``; every operation is rounded to it, unless ``product`` says more.

    ``q`` is integers or floats of any shape, and is not limited to a grid; ``scale``, ``zero`` and ``block_size`` as in
    ``quantize``. The result has the shape of ``q``.

    Raises:
        ValueError: the parameters do not fit ``q`` and ``block_size``.
    """
    wide: DType = np.promote_types(dtype, scale.dtype) if model.product == "promoted" else dtype
    s, z = per_element(scale, q.shape, block_size), per_element(zero, q.shape, block_size)
    with np.errstate(all="ignore"):
        s = s.astype(wide)
        match model.subtract:
            case "float":
                difference = _subtract(model, q.astype(dtype), z.astype(dtype))
            case "exact":
                difference = _subtract(model, q.astype(np.float64), z.astype(np.float64))
            case "int32":
                addend = _subtract(model, np.zeros(()), z.astype(np.float64))
                difference = _integer_sum(q, addend, True, np.dtype(np.int32)).astype(dtype)
        d = difference.astype(wide)
        reals: Array = d / s if model.division == "multiply-by-q-per-real" else d * s
        return reals.astype(dtype)


def fake_quantize(
    model: EvaluationModel, x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None = None
) -> Array:
    """``x`` quantized, and dequantized in the compute dtype, rounded to ``x``'s dtype at the end.

    Unless ``product`` is output it is dequantized in ``x``'s dtype, as any codes are. The result has the shape of
    ``x``; arguments and errors as in ``quantize``.
    """
    q = quantize(model, x, scale, zero, grid, block_size)
    t = x.dtype if model.product != "output" else compute_dtype(model, x.dtype, scale.dtype, grid)
    with np.errstate(all="ignore"):
        return cast_once(dequantize(model, q, scale, zero, t, block_size), x.dtype)


def _subtract(model: EvaluationModel, q: Array, z: Array) -> Array:
    match model.sign:
        case "q-z":
            difference: Array = q - z
        case "q+o":
            difference = q + z
        case "none":
            difference = q
    return difference


def _quotient(model: EvaluationModel, x: Array, s: Array, z: Array) -> Array:
    """The quotient of x and s in the dtype of x, the zero point in it unless it comes after the rounding."""
    t = x.dtype
    factor: Array | None
    v: Array
    match model.division:
        case "divide":
            factor, v = None, x / s.astype(t)
        case "reciprocal":
            factor = (np.ones((), s.dtype) / s).astype(t)
            v = x * factor
        case _:
            factor = s.astype(t)
            v = x * factor
    if model.zero_point == "after-rounding" or model.sign == "none":
        return v
    total: Array = v + z
    return total if model.zero_point == "before-rounding" or factor is None else fused_multiply_add(x, factor, z)


def _integer_sum(r: Array, z: Array, add: bool, dtype: DType) -> Array:
    """The cast that x86 makes (out of range and NaN give the minimum), and a sum that wraps."""
    info = np.iinfo(dtype)
    wide = r.astype(np.float64)
    fits = (wide >= info.min) & (wide < -float(info.min))
    code = np.where(fits, wide, float(info.min)).astype(np.int64)
    if add:
        code = (code + z.astype(np.int64)).astype(dtype)
    return code.astype(np.float64)


def _to_grid(model: EvaluationModel, q: Array, grid: Grid) -> Array:
    """The last step: saturate, or wrap modulo the number of codes."""
    if model.overflow == "wrap":  # exact: fmod never rounds, and what it leaves is small
        wide, codes = q.astype(np.float64), float(grid.num_steps + 1)
        wrapped = np.mod(np.fmod(wide, codes) - grid.qmin, codes) + grid.qmin
        return np.where(np.isfinite(wide), wrapped, float(grid.qmin)).astype(q.dtype)
    if model.clamp == "before-zero-point":
        return q
    return _clamp(q, np.asarray(grid.qmin, q.dtype), np.asarray(grid.qmax, q.dtype))


def _clamp(v: Array, lo: Array, hi: Array) -> Array:
    """V limited to [lo, hi]; NaN passes, and a zero inside keeps its sign."""
    limited = np.array(v)
    np.copyto(limited, hi, where=v > hi)
    np.copyto(limited, lo, where=v < lo)
    return limited


def _nan(model: EvaluationModel, q: Array, where: Array, z: Array, grid: Grid) -> Array:
    if not where.any():
        return q
    match model.nan:
        case "propagate":
            cast = model.integer.startswith("int")
            code: Array | int = q if cast else np.where(where, np.asarray(np.nan, q.dtype), q)
            return np.asarray(code)
        case "zero":
            code = 0
        case "zero-point":
            code = _clamp(z, np.asarray(grid.qmin, z.dtype), np.asarray(grid.qmax, z.dtype))
        case "qmin":
            code = grid.qmin
        case "qmax":
            code = grid.qmax
    return np.where(where, np.asarray(code).astype(q.dtype), q)


def _holds(t: DType, grid: Grid) -> bool:
    """Whether ``t`` represents the grid's ends and their neighbours, and its epsilon is within a quarter step."""
    ends = {grid.qmin, min(grid.qmin + 1, grid.qmax), max(grid.qmax - 1, grid.qmin), grid.qmax}
    with np.errstate(over="ignore"):  # an end beyond float16 becomes an infinity, which no end equals
        if any(float(np.asarray(end).astype(t)) != end for end in ends):
            return False
    eps = float(ml_dtypes.finfo(t).eps)  # type: ignore[no-untyped-call]
    return grid.num_steps == 0 or eps <= 0.25 / grid.num_steps
