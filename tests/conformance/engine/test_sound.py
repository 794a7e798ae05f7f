from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from samples import ANSWERS, CALLS

from halfeven.conformance.engine.call import Answer, Call, CallShape
from halfeven.conformance.engine.memory import Strided
from halfeven.conformance.engine.sound import Damaged, sound

MEMORY = np.zeros(4, np.int8)


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else []


def test_what_can_be_is_sound() -> None:
    for item in (*CALLS, *ANSWERS):
        sound(item)
    sound(Call("f", (Strided(MEMORY, (1 << 20, 1, 4), (0, 7, -1), 3), Strided(MEMORY, (0, 9), (1, 1), 9))))
    sound(Answer("returned", nested(30)))


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "words"),
    [
        ((5,), (1,), 0, "reaches out"),
        ((4,), (1,), 1, "reaches out"),
        ((4,), (-1,), 2, "reaches out"),
        ((2,), (1,), -1, "reaches out"),
        ((-2,), (1,), 0, "reaches out"),
        ((1 << 40,), (0,), 0, "repeats its memory too often"),
        ((1 << 13, 1 << 14), (0, 0), 0, "repeats its memory too often"),
        ((2,), (1, 1), 0, "has the strides"),
        ((2.0,), (1,), 0, "has the strides"),
        ((True,), (1,), 0, "has the strides"),
        ((2,), (float("nan"),), 0, "has the strides"),
        ((1,) * 65, (1,) * 65, 0, "has the strides"),
    ],
)
def test_no_view_reaches_out_of_its_memory(shape: Any, strides: Any, offset: int, words: str) -> None:
    with pytest.raises(Damaged, match=words):
        sound(Call("f", ([Strided(MEMORY, shape, strides, offset)],)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"formula": None}, "lacks its formula"),
        ({"positional": []}, "lacks its formula or its arguments"),
        ({"named": {1: 2}}, "has no name"),
        ({"shape": None}, "lacks its shape"),
        ({"shape": CallShape(repeats=10**6)}, "in a way that there is not"),
        ({"shape": CallShape(mode="eval")}, "in a way that there is not"),  # type: ignore[arg-type]
        ({"shape": CallShape(size=-1)}, "in a way that there is not"),
        ({"positional": (nested(40),)}, "nested deeper"),
    ],
)
def test_no_call_is_other_than_its_type_says(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Damaged, match=words):
        sound(replace(CALLS[0], **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "exact"}, "of the kind 'exact'"),
        ({"kind": "raised"}, "does not say what"),
        ({"message": 3}, "words are none"),
        ({"faults": ["x"]}, "words are none"),
        ({"seconds": float("nan")}, "took nan seconds"),
        ({"value": Strided(MEMORY, (4,), (1,))}, "is a view"),
        ({"value": {(1,): 2}}, "key of a mapping"),
        ({"value": nested(40)}, "nested deeper"),
    ],
)
def test_no_answer_is_other_than_its_type_says(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Damaged, match=words):
        sound(replace(ANSWERS[0], **changes))
