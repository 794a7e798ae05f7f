"""The choice between implementations that AIMET offers. Here is one arithmetic, and nothing to choose."""

import contextlib
from types import ModuleType

from halfeven.optimized.aimet.affine.backends import torch_builtins

__all__ = ["get_backend", "set_backend"]

_NAMES = ("torch_builtins", "triton")


def set_backend(name: str) -> contextlib.AbstractContextManager[None]:
    """Accept the names that AIMET has, "torch_builtins" and "triton", and change nothing: the bits are the same.

    Returns:
        A context manager, which ends without effect too.

    Raises:
        RuntimeError: another name.
    """
    if name not in _NAMES:
        msg = f"name={name!r} is not accepted: give one of {', '.join(_NAMES)}"
        raise RuntimeError(msg)
    return contextlib.nullcontext()


def get_backend() -> ModuleType:
    """``torch_builtins``, whatever was set: its three functions take the ends of the grid by position."""
    return torch_builtins
