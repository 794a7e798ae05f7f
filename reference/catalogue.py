"""The catalogue of documented formulas: each transcription registers itself with ``@formula``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["FORMULAS", "AsComputed", "Basis", "Formula", "Real", "formula"]


@dataclass(frozen=True)
class Real:
    """The equation over the real numbers, rounded once at the end."""

    name: Literal["real"] = "real"


@dataclass(frozen=True)
class AsComputed:
    """Every operation rounded in the stated dtype, in the written order."""

    dtype: str
    name: Literal["as-computed"] = "as-computed"


Basis = Real | AsComputed


@dataclass(frozen=True)
class Formula:
    """One documented formula: its id, its equation (LaTeX), what it states, where it stands, and its transcription."""

    id: str
    equation: str
    basis: Basis
    source: str
    function: Callable[..., Any]


FORMULAS: dict[str, Formula] = {}


def formula(id: str, *, equation: str, basis: Basis, source: str) -> Callable[[F], F]:  # noqa: A002 - the catalogue's own word
    """Register the decorated transcription under ``id``; a second use of an id is a ValueError."""

    def register(function: F) -> F:
        if id in FORMULAS:
            msg = f"id={id!r} is taken: every formula stands once"
            raise ValueError(msg)
        FORMULAS[id] = Formula(id, equation, basis, source, function)
        return function

    return register
