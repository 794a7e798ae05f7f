"""One folder per documented system, one file per part of it: its formulas, with their behaviours, and its profiles.

Systems are found by walking these folders. A profile ``name@version`` is what a release was measured to do where it
differs from its document.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile

__all__ = ["PROFILES", "SYSTEMS", "has_own_operations"]


def _modules() -> Iterator[ModuleType]:
    for found in sorted(pkgutil.walk_packages(__path__, f"{__name__}."), key=lambda m: m.name):
        yield importlib.import_module(found.name)


_MODULES = tuple(_modules())

#: Each system, and what it is: the first line of its folder's docstring.
SYSTEMS: dict[str, str] = {
    m.__name__.rpartition(".")[2].replace("_", "-"): (m.__doc__ or "").partition("\n")[0]
    for m in _MODULES
    if hasattr(m, "__path__")
}


def _profiles() -> Iterator[Profile]:
    for module in _MODULES:
        yield from (value for value in vars(module).values() if isinstance(value, Profile))


def _claims(found: dict[str, Profile]) -> Iterator[Profile]:
    """What a backend of functions alone may claim: its system, and the versions of its system's formulas."""
    for system, title in SYSTEMS.items():
        own = found.get(system) or Profile(system, title, system, EvaluationModel(), numpy={})
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
