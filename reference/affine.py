"""What affine views of several systems share: parameters for every element, the axis of blocks, a dtype for codes."""

from collections.abc import Sequence

import numpy as np

from halfeven.reference.blocks import Array, BlockSize, Shape, per_element
from halfeven.reference.grid import Grid

__all__ = ["channel_of", "held", "no_blocks", "spread"]


def spread(parameter: Array, shape: Shape, block_size: BlockSize | None) -> Array:
    """The parameter of every element; as it is where there are no blocks."""
    if block_size is None:
        return parameter
    return np.array(np.broadcast_to(per_element(parameter, shape, block_size), shape))


def no_blocks(block_size: BlockSize | None) -> None:
    """For a function that takes one scale.

    Raises:
        ValueError: there are blocks.
    """
    if block_size is not None:
        msg = f"block_size={block_size} is not accepted: the function takes one scale"
        raise ValueError(msg)


def channel_of(block_size: BlockSize | None, shape: Shape, parameters: int) -> int:
    """The axis, where every block is one slice along it; the last such axis.

    Raises:
        ValueError: there are no blocks, or others; or of an empty tensor not ``parameters``, one per index.
    """
    if block_size is not None:
        whole = [b >= n for b, n in zip(block_size, shape, strict=True)]
        for axis in reversed(range(len(shape))):
            if block_size[axis] == 1 and shape[axis] == parameters and all(w for d, w in enumerate(whole) if d != axis):
                return axis
    msg = f"block_size={block_size} of shape {shape} is not accepted: the function takes one scale per channel"
    raise ValueError(msg)


def held(grid: Grid, among: Sequence[str]) -> str:
    """The first of the integer dtypes ``among`` that holds every code, of those without a sign where no code has one.

    Raises:
        ValueError: none does.
    """
    for name in sorted(among, key=lambda name: name.startswith("u") != (grid.qmin >= 0)):
        if np.iinfo(name).min <= grid.qmin and grid.qmax <= np.iinfo(name).max:
            return name
    msg = f"grid {grid} is not accepted: give one that {' or '.join(among)} holds"
    raise ValueError(msg)
