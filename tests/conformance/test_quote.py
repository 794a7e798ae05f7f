"""Quoted functions run in a namespace of their own."""

import inspect
from functools import partial
from typing import Any

import numpy as np

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.quote import quote
from halfeven.conformance.workers.inside import Inside

_FACTOR = 2
_UNUSED = 3
Number = float | np.ndarray


def _twice(x: Number) -> Number:
    return x * _FACTOR


def four_times(x: Number, more: int = 1) -> Number:
    if np.size(x) == 0:
        msg = "empty"
        raise Unsupported(msg)
    return _twice(_twice(x)) * more


def run(function: Any, *arguments: Any) -> Any:
    source, name = quote(function) or ("", "")
    scope: dict[str, Any] = {}
    exec(source, scope)
    return scope[name](*arguments), source, scope


def test_a_function_comes_with_what_it_uses_and_no_more() -> None:
    value, source, scope = run(four_times, np.arange(3))
    assert value.tolist() == [0, 4, 8]
    assert "_UNUSED" not in source
    assert "Number" in source
    assert "halfeven" not in source
    assert issubclass(scope["Unsupported"], Exception)


def test_a_partial_keeps_its_arguments() -> None:
    value, _, _ = run(partial(four_times, more=10), 1)
    assert value == 40


def test_what_has_no_source_or_name_is_not_quoted() -> None:
    assert quote(lambda x: x) is None
    assert quote(np.add) is None
    assert quote("".join) is None
    assert quote(Inside.answers) is None
    assert quote(inspect.getsource) is not None
