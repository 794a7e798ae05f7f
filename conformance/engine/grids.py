"""The grids of a tier, and those of them that a backend takes."""

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.engine.tier import Tier
from halfeven.reference import Grid
from halfeven.reference.systems import PROFILES

__all__ = ["grids"]

_GRIDS: dict[Tier, tuple[Grid, ...]] = {
    "quick": (
        *(Grid.from_bitwidth(8, signed=s) for s in (True, False)),
        Grid(-127, 127),
        *(Grid.from_bitwidth(4, signed=s) for s in (True, False)),
        *(Grid.from_bitwidth(16, signed=s) for s in (True, False)),
        Grid.from_bitwidth(1, signed=False),
        # The ends of int32, which the 24 bits of float32 do not hold.
        *(Grid.from_bitwidth(b, signed=s) for b, s in ((32, True), (31, False))),
    ),
    "standard": (
        *(Grid.from_bitwidth(b, signed=s) for b in (8, 4, 16) for s in (True, False)),
        Grid(-127, 127),
        Grid(-7, 7),
        Grid(3, 200),
        *(Grid.from_bitwidth(b, signed=s) for b in (1, 2, 3, 5, 6, 7, 10, 12) for s in (True, False)),
        *(Grid.from_bitwidth(b, signed=s) for b in (32, 31, 25, 24, 17) for s in (True, False)),
    ),
}


_GRIDS["exhaustive"] = _GRIDS["quick"]


def grids(offer: Offer, tier: Tier) -> list[Grid]:
    """The grids that the backend takes, all of them; else the tier's; those that the profile allows."""
    profile = PROFILES[offer.profile]
    if offer.grids is not None:
        return [g for g in offer.grids if profile.accepts(g)]
    return [g for g in _GRIDS[tier] if profile.accepts(g)] or list(profile.grids or ())[:1]
