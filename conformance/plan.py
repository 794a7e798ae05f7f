"""The plan: which checks a backend is put through, in which configurations. Cheap, and the same in every process."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.checks import CHECKS, Check
from halfeven.conformance.configuration import DTYPES, Configuration, Granularity
from halfeven.conformance.requirement import Requirement
from halfeven.conformance.requirements import requirements
from halfeven.conformance.trial import Tier
from halfeven.reference import Grid
from halfeven.reference.profile import OPERATIONS, Operation, Profile
from halfeven.reference.systems import PROFILES

__all__ = ["SMOKE", "UNDOCUMENTED", "Item", "grids", "plan"]

SMOKE = "smoke"
UNDOCUMENTED = "undocumented"
_GRANULARITIES = {"first": 1, "two": 2, "all": 5}
_GRIDS: dict[Tier, tuple[Grid, ...]] = {
    "quick": (
        *(Grid.from_bitwidth(8, signed=s) for s in (True, False)),
        Grid(-127, 127),
        *(Grid.from_bitwidth(4, signed=s) for s in (True, False)),
        *(Grid.from_bitwidth(16, signed=s) for s in (True, False)),
        Grid.from_bitwidth(1, signed=False),
    ),
    "standard": (
        *(Grid.from_bitwidth(b, signed=s) for b in (8, 4, 16) for s in (True, False)),
        Grid(-127, 127),
        Grid(-7, 7),
        Grid(3, 200),
        *(Grid.from_bitwidth(b, signed=s) for b in (1, 2, 3, 5, 6, 7, 10, 12) for s in (True, False)),
    ),
}


@dataclass(frozen=True)
class Item:
    """One line of the plan: it becomes one pytest item and one result. A documented function has no configuration."""

    backend: Backend
    requirement: Requirement
    check: str
    configuration: Configuration | None
    tier: Tier
    seed: int

    @property
    def id(self) -> str:
        """In words: ``profile/operation/aspect/grid/dtype/granularity``, then the check where there are several."""
        parts = [self.requirement.id, *([str(self.configuration)] if self.configuration else [])]
        return "/".join(parts if len(self.requirement.checks) <= 1 else [*parts, self.check])


def plan(backend: Backend, tier: Tier = "quick", seed: int = 0) -> list[Item]:
    """Every item for ``backend``: first the smoke probes, then requirement by requirement."""
    return [*_undocumented(backend, tier, seed), *_items(backend, tier, seed), *_calls(backend, tier, seed)]


def grids(backend: Backend, tier: Tier) -> list[Grid]:
    """The grids that the backend takes, all of them; else the tier's; those that the profile allows."""
    profile = PROFILES[backend.profile]
    if backend.grids is not None:
        return [g for g in backend.grids if profile.accepts(g)]
    return [g for g in _GRIDS[tier] if profile.accepts(g)] or list(profile.grids or ())[:1]


def _items(backend: Backend, tier: Tier, seed: int) -> Iterator[Item]:
    available = grids(backend, tier)
    for requirement in (r for r in requirements(backend.profile) if not r.called):
        for name in requirement.checks:
            check = CHECKS[name]
            if not {requirement.operation, *requirement.needs} <= set(backend.operations):
                continue
            for c in _configurations(backend, requirement, check, available):
                yield Item(backend, requirement, name, c, tier, seed)


def _calls(backend: Backend, tier: Tier, seed: int) -> Iterator[Item]:
    """The documented functions that the backend offers, each by the calls of its requirements."""
    for requirement in requirements(backend.profile):
        if requirement.called and requirement.formula in backend.functions:
            for name in requirement.checks:
                yield Item(backend, requirement, name, None, tier, seed)


def _undocumented(backend: Backend, tier: Tier, seed: int) -> Iterator[Item]:
    """What the backend offers and its profile does not speak of: reported as not run, so that nobody counts on it."""
    profile = PROFILES[backend.profile]
    if not backend.operations:
        return
    operation, dtype, grid = next(iter(backend.operations)), backend.dtypes[0], Grid(-128, 127)
    beyond: list[tuple[Operation, str, Grid, str]] = [
        (o, dtype, grid, o) for o in backend.operations if o not in profile.operations
    ]
    beyond += [(operation, d, grid, d) for d in backend.dtypes if d not in profile.dtypes]
    beyond += [(operation, dtype, g, f"grid {g}") for g in backend.grids or () if not profile.accepts(g)]
    for o, d, g, what in beyond:
        text = f"profile {profile.name} documents no {what}"
        requirement = Requirement(f"{profile.name}/{o}/{UNDOCUMENTED}", text, "silent", "", (), ())
        yield Item(backend, requirement, UNDOCUMENTED, Configuration(o, d, g, ()), tier, seed)


def _configurations(
    backend: Backend, requirement: Requirement, check: Check, available: list[Grid]
) -> Iterator[Configuration]:
    operation = next(o for o in OPERATIONS if o == requirement.operation)
    coded = operation != "fake_quantize" or "quantize" in requirement.needs
    profile = PROFILES[backend.profile]
    dtypes = [d for d in backend.dtypes if d in profile.dtypes and d in check.dtypes]
    granularities: tuple[Granularity, ...] = backend.granularities[: _GRANULARITIES[check.granularities]]
    for dtype in dtypes if check.every_dtype else dtypes[:1]:
        held = [g for g in available if not coded or _holds(profile, dtype, g)]
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
