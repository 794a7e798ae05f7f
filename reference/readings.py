"""Readings: what a document may mean as well, where it leaves a choice open."""

from dataclasses import dataclass

from halfeven.reference.behaviour import Behaviour

__all__ = ["Readings"]


@dataclass(frozen=True)
class Readings:
    """Points that a document admits as well as the one that its formula is registered with.

    Attributes:
        gap: what the document says, and does not.
        points: the other behaviours; an answer that follows one of them throughout does not differ.
    """

    gap: str
    points: tuple[Behaviour, ...]
