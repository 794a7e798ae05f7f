"""The catalogue of documented formulas: each transcription registers itself with ``@formula``.

An id is ``system/symbol`` or ``system/symbol@version``: the system as its distribution is spelled, the symbol as the
document spells it. A version is what a release was measured to do where it differs from the document: a point in the
space of the formula's behaviour or, where no choice says it, a function of its own.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from halfeven.reference.behaviour import Behaviour
from halfeven.reference.former import FORMER
from halfeven.reference.profile import Operation
from halfeven.reference.readings import Readings
from halfeven.reference.sums import Open

F = TypeVar("F", bound=Callable[..., Any])
_NONE: Mapping[str, Any] = MappingProxyType({})

__all__ = ["FORMULAS", "AffineView", "AsComputed", "Basis", "Catalogue", "Formula", "Real", "formula"]


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
class AffineView:
    """How a formula quantizes on a grid, so that boundaries, positions and blocks can be built for it.

    Attributes:
        profile: the profile whose checks apply to it.
        operation: quantize, dequantize or fake_quantize.
        arguments: the document's own arguments, by keyword, from the reals ``x`` (or codes ``q``), the scale, the zero
            point, the grid, the block size or None, and the dtype of the reals. It raises ValueError for what the
            document has no arguments for, such as blocks.
        result: the codes or reals, from what the function returns.
    """

    profile: str
    operation: Operation
    arguments: Callable[..., Mapping[str, Any]]
    result: Callable[[Any], Any] = lambda returned: returned


@dataclass(frozen=True)
class Formula:
    """One documented formula.

    Attributes:
        id: ``system/symbol``, or with ``@version``.
        equation: LaTeX.
        basis: what the equation states: reals rounded once, or every operation as computed.
        source: where it stands.
        transcription: the formula in NumPy; the first argument is the behaviour where the formula has one.
        behaviour: the choices of the document or, of a version, of the release; None where there is nothing to choose.
        affine: where it quantizes on a grid, how.
        open: of a formula with sums whose order no document states, what its results may be: a function of the same
            arguments as ``transcription``, all of them given, which gives them by their places in the result, such as
            ``result[1]``.
        readings: the behaviours that the document admits as well, where it leaves something open.
    """

    id: str
    equation: str
    basis: Basis
    source: str
    transcription: Callable[..., Any]
    behaviour: Behaviour | None = None
    affine: AffineView | None = None
    open: Callable[..., Mapping[str, Open]] | None = None
    readings: Readings | None = None

    @property
    def system(self) -> str:
        """The system that documents it."""
        return self.id.partition("/")[0]

    @property
    def version(self) -> str:
        """What follows the ``@``; empty for the document itself."""
        return self.id.partition("@")[2]

    @property
    def function(self) -> Callable[..., Any]:
        """The function, by the document's own arguments."""
        return self.transcription if self.behaviour is None else self.at(self.behaviour)

    def at(self, behaviour: Behaviour) -> Callable[..., Any]:
        """The function with the choices of ``behaviour``; its signature is the document's.

        Raises:
            TypeError: ``behaviour`` is another formula's.
        """
        if not isinstance(behaviour, type(self.behaviour)):
            msg = f"behaviour={behaviour!r} is not accepted: {self.id} takes {type(self.behaviour).__name__}"
            raise TypeError(msg)
        made = partial(self.transcription, behaviour)
        signature = inspect.signature(self.transcription)
        made.__dict__ |= {
            "__name__": self.transcription.__name__,
            "__module__": self.transcription.__module__,
            "__doc__": self.transcription.__doc__,
            "__signature__": signature.replace(parameters=list(signature.parameters.values())[1:]),
            "open": self.open and partial(self.open, behaviour),
        }
        return made


class Catalogue(Mapping[str, Formula]):
    """The formulas by id. An id of the first edition is accepted too; iteration shows those of today."""

    def __init__(self) -> None:
        """Start empty."""
        self._formulas: dict[str, Formula] = {}

    def __getitem__(self, id: str) -> Formula:  # noqa: A002 - the catalogue's own word
        """The formula of an id.

        Raises:
            KeyError: there is none; the message has the nearest ids.
        """
        try:
            return self._formulas[self.canonical(id)]
        except KeyError:
            near = get_close_matches(id, self._formulas, n=3) or [n for n in self._formulas if n.endswith(f"/{id}")]
            msg = f"formula={id!r} is not accepted: did you mean {', '.join(near) or 'one of FORMULAS'}?"
            raise KeyError(msg) from None

    def __contains__(self, id: object) -> bool:  # noqa: A002 - as above
        """Whether a formula has this id."""
        return isinstance(id, str) and self.canonical(id) in self._formulas

    def __iter__(self) -> Iterator[str]:
        """The ids of today, in the order of registration."""
        return iter(self._formulas)

    def __len__(self) -> int:
        """How many formulas there are, versions among them."""
        return len(self._formulas)

    def canonical(self, id: str) -> str:  # noqa: A002 - as above
        """Today's id for one of the first edition; any other as it is."""
        symbol, at, version = str(id).partition("@")
        if symbol in FORMER:
            return f"{FORMER[symbol]}{at}{version}"
        if "/" not in symbol:
            system, _, name = symbol.partition(".")
            dashed = f"{system.replace('_', '-')}/{name}{at}{version}"
            return dashed if dashed in self._formulas else id
        return id

    def versions(self, id: str) -> tuple[Formula, ...]:  # noqa: A002 - as above
        """The formula of ``id`` as documented, if it is, and every measured version of it."""
        symbol = self.canonical(id).partition("@")[0]
        return tuple(f for f in self._formulas.values() if f.id.partition("@")[0] == symbol)

    def add(self, found: Formula) -> None:
        """Register a formula.

        Raises:
            ValueError: the id is taken, or is none.
        """
        if found.id in self._formulas:
            msg = f"id={found.id!r} is taken: every formula stands once"
            raise ValueError(msg)
        if found.id.count("/") != 1:
            msg = f"id={found.id!r} is not accepted: give system/symbol or system/symbol@version"
            raise ValueError(msg)
        self._formulas[found.id] = found


FORMULAS = Catalogue()


def formula(
    id: str,  # noqa: A002 - the catalogue's own word
    *,
    equation: str,
    basis: Basis,
    source: str,
    behaviour: Behaviour | None = None,
    versions: Mapping[str, tuple[Behaviour, str]] = _NONE,
    affine: AffineView | None = None,
    open: Callable[..., Mapping[str, Open]] | None = None,  # noqa: A002 - as in Formula
    readings: Readings | None = None,
) -> Callable[[F], F]:
    """Register the decorated transcription under ``id``; ``versions`` gives each its behaviour, and who measured it.

    Raises:
        ValueError: the id is taken, or is none.
    """

    def register(function: F) -> F:
        documented = Formula(id, equation, basis, source, function, behaviour, affine, open, readings)
        FORMULAS.add(documented)
        for version, (point, measured) in versions.items():
            FORMULAS.add(replace(documented, id=f"{id}@{version}", source=measured, behaviour=point, readings=None))
        return function

    return register
