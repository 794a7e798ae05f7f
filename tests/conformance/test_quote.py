"""Quoted functions run in a namespace of their own."""

import ast
import inspect
from functools import partial
from typing import Any

import numpy as np
import pytest
import wrong_kernels

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.inline import inlined
from halfeven.conformance.quote import NoScript, quote, spelt
from halfeven.conformance.systems import answers

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


def test_what_has_no_source_is_not_quoted() -> None:
    assert quote(np.add) is None
    assert quote("".join) is None
    assert quote(inspect.getsource) is not None


def test_a_lambda_and_a_closure_are_quoted_with_what_they_take_from_around() -> None:
    more = 7
    value, source, _ = run(lambda x: x + more, 1)
    assert value == 8
    assert "more = 7" in source
    assert run(lambda x: _twice(x) * _FACTOR, 3)[0] == 12
    assert run(lambda x, by=lambda y: y + 1: by(x) * 2, 1)[0] == 4
    assert run(lambda x, by=None, *, more=(2, 3): x + more[1] if by is None else by, 1)[0] == 4


def test_of_two_lambdas_in_a_line_the_right_one_is_quoted_or_none() -> None:
    for function, value in zip((lambda x: x + 1, lambda x: x + 2, lambda x: x + 2.0), (2, 3, 3.0), strict=True):
        assert repr(run(function, 1)[0]) == repr(value)
    added, taken = (lambda x: x + 5), (lambda x: x - 5)
    assert (added(1), taken(1), quote(added), quote(taken)) == (6, -4, None, None)


def test_what_takes_an_object_from_around_is_not_quoted() -> None:
    held = object()
    assert quote(lambda: held) is None


def test_a_function_that_changes_what_is_around_it_is_not_quoted() -> None:
    count = 0

    def counts() -> int:
        nonlocal count
        count += 1
        return count

    assert quote(counts) is None
    with pytest.raises(NoScript, match="counts is in no module"):
        spelt(counts, {})


def test_a_function_of_a_module_that_is_found_is_imported() -> None:
    found = spelt(wrong_kernels.reciprocal, {"0": "x", "qmin": "2"})
    assert (found.header, found.called) == ("from wrong_kernels import reciprocal", "reciprocal(x, qmin=2)")


def test_what_only_turns_arguments_into_a_library_s_is_replaced_by_what_it_does() -> None:
    found = spelt(answers("gguf")["gguf/Q8_0.quantize"], {"tensor": "tensor"})
    assert found.header == "from gguf import quants"
    assert found.called == "quants.Q8_0.quantize(tensor.detach().numpy())"


CASES = {
    "def f(x, y=2):\n    return x * y": ({"x": "a"}, "a * 2"),
    "def f(x, **given):\n    return g(x, **given)": ({"x": "x", "n": "3"}, "g(x, n=3)"),
    "def f(x, **given):\n    return g(**{'a': x, **given})": ({"x": "x", "n": "3"}, "g(a=x, n=3)"),
    "def f(k):\n    return {'a': g, 'b': h}[k]": ({"k": "'b'"}, "h"),
    "def f(k):\n    return getattr(lib, k)()": ({"k": "'go'"}, "lib.go()"),
    "def f(k=None):\n    return 1 if k is None else 2": ({}, "1"),
    "def f(k):\n    return k and getattr(t, k)": ({"k": "'q'"}, "t.q"),
    "def f(k):\n    return {'a': g}.get(k, h)": ({"k": "'b'"}, "h"),
    "def f(k):\n    return g if k <= 8 else h": ({"k": "8"}, "g"),
    "def f(k):\n    if k == 2:\n        return g\n    return h": ({"k": "2"}, "g"),
    "def f(x, z=None):\n    return g(x) if z is None else g(x, z)": ({"x": "x", "z": "z"}, "g(x, z)"),
}


@pytest.mark.parametrize("text", CASES)
def test_constants_are_folded(text: str) -> None:
    passed, wanted = CASES[text]
    [node] = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    found = inlined(node, {}, passed, {key for key, text in passed.items() if text == key})
    assert found is not None
    assert ast.unparse(found[1]) == wanted


def test_where_nothing_is_left_that_is_said() -> None:
    never = "if k == 2:\n            g(x)"
    text = f"def f(x, k=1):\n    if x:\n        {never}\n    for i in x:\n        {never}\n    return x"
    [node] = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    found = inlined(node, {}, {"x": "x"})
    assert found is not None
    assert [*map(ast.unparse, found[0])] == ["if x:\n    pass", "for i in x:\n    pass"]


def test_what_may_be_none_is_asked_for() -> None:
    [node] = ast.parse("def f(z=None):\n    return g() if z is None else g(z)").body
    assert isinstance(node, ast.FunctionDef)
    found = inlined(node, {}, {"z": "z"})
    assert found is not None
    assert ast.unparse(found[1]) == "g() if z is None else g(z)"


def test_a_short_function_of_the_module_is_put_in_place_of_its_call() -> None:
    found = spelt(answers("modelopt.qtensor")["modelopt/fp8_quantize"], {"input": "input", "block_sizes": "(1, 2)"})
    assert "def " not in found.header
    assert "{d - len((1, 2)): size for d, size in enumerate((1, 2))}" in found.steps


def test_a_table_of_the_module_is_looked_up() -> None:
    passed = {"x": "x", "width": "8", "precision": "4", "rounding": "'TowardZero'"}
    found = spelt(answers("gfloat")["p3109/Project"], passed)
    assert "_MODES" not in found.header
    assert "mode = gfloat.RoundMode.TowardZero" in found.steps


def test_what_the_body_changes_stays_a_variable() -> None:
    text = "def f(x, **given):\n    y = given.pop('y')\n    x = x + 1\n    return g(x, y, **given)"
    [node] = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    found = inlined(node, {}, {"x": "1", "y": "2"})
    assert found is not None
    assert [*map(ast.unparse, found[0])] == ["x = 1", "given = {'y': 2}", "y = given.pop('y')", "x = x + 1"]
    assert ast.unparse(found[1]) == "g(x, y, **given)"


@pytest.mark.parametrize(
    "text",
    ["def f(x):\n    if x: return 1\n    return 2", "def f(*x):\n    return x", "def f(x):\n    return lambda: x"],
)
def test_what_has_several_ends_is_not_put_in_place(text: str) -> None:
    [node] = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    assert inlined(node, {}, {"x": "y"}) is None
