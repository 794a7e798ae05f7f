"""The engine on documented functions, with a formula of the tests' own: every outcome, and the witness."""

import ctypes
import platform
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.engine.call import CallShape
from halfeven.conformance.engine.demonstrate import demonstrated, run_alone
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.engine.function_calls import shaped_call
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.run import run
from halfeven.conformance.engine.witness import witness
from halfeven.conformance.environment import flushes_to_zero, rounds_to_nearest
from halfeven.conformance.report.model import Result
from halfeven.conformance.requirement import CALLS, REQUIREMENTS, Requirement, documented
from halfeven.conformance.suite import check
from halfeven.conformance.workers.inside import Inside
from halfeven.reference.catalogue import FORMULAS, Real, formula

ID = "onnx/test_formula"
REQUIREMENT = Requirement(
    "onnx/test_formula/halves", "Halves.", "documented", "here", ("some",), (), (), ID, called=True
)


def double(x: np.ndarray, by: float) -> np.ndarray:
    """Twice, halved."""
    if by == 0:
        msg = "by=0 is not accepted"
        raise ValueError(msg)
    return x / np.asarray(by, x.dtype)


@pytest.fixture(autouse=True)
def own_formula() -> Iterator[None]:
    formula(ID, equation="x / y", basis=Real(), source="here")(double)

    @formula(f"{ID}@1.0", equation="x * (1 / y)", basis=Real(), source="here")
    def reciprocal(x: np.ndarray, by: float) -> np.ndarray:
        """Multiplies by the reciprocal."""
        return x * (np.asarray(1, x.dtype) / np.asarray(by, x.dtype)) if by else double(x, by)

    @documented(ID, "here", aspect="halves")
    def some() -> Iterator[dict[str, Any]]:
        """Halves."""
        yield {"x": np.arange(40, dtype=np.float32), "by": 3.0}
        yield {"x": np.float32([5]), "by": 3.0}
        yield {"x": np.float32([1]), "by": 0.0}

    yield
    for name in (ID, f"{ID}@1.0"):
        del FORMULAS._formulas[name]
    del CALLS[ID, "some"]
    del REQUIREMENTS[REQUIREMENT.id]


def result(function: Callable[..., Any], **changes: Any) -> Result:
    worker = Inside(Backend("mine", changes.pop("profile", "onnx"), functions={ID: function}, **changes))
    return run(Item(worker.offer, REQUIREMENT, "some", None, "quick", 0), worker)


def right(*, x: torch.Tensor, by: float) -> torch.Tensor:
    if by == 0:
        raise ValueError
    return x / torch.tensor(by)


def by_reciprocal(*, x: torch.Tensor, by: float) -> torch.Tensor:
    if by == 0:
        raise ValueError
    return x * (torch.tensor(1.0) / by)


def one_off(*, x: torch.Tensor, by: float) -> torch.Tensor:
    return right(x=x, by=by) + (x == 5)


def test_exact() -> None:
    found = result(right)
    assert (found.outcome, found.points, found.differing, found.witness) == ("exact", 42, 0, None)
    assert (found.id, found.operation, found.requirement) == (REQUIREMENT.id, "test_formula", REQUIREMENT.id)


def test_a_version_that_reproduces_every_answer_is_named() -> None:
    found = result(by_reciprocal)
    assert found.witness is not None
    assert found.outcome == "explained"
    assert found.cause.startswith("as onnx 1.0 was measured to do: result[")
    assert found.unit == "ulp"
    assert found.differing > 5


def test_a_version_is_not_named_where_a_large_call_refutes_it() -> None:
    """Nothing of that call is kept: it has more numbers than there is room for."""
    large = np.resize(np.arange(1, 9, dtype=np.float32), 1 << 20)
    own = CALLS[ID, "some"]
    few = own.build()
    CALLS[ID, "some"] = replace(own, generator=lambda: [*few, {"x": large, "by": 3.0}])

    def mine(*, x: torch.Tensor, by: float) -> torch.Tensor:
        found = by_reciprocal(x=x, by=by)
        return torch.nextafter(found, found + 1) if len(x) > 60_000 else found

    found = result(mine)
    assert found.outcome == "differs"
    assert [(c.code, c.share) for c in found.causes] == [("HE998", ">99% of the answers")]
    assert result(by_reciprocal).outcome == "explained"


def test_a_claimed_version_is_what_it_is_held_to() -> None:
    FORMULAS._formulas[f"{ID}@0.18"] = replace(FORMULAS[f"{ID}@1.0"], id=f"{ID}@0.18")
    try:
        assert result(by_reciprocal, profile="torchao@0.18").outcome == "as measured"
    finally:
        del FORMULAS._formulas[f"{ID}@0.18"]


def test_a_difference_has_the_smallest_call_for_a_witness_and_a_script_that_shows_it() -> None:
    [found] = demonstrated([result(one_off)])
    assert found.outcome == "differs"
    assert found.witness is not None
    assert found.witness.x == "x=[5.0] float32, by=3.0"
    assert "where the document gives 1.6666666269302368" in found.cause
    assert found.witness.reproduced, found.witness.unshown
    [seen] = run_alone([found.witness.script])
    assert [float.fromhex(v) for v in (seen.expected, seen.actual)] == [1.6666666269302368, 2.6666665077209473]


def test_what_raises_where_a_value_is_documented_crashed() -> None:
    def broken(*, x: torch.Tensor, by: float) -> torch.Tensor:
        raise ValueError("no")

    found = result(broken)
    assert (found.outcome, found.differing) == ("crashed", 2)
    assert "raises ValueError where the document gives a result: no" in found.cause


def test_another_error_than_the_documented_one_differs() -> None:
    def other(*, x: torch.Tensor, by: float) -> torch.Tensor:
        if by == 0:
            raise KeyError(by)
        return right(x=x, by=by)

    found = result(other)
    assert (found.outcome, found.differing) == ("differs", 1)
    assert "raises KeyError where the document raises ValueError" in found.cause


def test_a_missing_refusal_differs() -> None:
    found = result(lambda *, x, by: x / torch.tensor(by))
    assert found.outcome == "differs"
    assert "returns a result where the document raises ValueError" in found.cause


def test_what_is_not_offered_is_not_run() -> None:
    def nothing(*, x: torch.Tensor, by: float) -> torch.Tensor:
        raise Unsupported("never")

    assert result(nothing).outcome == "not run"

    def some(*, x: torch.Tensor, by: float) -> torch.Tensor:
        if len(x) > 1:
            raise Unsupported("long")
        return right(x=x, by=by)

    found = result(some)
    assert (found.outcome, found.points, found.detail) == ("exact", 2, "1 calls were not offered: long")


def test_a_changed_argument_differs() -> None:
    found = result(lambda *, x, by: right(x=x, by=by) + x.zero_())
    assert found.outcome in {"differs", "crashed"}
    assert "changed an argument" in found.cause


def test_numpy_backends_are_handed_arrays() -> None:
    assert result(double, array="numpy").outcome == "exact"


def test_check_takes_a_formula() -> None:
    def choose(**arguments: Any) -> Any:
        return FORMULAS["number-formats/decode"].function(**arguments)

    verdict = check(choose, formula="number-formats/decode", array="numpy")
    assert verdict.conforms
    assert verdict.points > 1000
    assert not check(lambda **_: np.zeros(3), formula="number-formats/decode", array="numpy").conforms
    with pytest.raises(ValueError, match=r"='number-formats.decod' is not accepted: did you mean number-formats"):
        check(choose, formula="number-formats.decod")
    with pytest.raises(ValueError, match=r"profile='onnx' is not accepted with formula=.*: give one of number"):
        check(choose, "onnx", formula="number-formats/decode")


def rounds_up(*, x: torch.Tensor, by: float) -> torch.Tensor:
    ctypes.CDLL(None).fesetround(0x800)
    return right(x=x, by=by)


def flushes(*, x: torch.Tensor, by: float) -> torch.Tensor:
    torch.set_flush_denormal(True)
    return right(x=x, by=by)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of the rounding mode is the processor's own")
@pytest.mark.parametrize(("function", "words"), [(rounds_up, "rounding mode"), (flushes, "flush-to-zero")])
def test_a_changed_process_differs_and_is_put_right(function: Callable[..., Any], words: str) -> None:
    found = result(function)
    assert found.outcome in {"differs", "explained"}
    assert words in found.cause + found.detail
    assert rounds_to_nearest()
    assert not flushes_to_zero()


def test_one_buffer_for_all_answers_is_told() -> None:
    buffer = torch.empty(40)

    def same(*, x: torch.Tensor, by: float) -> torch.Tensor:
        buffer[: len(x)] = by_reciprocal(x=x, by=by)
        return buffer[: len(x)]

    found = result(same)
    assert (found.outcome, found.cause[:12]) == ("differs", "stale output")


def strides_ignored(*, x: torch.Tensor, by: float) -> torch.Tensor:
    return right(x=torch.as_strided(x, x.shape, torch.empty(x.shape).stride(), x.storage_offset()), by=by)


def slow_with_gradients(*, x: torch.Tensor, by: float) -> torch.Tensor:
    return right(x=x, by=by) + (0 if torch.is_grad_enabled() else 1)


def mutates(*, x: torch.Tensor, by: float) -> torch.Tensor:
    found = right(x=x, by=by)
    x.detach().zero_()
    return found


def refuses_matrices(*, x: torch.Tensor, by: float) -> torch.Tensor:
    if not x.is_contiguous():
        raise RuntimeError("no strides")
    return right(x=x, by=by)


def one_buffer(*, x: torch.Tensor, by: float) -> torch.Tensor:
    return KEPT.setdefault(tuple(x.shape), torch.empty(x.shape)).copy_(right(x=x, by=by))


KEPT: dict[Any, torch.Tensor] = {}


@pytest.mark.parametrize(
    ("wrong", "shape", "needed"),
    [
        (strides_ignored, CallShape(layout="transposed"), "as_strided("),
        (slow_with_gradients, CallShape(mode="no_grad", layout="stepped"), "with torch.no_grad():"),
        (mutates, CallShape(layout="stepped"), "before = x"),
        (refuses_matrices, CallShape(layout="padded rows", offset=3), "as_strided("),
        (one_buffer, CallShape(), "earlier = one_buffer("),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_a_function_s_script_makes_the_whole_call(wrong: Any, shape: CallShape, needed: str) -> None:
    worker = Inside(Backend("mine", "onnx", functions={ID: wrong}))
    e = Evidence(Item(worker.offer, REQUIREMENT, "some", None, "quick", 0), worker)
    for values in (np.ones((5, 7), np.float32), np.arange(35, dtype=np.float32).reshape(5, 7)):
        asked = shaped_call(ID, double, {"x": values, "by": 4.0}, replace(shape, rank=2))
        e.expect_calls([(asked.call, asked.expected)])
    found = witness(e)
    assert found is not None
    assert needed in found.script
    [seen] = run_alone([found.script])
    assert seen.differs, seen
