"""Kernels made ready for a GPU once, and started on torch's stream: what stands between operators and the driver."""

import ctypes
import functools
import logging
import os
import threading
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized.kernels.cuda import driver, images, nvrtc, programs

__all__ = ["Gpu", "Launcher", "Torch", "ready", "why_not"]

_VARIABLE, _ON, _OFF = "HALFEVEN_KERNELS", "cuda", "torch"
_Size = tuple[int, int, int]


@dataclass(frozen=True)
class Gpu:
    """A device: what to compile for, and how much it does at a time."""

    architecture: str
    processors: int


class Torch:
    """What torch knows of devices and streams."""

    def number(self, x: Tensor) -> int:
        """Of the device that a tensor is on."""
        return x.get_device()

    def stream(self, device: int) -> int:
        """The current stream of a device, as the driver names it."""
        found: int = torch._C._cuda_getCurrentRawStream(device)  # noqa: SLF001 - without an object for it
        return found

    def gpu(self, device: int) -> Gpu:
        """A device, asked of the driver once by torch.

        Raises:
            RuntimeError: the compiler does not serve it.
        """
        capability = torch.cuda.get_device_capability(device)
        processors = torch.cuda.get_device_properties(device).multi_processor_count
        return Gpu(images.architecture(capability), processors)


class Launcher:
    """Starts kernels on the GPUs of one machine. It waits for none, and allocates no memory but for their code."""

    def __init__(self, gpus: driver.Driver, torch_: Torch) -> None:
        """Of a driver, and of what torch knows."""
        self._driver, self._torch = gpus, torch_
        self._loaded: dict[tuple[int, programs.Program], dict[str, int]] = {}
        self._gpus: dict[int, Gpu] = {}
        self._loading = threading.Lock()
        #: What is known of calls by all but their addresses.
        self.plans: dict[Any, Any] = {}

    def device(self, x: Tensor) -> int:
        """The number of the device that a tensor is on."""
        return self._torch.number(x)

    def gpu(self, x: Tensor) -> Gpu:
        """The device that a tensor is on."""
        device = self._torch.number(x)
        if device not in self._gpus:
            self._gpus[device] = self._torch.gpu(device)
        return self._gpus[device]

    def start(
        self, program: programs.Program, x: Tensor, kernel: str, sizes: tuple[_Size, _Size], job: ctypes.Structure
    ) -> None:
        """Start a kernel of a program on the device of ``x``, with a grid of blocks of threads.

        Raises:
            RuntimeError: the program does not compile, the driver refuses it, or it is not loaded yet and cannot be
                now, since the stream is being captured for a graph.
        """
        device = self._torch.number(x)
        stream = self._torch.stream(device)
        functions = self._loaded.get((device, program)) or self._load(device, program, stream)
        self._driver.launch(device, functions[kernel], *sizes, stream, job)

    def _load(self, device: int, program: programs.Program, stream: int) -> dict[str, int]:
        with self._loading:
            if found := self._loaded.get((device, program)):
                return found
            if self._driver.capturing(stream):
                msg = f"{program} is not loaded yet, and cannot be while a graph is captured: call it once before"
                raise RuntimeError(msg)
            gpu = self._gpus.get(device) or self._torch.gpu(device)
            image = images.image(program, gpu.architecture)
            try:
                found = self._driver.functions(device, image, program.kernels)
            except RuntimeError as error:
                msg = f"{program} for {gpu.architecture}: {error}. {_VARIABLE}={_OFF} does without the kernels"
                raise RuntimeError(msg) from error
            self._loaded[device, program] = found
            return found


def why_not() -> str:
    """Why no kernels are launched on this machine, "" where they are."""
    if os.environ.get(_VARIABLE) != _ON:  # until they have run on a GPU
        return f"{_VARIABLE}={_ON} asks for the kernels, which have run on no GPU yet"
    return driver.why_missing() or nvrtc.why_missing()


@functools.cache
def ready() -> Launcher | None:
    """What launches kernels on this machine; None where torch operations run, logged once if kernels were asked for."""
    why = why_not()
    if not why:
        return Launcher(driver.loaded(), Torch())
    if os.environ.get(_VARIABLE) == _ON:
        logging.getLogger("halfeven").warning("halfeven's kernels of the GPU run in torch operations, slower: %s", why)
    return None
