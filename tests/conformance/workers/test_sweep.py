"""A call that stands for many gives what each of them gives, in this process and in another."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from halfeven.conformance.backends.registry import resolve
from halfeven.conformance.engine.batch import Damaged, dump, load
from halfeven.conformance.engine.call import Answer, Call, CallShape
from halfeven.conformance.engine.exhaustive.patterns import Encoder, Patterns
from halfeven.conformance.engine.exhaustive.runs import runs_of
from halfeven.conformance.engine.memory import plain
from halfeven.conformance.workers.child import Child
from halfeven.conformance.workers.inside import Inside
from halfeven.conformance.workers.server import Server

BACKEND = "torch.fake_quantize_per_tensor_affine"
FORMULA = "torch.fake_quantize:fake_quantize"
GRID = {"qmin": -128, "qmax": 127, "block_size": None}
SCALES, ZEROS = np.array([0.1, 0.3, 0.7], np.float32), np.array([0, 3, -7], np.int32)


def spread(answer: Answer, size: int) -> Any:
    assert (answer.kind, answer.faults, answer.message) == ("returned", (), "")
    runs = runs_of(answer.value, size)
    assert runs is not None
    return runs.at(np.arange(size))


def one_by_one(worker: Inside, x: Any, row: int) -> Any:
    arguments = tuple(map(plain, (x, SCALES[row], ZEROS[row])))
    return worker.answer(Call(FORMULA, arguments, GRID)).value


@pytest.fixture(scope="module")
def inside() -> Inside:
    [backend] = resolve(BACKEND)
    return Inside(backend)


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    with Server() as server:
        made = Child(server, BACKEND)
        yield made
        made.close()


def calls() -> list[Call]:
    patterns = Patterns("float32", 0x3E000000, 1 << 12, 1 << 10)
    x = np.linspace(-40, 40, 96, dtype=np.float32).reshape(3, 32)
    each = CallShape(each=True)
    return [
        Call(FORMULA, (patterns, plain(SCALES[1]), plain(ZEROS[1])), GRID),
        Call(FORMULA, (patterns, plain(SCALES), plain(ZEROS)), GRID, each),
        Call(FORMULA, (plain(x), plain(SCALES), plain(ZEROS)), GRID, each),
        Call(FORMULA, (Patterns("float16", 0, 1 << 16, 1 << 16), plain(SCALES[0]), plain(ZEROS[0])), GRID),
    ]


def test_it_is_what_the_calls_are_one_by_one(inside: Inside) -> None:
    one, many, rows, half = inside.answers(calls())
    x = (np.arange(1 << 12, dtype=np.uint32) + np.uint32(0x3E000000)).view(np.float32)
    assert np.array_equal(spread(one, x.size), one_by_one(inside, x, 1))
    assert np.array_equal(spread(many, 3 * x.size).reshape(3, -1)[2], one_by_one(inside, x, 2))
    x = np.linspace(-40, 40, 96, dtype=np.float32).reshape(3, 32)
    assert np.array_equal(spread(rows, 96).reshape(3, 32)[1], one_by_one(inside, x[1], 1))
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    found = spread(half, 1 << 16)
    assert found.dtype == np.float16
    assert np.array_equal(found, one_by_one(inside, x, 0), equal_nan=True)
    assert 0.0 < one.seconds < 10.0


def test_another_process_answers_the_same(inside: Inside, child: Child) -> None:
    for here, there in zip(inside.answers(calls()), child.answers(calls()), strict=True):
        assert (here.kind, here.faults) == (there.kind, there.faults) == ("returned", ())
        for name in ("values", "counts"):
            assert here.value[name].tobytes() == there.value[name].tobytes()


def test_patterns_travel_as_numbers() -> None:
    for call in calls():
        sent = dump([call])
        assert len(sent) < 4096
        [came] = load(sent, Call)
        assert came.shape == call.shape
        assert came.positional[0] == call.positional[0] or isinstance(call.positional[0], type(plain(SCALES)))
    text = dump(calls()[:1])
    assert b"1040187392" in text
    with pytest.raises(Damaged, match="there are 4294967296"):
        load(text.replace(b"1040187392", b"4294966272"), Call)


@pytest.mark.parametrize(
    ("dtype", "first", "count", "piece"),
    [
        ("float64", 0, 8, 8),
        ("float32", -8, 8, 8),
        ("float32", 0, 12, 8),
        ("float16", 65528, 16, 8),
        ("float32", 0, 8, 0),
    ],
)
def test_patterns_that_there_are_not(dtype: str, first: int, count: int, piece: int) -> None:
    with pytest.raises(ValueError, match="is not accepted"):
        Patterns(dtype, first, count, piece)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.float16, np.float32])
@pytest.mark.parametrize("size", [1, 7, 8, 64, 1000])
def test_runs_say_all_of_an_answer(dtype: Any, size: int) -> None:
    generator = np.random.default_rng(size)
    pieces = [
        generator.integers(0, 3, size).astype(dtype),
        np.full(size, 7, dtype),
        np.repeat(np.arange(2), size)[:size],
    ]
    encoder = Encoder()
    for piece in pieces:
        encoder.add(np.asarray(piece, dtype))
    runs = runs_of(encoder.result(), 3 * size)
    assert runs is not None
    assert np.array_equal(runs.at(np.arange(3 * size)), np.concatenate(pieces))


def test_a_last_element_is_not_taken_for_the_others() -> None:
    for place in range(64):
        a = np.zeros(64, np.int8)
        a[place] = 1
        encoder = Encoder()
        encoder.add(a)
        runs = runs_of(encoder.result(), 64)
        assert runs is not None
        assert np.flatnonzero(runs.at(np.arange(64))).tolist() == [place]
