"""No NaN, and no infinity but by overflow, comes of finite numbers."""

from collections.abc import Callable, Iterator

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Place, Property, Shown, breach
from halfeven.conformance.properties.role import is_whole
from halfeven.reference.blocks import Array

__all__ = ["FINITE"]

_ROOM = 4  # a result may be so many times as large as what it is made of
_LARGEST = {"float16": 65504.0, "bfloat16": 2.0**127, "float32": 2.0**127, "float64": 2.0**1023}  # of others: 1


def _judge(first: Answered, _: Answered | None) -> Iterator[Breach]:
    for name in ("codes", "reals", "dx", "mask"):
        if name in first.leaves:
            values = first.leaves[name]
            finite = np.isfinite(values.astype(np.float64))
            yield breach(name, values, _judged(first, values), finite, lambda _: "a finite number", _shown(name))


def _shown(leaf: str) -> Callable[[int], Shown]:
    return lambda i: Shown({"actual": Place(leaf, i)}, "abs(actual) < math.inf", '"a finite number"')


def _judged(first: Answered, values: Array) -> Array:
    """Where everything that the value is made of is finite, and far from overflow in its dtype."""
    seen = first.seen
    whole = np.isfinite(seen.x) & seen.plain
    if seen.block is not None:  # what shares a scale shares its fate
        bad = np.unique(seen.block[~np.isfinite(seen.x)])
        whole &= ~np.isin(seen.block, bad)
    if is_whole(values.dtype):
        return whole
    limit = min(_LARGEST.get(d.name, 1.0) for d in (seen.dtype, values.dtype) if not is_whole(d)) / _ROOM
    size = np.abs(seen.x)
    if first.kind == "cast":  # beyond its largest number a narrow format has an infinity, or NaN
        return whole & (size <= (seen.most if seen.scale is None else np.minimum(seen.scale, seen.most)))
    if seen.scale is not None:
        zero = np.abs(seen.zero) if seen.zero is not None else 0
        ends = max(abs(seen.low or 0), abs(seen.high or 0)) or np.where(first.kind == "dequantize", size, 1)
        size = np.maximum(size, seen.scale * np.maximum(ends + zero, 1))
    if seen.gradient is not None:
        size = np.abs(seen.gradient) * np.maximum(1, 1 / (1 if seen.scale is None else seen.scale))
        whole &= np.isfinite(seen.gradient)
    return whole & (size < limit)


FINITE = Property(
    "finite",
    "What comes of finite numbers is finite: never NaN, and an infinity only where the result is beyond its dtype.",
    "gives NaN or an infinity for finite numbers",
    frozenset({"quantize", "fake_quantize", "dequantize", "cast", "blocks", "gradient"}),
    _judge,
)
