"""Piece by piece: what is found on one grid is tried on the others before anything is sought there."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.conformance.configuration import Case, Configuration
from halfeven.conformance.engine import piecewise as module
from halfeven.conformance.engine.explain import Explanation, explain
from halfeven.conformance.engine.fitting.elements import Observed
from halfeven.conformance.engine.fitting.fit import Work
from halfeven.conformance.engine.region import Region
from halfeven.reference import Grid
from halfeven.reference import model as evaluation
from halfeven.reference.systems import PROFILES

PROFILE = PROFILES["onnx"]
GRIDS = (Grid(-128, 127), Grid(0, 255), Grid(-8, 7))
TENSOR = replace(PROFILE.model, rounding="half-away")
CHANNEL = replace(PROFILE.model, rounding="toward-zero")
GROUP = replace(PROFILE.model, rounding="ceil")
#: More ways than one region tells apart, each with a model of its own.
WAYS = ((TENSOR, "tensor", None), (CHANNEL, "channel", (1, 128)), (GROUP, "group", (1, 64)))


def answers(grid: Grid) -> list[Observed]:
    """Of one grid, parameters per tensor, channel and group."""
    found = []
    for model, granularity, block_size in WAYS:
        blocks = (2, 128 // block_size[1]) if block_size else ()
        scale = np.linspace(0.1, 0.3, int(np.prod(blocks)), dtype=np.float32).reshape(blocks)
        zero = np.zeros(scale.shape, np.int32) + np.int32(2)
        x = np.arange(-128, 128, dtype=np.float32).reshape(2, 128) * np.float32(0.25)
        x = x * (np.repeat(scale, block_size[1], axis=1) if block_size else scale)
        configuration = Configuration("quantize", "float32", grid, x.shape, granularity, block_size)
        case = Case(configuration, x, scale, zero)
        codes = evaluation.quantize(model, x, scale, zero, grid, block_size)
        found.append(Observed(case, codes.astype(np.int16)))
    return found


def pieces(every: list[Observed], monkeypatch: Any) -> tuple[Explanation, list[list[Observed]]]:
    """The explanation piece by piece, and of what one was sought."""
    sought: list[list[Observed]] = []

    def counted(profile: Any, some: Sequence[Observed], *rest: Any) -> Explanation | None:
        sought.append([*some])
        return explain(profile, some, *rest)

    monkeypatch.setattr(module, "explain", counted)
    found = module.piecewise(PROFILE, every, Explanation((), 0.0), Work())
    assert found is not None
    return found, sought


def test_nothing_is_sought_where_the_same_is_done_as_on_another_grid(monkeypatch: Any) -> None:
    found, sought = pieces([a for grid in GRIDS for a in answers(grid)], monkeypatch)
    assert [p.model and p.model.rounding for p in found.parts] == ["half-away", "toward-zero", "ceil"]
    first = sought[0]
    assert sought == [first, *([a] for a in first)], "one grid and its ways"


def test_a_grid_on_which_something_else_is_done_is_asked_by_itself(monkeypatch: Any) -> None:
    every = [a for grid in GRIDS for a in answers(grid)]
    every[-1] = replace(every[-1], value=every[-2].value)  # the codes per channel
    found, sought = pieces(every, monkeypatch)
    assert sought[4:] == [every[-3:]], "that grid, for which the models of others are enough"
    last = [p for p in found.parts if p.where[0] == Region("grids", (GRIDS[-1],))]
    assert {p.model and p.model.rounding for p in last} == {"toward-zero"}, "per tensor it does as elsewhere"


def test_models_of_another_grid_are_known_without_work() -> None:
    for models, given in (((TENSOR, CHANNEL), True), ((), False)):
        found = explain(PROFILE, answers(GRIDS[1])[:1], Work(0), models)
        assert found is not None
        assert bool(found.parts) == given


def test_half_of_the_work_is_left_for_the_granularities() -> None:
    work = Work(100)
    with work.half() as given:
        assert given.left == 50
        given.left -= 70  # a search may take more than it has
    assert work.left == 30
