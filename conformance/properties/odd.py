"""Where the grid is symmetric, so is the quantizer; a symmetric choice of the scale does not see the data's sign."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Property, breach, related, said
from halfeven.conformance.properties.role import Role, Seen, changed, is_whole
from halfeven.reference.blocks import Array

__all__ = ["ODD"]


def _again(role: Role, first: Answered) -> dict[str, Any] | None:
    if not first.seen.odd or is_whole(first.seen.dtype):
        return None
    return changed(first.arguments, (role.data,), lambda v: -v)


def _judge(first: Answered, second: Answered | None) -> Iterator[Breach]:
    assert second is not None, "there is a second call"
    seen = first.seen
    for name, before in first.leaves.items():
        sign = -1 if name in {"codes", "reals"} else 1
        wanted, got = sign * before.astype(np.float64), second.leaves[name].astype(np.float64)
        judged = _judged(seen) if sign < 0 else np.isfinite(wanted)
        yield breach(
            name,
            second.leaves[name],
            judged,
            (got == wanted) | (np.isnan(got) & np.isnan(wanted)),
            said(wanted, ", from the call with the other sign"),
            related(name, "-before" if sign < 0 else "before"),
        )


def _judged(seen: Seen) -> Array:
    """Where the grid has a code for x and one for -x, and zero in the middle of them."""
    judged = ~np.isnan(seen.x) & seen.plain
    if seen.zero is not None:
        judged &= seen.zero == 0
    if seen.low is not None and seen.high is not None and not seen.low <= 0 <= seen.high:
        return judged & False
    if seen.low is not None and seen.high is not None and -seen.low != seen.high and seen.scale is not None:
        judged &= np.abs(seen.x) <= max(0, min(-seen.low, seen.high)) * seen.scale
    return judged


ODD = Property(
    "odd",
    "Where the grid has a code for each sign, and the nearest is taken, -x gives the negative of what x gives; a "
    "symmetric choice of the scale does not see the sign.",
    "treats the two signs differently on a symmetric grid",
    frozenset({"quantize", "fake_quantize", "cast", "choose"}),
    _judge,
    _again,
    needs="odd",
)
