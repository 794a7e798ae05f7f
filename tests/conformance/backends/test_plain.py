"""A function by the words after its name: each formula's is held to the system that documents it."""

import pytest

from halfeven.conformance.backends.plain import called
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import FORMULAS

OF_EACH = {f.system: f.id for f in FORMULAS.values() if not f.version}


@pytest.mark.parametrize("formula", OF_EACH.values())
def test_the_function_of_a_formula_has_checks_of_its_system(formula: str) -> None:
    made = called(FORMULAS[formula].function, ["numpy", formula])
    asked = [i for i in plan(Inside(made).offer) if i.requirement.formula == formula]
    assert asked, made.profile
    assert {i.offer.profile for i in asked} == {made.profile}


def test_a_release_of_a_formula_is_claimed_as_such() -> None:
    made = called(FORMULAS["onnx/DequantizeLinear"].function, ["numpy", "onnx/DequantizeLinear@reference-1.23"])
    assert made.profile == "onnx@reference-1.23"


def test_the_function_of_an_operation_is_held_to_the_operation_too() -> None:
    made = called(FORMULAS["onnx/QuantizeLinear"].function, ["numpy", "onnx/QuantizeLinear"])
    assert [*made.operations] == ["quantize"]
    assert {i.requirement.called for i in plan(Inside(made).offer)} == {True, False}


def test_a_function_of_other_arguments_is_refused() -> None:
    with pytest.raises(TypeError, match=r"gguf/Q8_0\.quantize is called by keyword, with "):
        called(lambda rows: rows, ["numpy", "gguf/Q8_0.quantize"])


def test_a_profile_of_another_system_is_refused() -> None:
    with pytest.raises(
        ValueError, match="profile='aimet' is not accepted with formula='onnx/QuantizeLinear': give one"
    ):
        called(FORMULAS["onnx/QuantizeLinear"].function, ["numpy", "onnx/QuantizeLinear"], "aimet")
