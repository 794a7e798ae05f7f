"""torchao's granularity: block sizes of a tensor, and the dimensions over which blocks are reduced."""

import numpy as np

from halfeven.reference.blocks import Array, BlockSize, Shape
from halfeven.reference.catalogue import Real, formula

__all__ = ["get_block_size", "get_reduction_params", "parameters", "per_element", "some"]


@formula(
    "torchao/get_reduction_params",
    equation=r"n_i \mapsto (n_i / b_i,\ b_i) \text{ where } 1 < b_i \ne n_i",
    basis=Real(),
    source="torchao.quantization.quant_primitives, the parameters of the reduction, with its example",
)
def get_reduction_params(block_size: BlockSize, input_size: Shape) -> tuple[Shape, tuple[int, ...]]:
    """The shape in which blocks have dimensions of their own, and those dimensions: the ones to reduce.

    Args:
        block_size: elements per block along each dimension; an entry below 1 stands for the whole one (measured).
        input_size: the tensor's shape.

    Raises:
        AssertionError: ``block_size`` is not as long as ``input_size``, or a block does not divide its dimension.
    """
    if len(block_size) != len(input_size):
        msg = f"block_size={block_size} is not accepted for shape {input_size}: give {len(input_size)} entries"
        raise AssertionError(msg)
    shape: list[int] = []
    reduced: list[int] = []
    for n, b in zip(input_size, block_size, strict=True):
        if b > 1 and b != n:
            if n % b != 0:
                msg = f"block_size={block_size} is not accepted: {b} does not divide {n} of shape {input_size}"
                raise AssertionError(msg)
            shape += [n // b, b]
            reduced.append(len(shape) - 1)
        else:
            shape.append(n)
            if b != 1:
                reduced.append(len(shape) - 1)
    return tuple(shape), tuple(reduced)


@formula(
    "torchao/get_block_size",
    equation=r"b_i \in \{1,\ g,\ n_i\}",
    basis=Real(),
    source="torchao.quantization.granularity and get_block_size; AffineQuantizedTensor, field block_size",
)
def get_block_size(
    input_shape: Shape,
    granularity: str,
    axis: int | None = None,
    dim: int = -1,
    group_size: int | None = None,
    block_size: BlockSize = (),
) -> BlockSize:
    """The block size of a granularity for a tensor of ``input_shape``.

    Args:
        input_shape: the tensor's shape.
        granularity: PerTensor, PerAxis (with ``axis``), PerToken, PerRow (``dim``), PerGroup (``group_size``) or
            PerBlock (``block_size``, which counts from the last dimension).
        axis: the dimension whose indices have one parameter each.
        dim: the dimension along which a row runs.
        group_size: consecutive elements of the last dimension.
        block_size: elements per block.

    Raises:
        AssertionError: groups or blocks do not divide the shape, or the block has more entries than it.
        TypeError: PerAxis without ``axis``, PerGroup without ``group_size``.
        ValueError: there is no such granularity.
    """
    ones = (1,) * len(input_shape)
    match granularity:
        case "PerTensor":
            return input_shape
        case "PerAxis" if axis is not None:
            return _with(input_shape, axis, 1)
        case "PerToken":
            return _with(ones, -1, input_shape[-1])
        case "PerRow":
            return _with(ones, dim, input_shape[dim])
        case "PerGroup" if group_size is not None:
            if input_shape[-1] % group_size != 0:
                msg = f"group_size={group_size} is not accepted: it does not divide {input_shape[-1]}"
                raise AssertionError(msg)
            return _with(ones, -1, group_size)
        case "PerAxis" | "PerGroup":
            msg = f"granularity={granularity!r} is not accepted without axis, or group_size: give an int"
            raise TypeError(msg)
        case "PerBlock":
            blocks = ones[len(block_size) :] + block_size
            if len(blocks) != len(input_shape) or any(n % b for n, b in zip(input_shape, blocks, strict=True)):
                msg = f"block_size={block_size} is not accepted: it does not divide shape {input_shape}"
                raise AssertionError(msg)
            return blocks
    msg = f"granularity={granularity!r} is not accepted: give PerTensor, PerAxis, PerToken, PerRow, PerGroup, PerBlock"
    raise ValueError(msg)


def parameters(shape: Shape, block_size: BlockSize) -> tuple[Shape, Shape]:
    """The shape in which blocks have dimensions of their own, and in it the shape of one parameter per block."""
    whole, reduced = get_reduction_params(block_size, shape)
    return whole, tuple(1 if d in reduced else n for d, n in enumerate(whole))


def per_element(name: str, parameter: Array | None, shape: Shape, block_size: BlockSize) -> Array:
    """``parameter``, of any shape with one entry per block, as every element of a tensor of ``shape`` sees it.

    Raises:
        AssertionError: as ``get_reduction_params``.
        RuntimeError: it has another number of entries.
        TypeError: there is none.
    """
    if parameter is None:
        msg = f"{name}=None is not accepted: give one per block"
        raise TypeError(msg)
    whole, kept = parameters(shape, block_size)
    if parameter.size != np.prod(kept, dtype=int):
        msg = f"{name} of shape {parameter.shape} is not accepted: shape {shape} in blocks {block_size} needs {kept}"
        raise RuntimeError(msg)
    return np.broadcast_to(parameter.reshape(kept), whole).reshape(shape)


def some(empty: str, parameter: Array | None) -> Array | None:
    """The parameter, or None where it has no entries and ``empty`` ones are refused."""
    return None if empty == "refused" and parameter is not None and not parameter.size else parameter


def _with(shape: Shape, index: int, value: int) -> Shape:
    entries = list(shape)
    entries[index] = value
    return tuple(entries)
