from dataclasses import replace

import numpy as np
import pytest

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.backends.protocol import Unsupported, adapt
from halfeven.conformance.configuration import Configuration
from halfeven.conformance.engine.call import Answer, Call, CallShape, Dtype, sent
from halfeven.conformance.engine.conclude import concluded
from halfeven.conformance.engine.memory import Strided, plain
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import answered
from halfeven.conformance.quote import NoScript
from halfeven.conformance.report.model import CONFORMING, Result
from halfeven.conformance.workers import Worker
from halfeven.conformance.workers.inside import Inside
from halfeven.conformance.workers.record import ABSENT, Recorder, Replay, key, reference
from halfeven.reference import Grid

OFFER = Offer("device", "onnx", {"quantize": ("qmin", "qmax")}, grids=(Grid(-8, 7),), array="numpy")
X = np.array([0.5, 1.5, -9.0], np.float32)
CALL = Call("onnx:quantize", (plain(X), plain(np.float32(1)), plain(np.int32(0))), {"qmin": -8, "qmax": 7})


def test_a_key_is_of_the_content_alone() -> None:
    assert key(CALL) == key(replace(CALL, reason="why"))
    moved = Strided(np.append(X, X), (3,), (1,), 3)
    others = [
        replace(CALL, formula="onnx:dequantize"),
        replace(CALL, shape=CallShape(repeats=2)),
        replace(CALL, named={"qmin": -8, "qmax": 6}),
        replace(CALL, positional=(moved, *CALL.positional[1:])),
        replace(CALL, positional=(plain(-X), *CALL.positional[1:])),
    ]
    assert len({key(CALL), *map(key, others)}) == 6


def test_the_reference_answers_operations() -> None:
    found = reference(CALL, "onnx").value
    assert (found.dtype, found.tolist()) == (np.int8, [0, 2, -8])
    codes = Call(
        "onnx:dequantize", (plain(np.int8([3])), *CALL.positional[1:]), {**CALL.named, "dtype": Dtype("float16")}
    )
    assert (reference(codes, "onnx").value.dtype, reference(codes, "onnx").value.tolist()) == (np.float16, [3.0])
    assert reference(replace(CALL, named={"qmin": 1, "qmax": 0}), "onnx").error[0] == "ValueError"


def test_the_reference_answers_formulas_in_the_version_claimed() -> None:
    zeros = Call("onnx/DynamicQuantizeLinear", (), {"x": sent(np.zeros(2, np.float32))})
    scales = [float(reference(zeros, p).value[1]) for p in ("onnx", "onnx@onnxruntime-1.31")]
    assert scales[0] != scales[1]


@pytest.fixture(scope="module")
def recorded() -> Recorder:
    recorder = Recorder(OFFER)
    assert {answered(item, recorder).result.outcome for item in plan(OFFER)} <= {*CONFORMING}
    return recorder


def results(worker: Worker) -> list[Result]:
    """What a run with the worker comes to, but how long it took and its witness, which is made smaller by asking."""
    came = [answered(item, worker) for item in plan(worker.offer)]
    samples = [a.sample for a in came if a.sample is not None]
    found, _ = concluded([a.result for a in came], samples, {worker.offer.name: worker})
    return [replace(r, seconds=0.0, witness=None) for r in found]


def test_answers_replayed_give_the_results_of_a_live_run(recorded: Recorder) -> None:
    replayed = Replay(OFFER, [(tuple(map(key, recorded.calls)), recorded.given)])
    assert results(replayed) == results(Recorder(OFFER))
    assert replayed.missing == {}


class Away:
    """Rounds ties away from zero, and offers no empty tensors."""

    profile, array, grids = "onnx", "numpy", (Grid(-8, 7),)

    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        if not x.size:
            raise Unsupported("no empty tensors")
        with np.errstate(all="ignore"):
            q = np.float64(x / scale)
            codes = np.where(abs(q) < 2**22, np.copysign(np.floor(abs(q) + 0.5), q), q) + zero_point
        return np.clip(np.nan_to_num(codes, nan=0.0), qmin, qmax).astype(np.int8)

    def dequantize(self, q, scale, zero_point):
        return (np.float32(q - zero_point) * scale).astype(np.float32)


def test_a_device_gets_the_results_of_a_live_run_in_two_rounds() -> None:
    device = Inside(adapt(Away))
    recorder = Recorder(device.offer)
    results(recorder)
    answered = [(tuple(map(key, recorder.calls)), device.answers(recorder.calls))]
    guess = Replay(device.offer, answered, guessing=True)
    results(guess)
    again = [*guess.missing.values()]
    assert again
    replay = Replay(device.offer, [*answered, (tuple(map(key, again)), device.answers(again))])
    live = results(device)
    assert "differs" in {r.outcome for r in live}
    assert results(replay) == live
    assert replay.missing == {}


def test_a_call_asked_again_has_its_own_answers() -> None:
    first, second = Answer("returned", np.int8([1])), Answer("returned", np.int8([2]))
    replay = Replay(OFFER, [([key(CALL)] * 2, [first, second])])
    assert replay.answers([CALL] * 3) == [first, second, second]


def test_a_call_that_nobody_answered_is_kept() -> None:
    replay = Replay(OFFER, [])
    found = replay.answers([CALL, CALL])
    assert [(a.kind, a.message) for a in found] == [("unsupported", ABSENT)] * 2
    assert [*replay.missing.values()] == [CALL]


def test_a_guess_leads_to_the_calls_that_would_follow() -> None:
    guess = Replay(OFFER, [], guessing=True)
    [found] = guess.answers([CALL])
    assert found.value.tolist() == [0, 2, -8]
    assert [*guess.missing.values()] == [CALL]


def test_no_script_asks_a_device() -> None:
    with pytest.raises(NoScript, match="answered elsewhere"):
        Replay(OFFER, []).script("onnx:quantize", {}, Configuration("quantize", "float32", Grid(-8, 7), (3,)))
