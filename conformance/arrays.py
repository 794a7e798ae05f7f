"""Arrays at the seam: NumPy to torch and back, bit for bit, on the CPU and on its devices."""

from typing import Any

import ml_dtypes
import numpy as np
import torch

from halfeven.conformance.engine.memory import Strided, strided
from halfeven.reference.blocks import Array

__all__ = ["as_it_lies", "from_backend", "placed", "to_torch"]

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_FLOAT8 = {
    np.dtype(getattr(ml_dtypes, name)): getattr(torch, name)
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
}


def to_torch(a: Array) -> torch.Tensor:
    """``a`` as a tensor over the same memory, with the same strides."""
    if a.dtype == _BFLOAT16:
        return torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)
    if a.dtype in _FLOAT8:
        return torch.from_numpy(a.view(np.uint8)).view(_FLOAT8[a.dtype])
    return torch.from_numpy(a)


def from_backend(value: Any) -> Array:
    """What a backend returned, as a NumPy array over the same memory where that can be.

    Raises:
        TypeError: it is neither a tensor nor an array.
    """
    if isinstance(value, torch.Tensor):
        plain = value.detach()
        if plain.device.type != "cpu":  # a subclass knows itself how to leave its device
            plain = plain.cpu()
        plain = plain.as_subclass(torch.Tensor).resolve_neg().resolve_conj()
        plain = plain.cpu() if plain.device.type != "cpu" else plain
        if plain.dtype == torch.bfloat16:
            return plain.view(torch.int16).numpy().view(_BFLOAT16)
        for dtype, theirs in _FLOAT8.items():
            if plain.dtype == theirs:
                return plain.view(torch.uint8).numpy().view(dtype)
        return plain.numpy()
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    msg = f"result of type {type(value).__name__} is not accepted: return a torch tensor or a NumPy array"
    raise TypeError(msg)


def as_it_lies(value: Any) -> Array:
    """The same, with the strides that a tensor has on its device; a plain copy would be contiguous.

    Raises:
        TypeError: it is neither a tensor nor an array.
    """
    if not isinstance(value, torch.Tensor) or value.device.type == "cpu" or not value.numel():
        return from_backend(value)
    length = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
    span = torch.as_strided(value.detach(), (length,), (1,), value.storage_offset())
    return Strided(from_backend(span), tuple(value.shape), value.stride()).view()


def placed(a: Array, device: torch.device) -> torch.Tensor:
    """``a`` as a tensor on a device of torch's, with the strides that it has.

    Raises:
        TypeError: torch has no tensor of its dtype.
    """
    if device.type == "cpu":
        return to_torch(a)
    lies = strided(a)
    return torch.as_strided(to_torch(lies.memory).to(device), lies.shape, lies.strides, lies.offset)
