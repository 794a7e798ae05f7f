"""Documented functions called with the arguments of a call set, and their answers compared bit for bit.

An answer is an array, a number, a word, or a tuple or dict of those; or the type of the error that was raised.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from halfeven.conformance.arrays import from_backend, to_torch
from halfeven.conformance.backends.protocol import ArrayKind, Unsupported
from halfeven.conformance.compare import Comparison, compare_codes, compare_reals
from halfeven.conformance.environment import restore
from halfeven.conformance.requirement import Arguments
from halfeven.reference.blocks import Array

__all__ = ["Answer", "Difference", "answer", "ask", "differences", "handed"]

_MUTATED = "MutatedInput"


@dataclass(frozen=True, eq=False)
class Answer:
    """What a call came to.

    Attributes:
        leaves: the values returned, by their place in the result.
        raised: the error's type and the types it derives from, the nearest first; empty where there was none.
        message: the error's message.
    """

    leaves: Mapping[str, Any]
    raised: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, eq=False)
class Difference:
    """How an answer differs from the one expected; of the first leaf that differs the comparison, if there is one."""

    points: int
    differing: int = 0
    steps: int = 0
    unit: str = ""
    words: str = ""
    leaf: str = ""
    comparison: Comparison | None = None


def answer(function: Callable[..., Any], arguments: Arguments) -> Answer:
    """The answer of a function of NumPy's, such as a formula."""
    return _answer(function, {name: _copied(value) for name, value in arguments.items()})


def ask(function: Callable[..., Any], arguments: Arguments, array: ArrayKind = "torch") -> Answer:
    """The answer of a backend's function.

    One that changes an argument, or how the process computes, is answered for with an error of its own.

    Raises:
        Unsupported: the backend does not offer the call, or torch has no such tensor; the message is the reason.
    """
    held = {name: _copied(value) for name, value in arguments.items()}
    given = {name: handed(value) for name, value in held.items()} if array == "torch" else dict(held)
    before = _state([held, given])
    found = _answer(function, given)
    if changed := restore():
        return Answer({}, ("ChangedProcess",), f"{changed} after the call")
    if _state([held, given]) != before:
        return Answer({}, (_MUTATED,), "the call changed an argument in place")
    return found


def differences(expected: Answer, actual: Answer) -> Difference:
    """Compare two answers: arrays by dtype, shape and bits (any NaN is any NaN), errors by their type."""
    if expected.raised or actual.raised:
        if expected.raised and expected.raised[0] in actual.raised:
            return Difference(1)
        does = f"raises {actual.raised[0]}" if actual.raised else "returns a result"
        says = f"raises {expected.raised[0]}" if expected.raised else "gives a result"
        return Difference(1, 1, words=f"{does} where the document {says}{_said(actual)}")
    if expected.leaves.keys() != actual.leaves.keys():
        wanted, got = (", ".join(a.leaves) or "nothing" for a in (expected, actual))
        return Difference(1, 1, words=f"returns {got} where the document gives {wanted}")
    found = [_leaf(name, expected.leaves[name], actual.leaves[name]) for name in expected.leaves]
    first = next((f for f in found if f.differing), Difference(0))
    points, differing = sum(f.points for f in found), sum(f.differing for f in found)
    return Difference(points, differing, first.steps, first.unit, first.words, first.leaf, first.comparison)


def _answer(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Answer:
    try:
        with np.errstate(all="ignore"):
            return Answer(dict(_leaves("result", function(**arguments))))
    except (Unsupported, KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:  # noqa: BLE001 - whatever is raised is the answer
        names = tuple(t.__name__ for t in type(error).__mro__ if issubclass(t, Exception))
        return Answer({}, names, str(error))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{name}[{key!r}]", inner)
    elif isinstance(value, tuple | list):
        yield f"len({name})", len(value)
        for i, inner in enumerate(value):
            yield from _leaves(f"{name}[{i}]", inner)
    elif isinstance(value, torch.Tensor):
        yield name, np.array(from_backend(value))  # a copy: a later call may write into the same buffer
    elif isinstance(value, np.ndarray | np.generic):
        yield name, np.array(value)
    else:
        yield name, value


def _leaf(name: str, expected: Any, actual: Any) -> Difference:
    if not isinstance(expected, np.ndarray) and not isinstance(actual, np.ndarray):
        same = type(expected) is type(actual) and (expected == actual or (expected != expected and actual != actual))  # noqa: PLR0124 - NaN
        return (
            Difference(1) if same else Difference(1, 1, words=_differs(name, repr(actual), repr(expected)), leaf=name)
        )
    e, a = np.asarray(expected), np.asarray(actual)
    if e.shape != a.shape:
        return Difference(1, 1, words=_differs(name, f"of shape {a.shape}", f"{e.shape}"), leaf=name)
    if e.dtype != a.dtype:
        every = max(e.size, 1)
        return Difference(every, every, words=_differs(name, f"{a.dtype}", f"{e.dtype}"), leaf=name)
    comparison = compare_reals(e, a) if _is_float(e) else compare_codes(e, a)
    if not comparison.differing:
        return Difference(max(e.size, 1))
    i = int(comparison.where[0])
    at = f"{name}{[int(j) for j in np.unravel_index(i, e.shape)] if e.shape else ''}"
    words = _differs(at, _shown(a.ravel()[i]), _shown(e.ravel()[i]))
    return Difference(e.size, comparison.differing, comparison.steps, comparison.unit, words, name, comparison)


def _differs(leaf: str, actual: str, expected: str) -> str:
    return f"{leaf} is {actual} where the document gives {expected}"


def _shown(value: Any) -> str:
    return f"{float(value)!r} ({float(value).hex()})" if _is_float(np.asarray(value)) else str(value)


def _said(found: Answer) -> str:
    return f": {found.message.splitlines()[0]}" if found.message else ""


def _is_float(a: Array) -> bool:
    return a.dtype.name.startswith(("bfloat", "float"))


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return np.array(value)
    return type(value)(map(_copied, value)) if isinstance(value, tuple | list) else value


def handed(value: Any) -> Any:
    """An argument with torch's tensors for its arrays, over the same memory.

    Raises:
        Unsupported: torch has no such tensor.
    """
    if isinstance(value, np.ndarray | np.generic):
        try:
            return to_torch(np.asarray(value))
        except TypeError:  # such as int4
            msg = f"torch has no tensor of {value.dtype}"
            raise Unsupported(msg) from None
    return type(value)(map(handed, value)) if isinstance(value, tuple | list) else value


def _state(value: Any) -> Any:
    """Everything about an argument that a call can change: its values, its shape, its strides, its length."""
    if isinstance(value, Mapping):
        return {name: _state(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_state(inner) for inner in value]
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), tuple(value.stride())
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.strides, value.tobytes()
    return repr(value)
