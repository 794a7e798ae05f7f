"""Witnesses: of all points that differ the simplest one, cut down to the smallest call that still shows it."""

import contextlib
import inspect
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.bits import signed_bits
from halfeven.conformance.call import Caller, Crash, Fault
from halfeven.conformance.compare import compare_codes, compare_reals
from halfeven.conformance.configuration import DTYPES, Case, Configuration
from halfeven.conformance.explain import evaluation_of, flat
from halfeven.conformance.expression import expression
from halfeven.conformance.report.model import Witness
from halfeven.reference import exact
from halfeven.reference.blocks import Array
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES

__all__ = ["array_source", "hexadecimal", "tensor_source", "witness"]

# A vector kernel may treat the element in a full vector otherwise than the one left over.
_COPIES = (1, 64)
_UNREACHABLE = "# No module has {1}: put it here, named {0}."
_SPELL_OUT = 64


def witness(backend: Backend, case: Case, expected: Array, actual: Array, where: Sequence[int] | Array) -> Witness:
    """The witness of a call in which the points ``where`` (flat indices) differ."""
    elements = flat(case)
    values, wanted = np.ascontiguousarray(actual).ravel(), np.broadcast_to(expected, actual.shape).ravel()
    index = min(where[:4096], key=lambda i: _simplicity(elements, int(i)))
    x, scale, zero = (a[index] for a in (elements.x, elements.scale, elements.zero))
    found = _smallest(backend, elements, int(index))
    small, want, got = found or (case, wanted[index:], values[index:])
    quotient, to_tie = _exact(PROFILES[backend.profile], case, x, scale)
    c = case.configuration
    coordinates = tuple(int(j) for j in np.unravel_index(index, case.x.shape))
    call = f"element {coordinates} of shape {case.x.shape}, {c}, blocks {c.block_size or 'none'}"
    return Witness(
        x=hexadecimal(x),
        scale=hexadecimal(scale),
        zero=hexadecimal(zero) if len(PROFILES[backend.profile].parameters) > 1 else "none",
        expected=_shown(c, want[0]),
        actual=_shown(c, got[0]),
        quotient=quotient,
        to_tie=to_tie,
        where=call,
        script=_script(backend, small, want[0], () if found else coordinates) if small.x.size <= 2 * _SPELL_OUT else "",
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


def _smallest(backend: Backend, elements: Case, index: int) -> tuple[Case, Array, Array] | None:
    """The element alone, then in a full vector, per tensor or in one or two rows; with what was expected and given."""
    caller, c = Caller(backend), elements.configuration
    forms = [None] if "tensor" in backend.granularities else []
    granularity = next((g for g in (c.granularity, *backend.granularities) if g != "tensor"), None)
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
                layout="contiguous",
            ),
            np.full(shape, x, x.dtype),
            np.full(held, scale, scale.dtype),
            np.full(held, zero, zero.dtype),
        )
        with contextlib.suppress(Crash, Fault, Unsupported):
            answer = caller(alone)
            expected = np.broadcast_to(evaluation_of(PROFILES[backend.profile], alone), answer.shape)
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


def _script(backend: Backend, case: Case, wanted: Any, at: tuple[int, ...]) -> str:
    """Python source that shows the difference with NumPy and the target alone."""
    c, profile = case.configuration, PROFILES[backend.profile]
    names = ["q" if c.operation == "dequantize" else "x", *profile.parameters]
    arrays = dict(zip(names, (case.x, case.scale, case.zero), strict=False))
    formula = expression(profile, c.operation, c.grid, DTYPES[c.dtype], case.scale.dtype)
    imports, called = _target(backend, case, names)
    needed = imports.splitlines()
    lines = [*(line for line in needed if line.startswith("from __future__")), "import numpy as np"]
    if "ml_dtypes" in formula or any(a.dtype == ml_dtypes.bfloat16 for a in arrays.values()):
        lines.append("import ml_dtypes")
    lines += [line for line in needed if line not in lines]
    lines += [f"{name} = {_literal(a)}" for name, a in arrays.items()]
    if c.operation != "dequantize":
        lines.append(f"qmin, qmax = {c.grid.qmin}, {c.grid.qmax}")
    if not at and _formula_gives(formula, arrays, case, wanted):
        lines.append(f"expected = {formula}")
    else:
        number = float(wanted)
        literal = repr(number) if np.isfinite(number) else f"float('{number}')"
        lines.append(f"expected = {literal}  # {hexadecimal(wanted)}: the reference")
    if backend.array == "torch":
        lines += [f"{name} = {tensor_source(name, a)}" for name, a in arrays.items()]
    element = f"actual[{', '.join(map(str, at))}]" if at else "actual"
    return "\n".join([*lines, f"actual = {called}", f"print(expected, {element})"])


def _target(backend: Backend, case: Case, names: list[str]) -> tuple[str, str]:
    c = case.configuration
    if backend.script is not None:
        return backend.script(replace(c, shape=case.x.shape))
    function = backend.operations[c.operation]
    owner = getattr(function, "__self__", None)
    name = type(owner).__name__ if owner is not None else getattr(function, "__name__", "function")
    home = inspect.getmodule(function)
    reachable = getattr(home, name, None) is (function if owner is None else type(owner))
    if not reachable:  # a lambda, a partial, what another function defines
        quoted = f"`{getattr(function, '__qualname__', type(function).__name__)}`"
        name = "function" if owner is None else "Backend"
    called = f"{name}().{c.operation}" if owner is not None else name
    keywords = Caller(backend).keywords(c)
    keywords.pop("dtype", None)
    passed = ", ".join([*names, *(f"{key}={value}" for key, value in keywords.items() if value is not None)])
    torch = "import torch\n" if backend.array == "torch" else ""
    brought = f"from {_importable(home)} import {name}" if reachable else _UNREACHABLE.format(name, quoted)
    return f"{torch}{brought}", f"{called}({passed})"


def _importable(home: ModuleType | None) -> str:
    """The module's name; that of its file where it is the program itself, which cannot be imported as such."""
    if home is None or (home.__name__ == "__main__" and not Path(getattr(home, "__file__", None) or "").is_file()):
        return "__main__"
    return Path(str(home.__file__)).stem if home.__name__ == "__main__" else home.__name__


def _formula_gives(formula: str, arrays: dict[str, Array], case: Case, wanted: Any) -> bool:
    grid = case.configuration.grid
    scope = {"np": np, "ml_dtypes": ml_dtypes, **arrays, "qmin": grid.qmin, "qmax": grid.qmax}
    with np.errstate(all="ignore"), contextlib.suppress(Exception):
        value = np.asarray(eval(formula, scope)).ravel()[0]  # noqa: S307 - the formula is the profile's own text
        both_nan = bool(np.isnan(value) and np.isnan(wanted))
        return both_nan or (float(value) == float(wanted) and np.signbit(value) == np.signbit(wanted))
    return False


def _literal(a: Array) -> str:
    """``array_source`` with the first values next to it."""
    if a.dtype.kind in "iu" or _one_value(a):
        return array_source(a)
    return f"{array_source(a)}  # {', '.join(map(repr, a.astype(np.float64).ravel()[:4].tolist()))}"


def array_source(a: Array) -> str:
    """Python that makes the array, floats by their bits."""
    if a.dtype.kind in "iub":
        return f"np.array({a.tolist()}, np.{a.dtype.name})"
    unsigned = _bits(a)
    dtype = f"np.{a.dtype.name}" if hasattr(np, a.dtype.name) else f"ml_dtypes.{a.dtype.name}"
    if _one_value(a):
        return f"np.full({a.shape}, {hex(int(unsigned.flat[0]))}, np.{unsigned.dtype.name}).view({dtype})"
    if not a.size:
        return f"np.empty({a.shape}, {dtype})"
    digits = np.array2string(unsigned, separator=", ", formatter={"int": hex}, threshold=10**6, max_line_width=10**6)
    digits = digits.replace("\n", "")
    return f"np.array({digits}, np.{unsigned.dtype.name}).view({dtype})"


def tensor_source(source: str, a: Array) -> str:
    """Python that makes a tensor of the array that ``source`` makes."""
    if a.dtype == ml_dtypes.bfloat16:
        return f"torch.from_numpy({source}.view(np.int16)).view(torch.bfloat16)"
    if a.dtype.name.startswith("float8"):
        return f"torch.from_numpy({source}.view(np.uint8)).view(torch.{a.dtype.name})"
    return f"torch.from_numpy({source})"


def _bits(a: Array) -> Array:
    bits: Array = np.array(a, order="C").view(f"uint{8 * a.dtype.itemsize}")  # ascontiguousarray makes 0-d arrays 1-d
    return bits


def _one_value(a: Array) -> bool:
    unsigned = _bits(a)
    return a.size > 1 and bool((unsigned == unsigned.flat[0]).all())
