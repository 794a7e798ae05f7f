"""The calls that programs make: the shapes of weights and activations, the blocks that kernels have, and look-alikes.

The covering design makes odd calls on purpose; a fast path for the plain ones would never be asked by them alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal

import numpy as np

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.configuration import Granularity
from halfeven.conformance.engine.call import Answer, CallShape
from halfeven.conformance.engine.company import companies
from halfeven.conformance.engine.memory import Array, Strided, plain
from halfeven.conformance.engine.operation_calls import Asked, call_of
from halfeven.conformance.engine.shapes import laid_out
from halfeven.conformance.engine.tables import Subject
from halfeven.reference.blocks import BlockSize, Shape, parameter_shape, per_element

__all__ = ["company_calls", "practice_calls"]


@dataclass(frozen=True)
class _Usual:
    """A call as programs make it.

    Attributes:
        sizes: of the tensor.
        granularity: what its blocks are called.
        block_size: None per tensor.
        layout: one of ``laid_out``, or one of the three below.
    """

    sizes: Shape
    granularity: Granularity = "tensor"
    block_size: BlockSize | None = None
    layout: str = "contiguous"


_TENSORS: tuple[Shape, ...] = (
    *((n,) for n in (16, 272, 1024, 4096, 16_384, 65_536)),
    *((48, 32), (256, 256), (64, 1024), (8, 16, 32), (2, 12, 64, 64), (1024, 1024)),
)
_LAYOUTS = (
    *(((16, 24), name) for name in ("transposed", "every other row", "padded rows")),
    *(((4, 32, 16), name) for name in ("swapped", "repeated within", "every other row")),
    *(((2, 8, 16, 16), name) for name in ("swapped", "channels last")),
)
_BLOCKS: tuple[_Usual, ...] = (
    *(_Usual((64, 128), "channel", (1, 128), name) for name in ("contiguous", "transposed", "every other row")),
    *(_Usual((32, 48), "channel", (32, 1), name) for name in ("contiguous", "transposed")),
    _Usual((16, 8, 3, 3), "channel", (1, 8, 3, 3)),
    _Usual((2, 16, 8, 8), "channel", (2, 1, 8, 8)),
    _Usual((2, 16, 8, 8), "channel", (2, 1, 8, 8), "channels last"),
    _Usual((4, 6, 32), "channel", (4, 6, 1)),
    *(_Usual((32, 32), "channel", b) for b in ((1, 32), (32, 1))),  # as many along one axis as another
    *(_Usual((8, 8, 8), "channel", b) for b in ((1, 8, 8), (8, 1, 8), (8, 8, 1))),
    *(_Usual((8, 8, 3, 3), "channel", b) for b in ((1, 8, 3, 3), (8, 1, 3, 3))),
    _Usual((70_001, 2), "channel", (1, 2)),
    _Usual((64, 32), "token", (1, 32)),
    _Usual((2, 16, 64), "token", (1, 1, 64)),
    *(_Usual((16, 512), "group", (1, n)) for n in (8, 16, 32, 64, 128, 256, 512)),
    *(_Usual((2, 8, 256), "group", (1, 1, n)) for n in (32, 128)),
    _Usual((64, 48), "group", (16, 1)),
    _Usual((256, 8), "group", (128, 1)),
    *(_Usual((64, 96), "block", b) for b in ((32, 32), (16, 48), (2, 3), (1, 1))),
    _Usual((64, 64), "block", (16, 16)),  # as many blocks along either axis
    _Usual((256, 384), "block", (128, 128)),
    _Usual((96, 64), "block", (32, 32), "transposed"),
    _Usual((8, 8, 16), "block", (2, 4, 8)),
)


def practice_calls(
    offer: Offer, of: Subject, granularities: Sequence[Granularity], largest: int | None = None
) -> Iterator[Asked]:
    """Calls as programs make them; arguments as in ``operation_calls``."""
    usual: list[tuple[_Usual, Literal["one", "all"]]] = []
    if "tensor" in granularities:
        usual += product((_Usual(sizes) for sizes in _TENSORS), ("one", "all"))
        usual += [(_Usual(sizes, layout=name), "one") for sizes, name in _LAYOUTS]
    usual += [(u, "one") for u in _BLOCKS if u.granularity in granularities]
    for turn, (u, threads) in enumerate(usual):
        if largest is None or prod(u.sizes) <= largest:
            yield _as_usual(offer, of, u, threads, turn)
    yield from _alike(offer, of, granularities)


def _as_usual(offer: Offer, of: Subject, u: _Usual, threads: Literal["one", "all"], turn: int) -> Asked:
    table, blocks = of.shaped, () if u.block_size is None else parameter_shape(u.sizes, u.block_size)
    pair = (np.arange(prod(blocks)) * 7 + turn) % len(table.scale)
    pair = (table.best[pair % len(table.best)] if u.block_size is None else pair).reshape(blocks)
    width = table.x.shape[1]
    places = np.resize(np.roll(np.arange(width), -turn), prod(u.sizes)).reshape(u.sizes)
    x = np.asarray(table.x.ravel()[places + per_element(pair * width, u.sizes, u.block_size)])
    if u.layout == "repeated within":
        x = np.broadcast_to(x[:, :1], x.shape)
    scale, zero = table.scale[pair], table.zero[pair]
    shape = CallShape(x.size, x.ndim, u.layout, block=u.granularity, threads=threads)
    given = [_laid(x, u.layout), plain(np.asarray(scale)), plain(np.asarray(zero))]
    call = call_of(offer, of, shape, given, u.block_size, "a call as programs make it")
    return Asked(call, Answer("returned", of.expected(x, np.asarray(scale), np.asarray(zero), u.block_size)))


def _laid(x: Array, layout: str) -> Strided:
    match layout:
        case "swapped":
            return _moved(np.ascontiguousarray(np.swapaxes(x, 1, 2)), lambda a: np.swapaxes(a, 1, 2))
        case "every other row":
            wide = np.repeat(x, 2, axis=0)
            wide[1::2] = wide[1::2][::-1]
            return _moved(wide, lambda a: a[::2])
        case "repeated within":
            return _moved(np.ascontiguousarray(x[:, :1]), lambda a: np.broadcast_to(a, x.shape))
    return laid_out(x, layout)


def _moved(memory: Array, view: Callable[[Array], Array]) -> Strided:
    """A view of a contiguous array, as a place in its memory."""
    seen = view(memory)
    strides = tuple(s // memory.itemsize for s in seen.strides)
    return Strided(memory.reshape(-1), seen.shape, strides, 0)


def _alike(offer: Offer, of: Subject, granularities: Sequence[Granularity]) -> Iterator[Asked]:
    """Calls one after the other that have nearly all in common, for whoever remembers answers by what they have.

    The same tensor with another zero point, then with another scale; the same memory with other strides; and in rows
    the same first parameters with others behind them, then other blocks.
    """
    table, size = of.shaped, 16
    x = np.resize(table.x[table.best[0]], size * size).reshape(size, size)
    a, b = table.best[0], table.best[-1]
    different = [int(i) for i in range(len(table.zero)) if table.zero[i] != table.zero[a]] or [int(b)]
    scale, zero = table.scale, table.zero
    pairs = [(scale[a], zero[a]), (scale[a], zero[different[0]]), (scale[b], zero[a])]
    reason = "as the call before, but for one thing"
    if "tensor" in granularities:
        for s, z in pairs:
            yield _plainly(offer, of, plain(x), (np.asarray(s), np.asarray(z)), None, reason)
        turned = Strided(np.ascontiguousarray(x).reshape(-1), (size, size), (1, size))
        yield _plainly(
            offer, of, turned, (np.asarray(pairs[2][0]), np.asarray(pairs[2][1])), None, reason, "transposed"
        )
    if set(granularities) > {"tensor"}:
        first = np.arange(size) % len(table.scale)
        second = np.where(np.arange(size) < 1, first, (first + 3) % len(table.scale))
        for rows, block in ((first, (1, size)), (second, (1, size)), (second, (size, 1))):
            shape = (size, 1) if block[0] == 1 else (1, size)
            parameters = scale[rows].reshape(shape), zero[rows].reshape(shape)
            yield _plainly(offer, of, plain(x), parameters, block, reason)


def company_calls(
    offer: Offer, of: Subject, granularities: Sequence[Granularity], *, with_nan: bool = True
) -> Iterator[Asked]:
    """The telling values of two pairs of parameters in the calls that ``companies`` has; arguments as above.

    ``with_nan``: NaN is among them although the document may be silent of it; then it leaves open what becomes of NaN,
    and of nothing else.
    """
    table, tensor = of.shaped, "tensor" in granularities
    if of.operation == "dequantize" or not granularities:
        return
    other = next((p for p in table.best if table.zero[p] != table.zero[table.best[0]]), table.best[-1])
    for pair in dict.fromkeys((int(table.best[0]), int(other))):
        for words, values in companies(table.x[pair][table.telling]):
            fits = np.array_equal(of.kept(values), values, equal_nan=True)  # without sign there is no -infinity
            if not fits or (np.isnan(values).any() and not with_nan):
                continue
            x = values if tensor else values[None]
            held = () if tensor else (1, 1)
            parameters = np.full(held, table.scale[pair]), np.full(held, table.zero[pair])
            yield _plainly(offer, of, plain(x), parameters, None if tensor else x.shape, f"calls {words}")


def _plainly(
    offer: Offer,
    of: Subject,
    x: Strided,
    parameters: tuple[Array, Array],
    block: BlockSize | None,
    reason: str,
    layout: str = "contiguous",
) -> Asked:
    scale, zero = parameters
    shape = CallShape(x.memory.size, len(x.shape), layout, block="tensor" if block is None else "channel")
    call = call_of(offer, of, shape, [x, plain(scale), plain(zero)], block, reason)
    return Asked(call, Answer("returned", of.expected(x.view(), scale, zero, block)))
