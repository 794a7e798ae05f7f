"""Witnesses: of all points that differ the simplest one, cut down to the smallest call that still shows it."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import signed_bits
from halfeven.conformance.configuration import DTYPES, Case, Configuration
from halfeven.conformance.engine.call import PLAIN
from halfeven.conformance.engine.compare import compare_codes, compare_reals
from halfeven.conformance.engine.evidence import Crash, Ended, Evidence, Fault, Judged
from halfeven.conformance.engine.explain import evaluation_of, flat
from halfeven.conformance.engine.expression import expression
from halfeven.conformance.engine.literal import literal, tensor_source
from halfeven.conformance.report.model import Witness
from halfeven.reference import exact
from halfeven.reference.blocks import Array
from halfeven.reference.profile import Profile

__all__ = ["hexadecimal", "witness"]

# A vector kernel may treat the element in a full vector otherwise than the one left over.
_COPIES = (1, 64)
_SPELL_OUT = 64


def witness(e: Evidence, asked: Judged, where: Sequence[int] | Array) -> Witness:
    """The witness of a call of an operation in which the points ``where`` (flat indices) differ."""
    case, expected, actual = asked.case, asked.expected.value, asked.actual.value
    assert case is not None, "an operation's"
    profile = e.setting.profile
    elements = flat(case)
    values, wanted = np.ascontiguousarray(actual).ravel(), np.broadcast_to(expected, actual.shape).ravel()
    index = min(where[:4096], key=lambda i: _simplicity(elements, int(i)))
    x, scale, zero = (a[index] for a in (elements.x, elements.scale, elements.zero))
    found = _smallest(e, elements, int(index))
    small, want, got = found or (case, wanted[index:], values[index:])
    quotient, to_tie = _exact(profile, case, x, scale)
    c = case.configuration
    coordinates = tuple(int(j) for j in np.unravel_index(index, case.x.shape))
    call = f"element {coordinates} of shape {case.x.shape}, {c}, blocks {c.block_size or 'none'}"
    call += f"; {asked.shape}" if asked.shape != PLAIN else ""
    return Witness(
        x=hexadecimal(x),
        scale=hexadecimal(scale),
        zero=hexadecimal(zero) if len(profile.parameters) > 1 else "none",
        expected=_shown(c, want[0]),
        actual=_shown(c, got[0]),
        quotient=quotient,
        to_tie=to_tie,
        where=call,
        script=_script(e, small, want[0], () if found else coordinates) if small.x.size <= 2 * _SPELL_OUT else "",
        reproduced=found is not None,
    )


def hexadecimal(value: Any) -> str:
    """``0x3f000000 (0.5)`` for a float, the number itself for an integer."""
    a = np.asarray(value)
    if a.dtype.kind in "iu":
        return str(int(a))
    bits = int(signed_bits(a)) & (2 ** (8 * a.dtype.itemsize) - 1)
    return f"0x{bits:0{2 * a.dtype.itemsize}x} ({float(a)!r})"


def _simplicity(elements: Case, i: int) -> tuple[float, float, int]:
    """Points with a round scale, a small zero point and a small quotient are the easiest to follow."""
    x, scale, zero = float(elements.x[i]), float(elements.scale[i]), float(elements.zero[i])
    if not np.isfinite(x):
        return np.inf, 0.0, 0
    ratio = abs(x / scale) if scale else abs(x)
    return ratio + abs(zero), scale, len(repr(x))


def _smallest(e: Evidence, elements: Case, index: int) -> tuple[Case, Array, Array] | None:
    """The element alone, then in a full vector, per tensor or in one or two rows; with what was expected and given."""
    c, backend = elements.configuration, e.item.offer
    forms = [None] if "tensor" in backend.granularities else []
    granularity = next((g for g in (c.granularity, *backend.granularities) if g not in {"tensor", "any"}), None)
    rows = [1, 2] if granularity in backend.granularities else []
    for form, copies in product((*forms, *rows), _COPIES):
        shape = (copies,) if form is None else (form, copies)
        x, scale, zero = (np.array(a[index]) for a in (elements.x, elements.scale, elements.zero))
        held = () if form is None else (form, 1)
        alone = Case(
            replace(
                c,
                shape=shape,
                block_size=None if form is None else (1, copies),
                granularity="tensor" if granularity is None or form is None else granularity,
            ),
            np.full(shape, x, x.dtype),
            np.full(held, scale, scale.dtype),
            np.full(held, zero, zero.dtype),
        )
        with contextlib.suppress(Crash, Fault, Ended):
            [answer] = e.ask([alone])
            if answer is None:
                continue
            expected = np.broadcast_to(evaluation_of(e.setting.profile, alone), answer.shape)
            compare = compare_codes if c.operation == "quantize" else compare_reals
            if compare(expected, answer).differing:
                return alone, expected.ravel(), np.ascontiguousarray(answer).ravel()
    return None


def _exact(profile: Profile, case: Case, x: Any, parameter: Any) -> tuple[str, str]:
    """The exact quotient and its distance to the nearest tie; empty where there is none to speak of."""
    c = case.configuration
    given = float(parameter)
    if c.operation == "dequantize" or not np.isfinite(float(x)) or not np.isfinite(given) or not given:
        return "", ""
    scale = Fraction(given) / c.grid.qmax if profile.parameters[0] == "amax" else Fraction(given)
    quotient = exact.quotient(Fraction(float(x)), scale)
    return _fraction(quotient), _fraction(exact.distance_to_tie(Fraction(float(x)), scale))


def _fraction(value: Fraction) -> str:
    text = str(value)
    return f"{text} ({float(value)!r})" if "/" in text and abs(value) < Fraction(2) ** 1000 else text


def _shown(c: Configuration, value: Any) -> str:
    """A code as a number, whatever dtype holds it; a real by its bits."""
    number = float(value)
    whole = c.operation == "quantize" and number.is_integer() and not (number == 0 and np.signbit(number))
    return str(int(number)) if whole else hexadecimal(value)


def _script(e: Evidence, case: Case, wanted: Any, at: tuple[int, ...]) -> str:
    """Python source that shows the difference with NumPy and the target alone."""
    c, profile = case.configuration, e.setting.profile
    names = ["q" if c.operation == "dequantize" else "x", *profile.parameters]
    arrays = dict(zip(names, (case.x, case.scale, case.zero), strict=False))
    formula = expression(profile, c.operation, c.grid, DTYPES[c.dtype], case.scale.dtype)
    imports, called = e.worker.script(replace(c, shape=case.x.shape))
    needed = imports.splitlines()
    lines = [*(line for line in needed if line.startswith("from __future__")), "import numpy as np"]
    if "ml_dtypes" in formula or any(a.dtype == ml_dtypes.bfloat16 for a in arrays.values()):
        lines.append("import ml_dtypes")
    lines += [line for line in needed if line not in lines]
    lines += [f"{name} = {literal(a)}" for name, a in arrays.items()]
    if c.operation != "dequantize":
        lines.append(f"qmin, qmax = {c.grid.qmin}, {c.grid.qmax}")
    if not at and _formula_gives(formula, arrays, case, wanted):
        lines.append(f"expected = {formula}")
    else:
        number = float(wanted)
        said = repr(number) if np.isfinite(number) else f"float('{number}')"
        lines.append(f"expected = {said}  # {hexadecimal(wanted)}: the reference")
    if e.item.offer.array == "torch":
        lines += [f"{name} = {tensor_source(name, a)}" for name, a in arrays.items()]
    element = f"actual[{', '.join(map(str, at))}]" if at else "actual"
    return "\n".join([*lines, f"actual = {called}", f"print(expected, {element})"])


def _formula_gives(formula: str, arrays: dict[str, Array], case: Case, wanted: Any) -> bool:
    grid = case.configuration.grid
    scope = {"np": np, "ml_dtypes": ml_dtypes, **arrays, "qmin": grid.qmin, "qmax": grid.qmax}
    with np.errstate(all="ignore"), contextlib.suppress(Exception):
        value = np.asarray(eval(formula, scope)).ravel()[0]  # noqa: S307 - the formula is the profile's own text
        both_nan = bool(np.isnan(value) and np.isnan(wanted))
        return both_nan or (float(value) == float(wanted) and np.signbit(value) == np.signbit(wanted))
    return False
