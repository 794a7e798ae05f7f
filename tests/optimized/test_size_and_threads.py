"""More than 2^31 elements or places, and several threads at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import Tensor

from halfeven.optimized import affine, kernels

GRID = {"qmin": -8, "qmax": 7}
BIG = 2**31 + 3


def available_gib() -> float:
    lines = Path("/proc/meminfo").read_text(encoding="ascii") if Path("/proc/meminfo").exists() else ""
    return next((int(line.split()[1]) / 2**20 for line in lines.splitlines() if line.startswith("MemAvailable")), 0.0)


def test_places_beyond_2_31() -> None:
    """A strided view of memory of which all but a few pages are never touched."""
    memory = torch.empty(3 * BIG, dtype=torch.int8)
    codes = memory.as_strided((3, 2), (BIG, 1))
    x = torch.tensor([[0.5, 1.5], [2.5, -3.5], [9.0, -9.0]])
    affine.quantize(x, 1.0, 1, dtype=torch.int8, out=codes, **GRID)
    assert codes.tolist() == [[1, 3], [3, -3], [7, -8]]
    assert affine.dequantize(codes, 1.0, 1).tolist() == [[0, 2], [2, -4], [6, -9]]


def test_more_elements_than_2_31() -> None:
    if not kernels.path().startswith("C++"):
        pytest.skip(f"the torch path takes a minute: {kernels.path()}")
    if available_gib() < 6:
        pytest.skip(f"{available_gib():.1f} GiB are free: the result takes 2, and the strided view tries the places")
    row = torch.tensor([0.5, 1.5, -20.0, 0.25], dtype=torch.bfloat16).repeat(1024)
    x = row.expand(2**19 + 1, 4096)
    assert x.numel() > 2**31
    codes = affine.quantize(x, 1.0, 0, dtype=torch.int8, **GRID)
    expected = torch.tensor([0, 2, -8, 0], dtype=torch.int8).repeat(1024)
    assert all(torch.equal(rows, expected.expand_as(rows)) for rows in codes.split(2**14))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layout", [(), (211, 1), (4096,)], ids=["tensor", "axis 0", "axis -1"])
def test_larger_than_the_caches_and_anywhere_in_memory(layout: tuple[int, ...], dtype: torch.dtype) -> None:
    """Such results are written past the caches, in lines of 64 bytes; those of 50 rows at a time are not."""
    kernels.past_caches(2**21)
    x = (torch.arange(211 * 4096) % 1031 * 0.05 - 25).to(dtype).view(211, 4096)
    x[100, 17], x[7, -1], x[-1, 4000] = torch.nan, torch.inf, -torch.inf
    scale = 0.1 + torch.arange(torch.Size(layout).numel()).view(layout) / 4096
    points = scale.mul(40).round()
    expected = torch.empty_like(x)
    for i in range(0, 211, 50):
        s, z = (p[i : i + 50] if len(layout) == 2 else p for p in (scale, points))
        expected[i : i + 50] = affine.quantize_dequantize(x[i : i + 50], s, z, qmin=-100, qmax=99)
    for before in (0, 1, 24):
        memory = torch.full((before + x.numel() + 64,), 77, dtype=dtype)
        out = memory[before : before + x.numel()].view_as(x)
        affine.quantize_dequantize(x, scale, points, qmin=-100, qmax=99, out=out)
        assert torch.equal(out.view(torch.int16), expected.view(torch.int16)), before
        around = torch.cat([memory[:before], memory[before + x.numel() :]])
        assert (around == 77).all()


def test_several_threads_at_once() -> None:
    inputs = torch.arange(-6.0, 6.0, 0.25).repeat(4096)
    scales = [torch.tensor(0.25 * k) for k in range(1, 9)]

    def codes(scale: Tensor) -> Tensor:
        rows = affine.quantize(inputs.view(-1, 48).T, scale, 3, dtype=torch.int8, **GRID)
        assert affine.quantize_dequantize(inputs, scale, 3, **GRID).shape == inputs.shape
        return rows

    alone = [codes(scale) for scale in scales]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert all(torch.equal(a, b) for a, b in zip(pool.map(codes, scales), alone, strict=True))
    assert not torch.equal(alone[0], alone[1])


def test_the_number_of_threads_changes_nothing() -> None:
    x = torch.arange(-6.0, 6.0, 2**-14).requires_grad_()
    scale = torch.tensor(0.3, requires_grad=True)
    found = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        y = affine.quantize_dequantize(x, scale, 1, **GRID)
        found.append((y.detach(), *torch.autograd.grad(y, (x, scale), x.detach().sin())))
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def cancelling(rows: int, length: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Gradients and inputs whose terms cancel in each row, so that a sum is what its order has rounded."""
    generator = torch.Generator().manual_seed(length)
    grad, x = (torch.randn(rows, length // 2, generator=generator) for _ in range(2))
    grad *= 2.0 ** torch.randint(0, 60, grad.shape, generator=generator)
    return torch.cat([grad, -grad.flip(1)], 1).to(dtype), torch.cat([x, x.flip(1)], 1).to(dtype)


@pytest.mark.skipif(len(kernels.available()) < 2, reason="there is one instruction set")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_instruction_set_changes_no_sum(dtype: torch.dtype) -> None:
    for rows, length, columns in (
        (7, 16, 0),
        (7, 32, 0),
        (7, 64, 0),
        (7, 100, 0),
        (5, 1030, 0),
        (67, 130, 1),
        (1100, 18, 1),
    ):
        grad, x = cancelling(rows, length, dtype)
        scale, points = torch.full((rows, 1), 0.011), 3.0 * torch.arange(rows)[:, None]
        tensors = [t.T.contiguous() if columns else t for t in (grad, x, scale, points)]
        found = []
        for isa in kernels.available():
            kernels.choose(isa)
            given = (*tensors, -128, 127, None, 0.0, False, True, True, True)
            found.append(torch.ops.halfeven.quantize_dequantize_backward.default(*given))
        for other in found[1:]:
            assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True)), (length, columns)
