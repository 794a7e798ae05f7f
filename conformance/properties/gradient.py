"""The gradient is that of the forward: 0 where that limits its input, and the straight-through slope elsewhere."""

from collections.abc import Iterator

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Place, Property, Shown, breach
from halfeven.conformance.properties.role import number

__all__ = ["GRADIENT"]

_NEAR = 2.0**-6  # codes by which a quotient may be off: within it neither side of an end is sure


def _judge(first: Answered, _: Answered | None) -> Iterator[Breach]:
    seen = first.seen
    assert seen.gradient is not None, "a gradient's"
    if seen.low is None or seen.high is None or seen.scale is None or seen.zero is None or seen.low > seen.high:
        return
    name = "dx" if "dx" in first.leaves else "mask"
    values = first.leaves[name]
    with np.errstate(all="ignore"):
        at = seen.x / seen.scale + seen.zero
    near = np.maximum(_NEAR, np.abs(at) * _step(seen.dtype) + np.abs(seen.zero) * _step(seen.dtype))
    inside = (at >= seen.low + near) & (at <= seen.high - near)
    outside = (at < seen.low - seen.slack - near) | (at > seen.high + seen.slack + near)
    g = seen.gradient
    plain = seen.plain & (seen.slack == 0 or (np.rint(seen.zero) == seen.zero)) & np.isfinite(g) & ~np.isnan(seen.x)
    got = values.astype(np.float64)
    passed = g.astype(values.dtype).astype(np.float64)
    slope = got == passed if name == "dx" else (got != 0) | (g == 0) | (np.abs(g) < np.abs(seen.scale) * 2.0**-100)
    through = "the gradient from above" if name == "dx" else "not 0"

    def expected(i: int) -> str:
        code = number(at.flat[i])
        if outside.flat[i]:
            return f"0: the forward limits its input at code {code}"
        return f"{through}, {number(g.flat[i])}: the forward does not limit its input at code {code}"

    def shown(i: int) -> Shown:
        if outside.flat[i]:
            return Shown({"actual": Place(name, i)}, "actual == 0.0", "0.0")
        if name == "dx":
            wanted = repr(float(passed.flat[i]))
            return Shown({"actual": Place(name, i)}, f"actual == {wanted}", wanted)
        return Shown({"actual": Place(name, i)}, "actual != 0.0", '"not 0"')

    yield breach(name, values, plain & (inside | outside), np.where(outside, got == 0, slope), expected, shown)


def _step(dtype: "np.dtype[np.generic]") -> float:
    return {"float16": 2.0**-9, "bfloat16": 2.0**-6}.get(dtype.name, 2.0**-21)


GRADIENT = Property(
    "gradient-of-forward",
    "The gradient is that of the forward: 0 where the forward limits its input, and the one from above elsewhere.",
    "gives a gradient that is not the forward's",
    frozenset({"gradient"}),
    _judge,
    needs="limits",
)
