"""An operation of a profile as one NumPy expression, made from its evaluation model, for scripts that stand alone."""

from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.reference import Grid
from halfeven.reference.choices import Decoding, Storing
from halfeven.reference.model import EvaluationModel, compute_dtype
from halfeven.reference.profile import Operation, Profile

DType = np.dtype[Any]

__all__ = ["expression"]

_WHOLE = {"half-even": "np.rint({})", "toward-zero": "np.trunc({})", "floor": "np.floor({})", "ceil": "np.ceil({})"}
_REST = "(f := np.abs(v - np.trunc(v)))"
_AWAY = {
    "half-away": f"{_REST} >= 0.5",
    "half-to-zero": f"{_REST} > 0.5",
    "half-up": f"np.where(v > 0, {_REST} >= 0.5, f > 0.5)",
    "half-down": f"np.where(v < 0, {_REST} >= 0.5, f > 0.5)",
}
_SMALLER = {**Storing.choices(), **Decoding.choices()}
#: The values of each choice that can be said.
_DOCUMENTED = {name: _SMALLER.get(name, [next(iter(words))]) for name, words in EvaluationModel.choices().items()} | {
    "clamp": ["after", "before-rounding", "before-zero-point"],
    "compute": EvaluationModel.choices()["compute"],
    "product": [*Decoding.choices()["product"], "float64"],
}
_NAN = {"zero": "0", "zero-point": "np.clip({}, qmin, qmax)", "qmin": "qmin", "qmax": "qmax"}


def expression(profile: Profile, operation: Operation, grid: Grid, x: DType, scale: DType) -> str:
    """Python over NumPy's ``np``, arrays ``x`` (or ``q``) and the profile's parameters, and ints ``qmin`` and ``qmax``.

    It says what the profile's model says, but for a parameter at or below ``smallest``; a fused multiplication and
    addition is rounded by way of float64, which shows in rare double ties. Documents have the choices of the smaller
    behaviours, and of ``clamp``, ``compute`` and ``product``; others are not put in words of NumPy.

    Args:
        profile: whose model and names of parameters it is made of.
        operation: one that the profile has.
        grid: the codes; an end of 0 is one that a zero may reach with either sign.
        x: the dtype of the reals, in or out.
        scale: the dtype of the first parameter.

    Raises:
        ValueError: the model makes a choice that no document has.

    Example:
        >>> from halfeven.reference import PROFILES
        >>> float32 = np.dtype(np.float32)
        >>> expression(PROFILES["torchao@0.18"], "quantize", Grid(-8, 7), float32, float32)
        'np.clip(np.rint(x * (1 / scale)) + np.float32(zero_point), qmin, qmax)'
    """
    if strange := [n for n, value in _DOCUMENTED.items() if getattr(profile.model, n) not in value]:
        msg = f"{strange[0]}={getattr(profile.model, strange[0])!r} is not accepted: no document has it"
        raise ValueError(msg)
    model, t = profile.model, compute_dtype(profile.model, x, scale, grid)
    first, zero = profile.parameters[0], "" if model.sign == "none" else profile.parameters[1]
    if operation == "dequantize":
        return _reals(model, "q", None, first, scale, zero, x)
    # The codes per real are needed twice.
    s, given = ("s", "(s := np.float32(qmax) / amax)") if first == "amax" else (first, first)
    stored = model if operation == "quantize" else replace(model, ends="kept")
    codes = _codes(stored, given, scale, zero, grid, x, t)
    stays = model.integer == "none" and model.overflow == "saturate" and not _outward(model, t, grid)
    held = t if stays else np.dtype(np.float64)
    if operation == "quantize":
        return _cast(codes, x) if profile.codes == "input" and held != x else codes
    out = t if model.product == "output" else x
    reals = _reals(model, codes, held, s, scale, zero, out)
    return reals if out == x else _cast(reals, x)


def _codes(model: EvaluationModel, s: str, scale: DType, zero: str, grid: Grid, x: DType, t: DType) -> str:
    plus, minus = ("-", "+") if model.sign == "q+o" else ("+", "-")
    z, after = _cast(zero, t), zero and model.zero_point == "after-rounding"
    v = quotient = _quotient(model, s, scale, x, t)
    if zero and model.zero_point == "fused" and model.division != "divide":
        factor = s if model.division == "multiply-by-q-per-real" else f"(1 / {s})"
        v = _cast(f"np.float64(x) * {factor} {plus} np.float64({zero})", t)
    elif zero and not after:
        v = f"{v} {plus} {z}"
    if model.clamp == "before-rounding":
        low, high = (f"{_cast(end, t)} {minus} {z}" for end in ("qmin", "qmax"))
        v = f"np.minimum(np.maximum({v}, {low}), {high})" if after else _clipped(v, t, grid)
    q = _rounded(model.rounding, v)
    if model.clamp == "before-zero-point":
        q = _clipped(q, t, grid)
    q = _sum(model, q, f"{plus} {{}}" if after else "", zero, z)
    if model.overflow == "wrap":
        codes = "(qmax - qmin + 1)"
        q = f"np.where(np.isinf(q := np.float64({q})), qmin, np.mod(np.fmod(q, {codes}) - qmin, {codes}) + qmin)"
    elif model.clamp == "after" or (model.clamp == "before-rounding" and after):
        q = _clipped(q, t if model.integer == "none" else np.dtype(np.float64), grid)
    if model.overflow == "saturate" and model.clamp != "before-zero-point" and _outward(model, t, grid):
        q = _stored(model, q, grid)
    return q if model.nan == "propagate" else _nan(model, q, quotient, zero and f"{plus} {zero}".removeprefix("+ "), t)


def _sum(model: EvaluationModel, r: str, add: str, zero: str, z: str) -> str:
    """The rounded quotient and the zero point, if that is still to be added."""
    match model.integer:
        case "none":
            return f"{r} {add.format(z)}".strip()
        case "exact":
            return f"{r} {add.format(f'np.float64({zero})')}".strip()
        case "int32":
            total = f"{_integer(r, 'int32')} {add.format(f'np.int64({zero})')}".strip()
            return f"({total}).astype(np.int32)" if add else total
        case "int64-sum":
            return _integer(f"{r} {add.format(z)}", "int64")
        case _:
            return f"{_integer(r, 'int64')} {add.format(f'np.int64({zero})')}".strip()


def _nan(model: EvaluationModel, q: str, quotient: str, zero: str, t: DType) -> str:
    nan = _NAN[model.nan].format(zero or 0)
    lost = model.overflow == "wrap" or model.integer.startswith("int") or model.clamp == "before-zero-point"
    if lost or t.name == "bfloat16":
        return f"np.where(np.isnan({quotient}), {_cast(nan, t)}, {q})"
    return f"np.nan_to_num({q}, nan={nan})"


def _quotient(model: EvaluationModel, s: str, scale: DType, x: DType, t: DType) -> str:
    """X over the scale; a cast is written where NumPy's own promotion does not give ``t``."""
    by_itself = np.promote_types(x, scale) == t
    of = "x" if by_itself or x == t else _cast("x", t)
    by = s if model.division != "reciprocal" else f"(1 / {s})"
    by = by if by_itself or scale == t else _cast(by, t)
    return f"{of} / {by}" if model.division == "divide" else f"{of} * {by}"


def _rounded(rule: str, v: str) -> str:
    if rule in _WHOLE:
        return _WHOLE[rule].format(v)
    return f"np.trunc(v := {v}) + np.copysign({_AWAY[rule]}, v)"


def _clipped(q: str, t: DType, grid: Grid) -> str:
    """Limited to the grid; np.clip does not promise which zero it returns at an end of 0, and widens bfloat16."""
    if 0 not in {grid.qmin, grid.qmax} and t.name != "bfloat16":
        return f"np.clip({q}, qmin, qmax)"
    low, high = _cast("qmin", t), _cast("qmax", t)
    return f"np.where((q := {q}) < qmin, {low}, np.where(q > qmax, {high}, q))"


def _outward(model: EvaluationModel, t: DType, grid: Grid) -> bool:
    """Whether the arithmetic rounds an end of the grid to a number beyond it."""
    if model.integer != "none":
        return False
    with np.errstate(over="ignore"):
        low, high = (float(np.asarray(end, np.float64).astype(t)) for end in (grid.qmin, grid.qmax))
    return low < grid.qmin or high > grid.qmax


def _stored(model: EvaluationModel, q: str, grid: Grid) -> str:
    """Codes of which some may be such a number."""
    if model.ends == "kept":
        return f"np.clip(np.float64({q}), qmin, qmax)"
    within = grid.qmin in (whole := Grid.from_dtype(np.int32)) and grid.qmax in whole
    return f"np.where((q := np.float64({q})) > {whole.qmax}, {whole.qmin}, q)" if within else f"np.float64({q})"


def _integer(r: str, to: str) -> str:
    """The cast that x86 makes: what is out of range, and NaN, gives the minimum."""
    end = "2.0**31" if to == "int32" else "2.0**63"
    return f"np.where(np.abs(r := np.float64({r})) < {end}, r, -{end}).astype(np.int64)"


def _reals(model: EvaluationModel, q: str, held: DType | None, s: str, scale: DType, zero: str, out: DType) -> str:
    """The reals, of dtype ``out``, of codes that are held in a dtype; None is that of ``q``, not known here."""
    back, wide = "+" if model.sign == "q+o" else "-", np.promote_types(scale, out)
    once = model.product == "float64"
    if not zero or model.subtract == "float":
        d = q if held == out else _cast(q, out)
        d = f"({d} {back} {_cast(zero, out)})" if zero else d
    elif model.subtract == "exact":
        d = f"np.float64({q}) {back} {zero}"
        d = f"({d})" if once else _cast(d, wide if model.product == "promoted" else out)
    else:
        d = _cast(f"({_integer(q, 'int32')} {back} np.int64({zero})).astype(np.int32)", out)
    by = "/" if model.division == "multiply-by-q-per-real" else "*"
    if once:
        return _cast(f"{d} {by} np.float64({s})", out)
    if model.product == "promoted" and wide != out:
        return _cast(f"{d} {by} {s}", out)
    return f"{d} {by} {s if scale == out else _cast(s, out)}"


def _cast(text: str, to: DType) -> str:
    if to.name == "bfloat16":
        return f"np.asarray({text}).astype(ml_dtypes.bfloat16)"
    return f"np.{to.name}({text})"
