"""The evaluation model: a quantizer's behaviour as a value, and ``quantize``/``dequantize`` that carry it out.

The fields are the choices in which real implementations differ, each value with its words.
A model knows nothing of a system's argument names: parameters come as (scale, zero), where ``zero`` enters by
the model's own ``sign``. Quantizing has three stages, ``quotients``, ``rounded_of`` and ``codes_of``, each of which
reads choices of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, BlockSize, per_element
from halfeven.reference.choices import Coding, Decoding, Storing
from halfeven.reference.grid import Grid
from halfeven.reference.rounding import cast_once
from halfeven.reference.steps import HALVES, added, converted, held, inverse, limited, of_range, rounded

DType = np.dtype[Any]

__all__ = [
    "EvaluationModel",
    "codes_of",
    "compute_dtype",
    "dequantize",
    "fake_quantize",
    "handed_back",
    "quantize",
    "quotients",
    "reals_of",
    "rounded_of",
    "zero_of",
]


def _also(name: str, more: Mapping[str, str]) -> Any:
    """The choice that the smaller behaviours have by this name, with more values."""
    known = {**Storing.choices(), **Decoding.choices()}[name]
    return choice({**known, **more})


@dataclass(frozen=True)
class EvaluationModel(Decoding, Storing):
    """How one quantizer computes. The default is the textbook: clamp(half_even(x / s) + z, qmin, qmax).

    A formula whose calls tell fewer choices apart has one of the behaviours in ``choices``. In the words, lo and hi are
    the ends of the range, (qmin - z) * s and (qmax - z) * s, and n is qmax - qmin.
    """

    # In a range form x is limited to [lo, hi] first, and qmin takes the zero point's place.
    division: str = _also(
        "division",
        {
            "range": "computes (x - lo) / (hi - lo) * n",
            "range-factor": "computes (x - lo) * (n / (hi - lo))",
            "range-step": "computes (x - lo) / ((hi - lo) / n)",
            "range-last": "computes (x - lo) * n / (hi - lo)",
            "range-affine": "computes x * (n / (hi - lo)) - lo * (n / (hi - lo))",
            "low": "computes (x - lo) / s",
            "low-reciprocal": "computes (x - lo) * (1/s)",
        },
    )
    # Exactly as if 1/2 were added without a rounding.
    rounding: str = _also("rounding", {"half-truncated": "adds 1/2 and truncates, negative quotients too"})
    # A conversion to fewer than 32 bits is one to int32 of which the low bits are kept.
    integer: str = _also(
        "integer",
        {
            "int32-sum": "converts to int32 after adding the zero point",
            "int64-int32": "converts to int64 and keeps the low 32 bits before adding the zero point",
            "int32-saturating": "converts to int32, saturating, before adding the zero point",
            "int32-exact": "converts to int32 and adds the zero point without wrapping",
            "int16": "keeps the low 16 bits before adding the zero point",
            "int16-sum": "keeps the low 16 bits after adding the zero point",
            "int8": "keeps the low 8 bits before adding the zero point",
            "int8-sum": "keeps the low 8 bits after adding the zero point",
            "int8-exact": "adds the zero point in float64 and keeps the low 8 bits",
        },
    )
    subtract: str = _also(
        "subtract",
        {
            "int16": "subtracts the zero point in int16",
            "int8": "subtracts the zero point in int8",
            "uint8": "subtracts the zero point in uint8",
        },
    )
    # One that is named is that of the subtraction, too.
    product: str = _also(
        "product",
        {
            "scale": "multiplies in the scale's dtype",
            "float16": "multiplies in float16",
            "bfloat16": "multiplies in bfloat16",
            "float32": "multiplies in float32",
            "float64": "multiplies in float64",
        },
    )
    # Before a zero point that is still to come, the bounds are shifted by it.
    clamp: str = choice(
        {
            "after": "clamps last",
            "before-rounding": "clamps before rounding",
            "before-zero-point": "clamps before adding the zero point",
            "twice": "clamps before adding the zero point, and again last",
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
            "float16": "computes in float16",
        }
    )
    # The scale is rounded, and then is of the dtype that it was given in.
    held: str = choice(
        {
            "given": "takes s as it is given",
            "float16": "rounds s to float16",
            "bfloat16": "rounds s to bfloat16",
            "float32": "rounds s to float32",
        }
    )
    inverse: str = choice(
        {
            "scale": "rounds 1/s to the scale's dtype",
            "compute": "rounds 1/s to the dtype that it computes in",
            "float16": "rounds 1/s to float16",
            "bfloat16": "rounds 1/s to bfloat16",
            "float32": "rounds 1/s to float32",
        }
    )
    # What follows the division is computed in that dtype, too.
    quotient: str = choice(
        {
            "compute": "keeps the quotient in the dtype that it computes in",
            "float16": "rounds the quotient to float16",
            "bfloat16": "rounds the quotient to bfloat16",
            "float32": "rounds the quotient to float32",
            "float64": "widens the quotient to float64",
        }
    )
    # One sum, and fused, are of rules with a constant half: half-up, half-down and half-truncated; else the half is
    # added. The last is written for gradients to pass: of an infinity it makes NaN, and 0 of -0.
    half: str = choice(
        {
            "exact": "decides ties exactly",
            "added": "adds the half in floating point",
            "with-zero-point": "adds the zero point and the half in one sum",
            "fused": "multiplies and adds the half in one rounding",
            "difference": "computes (r - v) + v of a quotient v that is r when rounded",
        }
    )
    form: str = choice(
        {
            "product": "multiplies the difference by s",
            "distributed": "computes q * s - z * s",
            "fused": "computes q * s - z * s, the first product and the difference in one rounding",
            "inverse": "divides the difference by 1/s",
            "low": "computes (q - qmin) * s + lo",
            "levels": "computes (q - qmin) / n * (hi - lo) + lo",
        }
    )

    # Of fake quantization, in x's dtype; the second is written for gradients to pass: of an infinity it makes NaN.
    returned: str = choice(
        {
            "reals": "gives the reals of the codes",
            "difference": "gives x + (x̂ - x) of the reals x̂",
        }
    )

    def at(self, point: Behaviour) -> Self:
        """This model with the choices of ``point``, a behaviour that has some of its fields."""
        return replace(self, **{name: getattr(point, name) for name in point.choices()})


_RANGES = frozenset(EvaluationModel.choices()["division"]) - frozenset(Coding.choices()["division"])


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
    """The codes of ``x`` under ``model``, as floats.

    Of the quotient's dtype; of float64 where ``integer`` is set, or where that dtype rounds an end of the grid outward.

    Args:
        model: what to carry out.
        x: reals, a float array of any shape.
        scale: real per code, or codes per real where ``division`` says so; broadcasts to ``x`` or, with
            ``block_size``, has one entry per block.
        zero: the zero point or offset, in codes and shaped as ``scale``; not read where ``sign`` is none.
        grid: the codes that the result is limited to.
        block_size: elements per block, one entry per dimension of ``x``.

    Raises:
        ValueError: the parameters do not fit ``x`` and ``block_size``, or a fused zero point or half meets float64.
    """
    t = compute_dtype(model, x.dtype, scale.dtype, grid)
    s = per_element(scale, x.shape, block_size)
    z = zero_of(model, per_element(zero, x.shape, block_size))
    lo, hi = (np.asarray(end, np.float64) for end in (grid.qmin, grid.qmax))
    v = quotients(model, x, s, z, lo, hi, t)
    return codes_of(model, rounded_of(model, v, z, lo, hi), z, lo, hi)


def quotients(model: EvaluationModel, x: Array, s: Array, z: Array, lo: Array, hi: Array, t: DType) -> Array:
    """The first stage: the quotients that are rounded, with the zero point and the half if they are added before.

    Args:
        model: read are sign, held, inverse, division, quotient, zero_point, and rounding and half for what is added.
        x: reals.
        s: the scale of each, in the dtype that it was given in.
        z: the zero point of each as in q - z, exact, in float64.
        lo: the lowest code, in float64.
        hi: the highest code.
        t: the dtype to compute in.
    """
    with np.errstate(all="ignore"):
        s, x = held(s, model.held), x.astype(t)
        before = model.zero_point != "after-rounding" and model.sign != "none"
        constant = HALVES.get(model.rounding) if model.half in {"with-zero-point", "fused"} else None
        factor: Array | None = None
        if model.division in _RANGES:
            lower, upper = lo.astype(t), hi.astype(t)
            fuse = model.zero_point == "fused"
            inverted = inverse(s, model.inverse, t) if model.division == "low-reciprocal" else s.astype(t)
            v = of_range(model.division, x, s.astype(t), inverted, z.astype(t), lower, upper, fuse=fuse)
            z, before = lo, model.zero_point == "before-rounding"
        elif model.division == "divide":
            v = x / s.astype(t)
        else:
            factor = inverse(s, model.inverse, t) if model.division == "reciprocal" else s.astype(t)
            v = x * factor
        if not before and constant is None:
            return v if model.quotient == "compute" else cast_once(v, model.quotient)
        addend = z if constant is None else np.asarray((z if before else 0.0) + constant)
        fused = factor is not None and ((before and model.zero_point == "fused") or model.half == "fused")
        return added(x, factor if fused else None, v, addend, model.quotient)


def rounded_of(model: EvaluationModel, v: Array, z: Array, lo: Array, hi: Array) -> Array:
    """The second stage: integers of the quotients' dtype; read are rounding, half, clamp and where the sum is made."""
    with np.errstate(all="ignore"):
        if model.clamp == "before-rounding":
            low, high = lo.astype(v.dtype), hi.astype(v.dtype)
            shift = _addend(model, z, lo).astype(v.dtype)
            v = limited(v, low - shift, high - shift) if _adds_after(model) else limited(v, low, high)
        r = rounded(v, model.rounding, model.half)
        if model.clamp in {"before-zero-point", "twice"}:
            r = limited(r, lo.astype(r.dtype), hi.astype(r.dtype))
        return r


def codes_of(model: EvaluationModel, r: Array, z: Array, lo: Array, hi: Array) -> Array:
    """The third stage: codes of integers ``r``; read are integer, clamp, overflow, ends, nan, where the sum is made."""
    with np.errstate(all="ignore"):
        q = converted(r, _addend(model, z, lo) if _adds_after(model) else None, model.integer)
        return _nan(model, _to_grid(model, q, lo, hi), np.isnan(r), z, lo, hi)


def dequantize(
    model: EvaluationModel,
    q: Array,
    scale: Array,
    zero: Array,
    dtype: DType,
    block_size: BlockSize | None = None,
    grid: Grid | None = None,
) -> Array:
    """The reals of the codes ``q``, in ``dtype``; every operation is rounded to it, unless ``product`` says more.

    ``q`` is integers or floats of any shape, and is not limited to a grid; ``scale``, ``zero`` and ``block_size`` as in
    ``quantize``. The result has the shape of ``q``. The grid is needed where ``form`` speaks of its ends.

    Raises:
        ValueError: the parameters do not fit ``q`` and ``block_size``; ``form`` needs a grid, or is fused in float64.
    """
    s, z = per_element(scale, q.shape, block_size), per_element(zero, q.shape, block_size).astype(np.float64)
    ends = None if grid is None else (np.asarray(grid.qmin, np.float64), np.asarray(grid.qmax, np.float64))
    return reals_of(model, q, s, z, dtype, ends)


def reals_of(
    model: EvaluationModel, q: Array, s: Array, z: Array, dtype: DType, ends: tuple[Array, Array] | None = None
) -> Array:
    """What ``dequantize`` does to elements; ``s``, ``z`` (as given, in float64) and the ``ends`` broadcast to ``q``."""
    match model.product:
        case "output" | "narrowed":
            narrow = wide = dtype
        case "promoted":
            narrow, wide = dtype, np.promote_types(dtype, s.dtype)
        case "scale":
            narrow = wide = s.dtype
        case fixed:
            narrow = wide = np.dtype(fixed)
    with np.errstate(all="ignore"):
        s = held(s, model.held)
        over = model.division == "multiply-by-q-per-real"
        by = s.astype(wide)
        if model.form == "inverse":
            by, over = inverse(s, model.inverse, wide), not over
        if model.form in {"product", "inverse"}:
            d = _difference(model, q, z, narrow, wide)
            return cast_once(d / by if over else d * by, dtype)
        point = zero_of(model, z)
        if model.form in {"distributed", "fused"}:
            known = q.astype(wide)
            one = np.ones((), wide)
            factor = one / by if over else by
            shift = point.astype(wide) * factor
            fused = factor if model.form == "fused" else None
            return cast_once(added(known, fused, known * factor, -shift, "compute"), dtype)
        if ends is None:
            msg = f"grid=None is not accepted with form={model.form!r}: it needs the ends of the grid"
            raise ValueError(msg)
        lo, hi = (end.astype(wide) for end in ends)
        step = np.ones((), wide) / by if over else by
        low, high = ((end - point.astype(wide)) * step for end in (lo, hi))
        above = q.astype(wide) - lo
        found = above * step + low if model.form == "low" else above / (hi - lo) * (high - low) + low
        return cast_once(found, dtype)


def fake_quantize(
    model: EvaluationModel, x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None = None
) -> Array:
    """``x`` quantized, and dequantized in the compute dtype, rounded to ``x``'s dtype at the end.

    Unless ``product`` is output it is dequantized in ``x``'s dtype, as any codes are. The result has the shape of
    ``x``; arguments and errors as in ``quantize``.
    """
    q = quantize(replace(model, ends="kept"), x, scale, zero, grid, block_size)  # the codes are not stored
    t = x.dtype if model.product != "output" else compute_dtype(model, x.dtype, scale.dtype, grid)
    with np.errstate(all="ignore"):
        return handed_back(model, x, cast_once(dequantize(model, q, scale, zero, t, block_size, grid), x.dtype))


def handed_back(model: EvaluationModel, x: Array, reals: Array) -> Array:
    """What fake quantization gives of ``x``, where ``reals`` are those of its codes."""
    with np.errstate(all="ignore"):
        return reals if model.returned == "reals" else np.asarray(x + (reals - x))


def zero_of(model: EvaluationModel, zero: Array) -> Array:
    """The zero point as in q - z, in float64."""
    exact = zero.astype(np.float64)
    match model.sign:
        case "q-z":
            return exact
        case "q+o":
            return np.asarray(-exact)
        case _:
            return np.zeros(())


def _adds_after(model: EvaluationModel) -> bool:
    """Whether something is added to the rounded quotient: the zero point, or in a range form qmin."""
    if model.division in _RANGES:
        return model.zero_point != "before-rounding"
    return model.zero_point == "after-rounding" and model.sign != "none"


def _addend(model: EvaluationModel, z: Array, lo: Array) -> Array:
    return lo if model.division in _RANGES else z


def _difference(model: EvaluationModel, q: Array, z: Array, narrow: DType, wide: DType) -> Array:
    """The code less the zero point, in the dtype of the product."""
    match model.subtract:
        case "float":
            return _subtract(model, q.astype(narrow), z.astype(narrow)).astype(wide)
        case "exact":
            return _subtract(model, q.astype(np.float64), z).astype(wide)
        case integer:
            addend = _subtract(model, np.zeros(()), z)
            kept = integer if integer == "int32" else f"{integer}-difference"
            return converted(q, addend, kept).astype(narrow).astype(wide)


def _subtract(model: EvaluationModel, q: Array, z: Array) -> Array:
    match model.sign:
        case "q-z":
            difference: Array = q - z
        case "q+o":
            difference = q + z
        case "none":
            difference = q
    return difference


def _to_grid(model: EvaluationModel, q: Array, lo: Array, hi: Array) -> Array:
    """The last step: saturate, or wrap modulo the number of codes."""
    if model.overflow == "wrap":  # exact: fmod never rounds, and what it leaves is small
        wide, codes = q.astype(np.float64), hi - lo + 1
        wrapped = np.mod(np.fmod(wide, codes) - lo, codes) + lo
        return np.where(np.isfinite(wide), wrapped, lo).astype(q.dtype)
    if model.clamp == "before-zero-point":
        return q
    ends = lo.astype(q.dtype), hi.astype(q.dtype)
    found = limited(q, *ends)
    if not np.any((ends[0] < lo) | (ends[1] > hi)):
        return found
    wide = found.astype(np.float64)
    if model.ends == "kept":
        return limited(wide, lo, hi)
    info = np.iinfo(np.int32)
    within = (lo >= info.min) & (hi <= info.max)
    return np.where(within & (wide > info.max), np.float64(info.min), wide)


def _nan(model: EvaluationModel, q: Array, where: Array, z: Array, lo: Array, hi: Array) -> Array:
    if not where.any():
        return q
    match model.nan:
        case "propagate":
            cast_ = model.integer.startswith("int")
            code: Array = q if cast_ else np.where(where, np.asarray(np.nan, q.dtype), q)
            return np.asarray(code)
        case "zero":
            code = np.zeros(())
        case "zero-point":
            code = limited(z, lo, hi)
        case "qmin":
            code = lo
        case "qmax":
            code = hi
    return np.where(where, np.asarray(code).astype(q.dtype), q)


def _holds(t: DType, grid: Grid) -> bool:
    """Whether ``t`` represents the grid's ends and their neighbours, and its epsilon is within a quarter step."""
    ends = {grid.qmin, min(grid.qmin + 1, grid.qmax), max(grid.qmax - 1, grid.qmin), grid.qmax}
    with np.errstate(over="ignore"):  # an end beyond float16 becomes an infinity, which no end equals
        if any(float(np.asarray(end).astype(t)) != end for end in ends):
            return False
    eps = float(ml_dtypes.finfo(t).eps)  # type: ignore[no-untyped-call]
    return grid.num_steps == 0 or eps <= 0.25 / grid.num_steps
