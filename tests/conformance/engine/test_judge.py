"""Two answers are the same by dtypes, shapes and bits, or it is said where and how they differ."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from asking import ask

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.engine.call import Answer
from halfeven.conformance.engine.judge import answer_of, differences


@pytest.mark.parametrize(
    ("expected", "actual", "differing", "words"),
    [
        (np.float32([1, np.nan]), np.float32([1, np.nan]), 0, ""),
        (np.float32([0.0]), np.float32([-0.0]), 1, "result[0] is -0.0 "),
        (np.float32([1]), np.float64([1]), 1, "result is float64 where the document gives float32"),
        (np.float32([1]), np.int32([1]), 1, "is int32 where the document gives float32"),
        (np.int8([1, 2]), np.int8([1, 3]), 1, "result[1] is 3 where the document gives 2"),
        (np.int8([1]), np.int32([1]), 1, "is int32 where the document gives int8"),
        (np.int8([1]), np.array([1 + 1j]), 1, "is complex128 where the document gives int8"),
        (np.int8([1]), np.array(["1"]), 1, "is <U1 where the document gives int8"),
        (np.int8([[1]]), np.int8([1]), 1, "result is of shape (1,) where the document gives (1, 1)"),
        ((1, "a", None), (1, "a", None), 0, ""),
        ((1, "a"), (1, "b"), 1, "result[1] is 'b' where the document gives 'a'"),
        ((1,), (1, 2), 1, "returns len(result), result[0], result[1] where the document gives len(result), "),
        ({"a": 1}, {"b": 1}, 1, "returns result['b'] where the document gives result['a']"),
        (True, 1, 1, "result is 1 where the document gives True"),
        (float("nan"), float("nan"), 0, ""),
        (np.bool_([True, False]), np.bool_([True, True]), 1, "result[1]"),
    ],
)
def test_differences_are_seen(expected: Any, actual: Any, differing: int, words: str) -> None:
    found = differences(answer_of(lambda: expected, {}), answer_of(lambda: actual, {}))
    assert bool(found.differing) == bool(differing)
    assert words in found.words


def test_bfloat16_and_float8_go_and_come_by_their_bits() -> None:
    x = np.array([1, -0.0, np.nan, 3e38], ml_dtypes.bfloat16)
    found = ask(lambda *, x: x, {"x": x})
    assert not differences(answer_of(lambda x: x, {"x": x}), found).differing
    eighth = ask(lambda *, x: x.to(torch.float8_e4m3fn), {"x": np.float32([1, -0.0, 300])})
    assert eighth.value.dtype == ml_dtypes.float8_e4m3fn
    assert eighth.value.astype(np.float32).tolist() == [1, 0, 288]


def test_errors_are_compared_by_their_types() -> None:
    narrow = Answer("raised", error=("KeyError", "LookupError", "Exception"), message="k")
    broad = Answer("raised", error=("LookupError", "Exception"))
    assert not differences(broad, narrow).differing
    assert differences(narrow, broad).words == "raises LookupError where the document raises KeyError"
    assert differences(narrow, Answer("returned", 1)).words == "returns a result where the document raises KeyError"
    assert differences(Answer("returned", 1), narrow).words == "raises KeyError where the document gives a result: k"


def test_what_is_no_answer_differs_in_its_own_words() -> None:
    right = Answer("returned", np.float32([1]))
    ended = differences(right, Answer("ended", message="signal 11 (SIGSEGV)"))
    assert (ended.differing, ended.words) == (1, "signal 11 (SIGSEGV)")
    faulty = differences(right, Answer("returned", np.float32([1]), faults=("stale output: it", "another")))
    assert (faulty.differing, faulty.words) == (1, "stale output: it")


def test_every_point_counts_and_the_first_leaf_that_differs_is_shown() -> None:
    expected = Answer("returned", (np.float32([1, 2]), np.int8([1, 2, 3])))
    found = differences(expected, Answer("returned", (np.float32([1, 2]), np.int8([1, 3, 5]))))
    assert (found.points, found.differing, found.steps, found.unit) == (6, 2, 2, "code steps")
    assert found.leaf == "result[1]"
    assert found.comparison is not None
    assert found.comparison.where.tolist() == [1, 2]


def test_the_reference_gets_copies_and_its_refusals_are_answers() -> None:
    given = {"x": np.zeros(2, np.float32), "listed": [np.zeros(1)]}

    def writes(x: np.ndarray, listed: list[np.ndarray]) -> np.ndarray:
        listed[0][:] = 1
        x += 1
        return x

    assert answer_of(writes, given).value.tolist() == [1, 1]
    assert given["x"].tolist() == [0, 0]
    assert given["listed"][0].tolist() == [0]

    def refuses() -> None:
        raise Unsupported("never")

    assert answer_of(refuses, {}).kind == "unsupported"
    assert answer_of(lambda: {}["a"], {}).error[:2] == ("KeyError", "LookupError")
