"""What shares a scale, and of each such part the numbers that scales are made of; with data that tell scales apart."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.reference.blocks import Array

__all__ = ["LEAST", "MOST", "NO_OTHER", "TOPS", "Units", "overs", "probes", "units"]

#: Magnitudes between which no least amount and no overflow shows.
LEAST, MOST = 2.0**9, 2.0**15
#: The codes that the largest magnitude gets, where no divisor says it.
TOPS = (127, 7)
#: What a scale stands to that stands by itself.
NO_OTHER = "no other"
_SHAPE = (16, 64)
_BLOCKS = (8, 16, 32, 128, 256)
_SMALL = (30.0, 1.0, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-9, 1e-11, 1e-14, 1e-20, 1e-30, 1e-37, 1e-40, 5e-44)
_LARGE = (3e6, 2e7, 1.4e38)
_BESIDE = (1.0, 1.25, 4 / 3, 1.5, 1.75, 1.875, 1.9375, 1.984375, 1.9921875)
_TURNS = 12


@dataclass(frozen=True, eq=False)
class Units:
    """The parts of a call's data that share a scale, each with its numbers, as float64; NaN is left out of them.

    Attributes:
        rows: the data, a part to a row.
        amax: the largest magnitudes.
        low: the least.
        high: the greatest.
        signed: the first numbers of the largest magnitude, with their signs.
        whole: the largest magnitude of all data.
        nan: whether there is a NaN.
    """

    rows: Array
    amax: Array
    low: Array
    high: Array
    signed: Array
    whole: float
    nan: Array

    def lost(self, within: str) -> Array:
        """Which parts have a NaN, or all, where what they are set against has one."""
        return np.full(self.nan.shape, self.nan.any()) if within != NO_OTHER else self.nan

    @property
    def infinite(self) -> Array:
        """Whether there is an infinity."""
        return np.isinf(self.amax)


def overs(size: int) -> Iterator[tuple[str, int]]:
    """What can share a scale where there are so many of 16 rows of 64: in words, and as elements of a part."""
    rows, columns = _SHAPE
    named = {"the tensor": rows * columns, "each row": columns}
    for name, elements in {**named, **{f"blocks of {n}": n for n in _BLOCKS}}.items():
        if rows * columns // elements == size:
            yield name, elements
    if size == columns:
        yield "each column", -1


def units(x: Array, elements: int) -> Units:
    """The parts of so many elements each; -1 are the columns."""
    wide = x.astype(np.float64)
    rows = wide.T if elements < 0 else wide.reshape(-1, elements)
    nan = np.isnan(rows)
    magnitude = np.where(nan, 0.0, np.abs(rows))
    first = magnitude.argmax(axis=1)[:, None]
    return Units(
        rows=rows,
        amax=magnitude.max(axis=1),
        low=np.where(nan, np.inf, rows).min(axis=1),
        high=np.where(nan, -np.inf, rows).max(axis=1),
        signed=np.take_along_axis(np.where(nan, 0.0, rows), first, 1)[:, 0],
        whole=float(magnitude.max()),
        nan=np.asarray(nan.any(axis=1)),
    )


@cache
def probes(dtype: str) -> tuple[Array, ...]:
    """Data for scales: of ordinary size, beside powers of two, on ties, small, large, zeros, one NaN, one infinity."""
    t, found = DTYPES[dtype], []
    rng = np.random.default_rng(16)
    for turn in range(_TURNS):
        x = _drawn(rng, 2.0 ** rng.uniform(9.5, 11.5))
        if turn % 3 == 2:  # noqa: PLR2004 - every third: the largest of each 8 beside where powers change
            x = x.reshape(-1, 8)
            top = rng.choice(_BESIDE, (len(x), 1)) * 2.0 ** rng.integers(9, 12, (len(x), 1))
            x = (
                x
                / np.abs(x).max(1, keepdims=True)
                * top
                * rng.choice([1.0, 1.0, 1 + 2.0**-22, 1 - 2.0**-23], (len(x), 1))
            )
            x = x.reshape(_SHAPE)
            x.reshape(-1)[0] = _BESIDE[turn % len(_BESIDE)] * 2.0**13
        if turn % 4 == 1:
            x = np.abs(x) * (1.0 if turn % 8 == 1 else -1.0)
        found.append(x)
    found += _ties()
    found += [_drawn(rng, top) for top in (*_SMALL, *_LARGE)]
    found += [np.zeros(_SHAPE), np.where(np.arange(16)[:, None] % 3 == 0, 0.0, _drawn(rng, 600.0))]
    for odd in (np.nan, np.inf):
        x = _drawn(rng, 600.0)
        x[3, 5] = odd
        found.append(x)
    with np.errstate(all="ignore"):
        return tuple(x.astype(t) for x in found)


def _ties() -> list[Array]:
    """Data halfway between the codes that they get where 127, or 7, is the largest: on ties, and a little beside."""
    rng, found = np.random.default_rng(127), []
    for top in TOPS:
        middles = rng.integers(-top, top, _SHAPE) + 0.5
        sizes = rng.uniform(LEAST, MOST / 2, (_SHAPE[0], 1)).astype(np.float32)
        beside = 1 + rng.integers(-1, 2, _SHAPE) * 2.0**-23
        for size, by in ((top * 16.0, 1.0), (sizes, beside)):
            x = middles * (size / top) * by
            x[:, ::8] = size
            found.append(x)
    return found


def _drawn(rng: np.random.Generator, top: float) -> Array:
    """Data about so large, each block another largest magnitude."""
    x = rng.normal(0, 1, _SHAPE)
    x = x / np.abs(x).reshape(-1, 8).max(1).repeat(8).reshape(_SHAPE)
    return np.asarray(x * top * 2.0 ** rng.uniform(-0.4, 1.2, (128, 1)).repeat(8, 1).reshape(_SHAPE))
