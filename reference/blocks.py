"""Granularity: which elements share one scale. ``block_size`` counts elements per block along each dimension.

The parameter of element (j_0, ..., j_{D-1}) is the one at i_d = floor(j_d / B_d); a parameter array has
ceil(n_d / B_d) entries along dimension d. Per tensor, per channel, per token and per group are blocks.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
BlockSize = tuple[int, ...]

__all__ = [
    "Array",
    "BlockSize",
    "Shape",
    "parameter_shape",
    "per_channel",
    "per_element",
    "per_group",
    "per_tensor",
    "per_token",
]


def per_tensor(shape: Shape) -> BlockSize:
    """One block that holds the whole tensor."""
    return tuple(max(n, 1) for n in shape)


def per_channel(shape: Shape, axis: int) -> BlockSize:
    """One block per index along ``axis``, which may be negative.

    Raises:
        ValueError: ``axis`` is outside [-D, D).
    """
    d = _axis(axis, len(shape))
    return tuple(1 if i == d else max(n, 1) for i, n in enumerate(shape))


def per_token(shape: Shape) -> BlockSize:
    """One block per vector along the last dimension.

    Raises:
        ValueError: the tensor has no dimension.
    """
    d = _axis(-1, len(shape))
    return tuple(max(n, 1) if i == d else 1 for i, n in enumerate(shape))


def per_group(shape: Shape, group_size: int, axis: int = -1) -> BlockSize:
    """Blocks of ``group_size`` consecutive elements along ``axis``.

    Raises:
        ValueError: ``axis`` is outside [-D, D) or ``group_size`` is below 1.
    """
    d = _axis(axis, len(shape))
    block = tuple(group_size if i == d else 1 for i in range(len(shape)))
    parameter_shape(shape, block)
    return block


def parameter_shape(shape: Shape, block_size: BlockSize) -> Shape:
    """The shape of the scales of a tensor of ``shape``: ceil(n_d / B_d) along each dimension.

    Raises:
        ValueError: ``block_size`` has another length than ``shape``, or an entry below 1.
    """
    if len(block_size) != len(shape) or any(b < 1 for b in block_size):
        msg = f"block_size={block_size} is not accepted for shape {shape}: give {len(shape)} entries of 1 or more"
        raise ValueError(msg)
    return tuple(-(-n // b) for n, b in zip(shape, block_size, strict=True))


def per_element(parameter: Array, shape: Shape, block_size: BlockSize | None) -> Array:
    """``parameter`` as every element of a tensor of ``shape`` sees it.

    ``block_size`` None means that ``parameter`` broadcasts to ``shape`` as it is. The result has ``shape`` or
    broadcasts to it.

    Raises:
        ValueError: the parameter's shape does not fit.
    """
    if block_size is None:
        try:
            fits = np.broadcast_shapes(parameter.shape, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            msg = f"parameters of shape {parameter.shape} are not accepted: they do not broadcast to {shape}"
            raise ValueError(msg)
        return parameter
    expected = parameter_shape(shape, block_size)
    if parameter.ndim and parameter.shape != expected:
        msg = (
            f"parameters of shape {parameter.shape} are not accepted: "
            f"shape {shape} in blocks of {block_size} needs {expected}"
        )
        raise ValueError(msg)
    if not parameter.ndim:
        if any(n > 1 for n in expected):
            msg = f"a single parameter is not accepted: shape {shape} in blocks of {block_size} needs {expected}"
            raise ValueError(msg)
        return parameter
    if all(b == 1 or n == 1 for b, n in zip(block_size, expected, strict=True)):
        return parameter  # along each dimension one per element, or one for all
    return parameter[np.ix_(*(np.arange(n) // b for n, b in zip(shape, block_size, strict=True)))]


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        msg = f"axis={axis} is not accepted: give one in [{-rank}, {rank})"
        raise ValueError(msg)
    return axis % rank
