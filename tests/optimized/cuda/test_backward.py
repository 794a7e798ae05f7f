"""Gradients on a GPU: launched, with PTX run on the CPU, against the kernels of the CPU; and mutants of them."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from ptx.backward_cases import KINDS, PROGRAMS, Kind, calls
from ptx.driver import StandIn, differing, sampled
from ptx.emulate import WHY_NOT
from ptx.instructions import memory
from ptx.parse import kernels
from ptx.shares_mutants import OF_SHARES, few_blocks
from ptx.translate import translated

from halfeven.optimized.kernels.cuda import nvrtc, programs

_WHY_NOT = nvrtc.why_missing() or WHY_NOT
pytestmark = [
    pytest.mark.skipif(bool(_WHY_NOT), reason=f"not run: {_WHY_NOT}"),
    pytest.mark.usefixtures("pretended"),
]
OnCuda = Callable[..., Any]
nvrtc_compiled = nvrtc.compiled  # bound before a test puts something in its place


def wrong(kind: Kind, stand_in: StandIn, on_cuda: OnCuda) -> Iterator[str]:
    name = f"{kind.operator}_backward"
    for case, call in calls(kind):
        wanted = getattr(torch.ops.halfeven, name).default(*call.given)
        stand_in.faults.clear()
        found = on_cuda(name, *call.given)
        parts = [differing(f, w) for f, w in zip(found, wanted, strict=True)]
        parts += [int(f.stride() != w.stride()) for f, w in zip(found, wanted, strict=True)]
        if any(parts) or stand_in.faults:
            yield f"{case}: {parts} differ, {stand_in.faults}"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_same_bits_as_on_the_cpu(kind: Kind, stand_in: StandIn, on_cuda: OnCuda) -> None:
    assert list(wrong(kind, stand_in, on_cuda)) == []
    assert {launched.kernel for launched in stand_in.launched} == {"rows", "columns", "combine"}


def test_sums_do_not_depend_on_the_number_of_blocks(
    on_cuda: OnCuda, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of numbers whose sums are not exact."""
    drawn = torch.Generator().manual_seed(2)
    x, grad = torch.randn(7, 9000, generator=drawn), torch.randn(7, 9000, generator=drawn).exp()
    found = []
    for parameters in (torch.full((), 0.3), torch.full((7, 1), 0.3), torch.full((9000,), 0.3)):
        given = (grad, x, parameters.double(), torch.zeros_like(parameters).double(), -8, 7, None, 0.0, False)
        found.append([t.tolist() for t in on_cuda("quantize_dequantize_backward", *given, False, True, True)[1:]])
        with monkeypatch.context() as patch:
            few_blocks(patch)
            again = on_cuda("quantize_dequantize_backward", *given, False, True, True)
        assert [t.tolist() for t in again[1:]] == found[-1]
    kernels_ = [launched.kernel for launched in stand_in.launched]
    assert kernels_ == ["rows", "combine"] * 4 + ["columns"] * 2


@pytest.mark.parametrize(
    ("shape", "parameters", "block"),
    [
        ((2**20,), (), None),
        ((64, 2**14), (64, 1), None),
        ((2**14, 64), (64,), None),
        ((32, 16, 2**10), (16, 1), None),
        ((256, 256), (8, 8), (32, 32)),
    ],
)
def test_a_gradient_takes_two_launches_at_most(
    shape: tuple[int, ...],
    parameters: tuple[int, ...],
    block: tuple[int, ...] | None,
    on_cuda: OnCuda,
    stand_in: StandIn,
) -> None:
    x, scale = torch.ones(shape), torch.ones(parameters)
    on_cuda("quantize_dequantize_backward", x, x, scale, scale, -8, 7, block, 0.0, False, True, True, True)
    assert [launched.kernel for launched in stand_in.launched][1:] in ([], ["combine"])
    assert stand_in.faults == {}


def test_sums_do_not_depend_on_places_in_memory(on_cuda: OnCuda, stand_in: StandIn) -> None:
    """Of numbers whose sums are not exact: with accesses of 16 bytes and of single elements, in one order."""
    drawn = torch.Generator().manual_seed(1)
    x, grad = torch.randn(5000, generator=drawn), torch.randn(5000, generator=drawn).exp()
    scale, zero_point = torch.tensor(0.3, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    found = []
    for at in range(4):
        moved = torch.empty(5010)[at : at + 5000].copy_(x)
        given = (grad, moved, scale, zero_point, -8, 7, None, 0.0, False, True, True, True)
        found.append([t.tolist() for t in on_cuda("quantize_dequantize_backward", *given)[1:]])
    assert found == found[:1] * 4
    assert len({launched.grid for launched in stand_in.launched}) <= 2


@pytest.mark.parametrize("program", PROGRAMS, ids="-".join)
def test_only_what_is_written(program: tuple[str, str, str, str]) -> None:
    """Known instructions alone, which round to nearest; a division where one is written, and none fused."""
    found = kernels(nvrtc_compiled(programs.backward(*program), "compute_90")[0])
    assert sorted(found) == ["columns", "combine", "rows"]
    for kernel in found.values():
        translated(kernel)
        counts = Counter(opcode.split(".")[0] for opcode in kernel.opcodes if ".rn.f" in opcode)
        assert counts["fma"] == 0
        assert (counts["div"] > 0) == (program[0] != "Dequantize" and kernel.name != "combine")
        assert not any(".local" in opcode for opcode in kernel.opcodes)
        assert any(".shared" in opcode for opcode in kernel.opcodes) == (kernel.name != "columns")
    accesses = [a for a in map(memory, found["rows"].opcodes) if a and a[1] not in {"param", "shared"}]
    sizes = Counter((what, count * int(kind[1:]) // 8) for what, _, count, kind in accesses)
    alike = programs_alike(program)
    assert (sizes["ld", 16], sizes["st", 16]) == ((2, 1) if alike else (0, 0))


def programs_alike(program: tuple[str, str, str, str]) -> bool:
    sizes = {"F32": 4, "BF16": 2, "F16": 2, "I8": 1}
    return sizes[program[1]] == sizes[program[2]]


# One thing changed in the kernels, what was there, and what is in its place.
_CU = "cuda/backward.cu"
MUTANTS = (
    (_CU, "double ds = -0.0, d_o = -0.0;", "double ds = 0.0, d_o = 0.0;"),
    (_CU, "if (to.low) reinterpret_cast<double*>(to.low)[at] = ds;", "reinterpret_cast<double*>(to.low)[at] = ds;"),
    (_CU, "sums.ds += static_cast<double>(terms.ds);", "sums.ds -= static_cast<double>(terms.ds);"),
    (_CU, "sums.d_o += static_cast<double>(terms.d_o);", "sums.d_o = static_cast<double>(terms.d_o);"),
    (_CU, "parameter, low, high,\n", "parameter, low, C(0),\n"),
    (_CU, "return stored<kGradient, kIn>(terms, g);", "return terms.inside ? g : X(1);"),
    (_CU, "job.x_len == 1 && job.g_len == 1", "job.x_len == 1"),
    (_CU, "job.dx && aligned(x)", "aligned(x)"),
    (_CU, "aligned(g) && aligned(dx)", "aligned(dx)"),
    (_CU, "i += threads * kTogether", "i += kTogether"),
    (_CU, "r += job.row_shares", "r += 1"),
    ("cuda/shares.h", "if (row < all)", "if (true)"),
    (_CU, "whole && i + kTogether <= job.len", "whole && i <= job.len"),
    (_CU, "k < i + kTogether && k < job.len", "k < i + kTogether"),
    (_CU, "g[k * job.g_len]", "g[k]"),
    (_CU, "if (job.dx) dx[k * job.dx_len] = to;", "if (job.dx) dx[k] = to;"),
    (_CU, "at(job.o_step, job.o_len)", "at(job.s_step, job.s_len)"),
    (_CU, "i = share; i < job.reduced", "i = 0; i < job.reduced"),
    (_CU, "g[along(job.g_step, i)]", "g[along(job.x_step, i)]"),
    (_CU, "dx[along(job.dx_step, i)] = to", "dx[along(job.x_step, i)] = to"),
    (_CU, "+ c * job.out_step : y", ": y"),
    (_CU, "ds += other.ds;", "ds = other.ds;"),
    *OF_SHARES,
)


@pytest.mark.usefixtures("two_blocks")
@pytest.mark.parametrize(("file", "old", "new"), sampled(MUTANTS))
def test_mutants_are_caught(
    file: str, old: str, new: str, stand_in: StandIn, on_cuda: OnCuda, mutated: Callable[..., None]
) -> None:
    kind = KINDS[0]
    mutated(programs.backward(*kind.program), file, old, new)
    assert next(wrong(kind, stand_in, on_cuda), "")
