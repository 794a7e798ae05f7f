"""Which models give codes: each stage is carried out once for all the choices that it reads.

Many choices give the same quotients, and many of these the same integers. So quotients are made first and sorted by
their bits, then rounded and held against the codes well inside the grid, where no clamp and no conversion shows; what
is left is converted, clamped and held against the others; NaN comes last, and decides nothing else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from halfeven.conformance.engine.fitting.boxes import Box, Found, least, like, model_of
from halfeven.conformance.engine.fitting.elements import Elements, Hits, same_codes
from halfeven.conformance.engine.fitting.options import CHOICES, quotient_options, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.model import EvaluationModel, codes_of, quotients, rounded_of, zero_of
from halfeven.reference.steps import HALVES, converted

__all__ = ["Coder", "End", "Row", "Rows"]

_INSIDE = 126.0  # of codes that 8 bits hold, whatever is done to them
_LIKELY = 0.3  # the share of the answers inside that a model gives which is worth a look
_KEPT = 1 << 28  # bytes of codes that are kept, not made again

#: What is done to rounded quotients at last, the codes, and a model that does it.
End = tuple[tuple[Box, ...], Array, EvaluationModel]


@dataclass(eq=False)
class Quotients:
    """Quotients, all that gives them, and the half that is in them already."""

    model: EvaluationModel
    parts: tuple[Array, ...]
    boxes: list[Box]
    constant: float


@dataclass(eq=False)
class Row:
    """Integers made of quotients, all that makes them, and the elements whose codes they can be."""

    model: EvaluationModel
    made: Quotients
    boxes: list[Box]
    hits: Array
    nan: Array
    ends: list[End] = field(default_factory=list)


class Rows:
    """Rows, and those of them that may give some elements."""

    def __init__(self, base: EvaluationModel, every: Sequence[Row], count: int) -> None:
        """``count`` is of the elements; ``base`` the model that costs nothing."""
        self.every = every
        self._costs = np.array([least(base, r.made.boxes) + least(base, r.boxes) for r in every], np.int64)
        self.hits = Hits([r.hits for r in every], count)

    def giving(self, mask: Array) -> list[Row]:
        """Those that may give all elements of a mask."""
        return [self.every[i] for i in self.hits.all_of(mask)]

    def cheapest(self, mask: Array, most: int) -> list[tuple[int, Row]]:
        """Those that may give all elements of a mask, with the least that each can cost, the cheapest first.

        Where little of the mask lies well inside its grid, these are nearly all rows: then only the cheapest are tried.
        """
        some = self.hits.all_of(mask)
        ranked = some[np.argsort(self._costs[some], kind="stable")][:most]
        return [(int(self._costs[i]), self.every[i]) for i in ranked]


class Coder:
    """The search for elements of several pairs of dtypes, whose codes are known."""

    def __init__(self, base: EvaluationModel, groups: Sequence[Elements], among: Sequence[Box] | None = None) -> None:
        """``base`` says how the zero point enters, and which models come first; ``among`` which quotients are tried."""
        self._base, self._groups, self._among = base, groups, among
        self._zeros = [np.broadcast_to(zero_of(base, g.zero), g.x.shape) for g in groups]
        self._low = np.concatenate([np.maximum(g.lo + 1, -_INSIDE) for g in groups])
        self._high = np.concatenate([np.minimum(g.hi - 1, _INSIDE) for g in groups])
        self._zero = np.concatenate(self._zeros)
        self._kept = 0
        self._inside = self._within(np.concatenate([self._claimed(g) for g in groups]))

    def each(
        self, rows: Sequence[tuple[int, Row]], mask: Array, codes: Array, beyond: Array | None = None
    ) -> Iterator[tuple[int, Found]]:
        """What gives the codes of a mask, of rows that are left, with the least that it can cost.

        Of elements ``beyond`` the mask the codes are not known: what is done with NaN there may be anything.
        """
        for cost, row in rows:
            even, odd = mask & ~row.nan, mask & row.nan
            for boxes, made, model in self.ends(row):
                if not same_codes(made[even], codes[even]).all():
                    continue
                ways = [self._nans(model, row, odd, codes)]
                if not odd.any() and beyond is not None and (beyond & row.nan).any():
                    ways = [({"nan": (nan,)},) for nan in CHOICES["nan"]]
                for modes in filter(None, ways):
                    yield cost, Found((tuple(row.made.boxes), tuple(row.boxes), boxes, modes))

    def rows(self, codes: Array, usable: Array) -> Rows:
        """All integers made of quotients that come near the codes well inside the grid, each once."""
        inside = self._inside & usable & ~np.isnan(codes)
        known: dict[tuple[Any, ...], Row] = {}
        for made in self._quotients:
            exact = self._addends(made.model)
            near = np.concatenate([p.astype(np.float64) for p in made.parts]) + exact
            nan = np.isnan(near)
            with np.errstate(invalid="ignore"):
                likely = nan | (np.abs(near - codes) < 1.6)  # noqa: PLR2004 - a code and a half
            if inside.any() and likely[inside].mean() < _LIKELY:
                continue
            for box in roundings(made.constant):
                model = model_of(made.model, box)
                parts = tuple(
                    rounded_of(like(model, {"clamp": "after"}), v, z, g.lo, g.hi)
                    for v, g, z in zip(made.parts, self._groups, self._zeros, strict=True)
                )
                key = (id(made), *(p.tobytes() for p in parts))
                if key in known:
                    known[key].boxes.append(box)
                    continue
                total = np.concatenate([p.astype(np.float64) for p in parts]) + exact
                nan = np.isnan(near) | np.isnan(total)
                # A scale that is rounded to nothing takes a quotient out of the grid: then its ends decide.
                hits = ~(inside & self._within(total - self._zero)) | nan | (total == codes)
                if any(p.dtype.itemsize < 4 for p in parts):  # noqa: PLR2004 - where a sum of codes may be rounded
                    hits |= self._summed(model, parts) == codes
                known[key] = Row(model, made, [box], hits, nan)
        return Rows(self._base, list(known.values()), codes.size)

    def ends(self, row: Row) -> list[End]:
        """All that conversions, clamps and overflow make of rounded quotients, each once, and the codes."""
        if row.ends:
            return row.ends
        known: dict[tuple[Any, ...], tuple[list[Box], Array, EvaluationModel]] = {}
        seen: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for clamp, integer in product(CHOICES["clamp"], CHOICES["integer"]):
            model = like(row.model, {"clamp": clamp, "integer": integer, "nan": "propagate"})
            parts = self._integers(model, row)
            with np.errstate(all="ignore"):
                whole = zip(parts, self._groups, self._zeros, strict=True)
                made = [converted(r, self._late(model, g, z), integer) for r, g, z in whole]
                outward = any(
                    (g.lo.astype(p.dtype) < g.lo).any() or (g.hi.astype(p.dtype) > g.hi).any()
                    for p, g in zip(made, self._groups, strict=True)
                )
            key = (clamp == "before-zero-point", *(p.dtype for p in made), *(p.tobytes() for p in made))
            for overflow, stored in product(CHOICES["overflow"], CHOICES["ends"] if outward else ("",)):
                box: Box = {"clamp": (clamp,), "integer": (integer,), "overflow": (overflow,)}
                if stored:
                    box = {**box, "ends": (stored,)}
                if (*key, overflow, stored) in seen:
                    known[seen[*key, overflow, stored]][0].append(box)
                    continue
                ended = like(model, {"overflow": overflow} | ({"ends": stored} if stored else {}))
                codes = self._finished(ended, parts)
                seen[*key, overflow, stored] = ends = (codes.tobytes(),)
                if ends in known:
                    known[ends][0].append(box)
                else:
                    known[ends] = ([box], codes, ended)
        ends_ = [(tuple(boxes), codes, model) for boxes, codes, model in known.values()]
        self._kept += sum(codes.nbytes for _, codes, _ in ends_)
        if self._kept <= _KEPT:
            row.ends = ends_
        return ends_

    @cached_property
    def _quotients(self) -> list[Quotients]:
        """All quotients, each once."""
        known: dict[tuple[Any, ...], Quotients] = {}
        for option in quotient_options(self._base, self._groups) if self._among is None else self._among:
            for constant in sorted({*HALVES.values()}) if "half" in option else (0.0,):
                rule = {0.5: "half-up", -0.5: "half-down"}.get(constant, "half-even")
                half = option.get("half", ("exact",))[0]
                model = like(model_of(self._base, option), {"rounding": rule, "half": half})
                try:
                    parts = tuple(
                        quotients(model, g.x, g.scale, z, g.lo, g.hi, g.compute(model))
                        for g, z in zip(self._groups, self._zeros, strict=True)
                    )
                except ValueError:  # fused in float64
                    continue
                late = model.zero_point if model.division.startswith(("range", "low")) else model.zero_point[:5]
                key = (constant, late, *(p.dtype for p in parts), *(p.tobytes() for p in parts))
                if key in known:
                    known[key].boxes.append(option)
                else:
                    known[key] = Quotients(model, parts, [option], constant)
        return list(known.values())

    def _claimed(self, g: Elements) -> Array:
        """The quotients as they are claimed to be, in float64."""
        with np.errstate(all="ignore"):
            x, s = g.x.astype(np.float64), g.scale.astype(np.float64)
            return np.asarray(x * s if self._base.division == "multiply-by-q-per-real" else x / s)

    def _within(self, w: Array) -> Array:
        """The elements at whose quotients nothing but the arithmetic shows."""
        with np.errstate(all="ignore"):
            total, low, high = w + self._zero, self._low, self._high
            return np.asarray((w >= low) & (w <= high) & (total >= low) & (total <= high))

    def _addends(self, model: EvaluationModel) -> Array:
        """What is added to the rounded quotients, exactly."""
        if model.division.startswith(("range", "low")):
            late = [g.lo if model.zero_point != "before-rounding" else g.lo * 0 for g in self._groups]
        elif model.zero_point == "after-rounding":
            late = self._zeros
        else:
            late = [g.lo * 0 for g in self._groups]
        return np.concatenate(late)

    def _late(self, model: EvaluationModel, g: Elements, z: Array) -> Array | None:
        if model.division.startswith(("range", "low")):
            return g.lo if model.zero_point != "before-rounding" else None
        if model.zero_point != "after-rounding" or self._base.sign == "none":
            return None
        return z

    def _summed(self, model: EvaluationModel, parts: tuple[Array, ...]) -> Array:
        """The same sum in the quotients' own dtype."""
        with np.errstate(all="ignore"):
            return np.concatenate(
                [
                    converted(r, self._late(model, g, z), "none").astype(np.float64)
                    for r, g, z in zip(parts, self._groups, self._zeros, strict=True)
                ]
            )

    def _integers(self, model: EvaluationModel, row: Row) -> list[Array]:
        whole = zip(self._groups, row.made.parts, self._zeros, strict=True)
        return [rounded_of(model, v, z, g.lo, g.hi) for g, v, z in whole]

    def _finished(self, model: EvaluationModel, parts: Sequence[Array]) -> Array:
        found = []
        for g, r, z in zip(self._groups, parts, self._zeros, strict=True):
            q = codes_of(model, r, z, g.lo, g.hi)
            with np.errstate(all="ignore"):
                found.append((q if g.narrowed is None else q.astype(g.narrowed)).astype(np.float64))
        return np.concatenate(found)

    def _nans(self, model: EvaluationModel, row: Row, odd: Array, codes: Array) -> tuple[Box, ...]:
        """What may be done with NaN."""
        if not odd.any():
            return ({},)
        parts, modes = self._integers(model, row), []
        for nan in CHOICES["nan"]:
            made = self._finished(like(model, {"nan": nan}), parts)
            if same_codes(made[odd], codes[odd]).all():
                modes.append(nan)
        return ({"nan": tuple(modes)},) if modes else ()
