"""A behaviour: the choices in which implementations of one formula differ, as a value.

Each formula, or family of formulas, that implementations carry out in several ways has a frozen dataclass of its own
whose fields are choices. The first value of a choice is the default; the behaviour that a formula is registered with is
its document's. A release that was measured is then a point of the same space, a mutant is a neighbour of a point, and
the cause of a difference is the point that gives the answers seen:

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Halving(Behaviour):
    ...     odd: str = choice({"down": "rounds halves down", "up": "rounds halves up"})
    >>> Halving().against(Halving(odd="up"))
    'rounds halves up where the document rounds halves down'
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Self

from halfeven.reference.rounding import ROUNDINGS

__all__ = ["Behaviour", "choice", "roundings"]

_TIES = {
    "half-even": "ties to even",
    "half-away": "ties away from zero",
    "half-up": "ties up",
    "half-down": "ties down",
    "half-to-zero": "ties toward zero",
    "toward-zero": "toward zero",
    "floor": "down",
    "ceil": "up",
}


def choice(words: Mapping[Any, str]) -> Any:
    """A field of a behaviour.

    Args:
        words: each value that the field may have, hashable, with what an implementation does that has it: words to
            follow "it". The first value is the field's default.
    """
    return field(default=next(iter(words)), metadata={"words": MappingProxyType(dict(words))})


def roundings(what: str) -> Any:
    """A choice of the rule that makes an integer of ``what``; the document's is half to even."""
    return choice({rule: f"rounds {what}, {_TIES[rule]}" for rule in ROUNDINGS})


@dataclass(frozen=True)
class Behaviour:
    """What every behaviour can do; its fields are made by ``choice``."""

    def __post_init__(self) -> None:
        """Refuse a value that its choice does not know."""
        for name, words in self.choices().items():
            if (value := getattr(self, name)) not in words:
                msg = f"{name}={value!r} is not accepted: give one of {', '.join(map(repr, words))}"
                raise ValueError(msg)

    @classmethod
    def choices(cls) -> Mapping[str, Mapping[Hashable, str]]:
        """Each field, and what an implementation does with each of its values."""
        return {f.name: f.metadata["words"] for f in fields(cls)}

    def neighbours(self) -> Iterator[Self]:
        """Every behaviour that differs from this one in a single choice."""
        for name, words in self.choices().items():
            yield from (replace(self, **{name: v}) for v in words if v != getattr(self, name))

    def changes(self, found: "Behaviour") -> dict[str, tuple[Any, Any]]:
        """The choices in which ``found`` differs from this one, each with (this one's, found's)."""
        pairs = {name: (getattr(self, name), getattr(found, name)) for name in self.choices()}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def against(self, found: "Behaviour") -> str:
        """What ``found`` does where this one, the document's, does something else: a clause for each choice."""
        words = self.choices()
        return "; ".join(
            f"{words[name][does]} where the document {words[name][says]}"
            for name, (says, does) in self.changes(found).items()
        )
