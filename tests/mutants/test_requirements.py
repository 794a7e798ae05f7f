"""Every requirement of a documented function kills something: its calls see a mutant that is made of the formula."""

import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from halfeven.conformance.engine.judge import answer_of
from halfeven.conformance.properties import CHECK
from halfeven.conformance.requirement import CALL_SHAPES, Requirement
from halfeven.conformance.requirements import requirements
from halfeven.conformance.systems import call_sets
from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.systems import PROFILES
from mutants.generator import Mutant
from mutants.kill import TimedOut, in_place, seconds_for, told
from mutants.run import NO_FORMULA, mutants_of

CALLS = call_sets()


def judged() -> dict[str, list[Requirement]]:
    """The requirements by formula, but those of which any answer is right."""
    found = defaultdict(list)
    for profile in PROFILES:
        for r in requirements(profile) if "@" not in profile else ():
            # Of call shapes no mutant of the formula tells; properties judge answers, whatever the formula gives: both
            # are held by tests of their own.
            if r.called and r.basis != "silent" and r.checks != (CALL_SHAPES,) and not r.checks[0].startswith(CHECK):
                found[r.formula].append(r)
    return found


def candidates(formula: str) -> Iterator[Mutant]:
    """The mutants of the formula's function, then those of its module, then those of what the module takes from."""
    function = FORMULAS[formula].function
    module = function.__module__
    own = mutants_of([module])
    yield from (m for m in own if m.owner == function.__name__)
    yield from (m for m in own if m.owner != function.__name__)
    taken = {getattr(v, "__module__", "") for v in vars(sys.modules[module]).values()} - {module}
    yield from mutants_of(sorted(n for n in taken - NO_FORMULA if str(n).startswith("halfeven.reference.")))


def parts(formula: str, arguments: object, before: object) -> bool:
    try:
        with seconds_for(2):
            return told(answer_of(FORMULAS[formula].function, arguments)) != before
    except TimedOut:
        return True


def forgiving(formula: str) -> Callable[..., Any]:
    """The formula's function, which drops the arguments that it does not know and refuses nothing."""
    function = FORMULAS[formula].function
    known = inspect.signature(function).parameters

    def answers(**given: Any) -> Any:
        try:
            return function(**{name: value for name, value in given.items() if name in known})
        except Exception:  # noqa: BLE001 - whatever it refuses
            return None

    return answers


@pytest.mark.parametrize("formula", sorted(judged()))
def test_every_requirement_kills_something(formula: str) -> None:
    left = {
        r.id: [(a, told(answer_of(FORMULAS[formula].function, a))) for c in r.checks for a in CALLS[formula, c].build()]
        for r in judged()[formula]
    }
    assert all(left.values())
    for mutant in candidates(formula):
        if not left:
            break
        try:
            with in_place(mutant):
                seen = [name for name, rows in left.items() if any(parts(formula, a, before) for a, before in rows)]
        except Exception as error:  # noqa: BLE001 - the module does not import with this mutant
            assert "_DoesNotImport" in type(error).__name__, error  # noqa: PT017
            continue
        for name in seen:
            del left[name]
    # Refusals by the signature, or by what comes after the guard: the mutant by hand has none.
    mutant = forgiving(formula)
    refused = [name for name, rows in left.items() if any(told(answer_of(mutant, a)) != before for a, before in rows)]
    assert sorted(left.keys() - refused) == []


def test_there_are_requirements_to_try() -> None:
    assert len([r for own in judged().values() for r in own]) > 150
