"""Which evaluation model a set of answers follows: the search over models near the one that was claimed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations, product
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from halfeven.conformance.arrays import step
from halfeven.conformance.compare import compare_codes, compare_reals
from halfeven.conformance.configuration import DTYPES, Case
from halfeven.reference import Grid
from halfeven.reference import model as evaluation
from halfeven.reference.blocks import per_element
from halfeven.reference.model import EvaluationModel, changes
from halfeven.reference.profiles import PROFILES, Profile

Array = npt.NDArray[Any]

__all__ = ["Answer", "Explanation", "evaluation_of", "explain", "flat", "in_words"]

_FIELDS_AWAY = 2
_SAMPLE = 128
# Not searched: NaN has a check of its own.
_FIXED = frozenset({"nan"})


@dataclass(frozen=True, eq=False)
class Answer:
    """What a backend answered to a case."""

    case: Case
    value: Array


@dataclass(frozen=True)
class Explanation:
    """What reproduces every answer.

    Attributes:
        words: the fewest changes to the claimed model, ``field: claimed → found``.
        profile: the name of the profile that computes so, if one does.
    """

    words: str
    profile: str = ""


def explain(profile: Profile, answers: Sequence[Answer], failing: Sequence[Answer]) -> Explanation | None:
    """The nearest model that reproduces all ``answers`` bit for bit, or None. ``failing`` comes first, as a sieve."""
    if any(a.value.dtype.kind not in "iuf" and a.value.dtype not in DTYPES.values() for a in answers):
        return None
    samples = [_sample(profile, a) for a in failing[:3]]

    def fits(model: EvaluationModel, taken: Callable[[Case], Case] = lambda case: case) -> bool:
        return all(_reproduces(profile, model, replace(a, case=taken(a.case))) for a in [*samples, *answers])

    claimed = profile.model
    if fits(profile.model):  # the transcription is finer than its model here: no change of the model explains anything
        return None
    name, named = next(((n, m) for n, m in _named(profile) if fits(m)), ("", None))
    if named is not None and _system(name) == _system(profile.name):
        return Explanation(in_words(claimed, named), name)
    for words, taken in _MISREAD.items():
        if named is None and fits(claimed, taken):
            return Explanation(words)
    # A profile found bounds the search: what is wanted is the fewest fields that make the difference.
    away = min(_FIELDS_AWAY, len(changes(claimed, named))) if named else _FIELDS_AWAY
    nearest = next((m for m in _near(claimed, away) if fits(m)), named)
    return None if nearest is None else Explanation(in_words(claimed, nearest), name)


def _narrow(case: Case) -> Case:
    grid = case.configuration.grid
    return replace(case, configuration=replace(case.configuration, grid=Grid(grid.qmin + 1, grid.qmax)))


def _scale_off(ulps: int) -> Callable[[Case], Case]:
    return lambda case: replace(case, scale=step(np.asarray(case.scale), np.asarray(ulps)))


# The claimed model, on arguments that were read otherwise than they were given.
_MISREAD: dict[str, Callable[[Case], Case]] = {
    "grid: full → narrow": _narrow,
    "scale: as given → one ulp up": _scale_off(1),
    "scale: as given → one ulp down": _scale_off(-1),
}


def in_words(claimed: EvaluationModel, found: EvaluationModel) -> str:
    """``division: divide → reciprocal, ...``; the claimed value comes first."""
    return ", ".join(f"{n}: {a} → {b}" for n, (a, b) in changes(claimed, found).items() if n not in _FIXED)


def _named(profile: Profile) -> Iterator[tuple[str, EvaluationModel]]:
    """The models of the other profiles, the same system's first, with the parameters as this one hands them over."""
    system = _system(profile.name)
    for other in sorted(PROFILES.values(), key=lambda p: (_system(p.name) != system, "@" not in p.name, p.name)):
        own = other.numpy and ("@" not in other.name or other.model != PROFILES[_system(other.name)].model)
        if own and other.name != profile.name and other.parameters[0] == profile.parameters[0]:
            model = replace(other.model, sign=profile.model.sign)
            if model != profile.model:
                yield other.name, model


def _system(profile: str) -> str:
    return profile.split("@", maxsplit=1)[0]


def _near(claimed: EvaluationModel, fields_away: int) -> Iterator[EvaluationModel]:
    alternatives = {
        f.name: [v for v in get_args(f.type) if v != getattr(claimed, f.name)]
        for f in fields(claimed)
        if f.name not in _FIXED
    }
    for away in range(1, fields_away + 1):
        for names in combinations(alternatives, away):
            for values in product(*(alternatives[n] for n in names)):
                yield replace(claimed, **dict(zip(names, values, strict=True)))


def _reproduces(profile: Profile, model: EvaluationModel, answer: Answer) -> bool:
    c, case = answer.case.configuration, answer.case
    scale = profile.model_scale(case.scale, c.grid)
    try:
        if c.operation == "dequantize":
            # Dequantizing has one dtype, the result's; where the found model computes in another, it rounds at the end.
            other = model.compute if model.compute != profile.model.compute else c.dtype
            t = DTYPES.get(other, DTYPES[c.dtype])
            reals = evaluation.dequantize(model, case.x, scale, case.zero, t, c.block_size).astype(DTYPES[c.dtype])
        elif c.operation == "quantize":
            codes = evaluation.quantize(model, case.x, scale, case.zero, c.grid, c.block_size)
            return not compare_codes(np.broadcast_to(codes, answer.value.shape), answer.value).differing
        else:
            reals = evaluation.fake_quantize(model, case.x, scale, case.zero, c.grid, c.block_size)
    except (ValueError, TypeError):  # a model that is not defined for these dtypes
        return False
    return reals.dtype == answer.value.dtype and not compare_reals(reals, answer.value).differing


def _sample(profile: Profile, answer: Answer) -> Answer:
    """Up to ``_SAMPLE`` points of the answer that the claimed model does not give, each with its own parameters."""
    case, c = answer.case, answer.case.configuration
    elements = flat(case)
    own = evaluation_of(profile, elements)
    value = np.ascontiguousarray(answer.value).ravel()
    wrong = (compare_codes if c.operation == "quantize" else compare_reals)(own, value).where[:_SAMPLE]
    rows = Case(
        replace(c, shape=(len(wrong),), block_size=None), elements.x[wrong], elements.scale[wrong], elements.zero[wrong]
    )
    return Answer(rows, value[wrong])


def evaluation_of(profile: Profile, case: Case) -> Array:
    """The profile's own answer to a case."""
    c = case.configuration
    match c.operation:
        case "quantize":
            return profile.quantize(case.x, case.scale, case.zero, c.grid, c.block_size)
        case "dequantize":
            return profile.dequantize(case.x, case.scale, case.zero, c.grid, DTYPES[c.dtype], c.block_size)
        case "fake_quantize":
            return profile.fake_quantize(case.x, case.scale, case.zero, c.grid, c.block_size)


def flat(case: Case) -> Case:
    """The case as a vector in which every element has its own parameters."""
    c, shape = case.configuration, case.x.shape
    scale, zero = (
        np.array(np.broadcast_to(per_element(p, shape, c.block_size), shape)).ravel() for p in (case.scale, case.zero)
    )
    return Case(replace(c, shape=(case.x.size,), block_size=None), np.array(case.x).ravel(), scale, zero)
