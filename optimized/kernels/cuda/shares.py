"""Reductions on a GPU: a launch in which blocks share the elements, and one that brings shares together.

How many there are, and what is each thread's, is fixed by shapes and strides: sums have the same bits every time.
"""

import ctypes
from collections.abc import Sequence
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
_THREADS = 256  # of a block, at most
_WANTED = 2**18  # threads, where there are not as many entries
_LEAST = 8  # accesses of a thread, or there are fewer
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
    """One region of a call: its first kernel, its loops, and how the elements of an entry are shared.

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
    #: Of an entry's rows of ``inner``, and of a row.
    row_shares: int
    shares: int
    #: Results of the region.
    entries: int

    @property
    def left(self) -> int:
        """Shares of an entry after the first launch."""
        return self.row_shares * self.shares


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
        >>> found.kernel, found.row_shares, found.shares
        ('rows', 1, 8)
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
        kernel, entries, shares = "columns", of_kept * n, 1
        row_shares = _threads(of_reduced // _LEAST, entries)
        x = min(power(n), _THREADS)
        along = -(-n // x)
    else:
        kernel, entries = "rows", of_kept
        threads = _threads(-(-n // pack) // _LEAST, of_kept * of_reduced)
        x = min(power(threads), _THREADS)
        along = shares = -(-threads // x)
        row_shares = _threads(of_reduced, of_kept * shares * x)
    across = of_kept * row_shares
    y = min(power(across), _THREADS // x)
    sizes = blocks_of(along, -(-across // y), 1, _BLOCKS), (x, y, 1)
    loops = (*reduced, *kept)
    return Cut(kernel, sizes, start, inner, loops, len(reduced), of_kept, of_reduced, row_shares, shares, entries)


def _threads(useful: int, others: int) -> int:
    """So many threads, or as many as there are to be besides ``others``."""
    return max(min(useful, _WANTED // others), 1)


def run(
    to: Launcher,
    program: Program,
    x: Tensor,
    cut: Cut,
    job: ctypes.Structure,
    results: tuple[Tensor | None, Tensor | None],
    dtype: torch.dtype,
) -> None:
    """The one or two launches of one region.

    Args:
        to: what launches.
        program: with the kernels ``rows``, ``columns`` and ``combine``.
        x: on the device.
        cut: the region.
        job: what the first kernel is given, but for ``to``.
        results: what is written, None for what is not wanted.
        dtype: of the shares.
    """
    last = Results(*(_address(t, cut.start[-1]) for t in results), True)
    if cut.left == 1:
        job.to = last
        to.start(program, x, cut.kernel, cut.sizes, job)
        return
    between = tuple(None if t is None else x.new_empty((cut.entries * cut.left,), dtype=dtype) for t in results)
    low, high = (_address(t, 0) for t in between)
    job.to = Results(low, high, False)
    to.start(program, x, cut.kernel, cut.sizes, job)
    combine = _Combine(
        low=low, high=high,
        kept=cut.kept, shares=cut.left, len=cut.entries // cut.kept, out_step=cut.inner[1][-1],
        reduced_loops=cut.reduced_loops, loops=len(cut.loops), to=last,
    )  # fmt: skip
    for d, (size, steps) in enumerate(cut.loops):
        combine.size[d], combine.out_at[d] = size, steps[-1]
    threads_y = min(power(-(-cut.left // _LEAST)), _THREADS)
    threads_x = min(power(cut.entries), _THREADS // threads_y)
    blocks = min(-(-cut.entries // threads_x), _BLOCKS)
    to.start(program, x, "combine", ((blocks, 1, 1), (threads_x, threads_y, 1)), combine)


def _address(t: Tensor | None, start: int) -> int:
    return 0 if t is None else t.data_ptr() + start * t.element_size()
