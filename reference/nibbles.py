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
#: Where codes are packed along the last dimension, and where all of them are one run.
ALONG_ROWS, AS_ONE_RUN = ("low-first", "high-first", "halves-of-rows"), ("low-first", "high-first")


def nibbles(document: str, others: tuple[str, ...]) -> Any:
    """The choice of which code of a byte has its low half; the first value is the document's."""
    return choice({value: _WORDS[value] for value in dict.fromkeys((document, *others))})


def packed(codes: Array, order: str) -> Array:
    """Bytes of codes from 0 to 15, uint8, of which the last dimension is even: half as many along it."""
    n = codes.shape[-1]
    match order:
        case "low-first":
            low, high = codes[..., ::2], codes[..., 1::2]
        case "high-first":
            low, high = codes[..., 1::2], codes[..., ::2]
        case _:
            low, high = codes[..., : n // 2], codes[..., n // 2 :]
    found: Array = low | high << 4
    return found


def unpacked(data: Array, order: str) -> Array:
    """The codes of bytes, twice as many along the last dimension."""
    low, high = data & 15, data >> 4
    if order == "halves-of-rows":
        return np.concatenate([low, high], axis=-1)
    pairs: Array = np.stack([low, high] if order == "low-first" else [high, low], axis=-1)
    return pairs.reshape(*data.shape[:-1], 2 * data.shape[-1])
