"""A cause that no check has alone has a witness of its own: a call that differs by it, whatever else is done."""

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from halfeven.conformance import Backend
from halfeven.conformance.backends.documented import of_formula
from halfeven.conformance.engine.call import Answer
from halfeven.conformance.engine.conclude import concluded
from halfeven.conformance.engine.demonstrate import demonstrated, unrun
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import answered, run
from halfeven.conformance.report.causes import by_cause, showing
from halfeven.conformance.report.model import Result, Witness
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import Grid

CHECKS = ("smoke", "boundaries", "odd-zero-point", "edges")
#: Each choice as a kernel has it, and its code.
ALONE = {"HE101": {"times": True}, "HE111": {"away": True}, "HE701": {"narrow": 1}}


def quantize(
    x: Any,
    scale: Any,
    zero_point: Any,
    *,
    qmin: int,
    qmax: int,
    block_size: Any = None,  # whole rows: a scale for each broadcasts
    times: bool = False,
    away: bool = False,
    narrow: int = 0,
) -> Any:
    v = np.float32(x) * (np.float32(1) / np.float32(scale)) if times else np.float32(x) / np.float32(scale)
    half = np.copysign(np.nextafter(np.float32(0.5), np.float32(0)), v)
    codes = (np.trunc(v + half) if away else np.rint(v)) + zero_point
    return np.clip(np.nan_to_num(codes), qmin + narrow, qmax).astype(np.int8)


def all_three(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int, block_size: Any = None) -> Any:
    return quantize(x, scale, zero_point, qmin=qmin, qmax=qmax, block_size=block_size, times=True, away=True, narrow=1)


def asked(backend: Backend, *checks: str) -> list[Result]:
    worker = Inside(backend)
    some = [answered(i, worker) for i in plan(worker.offer) if not checks or i.check in checks]
    samples = [a.sample for a in some if a.sample is not None]
    results = [a.result for a in some]
    return concluded(results, samples, {backend.name: worker})[0]


def mine(kernel: Callable[..., Any], **changes: Any) -> Backend:
    given: dict[str, Any] = {"grids": (Grid(-8, 7),), "dtypes": ("float32",), "array": "numpy", **changes}
    return Backend("mine", "onnx", {"quantize": kernel}, **given)


def own(results: list[Result]) -> dict[str, Witness]:
    return {c.code: c.witness for r in results for c in r.causes if c.witness is not None}


def number(said: str) -> np.float32:
    return np.array([int(said.partition(" ")[0], 16)], np.uint32).view(np.float32)[0]


@pytest.mark.parametrize("granularity", ["tensor", "channel"])
def test_each_choice_alone_gives_what_its_witness_shows(granularity: Any) -> None:
    found = demonstrated(asked(mine(all_three, granularities=(granularity,)), *CHECKS))
    ones = {r.causes[0].code for r in found if len(r.causes) == 1}
    assert {c.code for r in found for c in r.causes} == ALONE.keys()
    assert own(found).keys() == ALONE.keys() - ones
    assert len(own(found)) >= 2
    for code, w in own(found).items():
        x, scale = number(w.x), number(w.scale)
        assert str(quantize(x, scale, int(w.zero), qmin=-8, qmax=7)) == w.expected
        assert str(quantize(x, scale, int(w.zero), qmin=-8, qmax=7, **ALONE[code])) == w.actual != w.expected
        assert w.reproduced
    for one in by_cause(found):
        w = showing(one).witness
        assert w is not None
        assert w.reproduced
        assert w == own(found).get(one.key[0], w)


def test_what_is_told_again_keeps_its_witness() -> None:
    worker = Inside(mine(all_three))
    some = [answered(i, worker) for i in plan(worker.offer) if i.check in CHECKS]
    samples = [a.sample for a in some if a.sample is not None]
    once, trials = concluded([a.result for a in some], samples, {"mine": worker})
    again, _ = concluded(once, [*samples, *trials])
    assert own(again) == own(once) != {}


def test_a_worker_that_ends_loses_a_witness_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    left = 0
    answers = Inside.answers

    def ending(self: Inside, calls: Any) -> Any:
        nonlocal left
        left -= 1
        return answers(self, calls) if left >= 0 else [Answer("ended", message="signal 9 (SIGKILL)")] * len(calls)

    worker = Inside(mine(all_three))
    some = [answered(i, worker) for i in plan(worker.offer) if i.check in CHECKS]
    results, samples = [a.result for a in some], [a.sample for a in some if a.sample is not None]
    whole, _ = concluded(results, samples, {"mine": worker})
    assert own(whole)
    monkeypatch.setattr(Inside, "answers", ending)
    for batches in range(40, 0, -3):
        left = batches
        found, _ = concluded(results, samples, {"mine": worker})
        assert [(r.outcome, *(c.code for c in r.causes)) for r in found] == [
            (r.outcome, *(c.code for c in r.causes)) for r in whole
        ]
        assert "halfeven itself" not in " ".join(f"{r.cause} {r.detail}" for r in found)


def test_who_concludes_each_item_alone_seeks_no_other_witness() -> None:
    worker = Inside(mine(all_three))
    found = [run(i, worker) for i in plan(worker.offer) if i.check in CHECKS]
    assert max(len(r.causes) for r in found) > 1
    assert own(found) == {}


def test_scripts_of_an_earlier_run_are_not_run() -> None:
    found = [unrun(r) for r in asked(mine(all_three), *CHECKS)]
    every = [w for r in found for w in (r.witness, *(c.witness for c in r.causes)) if w is not None]
    assert len(every) > 3
    assert {w.script for w in every} == {""}
    assert all("earlier run" in w.unshown for w in every)
    assert own(demonstrated(found)) == own(found)


def test_a_cause_that_stands_alone_has_the_witness_of_its_check() -> None:
    found = asked(mine(lambda *a, **k: quantize(*a, **k, times=True)), *CHECKS)
    assert {c.code for r in found for c in r.causes} == {"HE101"}
    assert own(found) == {}


def test_where_the_script_shows_nothing_the_witness_is_not_kept() -> None:
    found = asked(mine(all_three), *CHECKS)
    same = 'print("expected", 3)\nprint("actual  ", 3)'
    broken = [
        replace(r, causes=tuple(replace(c, witness=c.witness and replace(c.witness, script=same)) for c in r.causes))
        for r in found
    ]
    assert own(found)
    assert own(demonstrated(broken)) == {}


def dynamic(x: Any, *, times: bool = False, away: bool = False) -> tuple[Any, Any, Any]:
    """DynamicQuantizeLinear, or with 1/s, or with ties away from zero."""
    if x.dtype != np.float32:
        raise TypeError(x.dtype)
    numbers, zero = x[~np.isnan(x)], np.float32(0)
    with np.errstate(all="ignore"):
        low, high = (f(numbers, initial=zero) for f in (np.min, np.max))
        scale = np.float32((high - low) / np.float32(255))
        if high == low:
            return np.zeros(x.shape, np.uint8), scale, np.uint8(0)
        point = np.rint(np.clip(np.nan_to_num(zero - low / scale, nan=255), 0, 255))
        v = x * (np.float32(1) / scale) if times else x / scale
        codes = np.rint(v) + point
        if away:
            codes = np.trunc(v + np.copysign(np.nextafter(np.float32(0.5), zero), v)) + point
    return np.clip(np.where(np.isnan(codes), 0, codes), 0, 255).astype(np.uint8), scale, np.uint8(point)


def test_choices_of_a_function_have_calls_of_their_own() -> None:
    def wrong(x: Any) -> Any:
        return dynamic(x, times=True, away=True)

    found = asked(replace(of_formula(wrong, "onnx/DynamicQuantizeLinear", array="numpy"), name="mine"), "examples")
    sentences = {c.code: c.sentence for r in found for c in r.causes}
    assert len(sentences) == 2
    assert own(found).keys() == sentences.keys()
    for code, w in own(found).items():
        [values] = re.findall(r"x=(.*) float32", w.x)
        x = np.array(ast.literal_eval(values), np.float32)
        one = {"times": True} if "reciprocal" in sentences[code] else {"away": True}
        document, only, every = (dynamic(x, **d)[0].tolist() for d in ({}, one, {"times": True, "away": True}))
        assert only == every != document
