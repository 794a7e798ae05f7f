"""The time that a call on CUDA takes of the host, without a GPU: ``python benchmarks/host.py``.

The driver that it launches with returns at once, and memory of the CPU is taken for that of a GPU, so what is measured
is torch's way to the operator, the checks, the layout and the launch's arguments. Beside them stands ``copy_`` of 4,096
numbers on the CPU, in turns; it needs a C compiler.
"""

import ctypes
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

import halfeven.optimized.affine  # noqa: F401 - it registers the operators
from halfeven.optimized.kernels.cuda import driver, images, launcher

_ROUNDS, _CALLS = 60, 200
_CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)  # noqa: SLF001 - no other way without a GPU
#: What writes something; all others only return 0.
_WRITES = {"cuDevicePrimaryCtxRetain": "void**", "cuModuleLoadData": "void**", "cuModuleGetFunction": "void**"}


class _OneGpu(launcher.Torch):
    """As if all tensors were on one GPU."""

    def number(self, x: torch.Tensor) -> int:  # noqa: ARG002
        return 0

    def stream(self, device: int) -> int:  # noqa: ARG002
        return 1

    def gpu(self, device: int) -> launcher.Gpu:  # noqa: ARG002
        return launcher.Gpu("sm_90", 132)


def _nothing() -> ctypes.CDLL:
    """A driver that does nothing."""
    lines = [f"int {name}(){{return 0;}}" for name in driver._FUNCTIONS if name not in _WRITES]  # noqa: SLF001
    lines += [f"int {name}({kind} p){{*p=(void*)1;return 0;}}" for name, kind in _WRITES.items()]
    with tempfile.TemporaryDirectory(prefix="halfeven-host-") as folder:
        source, library = Path(folder, "nothing.c"), Path(folder, "nothing.so")
        source.write_text("\n".join(lines))
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)  # noqa: S603, S607
        return ctypes.CDLL(str(library))


def _calls() -> Mapping[str, Callable[[], Any]]:
    """What is timed, by its name."""
    x, scale, rows = torch.randn(64, 64), torch.tensor(0.1), torch.rand(64, 1) + 0.1
    codes, zeros = torch.empty(64, 64, dtype=torch.int8), torch.zeros(64, 1)
    op, none = torch.ops.halfeven, None
    settings = (-128, 127, none)
    return {
        "copy_": lambda: codes.copy_(x),
        "quantize out=, per tensor": lambda: op.quantize_out.default.redispatch(
            _CUDA, x, scale, none, *settings, False, codes
        ),
        "quantize out=, axis 0, zero points": lambda: op.quantize_out.default.redispatch(
            _CUDA, x, rows, zeros, *settings, False, codes
        ),
        "fake quantize, per tensor": lambda: op.quantize_dequantize.default.redispatch(
            _CUDA, x, scale, none, *settings, 0.0, False
        ),
        "dequantize, per tensor": lambda: op.dequantize.default.redispatch(
            _CUDA, codes, scale, none, none, none, none, False
        ),
    }


def main() -> None:
    """Print the table."""
    to = launcher.Launcher(driver.Driver(_nothing()), _OneGpu())
    launcher.ready = lambda: to  # type: ignore[assignment]
    images.image = lambda *_: b""  # type: ignore[assignment]
    calls = _calls()
    took: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(_ROUNDS + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(_CALLS):
                call()
            if turn:  # the first loads and lays out
                took[name].append((time.perf_counter() - start) / _CALLS * 1e6)
    for name, some in took.items():
        ratio = statistics.median(own / copy for own, copy in zip(some, took["copy_"], strict=True))
        print(f"{name:36} {statistics.median(some):6.1f} µs, least {min(some):5.1f}, {ratio:5.1f} of copy_")


if __name__ == "__main__":
    main()
