"""One value explained: its exact quotient, each step's bits, what every known system gives, and which choices would."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.explaining.changes import changes
from halfeven.conformance.explaining.explanation import Number, Step, ValueExplanation
from halfeven.conformance.explaining.given import TEXTBOOK, Given, by_formula, by_profile
from halfeven.conformance.explaining.known import known, spelled
from halfeven.conformance.explaining.numbers import bits, decimal, exactly, integer, near, overflowed, real, whole
from halfeven.conformance.explaining.steps import is_tie, steps
from halfeven.conformance.nearest import among, nearest
from halfeven.reference import FORMULAS, Grid
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import Formula
from halfeven.reference.exact import distance_to_tie, quotient
from halfeven.reference.profile import OPERATIONS, Operation, Profile
from halfeven.reference.systems import PROFILES, profile_of

__all__ = ["explain_value", "given_of"]

_BEYOND = 2**31  # where zero points of int32 end


def explain_value(
    x: Any,
    scale: Any,
    zero: Any = 0,
    *,
    code: Any = None,
    result: Any = None,
    operation: Operation = "quantize",
    dtype: str = "float32",
    scale_dtype: str = "",
    grid: Grid = Grid(-128, 127),  # noqa: B008 - a frozen value
    profile: str = "",
    formula: str = "",
    amax: Any = None,
    any_code: bool = False,
) -> ValueExplanation:
    """Explain what becomes of one value, in the terms of x̂ = (q - z) * s.

    Args:
        x: the real, or for dequantize the code. Numbers may be text: a decimal, a fraction such as ``1/3``, ``nan``,
            ``inf``, or a bit pattern such as ``0x3e800000``; each is rounded to its dtype once.
        scale: real per code; a system whose parameter is amax is handed scale * qmax.
        zero: the zero point, a whole number; a system that has an offset is handed its negative.
        code: the code that was seen, to ask which choices give it.
        result: the real that was seen, likewise, for dequantize and fake_quantize.
        operation: quantize, dequantize or fake_quantize; of a formula its own.
        dtype: of the reals: float32, float64, float16 or bfloat16.
        scale_dtype: of the scale; by default that of the reals.
        grid: the codes.
        profile: whose document the value is explained by; by default the textbook's, clamp(half_even(x / s) + z).
        formula: likewise, by the id of a formula that quantizes on a grid.
        amax: what a system that documents amax is handed, where it is not scale * qmax.
        any_code: whether ``code`` may lie outside the grid, as one that an implementation gave.

    Raises:
        ValueError: a number, a name or a combination of them is not accepted; the message says what is. Without
            ``any_code`` a code outside the grid is not, nor NaN where x / s is a number.

    >>> found = explain_value(0.25, 0.1, code=3)
    >>> found.result, found.says
    ('2', '2.49999996, 3.7e-08 below the tie at 2.5')
    >>> [c.because for c in found.changes if "HE111" in c.codes]
    ['float32 makes a tie of 2.49999996']
    """
    claimed, own = _claim(profile, formula)
    if own is not None and own.affine is not None:
        operation = own.affine.operation
    given = given_of(x, scale, zero, operation=operation, dtype=dtype, scale_dtype=scale_dtype, grid=grid)
    _documented(claimed, given)
    if amax is not None:
        given = replace(given, amax=real("amax", amax, scale_dtype or dtype))
    wanted, predicate = _wanted(given, code, result, any_code=any_code)
    document = by_profile(claimed, given) if own is None else by_formula(own, given)
    way = steps(claimed, given)
    if spelled(given, document) != spelled(given, by_profile(claimed, given)):  # a formula with arithmetic of its own
        way["the formula's own result"] = document
    exact, says = _exact(given, document)
    says = "; ".join([says, *_beyond(given, x, scale)])
    systems, refused = known(given)
    return ValueExplanation(
        operation,
        dtype,
        str(grid),
        f"{own.id if own is not None else claimed.name}: {claimed.title}",
        _number(given.x[0]),
        _number(given.scale),
        given.zero,
        exact,
        says,
        tuple(_step(given, name, value) for name, value in way.items()),
        spelled(given, document),
        systems,
        refused,
        wanted,
        () if predicate is None else changes(claimed, given, predicate),
    )


def given_of(x: Any, scale: Any, zero: Any, *, operation: Operation, dtype: str, scale_dtype: str, grid: Grid) -> Given:
    """A value to explain; arguments and errors as in ``explain_value``."""
    among("operation", operation, OPERATIONS)
    among("dtype", dtype, DTYPES)
    among("scale_dtype", scale_dtype or dtype, DTYPES)
    s = real("scale", scale, scale_dtype or dtype)
    z = integer("zero", zero)
    if abs(z) >= _BEYOND:
        msg = f"zero={z} is not accepted: give one that int32 holds"
        raise ValueError(msg)
    return Given(operation, _input(operation, x, dtype, grid), s, z, grid, dtype)


def _claim(profile: str, formula: str) -> tuple[Profile, Formula | None]:
    if profile and formula:
        msg = f"profile={profile!r} is not accepted with formula={formula!r}: give one of them"
        raise ValueError(msg)
    if profile:
        if profile not in PROFILES:
            near_ones = nearest(profile, PROFILES) or f": give one of {_listed(PROFILES)}"
            msg = f"profile={profile!r} is not accepted{near_ones}"
            raise ValueError(msg)
        return PROFILES[profile], None
    if not formula:
        return TEXTBOOK, None
    on_grids = [f.id for f in FORMULAS.values() if f.affine is not None]
    if formula not in FORMULAS or FORMULAS[formula].affine is None:
        near_ones = nearest(formula, on_grids)
        msg = f"formula={formula!r} is not accepted{near_ones or ': give one that quantizes on a grid'}"
        raise ValueError(msg)
    found = FORMULAS[formula]
    assert found.affine is not None
    return PROFILES[profile_of(found) or found.affine.profile], found


def _documented(claimed: Profile, given: Given) -> None:
    """Refuse what the document claimed does not have."""
    if given.operation == "dequantize" and "dequantize" not in claimed.operations:
        own = ", ".join(claimed.operations) or "no operation"
        msg = f"operation='dequantize' is not accepted: {claimed.name} documents {own}"
        raise ValueError(msg)
    if given.zero and len(claimed.parameters) == 1:
        msg = f"zero={given.zero} is not accepted: {claimed.name} has no zero point"
        raise ValueError(msg)


def _input(operation: Operation, x: Any, dtype: str, grid: Grid) -> Array:
    if operation != "dequantize":
        return real("x", x, dtype).reshape(1)
    q = integer("x", x)
    if q not in grid:
        msg = f"x={q} is not accepted: to dequantize give a code of {grid}"
        raise ValueError(msg)
    return np.asarray([q], np.int64)


def _wanted(
    given: Given, code: Any, result: Any, *, any_code: bool
) -> tuple[str, Callable[[Profile, Given], bool] | None]:
    """What was seen, in words, and whether a profile gives it."""
    if code is not None and result is not None:
        msg = f"code={code!r} is not accepted with result={result!r}: give one of them"
        raise ValueError(msg)
    if code is None and result is None:
        return "", None
    if code is not None:
        return _wanted_code(given, code, any_code=any_code)
    if given.operation == "quantize":
        msg = f"result={result!r} is not accepted with quantize: give the code that was seen as code"
        raise ValueError(msg)
    target = real("result", result, given.dtype)
    if (said := overflowed("result", result, target)) is not None:
        msg = f"result={result!r} is not accepted: {said}"
        raise ValueError(msg)
    pattern, none = bits(target), bool(np.isnan(target))

    def same(profile: Profile, at: Given) -> bool:
        found = by_profile(profile, at)
        return bool(np.isnan(found.astype(np.float64))[0]) if none else bits(found) == pattern

    return spelled(given, target), same


def _wanted_code(given: Given, code: Any, *, any_code: bool) -> tuple[str, Callable[[Profile, Given], bool]]:
    """The same of a code."""
    if given.operation == "dequantize":
        msg = f"code={code!r} is not accepted with dequantize: give the real that was seen as result"
        raise ValueError(msg)
    if str(code).lower() == "nan":
        if not (any_code or _is_nan(given)):
            msg = f"code={code!r} is not accepted: x / s is a number here, give a code of {given.grid}"
            raise ValueError(msg)
        return "NaN", lambda profile, at: bool(np.isnan(_code(profile, at)))
    q = integer("code", code)
    if not any_code and q not in given.grid:
        msg = f"code={code!r} is not accepted: give one of {given.grid}, {given.grid.qmin} to {given.grid.qmax}"
        raise ValueError(msg)
    return str(q), lambda profile, at: bool(_code(profile, at) == q)


def _is_nan(given: Given) -> bool:
    """Whether the real quotient is no number."""
    with np.errstate(all="ignore"):
        return bool(np.isnan(given.x.astype(np.float64) / given.scale.astype(np.float64)).all())


def _beyond(given: Given, x: Any, scale: Any) -> list[str]:
    """What is said of numbers that their dtypes do not reach."""
    named = [("x", x, given.x), ("s", scale, given.scale)] if given.operation != "dequantize" else []
    named = named or [("s", scale, given.scale)]
    return [said for name, typed, held in named if (said := overflowed(name, typed, held)) is not None]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(n for n in names if "@" not in n)


def _code(profile: Profile, given: Given) -> Any:
    return np.asarray(by_profile(profile, replace(given, operation="quantize")), np.float64)[0]


def _exact(given: Given, document: Array) -> tuple[str, str]:
    s = float(given.scale)
    x = float(given.x[0])
    if not np.isfinite([x, s]).all():
        return "", "x or s is not finite: there is no exact quotient"
    if given.operation == "dequantize":
        product = (int(given.x[0]) - given.zero) * Fraction(s)
        return str(product), _compared(product, document)
    if not s:
        return "", "s is 0: there is no exact quotient"
    v = quotient(x, s)
    distance = distance_to_tie(x, s)
    tie = v - distance
    if not given.grid.qmin - 1 <= v + given.zero <= given.grid.qmax + 1:
        return str(v), f"{exactly(v)}, beyond the grid"
    if not distance:
        return str(v), f"{exactly(v)}, a tie"
    side = "below" if distance < 0 else "above"
    return str(v), f"{exactly(v, tie, Fraction(round(v)))}, {near(distance)} {side} the tie at {exactly(tie)}"


def _compared(product: Fraction, document: Array) -> str:
    got = float(document[0])
    if not np.isfinite(got):
        return exactly(product)
    off = Fraction(got) - product
    if not off:
        return f"{exactly(product)}, which the result is"
    return f"{exactly(product, Fraction(got))}; the result is {near(off)} {'below' if off < 0 else 'above'} it"


def _number(a: Any) -> Number:
    one = np.asarray(a).reshape(())
    if one.dtype.kind in "iu":
        return Number(decimal(one))
    return Number(decimal(one), bits(one), one.dtype.name)


def _step(given: Given, name: str, value: Array) -> Step:
    note = ""
    if name == "quotient" and is_tie(value):
        x, s = float(given.x[0]), float(given.scale)
        exact = quotient(x, s) if np.isfinite([x, s]).all() and s else None
        real_tie = exact is not None and (2 * exact).denominator == 1
        note = "a tie" if real_tie else "a tie, which x / s is not"
    integral = name in {"rounded", "sum", "code"} and np.isfinite(np.asarray(value, np.float64)).all()
    return Step(name, Number(whole(value)) if integral else _number(value), note)
