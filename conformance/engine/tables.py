"""Hard values of an operation, in tables: for each pair of parameters the inputs at which implementations part.

A large tensor is filled by indexing such a table, and so is what is expected of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import signed_bits, step
from halfeven.conformance.configuration import DTYPES, code_dtype
from halfeven.conformance.engine.setting import speaks
from halfeven.conformance.inputs import boundaries, parameters
from halfeven.reference import Grid
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Operation, Profile
from halfeven.reference.systems import PROFILES

__all__ = ["PAIRS", "Subject", "Table"]

PAIRS = 61  # of parameters that the call shapes have: a prime, so that an index that is off by a row shows
_TELLING = 96  # of the inputs of a pair that tell the formula from its neighbours, how many go first
_CODES = 24  # whose boundaries are tried with each pair of parameters
_FEW = 32  # inputs of a call that has one pair of parameters
_SIGNIFICANDS = 512
_WIDE = 256  # zero points of a grid with more
_EVERY_CODE = 16  # bits
_LEAST_AMAX = 2.0**-20
# The choices in which a formula's neighbours differ from it; what tells them apart is what is worth asking.
_CHOICES = ("division", "rounding", "zero_point", "clamp", "overflow", "compute", "subtract", "product", "integer")
_FEWER = {"division": None, "rounding": {"half-away", "half-up", "half-even"}, "zero_point": None}


@dataclass(frozen=True)
class Table:
    """Inputs and what is expected of them, a row for each pair of parameters.

    Attributes:
        scale, zero: the parameters, as the profile names them.
        x: of the shape (pairs, values), the telling ones in every other place; the number of values is a prime, so that
            each meets every lane in a long tensor.
        expected: of the same shape.
        telling: the places in every row of values that tell the formula from its neighbours, of one after the other.
        best: the pairs whose values tell the most neighbours; those of calls that have one pair.
    """

    scale: Array
    zero: Array
    x: Array
    expected: Array
    telling: Array
    best: Array


@dataclass(frozen=True)
class Subject:
    """An operation of a profile in one dtype and on one grid."""

    profile: str
    operation: Operation
    dtype: str
    grid: Grid
    seed: int = 0

    @cached_property
    def document(self) -> Profile:
        """The profile."""
        return PROFILES[self.profile]

    @property
    def real(self) -> np.dtype[Any]:
        """The dtype of the reals."""
        return DTYPES[self.dtype]

    @property
    def given(self) -> np.dtype[Any]:
        """The dtype of the first argument."""
        return self.real if self.operation != "dequantize" or self.document.codes == "input" else code_dtype(self.grid)

    @property
    def scale_dtype(self) -> np.dtype[Any]:
        """The dtype of the scales handed over."""
        input_ = self.document.scale_dtype == "input" or self.dtype == "float64"
        return self.real if input_ else DTYPES["float32"]

    @property
    def takes(self) -> int:
        """How many parameters are handed over."""
        return len(self.document.parameters)

    def expected(self, x: Array, scale: Array, zero: Array, block_size: BlockSize | None = None) -> Array:
        """What the formula gives; integer codes in the smallest type that holds them, where none is NaN."""
        found = self._evaluated(self.document, x, scale, zero, block_size)
        if self.operation == "quantize" and self.document.codes == "integer" and not np.isnan(found).any():
            return np.asarray(found.astype(code_dtype(self.grid)))
        return np.asarray(found)

    @cached_property
    def shaped(self) -> Table:
        """The table that fills the call shapes."""
        scale, zero = self._pairs
        scale, zero = scale[:PAIRS], zero[:PAIRS]
        x = self._hard(scale, zero)
        tells = self._told(x, scale, zero, self._neighbours())
        told = np.stack([_places(t, _TELLING) for t in tells])
        others = np.random.default_rng([self.seed, 1]).permutation(x.shape[1])
        others = np.resize(others, _prime(2 * x.shape[1]) // 2 + 1)
        places = np.empty((len(x), 2 * others.size - 1), np.int64)
        places[:, ::2] = others
        places[:, 1::2] = np.stack([np.resize(row, others.size - 1) for row in told])
        x = np.take_along_axis(x, places, axis=1)
        telling = np.arange(min(told.shape[1], others.size - 1)) * 2 + 1
        neighbours = tells.any(axis=2).sum(axis=1)
        best = np.flatnonzero(neighbours >= np.median(neighbours))
        return Table(scale, zero, x, self.expected(x, scale[:, None], zero[:, None]), telling, best)

    @cached_property
    def each(self) -> Table:
        """Every zero point, exponent and significand of the scale once, with the few inputs that decide."""
        scale, zero = self._pairs
        x = self._near(scale, zero)
        if self.operation != "dequantize":
            told = self._told(x, scale, zero, self._neighbours(_FEWER))
            x = np.take_along_axis(x, np.stack([_places(t, _FEW) for t in told]), axis=1)
        expected = self.expected(x, scale[:, None], zero[:, None])
        return Table(scale, zero, x, expected, np.arange(x.shape[1]), np.arange(len(x)))

    def codes(self) -> Array:
        """The inputs that give every code once, with the usual parameters; above 16 bits a covering choice."""
        if self.grid.bits <= _EVERY_CODE:
            codes = np.arange(self.grid.qmin, self.grid.qmax + 1)
        else:
            codes = np.unique(boundaries.boundary_codes(self.grid, 0).clip(self.grid.qmin, self.grid.qmax))
        if self.operation == "dequantize":
            return codes.astype(self.given)
        scale, zero = self.usual
        with np.errstate(all="ignore"):
            reals = (codes - self._points(zero[None])[0]) * self.document.real_per_code(scale[None], self.grid)[0]
            return self.kept(reals.astype(self.real))

    @cached_property
    def usual(self) -> tuple[Array, Array]:
        """A scale that is no power of two, and no zero point."""
        scale = self._documented(np.array([0.3 if self.dtype == "float64" or self.grid.bits < _EVERY_CODE else 0.01]))
        return scale[0], self._zeros(np.zeros(1, np.int64))[0]

    def special(self, kind: str, scale: Array, zero: Array, turn: int) -> tuple[Array, Array]:
        """Parameters with something in common, such as ``equal scales``."""
        one = turn % len(self.shaped.scale)
        if kind in {"equal scales", "expanded"}:
            scale = np.broadcast_to(self.shaped.scale[one], scale.shape)
        if kind in {"equal zero points", "expanded"}:
            zero = np.broadcast_to(self.shaped.zero[one], zero.shape)
        if kind == "no zero points":
            zero = zero * 0
        if kind == "powers of two":
            scale = self._documented(np.exp2(-(turn % 3) - np.arange(scale.size) % 4)).reshape(scale.shape)
        if kind == "ones":
            scale = self._documented(np.ones(scale.size)).reshape(scale.shape)
        return scale, zero

    @cached_property
    def _pairs(self) -> tuple[Array, Array]:
        """Scales and zero points: first usual ones, for the call shapes; then significands and exponents, each once."""
        grid = self.grid
        draw = np.random.default_rng([self.seed, grid.num_steps, self.real.itemsize])
        usual = parameters.scales(self.real, self.scale_dtype, grid, PAIRS, self.seed).astype(np.float64)
        low, high = self._exponents()
        middle = int(np.clip(-5, low, high))
        strata = (np.arange(_SIGNIFICANDS) + draw.uniform(0, 1, _SIGNIFICANDS)) / _SIGNIFICANDS
        significands = np.exp2(np.clip(middle + draw.integers(-3, 4, _SIGNIFICANDS), low, high)) * (1 + strata)
        exponents = np.arange(low, high + 1)
        each = np.exp2(exponents.astype(np.float64)) * draw.uniform(1, 1.99, exponents.size)
        scales = self._documented(np.concatenate([usual, significands, each]))
        allowed = np.arange(grid.qmin, grid.qmax + 1) if grid.num_steps < 1 << _EVERY_CODE else self._some_codes(draw)
        allowed = allowed if allowed.size <= _WIDE else draw.choice(allowed, _WIDE, replace=False)
        # All of them follow those of the call shapes, which begin with those that implementations treat apart.
        zeros = np.concatenate(
            [np.resize(draw.permutation(allowed), PAIRS), np.resize(draw.permutation(allowed), 1 << 13)]
        )
        typed = [z for z in (0, 1, 3, grid.qmin, grid.qmax, (grid.qmin + grid.qmax + 1) // 2, -5, 8) if z in grid]
        zeros[: len(typed)] = typed
        return scales, self._zeros(zeros[: scales.size])

    def _some_codes(self, draw: np.random.Generator) -> Array:
        return np.unique(
            np.concatenate([draw.integers(self.grid.qmin, self.grid.qmax, 300), [self.grid.qmin, self.grid.qmax]])
        )

    def _exponents(self) -> tuple[int, int]:
        """Those of normal scales at which the first few codes are normal and finite."""
        infos = [ml_dtypes.finfo(t) for t in (self.real, self.scale_dtype)]  # type: ignore[no-untyped-call]
        low = max(int(np.frexp(float(i.smallest_normal))[1]) - 1 for i in infos)
        high = min(int(np.frexp(float(i.max))[1]) - 1 for i in infos)
        if self.document.parameters[0] == "amax":
            low, high = max(low, int(np.log2(_LEAST_AMAX))), high - self.grid.bits - 1
        return low, high

    def _documented(self, scale: Array) -> Array:
        """Scales, real per code, as the profile's first parameter."""
        with np.errstate(all="ignore"):
            found = scale.astype(self.scale_dtype)
            if self.document.parameters[0] == "amax":
                found = np.maximum(found, found.dtype.type(_LEAST_AMAX)) * np.asarray(self.grid.qmax, found.dtype)
                found = np.where(np.isfinite(found), found, np.asarray(1, found.dtype))
        return np.asarray(found.astype(self.scale_dtype))

    def _zeros(self, points: Array) -> Array:
        """Zero points as the profile's second parameter."""
        if self.document.parameters[1:] == ("offset",):
            return np.asarray((-points).astype(DTYPES["float64" if self.dtype == "float64" else "float32"]) + 0)
        return np.asarray((points if self.takes > 1 else points * 0).astype(np.int32))

    def _points(self, zero: Array) -> Array:
        """The other way."""
        return zero.astype(np.int64) * (-1 if self.document.parameters[1:] == ("offset",) else 1)

    def _hard(self, scale: Array, zero: Array) -> Array:
        reals, points = self.document.real_per_code(scale, self.grid), self._points(zero)
        if self.operation == "dequantize":
            rows = [boundaries.boundary_codes(self.grid, int(z)).clip(self.grid.qmin, self.grid.qmax) for z in points]
            widest = max(map(len, rows))
            return np.stack([np.resize(row, widest) for row in rows]).astype(self.given)
        near = [
            boundaries.boundaries(reals[i : i + 1], points[i : i + 1], self.grid, self.real)[0]
            for i in range(len(reals))
        ]
        widest = max(map(len, near))
        beyond = boundaries.edges(reals, points, self.grid, self.real)
        huge = boundaries.huge(reals, self.real)
        zeros = np.broadcast_to(np.array([0.0, -0.0], self.real), (len(reals), 2))
        x = np.concatenate([np.stack([np.resize(row, widest) for row in near]), beyond, huge, zeros], axis=1)
        if speaks(self.profile, self.operation, "nan"):
            x = np.concatenate([x, np.full((len(x), 2), np.nan, self.real)], axis=1)
        return self.kept(x)

    def _near(self, scale: Array, zero: Array) -> Array:
        """The boundaries of a few codes of each pair, ± 1 ulp, or the codes."""
        grid, draw = self.grid, np.random.default_rng([self.seed, 2])
        codes = draw.integers(grid.qmin, grid.qmax, (scale.size, _CODES), endpoint=True)
        codes[:, 0], codes[:, 1] = grid.qmin, grid.qmax
        if self.operation == "dequantize":
            return codes.astype(self.given)
        # Close to the zero point, too: at a large scale the others are no numbers.
        codes[:, 2:6] = np.clip(self._points(zero)[:, None] + np.arange(-1, 3), grid.qmin, grid.qmax)
        reals = self.document.real_per_code(scale, grid)[:, None]
        with np.errstate(all="ignore"):
            ties = ((codes - self._points(zero)[:, None] - 0.5) * reals).astype(self.real)
        return self.kept(step(ties[..., None], np.arange(-1, 2)).reshape(scale.size, -1))

    def kept(self, x: Array) -> Array:
        """Without subnormals that the document leaves open, and reals below zero where only codes from 0 on are."""
        ordinary = self.dtype == "float16"  # there they are numbers as any others
        if not (ordinary or speaks(self.profile, self.operation, "subnormals")):
            tiny = ml_dtypes.finfo(x.dtype).smallest_normal  # type: ignore[no-untyped-call]
            x = np.where(np.abs(x) < tiny, np.copysign(np.zeros((), x.dtype), x), x)
        return np.abs(x) if self.document.parameters[0] == "amax" and self.grid.qmin >= 0 else x

    def _evaluated(self, p: Profile, x: Array, scale: Array, zero: Array, block_size: BlockSize | None = None) -> Array:
        with np.errstate(all="ignore"):
            if self.operation == "dequantize":
                return p.dequantize(x, scale, zero, self.grid, self.real, block_size)
            done = p.quantize if self.operation == "quantize" else p.fake_quantize
            return done(x, scale, zero, self.grid, block_size)

    def _neighbours(self, among: Any = None) -> Iterator[EvaluationModel]:
        """The models that differ from the document's in one choice."""
        own = self.document.model
        for name in among or _CHOICES:
            for value in own.choices()[name]:
                if value != getattr(own, name) and (not among or not among[name] or value in among[name]):
                    yield replace(own, **{name: str(value)})

    def _told(self, x: Array, scale: Array, zero: Array, neighbours: Iterator[EvaluationModel]) -> Array:
        """Whether a pair's value tells a neighbour; of the shape (pairs, neighbours, values)."""
        own = _bits(self._evaluated(self.document, x, scale[:, None], zero[:, None]))
        found = []
        for model in neighbours:
            try:
                other = self._evaluated(replace(self.document, model=model), x, scale[:, None], zero[:, None])
            except ValueError:  # a choice that this dtype has not
                continue
            differs = _bits(other) != own
            if differs.any():
                found.append(differs)
        return np.stack(found, axis=1) if found else np.zeros((len(x), 1, x.shape[1]), bool)


def _places(told: Array, count: int) -> Array:
    """``count`` places of values, of one neighbour after the other; where nothing tells, from all over."""
    every = [np.flatnonzero(row) for row in told if row.any()] or [np.arange(told.shape[1])]
    spread = [np.roll(places, -len(places) * i // max(len(every), 1)) for i, places in enumerate(every)]
    return np.array([spread[i % len(spread)][i // len(spread) % len(spread[i % len(spread)])] for i in range(count)])


def _bits(a: Array) -> Array:
    a = np.ascontiguousarray(a)
    return np.where(np.isnan(a), -1, signed_bits(a)) if a.dtype.kind not in "iu" else a


def _prime(n: int) -> int:
    """The first prime from ``n`` on."""
    return next(p for p in range(n, 2 * n + 3) if p > 1 and all(p % d for d in range(2, int(p**0.5) + 1)))
