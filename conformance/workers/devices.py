"""A device of torch's, as a worker in the backend's process uses it: memory goes there whole, results are awaited."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from halfeven.conformance.arrays import from_backend, to_torch
from halfeven.conformance.engine.memory import POISONS, Array

__all__ = ["Device", "NoDevice", "device_of"]

_GUARD = 64
_SMALL = 1 << 20  # bytes of a result that is looked at twice


class NoDevice(Exception):  # noqa: N818 - it says what is not there
    """Tensors cannot be put on the device, or land on another one."""


class Device:
    """One device."""

    def __init__(self, name: str) -> None:
        """``name`` is torch's, such as ``cuda:1``."""
        self.torch = torch.device(name)
        self.type = self.torch.type
        self._module: Any = getattr(torch, self.type, None)

    def lend(self, memory: Array, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """A copy of ``memory`` there, between guards: the whole of it in bytes, and the part that is ``memory``.

        Raises:
            NoDevice: it cannot be, or is elsewhere.
        """
        sent = np.full(memory.nbytes + 2 * _GUARD, POISONS[0], np.uint8)
        sent[_GUARD : _GUARD + memory.nbytes] = np.ascontiguousarray(memory).view(np.uint8)
        try:
            there = to_torch(sent).to(self.torch, copy=True)
        except Exception as error:  # noqa: BLE001 - each device of torch's says it in its own way
            msg = f"the device {self.torch} is not there: {f'{error}':.200}"
            raise NoDevice(msg) from None
        if there.device.type != self.type:
            msg = f"a tensor put on {self.torch} is on {there.device}"
            raise NoDevice(msg)
        return there, there[_GUARD : _GUARD + memory.nbytes].view(dtype)

    def poison(self, value: int, sizes: list[int]) -> None:
        """Write and free memory there."""
        held = [torch.full((size,), value, dtype=torch.uint8, device=self.torch) for size in sizes]
        del held

    def synchronize(self) -> None:
        """Wait until all that was asked of the device is done; an error of it surfaces here."""
        wait = getattr(self._module, "synchronize", None)
        if wait is not None:
            wait()

    def settled(self, value: Any, *, given: bool) -> Iterator[str]:
        """Wait for what was returned, and say where it is amiss; ``given`` where the call was given tensors."""
        tensors = [*_tensors(value)]
        early = [_seen(t) if self._is_here(t) and _bytes(t) <= _SMALL else None for t in tensors]
        self.synchronize()
        for tensor, before in zip(tensors, early, strict=True):
            if given and not self._is_here(tensor):
                yield f"wrong device: the result is on {tensor.device}, its arguments were on {self.type}"
                return
            if before is not None and before != _seen(tensor):
                yield "not synchronized: the result changed after the call had returned"
                return

    def _is_here(self, tensor: torch.Tensor) -> bool:
        return tensor.device.type == self.type

    def words(self) -> str:
        """Its name, its hardware, capability and driver, as far as torch tells."""
        said = [_said(self._module, name, self.torch) for name in ("get_device_name", "get_device_capability")]
        facts = [said[0], f"capability {said[1]}" if said[1] else "", *_DRIVERS.get(self.type, list)()]
        told = ", ".join(fact for fact in facts if fact)
        return f"{self.torch} ({told})" if told else f"{self.torch}"


def device_of(array: str, name: str) -> Device | None:
    """The device of torch's that a backend computes on; None for the CPU, NumPy's arrays and names of others."""
    try:
        return None if array != "torch" or torch.device(name).type in {"cpu", "meta"} else Device(name)
    except RuntimeError:  # a vendor's own word, whose adapter takes tensors of the CPU
        return None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    match value:
        case torch.Tensor():
            yield value
        case dict():
            for inner in value.values():
                yield from _tensors(inner)
        case tuple() | list():
            for inner in value:
                yield from _tensors(inner)


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _seen(tensor: torch.Tensor) -> bytes | None:
    try:
        return from_backend(tensor).tobytes()
    except Exception:  # noqa: BLE001 - a tensor without an array is for the judge
        return None


def _said(module: Any, name: str, device: torch.device) -> str:
    try:
        found = getattr(module, name)(device)
    except Exception:  # noqa: BLE001 - each device of torch's tells what it likes
        return ""
    return ".".join(map(str, found)) if isinstance(found, tuple) else str(found)


def _cuda() -> list[str]:
    """The driver, where NVIDIA's library is there, and the CUDA that torch was built with."""
    import ctypes  # noqa: PLC0415 - for this alone

    driver = ctypes.create_string_buffer(80)
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        library.nvmlInit_v2()
        library.nvmlSystemGetDriverVersion(driver, len(driver))
        library.nvmlShutdown()
    except (OSError, AttributeError):
        pass
    name = driver.value.decode(errors="replace")
    return [f"driver {name}" if name else "", f"CUDA {torch.version.cuda}" if torch.version.cuda else ""]


_DRIVERS = {"cuda": _cuda}
