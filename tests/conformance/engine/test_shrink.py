"""Calls are made smaller by asking: what is found shows the same."""

from typing import Any

import numpy as np
import pytest

from halfeven.conformance.engine.call import PLAIN, Answer, Call
from halfeven.conformance.engine.judge import differences
from halfeven.conformance.engine.memory import plain
from halfeven.conformance.engine.shrink import shrunk
from halfeven.conformance.engine.tries import Trial

ODD = 3.0  # the element that is answered wrongly


class Blocks:
    """Asks a function of blocks that refuses any that do not divide the array, and is wrong in one element."""

    spent = False

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, call: Call, _before: tuple[Call, ...] = ()) -> Trial | None:
        self.asked += 1
        if call.named.keys() != {"input", "block_size"}:
            return None  # refused by both
        x, block = call.named["input"].view(), call.named["block_size"]
        if len(block) != x.ndim or any(n % b for n, b in zip(x.shape, block, strict=True)):
            return None
        expected, actual = Answer("returned", x), Answer("returned", x + (x == ODD))
        found = differences(expected, actual)
        at = int(np.argmax(x.ravel() == ODD))
        return Trial(call, expected, actual, found, at) if found.differing else None


@pytest.mark.parametrize(("shape", "block"), [((8704,), (8704,)), ((4, 6000), (1, 6000)), ((48, 64), (48, 64))])
def test_the_size_of_a_block_is_cut_with_the_array(shape: tuple[int, ...], block: Any) -> None:
    x = np.zeros(shape, np.float32)
    x.ravel()[x.size // 3] = ODD
    tries = Blocks()
    first = tries(Call("onnx/some", (), {"input": plain(x), "block_size": block}, PLAIN))
    assert first is not None
    found = shrunk(first, tries).call.named
    assert found["input"].view().tolist() == np.full((1,) * len(shape), ODD).tolist()
    assert found["block_size"] == (1,) * len(shape)
    assert tries.asked < 64
