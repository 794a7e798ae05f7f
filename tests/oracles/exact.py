"""The oracle: the evaluation model scalar by scalar, in ``fractions.Fraction`` and ints. Slow, and shares no code.

A value of a float format is a Python float that the format holds, so infinities, NaN and the sign of zero have their
place; between two roundings every number is a rational.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import copysign, floor, inf, isfinite, isinf, isnan, ldexp, nan

from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel

__all__ = [
    "FORMATS",
    "Format",
    "add",
    "dequantize",
    "divide",
    "fake_quantize",
    "fused_multiply_add",
    "multiply",
    "quantize",
    "round_integer",
    "round_to",
    "round_value",
]


@dataclass(frozen=True)
class Format:
    """A binary float format: ``precision`` significant bits, exponents ``emin`` to ``emax``, subnormals, infinities."""

    precision: int
    emin: int
    emax: int


FORMATS: dict[str, Format] = {
    "float64": Format(53, -1022, 1023),
    "float32": Format(24, -126, 127),
    "bfloat16": Format(8, -126, 127),
    "float16": Format(11, -14, 15),
    "float8_e5m2": Format(3, -14, 15),
    "float8_e4m3": Format(4, -6, 7),
    "float8_e3m4": Format(5, -2, 3),
}


def round_to(value: Fraction, form: Format) -> float:
    """``value`` in ``form``, to nearest, ties to even; beyond the largest value an infinity, as IEEE 754 says."""
    if value == 0:
        return 0.0
    n, d = abs(value.numerator), value.denominator
    exponent = n.bit_length() - d.bit_length()
    if (n << -exponent if exponent < 0 else n) < (d << exponent if exponent > 0 else d):
        exponent -= 1  # now 2^exponent <= n / d < 2^(exponent + 1)
    ulp = max(exponent, form.emin) - form.precision + 1
    units, rest = divmod(n << max(-ulp, 0), divisor := d << max(ulp, 0))
    units += 2 * rest > divisor or (2 * rest == divisor and units % 2 == 1)
    magnitude = inf if units.bit_length() + ulp > form.emax + 1 else ldexp(units, ulp)
    return magnitude if value > 0 else -magnitude


def round_value(value: float, form: Format) -> float:
    """A float in another format; zero, infinity and NaN stay what they are."""
    return round_to(Fraction(value), form) if isfinite(value) and value != 0 else value


def round_integer(value: Fraction, rule: str) -> int:
    """The integer that ``rule`` makes of ``value``."""
    below = floor(value)
    half = value - below - Fraction(1, 2)
    match rule:
        case "floor":
            up = False
        case "ceil":
            up = value != below
        case "toward-zero":
            up = value < 0 and value != below
        case "half-even":
            up = half > 0 or (half == 0 and below % 2 == 1)
        case "half-away":
            up = half > 0 or (half == 0 and value > 0)
        case "half-to-zero":
            up = half > 0 or (half == 0 and value < 0)
        case "half-up":
            up = half >= 0
        case "half-down":
            up = half > 0
    return below + up


def add(a: float, b: float, form: Format) -> float:
    """A + b rounded once."""
    if isfinite(a) and isfinite(b) and (total := Fraction(a) + Fraction(b)):
        return round_to(total, form)
    return a + b  # zeros, infinities and NaN: nothing to round


def multiply(a: float, b: float, form: Format) -> float:
    """A * b rounded once."""
    if isnan(a) or isnan(b) or (isinf(a) and b == 0) or (a == 0 and isinf(b)):
        return nan
    sign = copysign(1, a) * copysign(1, b)
    if isinf(a) or isinf(b):
        return sign * inf
    return copysign(round_to(Fraction(a) * Fraction(b), form), sign)


def divide(a: float, b: float, form: Format) -> float:
    """A / b rounded once; a zero divisor gives an infinity."""
    if isnan(a) or isnan(b) or (isinf(a) and isinf(b)) or (a == 0 and b == 0):
        return nan
    sign = copysign(1, a) * copysign(1, b)
    if isinf(a) or b == 0:
        return sign * inf
    return copysign(0.0 if isinf(b) else round_to(Fraction(a) / Fraction(b), form), sign)


def fused_multiply_add(a: float, b: float, c: float, form: Format) -> float:
    """A * b + c rounded once."""
    if not (isfinite(a) and isfinite(b)):
        return multiply(a, b, form) + c  # infinite or NaN, and so is the sum
    if not isfinite(c):
        return c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    return round_to(total, form) if total else multiply(a, b, form) + c


def quantize(
    model: EvaluationModel, x: float, scale: float, zero: float, grid: Grid, x_form: Format, scale_form: Format
) -> float:
    """The code of one ``x`` as ``model`` computes it, every operation rounded in its format."""
    form = _compute(model, x_form, scale_form, grid)
    exact_zero = {"q-z": float(zero), "q+o": -float(zero), "none": 0.0}[model.sign]
    z = round_value(exact_zero, form)
    lo, hi = round_value(float(grid.qmin), form), round_value(float(grid.qmax), form)
    after = _adds_after(model)
    v = _quotient(model, round_value(x, form), scale, z, form, scale_form)
    is_nan = isnan(v)
    if model.clamp == "before-rounding":
        v = _clamp(v, add(lo, -z, form), add(hi, -z, form)) if after else _clamp(v, lo, hi)
    r = v
    if isfinite(v):
        r = copysign(round_value(float(round_integer(Fraction(v), model.rounding)), form), v)
    if model.clamp == "before-zero-point":
        r = _clamp(r, lo, hi)
    q, held = _sum(model, r, z, exact_zero, form)
    if is_nan and not (model.nan == "propagate" and model.integer.startswith("int")):
        return _nan_code(model, exact_zero, grid, held)
    return _to_grid(model, q, grid, held)


def dequantize(
    model: EvaluationModel, q: float, scale: float, zero: float, form: Format, scale_form: Format | None = None
) -> float:
    """The real of one code in ``form``; the scale's own format, if another, matters where ``product`` is promoted."""
    wide = _promoted(form, scale_form or form) if model.product == "promoted" else form
    s = round_value(scale, wide)
    # Adding -0.0 changes nothing, not even the sign of a zero.
    z = {"q-z": -float(zero), "q+o": float(zero), "none": -0.0}[model.sign]
    match model.subtract:
        case "float":
            difference = add(round_value(q, form), round_value(z, form), form)
        case "exact":
            difference = round_value(add(q, z, FORMATS["float64"]), wide)
        case "int32":
            difference = round_value(_integer(q, z, 32), form)
    over = model.division == "multiply-by-q-per-real"
    return round_value(divide(difference, s, wide) if over else multiply(difference, s, wide), form)


def fake_quantize(
    model: EvaluationModel, x: float, scale: float, zero: float, grid: Grid, x_form: Format, scale_form: Format
) -> float:
    """One ``x`` quantized, then dequantized in the compute format, or in its own where the product is promoted."""
    q = quantize(model, x, scale, zero, grid, x_form, scale_form)
    form = x_form if model.product != "output" else _compute(model, x_form, scale_form, grid)
    return round_value(dequantize(model, q, scale, zero, form, scale_form), x_form)


@cache
def _compute(model: EvaluationModel, x: Format, scale: Format, grid: Grid) -> Format:
    match model.compute:
        case "input":
            return x
        case "promoted":
            return _promoted(x, scale)
        case "widened":
            return next((f for f in (x, FORMATS["float32"]) if _resolves(f, grid)), FORMATS["float64"])
        case fixed:
            return FORMATS[fixed]


@cache
def _promoted(a: Format, b: Format) -> Format:
    """The narrowest format that holds every value of both."""
    both = Format(max(a.precision, b.precision), min(a.emin, b.emin), max(a.emax, b.emax))
    return min((f for f in (a, b, *FORMATS.values()) if _covers(f, both)), key=lambda f: f.precision)


def _covers(form: Format, other: Format) -> bool:
    return form.precision >= other.precision and form.emin <= other.emin and form.emax >= other.emax


def _resolves(form: Format, grid: Grid) -> bool:
    ends = {grid.qmin, min(grid.qmin + 1, grid.qmax), max(grid.qmax - 1, grid.qmin), grid.qmax}
    steps = grid.qmax - grid.qmin
    exact = all(round_to(Fraction(end), form) == end for end in ends)
    return exact and 4 * steps * Fraction(2) ** (1 - form.precision) <= 1


def _quotient(model: EvaluationModel, x: float, scale: float, z: float, form: Format, scale_form: Format) -> float:
    s = round_value(scale, form)
    match model.division:
        case "divide":
            factor, v = None, divide(x, s, form)
        case "reciprocal":
            factor = round_value(divide(1.0, scale, scale_form), form)
            v = multiply(x, factor, form)
        case "multiply-by-q-per-real":
            factor, v = s, multiply(x, s, form)
    if model.zero_point == "after-rounding" or model.sign == "none":
        return v
    if model.zero_point == "before-rounding" or factor is None:
        return add(v, z, form)
    return fused_multiply_add(x, factor, z, form)


def _adds_after(model: EvaluationModel) -> bool:
    return model.zero_point == "after-rounding" and model.sign != "none"


def _sum(model: EvaluationModel, r: float, z: float, exact_zero: float, form: Format) -> tuple[float, Format]:
    """The rounded quotient with the zero point in it, and the format that holds it."""
    wide, after = FORMATS["float64"], _adds_after(model)
    match model.integer:
        case "none":
            return (add(r, z, form) if after else r), form
        case "exact":
            return (add(r, exact_zero, wide) if after else r), wide
        case "int32":
            return _integer(r, exact_zero if after else 0.0, 32), wide
        case "int64":
            return _integer(r, exact_zero if after else 0.0, 64), wide
        case "int64-sum":
            return _integer(add(r, z, form) if after else r, 0.0, 64), wide


def _to_grid(model: EvaluationModel, q: float, grid: Grid, held: Format) -> float:
    lo, hi = round_value(float(grid.qmin), held), round_value(float(grid.qmax), held)
    if model.overflow == "wrap":
        if not isfinite(q):
            return lo
        return round_to((Fraction(q) - grid.qmin) % (grid.qmax - grid.qmin + 1) + grid.qmin, held)
    return q if model.clamp == "before-zero-point" else _clamp(q, lo, hi)


def _clamp(v: float, lo: float, hi: float) -> float:
    return lo if v < lo else hi if v > hi else v  # noqa: FURB136 - min() is not defined for NaN


def _integer(r: float, z: float, bits: int) -> float:
    """The integer of ``bits`` that x86 converts ``r`` to, plus ``z``, wrapped."""
    lowest = -(2 ** (bits - 1))
    code = int(r) if isfinite(r) and lowest <= r < -lowest else lowest
    total = code + int(z) if isfinite(z) else code
    return float((total - lowest) % 2**bits + lowest)


def _nan_code(model: EvaluationModel, z: float, grid: Grid, held: Format) -> float:
    match model.nan:
        case "propagate":
            return nan
        case "zero":
            return 0.0
        case "zero-point":
            return round_value(_clamp(z, float(grid.qmin), float(grid.qmax)), held)
        case "qmin":
            return round_value(float(grid.qmin), held)
        case "qmax":
            return round_value(float(grid.qmax), held)
