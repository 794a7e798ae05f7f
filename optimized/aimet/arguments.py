"""What functions and quantizers of every kind are called with: tensors, and block sizes.

Block sizes are AIMET's: aligned at the last dimension, -1 for the size over the number of scales.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["Shape", "aligned_blocks", "concretize", "exact_blocks", "plain"]

Shape = Sequence[int]


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


def concretize(shape: Shape, scales: Shape, block_size: Shape) -> tuple[int, ...]:
    """Elements per block along each dimension of ``scales``, -1 resolved; nothing is said of whether they divide.

    A ``block_size`` shorter than ``scales`` is aligned at its end: in front of it a dimension with several scales
    has one element per scale, another one scale for all.

    Raises:
        ValueError: ``scales`` has more dimensions than ``shape``, or ``block_size`` more than ``scales``.
    """
    if len(shape) < len(scales):
        msg = f"scale of shape {tuple(scales)} is not accepted: a tensor of shape {tuple(shape)} has fewer dimensions"
        raise ValueError(msg)
    if len(scales) < len(block_size):
        msg = f"block_size={tuple(block_size)} is not accepted: a scale of shape {tuple(scales)} has fewer dimensions"
        raise ValueError(msg)
    missing = len(scales) - len(block_size)
    given = (*(1 if n > 1 else -1 for n in scales[:missing]), *block_size)
    own = shape[len(shape) - len(scales) :]
    return tuple(n // c if b == -1 else b for n, c, b in zip(own, scales, given, strict=True))


def exact_blocks(shape: Shape, scales: Shape, block_size: Shape, name: str = "block_size") -> tuple[int, ...]:
    """Elements per block along each dimension of ``scales``, which they divide into without a rest.

    Raises:
        RuntimeError: ``block_size`` has another length than ``scales``, or does not divide ``shape``.
        IndexError: ``scales`` has more dimensions than ``shape``.
    """
    if len(block_size) != len(scales):
        said = f"{name}={tuple(block_size)} is not accepted for a scale of shape {tuple(scales)}"
        msg = f"{said}: give {len(scales)} entries"
        raise RuntimeError(msg)
    if len(scales) > len(shape):
        msg = f"scale of shape {tuple(scales)} is not accepted: a tensor of shape {tuple(shape)} has fewer dimensions"
        raise IndexError(msg)
    own = shape[len(shape) - len(scales) :]
    if any(
        (n % c if c else n) if b == -1 else (b < 1 or b * c != n)
        for n, c, b in zip(own, scales, block_size, strict=True)
    ):
        msg = (
            f"{name}={tuple(block_size)} is not accepted for a scale of shape {tuple(scales)} and a tensor of shape "
            f"{tuple(shape)}: scales times block sizes make the tensor's last dimensions"
        )
        raise RuntimeError(msg)
    return tuple(n // max(c, 1) if b == -1 else int(b) for n, c, b in zip(own, scales, block_size, strict=True))


def aligned_blocks(shape: Shape, scales: Shape, blocks: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape of the scales and size of the blocks with one entry for every dimension of ``shape``.

    The dimensions in front of ``scales`` share a scale.
    """
    lead = shape[: len(shape) - len(scales)]
    return (*(min(n, 1) for n in lead), *scales), (*(max(n, 1) for n in lead), *(max(b, 1) for b in blocks))
