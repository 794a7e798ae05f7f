"""Arrays at the seam: NumPy to torch and back bit for bit, and memory layouts."""

from typing import Any

import ml_dtypes
import numpy as np
import torch

from halfeven.conformance.configuration import Layout
from halfeven.reference.blocks import Array, Shape

__all__ = [
    "arrange",
    "from_backend",
    "layouts",
    "to_torch",
]

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
        plain = value.detach().as_subclass(torch.Tensor).resolve_neg().resolve_conj()
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


def layouts(shape: Shape) -> list[Layout]:
    """The layouts that differ from contiguous for a tensor of ``shape``."""
    found: list[Layout] = ["strided", "offset"] if shape else ["offset"]
    if len(shape) > 1:
        found.append("transposed")
    if len(shape) == 4:  # noqa: PLR2004 - channels-last is defined for N, C, H, W
        found.append("channels-last")
    if any(n > 1 for n in shape):
        found.append("expanded")
    return found


def arrange(a: Array, layout: Layout) -> Array:
    """A copy of ``a`` in another memory layout; for ``expanded`` the last dimension above 1 repeats its first."""
    match layout:
        case "contiguous":
            return np.array(a, order="C")
        case "transposed":
            return np.array(a.T, order="C").T
        case "strided":
            wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
            wide[..., ::2] = a
            return wide[..., ::2]
        case "offset":
            flat = np.zeros(a.size + 1, a.dtype)
            flat[1:] = a.ravel()
            return flat[1:].reshape(a.shape)
        case "channels-last":
            return np.array(a.transpose(0, 2, 3, 1), order="C").transpose(0, 3, 1, 2)
        case "expanded":
            d = max(i for i, n in enumerate(a.shape) if n > 1)
            first = np.ascontiguousarray(np.take(a, [0], axis=d))
            strides = tuple(0 if i == d else s for i, s in enumerate(first.strides))
            return np.lib.stride_tricks.as_strided(first, a.shape, strides)
