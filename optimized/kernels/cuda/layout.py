"""How a call is cut into launches: rows, columns or any strides, from shapes and strides alone.

As on the CPU: elements and parameters are laid side by side as nested loops, a short last block apart, and neighbours
merged where memory allows it. Operands are the result, x, scale and offset, in this order; steps are in elements, 0
where an operand stays where it is.
"""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

__all__ = [
    "MOST_DIMENSIONS",
    "ForwardParameters",
    "ForwardRows",
    "ForwardStrided",
    "Launch",
    "Loop",
    "Steps",
    "blocks_of",
    "laid_out",
    "merged",
    "power",
    "regions",
]

#: As cuda/forward.h has them, with its structs below.
MOST_DIMENSIONS = 8
_THREADS = 256  # of a block, at most
_MOST_BLOCKS = 32  # for each processor: the threads of these go on in steps
_ROWS_PER_THREAD = 8  # of a column, for whose parameters it is the only use
_MOST_ALONG = 65535  # blocks along y and z
_Int = ctypes.c_int64
_Many = _Int * MOST_DIMENSIONS
_Pointer = ctypes.c_uint64

Steps = tuple[int, ...]
# A dimension: its size, and the step of each operand.
Loop = tuple[int, Steps]


class ForwardParameters(ctypes.Structure):
    """Where the parameters are, and what is the same for all elements."""

    _fields_ = (
        ("s", _Pointer), ("o", _Pointer),
        ("low", ctypes.c_double), ("high", ctypes.c_double), ("shift", ctypes.c_double),
        ("s_dtype", ctypes.c_int8), ("o_dtype", ctypes.c_int8), ("is_offset", ctypes.c_int8),
    )  # fmt: skip


class ForwardRows(ctypes.Structure):
    """What the kernels ``rows`` and ``columns`` are given."""

    _fields_ = (
        ("x", _Pointer), ("out", _Pointer),
        ("outer", _Int), ("rows", _Int), ("len", _Int),
        ("x_outer", _Int), ("x_row", _Int), ("out_outer", _Int), ("out_row", _Int),
        ("s_outer", _Int), ("s_step", _Int), ("o_outer", _Int), ("o_step", _Int),
        ("parameters", ForwardParameters),
    )  # fmt: skip


class ForwardStrided(ctypes.Structure):
    """What the kernel ``strided`` is given."""

    _fields_ = (
        ("x", _Pointer), ("out", _Pointer), ("numel", _Int), ("ndim", _Int),
        ("size", _Many), ("x_step", _Many), ("out_step", _Many),
        ("block", _Many), ("s_step", _Many), ("o_step", _Many),
        ("parameters", ForwardParameters),
    )  # fmt: skip


@dataclass(frozen=True)
class Launch:
    """One launch, less the addresses: ``start`` is how many elements after the first of each operand it begins."""

    kernel: str
    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    start: Steps
    #: Only to be copied.
    job: ForwardRows | ForwardStrided


@lru_cache(maxsize=1024)
def laid_out(
    shape: Steps,
    strides: tuple[Steps, Steps],
    parameters: tuple[tuple[Steps, Steps], ...],
    block: Steps | None,
    pack: int,
    processors: int,
) -> tuple[Launch, ...]:
    """The launches of a call, which write different elements.

    Args:
        shape: of the elements, none of them 0.
        strides: of the result and of x.
        parameters: shape and strides of scale and offset, of no dimensions where there is none.
        block: the size of the blocks, None where parameters broadcast.
        pack: elements that a thread takes at a time.
        processors: of the GPU.

    Example:
        >>> one = ((), ())
        >>> [(found.kernel, found.grid) for found in laid_out((4, 4096), ((4096, 1),) * 2, (one, one), None, 16, 1)]
        [('rows', (4, 1, 1))]
        >>> channels = ((4, 1), (1, 1))
        >>> [found.job.rows for found in laid_out((4, 4096), ((4096, 1),) * 2, (channels, one), None, 16, 1)]
        [4]
    """
    found: list[Launch] = []
    for start, loops in regions(shape, strides, parameters, block):
        found += _launches(start, merged(sorted(loops, key=lambda loop: loop[1])), pack, processors * _MOST_BLOCKS)
    return tuple(found)


def regions(
    shape: Steps, strides: tuple[Steps, ...], parameters: tuple[tuple[Steps, Steps], ...], block: Steps | None
) -> Iterator[tuple[Steps, list[Loop]]]:
    """Parts in which all blocks are equally long: where each begins, and its dimensions, the last one first."""
    choices: list[list[tuple[Steps, list[Loop]]]] = []
    for d in reversed(range(len(shape))):
        n, b = shape[d], block[d] if block else 1
        own = tuple(of[d] for of in strides)
        of_parameters = tuple(_parameter_step(p, d - len(shape)) for p in parameters)
        none, both = (0,) * len(parameters), own + of_parameters
        if n <= b or b == 1:
            choices.append([((0,) * len(both), [(n, both)])])
            continue
        whole = n // b
        after_block = tuple(b * step for step in own) + of_parameters
        choices.append([((0,) * len(both), [(b, own + none), (whole, after_block)])])
        if n % b:
            choices[-1].append((tuple(whole * step for step in after_block), [(n % b, own + none)]))
    nowhere = (0,) * (len(strides) + len(parameters))
    for chosen in product(*choices):
        start = tuple(map(sum, zip(nowhere, *(start for start, _ in chosen), strict=True)))
        yield start, [loop for _, loops in chosen for loop in loops if loop[0] > 1]


def _parameter_step(parameter: tuple[Steps, Steps], d: int) -> int:
    """Along dimension ``d``, counted from the last, of the elements."""
    shape, strides = parameter
    return 0 if -d > len(shape) or shape[d] == 1 else strides[d]


def merged(loops: Sequence[Loop]) -> list[Loop]:
    """Each dimension in the one inside it where all operands run on from one to the other."""
    found: list[Loop] = []
    for n, steps in loops:
        if found and all(step == of * found[-1][0] for step, of in zip(steps, found[-1][1], strict=True)):
            found[-1] = (found[-1][0] * n, found[-1][1])
        else:
            found.append((n, steps))
    return found


def _launches(start: Steps, loops: list[Loop], pack: int, most: int) -> Iterator[Launch]:
    one: Loop = (1, (0,) * 4)
    inner, *others = loops or [(1, (1, 1, 0, 0))]
    if inner[1][:2] == (1, 1) and len(others) <= 2:  # noqa: PLR2004 - the rows, and what is around them
        rows, outer = sorted((*others, one, one)[:2], key=lambda loop: loop[0], reverse=True)
        if inner[1][2:] == (0, 0):
            yield Launch("rows", *_row_grid(inner[0], rows[0], outer[0], pack, most), start, _rows(inner, rows, outer))
            return
        if rows[1][2:] != (0, 0):
            rows, outer = outer, rows
        if rows[1][2:] == (0, 0):
            sizes = _column_grid(inner[0], rows[0], outer[0], pack, most)
            yield Launch("columns", *sizes, start, _rows(inner, rows, outer, columns=True))
            return
    if len(loops) > MOST_DIMENSIONS:
        n, steps = loops[-1]
        for i in range(n):
            yield from _launches(tuple(s + i * of for s, of in zip(start, steps, strict=True)), loops[:-1], pack, most)
        return
    numel = 1
    for n, _ in loops:
        numel *= n
    blocks = min(-(-numel // _THREADS), most)
    yield Launch("strided", (blocks, 1, 1), (_THREADS, 1, 1), start, _strided(numel, loops or [one]))


def _rows(inner: Loop, rows: Loop, outer: Loop, *, columns: bool = False) -> ForwardRows:
    (n, of_row), (m, of_outer) = rows, outer
    s, o = (inner if columns else rows)[1][2:]
    return ForwardRows(
        outer=m, rows=n, len=inner[0],
        x_outer=of_outer[1], x_row=of_row[1], out_outer=of_outer[0], out_row=of_row[0],
        s_outer=of_outer[2], s_step=s, o_outer=of_outer[3], o_step=o,
    )  # fmt: skip


def _strided(numel: int, loops: Sequence[Loop]) -> ForwardStrided:
    job = ForwardStrided(numel=numel, ndim=len(loops), block=_Many(*(1,) * MOST_DIMENSIONS))
    for d, (n, (out, x, s, o)) in enumerate(loops):
        job.size[d], job.x_step[d], job.out_step[d], job.s_step[d], job.o_step[d] = n, x, out, s, o
    return job


def _row_grid(n: int, rows: int, outer: int, pack: int, most: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Threads along a row as it has packs; the others take other rows."""
    x = min(power(-(-n // pack)), _THREADS)
    y = min(power(rows), _THREADS // x)
    return blocks_of(-(-n // (pack * x)), -(-rows // y), outer, most), (x, y, 1)


def _column_grid(
    n: int, rows: int, outer: int, pack: int, most: int
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Threads along the columns as there are packs; the others take other rows, each of them several."""
    x = min(power(-(-n // pack)), _THREADS)
    y = min(power(-(-rows // _ROWS_PER_THREAD)), _THREADS // x)
    return blocks_of(-(-n // (pack * x)), -(-rows // (y * _ROWS_PER_THREAD)), outer, most), (x, y, 1)


def blocks_of(x: int, y: int, z: int, most: int) -> tuple[int, int, int]:
    """A grid of so many blocks in each direction, or of fewer: ``most`` in all, and what a GPU accepts."""
    x = min(x, most)
    y = min(y, max(most // x, 1), _MOST_ALONG)
    return x, y, min(z, max(most // (x * y), 1), _MOST_ALONG)


def power(n: int) -> int:
    """The first power of two that is not below ``n``, which is 1 or more."""
    return 1 << (n - 1).bit_length()
