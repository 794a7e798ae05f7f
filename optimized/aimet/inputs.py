"""What functions and quantizers of every kind are called with."""

from typing import Any

import torch
from torch import Tensor

__all__ = ["plain"]


def plain(name: str, value: Any) -> Tensor:
    """``value`` as a plain tensor, on the same memory and in the same graph.

    Raises:
        TypeError: it is no tensor.
    """
    if type(value) is Tensor or type(value) is torch.nn.Parameter:
        return value
    if not isinstance(value, Tensor):
        msg = f"{name}={value!r} is not accepted: give a torch.Tensor"
        raise TypeError(msg)
    # A subclass that only stands in for a tensor, such as a fake one, has no functions of its own.
    own = type(value).__torch_function__ is not torch._C._disabled_torch_function_impl  # noqa: SLF001
    return value.as_subclass(Tensor) if own else value
