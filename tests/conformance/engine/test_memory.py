"""Arrays with the memory that they are views of."""

import numpy as np
import pytest

from halfeven.conformance.engine.call import arguments_of, leaves, sent
from halfeven.conformance.engine.memory import Strided, plain, strided

A = np.arange(24, dtype=np.float32)
VIEWS = {
    "contiguous": A,
    "transposed": A.reshape(4, 6).T,
    "stepped": A[::3],
    "reversed": A[::-1],
    "expanded": np.broadcast_to(A[:4, None], (4, 3)),
    "offset": A.reshape(4, 6)[1:, 2:],
    "empty": A[:0],
    "one": A[3:4].reshape(()),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_keeps_its_values_its_strides_and_its_memory(name: str) -> None:
    a = VIEWS[name]
    held = strided(a)
    assert held.view().tobytes() == a.tobytes()
    assert held.shape == a.shape
    assert held.memory.ndim == 1
    if not a.flags.c_contiguous:
        assert held.view().strides == a.strides
        assert np.shares_memory(held.view(), A)
        low, high = held.reach
        assert 0 <= low <= high < held.memory.size
        assert not held.plain
    copy = held.memory.copy()
    assert held.view(copy).tobytes() == a.tobytes()
    assert np.shares_memory(held.view(copy), copy) or not a.size


def test_what_lies_outside_the_view_stays_outside() -> None:
    held = Strided(np.arange(10), (2, 2), (4, -1), 3)
    assert held.view().tolist() == [[3, 2], [7, 6]]
    assert held.reach == (2, 7)
    assert not held.plain
    assert plain(held.view()).plain
    assert plain(held.view()).memory.tolist() == [3, 2, 7, 6]


def test_arguments_are_sent_and_come_back_as_copies() -> None:
    given = {"x": A[::2], "listed": [A[:2], ("a", 1)], "none": None}
    back = arguments_of(sent(given))
    assert back["x"].strides == A[::2].strides
    assert back["listed"][1] == ("a", 1)
    assert back["none"] is None
    assert not np.shares_memory(back["x"], A)
    assert back["x"].tolist() == A[::2].tolist()


def test_the_leaves_of_a_result_are_named_by_their_places() -> None:
    assert dict(leaves({"a": (1, [2]), "b": None})) == {
        "len(result['a'])": 2,
        "result['a'][0]": 1,
        "len(result['a'][1])": 1,
        "result['a'][1][0]": 2,
        "result['b']": None,
    }
