"""The table of call shapes: how a call can be made, apart from its values, and the few rows that cover it pairwise.

An axis is a list of classes, and a class a few levels that implementations treat alike. In the rows any two classes of
two axes meet that go together, and every level occurs. To cross the levels themselves would take thousands of rows.
"""

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import ceil
from typing import Any

import numpy as np

from halfeven.conformance.configuration import Granularity
from halfeven.conformance.engine.call import MODES, CallShape
from halfeven.conformance.engine.memory import Array, Strided
from halfeven.reference.blocks import BlockSize, Shape

__all__ = [
    "AXES",
    "BLOCKS",
    "GUARD",
    "Row",
    "block_levels",
    "blocks_of",
    "covering",
    "dimensions",
    "function_rows",
    "laid_out",
    "operation_rows",
    "possible",
    "together",
]

Classes = tuple[tuple[Any, ...], ...]
Row = Mapping[str, Any]

GUARD = 64  # elements on both sides: a multiple of every vector's width, so that the offset alone decides the alignment
BLOCKS = 8192  # in one call: an implementation that loops over blocks is slow, not wrong
_TRIES = 12
_LARGE = 1 << 16
_SQUARE = 3  # of the ways to lay out two dimensions, one in so many is square
_SIDES = ((2, 3, 2, 3, 2, 3, 2), (5, 7, 3, 2, 2, 1, 2), (16, 3, 4, 2, 1, 2, 2))

AXES: Mapping[str, Classes] = {
    "size": (
        (0,),
        (1,),
        (2, 3, 4, 5, 6, 7),
        (8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65),
        (127, 128, 129, 255, 256, 257, 511, 513, 1000),
        (1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097),
        (8191, 8193, 16383, 16385, 32767, 32769),
        (65535, 65536, 65537, 131073, 262145),
        ((1 << 20) + 1, (1 << 20) + 2049, (1 << 19) + 1),
    ),
    "rank": ((1,), (2,), (4,), (5,), (0,), (3,), (6, 7, 8)),
    "layout": (
        ("contiguous",),
        ("transposed",),
        ("stepped",),
        ("padded rows",),
        ("channels last",),
        ("expanded in front",),
        ("expanded behind",),
        ("reversed",),
    ),
    "offset": ((0,), (4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)),
    "parameters": (
        ("fresh",),
        ("stepped",),
        ("expanded",),
        ("equal scales",),
        ("equal zero points",),
        ("no zero points",),
        ("powers of two",),
        ("ones",),
        ("in the input's storage",),
    ),
    "block": (("tensor",),),
    "threads": (("one",), ("all",)),
    "mode": tuple((mode,) for mode in MODES),
    "repeats": ((1,), (2, 3)),
}
_FUNCTION: Mapping[str, Classes] = {
    **{name: AXES[name] for name in ("offset", "threads", "mode", "repeats")},
    "layout": AXES["layout"],
    "parameters": (("fresh",), ("stepped",), ("alike",), ("in the input's storage",)),
}
_LEAST = {"transposed": 2, "padded rows": 2, "expanded in front": 2, "channels last": 4}
_MANY = ("stepped", "expanded", "equal scales", "equal zero points")  # of parameters: they take several


def _group(block: str | None) -> int:
    return int(block.removeprefix("group ")) if block and block.startswith("group ") else 0


def possible(row: Row, *, partial: bool = True) -> bool:
    """Whether levels go together; the row may be part of one. ``partial``: whether the last block may be short."""
    size, rank, layout, block = (row.get(name) for name in ("size", "rank", "layout", "block"))
    group, several = _group(block), block not in {None, "tensor"}
    least = _LEAST.get(layout or "", 0)
    fits = {
        "a scalar has one element": rank != 0 or size in {None, 1},
        "a layout needs its dimensions": rank is None or rank >= least,
        "a scalar lies in one way": rank != 0 or layout in {None, "contiguous"},
        "channels last is for four and five dimensions": layout != "channels last" or rank in {None, 4, 5},
        "few elements lie in one way": size is None or size >= 8 or layout in {None, "contiguous", "stepped"},  # noqa: PLR2004
        "a scalar has no blocks": rank != 0 or not several,
        "nothing has no parameters to be told apart": size != 0 or row.get("parameters") in {None, "fresh"},
        "one parameter lies in one way": block != "tensor" or row.get("parameters") not in _MANY,
        "blocks are few": size is None or not group or size <= group * BLOCKS,
        "a parameter for each element is for short vectors": not (
            block == "channel" and rank == 1 and size is not None and size > BLOCKS
        ),
        "large calls are repeated once": not (size and size > _LARGE and row.get("repeats", 1) > 2),  # noqa: PLR2004
        "a whole group fits": partial or not group or size is None or size == 0 or size >= group,
    }
    return all(fits.values())


def covering(
    axes: Mapping[str, Classes], fits: Callable[[Row], bool] = possible, seed: int = 0
) -> list[dict[str, Any]]:
    """Rows in which any two classes that go together meet, and every level occurs; the same for the same seed.

    >>> len(covering({"rank": ((1,), (2,)), "threads": (("one",), ("all",)), "repeats": ((1,), (2,))}))
    4
    """
    return _Design(axes, fits, random.Random(seed)).rows()  # noqa: S311 - a design is no secret


@dataclass
class _Design:
    """A covering design as it grows: a row has a class, by its number, of every axis."""

    axes: Mapping[str, Classes]
    fits: Callable[[Row], bool]
    draw: random.Random
    missing: set[tuple[str, int, str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.order = {name: i for i, name in enumerate(self.axes)}
        for a, b in itertools.combinations(self.axes, 2):
            for i, j in itertools.product(range(len(self.axes[a])), range(len(self.axes[b]))):
                if self.fits({a: self.axes[a][i][0], b: self.axes[b][j][0]}):
                    self.missing.add((a, i, b, j))

    def rows(self) -> list[dict[str, Any]]:
        turns = {(a, i): itertools.cycle(levels) for a, every in self.axes.items() for i, levels in enumerate(every)}
        unseen = {(a, level): i for a, every in self.axes.items() for i, levels in enumerate(every) for level in levels}
        found: list[dict[str, Any]] = []
        while self.missing or unseen:
            if self.missing:
                a, i, b, j = min(self.missing)
                start = {a: i, b: j}
            else:
                (a, level), i = min(unseen.items(), key=repr)
                start = {a: i}
            best = self._best(start)
            if best is None:  # a third axis forbids what two allow
                if self.missing:
                    self.missing.discard((a, i, b, j))
                else:
                    del unseen[a, level]
                continue
            self.missing -= self._pairs(best)
            found.append(self._levels(best, turns))
            for item in found[-1].items():
                unseen.pop(item, None)
        return found

    def _levels(self, row: Mapping[str, int], turns: Mapping[tuple[str, int], Iterator[Any]]) -> dict[str, Any]:
        """A level of each class, in turn; as a last resort the first ones, which go together."""
        for _ in range(_TRIES):
            levels = {a: next(turns[a, row[a]]) for a in self.axes}
            if self.fits(levels):
                return levels
        return {a: self.axes[a][row[a]][0] for a in self.axes}

    def _best(self, start: dict[str, int]) -> dict[str, int] | None:
        tried = [row for row in (self._grown(start) for _ in range(_TRIES)) if row]
        return max(tried, key=lambda row: len(self._pairs(row) & self.missing), default=None)

    def _grown(self, start: dict[str, int]) -> dict[str, int] | None:
        row, first = dict(start), {a: self.axes[a][i][0] for a, i in start.items()}
        for a in self.draw.sample(list(self.axes), len(self.axes)):
            if a in row:
                continue
            allowed = [i for i, levels in enumerate(self.axes[a]) if self.fits({**first, a: levels[0]})]
            if not allowed:
                return None
            self.draw.shuffle(allowed)
            row[a] = max((self._gain(row, a, i), -n, i) for n, i in enumerate(allowed))[2]
            first[a] = self.axes[a][row[a]][0]
        return row

    def _gain(self, row: Mapping[str, int], a: str, i: int) -> int:
        return sum(self._pair(a, i, b, j) in self.missing for b, j in row.items())

    def _pair(self, a: str, i: int, b: str, j: int) -> tuple[str, int, str, int]:
        return (a, i, b, j) if self.order[a] < self.order[b] else (b, j, a, i)

    def _pairs(self, row: Mapping[str, int]) -> set[tuple[str, int, str, int]]:
        return {(a, row[a], b, row[b]) for a, b in itertools.combinations(self.axes, 2)}


def block_levels(granularities: Sequence[Granularity], *, partial: bool) -> Classes:
    """The classes of the axis ``block`` for what a backend takes; ``partial`` as in ``possible``."""
    levels: dict[str, Classes] = {
        "tensor": (("tensor",),),
        "channel": (("channel",),),
        "token": (("token",),),
        "group": (
            *(((f"group {n}",)) for n in (16, 32, 64, 128, 256)),
            *([("group 48", "group 100")] if partial else []),
        ),
        "block": (("block 2", "block 16"),),
    }
    return tuple(found for g in dict.fromkeys(granularities) for found in levels[g])


@cache
def operation_rows(
    granularities: tuple[Granularity, ...] = ("tensor",),
    *,
    partial: bool = False,
    negative: bool = False,
    seed: int = 0,
) -> tuple[CallShape, ...]:
    """The call shapes of an operation: with one parameter, and with blocks, which are other code.

    A design each; that of blocks has a few of the largest calls, in which kinds of blocks and layouts take turns.

    Args:
        granularities: what may share a parameter.
        partial: whether the last block of a dimension may be short.
        negative: whether strides may be negative, as NumPy's can.
        seed: of the draw among rows that cover as much.
    """
    axes, blocks = {**AXES, "layout": _layouts(negative=negative)}, block_levels(granularities, partial=partial)
    rows = covering(axes, possible, seed) if ("tensor",) in blocks else []
    if several := tuple(levels for levels in blocks if levels != ("tensor",)):
        smaller = {**axes, "block": several, "size": AXES["size"][:-1]}
        rows += covering(smaller, lambda row: possible(row, partial=partial), seed)
        rows += _largest(several, seed)
    return tuple(CallShape(**row) for row in rows)


def _largest(blocks: Classes, seed: int) -> list[dict[str, Any]]:
    """One of the largest calls for every other kind of blocks that fits; their layouts and threads take turns."""
    sizes, layouts = AXES["size"][-1], ("contiguous", "transposed", "stepped", "padded rows", "expanded in front")
    fitting = [b for b, *_ in blocks if possible({"size": max(sizes), "block": b, "rank": 2})]
    return [
        {
            "size": sizes[i % len(sizes)],
            "rank": 2 + i % 2,
            "layout": layouts[(i + seed) % len(layouts)],
            "block": block,
            "threads": ("all", "one")[i % 2],
            "offset": 5 * i % 16,
        }
        for i, block in enumerate(fitting)
    ]


@cache
def function_rows(ranks: tuple[int, ...], *, negative: bool = False, seed: int = 0) -> tuple[CallShape, ...]:
    """The call shapes of a documented function, whose own calls decide sizes and ``ranks`` of its first array."""
    axes = {**_FUNCTION, "layout": _layouts(negative=negative), "rank": tuple((rank,) for rank in ranks)}
    return tuple(CallShape(**row) for row in covering(axes, possible, seed))


def _layouts(*, negative: bool) -> Classes:
    return tuple(levels for levels in AXES["layout"] if negative or "reversed" not in levels)


def dimensions(size: int, rank: int, turn: int = 0, multiple: int = 1) -> Shape:
    """``rank`` dimensions of ``size`` elements, or a few more; the long one goes round with ``turn``.

    The last is a multiple of ``multiple``, unless there are no elements.

    >>> dimensions(1000, 3, 1), dimensions(1000, 2, 3), dimensions(0, 2)
    ((7, 29, 5), (32, 32), (2, 0))
    """
    if not rank:
        return ()
    if rank == 2 and size > _SQUARE and turn % _SQUARE == 0:  # noqa: PLR2004 - in a square one axis is taken for the other
        side = ceil(size**0.5)
        return side, _up(side, multiple)
    sides, rest, preferred = [], size, _SIDES[turn % len(_SIDES)]
    for i in range(rank - 1):
        sides.append(preferred[i] if rest == 0 or rest >= 2 * preferred[i] else 1)
        rest = ceil(rest / sides[-1])
    at = -1 if multiple > 1 else turn % rank - rank
    sizes = [*sides, rest] if at == -1 else [*sides[at + rank :], rest, *sides[: at + rank]]
    return (*sizes[:-1], _up(sizes[-1], multiple))


def _up(n: int, multiple: int) -> int:
    return ceil(n / multiple) * multiple


def blocks_of(block: str, sizes: Shape, turn: int = 0) -> BlockSize | None:
    """The block size of a level such as ``group 64``; a channel is an index of the axis that ``turn`` decides.

    >>> blocks_of("group 64", (3, 128)), blocks_of("channel", (3, 128), 0), blocks_of("tensor", (3, 128))
    ((1, 64), (1, 128), None)
    """
    if block == "tensor" or not sizes:
        return None
    whole = tuple(max(n, 1) for n in sizes)
    ones = (1,) * len(sizes)
    kind, _, count = block.partition(" ")
    match kind:
        case "channel":
            axes = [d for d in range(len(sizes)) if whole[d] <= BLOCKS] or [int(np.argmin(whole))]
            axis = axes[turn % len(axes)]
            return (*whole[:axis], 1, *whole[axis + 1 :])
        case "token":
            return (*ones[1:], whole[-1])
        case "group":
            return (*ones[1:], int(count))
    return tuple(_part(n, int(count)) for n in whole)


def _part(n: int, parts: int) -> int:
    """A divisor of ``n``, by which it falls into about ``parts`` parts."""
    return next((n // p for p in range(min(parts, n), 0, -1) if n % p == 0), n)


def laid_out(values: Array, layout: str = "contiguous", offset: int = 0) -> Strided:
    """``values`` in memory as the layout says, ``offset`` elements past a multiple of 64 bytes, guarded on both sides.

    An expanded layout repeats the first of its dimension. Guards are NaN, or for integers the byte 0xA5.

    >>> laid_out(np.arange(6.0).reshape(2, 3), "transposed").strides
    (1, 2)
    """
    order = list(range(values.ndim))  # the dimensions as they lie, the slowest first
    if layout == "transposed":
        order.reverse()
    elif layout == "channels last":
        order = [order[0], *order[2:], order[1]]
    still = {"expanded in front": 0, "expanded behind": values.ndim - 1}.get(layout, -1)
    strides, step = [0] * values.ndim, 2 if layout == "stepped" else 1
    for d in reversed(order):
        if d == still or layout == "expanded":
            continue
        strides[d] = step
        step *= values.shape[d]
        if layout == "padded rows" and d == order[-1]:
            step += 3
    start = GUARD + offset
    if layout == "reversed":
        start += sum((n - 1) * s for n, s in zip(values.shape, strides, strict=True)) if values.size else 0
        strides = [-s for s in strides]
    found = Strided(guards(step + offset + 2 * GUARD, values.dtype), values.shape, tuple(strides), start)
    if values.size:
        found.view()[...] = values[(slice(0, 1),) * values.ndim] if layout == "expanded" else _repeated(values, still)
    return found


def _repeated(values: Array, still: int) -> Array:
    return values if still < 0 else np.take(values, [0], axis=still)


def guards(count: int, dtype: "np.dtype[Any]") -> Array:
    """Memory that nobody is to read or write."""
    if dtype.kind in "iub" or dtype.itemsize == 1:
        return np.full(count * dtype.itemsize, 0xA5, np.uint8).view(dtype)
    return np.full(count, np.nan, dtype)


def together(first: Strided, *others: Strided) -> tuple[Strided, ...]:
    """Arrays of one dtype as views of one allocation, one after the other, each aligned as it was."""
    parts, found, end = [], [], 0
    for a in (first, *others):
        padding = guards(-end % GUARD, a.memory.dtype)
        end += padding.size
        parts += [padding, a.memory]
        found.append((a, end))
        end += a.memory.size
    memory = np.concatenate(parts)
    return tuple(Strided(memory, a.shape, a.strides, a.offset + at) for a, at in found)
