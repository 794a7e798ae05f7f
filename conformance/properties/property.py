"""A property: what any user expects of every formula of a kind, whatever its document says of single values."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfeven.conformance.properties.role import Kind, Role, Seen, number
from halfeven.conformance.requirement import Arguments
from halfeven.reference.blocks import Array

__all__ = ["Answered", "Breach", "Place", "Property", "Shown", "breach", "related", "said"]


@dataclass(frozen=True, eq=False)
class Answered:
    """A call that was answered: how properties see it, and the arrays that came by what they are."""

    kind: Kind
    arguments: Arguments
    seen: Seen
    leaves: Mapping[str, Array]


@dataclass(frozen=True)
class Place:
    """A number that came: an element of what ``leaf`` is, of the second call's answer if ``again``."""

    leaf: str
    index: int
    again: bool = False


@dataclass(frozen=True)
class Shown:
    """How a script finds out whether the property holds at a place, as Python; ``actual`` is what came.

    Attributes:
        numbers: the numbers that came, by the names that the other fields use.
        lines: assignments from these.
        holds: the condition.
        expected: what is expected where it does not hold; where it does, what came.
    """

    numbers: Mapping[str, Place]
    holds: str
    expected: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Breach:
    """What one judgement of an answer found.

    Attributes:
        points: the values judged.
        broken: where in the flattened array ``values`` the property does not hold.
        leaf: what the array is.
        values: it.
        expected: what the property asks for at a place, in words.
        shown: the same as a script finds it out.
    """

    points: int
    broken: Array
    leaf: str
    values: Array
    expected: Callable[[int], str]
    shown: Callable[[int], Shown]


@dataclass(frozen=True, eq=False)
class Property:
    """One property.

    Attributes:
        name: the aspect of its requirements.
        text: the sentence.
        words: what an implementation does that breaks it, to follow "it".
        kinds: of which formulas.
        needs: the trait that their roles must have; empty for none.
        judge: the answer to a call, and that to the second one.
        again: the arguments of the second call, from the first and, where ``answered``, from its answer; None where
            the property says nothing of such a call. Without it one answer is judged alone.
        derived: where the second call needs the answer to the first, an element of its data as Python, from the Python
            of the element that came.
        exceptions: formulas of these kinds that it does not hold for, because their documents say otherwise: why.
    """

    name: str
    text: str
    words: str
    kinds: frozenset[Kind]
    judge: Callable[[Answered, Answered | None], Iterator[Breach]]
    again: Callable[[Role, Answered], dict[str, Any] | None] | None = None
    derived: Callable[[Answered, int, str], str] | None = None
    needs: str = ""
    exceptions: Mapping[str, str] = field(default_factory=dict)


def said(values: Array, words: str) -> Callable[[int], str]:
    """What is expected: the value at a place, and words that follow it."""
    return lambda i: f"{number(values.flat[i])}{words}"


def related(leaf: str, wanted: str = "before", at: Callable[[int], int] = lambda i: i) -> Callable[[int], Shown]:
    """What is expected of the second answer: Python over the element ``before`` of the first at the place ``at``."""
    return lambda i: Shown(
        {"before": Place(leaf, at(i)), "actual": Place(leaf, i, again=True)}, f"actual == {wanted}", wanted
    )


def breach(
    leaf: str,
    values: Array,
    judged: Array,
    holds: Array,
    expected: Callable[[int], str],
    shown: Callable[[int], Shown],
) -> Breach:
    """A judgement of an array: ``judged`` and ``holds`` say where it is one, and where the property holds."""
    judged = np.broadcast_to(judged, values.shape).ravel()
    holds = np.broadcast_to(holds, values.shape).ravel()
    return Breach(int(judged.sum()), np.flatnonzero(judged & ~holds), leaf, values.ravel(), expected, shown)
