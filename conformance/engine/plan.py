"""The plan: which checks a backend is put through, in which configurations. Cheap, and the same in every process."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.configuration import DTYPES, Configuration, Granularity
from halfeven.conformance.engine.checks import CHECKS, Check
from halfeven.conformance.engine.grids import grids
from halfeven.conformance.engine.item import UNDOCUMENTED, Item
from halfeven.conformance.engine.tier import Tier
from halfeven.conformance.requirement import Requirement
from halfeven.conformance.requirements import requirements
from halfeven.reference import Grid
from halfeven.reference.profile import OPERATIONS, Operation, Profile
from halfeven.reference.systems import PROFILES

__all__ = ["plan"]

_QUARTER = 0.25  # of a step
_GRANULARITIES = {"first": 1, "two": 2, "all": 5}


def plan(offer: Offer, tier: Tier = "quick", seed: int = 0, shard: str = "", *, strict: bool = False) -> list[Item]:
    """Every item for an offer: first the smoke probes, then requirement by requirement.

    A ``strict`` plan judges what documents leave open, and what was only measured, as it judges what they say.
    """
    items = [*_undocumented(offer, tier, seed), *_items(offer, tier, seed, shard), *_calls(offer, tier, seed)]
    return [replace(item, strict=True) for item in items] if strict else items


def _items(offer: Offer, tier: Tier, seed: int, shard: str) -> Iterator[Item]:
    available = grids(offer, tier)
    for requirement in (r for r in requirements(offer.profile) if not r.called):
        for name in (*requirement.checks, *_exhaustive(requirement, tier)):
            check = CHECKS[name]
            if not {requirement.operation, *requirement.needs} <= set(offer.operations):
                continue
            for c in _configurations(offer, requirement, check, available):
                yield Item(offer, requirement, name, c, tier, seed, shard=shard)


def _exhaustive(requirement: Requirement, tier: Tier) -> list[str]:
    """The checks of the exhaustive tier that decide a requirement too."""
    return [n for n, check in CHECKS.items() if tier == "exhaustive" and check.decides in requirement.checks]


def _calls(offer: Offer, tier: Tier, seed: int) -> Iterator[Item]:
    """The documented functions that the backend offers, each by the calls of its requirements."""
    for requirement in requirements(offer.profile):
        if requirement.called and requirement.formula in offer.functions:
            for name in requirement.checks:
                yield Item(offer, requirement, name, None, tier, seed)


def _undocumented(offer: Offer, tier: Tier, seed: int) -> Iterator[Item]:
    """What the backend offers and its profile does not speak of: reported as not run, so that nobody counts on it."""
    profile = PROFILES[offer.profile]
    if not offer.operations:
        return
    operation, dtype, grid = next(iter(offer.operations)), offer.dtypes[0], Grid(-128, 127)
    beyond: list[tuple[Operation, str, Grid, str]] = [
        (o, dtype, grid, o) for o in offer.operations if o not in profile.operations
    ]
    beyond += [(operation, d, grid, d) for d in offer.dtypes if d not in profile.dtypes]
    beyond += [(operation, dtype, g, f"grid {g}") for g in offer.grids or () if not profile.accepts(g)]
    for o, d, g, what in beyond:
        text = f"profile {profile.name} documents no {what}"
        requirement = Requirement(f"{profile.name}/{o}/{UNDOCUMENTED}", text, "silent", "", (), ())
        yield Item(offer, requirement, UNDOCUMENTED, Configuration(o, d, g, ()), tier, seed)


def _configurations(
    offer: Offer, requirement: Requirement, check: Check, available: list[Grid]
) -> Iterator[Configuration]:
    operation = next(o for o in OPERATIONS if o == requirement.operation)
    coded = operation != "fake_quantize" or "quantize" in requirement.needs
    profile = PROFILES[offer.profile]
    dtypes = [d for d in offer.dtypes if d in profile.dtypes and d in check.dtypes]
    granularities: tuple[Granularity | Literal["any"], ...] = ("any",)
    if check.granularities != "crossed":
        granularities = offer.granularities[: _GRANULARITIES[check.granularities]]
    for dtype in dtypes if check.every_dtype else dtypes[:1]:
        held = [g for g in available if not coded or _holds(profile, dtype, g)]
        held = [g for g in held if not check.spare or g.num_steps * float(np.finfo(dtype).eps) <= _QUARTER]
        for grid in held if check.every_grid else _one_of_each_sign(held):
            for granularity in granularities:
                yield Configuration(operation, dtype, grid, (), granularity)


def _holds(profile: Profile, dtype: str, grid: Grid) -> bool:
    """Whether the codes have a place: float codes of a 16-bit type do not hold a 16-bit grid."""
    ends = np.array([grid.qmin, grid.qmin + 1, grid.qmax - 1, grid.qmax])
    with np.errstate(over="ignore"):
        return profile.codes == "integer" or bool((ends.astype(DTYPES[dtype]).astype(np.float64) == ends).all())


def _one_of_each_sign(available: list[Grid]) -> list[Grid]:
    signed = [g for g in available if g.qmin < 0]
    unsigned = [g for g in available if g.qmin >= 0]
    return signed[:1] + unsigned[:1]
