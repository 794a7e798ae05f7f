"""Minima and maxima on a GPU: a launch in which threads share the elements, and launches that bring shares together.

How many there are is fixed by shapes and strides.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized import arguments
from halfeven.optimized.kernels import chunked
from halfeven.optimized.kernels.cuda import launcher, programs
from halfeven.optimized.kernels.cuda.layout import Loop, Steps, blocks_of, merged, power, regions
from halfeven.optimized.kernels.cuda.memory import DTYPES, check_places

__all__ = ["REDUCE"]

# As cuda/reduce.h has them, with its structs below.
_MOST_LOOPS = 8
_AT_ONCE = 256
_THREADS = 256  # of a block, at most
_SHARES = 2**18  # threads, where there are not as many entries
_LEAST = 8  # accesses of a share, or there are fewer
_BLOCKS = 4096
_Int = ctypes.c_int64
_Many = _Int * _MOST_LOOPS
_Pointer = ctypes.c_uint64
_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}

Blocks = Sequence[int] | None
_Size = tuple[int, int, int]


class _Results(ctypes.Structure):
    _fields_ = (("low", _Pointer), ("high", _Pointer), ("last", ctypes.c_int8))


class _Reduce(ctypes.Structure):
    _fields_ = (
        ("x", _Pointer),
        ("kept", _Int), ("reduced", _Int), ("len", _Int), ("len_step", _Int), ("out_step", _Int), ("shares", _Int),
        ("reduced_loops", ctypes.c_int32), ("loops", ctypes.c_int32),
        ("size", _Many), ("x_step", _Many), ("out_at", _Many), ("to", _Results),
    )  # fmt: skip


class _Combine(ctypes.Structure):
    _fields_ = (
        ("low", _Pointer), ("high", _Pointer),
        ("kept", _Int), ("shares", _Int), ("len", _Int), ("out_step", _Int),
        ("reduced_loops", ctypes.c_int32), ("loops", ctypes.c_int32),
        ("size", _Many), ("out_at", _Many), ("to", _Results),
    )  # fmt: skip


@dataclass(frozen=True)
class _Part:
    """What one region takes: the first kernel, and the shares of an entry after it and after each that combines.

    ``start`` is where x and the results begin, in elements; ``last`` of ``left`` is 1.
    """

    kernel: str
    sizes: tuple[_Size, _Size]
    start: Steps
    job: _Reduce
    #: Entries beside each other that each share has, and the shares that are left after each launch.
    entries: int
    left: tuple[int, ...]


def _amax(to: launcher.Launcher, x: Tensor, block_size: Blocks) -> Tensor:
    return _reduced(to, x, block_size, magnitudes=True)[1]


def _aminmax(to: launcher.Launcher, x: Tensor, block_size: Blocks) -> tuple[Tensor, Tensor]:
    return _reduced(to, x, block_size, magnitudes=False)


def _reduced(to: launcher.Launcher, x: Tensor, block_size: Blocks, *, magnitudes: bool) -> tuple[Tensor, Tensor]:
    """Least and greatest, of magnitudes the greatest twice."""
    arguments.check_reduction(x, block_size)
    check_places({"x": x})
    shape = () if block_size is None else arguments.block_counts(x.shape, block_size)
    high = x.new_empty(shape)
    low = high if magnitudes else x.new_empty(shape)
    if x.numel() == 0:
        return low, high
    block = tuple(x.shape) if block_size is None else tuple(block_size)
    counts = (1,) * x.ndim if block_size is None else shape
    parts = _laid_out(tuple(x.shape), x.stride(), counts, block, 16 // x.element_size())
    if parts is None:
        if magnitudes:
            return low, chunked.IMPLEMENTATIONS["amax"](x, block_size)
        found: tuple[Tensor, Tensor] = chunked.IMPLEMENTATIONS["aminmax"](x, block_size)
        return found
    program = programs.reduce(DTYPES[x.dtype].name, magnitudes=magnitudes)
    for part in parts:
        _run(to, program, part, x, (None if magnitudes else low, high))
    return low, high


def _run(
    to: launcher.Launcher, program: programs.Program, part: _Part, x: Tensor, results: tuple[Tensor | None, Tensor]
) -> None:
    """The launches of one region."""
    item, (at_x, at_out) = x.element_size(), part.start
    job = _Reduce.from_buffer_copy(part.job)
    job.x = x.data_ptr() + at_x * item
    shares, read = 0, results
    for left in part.left:
        last = left == 1
        # Keys of the same width as x, in memory of the stream's.
        room = (part.entries * left,)
        written = results if last else _pair(results, lambda _: x.new_empty(room, dtype=_INTEGERS[item]))  # noqa: B023
        low, high = (0 if t is None else t.data_ptr() + last * at_out * item for t in written)
        if not shares:
            job.to = _Results(low, high, last)
            to.start(program, x, part.kernel, part.sizes, job)
        else:
            combine = _Combine(
                kept=job.kept, shares=shares, len=part.entries // job.kept, out_step=job.out_step,
                reduced_loops=job.reduced_loops, loops=job.loops, size=job.size, out_at=job.out_at,
                to=_Results(low, high, last),
            )  # fmt: skip
            combine.low, combine.high = (0 if t is None else t.data_ptr() for t in read)
            blocks = min(-(-part.entries * left // _THREADS), _BLOCKS)
            to.start(program, x, "combine", ((blocks, 1, 1), (_THREADS, 1, 1)), combine)
        shares, read = left, written


def _pair(results: tuple[Tensor | None, Tensor], made: Callable[[Tensor], Tensor]) -> tuple[Tensor | None, Tensor]:
    low, high = results
    return None if low is None else made(low), made(high)


@lru_cache(maxsize=1024)
def _laid_out(shape: Steps, strides: Steps, counts: Steps, block: Steps, pack: int) -> tuple[_Part, ...] | None:
    """The regions of a call, None where one has too many dimensions."""
    out = tuple(prod(counts[d + 1 :]) for d in range(len(counts)))
    found = []
    for start, loops in regions(shape, (strides,), ((counts, out),), block):
        inner, *others = merged(sorted(loops, key=lambda loop: loop[1])) or [(1, (1, 0))]
        if len(others) > _MOST_LOOPS:
            return None
        found.append(_part(start, inner, others, pack))
    return tuple(found)


def _part(start: Steps, inner: Loop, others: Sequence[Loop], pack: int) -> _Part:
    n, (step, out_step) = inner
    reduced, kept = ([loop for loop in others if (loop[1][1] != 0) == keeps] for keeps in (False, True))
    of_reduced, of_kept = (prod(size for size, _ in loops) for loops in (reduced, kept))
    job = _Reduce(
        kept=of_kept, reduced=of_reduced, len=n, len_step=step, out_step=out_step,
        reduced_loops=len(reduced), loops=len(others),
    )  # fmt: skip
    for d, (size, (of_x, of_out)) in enumerate((*reduced, *kept)):
        job.size[d], job.x_step[d], job.out_at[d] = size, of_x, of_out
    if out_step:
        job.shares = _shares(of_reduced, of_kept * n)
        x = min(power(n), _THREADS)
        y = min(power(of_kept * job.shares), _THREADS // x)
        grid = blocks_of(-(-n // x), -(-of_kept * job.shares // y), 1, _BLOCKS)
        entries, left = of_kept * n, job.shares
    else:
        job.shares = _shares(-(-n // pack), of_kept * of_reduced)
        x = min(power(job.shares), _THREADS)
        y = min(power(of_kept * of_reduced), _THREADS // x)
        grid = blocks_of(-(-job.shares // x), -(-of_kept * of_reduced // y), 1, _BLOCKS)
        entries, left = of_kept, of_reduced * job.shares
    return _Part("columns" if out_step else "rows", (grid, (x, y, 1)), start, job, entries, tuple(_left(left)))


def _shares(accesses: int, entries: int) -> int:
    return max(min(accesses // _LEAST, _SHARES // entries), 1)


def _left(shares: int) -> Iterator[int]:
    """The shares of an entry after each launch."""
    yield shares
    while shares > 1:
        shares = -(-shares // _AT_ONCE)
        yield shares


#: By the operators' names: what is launched on CUDA, given the launcher and then what the operator is given.
REDUCE: dict[str, Callable[..., Any]] = {"aminmax": _aminmax, "amax": _amax}
