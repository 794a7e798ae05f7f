"""Where a call is made: the same tensors, with the memory around them, on the CPU or on a GPU."""

from typing import Any, Protocol

import torch
from ptx.driver import differing
from torch import Tensor

from halfeven.optimized.kernels import chunked
from halfeven.optimized.kernels.cuda import driver, launcher, nvrtc, programs

__all__ = ["CPU", "Gpu", "Place", "memory", "same", "why_no_gpu", "why_no_kernels", "words"]


class Place(Protocol):
    """Takes tensors, and calls operators with them."""

    def take(self, t: Tensor) -> Tensor:
        """A copy of all memory of a tensor, and the tensor in it."""

    def call(self, name: str, *given: Any) -> Any:
        """What an operator gives."""


class _Cpu:
    def take(self, t: Tensor) -> Tensor:
        return _within(memory(t).clone(), t)

    def call(self, name: str, *given: Any) -> Any:
        return getattr(torch.ops.halfeven, name).default(*given)


CPU: Place = _Cpu()


class Gpu:
    """The current GPU of torch's; ``torch_path`` has torch operations run there instead of the kernels."""

    def __init__(self, device: str = "cuda", *, torch_path: bool = False) -> None:
        """Of torch's name for it."""
        self.device, self._torch_path = device, torch_path

    def take(self, t: Tensor) -> Tensor:
        """A copy there."""
        return _within(memory(t).to(self.device, copy=True), t)

    def call(self, name: str, *given: Any) -> Any:
        """By the kernels, or by torch operations."""
        if self._torch_path:
            return chunked.IMPLEMENTATIONS[name](*given)
        return getattr(torch.ops.halfeven, name).default(*given)


def memory(t: Tensor) -> Tensor:
    """All of a tensor's memory, with what is around it, as elements of its dtype."""
    whole = torch.empty(0, dtype=t.dtype, device=t.device).set_(t.untyped_storage())
    return whole.as_strided((t.untyped_storage().nbytes() // t.element_size(),), (1,), 0)


def _within(whole: Tensor, t: Tensor) -> Tensor:
    return whole.as_strided(t.shape, t.stride(), t.storage_offset())


def same(found: Any, wanted: Any) -> bool:
    """Whether tensors, or tuples of them, have the same bits, shapes and strides; NaN is one value."""
    if isinstance(wanted, tuple):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    alike = (found.dtype, found.shape, found.stride()) == (wanted.dtype, wanted.shape, wanted.stride())
    return alike and differing(found.cpu(), wanted.cpu()) == 0


def why_no_gpu() -> str:
    """Why nothing can be run on a GPU, "" where it can."""
    if not torch.cuda.is_available():
        built = f"a CUDA {torch.version.cuda}" if torch.version.cuda else "a CPU"
        return f"there is no GPU that torch can use (torch {torch.__version__}, {built} build)"
    return ""


def why_no_kernels() -> str:
    """Why torch operations would run there, "" where the kernels do."""
    return "" if launcher.ready() is not None else launcher.why_not()


def words() -> dict[str, Any]:
    """The GPU and the software: results of another are not these."""
    import hashlib  # noqa: PLC0415 - for this alone

    from halfeven.conformance.workers.devices import Device  # noqa: PLC0415 - for this alone

    texts = [*programs.headers().values(), *(p.text for p in _PROGRAMS)]
    return {
        "gpu": Device("cuda").words(),
        "torch": torch.__version__,
        "NVRTC": "none" if nvrtc.why_missing() else nvrtc.version(),
        "kernels": "none: " + driver.why_missing() if driver.why_missing() else "CUDA C++",
        "sources": hashlib.sha256("".join(texts).encode()).hexdigest()[:12],
    }


_PROGRAMS = (
    programs.forward("Quantize", "F32", "F32", "I8"),
    programs.backward("Quantize", "F32", "F32", "F32"),
    programs.reduce("F32", magnitudes=True),
)
