"""The cause that is named is the choice that differs, and no other one that happens to give the same codes."""

from dataclasses import replace

import numpy as np
import pytest

from halfeven.conformance.bits import step
from halfeven.conformance.configuration import Case, Configuration
from halfeven.conformance.engine.call import CallShape
from halfeven.conformance.engine.explain import Explanation, explain
from halfeven.conformance.engine.fitting.elements import Observed
from halfeven.reference import Grid
from halfeven.reference import model as evaluation
from halfeven.reference.model import EvaluationModel
from halfeven.reference.systems import PROFILES, Profile

PROFILE = PROFILES["torch.quantize@2.13"]  # multiplies by 1/s, one rounding, qmax for NaN
BYTE = Grid(0, 255)
AWAY = "rounds ties away from zero where the document rounds ties to even"
SCALE = np.float32(0.1)


def explained(
    x: list[float], model: EvaluationModel, grid: Grid = BYTE, claimed: Profile = PROFILE
) -> Explanation | None:
    """What is said of an implementation of ``model`` that claims another profile."""
    reals = np.asarray(x, np.float32)
    case = Case(Configuration("quantize", "float32", grid, reals.shape), reals, SCALE, np.int32(7))
    codes = evaluation.quantize(model, reals, SCALE, case.zero, grid)
    answer = Observed(case, codes.astype(np.int16))
    return explain(claimed, [answer])


@pytest.mark.parametrize(
    ("nan", "said"),
    [
        ("qmin", "gives qmin for NaN where the document gives qmax for NaN"),
        ("zero-point", "gives the zero point for NaN where the document gives qmax for NaN"),
        ("zero", "gives code 0 for NaN where the document gives qmax for NaN"),
    ],
)
def test_the_code_of_nan_alone(nan: str, said: str) -> None:
    found = explained([np.nan, 1.0, -3.0], replace(PROFILE.model, nan=nan), Grid(-128, 127))
    assert found is not None
    assert found.words == said


def test_a_code_of_nan_that_no_model_has_is_not_taken_for_a_narrow_grid() -> None:
    claimed = PROFILES["onnx@onnxruntime-1.31"]
    case = Case(Configuration("quantize", "float32", BYTE, (1,)), np.full(1, np.nan, np.float32), SCALE, np.int32(7))
    answer = Observed(case, np.array([1], np.int16))
    found = explain(claimed, [answer])
    assert found is not None
    assert [(p.place, p.model, p.share) for p in found.parts] == [("x is NaN", None, 0.0)]


def test_another_rounding_is_not_taken_for_another_scale() -> None:
    """Where all that differs is one tie, a scale one ulp off gives the same codes."""
    claimed = PROFILES["onnx"]
    found = explained([0.05, 0.15], replace(claimed.model, rounding="half-away"), claimed=claimed)
    assert found is not None
    assert found.words == AWAY


def test_another_rounding_is_found_behind_many_nan() -> None:
    """As many NaN as are looked at first must not hide that the arithmetic differs, too."""
    found = explained([np.nan] * 500 + [0.15, 0.25], replace(PROFILE.model, nan="zero", rounding="half-away"))
    assert found is not None
    assert found.words == f"{AWAY}; gives code 0 for NaN where the document gives qmax for NaN"


def test_nan_is_found_behind_much_of_another_rounding() -> None:
    found = explained([0.15, 0.25] * 500 + [np.nan], replace(PROFILE.model, nan="zero-point", rounding="half-away"))
    assert found is not None
    assert found.words == f"{AWAY}; gives the zero point for NaN where the document gives qmax for NaN"


def test_few_that_tell_in_a_region_count_against_all_that_tell_elsewhere() -> None:
    """Six ties away from zero among a thousand other numbers in one layout, against a thousand ties to even."""
    answers = []
    for layout, rounding, ties in (("transposed", "half-away", 6), ("contiguous", "half-even", 1000)):
        x = np.resize(np.float32([0.03, 0.13, -0.17]), 1000)
        x[:ties] = np.resize(np.float32([0.15, 0.25]), ties)
        case = Case(Configuration("quantize", "float32", BYTE, x.shape), x, SCALE, np.int32(7))
        codes = evaluation.quantize(replace(PROFILE.model, rounding=rounding), x, SCALE, case.zero, BYTE)
        answers.append(Observed(case, codes.astype(np.int16), shape=CallShape(x.size, 1, layout)))
    found = explain(PROFILE, answers)
    assert found is not None
    assert [(p.place, p.words, p.share) for p in found.parts] == [("", "", 1.0), ("layout transposed", AWAY, 1.0)]


@pytest.mark.parametrize("changed", [{}, {"division": "reciprocal"}, {"rounding": "half-away"}])
def test_a_gradient_passed_through_is_named_beside_another_change(changed: dict[str, str]) -> None:
    """x + (x̂ - x) shows far beyond the grid alone, where nothing of the arithmetic shows."""
    claimed = PROFILES["onnx"]
    model = replace(claimed.model, returned="difference", **changed)
    ties = ((np.arange(-120, 120) + 0.5) * 0.1).astype(np.float32)
    near = np.concatenate([step(ties, np.int64(k)) for k in (-3, -2, -1, 0, 1, 2, 3)])
    x = np.concatenate([near, np.linspace(-9, 9, 700), [1e9, -3e7, 2147483392.0, 3e38, -np.inf]]).astype(np.float32)
    case = Case(Configuration("fake_quantize", "float32", Grid(-128, 127), x.shape), x, SCALE, np.int32(7))
    answer = Observed(case, evaluation.fake_quantize(model, x, SCALE, case.zero, case.configuration.grid))
    found = explain(claimed, [answer])
    assert found is not None
    assert [part.model for part in found.parts] == [model]
    assert found.words == claimed.model.against(model)
