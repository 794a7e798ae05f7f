"""Explanations are tried before they are said: fresh calls of the backend, which an explanation must give too."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from halfeven.conformance.configuration import Array, Configuration
from halfeven.conformance.engine import function_verdict
from halfeven.conformance.engine.call import numbers
from halfeven.conformance.engine.checks.values import cases
from halfeven.conformance.engine.evidence import Crash, Ended, Evidence, Fault
from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.function_calls import function_calls, own_calls
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.kept import Sample, Subject, sampled
from halfeven.conformance.engine.operation_calls import shape_calls, subject
from halfeven.conformance.engine.practice import company_calls
from halfeven.conformance.engine.told import Why
from halfeven.conformance.environment import restore
from halfeven.conformance.inputs import boundaries as inputs
from halfeven.conformance.inputs import parameters
from halfeven.conformance.requirement import Arguments, Requirement
from halfeven.conformance.systems import judged_sets
from halfeven.conformance.workers import Worker
from halfeven.reference import Grid
from halfeven.reference.profile import OPERATIONS

__all__ = ["tried"]

_SEED = 104_729  # of fresh inputs, far from those of a plan
_SCALES, _SHAPES, _LARGEST = 3, 48, 4099
_BETWEEN, _TIMES = 512, 8  # elements of a call, no more than others have, and calls
_OWN, _GROWN, _DEFAULTS, _NUMBERS = 48, 24, 12, 20_000


def tried(why: Why, of: Subject, grids: list[Grid], worker: Worker, turn: int) -> Sample | None:
    """Fresh answers, ``open`` where they refute the explanation; None where the backend gave none.

    Args:
        why: what is to be tried.
        of: of which operation or formula.
        grids: those of an operation, in which answers differ.
        worker: where the backend is.
        turn: each has other inputs.
    """
    restore()
    _, formula, dtype = of
    _profile, colon, operation = formula.partition(":")
    says = "What was found explains fresh answers too."
    claimed = worker.offer.profile
    requirement = Requirement(f"{formula.replace(':', '/')}/trial", says, "expected", "", ("trial",), formula=formula)
    configuration = None
    if colon:
        every = worker.offer.granularities
        plain = "tensor" if "tensor" in every else every[0]
        pieces = [(grid, how) for grid, how in why.pieces if how in every]
        places = [*pieces, *((grid, plain) for grid in grids)]
        grid, granularity = places[turn % len(places)]
        name = next(o for o in OPERATIONS if o == operation)
        configuration = Configuration(name, dtype, grid, (), granularity)
    e = Evidence(Item(worker.offer, requirement, "trial", configuration, "quick", _SEED + turn), worker)
    try:
        with np.errstate(all="ignore"):
            _ask_operation(e) if colon else _ask_function(e, claimed)
    except (Crash, Fault, Ended):
        pass  # what was answered before counts
    wrong = _but_open(e, why.refuted(e.compared))
    named = f"{of[0]}::{formula.replace(':', '/')}/trial/{'/'.join(filter(None, (dtype, str(turn))))}"
    return sampled(e, named, is_open=bool(wrong), wrong=wrong)


def _ask_operation(e: Evidence) -> None:
    s, offer = e.setting, e.item.offer
    c, seed = s.configuration, e.item.seed
    scales = parameters.scales(s.dtype, s.scale_dtype, s.grid, 16, seed)
    rng = np.random.default_rng(seed)
    drawn = np.exp2(rng.uniform((-12, -1), (-1, 6))).astype(scales.dtype)  # a small one and a large one
    some = np.append(rng.choice(np.maximum(scales, scales.dtype.type(2.0**-20)), _SCALES, replace=False), drawn)
    if c.operation != "dequantize":
        e.expect(cases(e, some, s.zeros, lambda scale, z: inputs.boundaries(scale, z, s.grid, s.dtype)))
        e.expect(cases(e, some[:1], s.zeros, lambda scale, z: inputs.edges(scale, z, s.grid, s.dtype)))
        for _ in range(_TIMES):  # what is alike at the boundaries may part elsewhere
            e.expect(cases(e, some[-2:], s.zeros, lambda scale, z: _between(scale, z, s.grid, s.dtype, rng)))
    of = subject(s.profile.name, c.operation, c.dtype, c.grid, _SEED)  # the design of its calls is made once
    asked = list(islice(shape_calls(offer, of, largest=_LARGEST), 400))
    chosen = rng.choice(len(asked), min(_SHAPES, len(asked)), replace=False)
    peculiar = company_calls(offer, of, offer.granularities)
    e.expect_calls((a.call, a.expected) for a in chain((asked[i] for i in chosen), peculiar))


def _between(scale: Array, zero: Array, grid: Grid, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Inputs anywhere on the grid, a row for each scale."""
    low, high = ((end - zero)[:, None] for end in (grid.qmin - 1, grid.qmax + 1))
    quotients = rng.uniform(low, high, (scale.size, _BETWEEN))
    return np.asarray((quotients * scale[:, None]).astype(dtype))


def _but_open(e: Evidence, wrong: Mapping[int, Array]) -> dict[int, Array]:
    """What an explanation does not give, but for NaN."""
    found = dict(wrong)
    for asked in e.compared:
        nans = e.open_nans(asked.case) if id(asked) in found and asked.case is not None else None
        if nans is not None:
            places = found.pop(id(asked))
            found |= {id(asked): left} if (left := places[~nans.ravel()[places]]).size else {}
    return found


def _ask_function(e: Evidence, profile: str) -> None:
    formula = e.item.requirement.formula
    claimed, sets = formula_of(formula, profile), judged_sets(formula)
    rng = np.random.default_rng(e.item.seed)
    own = [arguments for one in sets for arguments in one.build()]
    drawn = [own[i] for i in rng.permutation(len(own))[:_OWN]]
    kinds = own_calls(sets, claimed.function, e.item.seed)
    some = [*drawn, *(o.arguments for o in kinds[:_OWN])]
    own = [a for a in (*some, *_with_defaults(claimed.function, some)) if numbers(a) <= _NUMBERS]
    e.expect_calls(function_verdict.expected_calls(claimed, own, e.item.requirement.text))
    negative = e.item.offer.array == "numpy"
    grown = function_calls(formula, sets, "quick", e.item.seed, negative=negative, function=claimed.function, own=kinds)
    small = (a for a in islice(grown, 200) if numbers(a.call.named) <= _NUMBERS)
    e.expect_calls((a.call, a.expected) for a in islice(small, _GROWN))


def _with_defaults(function: Callable[..., Any], calls: Sequence[Arguments]) -> Iterator[Arguments]:
    """Calls with a default given: whoever has another one does as documented there."""
    for name, parameter in inspect.signature(function).parameters.items():
        if isinstance(parameter.default, bool | int | float | str):
            without = [a for a in calls if name not in a]
            yield from ({**a, name: parameter.default} for a in without[:: max(len(without) // _DEFAULTS, 1)])
