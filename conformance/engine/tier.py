"""How much is tried: the tiers, by name."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["TIERS", "Tier", "Volume"]

Tier = Literal["quick", "standard", "exhaustive"]


@dataclass(frozen=True)
class Volume:
    """How much a tier tries.

    Attributes:
        scales: per list of parameters.
        examples: calls that Hypothesis draws beyond the table of call shapes, for each item about them.
        budget: how many times as long as a call a backend may take in all.
    """

    scales: int
    examples: int
    budget: int


TIERS: dict[Tier, Volume] = {
    "quick": Volume(24, 0, 20),
    "standard": Volume(256, 250, 200),
    "exhaustive": Volume(24, 0, 4000),  # all that the quick tier has, and all inputs
}
