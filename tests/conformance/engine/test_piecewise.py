"""Piece by piece: what is found on one grid is tried on the others before anything is sought there."""

from dataclasses import replace

import numpy as np

from halfeven.conformance.configuration import Case, Configuration
from halfeven.conformance.engine.explain import Explanation
from halfeven.conformance.engine.fitting.elements import Observed
from halfeven.conformance.engine.fitting.fit import Work
from halfeven.conformance.engine.piecewise import piecewise
from halfeven.reference import Grid
from halfeven.reference import model as evaluation
from halfeven.reference.systems import PROFILES

PROFILE = PROFILES["onnx"]
NOTHING = Explanation((), 0.0)
GRIDS = (Grid(-128, 127), Grid(0, 255), Grid(-8, 7))
TENSOR = replace(PROFILE.model, rounding="half-away", clamp="before-zero-point")
CHANNEL = replace(PROFILE.model, division="reciprocal", rounding="toward-zero")


def answers(grid: Grid) -> list[Observed]:
    """Of one grid, parameters per tensor and per channel, each with a model of its own."""
    found = []
    for model, granularity, block_size in ((TENSOR, "tensor", None), (CHANNEL, "channel", (1, 128))):
        scale = np.float32([[0.1], [0.3]]) if block_size else np.float32(0.1)
        zero = np.zeros(scale.shape, np.int32) + np.int32(2)
        x = (np.arange(-128, 128, dtype=np.float32).reshape(2, 128) * np.float32(0.25)) * scale
        configuration = Configuration("quantize", "float32", grid, x.shape, granularity, block_size)
        case = Case(configuration, x, scale, zero)
        codes = evaluation.quantize(model, x, scale, zero, grid, block_size)
        found.append(Observed(case, codes.astype(np.int16)))
    return found


def spent(grids: tuple[Grid, ...]) -> int:
    """The work that it takes, after which all answers are given."""
    work = Work()
    before = work.left
    found = piecewise(PROFILE, [a for grid in grids for a in answers(grid)], NOTHING, work)
    assert found is not None
    assert all(p.model is not None for p in found.parts)
    assert {p.model and p.model.rounding for p in found.parts} == {"half-away", "toward-zero"}
    return before - work.left


def test_other_grids_cost_nothing_where_the_same_is_done() -> None:
    assert 0 < spent(GRIDS[:2]) == spent(GRIDS)


def test_half_of_the_work_is_left_for_the_granularities() -> None:
    work = Work(100)
    with work.half() as given:
        assert given.left == 50
        given.left -= 70  # a search may take more than it has
    assert work.left == 30
