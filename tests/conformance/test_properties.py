"""Properties catch wrong implementations, leave right ones alone, and are held against our own transcriptions."""

import math
import re
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfeven.conformance import Backend
from halfeven.conformance.engine.demonstrate import run_alone
from halfeven.conformance.engine.held import own_calls
from halfeven.conformance.engine.judge import answer_of
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import run
from halfeven.conformance.properties import CHECK, PROPERTIES, ROLES, WITHOUT, fits, of
from halfeven.conformance.properties.judged import first_of, second_of
from halfeven.conformance.report.causes import cause
from halfeven.conformance.report.model import Result
from halfeven.conformance.requirements import every_requirement
from halfeven.conformance.systems import call_sets
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import FORMULAS

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(Path(__file__).parent)]
sys.path.append(str(ROOT))  # a script imports the wrong implementations by the name of this module
from findings import compared, section  # noqa: E402
from property_kinds import WRONG_OF_KINDS  # noqa: E402

PAGE = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
QUANTIZE, FAKE = "torch/quantized_decomposed.quantize_per_tensor", "torch/_fake_quantize_learnable_per_tensor_affine"
CHANNEL = "torch/quantized_decomposed.quantize_per_channel"
CHOOSE = "torch/quantized_decomposed.choose_qparams_per_token"
RANGE, GRADIENT = "torch/MinMaxObserver", "torch/fake_quantize_per_tensor_affine.backward"


def held(formula: str, name: str, fn: Callable[..., Any], *, tier: Any = "quick") -> Result:
    """A function held to one property of a formula."""
    backend = Backend("b", formula.partition("/")[0], functions={formula: fn}, array="numpy")
    worker = Inside(backend)
    (item,) = (i for i in plan(worker.offer, tier) if i.check == f"{CHECK}{name}" and i.requirement.formula == formula)
    return run(item, worker)


def of_formula(formula: str) -> Callable[..., Any]:
    return FORMULAS[formula].function


def beyond_the_grid(**given: Any) -> Any:
    return (of_formula(QUANTIZE)(**given).astype(np.int64) + 1).astype(np.int32)


def nan_of_the_largest(**given: Any) -> Any:
    found = of_formula(FAKE)(**given)
    return np.where(np.abs(given["x"]) > np.abs(given["x"]).max() * 0.9, np.nan, found).astype(found.dtype)


def biased(**given: Any) -> Any:
    found = of_formula(FAKE)(**given)
    return np.where(given["x"] == 0, given["scale"], found).astype(found.dtype)


def wraps(**given: Any) -> Any:
    with np.errstate(all="ignore"):
        code = np.rint(given["input"].astype(np.float32) / np.float32(given["scale"])) + given["zero_point"]
        low, high = given["quant_min"], given["quant_max"]
        return ((np.nan_to_num(code).astype(np.int64) - low) % (high - low + 1) + low).astype(np.int32)


def floors(**given: Any) -> Any:
    scale, zero = given["scale"], np.rint(given["zero_point"])
    with np.errstate(all="ignore"):
        code = np.clip(np.floor(given["x"] / scale * 0.999) + zero, given["quant_min"], given["quant_max"])
    return ((code - zero) * scale).astype(given["x"].dtype)


def least_scale(**given: Any) -> Any:
    return of_formula(QUANTIZE)(**{**given, "scale": max(given["scale"], 0.25)})


def half_up(**given: Any) -> Any:
    with np.errstate(all="ignore"):
        code = np.floor(given["input"].astype(np.float32) / np.float32(given["scale"]) + 0.5) + given["zero_point"]
    return np.nan_to_num(np.clip(code, given["quant_min"], given["quant_max"])).astype(given["dtype"])


def first_channel_for_all(**given: Any) -> Any:
    scales = np.where(np.arange(given["scales"].size) == 0, given["scales"][0], given["scales"])
    scales[-1:] = scales[:1]
    return of_formula(CHANNEL)(**{**given, "scales": scales})


def last_batch(batches: Any) -> Any:
    return of_formula(RANGE)(batches[-1:])


def zero_scale(**given: Any) -> Any:
    scale, zero = of_formula(CHOOSE)(**given)
    return scale * 0, zero


def half_the_range(**given: Any) -> Any:
    scale, zero = of_formula(CHOOSE)(**given)
    return scale / 2, zero


def straight_through_everywhere(**given: Any) -> Any:
    return given["grad"].copy()


WRONG: dict[str, tuple[str, Callable[..., Any]]] = {
    "on-grid": (QUANTIZE, beyond_the_grid),
    "finite": (FAKE, nan_of_the_largest),
    "zero": (FAKE, biased),
    "monotone": (QUANTIZE, wraps),
    "stays-quantized": (FAKE, floors),
    "powers-of-two": (QUANTIZE, least_scale),
    "odd": (QUANTIZE, half_up),
    "any-order": (CHANNEL, first_channel_for_all),
    "any-batch-order": (RANGE, last_batch),
    "positive-scale": (CHOOSE, zero_scale),
    "covers": (CHOOSE, half_the_range),
    "gradient-of-forward": (GRADIENT, straight_through_everywhere),
}


def test_every_property_has_a_wrong_implementation() -> None:
    assert WRONG.keys() == PROPERTIES.keys()


@pytest.mark.parametrize("name", WRONG)
def test_a_property_catches_a_wrong_implementation_and_no_right_one(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    formula, wrong = WRONG[name]
    found = held(formula, name, wrong)
    assert found.outcome == "differs", found
    assert found.cause == cause(found) == PROPERTIES[name].words
    assert 0 < found.differing <= found.points
    w = found.witness
    assert w is not None
    assert w.expected in w.where
    assert w.actual in w.where
    [seen] = run_alone([w.script])
    assert seen.differs, (seen, w.unshown)
    with monkeypatch.context() as mended:  # the script evaluates what comes: of the right one it has nothing to show
        mended.setattr(sys.modules[__name__], wrong.__name__, of_formula(formula))
        exec(w.script, {})
    expected, actual = (line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()[-2:])
    assert expected == actual
    right = held(formula, name, of_formula(formula))
    assert (right.outcome, right.differing) == ("exact", 0), right
    assert right.points > 0


@pytest.mark.parametrize(("name", "formula", "wrong"), WRONG_OF_KINDS)
def test_a_property_catches_a_wrong_implementation_of_each_kind_and_no_right_one(
    name: str, formula: str, wrong: Callable[..., Any]
) -> None:
    found = held(formula, name, wrong)
    assert (found.outcome, found.cause) == ("differs", PROPERTIES[name].words), found
    assert 0 < found.differing <= found.points
    assert found.witness is not None
    if found.witness.script:
        [seen] = run_alone([found.witness.script])
        assert seen.differs, (seen, found.witness.script)
    right = held(formula, name, of_formula(formula))
    assert (right.outcome, right.differing) == ("exact", 0), right
    assert right.points > 0


@pytest.mark.parametrize("formula", [f for f in FORMULAS if f.partition("@")[0] in ROLES])
def test_every_property_judges_something_and_what_a_transcription_breaks_is_written_down(formula: str) -> None:
    found = section(FORMULAS[formula])
    judged = compared(FORMULAS[formula])
    assert judged.keys() == {p.name for p in of(formula.partition("@")[0])}
    assert "@" in formula or all(judged.values()), f"nothing is compared: {judged}"
    written = re.search(rf"^### {re.escape(formula)}\n.*?(?=\n\n##)", PAGE, re.MULTILINE | re.DOTALL)
    assert found == (written[0] if written else ""), "run make docs"


def test_every_formula_has_a_role_or_a_reason_why_no_property_fits_it() -> None:
    catalogue = {f.id for f in FORMULAS.values() if not f.version}
    assert ROLES.keys() | WITHOUT.keys() == catalogue
    assert not ROLES.keys() & WITHOUT.keys()
    assert all(WITHOUT.values())
    assert all(of(formula) for formula in ROLES), "a role that no property reads is none"


@pytest.mark.parametrize("formula", ROLES)
def test_an_element_as_python_is_what_the_property_reads(formula: str) -> None:
    role, compared = ROLES[formula], 0
    for own in own_calls(formula):
        answer = answer_of(of_formula(formula), own.arguments)
        first = first_of(role, own.arguments, answer.value) if answer.kind == "returned" else None
        for name in {"codes", "reals", "dx", "mask", "scale", "zero", "least", "most", "amax"} & (
            {*first.leaves} if first else set()
        ):
            leaf = first.leaves[name]
            for i in range(0, leaf.size, max(1, leaf.size // 8)):
                text = role.element(own.arguments, answer.value, name, i)
                assert text, (name, own.arguments)
                with np.errstate(all="ignore"):
                    got = eval(
                        text, {**own.arguments, "result": answer.value, "np": np, "ml_dtypes": ml_dtypes, "math": math}
                    )
                    held = np.asarray(got).astype(leaf.dtype)
                assert np.array_equal(held.astype(np.float64), leaf.ravel()[i].astype(np.float64), equal_nan=True), text
                compared += 1
        if compared > 400:
            break
    assert compared


@pytest.mark.parametrize("formula", ROLES)
def test_second_calls_hold_arrays_that_torch_takes(formula: str) -> None:
    made = 0
    for own in islice(own_calls(formula), 40):
        answer = answer_of(of_formula(formula), own.arguments)
        first = first_of(ROLES[formula], own.arguments, answer.value) if answer.kind == "returned" else None
        for found in of(formula) if first is not None else ():
            second = second_of(found, ROLES[formula], first)
            made += second is not None
            arrays = [v for v in (second or {}).values() if isinstance(v, np.ndarray)]
            assert all(step >= 0 for v in arrays for step in v.strides), (found.name, own.arguments)
    assert made or all(p.again is None for p in of(formula))


def test_exceptions_are_of_formulas_that_a_property_would_fit() -> None:
    for p in PROPERTIES.values():
        for formula, reason in p.exceptions.items():
            role = ROLES[formula]
            assert reason
            assert not fits(p, formula)
            assert role.kind in p.kinds
            assert not p.needs or p.needs in role.traits


def test_properties_are_requirements_with_ids_of_their_own() -> None:
    found = {r.id: r for r in every_requirement().values() if r.checks and r.checks[0].startswith(CHECK)}
    assert found.keys() == {f"{f}/{p.name}" for f in ROLES for p in of(f)}
    assert {r.basis for r in found.values()} == {"expected"}
    assert {f for f, _ in call_sets()} >= ROLES.keys()


def test_a_release_that_was_measured_to_break_one_is_as_measured_and_differs() -> None:
    """Who does the same as onnxruntime agrees with what was measured, and still gives -8 for infinity."""
    fn = of_formula("onnx/QuantizeLinear@onnxruntime-1.31")
    backend = Backend("b", "onnx@onnxruntime-1.31", functions={"onnx/QuantizeLinear": fn}, array="numpy")
    worker = Inside(backend)
    found = {i.check.removeprefix(CHECK): i for i in plan(worker.offer) if i.configuration is None}
    assert run(found["huge"], worker).outcome == "as measured"
    broken = run(found["monotone"], worker)
    assert broken.outcome == "differs"
    assert broken.witness is not None
    assert run(found["on-grid"], worker).outcome == "exact"
