"""A scale that was chosen is positive and finite, and covers the data that it was chosen for."""

from collections.abc import Callable, Iterator

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Place, Property, Shown, breach
from halfeven.conformance.properties.role import fitting, number
from halfeven.reference.blocks import Array

__all__ = ["COVERS", "POSITIVE_SCALE"]

_SMALL = 2.0**-100
_EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}


def _positive(first: Answered, _: Answered | None) -> Iterator[Breach]:
    if not first.seen.x.size or not np.isfinite(first.seen.x).all():
        return
    for name in ("scale", "amax", "least", "most"):
        if name in first.leaves:
            values = first.leaves[name]
            v = values.astype(np.float64)
            holds = np.isfinite(v) & ((v > 0) if name == "scale" else True)
            expected = _above_zero if name == "scale" else _finite
            yield breach(name, values, np.ones(v.shape, bool), holds, expected, _shown_finite(name))


def _above_zero(_: int) -> str:
    return "a finite number above 0"


def _finite(_: int) -> str:
    return "a finite number"


def _shown_finite(leaf: str) -> Callable[[int], Shown]:
    least, words = ("0", _above_zero(0)) if leaf == "scale" else ("-math.inf", _finite(0))
    return lambda i: Shown({"actual": Place(leaf, i)}, f"{least} < actual < math.inf", repr(words))


def _covers(first: Answered, _: Answered | None) -> Iterator[Breach]:
    seen, leaves = first.seen, first.leaves
    if not seen.x.size or not np.isfinite(seen.x).all():
        return
    found = {name: fitting(seen.spread, leaf) for name, leaf in leaves.items()}
    if any(value is None for value in found.values()):  # it is not known which element meets which
        return
    if "amax" in leaves:
        yield _outside(first, ("amax",), -found["amax"], found["amax"], ("-amax", "amax"))
    elif "least" in leaves:
        least, most = found["least"], found["most"]
        step = 0.0 if seen.low is None or seen.high is None else (most - least) / (seen.high - seen.low)
        step = found.get("scale", step)
        leaves_ = ("least", "most", *(["scale"] if "scale" in found else []))
        grid = 0 if seen.low is None or seen.high is None else f"(most - least) / {float(seen.high - seen.low)!r}"
        half = f"{'scale' if 'scale' in found else grid} / 2"
        yield _outside(first, leaves_, least - step / 2, most + step / 2, (f"least - {half}", f"most + {half}"))
    elif "zero" in leaves and seen.low is not None and seen.high is not None and seen.low <= 0 <= seen.high:
        scale, zero = found["scale"], found["zero"]
        # Half a code, and what the rounding of the scale itself moves the ends by.
        step = max(_EPS.get(d.name, 2.0**-23) for d in (leaves["scale"].dtype, seen.dtype))
        slack = 0.5 + (seen.high - seen.low) * step + 2.0**-10
        low, high = (seen.low - zero - slack) * scale, (seen.high - zero + slack) * scale
        ends = f"({seen.low - slack!r} - zero) * scale", f"({seen.high + slack!r} - zero) * scale"
        yield _outside(first, ("scale", "zero"), low, high, ends)


def _outside(first: Answered, leaves: tuple[str, ...], low: Array, high: Array, ends: tuple[str, str]) -> Breach:
    """Where x is beyond ``low`` and ``high``, which ``ends`` are as Python over the ``leaves``."""
    x = first.seen.x
    low, high = np.broadcast_to(low, x.shape), np.broadcast_to(high, x.shape)
    # The ends of a subnormal scale are not where its rounding has put them.
    judged = np.isfinite(low) & np.isfinite(high) & (np.maximum(np.abs(low), np.abs(high)) > _SMALL)
    values = np.broadcast_to(first.seen.spread(first.leaves[leaves[0]]), x.shape)

    def expected(i: int) -> str:
        ends = f"from {number(low.flat[i])} to {number(high.flat[i])}"
        return f"one whose codes reach x = {number(x.flat[i])}, not only {ends}"

    def shown(i: int) -> Shown:
        numbers = {}
        for leaf in leaves:
            size = first.leaves[leaf].size
            places = np.arange(size).reshape(first.leaves[leaf].shape)
            numbers[leaf] = Place(leaf, int(np.broadcast_to(first.seen.spread(places), x.shape).flat[i]))
        lines = (f"low, high = {ends[0]}, {ends[1]}", 'actual = f"codes from {low} to {high}"')
        element = float(x.flat[i])
        return Shown(numbers, f"low <= {element!r} <= high", f'"codes that reach {element!r}"', lines)

    return breach(leaves[0], values, judged, (x >= low) & (x <= high), expected, shown)


POSITIVE_SCALE = Property(
    "positive-scale",
    "A scale chosen for finite data is finite and above zero, and so are the ends of a range finite.",
    "chooses a scale that is zero, negative or not finite for finite data",
    frozenset({"choose"}),
    _positive,
)
COVERS = Property(
    "covers",
    "What was chosen covers its data: no element is further than half a code beyond the ends of the grid.",
    "chooses parameters that do not reach the data",
    frozenset({"choose"}),
    _covers,
    needs="covering",
)
