"""Every check has caught something: the kill table, requirement by requirement."""

from collections.abc import Iterator

import pytest

from halfeven.conformance.engine.checks import CHECKS
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import answered
from halfeven.conformance.report.model import CONFORMING
from halfeven.conformance.requirement import Requirement
from halfeven.conformance.requirements import requirements
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import Grid
from halfeven.reference.systems import PROFILES
from mutants.by_hand import MUTANTS, backend

DOCUMENTED = [name for name, p in PROFILES.items() if "@" not in name and p.operations]
_TRIED = {Grid(-128, 127), Grid(0, 255), Grid(-127, 127), Grid(-(2**31), 2**31 - 1)}

# What the issue of this suite names, and where the profiles at hand can show it.
NAMED = [
    "half-away",
    "half-up",
    "toward-zero",
    "reciprocal",
    "zero-point-before-rounding",
    "sign-flipped",
    "narrow-range",
    "clamp-before-zero-point",
    "int32-cast",
    "scale-one-ulp-off",
    "last-partial-block-untouched",
    "wrong-axis",
]


def spoken(profile: str) -> list[Requirement]:
    """The requirements of its operations; what kills those of documented functions is generated."""
    return [r for r in requirements(profile) if not r.called]


def items(mutant: Inside) -> Iterator[Item]:
    for item in plan(mutant.offer):
        if item.configuration and item.configuration.grid in _TRIED:
            yield item


def in_turn(some: Iterator[Item]) -> Iterator[Item]:
    """Of each check in each dtype and granularity one item or two: its grids take turns."""
    groups: dict[object, list[Item]] = {}
    for item in some:
        c = item.configuration
        groups.setdefault((item.requirement.id, item.check, c and c.dtype, c and c.granularity), []).append(item)
    for turn, group in enumerate(groups.values()):
        yield from group[turn % len(group) :: 2]


def parts(item: Item, mutant: Inside, *, gate: bool) -> bool:
    return answered(item, mutant, gate=gate).result.outcome in {"differs", "explained"}


@pytest.mark.parametrize("profile", ["onnx", "aimet", "torch.fake_quantize"])
@pytest.mark.parametrize("name", NAMED)
def test_a_wrong_backend_is_reported_as_differing_in_the_quick_tier(name: str, profile: str) -> None:
    mutant = Inside(backend(name, profile))
    assert any(parts(item, mutant, gate=True) for item in items(mutant))


@pytest.mark.parametrize("profile", DOCUMENTED)
def test_the_profile_itself_conforms(profile: str) -> None:
    right = Inside(backend("none", profile))
    results = [answered(item, right).result for item in in_turn(items(right))]
    assert len(results) > 20
    assert sum(r.points for r in results) > 100_000
    assert {r.outcome for r in results} <= CONFORMING | {"not run"}, [r for r in results if r.outcome not in CONFORMING]


@pytest.mark.parametrize("profile", DOCUMENTED)
def test_every_requirement_kills_what_it_says(profile: str) -> None:
    survivors = []
    for requirement in spoken(profile):
        for name in requirement.kills:
            mutant = Inside(backend(name, profile))
            tried = [i for i in items(mutant) if i.requirement.id == requirement.id]
            if not any(parts(item, mutant, gate=False) for item in tried):
                survivors.append((requirement.id, name, len(tried)))
    assert survivors == []


def test_every_judged_requirement_has_killed_something() -> None:
    for profile in DOCUMENTED:
        for requirement in spoken(profile):
            assert requirement.checks
            assert set(requirement.checks) <= set(CHECKS)
            assert set(requirement.kills) <= set(MUTANTS)
            assert bool(requirement.kills) == (requirement.basis != "silent"), requirement.id


def test_every_check_belongs_to_a_requirement() -> None:
    used = {c for profile in DOCUMENTED for r in spoken(profile) for c in r.checks}
    assert used == {name for name, check in CHECKS.items() if not check.decides}
    assert {check.decides for check in CHECKS.values() if check.decides} <= used


def test_every_mutant_is_on_somebody_s_list() -> None:
    listed = {k for profile in DOCUMENTED for r in spoken(profile) for k in r.kills}
    assert set(MUTANTS) - listed <= {"float64-arithmetic"}
