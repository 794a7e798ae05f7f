"""Where a document admits several readings, an answer by another one does not differ, and the result says which."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.configuration import Case, Configuration
from halfeven.conformance.engine.call import Answer
from halfeven.conformance.engine.clear import real_value
from halfeven.conformance.engine.compare import compare_reals
from halfeven.conformance.engine.conclude import concluded
from halfeven.conformance.engine.evidence import Finding, Judged
from halfeven.conformance.engine.judge import Difference
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.readings import nearer
from halfeven.conformance.engine.run import answered, run
from halfeven.conformance.properties import CHECK
from halfeven.conformance.report.model import CONFORMING, Result
from halfeven.conformance.requirement import CALL_SHAPES
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import FORMULAS, PROFILES, Grid

ONNX = PROFILES["onnx"]
DEQUANTIZE = FORMULAS["onnx/DequantizeLinear"]
F16 = np.dtype(np.float16)


def test_onnx_rounds_the_product_once() -> None:
    x, scale = np.array([65535], np.uint16), np.array(0.1, F16)
    assert DEQUANTIZE.function(x, scale) == F16.type(6552)
    assert ONNX.dequantize(x, scale, np.array(0), Grid(0, 65535), F16) == F16.type(6552)


def results(**choices: str) -> list[Result]:
    """Of the formula with other choices, by its own calls."""
    point: Any = replace(DEQUANTIZE.behaviour, **choices)  # type: ignore[type-var, arg-type]
    worker = Inside(Backend("tried", "onnx", functions={DEQUANTIZE.id: DEQUANTIZE.at(point)}, array="numpy"))
    items = [i for i in plan(worker.offer) if i.configuration is None and i.check != CALL_SHAPES]
    return [run(i, worker) for i in items if i.requirement.basis != "silent"]


@pytest.mark.parametrize("product", ["once", "output", "float32", "promoted"])
def test_another_reading_of_a_formula_does_not_differ(product: str) -> None:
    found = results(product=product)
    assert {r.outcome for r in found} == {"exact"}, [r.cause for r in found if r.cause]
    said = {r.detail for r in found if "another reading that the document admits" in r.detail}
    assert bool(said) == (product != "once")
    assert all("the output type determines the precision of the multiplication" in words for words in said)


def test_what_no_reading_admits_differs() -> None:
    assert {r.outcome for r in results(difference="int32")} == {"exact", "differs"}


def test_errors_beside_another_reading_are_charged_alone() -> None:
    point: Any = replace(DEQUANTIZE.behaviour, product="promoted")  # type: ignore[type-var, arg-type]
    function = DEQUANTIZE.at(point)

    def picky(*args: Any, **named: Any) -> Any:
        if np.ndim(args[0] if args else named["x"]) > 1:
            msg = "one dimension at most"
            raise NotImplementedError(msg)
        return function(*args, **named)

    worker = Inside(Backend("tried", "onnx", functions={DEQUANTIZE.id: picky}, array="numpy"))
    items = [i for i in plan(worker.offer) if i.configuration is None and i.requirement.basis != "silent"]
    asked = [answered(i, worker) for i in items if i.check != CHECK]
    found, _ = concluded([a.result for a in asked], [a.sample for a in asked if a.sample], {"tried": worker})
    charged = [r for r in found if r.outcome not in CONFORMING]
    causes = [c.sentence for r in charged for c in r.causes]
    assert causes
    assert all(sentence.startswith("raises NotImplementedError where the document") for sentence in causes)
    assert any("another reading that the document admits" in r.detail for r in charged)
    assert all(r.differing < r.points for r in charged if r.check == CALL_SHAPES)


#: What documents of operations leave open, and another reading; in float16, on a grid where the readings are two.
OPEN = [
    ("onnx", "quantize", Grid(-128, 127), "only from opset 23 on", {"compute": "float32"}),
    ("onnx", "dequantize", Grid(0, 65535), "whether its operands are rounded", {"product": "output"}),
    ("pytorch-quantization", "fake_quantize", Grid(-127, 127), "speaks of float32 alone", {"product": "output"}),
    ("torchao", "dequantize", Grid(-32768, 32767), "in which arithmetic", {"subtract": "int32"}),
]


def of_model(name: str, operation: str, grid: Grid, changes: dict[str, str]) -> list[Result]:
    """Of an operation on float16 that computes as a profile with other choices."""
    profile = PROFILES[name]
    computed = replace(profile, model=replace(profile.model, **changes))
    more = [F16] if operation == "dequantize" else []

    def tried(x: Any, scale: Any, zero_point: Any, **_: Any) -> Any:
        return getattr(computed, operation)(x, np.asarray(scale), np.asarray(zero_point), grid, *more)

    given: dict[str, Any] = {"dtypes": ("float16",), "grids": (grid,), "granularities": ("tensor",), "array": "numpy"}
    call = (lambda x, amax, **_: tried(x, amax, np.zeros((), int))) if profile.parameters == ("amax",) else tried
    worker = Inside(Backend("tried", name, operations={operation: call}, **given))
    return [run(i, worker) for i in plan(worker.offer) if i.check in {"boundaries", "all-codes"}]


@pytest.mark.parametrize(("name", "operation", "grid", "gap", "changes"), OPEN)
def test_another_reading_of_an_operation_does_not_differ(
    name: str, operation: str, grid: Grid, gap: str, changes: dict[str, str]
) -> None:
    found = of_model(name, operation, grid, changes)
    assert {r.outcome for r in found} == {"exact"}, [(r.id, r.cause, r.detail) for r in found]
    said = [r.detail for r in found if "another reading that the document admits" in r.detail]
    assert said
    assert all(gap in words for words in said)
    beyond = of_model(name, operation, grid, {**changes, "rounding": "toward-zero", "subtract": "int8"})
    assert {r.outcome for r in beyond} - {"exact"}


def case(operation: Any, x: Any, scale: float, zero: int, dtype: str = "float16") -> Case:
    c = Configuration(operation, dtype, Grid(-32768, 32767), (1,))
    return Case(c, np.array([x]), np.array([scale], dtype), np.array([zero]))


def test_the_real_equation_of_one_element() -> None:
    def real(operation: str, x: Any, scale: float, zero: int) -> Fraction | None:
        given = case(operation, x, scale, zero)
        return real_value(ONNX, given, (given.x[0], given.scale[0], given.zero[0]))

    tenth = Fraction(float(F16.type(0.1)))
    assert real("dequantize", 32767, 0.1, -32768) == 65535 * tenth
    assert real("quantize", F16.type(0.25), 0.5, 3) == 3  # a tie, to even
    assert real("fake_quantize", F16.type(6552), 0.1, -32768) == 65535 * tenth
    assert real("dequantize", 1, 0.0, 0) is None


def test_the_nearer_of_two_answers_is_said() -> None:
    given = case("dequantize", 32767, 0.1, -32768)
    two = replace(given, x=given.x.repeat(2), configuration=replace(given.configuration, shape=(2,)))
    infinite, near = np.array([np.inf], F16), np.array([6552], F16)

    def words(expected: Any, actual: Any) -> str:
        gap = compare_reals(expected, actual)
        asked = given if expected.size == 1 else two
        compared = Judged(Answer("returned", expected), Answer("returned", actual), asked)
        return nearer(ONNX, Finding(compared, Difference(1, gap.differing, comparison=gap)))

    assert words(infinite, near) == "nearer to the real equation is the answer that came"
    assert words(near, infinite) == "nearer to the real equation is what was expected"
    assert not words(near, near)
    assert words(np.array([np.inf, 6552], F16), np.array([6552, 6544], F16)) == (
        "nearer to the real equation is what was expected at 1 of 2 points and the answer that came at 1 of 2 points"
    )
