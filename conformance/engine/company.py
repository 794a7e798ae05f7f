"""The same values in other company: what an implementation may look at before it does anything.

A path for what holds no NaN, for zeros, for what is sorted or all the same answers for the whole call, so that no value
by itself tells of it.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from halfeven.reference.blocks import Array
from halfeven.reference.profile import Operation

__all__ = ["TRAITS", "companies", "in_its_shape", "traits", "traits_of"]

_SAME = 33  # elements of a call that has one value: more than a vector's lanes, and a tail
_ALIKE = 8  # such calls, of values from the first to the last
_SPREAD = 4  # of so many elements one is no zero
_MOST = 0.5


def companies(x: Array) -> Iterator[tuple[str, Array]]:
    """Calls of finite floats, in one dimension, with what is peculiar to each in words.

    >>> for words, values in companies(np.float32([1.5, -0.5])):
    ...     print(words, values[:5])
    in ascending order [-0.5  1.5]
    in descending order [ 1.5 -0.5]
    without negative numbers [1.5]
    without positive numbers [-0.5]
    that begin with zero [ 0.   1.5 -0.5]
    that are mostly zero [0.  0.  0.  1.5 0. ]
    that end with NaN [ 1.5 -0.5  nan]
    that are mostly NaN [nan nan nan 1.5 nan]
    that end with +infinity [ 1.5 -0.5  inf]
    that end with -infinity [ 1.5 -0.5 -inf]
    of equal elements [1.5 1.5 1.5 1.5 1.5]
    of equal elements [-0.5 -0.5 -0.5 -0.5 -0.5]
    """
    with np.errstate(invalid="ignore"):  # a signalling NaN warns when it is cast
        x = x[np.isfinite(x.astype(np.float64)) & (x != 0)]
    if not x.size:
        return
    ascending = np.unique(x.astype(np.float64)).astype(x.dtype)
    yield "in ascending order", ascending
    yield "in descending order", ascending[::-1]
    for sign, words in ((1, "without negative numbers"), (-1, "without positive numbers")):
        if (some := x[np.sign(x.astype(np.float64)) == sign]).size:
            yield words, some
    yield "that begin with zero", np.concatenate([np.zeros(1, x.dtype), x])
    yield "that are mostly zero", _among(x, 0.0)
    yield "that end with NaN", np.append(x, np.array(np.nan, x.dtype))
    yield "that are mostly NaN", _among(x, np.nan)
    for words, end in (("+infinity", np.inf), ("-infinity", -np.inf)):
        yield f"that end with {words}", np.append(x, np.array(end, x.dtype))
    _, first = np.unique(x.astype(np.float64), return_index=True)
    distinct = x[np.sort(first)]
    for i in np.unique(np.linspace(0, distinct.size - 1, _ALIKE).astype(int)):
        yield "of equal elements", np.full(_SAME, distinct[i])


def in_its_shape(x: Array) -> Iterator[tuple[str, Array]]:
    """The same of finite numbers alone, in the shape of an array of floats: values are repeated where that has more.

    >>> [x.tolist() for words, x in in_its_shape(np.float32([[1.5, np.nan], [-0.5, 0]])) if "order" in words]
    [[[-0.5, -0.5], [1.5, 1.5]], [[1.5, 1.5], [-0.5, -0.5]]]
    """
    for words, values in companies(x.ravel()):
        found = np.resize(values, x.size).astype(np.float64)
        if np.isfinite(found).all():
            way = {"in ascending order": 1, "in descending order": -1}.get(words)
            found = found if way is None else np.sort(found)[::way]
            yield words, found.astype(x.dtype).reshape(x.shape)


def _is_sorted(x: Array, way: int, before: Callable[..., Any], least: int) -> bool:
    return bool(x.size >= least and before(x[::way][:-1], x[::way][1:]).all())


#: What a call may have as a whole, in words that follow "calls": whether its floats have it.
TRAITS: Mapping[str, Callable[[Array], Any]] = {
    "without NaN": lambda x: not np.isnan(x).any(),
    "that are mostly NaN": lambda x: np.isnan(x).mean() > _MOST,
    "of finite numbers alone": lambda x: np.isfinite(x).all(),
    "without infinities": lambda x: not np.isinf(x).any(),
    "without +infinity": lambda x: not (x == np.inf).any(),
    "without -infinity": lambda x: not (x == -np.inf).any(),
    "without negative numbers": lambda x: not (x < 0).any(),
    "without positive numbers": lambda x: not (x > 0).any(),
    "without zero": lambda x: not (x == 0).any(),
    "that begin with zero": lambda x: x[0] == 0,
    "that are mostly zero": lambda x: (x == 0).mean() > _MOST,
    **{
        f"in {order} order{words}{more}": partial(_is_sorted, way=way, before=before, least=least)
        for way, order in ((1, "ascending"), (-1, "descending"))
        for words, before in (("", np.less), (" or of equal elements", np.less_equal))
        for more, least in (("", 2), (", of 4 elements or more", 4))
    },
    "of equal elements": lambda x: (x == x[0]).all() and x.size > 1,
}


def traits(x: Array) -> tuple[str, ...]:
    """What the floats of a call, in order, have as a whole: names of ``TRAITS``.

    >>> traits(np.float32([-1, 0, np.inf]))
    ('without NaN', 'without -infinity', 'in ascending order', 'in ascending order or of equal elements')
    """
    with np.errstate(invalid="ignore"):
        flat = x.ravel().astype(np.float64)
    return tuple(words for words, has in TRAITS.items() if has(flat)) if flat.size else ()


def traits_of(operation: Operation, x: Array) -> tuple[str, ...]:
    """What a call of an operation has as a whole; codes that are dequantized are not looked at."""
    return () if operation == "dequantize" else traits(x)


def _among(x: Array, other: float) -> Array:
    found = np.full((x.size, _SPREAD), other, x.dtype)
    found[:, -1] = x
    return found.ravel()
