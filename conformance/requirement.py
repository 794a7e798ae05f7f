"""Requirements: a sentence about a formula, how far a document supports it, and what decides it: calls, or checks.

A room, ``conformance/systems/<system>/<part>.py``, says them from top to bottom: each is a generator of the calls that
decide it, with the sentence as its docstring, under a decorator that names formula and source. How the installed
libraries answer such a call follows them (``ANSWERS``).
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from halfeven.reference import FORMULAS, PROFILES
from halfeven.reference.profile import Operation

__all__ = [
    "CALLS",
    "CALL_SHAPES",
    "REQUIREMENTS",
    "Arguments",
    "Basis",
    "CallSet",
    "Calls",
    "Requirement",
    "calls",
    "documented",
    "expected",
    "measured",
    "on",
    "says",
    "silent",
]

Basis = Literal["documented", "measured", "expected", "silent"]
Arguments = Mapping[str, Any]
"""One call by keyword: arrays are NumPy's; dtypes and enumerations are named by strings, grids are two ints."""
Calls = Iterator[Arguments]

#: The check of every formula that takes arrays: its calls in the table of call shapes.
CALL_SHAPES = "call-shapes"
Build = TypeVar("Build", bound=Callable[..., Calls])
_Formulas = str | tuple[str, ...]
_NO_DOCSTRINGS = 2  # python -OO


class _Decorator(Protocol):
    """It gives back what it decorates."""

    def __call__(self, build: Build, /) -> Build: ...


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

    @property
    def aspect(self) -> str:
        """The last part of the id."""
        return self.id.rpartition("/")[2]

    @property
    def operation(self) -> str:
        """The operation, or the document's symbol of the function, that it speaks of."""
        return self.id.split("/")[1]


@dataclass(frozen=True)
class CallSet:
    """The calls that one check makes of one formula, the same every time."""

    formula: str
    name: str
    generator: Callable[[], Iterable[Arguments]]

    def build(self) -> list[Arguments]:
        """The calls."""
        with np.errstate(all="ignore"):  # the extremes of a dtype are what calls are made of
            return list(self.generator())


REQUIREMENTS: dict[str, Requirement] = {}
CALLS: dict[tuple[str, str], CallSet] = {}


def documented(formulas: _Formulas, source: str, *, aspect: str = "", text: str = "") -> _Decorator:
    """The decorated generator gives the calls that decide a requirement: the document says what its docstring says.

    Its name, with dashes, is that of the check; a generator that takes an argument is given the formula's id.

    Args:
        formulas: the id of the formula that it speaks of, or those of several.
        source: where the document says it.
        aspect: the last part of the requirement's id, where that is not the name of the check.
        text: the sentence, where the docstring is another formula's.

    Raises:
        ValueError: no formula has this id, or the requirement is taken.
    """
    return _requirement("documented", formulas, source, aspect, text)


def measured(formulas: _Formulas, source: str, *, aspect: str = "", text: str = "") -> _Decorator:
    """The same of what no document says, and a release does."""
    return _requirement("measured", formulas, source, aspect, text)


def expected(formulas: _Formulas, source: str = "", *, aspect: str = "", text: str = "") -> _Decorator:
    """The same of what no document says, and every user expects."""
    return _requirement("expected", formulas, source, aspect, text)


def silent(formulas: _Formulas, source: str = "", *, aspect: str = "", text: str = "") -> _Decorator:
    """The same of what no document says; the value seen is reported."""
    return _requirement("silent", formulas, source, aspect, text)


def calls(formulas: _Formulas, aspect: str) -> _Decorator:
    """The decorated generator gives further calls, which decide a requirement that stands above.

    Raises:
        ValueError: no requirement above has this aspect, or the check is taken.
    """

    def register(build: Build) -> Build:
        for formula in _each(formulas):
            if (above := REQUIREMENTS.get(f"{formula}/{aspect}")) is None:
                msg = f"aspect={aspect!r} is not accepted: no requirement of {formula} above has it"
                raise ValueError(msg)
            REQUIREMENTS[above.id] = replace(above, checks=(*above.checks, _call_set(formula, build, aspect)))
        return build

    return register


def _requirement(basis: Basis, formulas: _Formulas, source: str, aspect: str, text: str) -> _Decorator:
    def register(build: Build) -> Build:
        sentence = text or " ".join((inspect.getdoc(build) or "").split())
        for formula in _each(formulas):  # all of them, before the first is registered
            _known(formula)
        for formula in _each(formulas):
            name = _call_set(formula, build, aspect)
            _add(Requirement(f"{formula}/{aspect or name}", sentence, basis, source, (name,), (), (), formula, True))
        return build

    return register


def _call_set(formula: str, build: Callable[..., Calls], aspect: str) -> str:
    """Register the calls of a formula; the name of their check, which is the aspect's where a partial has none."""
    name: str = getattr(build, "__name__", aspect).strip("_").replace("_", "-")
    _known(formula)
    takes = [p for p in inspect.signature(build).parameters.values() if p.default is p.empty]
    given = partial(build, formula) if takes else build
    if CALLS.setdefault((formula, name), CallSet(formula, name, given)).generator is not given:
        msg = f"name={name!r} is taken: {formula} has calls of this name"
        raise ValueError(msg)
    return name


def _known(formula: str) -> None:
    if formula not in set(FORMULAS):  # those of the first edition are for users
        msg = f"formula={formula!r} is not accepted: the catalogue has no formula of this id"
        raise ValueError(msg)


def _each(formulas: _Formulas) -> tuple[str, ...]:
    return (formulas,) if isinstance(formulas, str) else formulas


def _add(found: Requirement) -> None:
    if not found.text and sys.flags.optimize < _NO_DOCSTRINGS:
        msg = f"requirement={found.id!r} is not accepted: it says nothing"
        raise ValueError(msg)
    if found.id in REQUIREMENTS:
        msg = f"requirement={found.id!r} is taken"
        raise ValueError(msg)
    REQUIREMENTS[found.id] = found


_CODES: tuple[Operation, ...] = ("quantize", "fake_quantize")
_TURNS = ("half-away", "half-up", "half-down", "half-to-zero", "toward-zero", "floor", "ceil", "scale-one-ulp-off")
_AFTER = ("zero-point-before-rounding", "zero-point-fused", "sign-flipped")


@dataclass(frozen=True)
class _Asked:
    """What the documents of affine quantizers speak of: in which operations, decided by which checks."""

    operations: tuple[Operation, ...]
    checks: tuple[str, ...]
    kills: tuple[str, ...]


_ASKED = {
    "nearest-code": _Asked(_CODES, ("boundaries",), (*_TURNS, "reciprocal")),
    "zero-point-after-rounding": _Asked(_CODES, ("odd-zero-point",), _AFTER),
    "offset-after-rounding": _Asked(_CODES, ("odd-zero-point",), _AFTER),
    "odd-zero-point": _Asked(_CODES, ("odd-zero-point",), ("zero-point-after-rounding", "sign-flipped")),
    "saturation": _Asked(_CODES, ("edges",), ("narrow-range", "clamp-before-zero-point", "wrap")),
    "clamp": _Asked(_CODES, ("edges",), ("narrow-range", "clamp-before-zero-point", "wrap")),
    "range": _Asked(_CODES, ("edges",), ("narrow-range", "wrap")),
    "huge-inputs": _Asked(_CODES, ("huge",), ("int32-cast", "int64-cast")),
    "zero-sign": _Asked(_CODES, ("zero-sign",), ("zero-sign-lost",)),
    "dequantized-value": _Asked(("dequantize",), ("all-codes",), ("sign-flipped", "scale-one-ulp-off")),
}


def says(
    aspect: str,
    text: str,
    source: str,
    *,
    basis: Basis = "documented",
    operations: tuple[Operation, ...] = (),
    checks: tuple[str, ...] = (),
    kills: tuple[str, ...] = (),
) -> tuple[Requirement, ...]:
    """The rows of one sentence about operations, for ``on``.

    Args:
        aspect: one of those that the checks of operations decide: nearest-code, saturation, huge-inputs, ...
        text: the sentence, in our words.
        source: where the document says it.
        basis: how far the document supports it.
        operations: of those that the aspect is about, the ones meant; by default all.
        checks: what decides it, if not what decides the aspect elsewhere.
        kills: the mutants made by hand that it catches, likewise.

    Raises:
        ValueError: another aspect.
    """
    if aspect not in _ASKED:
        msg = f"aspect={aspect!r} is not accepted: give one of {', '.join(_ASKED)}"
        raise ValueError(msg)
    asked = _ASKED[aspect]
    checks, kills = checks or asked.checks, kills or asked.kills
    return tuple(
        Requirement(f"{o}/{aspect}", text, basis, source, checks, kills) for o in operations or asked.operations
    )


def on(profile: str, *rows: tuple[Requirement, ...]) -> None:
    """Register the rows as requirements of the operations that ``profile`` has.

    Raises:
        ValueError: no profile has this name, or it has none of a row's operations, or a requirement is taken.
    """
    if profile not in PROFILES:
        msg = f"profile={profile!r} is not accepted: give one of {', '.join(PROFILES)}"
        raise ValueError(msg)
    for said in rows:
        own = [r for r in said if r.id.partition("/")[0] in PROFILES[profile].operations]
        if not own:
            msg = f"{said[0].id} is not accepted: {profile} has {', '.join(PROFILES[profile].operations)}"
            raise ValueError(msg)
        for row in own:
            _add(replace(row, id=f"{profile}/{row.id}"))
