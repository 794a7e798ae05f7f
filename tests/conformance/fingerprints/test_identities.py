"""Models that are written alike give the same codes, of many inputs and scales; those that do not are not."""

from dataclasses import replace

import numpy as np
import pytest

from halfeven.conformance.fingerprints.cubes import Cube
from halfeven.conformance.fingerprints.identities import one_function
from halfeven.conformance.fingerprints.models import Asked, Given, of_model
from halfeven.reference import Grid
from halfeven.reference.model import EvaluationModel

INT8, BYTE = Grid(-128, 127), Grid(0, 255)
WRAPS = replace(EvaluationModel(), overflow="wrap", integer="int32")
FUSED = replace(WRAPS, half="fused", zero_point="before-rounding", division="reciprocal")
DOUBLE = {"compute": "float64", "quotient": "float32", "inverse": "compute"}
ALIKE = [
    (WRAPS, DOUBLE),
    (WRAPS, {**DOUBLE, "division": "reciprocal"}),
    (replace(WRAPS, rounding="half-away", half="added"), {**DOUBLE, "division": "reciprocal"}),
    (WRAPS, {"half": "difference"}),
    (WRAPS, {"quotient": "float64"}),
    (replace(WRAPS, overflow="saturate", integer="int16"), {"quotient": "float64", "half": "added"}),
    (replace(WRAPS, integer="int8-exact"), {"quotient": "float64", "integer": "int8-sum"}),
    (replace(WRAPS, rounding="half-down"), {"quotient": "float64", "half": "added"}),
    (WRAPS, {"integer": "int8"}),
    (WRAPS, {"integer": "int64-int32"}),
    (replace(WRAPS, overflow="saturate", integer="int8-sum"), {"overflow": "wrap", "integer": "int16-sum"}),
    (replace(WRAPS, integer="int32-sum"), {"integer": "int64-sum"}),
    (replace(WRAPS, integer="int32-sum"), {"integer": "none", "half": "difference"}),
    (replace(WRAPS, integer="int64-int32"), {"half": "difference", "nan": "zero-point"}),
]
APART = [
    (WRAPS, {"division": "reciprocal"}),
    (WRAPS, {"compute": "float64"}),
    (WRAPS, {"compute": "float64", "quotient": "float32", "division": "reciprocal"}),
    (replace(WRAPS, zero_point="before-rounding"), {**DOUBLE, "division": "reciprocal"}),
    (WRAPS, {"integer": "int32-sum"}),
    (replace(WRAPS, zero_point="before-rounding"), {"quotient": "float64"}),
    (replace(WRAPS, integer="int32-sum"), {"quotient": "float64"}),
    (replace(WRAPS, half="added"), {"quotient": "float64"}),
    (replace(WRAPS, rounding="half-truncated"), {"quotient": "float64"}),
    *((replace(FUSED, rounding=r), {"half": h}) for r, h in (("half-even", "added"), ("floor", "exact"))),
    (replace(WRAPS, half="added", integer="none"), {"integer": "int32-sum"}),
    (replace(WRAPS, half="difference", clamp="before-rounding"), {"half": "exact"}),
]


def asked(grid: Grid = INT8, dtype: type = np.float32) -> Asked:
    return Asked("quantize", np.dtype(dtype), grid, np.dtype(np.float32))


def cubes(*models: EvaluationModel) -> list[Cube]:
    return [{name: (getattr(m, name),) for name in m.choices()} for m in models]


def inputs(scale: np.float32, seed: int) -> np.ndarray:
    """Beside ties, and of all sizes."""
    generator = np.random.default_rng(seed)
    near = ((generator.integers(-400, 400, 20_000) + 0.5) * np.float64(scale)).astype(np.float32)
    near = np.nextafter(near, generator.choice([-np.inf, 0, np.inf], near.size).astype(np.float32))
    wide = generator.normal(size=20_000) * np.exp2(generator.uniform(-120, 90, 20_000))
    return np.concatenate([near, wide.astype(np.float32)])


@pytest.mark.parametrize(("model", "change"), ALIKE)
def test_what_is_written_alike_is_one_function(model: EvaluationModel, change: dict[str, str]) -> None:
    other = replace(model, **change)
    assert one_function(cubes(model, other), asked())
    for seed in range(6):
        scale = np.float32(np.random.default_rng(seed).uniform(0.01, 3))
        given = Given(asked(), inputs(scale, seed), scale, 3)
        assert np.array_equal(of_model(model, given), of_model(other, given))


@pytest.mark.parametrize(("model", "change"), APART)
def test_what_may_differ_is_not_written_alike(model: EvaluationModel, change: dict[str, str]) -> None:
    assert not one_function(cubes(model, replace(model, **change)), asked())


def test_only_of_float32_and_of_what_wraps_by_the_number_of_codes() -> None:
    double = replace(WRAPS, **DOUBLE, division="reciprocal")
    assert not one_function(cubes(WRAPS, double), asked(dtype=np.float16))
    assert one_function(cubes(WRAPS, replace(WRAPS, integer="int16")), asked(BYTE))
    assert not one_function(cubes(WRAPS, replace(WRAPS, integer="int16")), asked(Grid(-127, 127)))
    floor = replace(WRAPS, rounding="floor")
    assert not one_function(cubes(floor, replace(floor, **DOUBLE)), asked())
