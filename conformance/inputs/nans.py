"""NaN of several bits: whoever moves bits about makes infinities or numbers of some of them."""

from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import Array

__all__ = ["nans"]


def nans(t: np.dtype[Any]) -> Array:
    """Eight NaN of a float dtype: the usual one, then of either sign those that carry most and least, also signals.

    >>> [hex(n) for n in nans(np.dtype(np.float16))[:4].view(np.uint16).tolist()]
    ['0x7e00', '0x7e01', '0x7c01', '0x7fff']
    """
    u = np.dtype(f"u{t.itemsize}")
    infinity = int(np.array(np.inf, t).view(u))
    sign = 1 << 8 * t.itemsize - 1
    quiet = infinity | 1 << int(ml_dtypes.finfo(t).nmant) - 1  # type: ignore[no-untyped-call]
    found = [quiet, quiet + 1, infinity + 1, sign - 1]
    return np.array([*found, *(sign | n for n in found)], u).view(t)
