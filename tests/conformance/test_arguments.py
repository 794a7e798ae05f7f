"""Every argument of a documented function is given in a judged call, so that who ignores it does not conform."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.systems import judged_sets
from halfeven.reference.catalogue import FORMULAS

Call = dict[str, Any]
Function = Callable[..., Any]

#: Arguments of no effect, with the reason.
NO_EFFECT = {
    ("aimet/forward", "mode"): "the equations know no mode",
    ("aimet/load_state", "quantizers"): "each of them takes the same state",
    ("torch/quantized_decomposed.choose_qparams_per_token_asymmetric", "dtype"): "the library does not look at it",
    **{
        (f"torchao/dequantize_affine{domain}", name): "checked, and codes beyond the grid keep their value"
        for domain in ("", "_no_zero_point")
        for name in ("quant_min", "quant_max")
    },
}
#: Arguments whose other values are refused, or which say what is refused, with the reason.
REFUSING = {
    **{
        (f"onnx/{name}", "opset"): "it says which types and attributes there are"
        for name in ("QuantizeLinear", "DequantizeLinear")
    },
    **{("pytorch-quantization/scaled_e4m3", name): "the format is e4m3" for name in ("E", "M")},
    ("torchao/nvfp4_quantize", "block_size"): "a block has 16 elements",
}
DOCUMENTED = sorted(name for name in FORMULAS if "@" not in name)


def size(value: Any) -> int:
    """How many numbers a value has."""
    if isinstance(value, tuple | list):
        return sum(map(size, value))
    return value.size if isinstance(value, np.ndarray) else 1


def judged(formula: str) -> list[Call]:
    """The calls by which a formula is judged, the smallest first."""
    with np.errstate(all="ignore"):  # the extremes of a dtype are what calls are made of
        calls = [dict(a) for found in judged_sets(formula) for a in found.build()]
    return sorted(calls, key=lambda a: sum(map(size, a.values())))


def is_default(value: Any, default: Any) -> bool:
    return type(value) is type(default) and not isinstance(value, np.ndarray) and bool(value == default)


def tells(function: Function, call: Call, other: Call, *, refused: bool) -> bool:
    """Whether a call's result is not that of another; an error is none, unless it is the ``refused`` value's."""
    found = answer_of(function, call)
    if (found.kind == "raised") != refused:
        return False
    against = answer_of(function, other)
    if against.kind == "raised":
        return not refused
    return refused or differences(found, against).differing > 0


def optional(function: Function) -> dict[str, Any]:
    """The arguments with a default, and their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def shows(function: Function, calls: list[Call], name: str, default: Any, *, refused: bool = False) -> bool:
    """Whether some call gives an argument another value than its default, and another result comes of it."""
    return any(
        tells(function, a, {k: v for k, v in a.items() if k != name}, refused=refused)
        for a in calls
        if name in a and not is_default(a[name], default)
    )


def unseen(formula: str) -> Iterator[str]:
    """The arguments with a default that no judged call shows."""
    function, calls = FORMULAS[formula].function, judged(formula)
    for name, default in optional(function).items():
        given = any(name in a and not is_default(a[name], default) for a in calls)
        known = given and (formula, name) in NO_EFFECT
        if not known and not shows(function, calls, name, default, refused=(formula, name) in REFUSING):
            yield name


def settings(calls: list[Call], name: str) -> list[Any]:
    """The values that calls give a required argument, if it is a setting: a word, a number or a truth value."""
    values = [a.get(name) for a in calls]
    return list(dict.fromkeys(values)) if all(isinstance(v, bool | int | float | str) for v in values) else []


def single(formula: str) -> Iterator[str]:
    """The required settings that have one value in all judged calls."""
    calls = judged(formula)
    for name, p in inspect.signature(FORMULAS[formula].function).parameters.items():
        known = p.default is not p.empty or (formula, name) in NO_EFFECT
        if not known and len(settings(calls, name)) == 1:
            yield name


@pytest.mark.parametrize("formula", DOCUMENTED)
def test_some_judged_call_shows_every_argument_that_has_a_default(formula: str) -> None:
    assert judged(formula)
    assert list(unseen(formula)) == []


def test_every_required_setting_has_several_values() -> None:
    assert {name: found for name in DOCUMENTED if (found := list(single(name)))} == {}


def test_the_arguments_that_are_left_out_are_those_that_no_call_shows() -> None:
    for formula, name in NO_EFFECT.keys() | REFUSING.keys():
        function = FORMULAS[formula].function
        assert name in inspect.signature(function).parameters
        if name in optional(function):
            assert not shows(function, judged(formula), name, optional(function)[name]), f"{formula}: {name} is shown"


@pytest.mark.parametrize(("function", "zero"), [("QuantizeLinear", "y_zero_point"), ("DequantizeLinear", "x")])
def test_a_negative_axis_is_asked_of_every_type_of_code(function: str, zero: str) -> None:
    calls, formula = judged(f"onnx/{function}"), FORMULAS[f"onnx/{function}"].function
    answered = [a for a in calls if zero in a and answer_of(formula, a).kind != "raised"]
    asked = {a[zero].dtype.name for a in answered if (a.get("axis") or 0) < 0}
    assert asked
    assert asked == {a[zero].dtype.name for a in answered}


def test_what_shows_an_argument() -> None:
    def function(x: int, times: int = 2, least: int = 0) -> Any:
        if least > x:
            raise ValueError(least)
        return np.array([x * times])

    def shown(call: Call, name: str, *, refused: bool = False) -> bool:
        return shows(function, [call], name, optional(function)[name], refused=refused)

    assert shown({"x": 1, "times": 3}, "times")
    assert not shown({"x": 1, "times": 2}, "times")
    assert not shown({"x": 0, "times": 3}, "times")
    assert not shown({"x": 1, "least": 1}, "least")
    assert not shown({"x": 1, "least": 2}, "least")
    assert shown({"x": 1, "least": 2}, "least", refused=True)
    assert not shown({"x": 1, "least": 1}, "least", refused=True)
