"""One folder per system, one room per part of it, with the names of ``reference/systems``; found by walking folders.

A room states requirements, each with its calls, and may have ``ANSWERS``: by backend, how the installed library answers
a call of a formula. The ``__init__.py`` of a system has its ``BACKENDS``; a system of one part is a room, and has them
itself. Modules named ``adapter...`` import their library, and are not walked.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from halfeven.conformance.requirement import CALLS, REQUIREMENTS, CallSet, Requirement
from halfeven.reference.systems import system_of

__all__ = ["answers", "call_sets", "judged_sets", "requirements_of", "rooms", "takes_arrays"]


@cache
def rooms() -> tuple[ModuleType, ...]:
    """Every module of every system, in the order of their names."""
    names = sorted(m.name for m in pkgutil.walk_packages(__path__, f"{__name__}."))
    return tuple(importlib.import_module(n) for n in names if not n.rpartition(".")[2].startswith("adapter"))


@cache
def requirements_of(system: str) -> tuple[Requirement, ...]:
    """The requirements of a system's formulas and operations, formula by formula."""
    rooms()
    by_formula: dict[str, list[Requirement]] = {}
    for r in REQUIREMENTS.values():
        if system_of(r.id.partition("/")[0]) == system:
            by_formula.setdefault(r.formula, []).append(r)
    return tuple(r for own in by_formula.values() for r in own)


def judged_sets(formula: str) -> list[CallSet]:
    """The calls of a formula by which it is judged: not those about which its document is silent."""
    rooms()
    judged = (r for r in REQUIREMENTS.values() if r.formula == formula and r.called and r.basis != "silent")
    return [CALLS[formula, check] for r in judged for check in r.checks]


def takes_arrays(formula: str) -> bool:
    """Whether a call of a formula has arrays in it; the first of a set may have no batch."""
    with np.errstate(all="ignore"):  # the extremes of a dtype are what calls are made of
        return any(_has_array(v) for s in judged_sets(formula) for a in s.generator() for v in a.values())


def call_sets() -> Mapping[tuple[str, str], CallSet]:
    """Every set of calls, by formula and name: those of all rooms, whoever asks first."""
    rooms()
    return CALLS


@cache
def _answers() -> dict[str, dict[str, Callable[..., Any]]]:
    found: dict[str, dict[str, Callable[..., Any]]] = {}
    for room in rooms():
        for backend, functions in getattr(room, "ANSWERS", {}).items():
            if taken := found.setdefault(backend, {}).keys() & functions.keys():
                msg = f"{room.__name__}: {backend} answers {', '.join(sorted(taken))} in another room"
                raise ValueError(msg)
            found[backend] |= functions
    return found


def answers(backend: str) -> dict[str, Callable[..., Any]]:
    """How the library of a backend answers a call, by formula."""
    return dict(_answers().get(backend, {}))


def _has_array(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_has_array, value))
    return isinstance(value, np.ndarray)
