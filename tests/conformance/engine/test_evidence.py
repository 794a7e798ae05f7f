"""What is gathered of an operation's calls: points counted, answers that are none told, batches asked in order."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from halfeven.conformance import Backend, Unsupported
from halfeven.conformance.configuration import Case, Configuration
from halfeven.conformance.engine.call import Answer, Call, CallShape, sent
from halfeven.conformance.engine.evidence import Crash, Ended, Evidence, Fault
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import Grid


def good(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
    return torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax).to(torch.int8)


def evidence(function: Callable[..., Any], operation: str = "quantize", array: Any = "torch") -> Evidence:
    worker = Inside(Backend("b", "onnx", {operation: function}, array=array))  # type: ignore[dict-item]
    item = next(i for i in plan(worker.offer) if i.configuration and i.check in {"boundaries", "result"})
    return Evidence(item, worker)


def case(values: Any = range(32), operation: str = "quantize") -> Case:
    x = np.asarray(list(values), np.float32)
    c = Configuration(operation, "float32", Grid(-128, 127), x.shape)  # type: ignore[arg-type]
    return Case(c, x, np.asarray(1, np.float32), np.asarray(0, np.int32))


def test_a_good_call_is_compared() -> None:
    e = evidence(good)
    [answer] = e.expect([case()])
    assert answer is not None
    assert answer.tolist() == list(range(32))
    assert (e.points, e.differing, e.unit, len(e.compared), e.findings) == (32, 0, "code steps", 1, [])


def test_what_differs_is_counted_in_code_steps() -> None:
    e = evidence(lambda *a, **k: good(*a, **k) + 3 * (a[0] == 5))
    e.expect([case(), case([5, 5]), case([1])])
    assert (e.points, e.differing, e.steps, e.unit) == (35, 3, 3, "code steps")
    assert [f.difference.comparison.where.tolist() for f in e.findings if f.difference.comparison] == [[5], [0, 1]]


def test_reals_are_counted_in_ulps_and_in_code_steps_once_one_is_on_another_code() -> None:
    e = evidence(lambda x, scale, zero_point, *, qmin, qmax: torch.nextafter(x, x + 1), "fake_quantize")
    e.expect([case(operation="fake_quantize")])
    assert (e.differing, e.steps, e.unit) == (32, 1, "ulp") or e.unit == "ulp"
    e = evidence(lambda x, scale, zero_point, *, qmin, qmax: x + 2, "fake_quantize")
    e.expect([case(operation="fake_quantize")])
    assert (e.steps, e.unit) == (2, "code steps")


def test_of_nan_on_which_the_document_is_silent_whatever_comes_is_right_and_the_rest_is_judged() -> None:
    calls = [call([1, np.nan, 2.5]), call([np.nan])]
    for function in (good, lambda *a, **k: torch.where(torch.isnan(a[0]), 99, good(*a, **k))):
        e = evidence(function)
        e.expect_calls((c, Answer("returned", np.float32([1, 0, 2])[: c.positional[0].shape[0]])) for c in calls)
        assert (e.made, e.points, e.differing) == (2, 2, 0)
    e = evidence(lambda *a, **k: good(*a, **k) + torch.isnan(a[0]).any())
    e.expect_calls([(calls[0], Answer("returned", np.float32([1, 0, 2])))])
    assert [f.difference.comparison.where.tolist() for f in e.findings if f.difference.comparison] == [[0, 2]]


def test_nan_is_judged_where_the_document_speaks_of_it() -> None:
    worker = Inside(Backend("b", "onnx@onnxruntime-1.31", {"quantize": good}))
    e = Evidence(next(i for i in plan(worker.offer) if i.check == "boundaries"), worker)
    assert e.open_nans(case([1, np.nan])) is None
    e.expect_calls([(replace(call([1, np.nan]), formula="onnx@onnxruntime-1.31:quantize"), answer([1, 7]))])
    assert e.differing == 1


def test_codes_in_another_dtype_than_expected_are_compared_beside_nan() -> None:
    x = np.array([1, np.nan, 2.5], ml_dtypes.bfloat16)
    parameters = np.asarray(1, ml_dtypes.bfloat16), np.asarray(0, np.float32)
    asked = Call("aimet:quantize", tuple(map(sent, (x, *parameters))), {"qmin": -128, "qmax": 127})
    worker = Inside(Backend("b", "aimet", {"quantize": good}, dtypes=("bfloat16",)))
    e = Evidence(next(i for i in plan(worker.offer) if i.check == "call-shapes"), worker)
    e.expect_calls([(asked, Answer("returned", np.array([1, np.nan, 3], ml_dtypes.bfloat16)))])
    assert [f.difference.comparison.where.tolist() for f in e.findings if f.difference.comparison] == [[2]]


def test_nan_may_be_refused_where_the_document_is_silent() -> None:
    def finite(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        if x.isnan().any() or (x == 5).any():
            raise ValueError
        return good(x, scale, zero_point, qmin=qmin, qmax=qmax)

    e = evidence(finite)
    e.expect_calls([(call([1, np.nan]), Answer("returned", np.int8([1, 0])))])
    assert e.refused == ["NaN: raises ValueError, and the document is silent on it"]
    with pytest.raises(Crash, match="ValueError"):
        e.expect_calls([(call([1, 5]), Answer("returned", np.int8([1, 5])))])


def answer(codes: list[int]) -> Answer:
    return Answer("returned", np.int8(codes))


def call(values: Any) -> Call:
    x = [np.asarray(values, np.float32), np.asarray(1, np.float32), np.asarray(0, np.int32)]
    return Call("onnx:quantize", tuple(map(sent, x)), {"qmin": -128, "qmax": 127})


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda x: x.reshape(1, -1), "wrong shape"),
        (lambda x: x[:-1], "wrong shape"),
        (lambda x: x > 0, "wrong dtype: bool"),
        (lambda x: x.to(torch.complex64), "wrong dtype: complex64"),
        (lambda x: x.tolist(), "wrong result"),
        (lambda _x: None, "wrong result"),
        (lambda x: x.to_sparse(), "wrong result"),
        (lambda x: x.add_(1), "mutated input"),
    ],
)
def test_what_is_returned_is_looked_at(result: Callable[..., Any], message: str) -> None:
    e = evidence(lambda x, scale, zero_point, *, qmin, qmax: result(x))
    with pytest.raises(Fault, match=message):
        e.ask([case()])


def test_reals_have_one_dtype() -> None:
    e = evidence(lambda x, scale, zero_point, *, qmin, qmax: x.double(), "fake_quantize")
    with pytest.raises(Fault, match="wrong dtype: float64"):
        e.ask([case(operation="fake_quantize")])


def test_a_crash_keeps_the_traceback_of_the_backend() -> None:
    def fn(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> None:
        raise KeyError("lost")

    with pytest.raises(Crash, match="KeyError: 'lost'"):
        evidence(fn).ask([case()])


def test_a_call_that_is_not_offered_is_left_out_and_the_others_are_compared() -> None:
    def fn(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        if len(x) == 2:
            raise Unsupported("pairs")
        return good(x, scale, zero_point, qmin=qmin, qmax=qmax)

    e = evidence(fn)
    first, second, third = e.expect([case([1]), case([1, 2]), case([1, 2, 3])])
    assert second is None
    assert first is not None
    assert third is not None
    assert (e.points, e.refused) == (4, ["pairs"])


class Ending:
    """A worker whose process ends at a call."""

    def __init__(self, worker: Inside, at: int) -> None:
        self.worker, self.at, self.batches = worker, at, []
        self.offer = worker.offer

    def answers(self, calls: Sequence[Call]) -> list[Answer]:
        self.batches.append(len(calls))
        given = self.worker.answers(calls[: self.at])
        return [*given, *[Answer("ended", message="signal 11 (SIGSEGV)")] * (len(calls) - len(given))]


def test_a_process_that_ends_is_told_and_what_was_compared_before_stays() -> None:
    e = evidence(lambda *a, **k: good(*a, **k) + 1)
    e.worker = Ending(e.worker, 1)  # type: ignore[arg-type]
    with pytest.raises(Ended, match="SIGSEGV"):
        e.expect([case()] * 3)
    e = evidence(good)
    e.worker = Ending(e.worker, 10**6)  # type: ignore[arg-type]
    e.expect(replace(case(), x=np.full(1, i % 100, np.float32)) for i in range(600))
    assert sum(e.worker.batches) == 600
    assert len(e.worker.batches) < 10, "batches are asked, not calls"


@pytest.mark.parametrize("size", [64, 100_003])
@pytest.mark.parametrize("array", ["torch", "numpy"])
def test_memory_that_was_never_written_is_told(size: int, array: str) -> None:
    def untouched(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        value = np.empty(x.shape, np.float32) if array == "numpy" else torch.empty(x.shape)
        value[: size // 2] = x[: size // 2]
        return value

    e = evidence(untouched, array=array)
    told = seen = 0
    good(torch.ones(size), torch.tensor(1.0), torch.tensor(0), qmin=0, qmax=1)  # the right answer, left in memory
    for _ in range(20):
        before = e.differing
        try:
            e.expect([case(np.ones(size, np.float32))])
        except Fault as fault:
            told += "were never written" in str(fault)
        seen += e.differing > before
    # Which memory comes back is the allocator's choice: mostly the poisoned, hardly ever the right answer.
    assert told + seen >= 15
    assert told > 0 or array == "torch" or size > 1000


def test_a_code_that_looks_like_poison_is_an_ordinary_difference() -> None:
    e = evidence(lambda *a, **k: torch.where(good(*a, **k) == -90, -91, good(*a, **k)).to(torch.int8))
    e.expect([case([-90, 1, -91])])
    assert (e.differing, len(e.findings)) == (1, 1)


def test_a_way_of_calling_that_every_call_refuses_is_not_offered() -> None:
    def fn(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        if torch.is_inference_mode_enabled() or x.numel() == 3:
            raise RuntimeError("no")
        return good(x, scale, zero_point, qmin=qmin, qmax=qmax)

    e = evidence(fn)

    def calls(mode: Any, *cases: Case) -> list[tuple[Call, Answer]]:
        shape = CallShape(mode=mode)
        return [(replace(e.call(c), shape=shape), Answer("returned", c.x.astype(np.int8))) for c in cases]

    e.expect_calls([*calls("grad", case()), *calls("inference", case(), case([1]))])
    assert e.refused == ["mode inference: raises RuntimeError in every call"] * 2
    assert e.points == 32
    with pytest.raises(Crash):
        e.expect_calls([*calls("no_grad", case(), case([1, 2, 3]))])
