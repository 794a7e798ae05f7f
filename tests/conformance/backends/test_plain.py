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
