"""The evaluation models that give the answers of one call: followed stage by stage, each distinct result once.

Quantizing has three stages and dequantizing one, and each reads choices of its own (``reference/model.py``). Models
that have given the same so far are held together, so that a thousand million of them are followed in seconds.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.engine.compare import compare_reals
from halfeven.conformance.fingerprints.cubes import Cube, Tree, merged
from halfeven.reference import Grid
from halfeven.reference.behaviour import Behaviour
from halfeven.reference.blocks import Array
from halfeven.reference.model import (
    EvaluationModel,
    codes_of,
    compute_dtype,
    handed_back,
    quotients,
    reals_of,
    rounded_of,
    zero_of,
)
from halfeven.reference.profile import Operation
from halfeven.reference.rounding import cast_once
from halfeven.reference.steps import HALVES, held, inverse

__all__ = [
    "FIELDS",
    "Q_PER_REAL",
    "Asked",
    "Given",
    "Spent",
    "Stages",
    "Work",
    "agreeing",
    "first_stages",
    "of_model",
    "same_codes",
    "unsigned_zeros",
]

_MAKING = ("sign", "division", "rounding", "zero_point", "overflow", "nan", "integer", "clamp", "compute", "held")
_CODES = (*_MAKING, "inverse", "quotient", "half")
_REALS = ("sign", "division", "subtract", "product", "held", "inverse", "form")
#: The choices that an operation reads.
FIELDS: dict[Operation, tuple[str, ...]] = {
    "quantize": _CODES,
    "dequantize": _REALS,
    "fake_quantize": (*_CODES, *(name for name in _REALS if name not in _CODES), "returned"),
}
Q_PER_REAL = "multiply-by-q-per-real"
_ADDED = frozenset({"with-zero-point", "fused"})  # halves that are added with the quotient
_CALLS = 64  # that are kept: those of two operations, or of one in two dtypes
_LONG = 1024  # elements that take about as long as all else that is done for a part of the models
_KEPT: "dict[Any, Stages]" = {}


@dataclass(frozen=True)
class Asked:
    """What is asked of an operation, but the values.

    Attributes:
        operation: quantize, dequantize or fake_quantize.
        dtype: of the reals.
        grid: the codes.
        scale_dtype: of the scale.
        per_real: whether models take codes per real, as where the real of the greatest code is handed over.
    """

    operation: Operation
    dtype: "np.dtype[Any]"
    grid: Grid
    scale_dtype: "np.dtype[Any]"
    per_real: bool = False

    def scale(self, step: float) -> Array:
        """What models take for the reals from one code to the next."""
        return np.asarray(1 / step if self.per_real else step, self.scale_dtype)


@dataclass(frozen=True, eq=False)
class Given:
    """One call's values: a vector of reals or codes, one scale and one zero point.

    Attributes:
        asked: all but the values.
        x: reals, or codes where it dequantizes.
        scale: 0-d, as ``asked`` says in reals per code or in codes per real.
        zero: a whole number.
        moderate: whether no quotient and no code is 0 or near an end of the grid or of 8 bits: then no way to limit or
            convert them shows.
    """

    asked: Asked
    x: Array
    scale: Array
    zero: float
    moderate: bool = False

    @property
    def step(self) -> float:
        """The reals from one code to the next."""
        return 1 / float(self.scale) if self.asked.per_real else float(self.scale)


class Spent(Exception):  # noqa: N818 - it says what ended
    """As much work was done as was allowed."""


@dataclass(eq=False)
class Work:
    """How far models are followed: a count, so that no clock decides what is found.

    Attributes:
        most: parts of the models, each once, and once more for every 1,024 elements of its call.
        done: so far.
    """

    most: int
    done: int = 0

    def add(self, parts: int) -> None:
        """Count some; raises Spent beyond the most."""
        self.done += parts
        if self.done > self.most:
            raise Spent


@dataclass(eq=False)
class _Kept:
    """Arrays by their bits: each distinct one is one number."""

    arrays: list[Array] = field(default_factory=list)
    _known: dict[Hashable, int] = field(default_factory=dict)

    def number(self, a: Array) -> int:
        with np.errstate(all="ignore"):
            same = np.where(np.isnan(a), np.asarray(np.nan, a.dtype), a) if np.isnan(a).any() else a
        key = a.dtype, a.shape, same.tobytes()
        if key not in self._known:
            self._known[key] = len(self.arrays)
            self.arrays.append(a)
        return self._known[key]


@lru_cache(maxsize=1024)
def _inverses(scale: bytes, held_in: np.dtype[Any], dtype: Any, scale_dtype: Any) -> dict[str, tuple[bytes, ...]]:
    """By the choice of ``inverse`` 1/s in each dtype, of the scale in each; a scale is asked about in many calls."""
    choices: Any = EvaluationModel.choices()
    own = np.frombuffer(scale, held_in).reshape(())
    dtypes = sorted({dtype, scale_dtype, *DTYPES.values()}, key=str)
    with np.errstate(all="ignore"):
        scales = [held(own, str(how)) for how in choices["held"]]
        return {
            name: tuple(inverse(s, name, t).tobytes() for s in scales for t in dtypes) for name in choices["inverse"]
        }


class Stages:
    """One call, followed through the models; what it has found of them stays for another answer."""

    def __init__(self, given: Given, work: Work | None = None) -> None:
        """Nothing is computed yet; ``work`` is what may be done, without it everything."""
        a, g = given.asked, given
        choices: Any = EvaluationModel.choices()
        self.given = given
        self._kept = _Kept()
        self.work = work
        self._weight = 1 + g.x.size // _LONG
        self._lo, self._hi = (np.asarray(end, np.float64) for end in (a.grid.qmin, a.grid.qmax))
        self._x = np.asarray(g.x)
        held_as = {name: held(g.scale, name).tobytes() for name in choices["held"]}
        computed = {
            name: compute_dtype(EvaluationModel(compute=name), a.dtype, a.scale_dtype, a.grid)
            for name in choices["compute"]
        }
        inverses = _inverses(np.asarray(g.scale).tobytes(), np.asarray(g.scale).dtype, a.dtype, a.scale_dtype)
        self._alike: dict[str, Any] = {
            "held": held_as.__getitem__,
            "compute": computed.__getitem__,
            "inverse": inverses.__getitem__,
        }
        if given.moderate:
            ends = ("overflow", "integer", "clamp", *(() if given.zero else ("sign",)))
            self._alike |= dict.fromkeys(ends, lambda _: "")
        self._first = self._tree(
            self._quotients,
            rounding=HALVES.get,
            half=lambda value: value if value in _ADDED else "",
        )
        self._second: dict[Any, Tree] = {}
        self._third: dict[Any, Tree] = {}
        self._last: dict[Any, Tree] = {}

    def leaves(self, cubes: Sequence[Cube], seen: Array | None = None) -> Iterator[tuple[Cube, Array]]:
        """The parts of the cubes, and the codes or reals that each gives; with ``seen`` those that may give it."""
        operation = self.given.asked.operation
        if operation == "dequantize":
            number = self._kept.number(self._x.astype(np.float64))
            for cube, found in self._following({number: list(cubes)}, self._reals):
                yield cube, self._kept.arrays[found]
            return
        states: dict[Any, list[Cube]] = {}
        for cube in cubes:
            for part, key in self._first.leaves(cube):
                self._followed()
                states.setdefault(key, []).append(part)
        codes = self._codes(self._rounded(states, seen))
        if operation == "quantize":
            for key, parts in codes.items():
                for part in parts:
                    yield part, self._kept.arrays[key[0]]
            return
        by_codes: dict[int, list[Cube]] = {}
        for (number, _), parts in codes.items():
            by_codes.setdefault(number, []).extend(parts)
        for cube, found in self._following(by_codes, self._reals):
            yield cube, self._kept.arrays[found]

    def _rounded(self, states: dict[Any, list[Cube]], seen: Array | None) -> dict[Any, list[Cube]]:
        found: dict[Any, list[Cube]] = {}
        for key, parts in states.items():
            z, v = key
            tree = self._second.get(key)
            if tree is None:
                tree = self._tree(partial(self._integers, z, v))
                self._second[key] = tree
            for cube in merged(parts):
                for part, r in tree.leaves(cube):
                    self._followed()
                    if seen is None or self._may_be(r, seen):
                        found.setdefault((z, r), []).append(part)
        return found

    def _codes(self, states: dict[Any, list[Cube]]) -> dict[Any, list[Cube]]:
        found: dict[Any, list[Cube]] = {}
        for key, parts in states.items():
            tree = self._third.get(key)
            if tree is None:
                tree = self._tree(partial(self._limited, *key))
                self._third[key] = tree
            for cube in merged(parts):
                for part, q in tree.leaves(cube):
                    self._followed()
                    found.setdefault((q, 0), []).append(part)
        return {key: merged(parts) for key, parts in found.items()}

    def _following(self, states: dict[int, list[Cube]], evaluate: Any) -> Iterator[tuple[Cube, int]]:
        for number, parts in states.items():
            tree = self._last.get(number)
            if tree is None:
                tree = self._tree(partial(evaluate, number), division=lambda value: value == Q_PER_REAL)
                self._last[number] = tree
            for cube in merged(parts):
                for found in tree.leaves(cube):
                    self._followed()
                    yield found

    def _may_be(self, r: int, seen: Array) -> bool:
        """Whether integers can be those of the codes seen: where nothing is limited, they are off by one number."""
        if not self.given.moderate:
            return True
        integers, real = self._kept.arrays[r].astype(np.float64), seen.astype(np.float64)
        with np.errstate(all="ignore"):  # in 16 bits the integers of a wide grid are infinite
            if self.given.asked.operation == "quantize":
                return bool(np.ptp(real - integers) == 0)
            scale = float(self.given.scale)  # of codes per real or of reals per code
            return any(bool(np.ptp(np.rint(reals) - integers) == 0) for reals in (real / scale, real * scale))

    def _followed(self) -> None:
        """Count a part of the models."""
        if self.work is not None:
            self.work.add(self._weight)

    def _tree(self, evaluate: Any, **alike: Any) -> Tree:
        return Tree(EvaluationModel, evaluate, {**self._alike, **alike})

    def _zero(self, model: Any) -> Array:
        return np.asarray(zero_of(model, np.asarray(self.given.zero, np.float64)))

    def _quotients(self, model: Any) -> tuple[int, int]:
        a = self.given.asked
        z = self._zero(model)
        t = compute_dtype(model, a.dtype, a.scale_dtype, a.grid)
        try:
            v = quotients(model, self._x, self.given.scale, z, self._lo, self._hi, t)
        except ValueError:  # a model that is not defined for these dtypes gives nothing that anybody answers
            v = np.full(self._x.shape, np.nan, np.float64)
        return self._kept.number(z), self._kept.number(np.asarray(v))

    def _integers(self, z: int, v: int, model: Any) -> int:
        zero, quotient = self._kept.arrays[z], self._kept.arrays[v]
        return self._kept.number(np.asarray(rounded_of(model, quotient, zero, self._lo, self._hi)))

    def _limited(self, z: int, r: int, model: Any) -> int:
        zero, integers = self._kept.arrays[z], self._kept.arrays[r]
        q = codes_of(model, integers, zero, self._lo, self._hi)
        return self._kept.number(np.asarray(q).astype(np.float64))

    def _reals(self, q: int, model: Any) -> int:
        a = self.given.asked
        codes, zero = self._kept.arrays[q], np.asarray(self.given.zero, np.float64)
        t = a.dtype
        if a.operation == "fake_quantize" and model.product == "output":
            t = compute_dtype(model, a.dtype, a.scale_dtype, a.grid)
        try:
            found = reals_of(model, codes, self.given.scale, zero, t, (self._lo, self._hi))
        except ValueError:
            return self._kept.number(np.full(codes.shape, np.nan, a.dtype))
        with np.errstate(all="ignore"):
            reals = np.asarray(cast_once(found, a.dtype))
        return self._kept.number(handed_back(model, self._x, reals) if a.operation == "fake_quantize" else reals)


def first_stages(given: Given, work: Work) -> Stages:
    """One of the first calls, followed through the models; it is kept, since every fingerprint begins with the same."""
    key = given.asked, given.x.tobytes(), given.scale.tobytes(), given.zero, given.moderate
    kept = _KEPT.pop(key, None) or Stages(given)
    _KEPT[key] = kept
    if len(_KEPT) > _CALLS:
        del _KEPT[next(iter(_KEPT))]
    kept.work = work
    return kept


def agreeing(stages: Stages, cubes: Sequence[Cube], seen: Array) -> list[Cube]:
    """The models among the cubes that give what was seen."""
    codes = stages.given.asked.operation == "quantize"
    known: dict[int, bool] = {}
    kept: list[Cube] = []
    for cube, found in stages.leaves(cubes, seen):
        if id(found) not in known:
            known[id(found)] = same_codes(found, seen) if codes else same_reals(found, seen)
        if known[id(found)]:
            kept.append(cube)
    return merged(kept)


def same_codes(a: Array, b: Array) -> bool:
    """Whether codes are equal; the sign of a zero is not looked at."""
    return bool(np.array_equal(a.astype(np.float64), b.astype(np.float64), equal_nan=True))


def same_reals(a: Array, b: Array) -> bool:
    """Whether reals are equal, bit for bit, any NaN as any NaN."""
    return a.dtype == b.dtype and not compare_reals(a, b).differing


def of_model(model: Behaviour, given: Given) -> Array:
    """What one model gives."""
    cube: Cube = {name: (getattr(model, name),) for name in model.choices()}
    [(_, found)] = Stages(given).leaves([cube])
    return unsigned_zeros(found) if given.asked.operation == "quantize" else found


def unsigned_zeros(codes: Array) -> Array:
    """Codes that are held in floats have one zero."""
    return np.where(codes == 0, np.zeros((), codes.dtype), codes)
