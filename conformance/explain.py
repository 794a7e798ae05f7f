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
from halfeven.reference.model import DOES, EvaluationModel, changes
from halfeven.reference.profiles import PROFILES, Profile

Array = npt.NDArray[Any]

__all__ = ["Answer", "Explanation", "evaluation_of", "explain", "flat", "in_words"]

_FIELDS_AWAY = 2
_SAMPLE = 128


@dataclass(frozen=True, eq=False)
class Answer:
    """What a backend answered to a case."""

    case: Case
    value: Array


@dataclass(frozen=True)
class Explanation:
    """What reproduces every answer.

    Attributes:
        words: the fewest changes to the claimed model, each as what is done where the document does what.
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
    on_nan = np.concatenate([np.isnan(s.case.x.astype(np.float64)) for s in samples])
    only_nan = bool(on_nan.size and on_nan.all())
    if named is not None:
        # Of a release's choices only those are named that make the difference; where NaN alone differs, its code first.
        first = "nan" if only_nan else ""
        return Explanation(in_words(claimed, next(m for m in _between(claimed, named, first) if fits(m))), name)
    for words, taken in _MISREAD.items():
        if fits(claimed, taken):
            return Explanation(words)
    searched = {f.name for f in fields(claimed)}
    if only_nan:  # other fields reproduce it by accident: no arithmetic was seen
        searched = {"nan"}
    elif not on_nan.any():
        searched -= {"nan"}
    nearest = next((m for m in _near(claimed, searched) if fits(m)), None)
    return None if nearest is None else Explanation(in_words(claimed, nearest))


def _narrow(case: Case) -> Case:
    grid = case.configuration.grid
    return replace(case, configuration=replace(case.configuration, grid=Grid(grid.qmin + 1, grid.qmax)))


def _scale_off(ulps: int) -> Callable[[Case], Case]:
    return lambda case: replace(case, scale=step(np.asarray(case.scale), np.asarray(ulps)))


# The claimed model, on arguments that were read otherwise than they were given.
_MISREAD: dict[str, Callable[[Case], Case]] = {
    "uses the narrow grid, from qmin + 1, where the full one was given": _narrow,
    "computes with the scale one ulp above the one given": _scale_off(1),
    "computes with the scale one ulp below the one given": _scale_off(-1),
}


def in_words(claimed: EvaluationModel, found: EvaluationModel) -> str:
    """``multiplies by 1/s where the document divides by s; ...``, a clause for each field in which they differ."""
    pairs = changes(claimed, found).items()
    return "; ".join(f"{DOES[n][does]} where the document {DOES[n][says]}" for n, (says, does) in pairs)


def _between(claimed: EvaluationModel, named: EvaluationModel, first: str) -> Iterator[EvaluationModel]:
    """The claimed model with some of the named one's choices, the fewest first; ``named`` itself comes last."""
    changed = sorted(changes(claimed, named), key=lambda n: n != first)
    for away in range(1, len(changed) + 1):
        for names in combinations(changed, away):
            yield replace(claimed, **{n: getattr(named, n) for n in names})


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


def _near(claimed: EvaluationModel, searched: set[str]) -> Iterator[EvaluationModel]:
    alternatives = {
        f.name: [v for v in get_args(f.type) if v != getattr(claimed, f.name)]
        for f in fields(claimed)
        if f.name in searched
    }
    for away in range(1, _FIELDS_AWAY + 1):
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
