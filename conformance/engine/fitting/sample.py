"""The elements that tell most: what a search looks at before it looks at all."""

from collections.abc import Sequence
from copy import copy

import numpy as np

from halfeven.conformance.engine.fitting.elements import Elements
from halfeven.reference.blocks import Array
from halfeven.reference.model import EvaluationModel, zero_of

__all__ = ["Sample"]

_FAILING = 96
_TIES = 64
_SPECIAL = 40
_ANY = 48
_MORE = 48  # at a time
_CALLS = 64
_LAST = 3


class Sample:
    """Some of the elements, in their order.

    Attributes:
        where: their numbers, over all the groups.
    """

    def __init__(self, groups: Sequence[Elements], failing: Array, model: EvaluationModel) -> None:
        """At first: some that fail the model, some near ties, some that are special, and some of the others."""
        self._groups = groups
        self._starts = np.cumsum([0, *map(len, groups)])
        self._draw = np.random.default_rng(0)
        kinds = np.concatenate([_kinds(g, model) for g in groups])
        chosen = [self.spread(failing, _FAILING), self.spread(np.ones(kinds.size, bool), _ANY)]
        chosen += [self.spread(kinds == kind, _TIES if kind > 0 else _SPECIAL) for kind in np.unique(kinds) if kind]
        self.where: Array = np.unique(np.concatenate(chosen))

    def elements(self) -> list[Elements]:
        """The elements of the sample, those of the same dtypes together."""
        ends = np.searchsorted(self.where, self._starts)
        found = (
            g.at(self.where[a:b] - start)
            for g, start, a, b in zip(self._groups, self._starts, ends, ends[1:], strict=False)
        )
        return [g for g in found if len(g)]

    def more(self, where: Array, most: int = _MORE) -> "Sample":
        """This one with more elements, so many at most."""
        grown = copy(self)
        if where.size > most:
            where = where[self._draw.permutation(where.size)[:most]]
        grown.where = np.union1d(self.where, where)
        return grown

    def spread(self, mask: Array, count: int) -> Array:
        """Some elements of a mask, from all over."""
        where = np.flatnonzero(mask)
        return where if where.size <= count else np.sort(self._draw.choice(where, count, replace=False))

    def tails(self) -> Array:
        """The last elements of some calls."""
        place = np.concatenate([g.place - g.size for g in self._groups])
        calls = np.concatenate([g.call for g in self._groups])
        some = np.unique(calls)[:: max(1, len(np.unique(calls)) // _CALLS)]
        return np.flatnonzero((place >= -_LAST) & np.isin(calls, some))


def _kinds(g: Elements, model: EvaluationModel) -> Array:
    """1 near a tie, 2 at one, -1 beyond the grid, -2 where a conversion overflows, -3 for what is no number, else 0."""
    with np.errstate(all="ignore"):
        s, x = g.scale.astype(np.float64), g.x.astype(np.float64)
        if g.operation == "dequantize":
            return np.where(np.isfinite(x), 0, -3)
        v = x * s if model.division == "multiply-by-q-per-real" else x / s
        z = np.broadcast_to(zero_of(model, g.zero), v.shape)
        rest = np.abs(np.abs(v - np.trunc(v)) - 0.5)
        inside = (v + z >= g.lo - 1) & (v + z <= g.hi + 1)
        near = rest <= np.abs(v) * 2.0**-21 if g.real.itemsize >= 4 else rest <= np.abs(v) * 2.0**-7  # noqa: PLR2004
        kinds = np.where(inside, np.where(near, np.where(rest == 0, 2, 1), 0), np.where(np.abs(v) < 2.0**14, -1, -2))
        return np.where(np.isfinite(v), kinds, -3)
