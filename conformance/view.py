"""A function with a document's own arguments, seen as an operation on a grid, for which boundaries can be built."""

from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from halfeven.conformance.arrays import from_backend, to_torch
from halfeven.conformance.backends.protocol import ArrayKind, Unsupported
from halfeven.conformance.configuration import DTYPES, Array, Granularity
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize
from halfeven.reference.catalogue import AffineView

__all__ = ["granularities", "operation"]

_GRID = Grid(-128, 127)


def operation(fn: Callable[..., Any], view: AffineView, array: ArrayKind) -> Callable[..., Any]:
    """``fn`` as the operation of its view: a method as backends have them, for arrays of the kind ``array``.

    It raises Unsupported for what the document has no arguments for.
    """

    def call(*arrays: Any, qmin: int, qmax: int, block_size: BlockSize | None = None, dtype: Any = "float32") -> Any:
        x, scale, *zero = map(from_backend, arrays)
        reals = DTYPES[str(dtype).removeprefix("torch.")]
        try:
            given = view.arguments(x, scale, *(zero or [np.zeros_like(scale)]), Grid(qmin, qmax), block_size, reals)
        except ValueError as reason:
            raise Unsupported(str(reason)) from None
        found = view.result(fn(**{name: _handed(value, array) for name, value in given.items()}))
        below_a_byte = isinstance(found, np.ndarray) and found.dtype.name.startswith(("int", "uint"))
        return found.astype(np.int32) if below_a_byte and found.dtype.kind == "V" else found

    return call


def granularities(view: AffineView) -> tuple[Granularity, ...]:
    """What may share a scale, as far as the document has arguments for it."""
    every: tuple[Granularity, ...] = get_args(Granularity)
    whole = _accepts(view, np.ones(()), None)
    blocks = _accepts(view, np.ones((1, 3)), (2, 1))
    return tuple(g for g in every if (whole if g == "tensor" else blocks))


def _accepts(view: AffineView, scale: Array, block_size: BlockSize | None) -> bool:
    x = np.zeros((2, 3), np.int8 if view.operation == "dequantize" else np.float32)
    try:
        zero = np.zeros(scale.shape, np.int32)
        view.arguments(x, scale.astype(np.float32), zero, _GRID, block_size, np.dtype(np.float32))
    except ValueError:
        return False
    return True


def _handed(value: Any, array: ArrayKind) -> Any:
    if not isinstance(value, np.ndarray) or array == "numpy":
        return value
    try:
        return to_torch(value)
    except TypeError:  # such as int4
        msg = f"torch has no tensor of {value.dtype}"
        raise Unsupported(msg) from None
