"""The choice between implementations that AIMET offers. Here is one arithmetic, and nothing to choose."""

import contextlib
import sys
from collections.abc import Sequence
from types import ModuleType

from torch import Tensor

from halfeven.optimized.aimet.affine import functional

__all__ = ["dequantize", "get_backend", "quantize", "quantize_dequantize", "set_backend"]

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
    """This module, whose three functions take the ends of the grid by position."""
    return sys.modules[__name__]


def quantize(
    input: Tensor,  # noqa: A002 - the name that backends of AIMET have
    scale: Tensor,
    offset: Tensor,
    qmin: int,
    qmax: int,
    block_size: Sequence[int] | None = None,
) -> Tensor:
    """``affine.quantize`` of the grid ``qmin`` to ``qmax``, errors too."""
    return functional.quantize(input, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size)


def dequantize(
    input: Tensor,  # noqa: A002
    scale: Tensor,
    offset: Tensor,
    block_size: Sequence[int] | None = None,
) -> Tensor:
    """``affine.dequantize``, errors too."""
    return functional.dequantize(input, scale, offset, block_size)


def quantize_dequantize(
    input: Tensor,  # noqa: A002
    scale: Tensor,
    offset: Tensor,
    qmin: int,
    qmax: int,
    block_size: Sequence[int] | None = None,
    zero_point_shift: float = 0.0,
) -> Tensor:
    """``affine.quantize_dequantize`` of the grid ``qmin`` to ``qmax``, errors too."""
    return functional.quantize_dequantize(
        input, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size, zero_point_shift=zero_point_shift
    )
