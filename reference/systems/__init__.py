"""One folder per documented system, one file per part of it: its formulas, with their behaviours, and its profiles.

A system of one part is a file. Systems are found by walking these folders. A profile ``name@version`` is what a release
was measured to do where it differs from its document.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

from halfeven.reference.catalogue import FORMULAS, Formula
from halfeven.reference.choices import Signed
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile

__all__ = ["PROFILES", "SYSTEMS", "claim_of", "has_own_operations", "profile_of", "system_of"]


def _modules() -> Iterator[ModuleType]:
    for found in sorted(pkgutil.walk_packages(__path__, f"{__name__}."), key=lambda m: m.name):
        yield importlib.import_module(found.name)


_MODULES = tuple(_modules())

#: Each system, and what it is: the first line of its docstring.
SYSTEMS: dict[str, str] = {
    name.replace("_", "-"): (m.__doc__ or "").partition("\n")[0]
    for m in _MODULES
    if "." not in (name := m.__name__.removeprefix(f"{__name__}."))
}


def _profiles() -> Iterator[Profile]:
    for module in _MODULES:
        yield from (value for value in vars(module).values() if isinstance(value, Profile))


def _claims(found: dict[str, Profile]) -> Iterator[Profile]:
    """What a backend of functions alone may claim: its system, and the versions of its system's formulas."""
    for system, title in SYSTEMS.items():
        own = found.get(system) or Profile(system, title, system, EvaluationModel(), ())
        versions = dict.fromkeys(f.version for f in FORMULAS.values() if f.system == system and f.version)
        for name in (system, *(f"{system}@{v}" for v in versions)):
            if name not in found:
                said = f"the functions of {name}; operations as documented"
                yield own if name == system else replace(own, name=name, title=said, source=f"{name}, measured")


PROFILES: dict[str, Profile] = {p.name: p for p in _profiles()}
PROFILES |= {p.name: p for p in _claims(PROFILES)}


def has_own_operations(name: str) -> bool:
    """Whether a profile states operations that are not those of the document it is a version of.

    A version that only formulas have computes the operations as its document says.
    """
    profile, documented = PROFILES[name], PROFILES[name.partition("@")[0]]
    return bool(profile.operations) and (profile is documented or profile.model != documented.model)


def profile_of(formula: Formula) -> str | None:
    """The profile with the operation that a formula is; None where it is none, or its release's were not measured."""
    affine, point = formula.affine, formula.behaviour
    if affine is None:
        return None
    name = f"{affine.profile}@{formula.version}" if formula.version else affine.profile
    own = (p for n, p in PROFILES.items() if f"{n}-".startswith(f"{name}-") and has_own_operations(n))
    if isinstance(point, Signed):
        return next((p.name for p in own if p.model.at(point) == p.model), None)
    return next((p.name for p in own if p.name == name), None)


def claim_of(formula: Formula) -> str:
    """The profile that a backend of this formula claims: that of its operation, else its system's or release's."""
    return profile_of(formula) or f"{formula.system}@{formula.version}".rstrip("@")


def system_of(name: str) -> str:
    """The system in whose folder a profile, or the start of an id, stands: ``torch`` for ``torch.quantize@2.13``."""
    first = name.partition("@")[0]
    return first if first in SYSTEMS else first.partition(".")[0]
