"""Which evaluation model a set of answers follows: the search over models near the one that was claimed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.configuration import DTYPES, Case
from halfeven.conformance.engine.compare import compare_codes, compare_reals
from halfeven.reference import Grid
from halfeven.reference.blocks import Array, per_element
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES, has_own_operations

__all__ = ["Explanation", "Observed", "evaluation_of", "explain", "flat"]

_SAMPLE = 128


@dataclass(frozen=True, eq=False)
class Observed:
    """What a backend answered to a case; ``where`` (flat indices, if known) the profile gives something else."""

    case: Case
    value: Array
    where: Array | None = None


@dataclass(frozen=True)
class Explanation:
    """What reproduces every answer.

    Attributes:
        words: the fewest changes to the claimed model, each as what is done where the document does what.
        profile: the name of the profile that computes so, if one does.
    """

    words: str
    profile: str = ""


def explain(profile: Profile, answers: Sequence[Observed], failing: Sequence[Observed]) -> Explanation | None:
    """The nearest model that reproduces all ``answers`` bit for bit, or None. ``failing`` comes first, as a sieve.

    A named model is tried first, then one field changed, arguments misread, and two fields changed.
    """
    if any(a.value.dtype.kind not in "iuf" and a.value.dtype not in DTYPES.values() for a in answers):
        return None
    wrong = [_differing(profile, a) for a in failing]
    samples = [_head(a) for a in wrong[:3]]

    def fits(model: EvaluationModel, taken: Callable[[Case], Case] = lambda case: case) -> bool:
        return all(_reproduces(profile, model, replace(a, case=taken(a.case))) for a in [*samples, *answers])

    claimed = profile.model
    if fits(claimed):  # no value differs, but the sign of a zero, or one call from another
        return None
    name, named = next(((n, m) for n, m in _named(profile) if fits(m)), ("", None))
    on_nan = np.concatenate([np.isnan(a.case.x.astype(np.float64)) for a in wrong])
    only_nan = bool(on_nan.size and on_nan.all())
    if named is not None:
        # Of a release's choices only those are named that make the difference; where NaN alone differs, its code.
        tried = [replace(claimed, nan=named.nan)] if only_nan else []
        return Explanation(claimed.against(next(m for m in [*tried, *_between(claimed, named)] if fits(m))), name)
    everything = set(claimed.choices())
    searched = {"nan"} if only_nan else everything if on_nan.any() else everything - {"nan"}
    words = next(_without_a_name(claimed, searched, fits), None)
    return None if words is None else Explanation(words)


def _without_a_name(claimed: EvaluationModel, searched: set[str], fits: Callable[..., bool]) -> Iterator[str]:
    """What reproduces the answers and is no profile's model, in words, the likeliest first."""
    yield from (claimed.against(model) for model in _away(1, claimed, searched) if fits(model))
    if searched == {"nan"}:  # anything else reproduces it by accident: no arithmetic was seen
        return
    # After one field: where few points differ, a scale one ulp off reproduces much that is done otherwise.
    yield from (words for words, taken in _MISREAD.items() if fits(claimed, taken))
    yield from (claimed.against(model) for model in _away(2, claimed, searched) if fits(model))


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


def _between(claimed: EvaluationModel, named: EvaluationModel) -> Iterator[EvaluationModel]:
    """The claimed model with some of the named one's choices, the fewest first; ``named`` itself comes last."""
    changed = claimed.changes(named)
    for away in range(1, len(changed) + 1):
        for names in combinations(changed, away):
            yield replace(claimed, **{n: getattr(named, n) for n in names})


def _named(profile: Profile) -> Iterator[tuple[str, EvaluationModel]]:
    """The models of the other profiles, the same system's first, with the parameters as this one hands them over."""
    system = _system(profile.name)
    for other in sorted(PROFILES.values(), key=lambda p: (_system(p.name) != system, "@" not in p.name, p.name)):
        if (
            has_own_operations(other.name)
            and other.name != profile.name
            and other.parameters[0] == profile.parameters[0]
        ):
            model = replace(other.model, sign=profile.model.sign)
            if model != profile.model:
                yield other.name, model


def _system(profile: str) -> str:
    return profile.split("@", maxsplit=1)[0]


def _away(number: int, claimed: EvaluationModel, searched: set[str]) -> Iterator[EvaluationModel]:
    """The models that differ from the claimed one in ``number`` of the fields searched."""
    alternatives = {
        name: [v for v in words if v != getattr(claimed, name)]
        for name, words in claimed.choices().items()
        if name in searched
    }
    for names in combinations(alternatives, number):
        for values in product(*(alternatives[n] for n in names)):
            changed: dict[str, Any] = dict(zip(names, values, strict=True))
            yield replace(claimed, **changed)


def _reproduces(profile: Profile, model: EvaluationModel, answer: Observed) -> bool:
    c, case = answer.case.configuration, answer.case
    found = replace(profile, model=model)
    try:
        if c.operation == "dequantize":
            # Dequantizing has one dtype, the result's; where the found model computes in another, it rounds at the end.
            other = model.compute if model.compute != profile.model.compute else c.dtype
            t = DTYPES.get(other, DTYPES[c.dtype])
            reals = found.dequantize(case.x, case.scale, case.zero, c.grid, t, c.block_size).astype(DTYPES[c.dtype])
        elif c.operation == "quantize":
            codes = evaluation_of(found, case)
            return not compare_codes(np.broadcast_to(codes, answer.value.shape), answer.value).differing
        else:
            reals = evaluation_of(found, case)
    except (ValueError, TypeError):  # a model that is not defined for these dtypes
        return False
    return reals.dtype == answer.value.dtype and not compare_reals(reals, answer.value).differing


def _differing(profile: Profile, answer: Observed) -> Observed:
    """The points of the answer that the profile does not give, as a vector, each with its own parameters."""
    case, c, wrong = answer.case, answer.case.configuration, answer.where
    if wrong is None:
        own = np.broadcast_to(evaluation_of(profile, case), answer.value.shape)
        wrong = (compare_codes if c.operation == "quantize" else compare_reals)(own, answer.value).where
    shape = case.x.shape or (1,)
    at = np.unravel_index(wrong, shape)
    scale, zero = (per_element(p, case.x.shape, c.block_size) for p in (case.scale, case.zero))
    x, s, z, value = (np.broadcast_to(a, shape)[at] for a in (case.x, scale, zero, answer.value))
    return Observed(Case(replace(c, shape=(len(wrong),), block_size=None), x, s, z), value)


def _head(answer: Observed) -> Observed:
    """The first ``_SAMPLE`` points of a vector."""
    return _points(answer.case, answer.value, np.arange(min(_SAMPLE, answer.value.size)))


def _points(case: Case, value: Array, at: Array) -> Observed:
    shape = (len(at),)
    return Observed(
        Case(replace(case.configuration, shape=shape), case.x[at], case.scale[at], case.zero[at]), value[at]
    )


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
