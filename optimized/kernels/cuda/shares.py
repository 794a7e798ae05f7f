"""Reductions on a GPU: a launch in which threads share the elements, and launches that bring shares together.

How many there are, and what is each thread's, is fixed by shapes and strides: sums have the same bits every time.
"""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from halfeven.optimized.kernels.cuda.launcher import Launcher
from halfeven.optimized.kernels.cuda.layout import Loop, Steps, blocks_of, merged, power, regions
from halfeven.optimized.kernels.cuda.programs import Program

__all__ = ["MOST_LOOPS", "Cut", "Many", "Results", "cuts", "run"]

#: As cuda/reduce.h has them, with its structs below.
MOST_LOOPS = 8
_AT_ONCE = 256
_THREADS = 256  # of a block, at most
_SHARES = 2**18  # threads, where there are not as many entries
_LEAST = 8  # accesses of a share, or there are fewer
_BLOCKS = 4096
_Int = ctypes.c_int64
_Pointer = ctypes.c_uint64
Many = _Int * MOST_LOOPS

_Size = tuple[int, int, int]


class Results(ctypes.Structure):
    """Where the results of a launch go: shares, or, in the ``last``, what is to come of them."""

    _fields_ = (("low", _Pointer), ("high", _Pointer), ("last", ctypes.c_int8))


class _Combine(ctypes.Structure):
    _fields_ = (
        ("low", _Pointer), ("high", _Pointer),
        ("kept", _Int), ("shares", _Int), ("len", _Int), ("out_step", _Int),
        ("reduced_loops", ctypes.c_int32), ("loops", ctypes.c_int32),
        ("size", Many), ("out_at", Many), ("to", Results),
    )  # fmt: skip


@dataclass(frozen=True)
class Cut:
    """One region of a call: its first kernel, its loops, and the shares of an entry after each launch.

    ``inner`` is what a kernel goes along, ``loops`` are the others: the reduced ones first. ``start`` is where each
    operand begins, in elements. The operand of the results is the last.
    """

    kernel: str
    sizes: tuple[_Size, _Size]
    start: Steps
    inner: Loop
    loops: tuple[Loop, ...]
    reduced_loops: int
    kept: int
    reduced: int
    shares: int
    #: Results of the region, in so many shares after each launch, 1 after the last.
    entries: int
    left: tuple[int, ...]


def cuts(
    shape: Steps,
    strides: tuple[Steps, ...],
    parameters: tuple[tuple[Steps, Steps], ...],
    block: Steps | None,
    pack: int,
) -> tuple[Cut, ...] | None:
    """The regions of a call, None where one has more loops than the kernels know.

    Args:
        shape: of the elements, none of them 0.
        strides: of each operand that has elements.
        parameters: shape and strides of each that has an entry per block, or broadcasts; the last are the results.
        block: the size of the blocks, None where parameters broadcast.
        pack: elements that a thread takes at a time.

    Example:
        >>> (found,) = cuts((4, 2**16), ((2**16, 1),), (((4, 1), (1, 1)),), None, 4)
        >>> found.kernel, found.shares, found.left
        ('rows', 2048, (2048, 8, 1))
    """
    found = []
    for start, loops in regions(shape, strides, parameters, block):
        inner, *others = merged(sorted(loops, key=lambda loop: loop[1])) or [
            (1, (1,) * len(strides) + (0,) * len(parameters))
        ]
        if len(others) > MOST_LOOPS:
            return None
        found.append(_cut(start, inner, others, pack))
    return tuple(found)


def _cut(start: Steps, inner: Loop, others: Sequence[Loop], pack: int) -> Cut:
    n = inner[0]
    reduced, kept = ([loop for loop in others if (loop[1][-1] != 0) == keeps] for keeps in (False, True))
    of_reduced, of_kept = (prod(size for size, _ in loops) for loops in (reduced, kept))
    if inner[1][-1]:
        kernel, shares = "columns", _shares(of_reduced, of_kept * n)
        along, across, entries, left = n, of_kept * shares, of_kept * n, shares
    else:
        kernel, shares = "rows", _shares(-(-n // pack), of_kept * of_reduced)
        along, across, entries, left = shares, of_kept * of_reduced, of_kept, of_reduced * shares
    x = min(power(along), _THREADS)
    y = min(power(across), _THREADS // x)
    sizes = blocks_of(-(-along // x), -(-across // y), 1, _BLOCKS), (x, y, 1)
    loops = (*reduced, *kept)
    return Cut(
        kernel, sizes, start, inner, loops, len(reduced), of_kept, of_reduced, shares, entries, tuple(_left(left))
    )


def _shares(accesses: int, entries: int) -> int:
    return max(min(accesses // _LEAST, _SHARES // entries), 1)


def _left(shares: int) -> Iterator[int]:
    """The shares of an entry after each launch."""
    yield shares
    while shares > 1:
        shares = -(-shares // _AT_ONCE)
        yield shares


def run(
    to: Launcher,
    program: Program,
    x: Tensor,
    cut: Cut,
    job: ctypes.Structure,
    results: tuple[Tensor | None, Tensor | None],
    dtype: torch.dtype,
) -> None:
    """The launches of one region.

    Args:
        to: what launches.
        program: with the kernels ``rows``, ``columns`` and ``combine``.
        x: on the device.
        cut: the region.
        job: what the first kernel is given, but for ``to``.
        results: what is written, None for what is not wanted.
        dtype: of the shares.
    """
    shares = 0
    read: tuple[Tensor | None, ...] = results
    for left in cut.left:
        last = left == 1
        written = (
            results if last else tuple(None if t is None else _room(x, cut.entries * left, dtype) for t in results)
        )
        given = Results(*(_address(t, cut.start[-1] if last else 0) for t in written), last)
        if not shares:
            job.to = given
            to.start(program, x, cut.kernel, cut.sizes, job)
        else:
            low, high = (_address(t, 0) for t in read)
            combine = _Combine(
                low=low, high=high,
                kept=cut.kept, shares=shares, len=cut.entries // cut.kept, out_step=cut.inner[1][-1],
                reduced_loops=cut.reduced_loops, loops=len(cut.loops), to=given,
            )  # fmt: skip
            for d, (size, steps) in enumerate(cut.loops):
                combine.size[d], combine.out_at[d] = size, steps[-1]
            blocks = min(-(-cut.entries * left // _THREADS), _BLOCKS)
            to.start(program, x, "combine", ((blocks, 1, 1), (_THREADS, 1, 1)), combine)
        shares, read = left, written


def _room(x: Tensor, n: int, dtype: torch.dtype) -> Tensor:
    return x.new_empty((n,), dtype=dtype)


def _address(t: Tensor | None, start: int) -> int:
    return 0 if t is None else t.data_ptr() + start * t.element_size()
