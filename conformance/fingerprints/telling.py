"""Data that tell formulas of one kind apart, drawn by the number of the turn."""

import numpy as np

from halfeven.conformance.backends.protocol import KINDS
from halfeven.reference.blocks import Array

__all__ = ["SHAPE", "data"]

SHAPE = (16, 64)  # of what is asked of formulas of one kind
_BITS = 12  # of a significand: ties of all floats that are narrower
_NEAR = 0.2  # of the inputs of a cast that lie beside a tie
_TOPS = (6.0, 7.5, 28.0, 57344.0, 448.0, 240.0, 127.0, 128.0, 255.0, 15.0, 7.0, 8.0, 127.5)


def data(kind: str, turn: int, dtype: "np.dtype[np.generic]") -> Array:
    """16 rows of 64 reals: of a cast around its ties and ends, else of all sizes, near powers of two, of one sign.

    Every fourth turn has what is no number, zeros, and what is too large or too small.
    """
    generator = np.random.default_rng([turn, KINDS.index(kind)])
    low, high = (-12, 12) if turn % 3 else (-130, 127)
    wide = 2.0 ** generator.integers(low, high, SHAPE)
    x = np.ldexp(generator.integers(0, 1 << (1 + turn % _BITS), SHAPE) + 0.5 * (turn % 2), -(turn % _BITS)) * wide
    if kind != "cast":
        each = SHAPE[0], 1
        rows = 2.0 ** generator.integers(-20, 20, each)
        top = generator.choice(_TOPS, each) * generator.choice([1.0, 1.0, 1 + 2.0**-20, 1.5], each)
        x = rows * generator.uniform(0, 1, SHAPE) * top
        if turn % 2:  # halves of a code, and the largest as it is
            x = rows * generator.integers(0, 2 * np.floor(top).astype(int) + 1, SHAPE) / 2
        x[:, :: SHAPE[1] // 2] = rows * top
    x *= generator.choice([-1.0, 1.0], SHAPE)
    x[1:3] = [[1.0], [-1.0]] * np.abs(x[1:3])
    if turn % 4 == 3:  # noqa: PLR2004 - every fourth
        x.reshape(-1)[:6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 2.0**-140
        x[4] = 0.0
    if turn % 4 == 1:
        x[5] = 0.0
        x[6] *= 2.0**-100
    with np.errstate(all="ignore"):
        found = x.astype(dtype)
        near = np.nextafter(found.astype(np.float32), np.float32(turn % 2)).astype(dtype)
    return np.asarray(np.where(generator.random(SHAPE) < _NEAR, near, found)) if kind == "cast" else found
