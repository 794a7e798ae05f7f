"""The oracle: the evaluation model scalar by scalar, in ``fractions.Fraction`` and ints. Slow, and shares no code.

A value of a float format is a Python float that the format holds, so infinities, NaN and the sign of zero have their
place; between two roundings every number is a rational.
"""

from dataclasses import dataclass, replace
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
    wide = _named(model.quotient, form)  # the format of what follows the division
    after, late = _adds_after(model), float(grid.qmin) if _in_range(model) else exact_zero
    v = _quotient(model, round_value(x, form), scale, exact_zero, grid, form, scale_form)
    lo, hi, z = (round_value(a, wide) for a in (float(grid.qmin), float(grid.qmax), late))
    is_nan = isnan(v)
    if model.clamp == "before-rounding":
        v = _clamp(v, add(lo, -z, wide), add(hi, -z, wide)) if after else _clamp(v, lo, hi)
    r = _rounded(model, v, wide)
    if model.clamp in ("before-zero-point", "twice"):
        r = _clamp(r, lo, hi)
    q, held = _sum(model, r, z, late, wide)
    is_nan = is_nan or isnan(r)
    if is_nan and not (model.nan == "propagate" and model.integer.startswith("int")):
        return _nan_code(model, exact_zero, grid, FORMATS["float64"] if _is_limited_again(model, grid, held) else held)
    return _to_grid(model, q, grid, held)


def dequantize(
    model: EvaluationModel,
    q: float,
    scale: float,
    zero: float,
    form: Format,
    scale_form: Format | None = None,
    grid: Grid | None = None,
) -> float:
    """The real of one code in ``form``; the scale's own format, if another, matters where the product is in it."""
    scale_form = scale_form or form
    wide = {"output": form, "narrowed": form, "promoted": _promoted(form, scale_form), "scale": scale_form}.get(
        model.product
    ) or FORMATS[model.product]
    narrow = form if model.product == "promoted" else wide
    held = _held(model, scale, scale_form)
    s = round_value(held, wide)
    over = model.division == "multiply-by-q-per-real"
    step = divide(1.0, s, wide) if over else s
    # Adding -0.0 changes nothing, not even the sign of a zero.
    z = {"q-z": -float(zero), "q+o": float(zero), "none": -0.0}[model.sign]
    match model.subtract:
        case "float":
            difference = round_value(add(round_value(q, narrow), round_value(z, narrow), narrow), wide)
        case "exact":
            difference = round_value(add(q, z, FORMATS["float64"]), wide)
        case "int32":
            difference = round_value(round_value(_integer(q, z, 32), narrow), wide)
        case short:
            total = int(_integer(q, 0.0, 32)) + int(z)
            lowest = 0 if short == "uint8" else -(2 ** (8 if short == "int8" else 16)) // 2
            total = (total - lowest) % (65536 if short == "int16" else 256) + lowest
            difference = round_value(round_value(float(total), narrow), wide)
    match model.form:
        case "product":
            found = divide(difference, s, wide) if over else multiply(difference, s, wide)
        case "inverse":
            other = _inverse(model, held, wide, scale_form)
            found = multiply(difference, other, wide) if over else divide(difference, other, wide)
        case "distributed" | "fused":
            point, known = round_value(-z if model.sign != "none" else 0.0, wide), round_value(q, wide)
            shift = -multiply(point, step, wide)
            if model.form == "fused":
                found = fused_multiply_add(known, step, shift, wide)
            else:
                found = add(multiply(known, step, wide), shift, wide)
        case _:
            lo, hi = round_value(float(grid.qmin), wide), round_value(float(grid.qmax), wide)
            point = round_value(z if model.sign != "none" else 0.0, wide)
            low, high = (multiply(add(end, point, wide), step, wide) for end in (lo, hi))
            above = add(round_value(q, wide), -lo, wide)
            if model.form == "low":
                found = add(multiply(above, step, wide), low, wide)
            else:
                share = divide(above, add(hi, -lo, wide), wide)
                found = add(multiply(share, add(high, -low, wide), wide), low, wide)
    return round_value(found, form)


def fake_quantize(
    model: EvaluationModel, x: float, scale: float, zero: float, grid: Grid, x_form: Format, scale_form: Format
) -> float:
    """One ``x`` quantized, then dequantized in the compute format, or in its own where the product is promoted."""
    q = quantize(replace(model, ends="kept"), x, scale, zero, grid, x_form, scale_form)
    form = x_form if model.product != "output" else _compute(model, x_form, scale_form, grid)
    found = round_value(dequantize(model, q, scale, zero, form, scale_form, grid), x_form)
    x = round_value(x, x_form)
    return found if model.returned == "reals" else add(x, add(found, -x, x_form), x_form)


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


def _named(name: str, form: Format) -> Format:
    return FORMATS.get(name, form)


def _held(model: EvaluationModel, scale: float, scale_form: Format) -> float:
    return round_value(round_value(scale, _named(model.held, scale_form)), scale_form)


def _inverse(model: EvaluationModel, held: float, form: Format, scale_form: Format) -> float:
    if model.inverse == "scale":
        return round_value(divide(1.0, held, scale_form), form)
    to = _named(model.inverse, form)
    wide = _promoted(_promoted(scale_form, to), FORMATS["float32"])
    return round_value(round_value(divide(1.0, held, wide), to), form)


def _quotient(
    model: EvaluationModel, x: float, scale: float, zero: float, grid: Grid, form: Format, scale_form: Format
) -> float:
    held = _held(model, scale, scale_form)
    s, wide = round_value(held, form), _named(model.quotient, form)
    before = model.zero_point != "after-rounding" and model.sign != "none"
    constant = {"half-up": 0.5, "half-down": -0.5, "half-truncated": 0.5}.get(model.rounding)
    if model.half not in ("with-zero-point", "fused"):
        constant = None
    factor = None
    if _in_range(model):
        v = _in_codes(model, x, s, held, zero, grid, form, scale_form)
        zero, before = float(grid.qmin), model.zero_point == "before-rounding"
    elif model.division == "divide":
        v = divide(x, s, form)
    else:
        factor = s if model.division == "multiply-by-q-per-real" else _inverse(model, held, form, scale_form)
        v = multiply(x, factor, form)
    if not before and constant is None:
        return round_value(v, wide)
    addend = zero if constant is None else (zero if before else 0.0) + constant
    if factor is not None and ((before and model.zero_point == "fused") or model.half == "fused"):
        return round_value(fused_multiply_add(x, factor, round_value(addend, form), form), wide)
    return add(round_value(v, wide), round_value(addend, wide), wide)


def _in_range(model: EvaluationModel) -> bool:
    return model.division.startswith(("range", "low"))


def _in_codes(
    model: EvaluationModel,
    x: float,
    s: float,
    held: float,
    zero: float,
    grid: Grid,
    form: Format,
    scale_form: Format,
) -> float:
    z, lo, hi = (round_value(float(v), form) for v in (zero, grid.qmin, grid.qmax))
    low, high = (multiply(add(end, -z, form), s, form) for end in (lo, hi))
    x = _clamp(x, low, high)
    n, width, above = add(hi, -lo, form), add(high, -low, form), add(x, -low, form)

    def affine() -> float:
        factor = divide(n, width, form)
        shift = multiply(-low, factor, form)
        if model.zero_point == "fused":
            return fused_multiply_add(x, factor, shift, form)
        return add(multiply(x, factor, form), shift, form)

    orders = {
        "range": lambda: multiply(divide(above, width, form), n, form),
        "range-factor": lambda: multiply(above, divide(n, width, form), form),
        "range-step": lambda: divide(above, divide(width, n, form), form),
        "range-last": lambda: divide(multiply(above, n, form), width, form),
        "range-affine": affine,
        "low": lambda: divide(above, s, form),
        "low-reciprocal": lambda: multiply(above, _inverse(model, held, form, scale_form), form),
    }
    return orders[model.division]()


def _rounded(model: EvaluationModel, v: float, form: Format) -> float:
    rule = model.rounding
    if model.half == "difference":
        return add(add(_rounded(replace(model, half="exact"), v, form), -v, form), v, form)
    if not isfinite(v):
        return v
    match rule, model.half:
        case "half-truncated", "exact":
            total = Fraction(v) + Fraction(1, 2)
            return copysign(round_value(float(round_integer(total, "toward-zero")), form), v)
        case (("half-up" | "half-down" | "half-truncated"), ("added" | "with-zero-point" | "fused") as half):
            constant = -0.5 if rule == "half-down" else 0.5
            total = add(v, constant, form) if half == "added" else v
            whole = _whole(total, {"half-up": "floor", "half-down": "ceil"}.get(rule, "toward-zero"), form)
        case "half-away", ("added" | "with-zero-point" | "fused"):
            whole = _whole(add(v, copysign(0.5, v), form), "toward-zero", form)
        case "half-to-zero", ("added" | "with-zero-point" | "fused"):
            whole = copysign(_whole(add(abs(v), -0.5, form), "ceil", form), v)
        case "half-even", ("added" | "with-zero-point" | "fused"):
            magic = 1.5 * ldexp(1.0, form.precision - 1)
            whole = add(add(v, magic, form), -magic, form)
        case _:
            whole = _whole(v, rule, form)
    return whole


def _whole(v: float, rule: str, form: Format) -> float:
    return copysign(round_value(float(round_integer(Fraction(v), rule)), form), v) if isfinite(v) else v


def _adds_after(model: EvaluationModel) -> bool:
    if _in_range(model):
        return model.zero_point != "before-rounding"
    return model.zero_point == "after-rounding" and model.sign != "none"


def _sum(model: EvaluationModel, r: float, z: float, exact_zero: float, form: Format) -> tuple[float, Format]:
    """The rounded quotient with the zero point in it, and the format that holds it."""
    wide, after = FORMATS["float64"], _adds_after(model)
    extra = exact_zero if after else 0.0
    summed = add(r, z, form) if after else r
    match model.integer:
        case "none":
            return summed, form
        case "exact":
            q = add(r, exact_zero, wide) if after else r
        case "int32" | "int64" as name:
            q = _integer(r, extra, int(name[3:]))
        case "int32-exact":
            q = _integer(r, 0.0, 32) + extra
        case "int32-saturating":
            code = 0 if isnan(r) else int(min(max(r, -(2.0**31)), 2.0**31 - 1))
            q = float((code + int(extra) + 2**31) % 2**32 - 2**31)
        case "int32-sum" | "int64-sum" as name:
            q = _integer(summed, 0.0, int(name[3:5]))
        case "int64-int32":
            low = int(_integer(r, 0.0, 64)) + int(extra)
            q = float((low + 2**31) % 2**32 - 2**31)
        case "int8-exact":
            q = float((int(_integer(add(r, extra, wide), 0.0, 32)) + 2**7) % 2**8 - 2**7)
        case short:
            bits, of_sum = int(short.removesuffix("-sum")[3:]), short.endswith("-sum")
            code = int(_integer(summed if of_sum else r, 0.0, 32))
            low = (code + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
            q = float(low) + (0.0 if of_sum else extra)
    return q, wide


def _to_grid(model: EvaluationModel, q: float, grid: Grid, held: Format) -> float:
    lo, hi = round_value(float(grid.qmin), held), round_value(float(grid.qmax), held)
    if model.overflow == "wrap":
        if not isfinite(q):
            return lo
        return round_to((Fraction(q) - grid.qmin) % (grid.qmax - grid.qmin + 1) + grid.qmin, held)
    if model.clamp == "before-zero-point":
        return q
    code = _clamp(q, lo, hi)
    if model.ends == "kept":  # an end that was rounded inward is as far as codes get
        return _clamp(code, float(grid.qmin), float(grid.qmax))
    outward = lo < grid.qmin or hi > grid.qmax
    if outward and grid.qmin >= -(2**31) and grid.qmax < 2**31 <= code:
        return -(2.0**31)
    return code


def _is_limited_again(model: EvaluationModel, grid: Grid, held: Format) -> bool:
    """Whether an end is rounded outward, so that codes are held in a wider format."""
    lo, hi = round_value(float(grid.qmin), held), round_value(float(grid.qmax), held)
    return model.overflow == "saturate" and model.clamp != "before-zero-point" and (lo < grid.qmin or hi > grid.qmax)


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
