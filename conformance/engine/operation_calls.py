"""The calls of an operation: hard values in every call shape, every code once, and every parameter once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from halfeven.conformance.backends.offer import Offer, keywords
from halfeven.conformance.configuration import Configuration, Granularity
from halfeven.conformance.engine.call import Answer, Call, CallShape
from halfeven.conformance.engine.memory import Array, Strided, plain
from halfeven.conformance.engine.shapes import BLOCKS, blocks_of, dimensions, laid_out, operation_rows, together
from halfeven.conformance.engine.tables import Subject
from halfeven.conformance.engine.tier import Tier
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize, Shape, parameter_shape, per_element
from halfeven.reference.profile import Operation

__all__ = [
    "Asked",
    "Tier",
    "call_of",
    "in_one_storage",
    "operation_calls",
    "parameter_calls",
    "shape_calls",
    "shaped",
    "subject",
]


_TWIN, _LONGEST_TWIN = 3, 1 << 16  # elements: fewer have no middle
_FEW = 64  # elements: a call of fewer is made several times, with other values
_TIMES = 24
_FIRST = 96  # elements of the first call: an implementation may be wrong in that alone
_SHIFT = 37  # values by which one call begins after the other
_LARGER = (1 << 22) + 4097  # elements: beyond the caches
_DESIGNS = 4  # of the standard tier
_SPECIAL = {"equal scales", "expanded", "equal zero points", "no zero points", "powers of two", "ones"}


@dataclass(frozen=True, eq=False)
class Asked:
    """A call, and the formula's own answer to it, which does not depend on the call's shape."""

    call: Call
    expected: Answer


@lru_cache(maxsize=64)
def subject(profile: str, operation: Operation, dtype: str, grid: Grid, seed: int = 0) -> Subject:
    """The tables of an operation, which are made once."""
    return Subject(profile, operation, dtype, grid, seed)


def operation_calls(
    offer: Offer,
    of: Subject,
    granularities: Sequence[Granularity] = (),
    tier: Tier = "quick",
    largest: int | None = None,
) -> Iterator[Asked]:
    """All the calls that cover an operation, one after the other: together they hold some hundred MiB.

    Args:
        offer: the backend, as data.
        of: one of its operations, in one dtype and on one grid.
        granularities: by default those of the backend.
        tier: how much; the standard tier has the shapes of several designs, each with other values, and tensors
            beyond the caches.
        largest: leave out what has more elements.
    """
    yield from shape_calls(offer, of, granularities, tier, largest)
    yield from parameter_calls(offer, of, granularities)


def shape_calls(
    offer: Offer,
    of: Subject,
    granularities: Sequence[Granularity] = (),
    tier: Tier = "quick",
    largest: int | None = None,
) -> Iterator[Asked]:
    """Hard values in every call shape; arguments as in ``operation_calls``."""
    taken = tuple(granularities or offer.granularities)
    partial, negative = of.document.partial_blocks, offer.array == "numpy"
    yield shaped(offer, of, CallShape(_FIRST, 1, block=_plainest(taken)), 0, first=0)
    for design in range(_DESIGNS if tier == "standard" else 1):
        rows = operation_rows(taken, partial=partial, negative=negative, seed=of.seed + design)
        for turn, shape in enumerate(rows):
            if largest is None or (shape.size or 0) <= largest:
                yield from _with_twins(_several(offer, of, shape, turn + design * len(rows)))
    if tier == "standard" and (largest is None or largest >= _LARGER):
        yield shaped(offer, of, CallShape(_LARGER, 1, block=_plainest(taken)), 0)
        yield shaped(offer, of, CallShape(_LARGER, 2, threads="all", block=_plainest(taken)), 1)


def _with_twins(calls: Iterator[Asked]) -> Iterator[Asked]:
    """The calls, and after each that is repeated one that looks like it: the same but for the values in the middle.

    Whoever remembers an answer by shape, ends and parameters gives the one before.
    """
    for asked in calls:
        yield asked
        x = asked.call.positional[0]
        if (
            asked.call.shape.repeats > 1
            and asked.call.shape.block == "tensor"
            and _TWIN < prod(x.shape) <= _LONGEST_TWIN
        ):
            turned = np.arange(prod(x.shape))
            turned[1:-1] = turned[-2:0:-1]
            values = x.view().ravel()[turned].reshape(x.shape)
            expected = np.ravel(asked.expected.value)[turned].reshape(x.shape)
            positional = (laid_out(values, "contiguous", asked.call.shape.offset), *asked.call.positional[1:])
            shape = replace(asked.call.shape, layout="contiguous", repeats=1)
            call = replace(asked.call, positional=positional, shape=shape, reason="the call before, but in the middle")
            yield Asked(call, Answer("returned", expected))


def parameter_calls(offer: Offer, of: Subject, granularities: Sequence[Granularity] = ()) -> Iterator[Asked]:
    """Every code once, and every zero point, exponent and significand of the scale once.

    In a call of its own each where the backend takes one for a tensor; all in one where it takes one for a row.
    Arguments as in ``operation_calls``.
    """
    taken = tuple(granularities or offer.granularities)
    table, (scale, zero) = of.each, of.usual
    codes = of.codes()
    if "tensor" in taken:
        yield _asked(offer, of, (codes, scale, zero), "every code once")
        for x, s, z, expected in zip(table.x, table.scale, table.zero, table.expected, strict=True):
            yield _asked(offer, of, (x, s, z), "every parameter once", expected=expected)
    if (rows := next((g for g in taken if g != "tensor"), None)) is not None:
        two = np.stack([codes] * 2), np.stack([scale] * 2)[:, None], np.stack([zero, of.shaped.zero[1]])[:, None]
        yield _asked(offer, of, two, "every code once, in rows", rows)
        every = table.x, table.scale[:, None], table.zero[:, None]
        yield _asked(offer, of, every, "every parameter once, in rows", rows, table.expected)


def _asked(
    offer: Offer,
    of: Subject,
    arrays: tuple[Array, Array, Array],
    reason: str,
    block: str = "tensor",
    expected: Array | None = None,
) -> Asked:
    """A plain call, whose parameters are those of the tensor or of each row."""
    x, scale, zero = arrays
    block_size = None if block == "tensor" else (1, x.shape[1])
    given = [plain(a) for a in arrays]
    answer = of.expected(x, scale, zero, block_size) if expected is None else expected
    return Asked(call_of(offer, of, CallShape(block=block), given, block_size, reason), Answer("returned", answer))


def _several(offer: Offer, of: Subject, shape: CallShape, turn: int) -> Iterator[Asked]:
    """The calls of a shape: several where few values fit into one."""
    size = shape.size or 0
    if not 0 < size < _FEW:
        yield shaped(offer, of, shape, turn)
        return
    for again in range(min(_TIMES, -(-_FEW // size))):
        yield shaped(offer, of, shape, turn + again * _SHIFT, first=again * size)


def shaped(offer: Offer, of: Subject, shape: CallShape, turn: int, first: int | None = None) -> Asked:
    """One call in a shape.

    Args:
        offer: the backend, as data.
        of: what is asked.
        shape: how the call is made.
        turn: decides the values, the parameters and the long dimension.
        first: of the telling values the one to begin with; without it all values go round.
    """
    table = of.shaped
    sizes, block_size, count = _placed(shape, turn, partial=of.document.partial_blocks)
    among = table.best if block_size is None else np.arange(len(table.scale))
    pair = among[(np.arange(prod(count)) * 7 + turn) % len(among)].reshape(count)
    scale, zero = of.special(shape.parameters, table.scale[pair], table.zero[pair], turn)
    width, size = table.x.shape[1], prod(sizes)
    if first is None:
        places = np.resize(np.roll(np.arange(width), -_SHIFT * turn), size)
    else:
        places = table.telling[(np.arange(size) + first) % len(table.telling)]
    places = places.reshape(sizes) + per_element(pair * width, sizes, block_size)
    x = np.asarray(table.x.ravel()[places])
    still = {"expanded in front": 0, "expanded behind": -1}.get(shape.layout)
    if still is not None and size:
        x = np.broadcast_to(np.take(x, [0], still), sizes)
    known = still is None and shape.parameters not in _SPECIAL
    expected = np.asarray(table.expected.ravel()[places]) if known else of.expected(x, scale, zero, block_size)
    given = _laid_out(shape, turn, x, scale, zero)
    call = call_of(
        offer, of, replace(shape, size=size, rank=x.ndim), given, block_size, "hard values in this call shape"
    )
    return Asked(call, Answer("returned", expected))


def _laid_out(shape: CallShape, turn: int, x: Array, *parameters: Array) -> list[Strided]:
    """The arrays as the shape says that they lie."""
    layout = shape.parameters if shape.parameters in {"stepped", "expanded"} else "contiguous"
    offsets = (0, 0) if shape.parameters == "fresh" else (turn % 4, turn // 4 % 4)
    given = [laid_out(x, shape.layout, shape.offset)]
    given += [laid_out(a, layout if a.ndim else "contiguous", o) for a, o in zip(parameters, offsets, strict=True)]
    return in_one_storage(given) if shape.parameters == "in the input's storage" else given


def in_one_storage(given: list[Strided]) -> list[Strided]:
    """The first array and those of the others that have its dtype, in the memory of one."""
    alike = [i for i, a in enumerate(given) if a.memory.dtype == given[0].memory.dtype]
    moved = dict(zip(alike, together(*(given[i] for i in alike)), strict=True))
    return [moved.get(i, a) for i, a in enumerate(given)]


def call_of(
    offer: Offer, of: Subject, shape: CallShape, given: Sequence[Strided], block_size: BlockSize | None, reason: str
) -> Call:
    """The call of the first array and the parameters that the profile hands over."""
    c = Configuration(of.operation, of.dtype, of.grid, given[0].shape, block_size=block_size)
    positional = tuple(given[: 1 + len(of.document.parameters)])
    return Call(f"{of.profile}:{of.operation}", positional, keywords(offer, c), shape, reason)


def _plainest(taken: Sequence[Granularity]) -> str:
    return "tensor" if "tensor" in taken else "block 2"


def _placed(shape: CallShape, turn: int, *, partial: bool) -> tuple[Shape, BlockSize | None, Shape]:
    """Sizes, block size and the parameters' shape; of the ways to turn the sizes the first with few blocks."""
    group = int(shape.block.removeprefix("group ")) if shape.block.startswith("group ") else 1
    found: list[tuple[Shape, BlockSize | None, Shape]] = []
    for turned in (turn, *range(shape.rank or 0)):
        sizes = dimensions(shape.size or 0, shape.rank or 0, turned, 1 if partial else group)
        block_size = blocks_of(shape.block, sizes, turned)
        count = () if block_size is None else parameter_shape(sizes, block_size)
        if prod(count) <= BLOCKS:
            return sizes, block_size, count
        found.append((sizes, block_size, count))
    return min(found, key=lambda f: prod(f[2]))
