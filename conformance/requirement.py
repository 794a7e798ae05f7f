"""Requirements: a sentence about a formula, how far a document supports it, and what decides it: calls, or checks.

A room, ``conformance/systems/<system>/<part>.py``, says from top to bottom what the documents require
(``REQUIREMENTS``), by which calls that is decided (``@calls``), and how the installed libraries answer such a call
(``ANSWERS``).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from halfeven.reference import FORMULAS, PROFILES
from halfeven.reference.profile import OPERATIONS

__all__ = [
    "CALLS",
    "Arguments",
    "Basis",
    "CallSet",
    "Requirement",
    "calls",
    "documented",
    "expected",
    "measured",
    "of",
    "on",
    "silent",
]

Basis = Literal["documented", "measured", "expected", "silent"]
Arguments = Mapping[str, Any]
"""One call by keyword: arrays are NumPy's; dtypes and enumerations are named by strings, grids are two ints."""

_Builder = Callable[[], Iterable[Arguments]]


@dataclass(frozen=True)
class Requirement:
    """One sentence that an implementation can be held to.

    Attributes:
        id: ``formula/aspect``; of an operation ``profile/operation/aspect``.
        text: the sentence, in our words.
        basis: the document says so; a release was measured to do so; every user expects it; or the document is
            silent, and the outcome is the value seen.
        source: where the document says it.
        checks: the names of the call sets that decide it; of an operation those of the checks.
        kills: the mutants made by hand that it must catch.
        needs: operations that a backend must have besides the one spoken of.
        formula: the id of the formula that it speaks of; empty where the profile states none.
        called: whether it is decided by calls of the formula; else by checks of the operation.
        operations: in a row of a room, the operations that it speaks of.
    """

    id: str
    text: str
    basis: Basis
    source: str
    checks: tuple[str, ...]
    kills: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    formula: str = ""
    called: bool = False
    operations: tuple[str, ...] = ()

    @property
    def aspect(self) -> str:
        """The last part of the id."""
        return self.id.rpartition("/")[2]

    @property
    def operation(self) -> str:
        """The operation, or the document's symbol of the function, that it speaks of."""
        return self.id.split("/")[1]


def documented(aspect: str, text: str, source: str, **more: Any) -> Requirement:
    """A row: the document says so."""
    return _row("documented", aspect, text, source, **more)


def measured(aspect: str, text: str, source: str, **more: Any) -> Requirement:
    """A row: no document says so, and a release does."""
    return _row("measured", aspect, text, source, **more)


def expected(aspect: str, text: str, source: str = "", **more: Any) -> Requirement:
    """A row: no document says so, and every user expects it."""
    return _row("expected", aspect, text, source, **more)


def silent(aspect: str, text: str, source: str = "", **more: Any) -> Requirement:
    """A row: no document says what happens; the value seen is reported."""
    return _row("silent", aspect, text, source, **more)


def _row(
    basis: Basis,
    aspect: str,
    text: str,
    source: str,
    *,
    calls: tuple[str, ...] = (),
    operations: tuple[str, ...] = (),
    checks: tuple[str, ...] = (),
    kills: tuple[str, ...] = (),
    needs: tuple[str, ...] = (),
) -> Requirement:
    """A requirement of an aspect; ``calls`` are by default the call set of the aspect's name.

    Raises:
        ValueError: an operation that there is not, or operations without checks.
    """
    if unknown := set(operations) - set(OPERATIONS):
        msg = f"{aspect}: operations={sorted(unknown)} is not accepted: give some of {', '.join(OPERATIONS)}"
        raise ValueError(msg)
    if bool(operations) != bool(checks) or (operations and calls):
        msg = f"{aspect}: give operations with their checks, or calls"
        raise ValueError(msg)
    tried = checks or calls or (aspect,)
    return Requirement(aspect, text, basis, source, tried, kills, needs, operations=operations)


def of(formula: str, *rows: Requirement) -> tuple[Requirement, ...]:
    """The rows as requirements of ``formula``.

    Raises:
        ValueError: no formula has this id.
    """
    _known(formula)
    return tuple(replace(r, id=f"{formula}/{r.id}", formula=formula, called=True) for r in rows)


def on(profile: str, *rows: Requirement) -> tuple[Requirement, ...]:
    """The rows as requirements of the operations of ``profile``.

    Raises:
        ValueError: no profile has this name.
    """
    if profile not in PROFILES:
        msg = f"profile={profile!r} is not accepted: give one of {', '.join(PROFILES)}"
        raise ValueError(msg)
    return tuple(replace(r, id=f"{profile}/{o}/{r.id}", operations=(o,)) for r in rows for o in r.operations)


def _known(formula: str) -> None:
    if formula not in set(FORMULAS):  # those of the first edition are for users
        msg = f"formula={formula!r} is not accepted: the catalogue has no formula of this id"
        raise ValueError(msg)


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
        _known(formula)
        if (formula, name) in CALLS:
            msg = f"name={name!r} is taken: {formula} has calls of this name"
            raise ValueError(msg)
        CALLS[formula, name] = CallSet(formula, name, lambda: _quietly(build))
        return build

    return register
