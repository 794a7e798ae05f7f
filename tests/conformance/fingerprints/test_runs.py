"""The proof by run ends, held against all inputs of a 16-bit dtype, where both can be had."""

from dataclasses import replace
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from halfeven.conformance.bits import ordered
from halfeven.conformance.fingerprints.models import Asked, Given
from halfeven.conformance.fingerprints.runs import LIMITING, every, monotone, predicted, run_ends
from halfeven.reference import Grid
from halfeven.reference.model import EvaluationModel

INT8 = Grid(-128, 127)
PLAIN = EvaluationModel()
NEAR = [
    m
    for m in PLAIN.neighbours()
    if m.subtract == PLAIN.subtract and m.product == PLAIN.product and m.form == PLAIN.form
]
MONOTONE = [m for m in (PLAIN, replace(PLAIN, division="reciprocal"), *NEAR) if monotone(m, INT8)]


def given(dtype: str, scale: float = 0.1, zero: int = 3) -> Given:
    real = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return Given(Asked("quantize", real, INT8, np.dtype(np.float32)), np.empty(0, real), np.float32(scale), zero)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_models_that_agree_at_the_ends_of_runs_agree_everywhere(dtype: str) -> None:
    of = given(dtype)
    everything = every(of.asked.dtype)
    codes = [predicted(m, everything, of) for m in MONOTONE]
    apart = 0
    for model, own in zip(MONOTONE, codes, strict=True):
        ends = run_ends(model, of)
        at_ends = predicted(model, ends, of)
        for other, theirs in zip(MONOTONE, codes, strict=True):
            agree = np.array_equal(at_ends, predicted(other, ends, of), equal_nan=True)
            finite = np.isfinite(everything.astype(np.float64))
            assert agree == np.array_equal(own[finite], theirs[finite], equal_nan=True)
            apart += not agree
    assert apart  # not all of them are one


@pytest.mark.parametrize("model", MONOTONE, ids=lambda m: str(list(PLAIN.changes(m).items())))
def test_what_is_called_monotone_is(model: EvaluationModel) -> None:
    of = given("bfloat16")
    x = every(of.asked.dtype)
    x = x[np.isfinite(x.astype(np.float64))]
    inside = np.abs(x.astype(np.float64)) < 2.0**30 * 0.1
    steps = np.diff(predicted(model, x, of)[inside][np.argsort(ordered(x[inside]), kind="stable")])
    assert (steps >= 0).all()


@pytest.mark.parametrize("grid", [INT8, Grid(-8, 7), Grid(0, 15), Grid(0, 255), Grid(-127, 127)], ids=str)
def test_what_is_limited_before_it_is_converted_ascends(grid: Grid) -> None:
    """Of every way to limit, convert and wrap, with the zero point before or after: what is called monotone is."""
    of = given("bfloat16", zero=min(3, grid.qmax))
    of = replace(of, asked=replace(of.asked, grid=grid))
    x = np.sort(every(of.asked.dtype)[::7].astype(np.float32)).astype(of.asked.dtype)
    x = x[np.abs(x.astype(np.float64)) < 2.0**30 * 0.1]
    words, known = PLAIN.choices(), set()
    ends = product(words["integer"], words["clamp"], words["overflow"], ("after-rounding", "before-rounding"))
    for integer, clamp, overflow, zero_point in ends:
        model = replace(PLAIN, integer=integer, clamp=clamp, overflow=overflow, zero_point=zero_point)
        if monotone(model, grid):
            assert (np.diff(predicted(model, x, of)) >= 0).all(), model
        known.add(monotone(model, grid))
    assert known == {True, False}


@pytest.mark.parametrize("zero_point", ["after-rounding", "before-rounding"])
def test_what_limits_x_ascends_where_its_ends_are_the_grids(zero_point: str) -> None:
    """Of every bfloat16, computed in bfloat16, where quotients reach beyond the grid: some have other ends."""
    x = every(given("bfloat16").asked.dtype)
    x = np.sort(x[np.isfinite(x.astype(np.float64))])
    ends = set()
    for division, rounding in product(sorted(LIMITING), ["half-even", "half-up", "floor", "ceil"]):
        model = replace(PLAIN, division=division, rounding=rounding, zero_point=zero_point, overflow="wrap")
        assert monotone(model, INT8)
        for scale in (0.1, 1 / 3):
            codes = predicted(model, x, given("bfloat16", scale))
            kept = [codes[0], codes[-1]] == [-128, 127]
            assert kept <= bool((np.diff(codes) >= 0).all())
            ends.add(kept)
    assert ends == {True, False}


@pytest.mark.parametrize("change", [{"overflow": "wrap"}, {"integer": "int8"}, {"integer": "int8-sum"}])
def test_what_wraps_is_not_called_monotone(change: dict[str, str]) -> None:
    assert not monotone(replace(PLAIN, **change), INT8)


def test_ends_of_runs_are_neighbours() -> None:
    of = given("float32")
    ends = ordered(run_ends(PLAIN, of))
    codes = predicted(PLAIN, run_ends(PLAIN, of), of)
    changes = np.flatnonzero(np.diff(codes))
    assert len(changes) == INT8.num_steps
    assert (np.diff(ends)[changes] == 1).all()
