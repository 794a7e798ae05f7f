"""The walk-through of docs/contributing.md: its files, as printed, make a formula that the engine asks and explains."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.run import run
from halfeven.conformance.requirement import REQUIREMENTS
from halfeven.conformance.systems import call_sets
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import FORMULAS
from oracles import DERIVATIONS

CALLS = call_sets()


PAGE = Path(__file__).parents[1] / "docs/contributing.md"


@pytest.fixture
def rooms() -> Any:
    """The two modules of the page, executed; what they registered is taken back."""
    found: dict[str, ModuleType] = {}
    before, called, derived = set(FORMULAS), set(CALLS), set(DERIVATIONS)
    for path, code in re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        module = ModuleType(path.removesuffix(".py").replace("/", "."))
        exec(compile(code, path, "exec", dont_inherit=True), module.__dict__)
        found[path.split("/")[0]] = module
    yield found
    for name in set(DERIVATIONS) - derived:
        del DERIVATIONS[name]
    for name in set(FORMULAS) - before:
        del FORMULAS._formulas[name]
    for key in set(CALLS) - called:
        del CALLS[key]
        del REQUIREMENTS["/".join(key)]


def reciprocal(x: torch.Tensor) -> torch.Tensor:
    s = x.abs().max() / 2
    return torch.round(x * (1 / s)).to(torch.int8) if s else torch.zeros(x.shape, dtype=torch.int8)


def truncating(x: torch.Tensor) -> torch.Tensor:
    s = x.abs().max() / 2
    return torch.trunc(x / s).to(torch.int8) if s else torch.zeros(x.shape, dtype=torch.int8)


@pytest.mark.usefixtures("rooms")
def test_the_formula_of_the_walk_through_is_asked_and_its_versions_are_named() -> None:
    requirement = REQUIREMENTS["example/quantize/nearest"]
    assert requirement.text == "The code is the nearest to the quotient of the element and the scale."

    def outcome(function: Any) -> Any:
        backend = Backend("mine", "onnx", functions={"example/quantize": function})
        worker = Inside(backend)
        return run(Item(worker.offer, requirement, "nearest", None, "quick", 0), worker)

    def exact(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(FORMULAS["example/quantize"].function(x.numpy()))

    assert outcome(exact).outcome == "exact"
    found = outcome(reciprocal)
    assert found.outcome == "explained"
    assert "multiplies by the scale's reciprocal where the document divides by the scale" in found.cause
    assert outcome(truncating).outcome == "differs"
    assert FORMULAS["example/quantize@1.0"].function(np.float32([1, 0.5])).tolist() == [2, 1]
    for name in ("example/quantize", "example/quantize@1.0"):
        for call in CALLS["example/quantize", "nearest"].build():
            assert FORMULAS[name].function(**call).tolist() == DERIVATIONS[name](**call).tolist()
