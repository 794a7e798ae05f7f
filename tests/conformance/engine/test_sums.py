"""Gradients that are sums, added in any order and wrongly: the bound holds the ones and excludes the others."""

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfeven.conformance.engine.call import Answer
from halfeven.conformance.engine.function_calls import ORDINARY, SIZES, function_calls
from halfeven.conformance.engine.judge import Difference, Sums, answer_of, differences, reference_answer
from halfeven.conformance.engine.operation_calls import Asked
from halfeven.conformance.suite import check
from halfeven.conformance.systems import judged_sets
from halfeven.reference import FORMULAS
from halfeven.reference.blocks import Array

CLIP = "pytorch-quantization/clip_backward"
Total = Callable[[Array], Any]


def clip_backward(total: Total) -> Callable[..., Any]:
    def gradients(
        inputs: Array, clip_value_min: Array, clip_value_max: Array, grad_outputs: Array
    ) -> tuple[Array, Array, Array]:
        for bound in (clip_value_min, clip_value_max):
            if bound.size != 1:
                raise ValueError
        g = grad_outputs.ravel()
        x = inputs.ravel()
        with np.errstate(all="ignore"):
            above, below = x > clip_value_min.ravel(), x < clip_value_max.ravel()
            sums = [total(np.asarray(g * ~mask)) for mask in (above, below)]
            grad = (g * above * below).reshape(inputs.shape)
        return grad, np.full_like(clip_value_min, sums[0]), np.full_like(clip_value_max, sums[1])

    return gradients


def in_blocks(g: Array, block: int = 128) -> Any:
    rows = np.append(g, np.zeros(-g.size % block, g.dtype)).reshape(-1, block)
    return np.cumsum(rows.sum(axis=1, dtype=np.float32), dtype=np.float32)[-1] if g.size else g.sum()


RIGHT: dict[str, Total] = {
    "in order": lambda g: np.cumsum(g, dtype=np.float32)[-1] if g.size else np.float32(0),
    "in reverse": lambda g: np.cumsum(g[::-1], dtype=np.float32)[-1] if g.size else np.float32(0),
    "pairwise": lambda g: g.sum(dtype=np.float32),
    "float64": lambda g: np.float32(g.sum(dtype=np.float64)),
    "blocks of 128": in_blocks,
}
WRONG: dict[str, Total] = {
    "loses the last n mod 8": lambda g: g[: g.size - g.size % 8 or None].sum(dtype=np.float32),
    "loses the last block of more than 1,000": lambda g: g[: -128 if g.size > 1000 else None].sum(dtype=np.float64),
    "counts a block twice": lambda g: np.append(g, g[:128] if g.size > 1000 else g[:0]).sum(dtype=np.float64),
    "accumulates in bfloat16": lambda g: np.float32(g.astype(ml_dtypes.bfloat16).sum()),
    "the mean": lambda g: g.mean(dtype=np.float64) if g.size > 1000 else g.sum(),
}


@cache
def asked() -> tuple[Asked, ...]:
    return tuple(function_calls(CLIP, judged_sets(CLIP)))


def judged(total: Total) -> list[tuple[Asked, Difference]]:
    fn = clip_backward(total)
    return [(a, differences(a.expected, reference_answer(fn, a.call))) for a in asked()]


@pytest.mark.parametrize("order", RIGHT)
def test_every_order_is_within_the_bound(order: str) -> None:
    found = judged(RIGHT[order])
    assert not [d.words for _, d in found if d.differing]
    sums = sum((d.sums for _, d in found), Sums())
    assert sums.bounded > 20
    assert (order == "float64") == (sums.share[0] == 0)
    assert sums.share[0] <= 1
    assert sums.terms > 1 << 19


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_sum_differs(wrong: str) -> None:
    differing = [(a, d) for a, d in judged(WRONG[wrong]) if d.differing]
    assert differing
    assert any("where the sum, in any order, is" in d.words for _, d in differing) or all(
        a.call.reason == "longer arrays of the same values" for a, d in differing
    )


def test_ordinary_numbers_are_asked_in_every_size() -> None:
    seen = {(a.call.shape.size, a.call.reason.partition(" numbers")[0]) for a in asked() if "occur" in a.call.reason}
    assert seen == {(size, kind) for size in SIZES for kind in ORDINARY}


def test_the_outcome_says_the_bound() -> None:
    verdict = check(clip_backward(RIGHT["in order"]), formula=CLIP, array="numpy", require="any")
    assert verdict.conforms
    outcomes = {r.check: r for r in verdict.results}
    assert outcomes["clip-ends"].outcome == "as measured"
    assert "of the bound" not in outcomes["clip-ends"].detail  # sums that no order rounds
    found = outcomes["call-shapes"]
    assert found.outcome == "bounded"
    assert "of the bound proved for any order, n up to 1," in found.detail
    assert verdict.outcome == "bounded"


def test_what_no_bound_is_proved_for_is_not_compared() -> None:
    largest = float(np.finfo(np.float32).max)
    arguments = {
        "inputs": np.zeros(3, np.float32),
        "clip_value_min": np.float32([1]),
        "clip_value_max": np.float32([2]),
    }
    arguments["grad_outputs"] = np.array([largest, largest, -largest], np.float32)
    expected = answer_of(FORMULAS[CLIP].function, arguments)
    grad, low, high = expected.value
    found = differences(expected, Answer("returned", (grad, low * np.nan, high)))
    assert (found.differing, found.sums.unproved, found.points) == (0, 1, 5)
    assert differences(expected, Answer("returned", (grad, low, high + 1))).differing == 1
