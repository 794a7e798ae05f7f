"""What a document says is exact; what a release alone was measured to do is ``as measured``, unless a run is strict."""

from typing import Any

import numpy as np
import pytest

from halfeven.conformance import Backend, check
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import run
from halfeven.conformance.requirements import requirements
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import FORMULAS, PROFILES, Grid

CHOOSE, DYNAMIC = "torchao/choose_qparams_affine", "onnx/DynamicQuantizeLinear"


def of_formula(formula: str, profile: str, *, strict: bool = False) -> dict[str, str]:
    """The outcomes of a formula's own function, by aspect."""
    fn = FORMULAS[formula].function
    backend = Backend("b", profile, functions={formula.partition("@")[0]: fn}, array="numpy")
    worker = Inside(backend)
    return {i.requirement.aspect: run(i, worker).outcome for i in plan(worker.offer, strict=strict)}


def of_profile(profile: str, aspects: tuple[str, ...], *, strict: bool = False, claim: str = "") -> set[str]:
    """The outcomes of a profile's own quantize, on some aspects."""
    document = PROFILES[profile]

    def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return document.quantize(x, scale, zero_point, Grid(qmin, qmax)).astype(np.int32)

    worker = Inside(Backend("b", claim or profile, {"quantize": quantize}, array="numpy"))
    items = [i for i in plan(worker.offer, strict=strict) if i.requirement.aspect in aspects]
    assert items
    return {run(i, worker).outcome for i in items}


@pytest.mark.parametrize("formula", [CHOOSE, "aimet/affine.quantize"])
def test_what_agrees_with_a_measured_sentence_is_never_exact(formula: str) -> None:
    basis = {r.aspect: r.basis for r in requirements(formula.partition("/")[0]) if r.called and r.formula == formula}
    assert {"documented", "measured"} <= {*basis.values()}
    found = of_formula(formula, formula.partition("/")[0])
    for aspect, outcome in found.items():
        if basis[aspect] in {"documented", "measured"}:
            assert outcome == ("exact" if basis[aspect] == "documented" else "as measured"), aspect
    strict = of_formula(formula, formula.partition("/")[0], strict=True)
    assert {strict[aspect] for aspect in basis if basis[aspect] in {"documented", "measured", "silent"}} == {"exact"}


def test_what_a_release_does_otherwise_than_its_document_is_as_measured() -> None:
    assert of_profile("torch.quantize@2.13", ("nearest-code",)) == {"as measured"}
    assert of_profile("torch.quantize@2.13", ("nearest-code",), strict=True) == {"exact"}
    assert of_profile("torch.quantize", ("nearest-code",)) == {"exact"}
    assert of_profile("torchao@0.11", ("nearest-code", "saturation")) == {"exact"}, "that release does what it says"
    assert "as measured" in of_formula(f"{CHOOSE}@0.18", "torchao@0.18").values()


def test_what_differs_from_a_measurement_differs() -> None:
    document, release = "torch.quantize", "torch.quantize@2.13"
    assert of_profile(document, ("nearest-code",), claim=release) == {"explained"}
    assert of_profile(release, ("nearest-code",), claim=document) == {"explained"}


def test_strict_judges_what_the_document_leaves_open() -> None:
    def zeros_for_nan(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return np.where(np.isnan(x), 0, np.clip(np.rint(x / scale) + zero_point, qmin, qmax)).astype(np.int32)

    plain, strict = (check(zeros_for_nan, "onnx", array="numpy", strict=s) for s in (False, True))
    assert plain.conforms
    assert not strict.conforms
    nan = {r.outcome for r in strict.results if r.check == "nan"}
    assert not nan & {"implementation-defined", "exact"}
    assert {r.outcome for r in strict.results if r.check == "errors"} == {"implementation-defined"}, "there is no norm"


def test_a_verdict_is_exact_only_where_all_of_it_is() -> None:
    verdict = check(FORMULAS[DYNAMIC].function, formula=DYNAMIC, array="numpy")
    assert verdict.conforms
    assert verdict.outcome == "as measured"
    assert "as measured" in str(verdict)
    assert check(FORMULAS[DYNAMIC].function, formula=DYNAMIC, array="numpy", strict=True).outcome == "exact"
