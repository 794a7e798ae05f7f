"""What a model of plain casts or scales has found in answers, and how its choices are told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfeven.conformance.fingerprints.kinds import same
from halfeven.conformance.fingerprints.result import UNDECIDED, Witnessed
from halfeven.reference.blocks import Array

__all__ = ["Answered", "Reading", "decided", "witnessed"]


@dataclass(frozen=True, eq=False)
class Answered:
    """The data of a call, and the numbers that came."""

    x: Array
    answer: tuple[Array, ...]


@dataclass(frozen=True)
class Reading:
    """What a model has found.

    Attributes:
        fields: each choice with its value, as in ``Fingerprint``.
        alternatives: of a choice without one value those that remain.
        witnesses: of each choice that is decided the input that decided it.
        share: of all numbers those that the model gives.
        notes: what else is to be known.
        proofs: of each choice that is not distinguishable why.
        near: of choices of which no value gives everything the one that gives most.
    """

    fields: Mapping[str, Any]
    alternatives: Mapping[str, tuple[Any, ...]]
    witnesses: Mapping[str, Witnessed] = field(default_factory=dict)
    share: float = 1.0
    notes: tuple[str, ...] = ()
    proofs: Mapping[str, str] = field(default_factory=dict)
    near: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """All that is decided, and what is nearest where nothing is, in a line."""
        said = {**self.near, **{k: v for k, v in self.fields.items() if v != UNDECIDED}}
        return ", ".join(f"{k} {v}" for k, v in said.items())


def decided(remaining: Iterable[Mapping[str, Iterable[Any]]]) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """The fields, and the alternatives of those without one value, of the values that each model that remains has."""
    values: dict[str, dict[Any, None]] = {}
    for model in remaining:
        for name, some in model.items():
            values.setdefault(name, {}).update(dict.fromkeys(some))
    fields = {name: next(iter(some)) if len(some) == 1 else UNDECIDED for name, some in values.items()}
    return fields, {name: tuple(some) for name, some in values.items() if len(some) > 1}


def witnessed(given: Array, came: Array, instead: Array, other: Any, *, what: str = "x") -> Witnessed | None:
    """The first number at which another value of a choice gives something else than came."""
    told = np.flatnonzero(~same(came, instead))
    if not told.size:
        return None
    i = int(told[0])
    return Witnessed(f"{what} {float(given[i])!r}", f"{float(came[i])!r}", f"{float(instead[i])!r}", str(other))
