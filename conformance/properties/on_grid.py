"""Codes, and zero points that were chosen, are whole and on the grid."""

from collections.abc import Iterator

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Place, Property, Shown, breach
from halfeven.conformance.properties.role import is_whole, number

__all__ = ["ON_GRID"]


def _judge(first: Answered, _: Answered | None) -> Iterator[Breach]:
    seen = first.seen
    low, high = seen.low, seen.high
    if low is None or high is None or low > high:
        return
    name = next((n for n in ("codes", "zero") if n in first.leaves), None)
    if name is None:
        return
    values = first.leaves[name]
    q = values.astype(np.float64)
    if name == "codes":
        zero = np.zeros(1) if seen.zero is None else seen.zero
        judged = ~np.isnan(seen.x) & seen.plain & (np.rint(zero) == zero) & _held(low, high, values.dtype)
    else:
        judged = np.broadcast_to(np.isfinite(seen.x).all() & (low <= 0 <= high), q.shape)
    holds = (q >= low) & (q <= high) & (np.rint(q) == q)
    words = f"a whole number from {number(low)} to {number(high)}"
    ends = f"{float(low)!r} <= actual <= {float(high)!r} and actual == round(actual)"
    shown = lambda i: Shown({"actual": Place(name, i)}, ends, repr(words))  # noqa: E731 - of the place alone
    yield breach(name, values, judged, holds, lambda _: words, shown)


def _held(low: float, high: float, dtype: "np.dtype[np.generic]") -> bool:
    """Whether codes of a float dtype reach the ends of the grid exactly."""
    return is_whole(dtype) or all(float(np.asarray(end).astype(dtype)) == end for end in (low, high))


ON_GRID = Property(
    "on-grid",
    "Codes are whole numbers from the lowest to the highest of the grid, and so are zero points that were chosen.",
    "gives codes or zero points that are not on the grid",
    frozenset({"quantize", "choose"}),
    _judge,
    needs="grid",
)
