"""Two codes to a byte, in each order, as bytes that are written out."""

import numpy as np
import pytest

from halfeven.reference import FORMULAS
from halfeven.reference.nibbles import packed, unpacked

CODES = np.array([[[1, 2, 3, 4], [5, 6, 7, 8]]], np.uint8)
BYTES = {
    "low-first": [[[0x21, 0x43], [0x65, 0x87]]],
    "high-first": [[[0x12, 0x34], [0x56, 0x78]]],
    "halves-of-rows": [[[0x31, 0x42], [0x75, 0x86]]],
}


@pytest.mark.parametrize("order", BYTES)
def test_bytes_of_each_order(order: str) -> None:
    assert packed(CODES, order).tolist() == BYTES[order]
    assert unpacked(np.array(BYTES[order], np.uint8), order).tolist() == CODES.tolist()
    assert packed(CODES[:, :0], order).shape == (1, 0, 2)
    assert unpacked(np.zeros((2, 0), np.uint8), order).shape == (2, 0)


def test_an_odd_number_and_an_unknown_order_have_no_bytes() -> None:
    with pytest.raises(AssertionError, match="two codes make a byte"):
        packed(CODES[..., :3], "low-first")
    for function in (packed, unpacked):
        with pytest.raises(KeyError, match="low_first"):
            function(CODES, "low_first")


def test_codes_of_odd_blocks_are_one_run() -> None:
    x = np.array([[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]], np.float32)
    data, _ = FORMULAS["modelopt/int4_quantize"].function(x, 3)  # as ModelOpt 0.47 gives them
    assert data.tolist() == [[173, 253, 239], [254, 223, 218]]
