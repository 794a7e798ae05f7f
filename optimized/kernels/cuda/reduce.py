"""Minima and maxima on a GPU, by the kernels of ``reduce.cu``."""

import ctypes
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized import arguments
from halfeven.optimized.arguments import Blocks
from halfeven.optimized.kernels import chunked
from halfeven.optimized.kernels.cuda import launcher, programs, shares
from halfeven.optimized.kernels.cuda.layout import Steps
from halfeven.optimized.kernels.cuda.memory import DTYPES, check_places

__all__ = ["REDUCE"]

_Int = ctypes.c_int64
_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


class _Reduce(ctypes.Structure):
    _fields_ = (
        ("x", ctypes.c_uint64),
        ("kept", _Int), ("reduced", _Int), ("len", _Int), ("len_step", _Int), ("out_step", _Int),
        ("row_shares", _Int), ("shares", _Int),
        ("reduced_loops", ctypes.c_int32), ("loops", ctypes.c_int32),
        ("size", shares.Many), ("x_step", shares.Many), ("out_at", shares.Many), ("to", shares.Results),
    )  # fmt: skip


def _amax(to: launcher.Launcher, x: Tensor, block_size: Blocks) -> Tensor:
    return _reduced(to, x, block_size, magnitudes=True)[1]


def _aminmax(to: launcher.Launcher, x: Tensor, block_size: Blocks) -> tuple[Tensor, Tensor]:
    return _reduced(to, x, block_size, magnitudes=False)


def _reduced(to: launcher.Launcher, x: Tensor, block_size: Blocks, *, magnitudes: bool) -> tuple[Tensor, Tensor]:
    """Least and greatest, of magnitudes the greatest twice."""
    arguments.check_reduction(x, block_size)
    check_places({"x": x})
    counts = () if block_size is None else arguments.block_counts(x.shape, block_size)
    if x.numel() == 0:
        return x.new_empty(counts), x.new_empty(counts)
    block = None if block_size is None else tuple(block_size)
    found = _cuts(tuple(x.shape), x.stride(), tuple(counts), block, 16 // x.element_size())
    if found is None:
        own = chunked.IMPLEMENTATIONS["amax" if magnitudes else "aminmax"](x, block_size)
        return (own, own) if magnitudes else own
    high = x.new_empty(counts)
    low = None if magnitudes else x.new_empty(counts)
    program = programs.reduce(DTYPES[x.dtype].name, magnitudes=magnitudes)
    for cut in found:
        (n, (step, out_step)), (at_x, _) = cut.inner, cut.start
        job = _Reduce(
            x=x.data_ptr() + at_x * x.element_size(),
            kept=cut.kept, reduced=cut.reduced, len=n, len_step=step, out_step=out_step,
            row_shares=cut.row_shares, shares=cut.shares,
            reduced_loops=cut.reduced_loops, loops=len(cut.loops),
        )  # fmt: skip
        for d, (size, (of_x, of_out)) in enumerate(cut.loops):
            job.size[d], job.x_step[d], job.out_at[d] = size, of_x, of_out
        shares.run(to, program, x, cut, job, (low, high), _INTEGERS[x.element_size()])
    return high if low is None else low, high


@lru_cache(maxsize=1024)
def _cuts(shape: Steps, strides: Steps, counts: Steps, block: Steps | None, pack: int) -> tuple[shares.Cut, ...] | None:
    out = tuple(prod(counts[d + 1 :]) for d in range(len(counts)))
    return shares.cuts(shape, (strides,), ((counts, out),), block, pack)


#: By the operators' names: what is launched on CUDA, given the launcher and then what the operator is given.
REDUCE: dict[str, Callable[..., Any]] = {"aminmax": _aminmax, "amax": _amax}
