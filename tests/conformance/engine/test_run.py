"""Whatever a backend does to an item is its result."""

from typing import Any

import pytest
import torch

from halfeven.conformance import Backend
from halfeven.conformance.engine.item import SMOKE
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import answered
from halfeven.conformance.report.model import Result
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import Grid


def good(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
    return torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax).to(torch.int32)


def results(backend: Backend, *checks: str, gate: bool = True) -> list[Result]:
    worker = Inside(backend)
    return [answered(i, worker, gate=gate).result for i in plan(worker.offer) if not checks or i.check in checks]


def test_faults_become_outcomes_that_say_so() -> None:
    def narrow(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return good(x, scale, zero_point, qmin=qmin, qmax=qmax).to(torch.float64).unsqueeze(0)

    told = [r for r in results(Backend("n", "onnx", {"quantize": narrow}), gate=False) if "wrong shape" in r.cause]
    assert len(told) > 5
    assert all(r.outcome == "differs" for r in told)


def test_the_points_promised_are_the_points_compared() -> None:
    counted = 0

    def fn(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        nonlocal counted
        counted += x.numel()
        return good(x, scale, zero_point, qmin=qmin, qmax=qmax)

    worker = Inside(Backend("counted", "onnx", {"quantize": fn}))
    tried = set()
    for item in plan(worker.offer):
        if item.check in {"boundaries", "odd-zero-point", "edges", "huge", "result"}:
            counted = 0
            result = answered(item, worker, gate=False).result
            assert result.outcome == "exact"
            assert result.points == counted > 0, item.id
            tried.add(item.check)
    assert len(tried) == 5


def test_an_error_of_ours_is_not_the_backend_s(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        msg = "our own"
        raise ZeroDivisionError(msg)

    monkeypatch.setattr("halfeven.conformance.engine.evidence.evaluation_of", broken)
    found = results(Backend("b", "onnx", {"quantize": good}), "boundaries", gate=False)
    assert {r.outcome for r in found} == {"crashed"}
    assert all(r.cause.startswith("error in halfeven itself") for r in found)


def test_a_code_that_looks_like_poison_has_a_witness() -> None:
    def one_off(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        value = good(x, scale, zero_point, qmin=qmin, qmax=qmax).to(torch.int8)
        return torch.where(value == -90, torch.tensor(-91, dtype=torch.int8), value)

    found = results(Backend("one off", "onnx", {"quantize": one_off}, grids=(Grid(-128, 127),)), "boundaries")
    assert found
    assert all(r.outcome == "differs" and "stale" not in r.cause and r.witness is not None for r in found)


def test_where_the_probe_fails_nothing_else_is_run_unless_asked_for() -> None:
    backend = Backend("zeros", "onnx", {"quantize": lambda x, *_, **k: torch.zeros(x.shape, dtype=torch.int8)})
    found = results(backend)
    probes, rest = ([r for r in found if (r.check == SMOKE) == is_probe] for is_probe in (True, False))
    assert {r.outcome for r in probes} == {"differs"}
    assert {r.outcome for r in rest} == {"not run"}
    assert all(r.detail.startswith("smoke failed: broken adapter") for r in rest)
    assert "not run" not in {r.outcome for r in results(backend, "boundaries", gate=False)}


def test_a_probe_that_fails_when_it_is_repeated_does_not_pass() -> None:
    asked = 0

    def tires(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        nonlocal asked
        asked += 1
        return good(x, scale, zero_point, qmin=qmin, qmax=qmax) * (asked <= 3)

    found = results(Backend("tires", "onnx", {"quantize": tires}), SMOKE)
    assert [r.outcome for r in found] == ["differs"] * len(found)
    assert "not deterministic" in found[0].cause


def test_what_the_profile_does_not_document_is_reported_as_not_run() -> None:
    backend = Backend("more", "torch.fake_quantize", {"quantize": good, "fake_quantize": good})
    told = [r for r in results(backend) if r.operation == "quantize"]
    assert [r.outcome for r in told] == ["not run"]
    assert "documents no quantize" in told[0].detail


def test_a_grid_without_zero_is_tried_too() -> None:
    def quantize(x: Any, scale: Any, offset: Any, *, qmin: int, qmax: int) -> Any:
        return torch.clamp(torch.round(x / scale) - offset, qmin, qmax)

    def dequantize(q: Any, scale: Any, offset: Any) -> Any:
        return (q + offset) * scale

    backend = Backend("high", "aimet", {"quantize": quantize, "dequantize": dequantize}, grids=(Grid(5, 9),))
    found = results(backend)
    assert {r.outcome for r in found} <= {"exact", "implementation-defined"}, [r for r in found if r.detail]


def test_a_process_that_flushes_subnormals_is_put_right_before_the_reference_computes() -> None:
    def flushing(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        torch.set_flush_denormal(True)
        return good(x, scale, zero_point, qmin=qmin, qmax=qmax)

    found = results(Backend("b", "onnx", {"quantize": flushing}), "boundaries", gate=False)
    assert {r.outcome for r in found} == {"differs"}
    assert all("flush-to-zero" in r.cause for r in found)
