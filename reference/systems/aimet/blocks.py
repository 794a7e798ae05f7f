"""AIMET: how parameters of shapes and blocks meet the elements of a tensor."""

import math

import numpy as np

from halfeven.reference.blocks import Array, BlockSize, Shape

__all__ = ["aligned_blocks", "grouped"]


def aligned_blocks(
    shape: Shape, scale: Array, offset: Array, block_size: BlockSize | None
) -> tuple[Array, Array, BlockSize | None]:
    """Scale, offset and block size with one entry for every dimension of a tensor of ``shape``, aligned at the last.

    Raises:
        RuntimeError: shapes or blocks that do not fit.
        IndexError: ``scale`` has more dimensions than the tensor.
    """
    if block_size is None:
        own = shape[len(shape) - scale.ndim :]
        if len(own) != scale.ndim or any(c not in {1, n} for c, n in zip(scale.shape, own, strict=True)):
            msg = f"scale of shape {scale.shape} is not accepted: give one that broadcasts to a tensor of shape {shape}"
            raise RuntimeError(msg)
        return scale, offset, None
    if len(block_size) != scale.ndim:
        msg = f"block_size={block_size} is not accepted for a scale of shape {scale.shape}: give {scale.ndim} entries"
        raise RuntimeError(msg)
    if (lead := len(shape) - scale.ndim) < 0:
        msg = (
            f"scale of shape {scale.shape} is not accepted for a tensor of shape {shape}: give {len(shape)} dimensions"
        )
        raise IndexError(msg)
    dimensions = list(zip(shape[lead:], scale.shape, block_size, strict=True))
    if any(n % c if b == -1 else b * c != n for n, c, b in dimensions):
        msg = (
            f"block_size={block_size} is not accepted for a scale of shape {scale.shape} "
            f"and a tensor of shape {shape}: give what makes, times the scales, the tensor's last dimensions"
        )
        raise RuntimeError(msg)
    sizes = tuple(n // c if b == -1 else b for n, c, b in dimensions)
    aligned = tuple(min(n, 1) for n in shape[:lead]) + scale.shape
    blocks = tuple(max(n, 1) for n in shape[:lead]) + sizes
    return np.broadcast_to(scale, aligned), np.broadcast_to(offset, aligned), blocks


def grouped(x: Array, shape: Shape, block_size: BlockSize | None = None, in_order: bool = False) -> Array:
    """The elements of ``x`` by the parameter that they share: one row per parameter of ``shape``.

    ``shape`` meets the last dimensions of ``x``; an entry of 1 shares along its dimension. Blocks: element j has the
    parameter floor(j / B), -1 is the dimension over the parameters along it, and leading entries may be left out.
    ``in_order``: the blocks need not fit the dimensions, and are filled in memory order.

    Raises:
        RuntimeError: ``shape`` or ``block_size`` does not fit ``x``.
        ValueError: ``block_size`` is longer than ``shape``, or ``shape`` with blocks longer than the shape of ``x``.
    """
    lead = x.ndim - len(shape)
    tail = x.shape[max(lead, 0) :]
    if block_size is not None and (lead < 0 or len(block_size) > len(shape)):
        most = f"give a shape of at most {x.ndim} entries, and no more block sizes"
        msg = f"shape={shape}, block_size={block_size} is not accepted for batches of shape {x.shape}: {most}"
        raise ValueError(msg)
    if block_size is None:
        sizes: tuple[int, ...] = tuple(1 if p == n else n for n, p in zip(tail, shape, strict=False))
        fits = all(p in {1, n} for n, p in zip(tail, shape, strict=False))
    else:
        left_out = tuple(1 if p > 1 else -1 for p in shape[: len(shape) - len(block_size)])
        given = zip(tail, shape, (*left_out, *block_size), strict=True)
        sizes = tuple(n // p if b == -1 else b for n, p, b in given)
        fits = all(b * p == n for n, p, b in zip(tail, shape, sizes, strict=True))
        if in_order:
            size = math.prod(shape) * math.prod(sizes)
            fits = size != 0 and x.size % size == 0
    if lead < 0 or not fits:
        msg = (
            f"shape={shape}, block_size={block_size} is not accepted for batches of shape {x.shape}: give what divides"
        )
        raise RuntimeError(msg)
    split = x.reshape(-1, *(n for pair in zip(shape, sizes, strict=True) for n in pair))
    parameters = tuple(range(1, split.ndim, 2))
    rows: Array = np.moveaxis(split, parameters, range(len(shape))).reshape(math.prod(shape), -1)
    return rows
