"""Minima and maxima on a GPU: launched, with PTX run on the CPU, against the CPU's kernels; and mutants of them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from ptx.driver import StandIn, differing, sampled
from ptx.emulate import WHY_NOT
from ptx.instructions import memory
from ptx.parse import kernels
from ptx.reduce_cases import DTYPES, cases
from ptx.shares_mutants import OF_SHARES
from ptx.translate import translated

from halfeven.optimized.kernels.cuda import nvrtc, programs
from halfeven.optimized.kernels.cuda import reduce as own

_WHY_NOT = nvrtc.why_missing() or WHY_NOT
pytestmark = [
    pytest.mark.skipif(bool(_WHY_NOT), reason=f"not run: {_WHY_NOT}"),
    pytest.mark.usefixtures("pretended"),
]
OnCuda = Callable[..., Any]


def wrong(dtype: torch.dtype, stand_in: StandIn, on_cuda: OnCuda) -> Iterator[str]:
    for name, x, block in cases(dtype):
        for operator in ("amax", "aminmax"):
            wanted = getattr(torch.ops.halfeven, operator).default(x, block)
            stand_in.faults.clear()
            found = on_cuda(operator, x, block)
            pairs = [(found, wanted)] if operator == "amax" else zip(found, wanted, strict=True)
            n = sum(differing(f, w) for f, w in pairs)
            if n or stand_in.faults:
                yield f"{operator} of {name}: {n} differ, {stand_in.faults}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_as_on_the_cpu(dtype: str, stand_in: StandIn, on_cuda: OnCuda) -> None:
    assert list(wrong(DTYPES[dtype], stand_in, on_cuda)) == []
    assert {launched.kernel for launched in stand_in.launched} == {"rows", "columns", "combine"}


@pytest.mark.usefixtures("two_blocks")
def test_blocks_may_be_few(stand_in: StandIn, on_cuda: OnCuda) -> None:
    assert list(wrong(torch.float32, stand_in, on_cuda)) == []
    assert max(launched.grid[0] * launched.grid[1] for launched in stand_in.launched) <= 2


@pytest.mark.parametrize(("dtype", "magnitudes"), [("F32", True), ("F32", False), ("BF16", False), ("F64", True)])
def test_only_integers(dtype: str, magnitudes: bool) -> None:
    """No operation on floats, and so no rounding; rows are read 16 bytes at a time."""
    program = programs.reduce(dtype, magnitudes=magnitudes)
    texts = [nvrtc.compiled(program, f"compute_{number}")[0] for number in (90, 100)]
    for found in map(kernels, texts):
        assert sorted(found) == sorted(program.kernels)
        opcodes = [opcode for kernel in found.values() for opcode in kernel.opcodes]
        assert [o for o in opcodes if {"f16", "f32", "f64", "rn", "local"} & set(o.split("."))] == []
        accesses = [a for a in map(memory, found["rows"].opcodes) if a and a[:2] == ("ld", "global")]
        assert max(count * int(kind[1:]) // 8 for _, _, count, kind in accesses) == 16
        for kernel in found.values():
            translated(kernel)


@pytest.mark.parametrize(
    ("shape", "block"),
    [((2**31 + 5,), None), ((2**20, 4096), (1, 4096)), ((2**20, 4096), (2**20, 1)), ((2**33, 3), (32, 1))],
)
def test_grids_are_those_that_a_gpu_accepts(shape: tuple[int, ...], block: tuple[int, ...] | None) -> None:
    """Of tensors that nobody has the memory for, too."""
    strides = (1,) if len(shape) == 1 else (shape[1], 1)
    counts = (1,) * len(shape) if block is None else tuple(-(-n // b) for n, b in zip(shape, block, strict=True))
    parts = own._cuts(shape, strides, () if block is None else counts, block, 8)
    assert parts
    for part in parts:
        (x, y, z), threads = part.sizes
        assert max(y, z) <= 65535
        assert x * y * z * threads[0] * threads[1] <= 2**21
        assert threads[0] * threads[1] <= 256
        assert part.entries * part.left <= max(2**18, part.entries)


# One thing changed in the kernels, the file, what was there, and what is in its place.
_CU, _KEYS, _SHARES = "cuda/reduce.cu", "core/keys.h", "cuda/shares.h"
MUTANTS = (
    (_KEYS, "kMagnitudes ? bits & kRest", "kMagnitudes ? bits"),
    (_KEYS, "bits ^ ((bits >> kSign) & kRest)", "bits"),
    (_KEYS, "return a < b ? a : b;", "return a < b ? b : a;"),
    (_CU, "static_cast<K>(key ^ ((key >> kSign) & kMost))", "key"),
    (_CU, "high > kInfinity ||", "high >= kInfinity ||"),
    (_CU, "high > kInfinity || (!kMagnitudes && low < number(static_cast<K>(kInfinity | kLeast)))", "high > kInfinity"),
    (_CU, "number(static_cast<K>(kInfinity | kLeast))", "static_cast<K>(kInfinity | kLeast)"),
    (_CU, "high = more(high, other.high);", "high = other.high;"),
    (_CU, "low = less(low, other.low);", "low = other.low;"),
    (_SHARES, "if (d < begin || d >= end) continue;", "if (d >= end) continue;"),
    (_SHARES, "(last ? i : i % size[d])", "(last ? 0 : i % size[d])"),
    (_SHARES, "if (!last) i /= size[d];", ""),
    (_CU, "job.len_step == 1 ? Cut::of(x, x, job.len)", "true ? Cut::of(x, x, job.len)"),
    (_CU, "p < cut.packs;", "p + 1 < cut.packs;"),
    (_CU, "p += threads)", "p += 2 * threads)"),
    (_CU, "i < job.len - packed;", "i < job.len - packed - 1;"),
    (_CU, "i < cut.head ? i : i + packed", "i"),
    (_CU, "y / job.row_shares, share = y % job.row_shares", "y % job.kept, share = y / job.kept"),
    (_CU, "+ c * job.out_step : y", ": y"),
    *OF_SHARES,
)


@pytest.mark.usefixtures("two_blocks")
@pytest.mark.parametrize(("file", "old", "new"), sampled(MUTANTS))
def test_mutants_are_caught(
    file: str, old: str, new: str, stand_in: StandIn, on_cuda: OnCuda, mutated: Callable[..., None]
) -> None:
    mutated(programs.reduce("F16", magnitudes=True), file, old, new)
    assert next(wrong(torch.float16, stand_in, on_cuda), "")
