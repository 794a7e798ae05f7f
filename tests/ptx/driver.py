"""A stand-in for the GPU's driver, whose launches run the emulation: memory of the CPU is taken for that of a GPU."""

import atexit
import ctypes
import functools
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from halfeven.optimized.kernels.cuda import launcher, nvrtc, programs
from ptx.emulate import Memory, Module, module

__all__ = ["Launched", "Pretended", "StandIn", "compiled", "differing", "emulated", "held", "library", "sampled"]

_Load = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_Find = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p)
_Run = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint64, ctypes.c_void_p
)


@functools.cache
def library() -> Path:
    """The shared library, compiled once."""
    folder = tempfile.mkdtemp(prefix="halfeven-driver-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "libcuda.so.1"
    source = Path(__file__).with_name("driver.c")
    subprocess.run(["cc", "-std=gnu17", "-O1", "-fPIC", "-shared", str(source), "-o", str(path)], check=True)
    return path


# Bound before a test puts something in its place.
compiled = functools.cache(nvrtc.compiled)


@functools.cache
def emulated(ptx: str, *, counted: bool = False) -> Module:
    return module(ptx, counted=counted)


@dataclass(frozen=True)
class Launched:
    """What the driver was asked to launch."""

    device: int
    kernel: str
    grid: tuple[int, ...]
    threads: tuple[int, ...]
    stream: int


@dataclass
class Pretended(launcher.Torch):
    """What torch would know, if memory of the CPU were on GPU 0, and some of it on GPU 1."""

    architecture: str = "sm_90"
    processors: int = 1
    streams: tuple[int, int] = (7, 8)
    second: set[int] = field(default_factory=set)

    def number(self, x: torch.Tensor) -> int:
        return int(x.untyped_storage().data_ptr() in self.second)

    def stream(self, device: int) -> int:
        return self.streams[device]

    def gpu(self, device: int) -> launcher.Gpu:
        return launcher.Gpu(self.architecture, self.processors)


class StandIn:
    """The driver's library, and what the launches did."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(library()))
        self.images: dict[bytes, str] = {}
        self.loads: list[str] = []
        self.launched: list[Launched] = []
        self.faults: dict[str, int] = {}
        self.memory: list[Memory] = []
        #: Instructions of the launches, where ``counted`` was set before.
        self.executed, self.counted = 0, False
        self._functions: list[tuple[Module, str]] = []
        # They live as long as the library may call them.
        self._calls = (_Load(self._load), _Find(self._find), _Run(self._run))
        self.library.stand_in(*self._calls)

    def compiled(self, program: programs.Program, target: str, **given: Any) -> tuple[str, bytes]:
        """As NVRTC does, remembering of which PTX an image was made."""
        ptx, code = compiled(program, target)
        self.images[_named(code) if target.startswith("sm_") else ptx.encode()] = ptx
        return ptx, code

    def says(self, status: int = 0, capturing: int = 0) -> None:
        """What loads and launches answer from now on, and whether streams are being captured."""
        self.library.stand_in_says(status, capturing)

    def may_touch(self, read: Sequence[torch.Tensor | None], written: Sequence[torch.Tensor]) -> None:
        """The memory of the next launches: whole storages."""
        storages = {t.untyped_storage().data_ptr(): t for t in read if t is not None and t.numel()}
        to = {t.untyped_storage().data_ptr(): t for t in written if t.numel()}
        found = [Memory(held(t), written=at in to) for at, t in (storages | to).items()]
        # An empty array has no address to go by.
        self.memory = [m for m in found if m.array.nbytes]

    def _load(self, image: int) -> int:
        head = ctypes.string_at(image, 4)
        name = _named_at(image) if head == b"\x7fELF" else ctypes.string_at(image)
        if name not in self.images:
            return 0
        self.loads.append(self.images[name])
        return len(self.loads)

    def _find(self, module_: int, name: bytes) -> int:
        found = emulated(self.loads[module_ - 1], counted=self.counted)
        if name.decode() not in found.kernels:
            return 0
        self._functions.append((found, name.decode()))
        return len(self._functions)

    def _run(self, device: int, function: int, sizes: Any, stream: int, job: int) -> int:
        found, name = self._functions[function - 1]
        grid, threads = tuple(sizes[:3]), tuple(sizes[3:6])
        self.launched.append(Launched(device, name, grid, threads, stream))
        given = ctypes.string_at(job, found.kernels[name].size)
        before = found.executed
        for fault, n in found.launch(name, grid, threads, given, self.memory).items():
            self.faults[fault] = self.faults.get(fault, 0) + n
        self.executed += found.executed - before
        return 0


def held(t: torch.Tensor) -> npt.NDArray[Any]:
    """All bytes of a tensor's storage."""
    storage = t.untyped_storage()
    return np.ctypeslib.as_array((ctypes.c_uint8 * storage.nbytes()).from_address(storage.data_ptr()))


def _named(code: bytes) -> bytes:
    return code[: _elf_size(code[:64])]


def _named_at(image: int) -> bytes:
    return ctypes.string_at(image, _elf_size(ctypes.string_at(image, 64)))


def _elf_size(head: bytes) -> int:
    """Up to the end of the later of its two tables, which the header names."""
    of_programs, of_sections = struct.unpack_from("<QQ", head, 32)
    _, size, count, size_, count_ = struct.unpack_from("<HHHHH", head, 52)
    return int(max(of_programs + size * count, of_sections + size_ * count_))


def sampled(mutants: Sequence[tuple[str, ...]]) -> list[Any]:
    """Parameters of a test: every third, the others where that is asked for."""
    every = os.environ.get("HALFEVEN_EXHAUSTIVE") == "1"
    later = pytest.mark.skipif(not every, reason="opt-in: HALFEVEN_EXHAUSTIVE=1, a second each")
    return [pytest.param(*mutant, id=str(i), marks=[later] if i % 3 else []) for i, mutant in enumerate(mutants)]


def differing(found: torch.Tensor, wanted: torch.Tensor) -> int:
    """How many elements have other bits; NaN is one value."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[found.element_size()]
    same = found.contiguous().view(integers) == wanted.contiguous().view(integers)
    return int((~(same | (found.isnan() & wanted.isnan()))).sum())
