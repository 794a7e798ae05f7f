"""Holding answers to a property: the calls that it needs, and what it finds in their answers."""

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Property
from halfeven.conformance.properties.role import Role, fitting
from halfeven.conformance.requirement import Arguments
from halfeven.reference.blocks import Array

__all__ = ["breaches", "first_of", "second_of"]


def first_of(role: Role, arguments: Arguments, value: Any) -> Answered | None:
    """An answer as properties see it; None where the call is none that they can judge."""
    seen = fitting(role.see, arguments)
    leaves: Mapping[str, Array] | None = fitting(role.read, arguments, value)
    if seen is None or leaves is None or not seen.x.size:
        return None
    whole = all(isinstance(v, np.ndarray) for v in leaves.values())
    per_element = [v for name, v in leaves.items() if name in {"codes", "reals", "dx", "mask"}]
    fits = all(v.shape == seen.x.shape for v in per_element)
    return Answered(role.kind, arguments, seen, leaves) if whole and fits else None


def second_of(found: Property, role: Role, first: Answered) -> Arguments | None:
    """The arguments of the second call that a property needs; None where it needs none, or says nothing."""
    made: Arguments | None = None if found.again is None else fitting(found.again, role, first)
    return made


def breaches(found: Property, first: Answered, second: Answered | None) -> list[Breach]:
    """What the property finds: each judgement with the values judged and those that it does not hold for.

    What comes after arrays whose shapes do not fit together is not judged: the calls of the formula tell of shapes.
    """
    seen: list[Breach] = []
    with np.errstate(all="ignore"), contextlib.suppress(ValueError, IndexError):  # as NumPy says that they do not fit
        seen.extend(b for b in found.judge(first, second) if b.points)
    return seen
