"""Every formula against its second derivation on every call; requirements, calls and formulas belong together."""

import ast
import inspect
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.properties import CHECK
from halfeven.conformance.requirement import CALL_SHAPES, CallSet, Requirement
from halfeven.conformance.requirements import requirements
from halfeven.conformance.systems import call_sets
from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.systems import PROFILES
from oracles import DERIVATIONS

CALLS = call_sets()


ROOT = Path(__file__).parents[2]
CALLED = sorted({name for name, _ in CALLS})


@cache
def called() -> tuple[Requirement, ...]:
    return tuple(r for p in PROFILES if "@" not in p for r in requirements(p) if r.called)


def sets(formula: str) -> list[CallSet]:
    return [c for (name, _), c in CALLS.items() if name == formula]


@pytest.mark.parametrize("formula", CALLED)
def test_a_formula_agrees_with_its_second_derivation_on_every_call(formula: str) -> None:
    assert sets(formula), "no calls"
    for variant in FORMULAS.versions(formula):
        derivation = DERIVATIONS.get(variant.id)
        assert derivation, f'@derives("{variant.id}") stands in no file of tests/oracles: each version has one'
        assert derivation.__module__ != variant.function.__module__
        for found in sets(formula):
            made = points = 0
            for arguments in found.build():
                compared = differences(answer_of(variant.function, arguments), answer_of(derivation, arguments))
                assert not compared.differing, f"{variant.id}, {found.name}, call {made}: {compared.words}"
                made, points = made + 1, points + compared.points
            assert points >= made > 0, f"{formula}, {found.name}: nothing was compared"


def test_every_formula_has_a_second_derivation() -> None:
    assert {f.partition("@")[0] for f in FORMULAS} == set(CALLED)
    assert set(FORMULAS) == set(DERIVATIONS)
    assert len(CALLED) > 60


def test_a_version_differs_from_its_document_on_some_call() -> None:
    same = []
    for variant in (f for f in FORMULAS.values() if "@" in f.id):
        document = FORMULAS[variant.id.split("@")[0]].function
        if not any(
            differences(answer_of(document, a), answer_of(variant.function, a)).differing
            for found in sets(variant.id.split("@")[0])
            for a in found.build()
        ):
            same.append(variant.id)
    assert same == []


def test_requirements_and_calls_belong_together() -> None:
    assert len(called()) > 150
    own = [r for r in called() if r.checks != (CALL_SHAPES,) and not r.checks[0].startswith(CHECK)]
    for requirement in own:  # others are asked of every formula that they fit
        assert requirement.checks, requirement.id
        assert requirement.text, requirement.id
        assert requirement.source, requirement.id
        assert not requirement.kills, requirement.id  # mutants are made of the formula: see tests/mutants
        assert {(requirement.formula, check) for check in requirement.checks} <= set(CALLS), requirement.id
    used = {(r.formula, check) for r in own for check in r.checks if check != CALL_SHAPES}
    assert set(CALLS) - used == set()


def test_every_requirement_has_an_id_of_its_own() -> None:
    for profile in PROFILES:
        ids = [r.id for r in requirements(profile)]
        assert len(ids) == len(set(ids))
        assert ids


def test_every_version_of_a_formula_can_be_claimed() -> None:
    versions = {f"{f.system}@{f.version}" for f in FORMULAS.values() if f.version}
    assert len(versions) > 5
    assert versions <= set(PROFILES)
    assert formula_of("torchao/to_mx", "torchao@0.18") is FORMULAS["torchao/to_mx@0.18"]
    assert formula_of("torchao/pack_uint4", "torchao@0.18") is FORMULAS["torchao/pack_uint4"]


def test_derivations_share_nothing_with_the_formulas() -> None:
    allowed = ("halfeven.reference.grid.Grid", "halfeven.reference.model.EvaluationModel")
    files = sorted((ROOT / "tests/oracles").glob("[!_]*.py"))
    assert len(files) > 10
    for path in files:
        nodes = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.ImportFrom)]
        taken = {f"{n.module}.{a.name}" for n in nodes for a in n.names if (n.module or "").startswith("halfeven")}
        assert [name for name in taken if not name.startswith(allowed)] == [], path.name


INEXACT = {"log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "pow", "power", "float_power", "cbrt"}


def inexact(text: str) -> list[str]:
    """The functions without a correct rounding that a source calls, and powers that are no integer's or constant's."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            found += [name] if name in INEXACT else []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base = node.left
            whole = isinstance(base, ast.Constant) and (
                isinstance(base.value, int) or isinstance(node.right, ast.Constant | ast.UnaryOp)
            )
            fraction = isinstance(base, ast.Call) and getattr(base.func, "id", "") == "Fraction"
            found += [] if whole or fraction else [ast.unparse(node)]
    return found


def test_no_oracle_takes_a_logarithm_or_a_power() -> None:
    paths = [p for folder in ("reference", "tests/oracles") for p in (ROOT / folder).rglob("*.py")]
    files = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in paths}
    assert len(files) > 30
    found = {name: found for name, text in files.items() if (found := inexact(text))}
    # The entropy is a sum of logarithms; its derivation bounds each by rationals, and shows that the choice is decided.
    assert found == {
        "reference/systems/pytorch_quantization/histogram.py": ["log"],
        "tests/oracles/aimet_affine.py": ["2.0 ** bitwidth"],  # a fraction of bits, whose power no fraction is
    }
    found = inexact("np.log2(x)\n2.0 ** k\nx ** 2\n2 ** k\nFraction(2) ** k\n2.0 ** -24")
    assert sorted(found) == ["2.0 ** k", "log2", "x ** 2"]


def unnamed(function: Callable[..., Any]) -> list[str]:
    """The arguments that a docstring neither names nor leaves to another function's (``as in``, ``as for``)."""
    doc = inspect.getdoc(function) or ""
    if re.search(r"\b[Aa]s (in|for|of|documented)\b", doc):
        return []
    return [name for name in inspect.signature(function).parameters if not re.search(rf"\b{name}\b", doc)]


def test_a_documented_formula_s_docstring_names_its_arguments_and_its_errors() -> None:
    documented = {name: f.function for name, f in FORMULAS.items() if "@" not in name}
    assert {name: missing for name, f in documented.items() if (missing := unnamed(f))} == {}
    silent = []
    for name, function in documented.items():
        raises = any(answer_of(function, a).kind == "raised" for found in sets(name) for a in found.build())
        if raises and not re.search(r"Raises:|[Ee]rrors", inspect.getdoc(function) or ""):
            silent.append(name)
    assert silent == []
