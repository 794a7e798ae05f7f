"""What is tried: the choices that quotients, roundings and products read, without those that are idle in company."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from halfeven.conformance.engine.fitting.boxes import Box, like
from halfeven.conformance.engine.fitting.elements import Elements
from halfeven.reference.model import EvaluationModel
from halfeven.reference.steps import HALVES

__all__ = ["CHOICES", "decode_options", "quotient_options", "roundings"]

#: Each choice and its values.
CHOICES = {name: tuple(map(str, words)) for name, words in EvaluationModel.choices().items()}
_DTYPES = ("float16", "bfloat16", "float32")
_WIDER = ("float32", "float64")
_WHOLE = ("toward-zero", "floor", "ceil")  # rules that have no half
_ROUNDINGS: tuple[Box, ...] = (
    *(
        {"rounding": (rule,)} if rule in _WHOLE else {"rounding": (rule,), "half": (half,)}
        for rule in CHOICES["rounding"]
        for half in ("exact", "added")
        if rule not in _WHOLE or half == "exact"
    ),
    {"rounding": ("half-even",), "half": ("difference",)},  # as gradients are passed with torch.round
)


def quotient_options(base: EvaluationModel, groups: Sequence[Elements]) -> Iterator[Box]:
    """All that makes quotients, with what is added before they are rounded."""
    for held, computes in product(_helds(base, groups), _computes(base, groups)):
        types = [g.compute(like(base, {"compute": computes[0]})) for g in groups]
        kept = ("compute", *_quotients(types))
        for division, quotient in product(_divisions(groups, types), dict.fromkeys((*kept, base.quotient))):
            for zero_point, half in _sums(base, division["division"][0]):
                yield {
                    "held": (held,),
                    "compute": computes,
                    **division,
                    "quotient": (quotient,),
                    "zero_point": (zero_point,),
                    **({"half": (half,)} if half else {}),
                }


def roundings(constant: float) -> Sequence[Box]:
    """The rules for quotients; of those with a half in them (``constant``, else 0) the ones that add no other."""
    if constant:
        return [{"rounding": (rule,)} for rule, half in HALVES.items() if half == constant]
    return _ROUNDINGS


def decode_options(base: EvaluationModel, groups: Sequence[Elements]) -> Iterator[Box]:
    """All that makes reals of codes."""
    faked = groups[0].operation == "fake_quantize"
    over = base.division == "multiply-by-q-per-real"
    divisions = tuple(v for v in CHOICES["division"] if (v == "multiply-by-q-per-real") == over)
    subtracts = CHOICES["subtract"] if base.sign != "none" else ("",)
    computes = _computes(base, groups)
    for held, form, product_ in product(_helds(base, groups), CHOICES["form"], CHOICES["product"]):
        plain = form in {"product", "inverse"}
        inverses = CHOICES["inverse"] if form == "inverse" else ("",)
        for subtract, inverse in product(subtracts if plain else ("",), inverses):
            option = {"held": (held,), "form": (form,), "product": (product_,), "division": divisions}
            option |= {"subtract": (subtract,)} if subtract else {}
            option |= {"inverse": (inverse,)} if inverse else {}
            for names in computes if faked and product_ == "output" else [()]:
                yield option | ({"compute": names} if names else {})


def _quotients(types: Sequence[Any]) -> tuple[str, ...]:
    """The dtypes other than their own in which quotients may be kept; of 16 bits no narrower one is worth a look."""
    if any(t == np.float64 for t in types):
        return _DTYPES
    narrow = max(t.itemsize for t in types) <= 2  # noqa: PLR2004 - bytes
    return _WIDER if narrow else (*_DTYPES[:2], "float64")


def _helds(base: EvaluationModel, groups: Sequence[Elements]) -> tuple[str, ...]:
    wide = any(g.scale.dtype == np.float64 for g in groups)
    return tuple(dict.fromkeys(("given", *(_DTYPES if wide else _DTYPES[:2]), base.held)))


def _computes(base: EvaluationModel, groups: Sequence[Elements]) -> list[tuple[str, ...]]:
    """Values of ``compute`` that come to the same dtypes here."""
    known: dict[tuple[Any, ...], list[str]] = {}
    for value in CHOICES["compute"]:
        known.setdefault(tuple(g.compute(like(base, {"compute": value})) for g in groups), []).append(value)
    return [tuple(names) for names in known.values()]


def _divisions(groups: Sequence[Elements], types: Sequence[Any]) -> Iterator[dict[str, tuple[str, ...]]]:
    inverses: dict[tuple[Any, ...], list[str]] = {}
    for name in CHOICES["inverse"]:
        known: dict[str, Sequence[Any]] = {"scale": [g.scale.dtype for g in groups], "compute": types}
        inverses.setdefault(tuple(map(str, known.get(name, [name]))), []).append(name)
    for division in CHOICES["division"]:
        if division in {"reciprocal", "low-reciprocal"}:
            yield from ({"division": (division,), "inverse": tuple(names)} for names in inverses.values())
        else:
            yield {"division": (division,)}


def _sums(base: EvaluationModel, division: str) -> Iterator[tuple[str, str]]:
    """Where the zero point is added, and the half, if it is added with it."""
    if division.startswith(("range", "low")):
        yield from (("after-rounding", ""), ("before-rounding", ""))
        if division == "range-affine":
            yield "fused", ""
        return
    multiplied = division != "divide"
    for zero_point in ("after-rounding", *(("before-rounding", "fused") if base.sign != "none" else ())):
        if zero_point != "fused" or multiplied:
            yield zero_point, ""
        if zero_point != "after-rounding":
            yield zero_point, "with-zero-point"
        elif multiplied:
            yield zero_point, "fused"
