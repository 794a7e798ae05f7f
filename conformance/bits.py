"""Floats by their bits: in order, and so many steps apart. NumPy alone."""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.reference.blocks import Array

__all__ = ["ordered", "signed_bits", "step", "unordered"]

_INTEGER = {size: np.dtype(f"int{8 * size}") for size in (1, 2, 4, 8)}


def signed_bits(a: Array) -> Array:
    """The bit pattern of every element, as a signed integer of the same width."""
    return a.view(_INTEGER[a.dtype.itemsize])


def ordered(a: Array) -> Array:
    """Integers in the order of the floats: neighbours differ by one, and -0.0 comes with +0.0 at 0."""
    bits = signed_bits(a).astype(np.int64)
    return np.where(bits < 0, -(bits & np.int64(np.iinfo(_INTEGER[a.dtype.itemsize]).max)), bits)


def unordered(index: Array, dtype: np.dtype[Any]) -> Array:
    """The floats at ordered ``index``; past the infinities there is nothing, so the index is limited to them."""
    top = ordered(np.asarray(np.inf, dtype))
    integer = _INTEGER[dtype.itemsize]
    limited = np.clip(index, -top, top).astype(integer)
    sign = limited & np.asarray(np.iinfo(integer).min, integer)
    return np.asarray((np.abs(limited) | sign).view(dtype))


def step(a: Array, ulps: npt.ArrayLike) -> Array:
    """The float ``ulps`` neighbours above ``a`` (below for negative counts), broadcast."""
    return unordered(ordered(a) + np.asarray(ulps), a.dtype)
