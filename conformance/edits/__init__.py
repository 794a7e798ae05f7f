"""Mutants of formulas: one edit of a transcription's source each, in the tables beside this file.

``old`` stands once in the module that holds the formula; the module is executed again with ``new`` in its place.
"""

import inspect
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from types import ModuleType
from typing import Any
from unittest import mock

from halfeven.reference import catalogue
from halfeven.reference.catalogue import FORMULAS, Formula

__all__ = ["Edit", "edits", "mutated"]


@dataclass(frozen=True)
class Edit:
    """One change of a formula's source."""

    name: str
    formula: str
    old: str
    new: str


@lru_cache(maxsize=1)
def edits() -> dict[str, Edit]:
    """Every edit by name.

    Raises:
        ValueError: a name stands twice.
    """
    found: dict[str, Edit] = {}
    for table in sorted(files(__name__).iterdir(), key=lambda t: t.name):
        if not table.name.endswith(".toml"):
            continue
        for name, row in tomllib.loads(table.read_text(encoding="utf-8")).items():
            if name in found:
                msg = f"{table.name}: the edit {name!r} stands in another table too"
                raise ValueError(msg)
            found[name] = Edit(name, **row)
    return found


def mutated(edit: Edit, formula: str) -> Callable[..., Any]:
    """The function of ``formula``, which stands in the module of the edit's own, with the edit made.

    Raises:
        ValueError: ``formula`` stands in another module, or ``old`` not exactly once in it.
    """
    module = _module(edit.formula)
    if _module(formula) is not module:
        msg = f"formula={formula!r} is not accepted: the edit {edit.name!r} is made in the module of {edit.formula}"
        raise ValueError(msg)
    source = inspect.getsource(module)
    if source.count(edit.old) != 1:
        msg = f"edit {edit.name!r}: old={edit.old!r} stands {source.count(edit.old)} times in {module.__name__}"
        raise ValueError(msg)
    twin = ModuleType(module.__name__)
    twin.__file__ = module.__file__
    edited = compile(source.replace(edit.old, edit.new), str(module.__file__), "exec")
    own: dict[str, Formula] = {}
    # The twin registers its formulas in a catalogue of its own; dataclasses look their module up while they are made.
    with mock.patch.object(catalogue, "FORMULAS", own), mock.patch.dict(sys.modules, {module.__name__: twin}):
        exec(edited, twin.__dict__)  # noqa: S102 - our own source
    function: Callable[..., Any] = own[formula].function
    return function


def _module(formula: str) -> ModuleType:
    return sys.modules[inspect.unwrap(FORMULAS[formula].function).__module__]
