"""Two codes of 4 bits to a byte, and which of them has its low half.

>>> import numpy as np
>>> codes = np.array([1, 2, 3, 4], np.uint8)
>>> [f"{b:#04x}" for b in packed(codes, "high-first")]
['0x12', '0x34']
>>> unpacked(packed(codes, "halves-of-rows"), "halves-of-rows").tolist()
[1, 2, 3, 4]
"""

from typing import Any

import numpy as np

from halfeven.reference.behaviour import choice
from halfeven.reference.blocks import Array

__all__ = ["ALONG_ROWS", "AS_ONE_RUN", "nibbles", "packed", "unpacked"]

_WORDS = {
    "low-first": "holds the code of the even index in the low half of a byte",
    "high-first": "holds the code of the even index in the high half of a byte",
    "halves-of-rows": "holds the codes of a row's first half in the low halves of its bytes",
}
#: The orders of codes that are packed along the last dimension, and of all as one run.
ALONG_ROWS, AS_ONE_RUN = ("low-first", "high-first", "halves-of-rows"), ("low-first", "high-first")


def nibbles(document: str, orders: tuple[str, ...]) -> Any:
    """The choice among ``orders`` of which code of a byte has its low half; the document's comes first."""
    return choice({value: _WORDS[value] for value in dict.fromkeys((document, *orders))})


def packed(codes: Array, order: str) -> Array:
    """Bytes of codes from 0 to 15, uint8, of which the last dimension is even: half as many along it."""
    n = codes.shape[-1]
    assert n % 2 == 0, "two codes make a byte"
    low, high = {
        "low-first": (codes[..., ::2], codes[..., 1::2]),
        "high-first": (codes[..., 1::2], codes[..., ::2]),
        "halves-of-rows": (codes[..., : n // 2], codes[..., n // 2 :]),
    }[order]
    found: Array = low | high << 4
    return found


def unpacked(data: Array, order: str) -> Array:
    """The codes of bytes, twice as many along the last dimension."""
    low, high = data & 15, data >> 4
    if order == "halves-of-rows":
        return np.concatenate([low, high], axis=-1)
    pair = {"low-first": [low, high], "high-first": [high, low]}[order]
    return np.stack(pair, axis=-1).reshape(*data.shape[:-1], 2 * data.shape[-1])
