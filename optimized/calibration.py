"""Ranges of tensors for choosing a scale: minimum and maximum, and greatest magnitude; per tensor, channel or block.

Common to the functions:

- ``x`` is float32, float64, float16 or bfloat16, of any shape with at least one element, of any strides, on any device.
- The result has ``x``'s dtype and as many dimensions as the parameters that ``affine`` takes for it: none per tensor;
  with ``axis`` those of ``x``, each of size 1 save that axis, so that it broadcasts to ``x``; with ``block_size``, B_d
  per dimension, ⌈n_d / B_d⌉ entries, the last block of which may be short.
- A NaN makes the result of its tensor, channel or block NaN. -0.0 is below +0.0.
- The bits do not depend on strides or on the number of threads. No gradient is recorded.

Each raises TypeError for an argument of a type or dtype that is not accepted, and ValueError for a value.
"""

from collections.abc import Sequence

from torch import Tensor

from halfeven.optimized import arguments, operators

__all__ = ["amax", "aminmax"]


def aminmax(x: Tensor, *, axis: int | None = None, block_size: Sequence[int] | None = None) -> tuple[Tensor, Tensor]:
    """Least and greatest element of ``x``.

    Args:
        x: the reals.
        axis: None, or the dimension whose indices are the channels, negative to count from the last.
        block_size: None, or the elements per block along each dimension; not with ``axis``.

    Returns:
        The minima and the maxima.

    Raises:
        TypeError: ``x`` is no strided tensor of an accepted dtype, ``axis`` no int, or ``block_size`` no sequence of
            ints.
        ValueError: ``x`` has no element or not that axis, ``block_size`` has another length than ``x`` has dimensions
            or an entry below 1, or both are given.
    """
    blocks = _blocks(x, axis, block_size)
    return operators.aminmax(x.detach(), blocks)


def amax(x: Tensor, *, axis: int | None = None, block_size: Sequence[int] | None = None) -> Tensor:
    """Greatest magnitude of ``x``, max(|x|).

    Args:
        x: as in ``aminmax``, and so the others and the errors.
        axis: the channels' dimension.
        block_size: elements per block.
    """
    blocks = _blocks(x, axis, block_size)
    return operators.amax(x.detach(), blocks)


def _blocks(x: Tensor, axis: int | None, block_size: Sequence[int] | None) -> Sequence[int] | None:
    """The arguments checked, and the blocks that they ask for."""
    arguments.check_reals("x", x)
    arguments.check_elements(x)
    if block_size is not None:
        if axis is not None:
            msg = f"axis={axis!r} and block_size={block_size!r} are not accepted: give one of them"
            raise ValueError(msg)
        arguments.check_block_size("x", block_size, x.shape)
        return block_size
    if axis is None:
        return None
    if isinstance(axis, bool) or not isinstance(axis, int):
        msg = f"axis={axis!r} is not accepted: give None or an int"
        raise TypeError(msg)
    if not -x.ndim <= axis < x.ndim:
        msg = f"axis={axis} is not accepted for x of shape {tuple(x.shape)}: give one from {-x.ndim} to {x.ndim - 1}"
        raise ValueError(msg)
    return [1 if d == axis % x.ndim else n for d, n in enumerate(x.shape)]
