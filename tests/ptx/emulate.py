"""Kernels run on the CPU, over whole grids: what they wrote, and what they did that no kernel may do."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptx.parse import Kernel, kernels
from ptx.translate import prelude, translated

__all__ = ["FAULTS", "WHY_NOT", "Memory", "Module", "module", "placed"]

#: Why nothing can be run here, "" where it can.
WHY_NOT = "" if shutil.which("cc") else "there is no C compiler named cc"
# As prelude.h counts them.
FAULTS = (
    "misaligned accesses",
    "accesses outside the buffers",
    "writes to what is only read",
    "bytes written twice",
    "bytes that two threads touch, of which one writes",
    "floats made integers that hold them not",
    "divisions by zero",
    "barriers that some threads of a block do not come to",
)
_FLAGS = (
    "-std=gnu17",
    "-march=native",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fPIC",
    "-shared",
    "-w",
)


class _Buffer(ctypes.Structure):
    _fields_ = (
        ("low", ctypes.c_uint64),
        ("high", ctypes.c_uint64),
        ("writer", ctypes.c_void_p),
        ("reader", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class Memory:
    """What a kernel may touch: the bytes of an array, to be written or only read."""

    array: npt.NDArray[Any]
    written: bool = False


@dataclass(frozen=True)
class Module:
    """The kernels of a PTX text, compiled for this processor."""

    kernels: dict[str, Kernel]
    library: ctypes.CDLL

    @property
    def executed(self) -> int:
        """Instructions of all threads of all launches so far, where they are counted."""
        return ctypes.c_uint64.in_dll(self.library, "executed").value

    def launch(
        self, name: str, grid: Sequence[int], block: Sequence[int], parameter: bytes, memory: Sequence[Memory]
    ) -> dict[str, int]:
        """Run all threads, and say how often each fault was there; those that were not there are left out."""
        kernel = self.kernels[name]
        assert len(parameter) == kernel.size, f"{name} takes {kernel.size} bytes, not {len(parameter)}"
        assert np.prod(block) <= kernel.threads, f"{name} is made for {kernel.threads} threads in a block"
        shadows = [np.zeros((2, max(m.array.nbytes, 1)), np.uint32) if m.written else None for m in memory]
        buffers = (_Buffer * len(memory))()
        for buffer, m, shadow in zip(buffers, memory, shadows, strict=True):
            buffer.low = m.array.ctypes.data
            buffer.high = buffer.low + m.array.nbytes
            if shadow is not None:
                buffer.writer, buffer.reader = (row.ctypes.data for row in shadow)
        # A parameter stands where a struct of its kind may stand.
        given = placed(np.frombuffer(parameter, np.uint8))
        found = (ctypes.c_uint64 * len(FAULTS))()
        three = ctypes.c_uint32 * 3
        getattr(self.library, f"launch_{name}")(
            three(*grid), three(*block), ctypes.c_void_p(given.ctypes.data), len(parameter), buffers, len(memory), found
        )
        return {fault: n for fault, n in zip(FAULTS, found, strict=True) if n}


def module(text: str, *, optimized: bool = False, counted: bool = False) -> Module:
    """PTX as something to run.

    ``optimized`` is for long runs, and takes longer to make; ``counted`` counts instructions.

    Raises:
        RefusedError: the translator does not know all of it.
    """
    found = kernels(text)
    source = "\n".join([prelude(), *(translated(k, counted=counted) for k in found.values())])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "kernels.c").write_text(source, encoding="utf-8")
        command = [
            "cc",
            *_FLAGS,
            "-O1" if optimized else "-O0",
            str(path / "kernels.c"),
            "-o",
            str(path / "kernels.so"),
            "-lm",
        ]
        subprocess.run(command, check=True)
        return Module(found, ctypes.CDLL(str(path / "kernels.so")))


def placed(array: npt.NDArray[Any], offset: int = 0) -> npt.NDArray[Any]:
    """A copy whose first byte is ``offset`` bytes after a multiple of 16."""
    room = np.empty(array.nbytes + 32 + offset, np.uint8)
    start = -room.ctypes.data % 16 + offset
    found = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found
