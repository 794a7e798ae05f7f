"""A larger input never gives a smaller result under the same parameters, up to the infinities."""

from collections.abc import Iterator

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Place, Property, Shown, breach
from halfeven.conformance.properties.role import number

__all__ = ["MONOTONE"]


def _judge(first: Answered, _: Answered | None) -> Iterator[Breach]:
    seen = first.seen
    name = next(n for n in ("codes", "reals") if n in first.leaves)
    values = first.leaves[name]
    judged = ~np.isnan(seen.x) & seen.plain
    if seen.block is not None:  # an infinity in a block says nothing of its scale
        judged &= ~np.isin(seen.block, np.unique(seen.block[~np.isfinite(seen.x)]))
    flat, y = seen.x.ravel(), values.astype(np.float64).ravel()
    places = np.flatnonzero(judged.ravel())
    group = seen.group[places]
    order = places[np.lexsort((flat[places], group))]
    # The highest so far in each group: groups lie apart where each is lifted above the one before.
    highest = np.full(flat.size, -np.inf)
    source = np.zeros(flat.size, np.int64)
    last, best, at = None, -np.inf, 0
    for i, g in zip(order.tolist(), np.sort(group).tolist(), strict=True):
        if g != last:
            last, best, at = g, -np.inf, i
        highest[i], source[i] = best, at
        if y[i] >= best or np.isnan(best):
            best, at = y[i], i
    # NaN is for the property of finite results; equal inputs give equal results.
    holds = ~(y < highest) | np.isnan(y)

    def expected(i: int) -> str:
        return f"at least {number(highest[i])}, which x = {number(flat[source[i]])} gives (here x = {number(flat[i])})"

    def shown(i: int) -> Shown:
        places = {"before": Place(name, int(source[i])), "actual": Place(name, i)}
        words = f'f"at least {{before}}, which x = {number(flat[source[i]])} gives"'
        return Shown(places, "not actual < before", words)

    yield breach(name, values, judged, holds.reshape(values.shape), expected, shown)


MONOTONE = Property(
    "monotone",
    "Under the same parameters a larger input never gives a smaller result, infinities and saturation included.",
    "gives a smaller result for a larger input",
    frozenset({"quantize", "fake_quantize", "dequantize", "cast", "blocks"}),
    _judge,
)
