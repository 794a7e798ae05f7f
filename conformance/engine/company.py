"""The same values in other company: what an implementation may look at before it does anything.

A path for what holds no NaN, for zeros, for what is sorted or all the same answers for the whole call, so that no value
by itself tells of it.
"""

from collections.abc import Iterator

import numpy as np

from halfeven.reference.blocks import Array

__all__ = ["companies"]

_SAME = 33  # elements of a call that has one value: more than a vector's lanes, and a tail
_SPREAD = 4  # of so many elements one is no zero


def companies(x: Array, same: int = 4) -> Iterator[tuple[str, Array]]:
    """Calls of finite floats, in one dimension, with what is peculiar to each in words; ``same`` have one value only.

    >>> for words, values in companies(np.float32([1.5, -0.5]), same=1):
    ...     print(words, values[:5])
    in ascending order [-0.5  1.5]
    in descending order [ 1.5 -0.5]
    that begin with zero [ 0.   1.5 -0.5]
    that are mostly zero [ 0.   0.   0.   1.5  0. ]
    that end with NaN [ 1.5 -0.5  nan]
    that are mostly NaN [nan nan nan 1.5 nan]
    that end with infinity [ 1.5 -0.5  inf]
    that end with -infinity [ 1.5 -0.5 -inf]
    of equal elements [1.5 1.5 1.5 1.5 1.5]
    """
    x = x[np.isfinite(x.astype(np.float64)) & (x != 0)]
    if not x.size:
        return
    ascending = np.unique(x.astype(np.float64)).astype(x.dtype)
    yield "in ascending order", ascending
    yield "in descending order", ascending[::-1]
    yield "that begin with zero", np.concatenate([np.zeros(1, x.dtype), x])
    yield "that are mostly zero", _among(x, 0.0)
    yield "that end with NaN", np.append(x, np.array(np.nan, x.dtype))
    yield "that are mostly NaN", _among(x, np.nan)
    for words, end in (("infinity", np.inf), ("-infinity", -np.inf)):
        yield f"that end with {words}", np.append(x, np.array(end, x.dtype))
    for value in x[:same]:
        yield "of equal elements", np.full(_SAME, value)


def _among(x: Array, other: float) -> Array:
    found = np.full((x.size, _SPREAD), other, x.dtype)
    found[:, -1] = x
    return found.ravel()
