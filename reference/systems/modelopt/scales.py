"""Scales of a tensor, of each index of an axis or of each block, as ModelOpt's quantized tensors have them."""

from typing import Any

import numpy as np

from halfeven.reference.behaviour import choice
from halfeven.reference.blocks import Array, Shape

__all__ = ["counts", "largest", "only_axes", "quotients", "spread"]


def quotients() -> Any:
    """A choice of the dtype of scale and quotient."""
    return choice({
        "input": "computes scale and quotient in the input's dtype",
        "float32": "computes scale and quotient in float32",
    })  # fmt: skip


def only_axes() -> Any:
    """A choice of what a tensor of one axis has, where scales are those of that axis."""
    return choice({
        "indices": "gives each index of the only axis a scale",
        "tensor": "gives a tensor of one axis one scale",
    })  # fmt: skip


def counts(shape: Shape, block_sizes: Shape) -> Shape:
    """How many blocks there are in each dimension."""
    return tuple(-(-n // size) for n, size in zip(shape, block_sizes, strict=True))


def largest(x: Array, axis: int | None, block_sizes: Shape | None, alone: str = "indices") -> Array:
    """The largest magnitude of the tensor, of each index of an axis, or of each block; ``alone``: of ``only_axes``."""
    magnitude = np.abs(x)
    if block_sizes:
        for dim, size in enumerate(block_sizes):
            starts = np.arange(0, x.shape[dim], size)
            magnitude = np.maximum.reduceat(magnitude, starts, axis=dim)
        return magnitude
    if axis is None or (x.ndim == 1 and alone == "tensor"):
        return np.asarray(np.max(magnitude))
    others = tuple(dim for dim in range(x.ndim) if dim != axis % x.ndim)
    found = np.max(magnitude, axis=others, keepdims=True)
    return np.asarray(found.reshape(()) if found.size == 1 else found)


def spread(s: Array, shape: Shape, block_sizes: Shape) -> Array:
    """Each scale repeated over its block."""
    for dim, (n, size) in enumerate(zip(shape, block_sizes, strict=True)):
        s = np.repeat(s, size, axis=dim).take(range(n), axis=dim)
    return s
