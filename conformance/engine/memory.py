"""Arrays as they lie in memory: one idea for layouts, guard elements, aliases and files. NumPy alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

__all__ = ["POISONS", "Array", "Strided", "plain", "strided"]

#: What memory is filled with that nobody is to read, one after the other.
POISONS = (0xA5, 0x5A)


@dataclass(frozen=True, eq=False)
class Strided:
    """A view into ``memory``, a contiguous vector; arrays that share it here share it wherever they are handed over.

    Attributes:
        memory: 1-d; what lies outside the view is nobody's to read or write.
        shape: of the view.
        strides: in elements, negative ones too.
        offset: of the view's first element, in elements.
    """

    memory: Array
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def view(self, memory: Array | None = None) -> Array:
        """The array, over its own memory or over a copy of it.

        >>> Strided(np.arange(6), (2, 3), (1, 2)).view().tolist()
        [[0, 2, 4], [1, 3, 5]]
        """
        lies = self.memory if memory is None else memory
        size = lies.itemsize
        steps = [s * size for s in self.strides]
        return np.ndarray(self.shape, lies.dtype, lies.view(np.uint8).data, self.offset * size, steps)

    @property
    def reach(self) -> tuple[int, int]:
        """The lowest and the highest element of the memory that the view has; meaningless where it has none."""
        ends = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        return self.offset + sum(min(e, 0) for e in ends), self.offset + sum(max(e, 0) for e in ends)

    @property
    def plain(self) -> bool:
        """Whether it is all of its memory, in order."""
        return self.memory.size == int(np.prod(self.shape)) and self.strides == _contiguous(self.shape)


def plain(a: Array) -> Strided:
    """The values in contiguous memory: the array's own, if that is."""
    a = np.asarray(a)
    return Strided(np.ascontiguousarray(a).reshape(-1), a.shape, _contiguous(a.shape))


def strided(a: Array) -> Strided:
    """The array with the memory it is a view of, where that is one vector of its dtype; else ``plain``."""
    base = a
    while isinstance(base.base, np.ndarray):
        base = base.base
    whole = base.flags.c_contiguous and base.dtype == a.dtype and a.size and base.flags.owndata
    if a.flags.c_contiguous or not whole or any(s % a.itemsize for s in a.strides):
        return plain(a)
    offset = a.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return Strided(base.reshape(-1), a.shape, tuple(s // a.itemsize for s in a.strides), offset // a.itemsize)


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= n
    return tuple(reversed(steps))
