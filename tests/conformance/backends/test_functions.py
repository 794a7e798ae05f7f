"""What libraries answer to the calls of documented functions: as the document says, or as a version that is named."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance.backends import functions as folder
from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.backends.registry import REGISTRY, NotInstalled, resolve
from halfeven.conformance.plan import Item, plan
from halfeven.conformance.requirements import requirements
from halfeven.conformance.run import run
from halfeven.reference.catalogue import FORMULAS

PARTS = sorted(p.stem for p in Path(folder.__file__).parent.glob("[!_]*.py"))
OFFERING = [name for name, entry in REGISTRY.items() if entry.functions]
#: Differences that no version reproduces, with the reason; docs/findings.md says more.
FINDINGS: dict[tuple[str, str], str] = {}


def load(name: str) -> Backend:
    try:
        return resolve(name)[0]
    except NotInstalled as error:
        assert REGISTRY[name].extra, "torch and the base dependencies are never skipped"
        pytest.skip(str(error))


def marked(name: str) -> Any:
    return pytest.param(name, marks=[pytest.mark.library] if REGISTRY[name].extra else [])


def test_every_part_is_offered_by_a_backend_and_there() -> None:
    assert {part for entry in REGISTRY.values() for part in entry.functions} == set(PARTS)
    for part in PARTS:
        offered = importlib.import_module(f"{folder.__name__}.{part}").FUNCTIONS
        assert offered.keys() <= FORMULAS.keys(), part
        for name in (n for n, entry in REGISTRY.items() if part in entry.functions):
            spoken = {r.formula for r in requirements(REGISTRY[name].profile)}
            assert offered.keys() <= spoken, f"{part}: {name}'s profile has no requirement of them"


@pytest.mark.parametrize("name", [marked(name) for name in OFFERING])
def test_a_library_computes_the_formula_or_a_version_that_is_named(name: str) -> None:
    backend = load(name)
    items = [item for item in plan(backend) if item.requirement.called]
    assert len(items) >= len(backend.functions)
    results = [run(item) for item in items]
    ran = [r for r in results if r.outcome != "not run"]
    assert ran
    assert sum(r.points for r in ran) > 0
    parting = {(name, r.requirement): r.cause for r in ran if r.outcome in {"differs", "crashed"}}
    known = {key for key in FINDINGS if key[0] == name}
    assert {key: cause for key, cause in parting.items() if key not in known} == {}
    assert known <= parting.keys(), "a finding that no longer bites"


@pytest.mark.parametrize("name", [marked(name) for name in OFFERING])
def test_every_difference_has_a_witness_whose_script_shows_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    backend = load(name)
    shown = 0
    for item in _first_of_each_formula(backend):
        result = run(item)
        if result.witness is None:
            continue
        assert result.witness.reproduced, result.id
        assert result.witness.script, result.id
        try:
            exec(result.witness.script, {})
            said = capsys.readouterr().out.strip()
        except Exception as error:  # noqa: BLE001 - a script may show an error of the library's
            said = type(error).__name__
        assert said.replace("torch.", "") != result.witness.expected, result.id
        shown += 1
    assert shown or all(run(i).outcome not in {"differs", "explained"} for i in _first_of_each_formula(backend))


def _first_of_each_formula(backend: Backend) -> list[Item]:
    items = [item for item in plan(backend) if item.requirement.called]
    return list({item.requirement.formula: item for item in reversed(items)}.values())
