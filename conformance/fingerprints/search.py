"""The search of an operation's models: what was asked and answered, what remains, and the inputs that split it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfeven.conformance.configuration import code_dtype
from halfeven.conformance.engine.call import PLAIN, CallShape
from halfeven.conformance.engine.company import traits_of
from halfeven.conformance.fingerprints.asking import LARGEST
from halfeven.conformance.fingerprints.cubes import Cube, everything, holds, merged, size
from halfeven.conformance.fingerprints.models import (
    FIELDS,
    Q_PER_REAL,
    Asked,
    Given,
    Spent,
    Stages,
    Work,
    agreeing,
    first_stages,
)
from halfeven.conformance.fingerprints.runs import FAR, run_ends, specials
from halfeven.conformance.inputs import boundaries
from halfeven.reference.blocks import Array
from halfeven.reference.model import EvaluationModel

__all__ = ["Search", "Seen", "all_models", "alone", "laid_out", "scouting", "splitting", "values"]

_SOME = 96  # of fewer elements too many models remain that give the same
_MODERATE = 40  # codes from zero
_TAIL = 63  # elements: of every vector width there is a longest rest
_FEW_LEFT = 1 << 16  # models that are followed although no model gives everything
_OF_NAN = ("nan", "integer", "overflow", "ends", "clamp", "sign", "zero_point")  # what the code of NaN depends on
_OF_REALS = ("form", "product", "subtract", "division", "inverse", "returned")  # and the real of that code
_PARTS = 1 << 22  # of the models that are followed; what is known needs at most 40 % of it: a fake bfloat16 of 8 bits
_PER_MODEL = 700  # inputs in a call that one model asks for


@dataclass(frozen=True, eq=False)
class Seen:
    """A call and what came: the values as they were handed over, and the answer to each; and how it was made.

    Where these are some elements alone, ``of`` has all.
    """

    given: Given
    value: Array
    shape: CallShape = PLAIN
    of: "Seen | None" = None

    def at(self, where: Array, *, moderate: bool = False) -> "Seen":
        """The same of some elements."""
        given = replace(self.given, x=self.given.x[where], moderate=moderate)
        return Seen(given, self.value[where], self.shape, self.of or self)

    @property
    def whole(self) -> tuple[str, ...]:
        """What the call has as a whole, of which these may be some elements: names of ``TRAITS``."""
        given = (self.of or self).given
        return traits_of(given.asked.operation, given.x)

    @property
    def numbers(self) -> Array:
        """Which inputs are not NaN."""
        return np.asarray(~np.isnan(self.given.x.astype(np.float64)))

    @property
    def near(self) -> Array:
        """Which inputs are of so few codes that no conversion overflows."""
        with np.errstate(all="ignore"):
            return np.asarray(np.abs(self.given.x.astype(np.float64) / self.given.step) < FAR)


def all_models(asked: Asked, returned: str = "reals") -> Cube:
    """Every model, the choices that the operation does not read at their defaults; of ``returned`` one value."""
    own = EvaluationModel()
    read = FIELDS[asked.operation]
    found = {n: v if n in read else (getattr(own, n),) for n, v in everything(EvaluationModel).items()}
    return found | {"returned": (returned,)} | ({"division": (Q_PER_REAL,)} if asked.per_real else {})


def scouting(asked: Asked, step: float, zero: int) -> Given:
    """The inputs of the first calls: around every boundary, at both ends and beyond them, huge, and special."""
    given = Given(asked, np.empty(0, asked.dtype), asked.scale(step), zero)
    if asked.operation == "dequantize":
        return replace(given, x=laid_out(_every_code(asked)))
    wide, z, grid = np.array([given.step]), np.array([zero]), asked.grid
    x = [boundaries.boundaries(wide, z, grid, asked.dtype), boundaries.edges(wide, z, grid, asked.dtype)]
    x += [boundaries.huge(wide, asked.dtype)]
    return replace(given, x=laid_out(np.concatenate([*(a.ravel() for a in x), specials(asked.dtype)]), given.step))


def splitting(models: Sequence[EvaluationModel], asked: Asked, step: float, zero: int) -> Given:
    """The inputs at which one of some models changes its code: they decide each of them for this scale."""
    given = Given(asked, np.empty(0, asked.dtype), asked.scale(step), zero)
    if asked.operation == "dequantize":
        return replace(given, x=laid_out(_every_code(asked)))
    ends = [_at_most(run_ends(m, given), _PER_MODEL) for m in models]
    return replace(given, x=laid_out(np.concatenate([*ends, specials(asked.dtype)]), given.step))


def laid_out(x: Array, step: float = 1.0) -> Array:
    """The distinct inputs in a call's order: as many as fit, and at the end those nearest to a tie once more.

    So a telling value stands at two places, one of them in the rest that vectors leave.
    """
    _, first = np.unique(x.view(f"u{x.dtype.itemsize}"), return_index=True)
    distinct = x[np.sort(first)]
    if distinct.size > LARGEST - _TAIL - 1:
        distinct = _at_most(distinct, LARGEST - _TAIL - 1)
    size = -(-(distinct.size + _TAIL) // (_TAIL + 1)) * (_TAIL + 1) + _TAIL
    size = min(size, LARGEST - 1)
    with np.errstate(all="ignore"):
        quotient = distinct.astype(np.float64) / step
        off = np.nan_to_num(np.abs(np.abs(quotient - np.trunc(quotient)) - 0.5), nan=1.0)
    telling = distinct[np.argsort(off, kind="stable")[: max(2 * _TAIL, 1)]]
    again = (np.arange(size - distinct.size) * 37 + 5) % telling.size
    return np.concatenate([distinct, telling[again]])


def _at_most(x: Array, count: int) -> Array:
    return x if x.size <= count else x[np.unique(np.linspace(0, x.size - 1, count).astype(np.int64))]


def _every_code(asked: Asked) -> Array:
    grid, dtype = asked.grid, code_dtype(asked.grid)
    if grid.num_steps < LARGEST - _TAIL - 1:
        return np.arange(grid.qmin, grid.qmax + 1, dtype=np.int64).astype(dtype)
    return boundaries.boundary_codes(grid, 0).clip(grid.qmin, grid.qmax).astype(dtype)


def layers(seen: Seen) -> Iterator[Seen]:
    """The elements of a call, those first that tell most for least: some moderate, all of these, the ends, huge."""
    for layer in _layers(seen):
        if layer.value.size:
            yield layer


def _layers(seen: Seen) -> Iterator[Seen]:
    given, asked = seen.given, seen.given.asked
    if asked.operation == "dequantize":
        near = np.flatnonzero(np.abs(given.x.astype(np.float64)) <= _MODERATE)
        yield seen.at(near[:: max(near.size // _SOME, 1)])
        yield seen
        return
    with np.errstate(all="ignore"):
        quotient = given.x.astype(np.float64) / given.step
    code = quotient + given.zero
    low, high = max(asked.grid.qmin, -100) + 2, min(asked.grid.qmax, 100) - 2
    moderate = (np.abs(quotient) <= _MODERATE) & (np.abs(quotient) >= 1)
    moderate &= (np.minimum(code, quotient) >= low) & (np.maximum(code, quotient) <= high)
    near = np.flatnonzero(moderate)
    half = np.abs(np.abs(quotient[near] - np.trunc(quotient[near])) - 0.5)
    ranked = near[np.lexsort((np.abs(quotient[near]), half))]
    yield seen.at(np.sort(ranked[:_SOME]), moderate=True)
    yield seen.at(near, moderate=True)
    inside = (code >= asked.grid.qmin) & (code <= asked.grid.qmax)
    finite = np.isfinite(quotient)
    for where in (inside & ~moderate, finite & ~inside & ~moderate, np.isinf(quotient)):
        some = np.flatnonzero(where)
        yield seen.at(some[:: max(some.size // _SOME, 1)])
        yield seen.at(some)


class Search:
    """The models that remain, after what was seen so far."""

    def __init__(self, asked: Asked, start: Cube | None = None) -> None:
        """Those to begin with; without ``start`` all of them."""
        self.asked = asked
        self.cubes: list[Cube] = [start or all_models(asked)]
        self.asked_on = False
        """Whether more was seen than the first calls."""
        self.late = False
        """Whether there were too many models to follow them through everything that was seen."""
        self.work = Work(_PARTS)
        """How far models are followed; then no more are."""
        self.seen: list[Seen] = []
        self.against: list[Seen] = []
        self.nan: list[Seen] = []
        """NaN and what came of it, which is looked at last: nothing else follows from it."""

    def take(self, *seen: Seen) -> None:
        """Keep what gives these answers; where nothing does, the answers stand against all models.

        What tells least of several calls comes last: by then few models remain.
        """
        self.seen += seen
        for one in seen:
            if (where := np.flatnonzero(np.isnan(one.given.x.astype(np.float64)))).size:
                self.nan.append(one.at(where))
        every = [(turn, layer) for one in seen for turn, layer in enumerate(layers(one))]
        for _, layer in sorted(every, key=lambda pair: pair[0]):
            if not self.against or size(self.cubes) < _FEW_LEFT:  # else there is no arithmetic to follow further
                self._take(layer)

    def take_nan(self) -> bool:
        """Keep what gives the answers to NaN; False where no model that remains does, which stand as they are then."""
        before, every = self.against, self.cubes
        if many := bool(before) and size(every) >= _FEW_LEFT:  # the arithmetic, which is not known, makes NaN of NaN
            known, first = values(every), self.first()
            free = _OF_NAN if self.asked.operation == "quantize" else (*_OF_NAN, *_OF_REALS)
            self.cubes = [{n: v if n in free else (getattr(first, n),) for n, v in known.items()}]
        self.against = []
        for one in self.nan:
            self._take(one)
        lost, self.against = self.against, before
        if many:
            told = values(self.cubes)["nan"]
            self.cubes = [{**cube, "nan": tuple(v for v in cube["nan"] if v in told)} for cube in every]
            self.cubes = [cube for cube in self.cubes if cube["nan"]]
        if lost:
            self.cubes = merged([{**cube, "nan": cube["nan"][:1]} for cube in self.cubes])
        return not lost

    def _take(self, layer: Seen) -> None:
        if self.late:
            return
        try:
            stages = (Stages if self.asked_on else first_stages)(layer.given, self.work)
            if kept := agreeing(stages, self.cubes, layer.value):
                self.cubes = kept
            else:
                self.against.append(layer)
        except Spent:
            self.late = True

    def drawn(self, count: int, seed: int) -> list[EvaluationModel]:
        """Some of the models that remain, from every part."""
        generator = np.random.default_rng(seed)
        found: list[EvaluationModel] = []
        for i in range(count):
            cube = self.cubes[(i * 7919 + seed) % len(self.cubes)]
            chosen: Mapping[str, Any] = {n: v[generator.integers(len(v))] for n, v in cube.items()}
            found.append(EvaluationModel(**chosen))
        return list(dict.fromkeys(found))

    def first(self) -> EvaluationModel:
        """One that remains: of each choice the first value, as far as it goes."""
        words: Any = EvaluationModel.choices()
        ranked = [{n: tuple(w for w in words[n] if w in v)[:1] for n, v in cube.items()} for cube in self.cubes]
        models = (EvaluationModel(**{n: v[0] for n, v in cube.items()}) for cube in ranked)
        return min(
            models,
            key=lambda m: sum(list(words[n]).index(getattr(m, n)) > 0 for n in words),
        )


def alone(cubes: Sequence[Cube], model: EvaluationModel) -> dict[str, tuple[Any, ...]]:
    """Of each choice the values that the model may have with all others as they are."""
    choices: Any = model.choices()
    return {
        name: tuple(v for v in words if any(holds(cube, replace(model, **{name: v})) for cube in cubes))
        for name, words in choices.items()
    }


def values(cubes: Sequence[Cube]) -> dict[str, tuple[Any, ...]]:
    """Of each choice the values that occur."""
    found: dict[str, dict[Any, None]] = {}
    for cube in cubes:
        for name, known in cube.items():
            found.setdefault(name, {}).update(dict.fromkeys(known))
    return {name: tuple(known) for name, known in found.items()}
