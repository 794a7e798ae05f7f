"""How the kernels behave among other work on a GPU: streams, graphs, waiting, several GPUs, and memory past 2^31."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gpu.places import CPU, same
from gpu.steps import CutError, Left, NotRunError

__all__ = ["PARTS", "Run"]

_SLEEP = 10**9  # cycles: about half a second
_MOST = 0.1  # seconds that a call may take while the GPU is busy for longer
_GRID = (-128, 127, None)
_HUGE = 2**31 + 2**20 + 3

Run = Callable[[Left], tuple[str, Any]]


def _operations(x: Tensor, grad: Tensor, s: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    """A result of each operator."""
    ops = torch.ops.halfeven
    q = ops.quantize.default(x, s, z, *_GRID, torch.int8, False)
    return (
        q,
        ops.quantize_dequantize.default(x, s, z, *_GRID, 0.0, False),
        ops.dequantize.default(q, s, z, None, None, None, False),
        ops.amax.default(x, None),
        *ops.aminmax.default(x, (1, x.shape[1])),
        ops.quantize_dequantize_backward.default(grad, x, s, z, *_GRID, 0.0, False, True, False, False)[0],
    )


def _given(device: str = "cpu", seed: int = 1) -> tuple[Tensor, ...]:
    drawn = torch.Generator().manual_seed(seed)
    x, grad = (torch.randn(512, 1024, generator=drawn) for _ in range(2))
    return tuple(t.to(device) for t in (x, grad, torch.tensor(0.03), torch.tensor(3.0)))


def _streams(_: Left) -> tuple[str, Any]:
    """A call sees what its own stream has done before, and is seen by what its stream does after it."""
    wanted, wrong = _operations(*_given()), []
    given = _given("cuda")
    _operations(*given)  # loads the kernels
    for i, stream in enumerate([torch.cuda.Stream() for _ in range(3)]):
        x = torch.zeros_like(given[0])
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(_SLEEP // 4)  # noqa: SLF001 - there is no other way to keep a stream busy
            x.copy_(given[0])
            found = tuple(t.clone() for t in _operations(x, *given[1:]))
        stream.synchronize()
        wrong += [f"stream {i}"] * (not same(found, wanted))
    return ", ".join(wrong), None


def _graphs(_: Left) -> tuple[str, Any]:
    """Captured once, and run on other numbers."""
    given = _given("cuda")
    _operations(*given)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = _operations(*given)
    wrong = []
    for seed in (2, 3):
        other = _given(seed=seed)
        for to, of in zip(given, other, strict=True):
            to.copy_(of)
        graph.replay()
        torch.cuda.synchronize()
        wrong += [f"numbers {seed}"] * (not same(found, _operations(*other)))
    return ", ".join(wrong), None


def _waits(_: Left) -> tuple[str, Any]:
    """Calls return while the GPU is still busy with what came before them."""
    given = _given("cuda")
    for _ in range(2):  # so that torch has memory for the results, and need not ask for it
        kept = _operations(*given)
        del kept
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        start = time.perf_counter()
        torch.cuda._sleep(_SLEEP)  # noqa: SLF001
        _operations(*given)
        took = time.perf_counter() - start
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    whole = time.perf_counter() - start
    if whole < 2 * _MOST:
        msg = f"the GPU was busy for {whole:.2f} s only"
        raise NotRunError(msg)
    return (f"the calls took {took:.2f} s of the {whole:.2f} s" if took > _MOST else ""), round(took * 1e6)


def _devices(_: Left) -> tuple[str, Any]:
    """On a GPU that is not the current one."""
    if torch.cuda.device_count() == 1:
        msg = "there is one GPU alone"
        raise NotRunError(msg)
    found = _operations(*_given("cuda:1"))
    wrong = "" if same(found, _operations(*_given())) else "cuda:1 differs"
    return wrong or ("" if torch.cuda.current_device() == 0 else "the current GPU is another now"), None


def _huge(left: Left) -> tuple[str, Any]:
    """More than 2^31 elements, compared with the CPU a part at a time."""
    free, _ = torch.cuda.mem_get_info()
    if free < 4 * _HUGE:
        msg = f"{free / 2**30:.0f} GiB are free, and {4 * _HUGE / 2**30:.0f} are needed"
        raise NotRunError(msg)
    s, z, ops, at_once = torch.tensor(0.03), torch.tensor(3.0), torch.ops.halfeven, 2**26
    x = torch.randn(_HUGE, dtype=torch.bfloat16, device="cuda")
    wrong = []
    q = ops.quantize.default(x, s.cuda(), z.cuda(), *_GRID, torch.int8, False)
    low, high = ops.aminmax.default(x, None)
    if (low, high) != tuple(f(x) for f in (torch.amin, torch.amax)):
        wrong.append("aminmax")
    for start in range(0, _HUGE, at_once):
        if left() <= 0:
            raise CutError
        part = slice(start, start + at_once)
        if not torch.equal(q[part].cpu(), CPU.call("quantize", x[part].cpu(), s, z, *_GRID, torch.int8, False)):
            wrong.append(f"quantize from {start:,} on")
    return ", ".join(wrong[:3]), _HUGE


#: Names, what runs, and whether a machine may lack what it needs.
PARTS: tuple[tuple[str, Run, bool], ...] = (
    ("streams", _streams, False),
    ("graphs", _graphs, False),
    ("waits for nothing", _waits, False),
    ("more than 2^31 elements", _huge, True),
    ("a second GPU", _devices, True),
)
