"""What tells the calls of a function apart that differ: a value, a dtype, how large an argument is, what is in it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from halfeven.conformance.engine.argument import of_arguments, of_sizes, some_arguments
from halfeven.conformance.engine.call import PLAIN, Answer
from halfeven.conformance.engine.mostly import Row, by_size

Given = dict[str, Any]


def rows(*lengths: int) -> list[Given]:
    return [{"x": np.ones(n, np.float32)} for n in lengths]


def several(name: str, *values: Any) -> list[Given]:
    """Four different calls with each of the values."""
    return [{name: v, "n": f"{i}"} for v in values for i in range(4)]


@pytest.mark.parametrize(
    ("bad", "good", "words"),
    [
        (several("mode", "a"), several("mode", "b", "c"), "mode='a'"),
        (several("mode", "a", "c"), several("mode", "b"), "mode='a' or mode='c'"),
        ([*several("mode", "a"), *several("other", 1)], several("mode", "b"), "mode='a' or mode not given"),
        (several("by", 0.5), several("by", None), "by='a float'"),
        (several("x", np.float32([np.nan, 1])), several("x", np.float32([2, 1])), "NaN in x"),
        (several("x", np.float32([np.inf, np.nan])), several("x", np.float32([np.nan])), "infinities in x"),
        (several("x", np.float32([0, 0])), several("x", np.float32([2, 1])), "only zeros in x"),
        (several("x", np.float32([2, 1])), several("x", np.float32([0])), "numbers other than zero in x"),
        (several("x", np.int8([])), several("x", np.int8([2, 1])), "no elements in x"),
        (several("x", np.int8([2, 1])), several("x", np.int8([])), "elements in x"),
        (several("x", np.zeros((2, 2), np.int8)), several("x", np.zeros(2, np.int8)), "x of rank 2"),
        (several("x", np.array(["a"])), several("x", np.array([["a"]])), "x of rank 1"),
        (rows(3, 5, 9, 33), rows(2, 4, 8, 32), "x whose rows have n elements, n no multiple of 2"),
        (rows(9, 12, 20, 33), rows(8, 16, 32, 64), "x whose rows have n elements, n no multiple of 8"),
        (rows(1, 9, 33, 65), rows(16, 32, 64, 96), "x whose rows have n elements, n no multiple of 2 or 4 or 8 or 16"),
        (rows(16, 32, 64, 96), rows(1, 9, 33, 65), "x whose rows have n elements, n a multiple of 2 or 4 or 8 or 16"),
        ([{"mode": "a"}] * 9, several("mode", "b"), None),
        (several("mode", "a")[:3], several("mode", "b"), None),
        (several("bits", *range(4)), several("bits", 9), None),
    ],
)
def test_what_tells_calls_apart(bad: list[Given], good: list[Given], words: str | None) -> None:
    found = of_arguments(bad, good)
    assert (found and found.words) == words
    if found is not None:
        assert all(map(found.has, bad))
        assert not any(map(found.has, good))


def test_whether_rows_or_all_elements_are_odd_is_not_known_of_few_calls() -> None:
    def shaped(*shapes: tuple[int, ...]) -> list[Given]:
        return [{"x": np.ones(shape, np.float32)} for shape in shapes]

    odd, even = shaped((3,), (5,), (9,), (3, 5)), shaped((2,), (4,), (8,), (4, 4))
    either = of_arguments(odd, even)
    assert either is not None
    assert either.words == "x of n elements, in a row or in all, n no multiple of 2"
    known = of_arguments(odd, [*even, *shaped((2, 3), (4, 5))])
    assert known is not None
    assert known.words == "x of n elements, n no multiple of 2"


def test_every_call_that_differs_has_rows_with_the_remainder_that_is_said() -> None:
    odd, even, scalars = rows(3, 5, 9, 33), rows(2, 4, 8, 32), several("x", *map(np.float32, range(6)))
    assert of_arguments([*odd, *scalars], even) is None
    known = of_arguments(odd, [*even, *scalars])
    assert known is not None
    assert known.words == "x whose rows have n elements, n no multiple of 2"


def test_divisors_that_are_not_told_apart_are_all_said_of_some_calls_too() -> None:
    even, odd = rows(*range(64, 640, 64)), rows(*range(1, 41, 2))
    found = some_arguments(even, [*odd, *rows(640)])
    assert found is not None
    assert found.words == "x whose rows have n elements, n a multiple of 2 or 4 or 8 or 16 or 32 or 64, in some calls"


def test_where_divisors_are_not_told_apart_calls_between_are_open() -> None:
    found = of_arguments(rows(1, 9, 33, 65), rows(16, 32, 64, 96))
    assert found is not None
    assert [found.is_open(a) for a in rows(4, 8, 5, 16, 48)] == [True, True, False, False, False]


def test_a_limit_of_size_tells_calls_apart_and_those_between_are_open() -> None:
    few, many = rows(1, 3, 8, 31), rows(65, 70, 99, 200)
    found = of_sizes(many, few)
    assert found is not None
    assert (found.words, found.code) == ("x whose rows have more than k elements, k from 31 to 64", "HE602")
    assert [found.has(a) for a in (*rows(31, 65), {"y": 1})] == [False, True, False]
    assert [found.is_open(a) for a in rows(31, 32, 64, 65)] == [False, True, True, False]
    flat, high = ([{"x": np.zeros((n, 2))} for n in sizes] for sizes in ((1, 2, 3, 4), (5, 6, 7, 8)))
    wide = of_sizes(high, flat)
    assert wide is not None
    assert wide.words == "x of more than k elements, k from 8 to 9"
    assert of_sizes(many[:3], few) is of_sizes(many, few[:3]) is of_sizes(few, many) is None
    assert of_sizes([*many, *rows(30)], few) is None
    one, other = (
        [Row(a, Answer("returned", 0), PLAIN, check) for a in some] for check, some in (("a", many), ("b", few))
    )
    assert by_size(one, other) is None, "that is what the checks differ in"
    assert by_size(one, [replace(r, check="a") for r in other]) == found


def test_what_few_others_have_is_said_where_it_is_hardly_an_accident() -> None:
    bad, good = several("mode", "a"), [*several("mode", *"bcdefghijklmno"), *several("mode", "a")[:1]]
    found = some_arguments([*bad, {"mode": "a", "n": "5"}], good)
    assert found is not None
    assert (found.words, found.outside) == ("mode='a', in some calls", "outside of mode='a'")
    assert some_arguments(bad, [*several("mode", "b"), *bad]) is None
