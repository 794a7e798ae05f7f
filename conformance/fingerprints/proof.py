"""That no input tells apart what remains: for each pair of parameters that was asked, all inputs of the dtype."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any

import numpy as np

from halfeven.conformance.fingerprints.cubes import size
from halfeven.conformance.fingerprints.identities import one_function
from halfeven.conformance.fingerprints.models import Asked, Given, Spent, Stages, Work, agreeing, of_model
from halfeven.conformance.fingerprints.runs import FAR, LIMITING, every, monotone, predicted, run_ends, specials
from halfeven.conformance.fingerprints.search import Search
from halfeven.reference.model import EvaluationModel

__all__ = ["Proved", "proved"]

_PARTS = 1 << 22  # of the models that are followed
_MATTER = ("overflow", "integer", "clamp", "zero_point", "division")
_BY_RULE = "the same for every input, since the steps in which they differ round to the same"
_WIDEST = 4096  # steps of a grid whose boundaries are all looked at


@dataclass(frozen=True)
class Proved:
    """For which pairs of scale and zero point all that remains gives the same for every input.

    Attributes:
        pairs: those for which it is proved.
        how: by what, in words.
        open: why it is not proved for all that were asked; empty where it is.
        split: a pair for which an input tells some of what remains apart.
        beyond: the choices of which nothing is proved, since inputs far beyond the grid may show them.
    """

    pairs: tuple[tuple[float, int], ...]
    how: str = ""
    open: str = ""
    split: tuple[float, int] | None = None
    beyond: tuple[str, ...] = ()

    def words(self, asked: Asked) -> str:
        """The statement that is proved."""
        shown = ", ".join(f"({s!r}, {z})" for s, z in self.pairs[:3])
        more = f" and {len(self.pairs) - 3} more" if len(self.pairs) > 3 else ""  # noqa: PLR2004 - those shown
        return f"{self.how}, on {asked.grid} with (scale, zero point) {shown}{more}"


def proved(search: Search, pairs: Sequence[tuple[float, int]], *, nan: bool = True, far: bool = True) -> Proved:
    """Hold all models that remain against one of them, at inputs that decide every other (see ``runs``).

    NaN is one of them unless ``nan`` says that it is looked at elsewhere. Without ``far`` it is of inputs within 2^30
    codes alone, where neither the ends nor a conversion of large numbers show.
    """
    asked, model, cubes = search.asked, search.first(), search.cubes
    if size(cubes) == 1:
        return Proved(tuple(pairs))
    if model.returned != "reals":  # x is in the answer: where the reals are the same for every code, so is all that is
        model, cubes = replace(model, returned="reals"), [{**cube, "returned": ("reals",)} for cube in cubes]
    done: list[tuple[float, int]] = []
    work = Work(_PARTS)
    whole = asked.operation == "dequantize" or bool(every(asked.dtype).size)
    why = "" if whole else _not_monotone(search, any(zero for _, zero in pairs))
    by_rule = bool(why) and one_function(search.cubes, asked)
    if why and not by_rule:
        return Proved((), open=why)
    how = _BY_RULE if by_rule else "the same for every input: the first and last input of every run of equal codes"
    if whole:
        how = "every code" if asked.operation == "dequantize" else f"every {asked.dtype.name}"
    for scale, zero in dict.fromkeys(pairs):
        given = Given(asked, np.empty(0, asked.dtype), np.asarray(scale, asked.scale_dtype), zero)
        if not whole and not by_rule and _limiting(search) and not _ends_are_the_grids(model, given):
            why = f"with scale {scale!r} and zero point {zero} the largest inputs have other codes than the grid's ends"
            return Proved(tuple(done), how, why)
        tried = [replace(given, x=specials(asked.dtype))] if by_rule else _deciding(model, given, whole=whole)
        for one in tried:
            known = np.abs(one.x.astype(np.float64)) <= (np.inf if far else FAR * given.step)
            one = replace(one, x=one.x[known | (nan and far)])  # noqa: PLW2901
            try:
                same = agreeing(Stages(one, work), cubes, of_model(model, one))
            except Spent:
                return Proved(tuple(done), how, _late(done, pairs))
            if size(same) < size(cubes):
                why = f"with scale {scale!r} and zero point {zero} some inputs tell them apart"
                return Proved(tuple(done), how, why, (scale, zero))
        done.append((scale, zero))
    return Proved(tuple(done), how if far else f"{how}, within 2^30 codes")


def _deciding(model: EvaluationModel, given: Given, *, whole: bool) -> list[Given]:
    """Inputs that decide all of a pair's."""
    asked = given.asked
    if asked.operation == "dequantize":
        return [replace(given, x=np.arange(asked.grid.qmin, asked.grid.qmax + 1, dtype=np.float64))]
    if whole:
        return [replace(given, x=every(asked.dtype))]
    x = np.concatenate([run_ends(model, given), specials(asked.dtype)])
    coded = replace(given, asked=replace(asked, operation="quantize"), x=x)
    return [coded] if asked.operation == "quantize" else [coded, replace(given, x=x)]


def _limiting(search: Search) -> bool:
    """Whether some model that remains wraps, but for the limits that it sets x."""
    return any("wrap" in cube["overflow"] and LIMITING & {*cube["division"]} for cube in search.cubes)


def _ends_are_the_grids(model: EvaluationModel, given: Given) -> bool:
    """Whether the largest inputs have the codes at the ends of the grid, as of what limits x and does not wrap."""
    asked = replace(given.asked, operation="quantize")
    largest = specials(asked.dtype)[-2:]
    codes = predicted(model, largest, replace(given, asked=asked))
    return bool(codes.tolist() == [asked.grid.qmax, asked.grid.qmin])


def _late(done: Sequence[Any], pairs: Sequence[Any]) -> str:
    return f"too many models remain to follow them: {len(done)} of {len(pairs)} pairs of parameters were looked at"


def _not_monotone(search: Search, zero_points: bool) -> str:
    """Why bisection proves nothing here; empty where it does."""
    model = search.first()
    combined = (product(*(cube[name] for name in _MATTER)) for cube in search.cubes)
    for chosen in dict.fromkeys(chain.from_iterable(combined)):
        named: dict[str, Any] = dict(zip(_MATTER, chosen, strict=True))
        found = replace(model, **named)
        if not monotone(found, search.asked.grid, zero_points=zero_points):
            said = ", ".join(f"{name}={value}" for name, value in zip(_MATTER, chosen, strict=True))
            return f"with {said} codes may wrap, so they do not ascend"
    if search.asked.grid.num_steps > _WIDEST:
        return f"the grid has {search.asked.grid.num_steps} steps, of which not all were looked at"
    return ""
