"""Calls of documented functions: for each formula, named sets of arguments at which quantizers part."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.catalogue import FORMULAS

__all__ = ["CALLS", "Arguments", "CallSet", "calls"]

Arguments = Mapping[str, Any]
"""One call by keyword: arrays are NumPy's; dtypes and enumerations are named by strings, grids are two ints."""

_Builder = Callable[[], Iterable[Arguments]]


@dataclass(frozen=True)
class CallSet:
    """The calls that one check makes of one formula."""

    formula: str
    name: str
    build: _Builder


CALLS: dict[tuple[str, str], CallSet] = {}


def _quietly(build: _Builder) -> list[Arguments]:
    with np.errstate(all="ignore"):  # the extremes of a dtype are what calls are made of
        return list(build())


def calls(formula: str, name: str) -> Callable[[_Builder], _Builder]:
    """Register the decorated function, which gives the calls of check ``name`` of ``formula``, the same every time.

    Raises:
        ValueError: the pair is taken, or no formula has this id.
    """

    def register(build: _Builder) -> _Builder:
        if formula not in FORMULAS:
            msg = f"formula={formula!r} is not accepted: the catalogue has no formula of this id"
            raise ValueError(msg)
        if (formula, name) in CALLS:
            msg = f"name={name!r} is taken: {formula} has calls of this name"
            raise ValueError(msg)
        CALLS[formula, name] = CallSet(formula, name, lambda: _quietly(build))
        return build

    return register
