"""What a search finds gives the answers, and what gives the answers is found: of quotients, of samples, of factors."""

from dataclasses import replace

import numpy as np
import pytest
from wild_kernels import BYTE, F16, F32, INT8, Kernel, answered, calls
from wild_kernels.quantizers import QUANTIZERS, textbook

from halfeven.conformance.configuration import Case, Configuration
from halfeven.conformance.engine.fitting.boxes import common, cost, model_of
from halfeven.conformance.engine.fitting.elements import Elements, Observed, elements_of
from halfeven.conformance.engine.fitting.factor import factors
from halfeven.conformance.engine.fitting.fit import Fit
from halfeven.conformance.engine.fitting.sample import Sample
from halfeven.reference import EvaluationModel
from halfeven.reference.model import quantize
from halfeven.reference.systems import PROFILES

ONNX = PROFILES["onnx"]
TRUTHS = (
    EvaluationModel(division="reciprocal", rounding="half-away", half="added", held="float16", nan="zero"),
    EvaluationModel(division="reciprocal", inverse="float16", rounding="half-up", nan="qmin"),
    EvaluationModel(zero_point="before-rounding", overflow="wrap", compute="float64"),
)


def elements(model: EvaluationModel, scales: tuple[float, ...] = (0.1, 0.75, 2.0**-15, 2.0**-26)) -> list[Elements]:
    """The answers of a model to some hundred inputs of each scale: of the last, float16 makes nothing."""
    rng, found = np.random.default_rng(1), []
    for i, scale in enumerate(scales):
        s, z = np.float32(scale), np.int32(3 * i - 2)
        x = np.concatenate([np.arange(-30, 30) * s / 2, rng.normal(0, 60, 60) * s, [np.nan, np.inf, -np.inf, 0]])
        case = Case(Configuration("quantize", "float32", INT8, x.shape), x.astype(F32), s, z)
        found.append(Observed(case, quantize(model, case.x, s, z, INT8)))
    return elements_of(ONNX, found)


@pytest.mark.parametrize("truth", TRUTHS, ids=["held", "inverse", "before"])
def test_no_model_is_further_than_the_one_that_made_the_answers(truth: EvaluationModel) -> None:
    groups = elements(truth)
    fit = Fit(ONNX.model, groups)
    everywhere = np.ones(len(fit), bool)
    nearest = fit.found(everywhere)
    assert nearest is not None
    distance, model = nearest.nearest(ONNX.model)
    assert distance <= len(ONNX.model.changes(truth))
    assert np.concatenate([g.given_by(model) for g in groups]).all()
    assert fit.possible()(everywhere)


def test_a_scale_that_a_narrow_dtype_loses_hides_nothing() -> None:
    """Quotients of it are infinite where those of the scale as given lie inside the grid."""
    truth = EvaluationModel(division="reciprocal", held="float16")
    groups = elements(truth)
    assert F16(2.0**-26) == 0
    found = Fit(ONNX.model, groups).found(np.ones(sum(map(len, groups)), bool))
    assert found is not None
    assert found.nearest(ONNX.model)[1].held == "float16"


def test_what_no_model_gives_is_not_found() -> None:
    groups = [replace(g, value=np.where(np.arange(len(g)) % 7 == 0, 11.0, g.value)) for g in elements(TRUTHS[0])]
    fit = Fit(ONNX.model, groups)
    assert fit.found(np.ones(len(fit), bool)) is None
    assert fit.likeliest(np.ones(len(fit), bool), 3)


def test_boxes_meet_where_all_allow() -> None:
    one, other = {"division": ("divide", "reciprocal")}, {"division": ("reciprocal",), "nan": ("zero",)}
    assert common(one, other) == {"division": ("reciprocal",), "nan": ("zero",)}
    assert common(one, {"division": ("range",)}) is None
    assert cost(EvaluationModel(), other) == 2
    assert model_of(EvaluationModel(), other) == EvaluationModel(division="reciprocal", nan="zero")


def test_a_sample_holds_what_fails_what_is_special_and_grows() -> None:
    groups = elements(TRUTHS[0])
    failing = np.concatenate([~g.given_by(ONNX.model) for g in groups])
    sample = Sample(groups, failing, ONNX.model)
    assert failing[sample.where].sum() >= min(failing.sum(), 90)
    x = np.concatenate([g.x for g in groups])
    assert np.isnan(x[sample.where]).any()
    assert sum(map(len, sample.elements())) == sample.where.size
    everything = np.arange(x.size)
    assert sample.more(everything, x.size).where.tolist() == everything.tolist()


@pytest.mark.parametrize("name", ["rcpps alone", "rcpps with a step of Newton's"])
def test_a_factor_is_found_where_a_few_scales_tell(name: str) -> None:
    kernel = next(k for k in QUANTIZERS if k.name == name)
    seen = [answered(kernel, c) for c in calls(kernel)]
    found = factors(ONNX.model, elements_of(ONNX, seen))
    assert found is not None
    model, ulps = found
    assert (model.division, model.rounding, ulps > 0) == ("reciprocal", "half-even", True)


@pytest.mark.parametrize("function", [textbook, next(k for k in QUANTIZERS if k.name == "x * (1 / s)").function])
def test_no_factor_is_found_where_one_over_s_would_do(function) -> None:
    kernel = Kernel("", function, grids=(INT8, BYTE))
    assert factors(ONNX.model, elements_of(ONNX, [answered(kernel, c) for c in calls(kernel)])) is None
