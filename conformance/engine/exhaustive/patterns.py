"""The floats of a dtype by their bit patterns: an array that is never sent, and an answer to it as runs."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.engine.memory import Array

__all__ = ["PIECE", "Encoder", "Layout", "Patterns", "bits_of", "layout"]

#: Elements that a function gets at once: so many that a call costs little, so few that input and result stay cached.
PIECE = 1 << 19
_SHORT = 1 << 12  # elements: copying fewer takes less time than searching them by themselves
_DTYPES = {"float32": np.dtype(np.float32), "float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
_MANTISSA = {"float32": 23, "float16": 10, "bfloat16": 7}


@dataclass(frozen=True)
class Patterns:
    """The first argument of a call: the floats whose bit patterns are ``first`` to ``first + count - 1``, in order.

    The function gets them in vectors of ``piece`` elements, one call for each.

    Attributes:
        dtype: float32, float16 or bfloat16.
        first: the lowest pattern, as an unsigned integer.
        count: how many; a multiple of ``piece``.
        piece: elements of one vector.
        rank: dimensions of one vector; all but the last are 1.
    """

    dtype: str
    first: int
    count: int
    piece: int = PIECE
    rank: int = 1

    def __post_init__(self) -> None:
        """Refuse a range that there is not.

        Raises:
            ValueError: another dtype, or patterns beyond those of the dtype, or a piece that does not divide them.
        """
        numbers = (self.first, self.count, self.piece, self.rank)
        if self.dtype not in _DTYPES or any(type(n) is not int for n in numbers):
            msg = f"dtype={self.dtype!r} is not accepted: give one of {', '.join(_DTYPES)}"
            raise ValueError(msg)
        top = 1 << 8 * _DTYPES[self.dtype].itemsize
        if not 0 <= self.first <= self.first + self.count <= top or self.piece < 1 or self.count % self.piece:
            msg = f"patterns={self} is not accepted: there are {top}, and piece divides count"
            raise ValueError(msg)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one vector."""
        return (1,) * (self.rank - 1) + (self.piece,)

    def integers(self, at: int = 0) -> Array:
        """The patterns of the vector that begins ``at`` so many after the first, as unsigned integers, 1-d."""
        unsigned = bits_of(_DTYPES[self.dtype])
        return np.asarray(np.arange(self.piece, dtype=unsigned) + unsigned.type(self.first + at))

    def floats(self, integers: Array) -> Array:
        """Patterns as floats, over the same memory, in the shape of one vector."""
        return np.asarray(integers.view(_DTYPES[self.dtype]).reshape(self.shape))


@dataclass(frozen=True)
class Layout:
    """How a dtype's patterns lie.

    Attributes:
        total: the number of patterns.
        sign: the pattern of -0.0, at which the negative half begins.
        normal: the lowest normal number's.
        infinity: infinity's; above it, in either half, stand the NaNs.
        mantissa: bits of the significand that are stored.
    """

    total: int
    sign: int
    normal: int
    infinity: int
    mantissa: int

    def of(self, dtype: "np.dtype[Any]", patterns: Array) -> Array:
        """Patterns, integers of any dtype, as floats."""
        return patterns.astype(bits_of(dtype)).view(dtype)


def layout(dtype: str) -> Layout:
    """How the patterns of float32, float16 or bfloat16 lie.

    >>> hex(layout("float32").infinity)
    '0x7f800000'
    """
    bits, mantissa = 8 * _DTYPES[dtype].itemsize, _MANTISSA[dtype]
    exponents = (1 << (bits - 1 - mantissa)) - 1
    return Layout(1 << bits, 1 << (bits - 1), 1 << mantissa, exponents << mantissa, mantissa)


def bits_of(dtype: "np.dtype[Any]") -> "np.dtype[Any]":
    """The unsigned integers of a dtype's width."""
    return np.dtype(f"u{dtype.itemsize}")


class Encoder:
    """An answer to many vectors as runs of equal bits, which says all of it: NaNs apart, of which any stands for all.

    Almost every vector of all floats is one value, zero or an end of the grid: that is seen at the speed of memory.
    Short vectors are copied, and searched for their runs many at once.
    """

    def __init__(self) -> None:  # noqa: D107 - there is nothing to say
        self._values: list[Array] = []
        self._counts: list[Array] = []
        self._short: list[Array] = []
        self._waiting = 0

    def add(self, answer: Array) -> None:
        """One vector's answer; it may be overwritten afterwards."""
        if answer.size < _SHORT:
            self._short.append(answer.reshape(-1).copy())
            self._waiting += answer.size
            if self._waiting >= PIECE:
                self._catch_up()
            return
        self._catch_up()
        self._encode(np.ascontiguousarray(answer).reshape(-1))

    def _catch_up(self) -> None:
        if self._short:
            joined = np.concatenate(self._short)
            self._short, self._waiting = [], 0
            self._encode(joined)

    def _encode(self, a: Array) -> None:
        bits = a.view(bits_of(a.dtype))
        if self._constant(a, bits):
            self._values.append(a[:1].copy())
            self._counts.append(np.array([a.size], np.int32))
            return
        if a.dtype.kind not in "iub" and (nan := np.isnan(a)).any():
            a = np.where(nan, np.asarray(np.nan, a.dtype), a)
            bits = a.view(bits_of(a.dtype))
        starts = np.concatenate([[0], np.flatnonzero(bits[1:] != bits[:-1]) + 1])
        self._values.append(a[starts])
        self._counts.append(np.diff(starts, append=a.size).astype(np.int32))

    def result(self) -> dict[str, Array]:
        """The ``values`` of the runs, and the ``counts`` of elements that have each."""
        self._catch_up()
        return {"values": np.concatenate(self._values), "counts": np.concatenate(self._counts)}

    @staticmethod
    def _constant(a: Array, bits: Array) -> bool:
        if a.nbytes % 8:
            return bool((bits == bits[0]).all())
        words = a.view(np.uint64)
        return words[:1].tobytes() == bits[:1].tobytes() * (8 // a.itemsize) and bool((words == words[0]).all())
