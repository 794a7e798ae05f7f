"""What libraries answer to the calls of documented functions: as the document says, or as a version that is named."""

import warnings
from typing import Any

import pytest

from halfeven.conformance.backends.registry import REGISTRY, NotInstalled, resolve
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import run
from halfeven.conformance.requirement import CALL_SHAPES
from halfeven.conformance.requirements import requirements
from halfeven.conformance.systems import answers, rooms
from halfeven.conformance.workers.inside import Inside

OFFERING = [name for name, entry in REGISTRY.items() if answers(entry.answers or name)]
#: Differences that no version reproduces, with the reason.
FINDINGS: dict[tuple[str, str], str] = {}


def load(name: str) -> Inside:
    try:
        return Inside(resolve(name)[0])
    except NotInstalled as error:
        assert REGISTRY[name].extra, "torch and the base dependencies are never skipped"
        pytest.skip(str(error))


def called(worker: Inside) -> list[Item]:
    return [item for item in plan(worker.offer) if item.requirement.called]


def marked(name: str) -> Any:
    return pytest.param(name, marks=[pytest.mark.library] if REGISTRY[name].extra else [])


def test_every_answer_is_a_backend_s_and_of_a_formula_that_is_required() -> None:
    given = {name for room in rooms() for name in getattr(room, "ANSWERS", {})}
    assert given == {entry.answers or name for name, entry in REGISTRY.items() if answers(entry.answers or name)} | {
        name for name, entry in REGISTRY.items() if entry.swap
    }
    for name in OFFERING:
        spoken = {r.formula for r in requirements(REGISTRY[name].profile) if r.called}
        offered = answers(REGISTRY[name].answers or name)
        assert offered.keys() <= spoken, f"{name}'s profile has no requirement of them"


@pytest.mark.parametrize("name", [marked(name) for name in OFFERING])
def test_a_library_computes_the_formula_or_a_version_that_is_named(name: str) -> None:
    worker = load(name)
    items = called(worker)
    assert len(items) >= len(worker.offer.functions)
    results = [run(item, worker) for item in items]
    ran = [r for r in results if r.outcome != "not run"]
    assert ran
    assert sum(r.points for r in ran) > 0
    parting = {(name, r.requirement): r.cause for r in ran if r.outcome in {"differs", "crashed"}}
    known = {key for key in FINDINGS if key[0] == name}
    assert {key: cause for key, cause in parting.items() if key not in known} == {}
    assert known <= parting.keys(), "a finding that no longer bites"


@pytest.mark.parametrize("name", [marked(name) for name in OFFERING])
def test_every_difference_has_a_witness_whose_script_shows_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    worker = load(name)
    for item in called(worker):
        result = run(item, worker)
        if (w := result.witness) is None:
            assert result.outcome not in {"differs", "explained", "crashed"}, result.id
            continue
        assert w.reproduced, result.id
        if item.check == CALL_SHAPES and not w.script:  # the call is too long to be spelt out
            continue
        assert w.script, result.id
        assert "halfeven" not in w.script.replace("halfeven.optimized", ""), result.id
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(w.script, {})
            said = capsys.readouterr().out.strip().replace("torch.", "")
        except Exception as error:  # noqa: BLE001 - a script may show an error of the library's
            said = next(t.__name__ for t in type(error).__mro__ if t.__name__ == w.actual)
        assert said == w.actual or "result" in w.actual or w.actual.endswith(" ..."), result.id
        assert said != w.expected, result.id
