"""Causes of documented functions that are no choice: an argument read otherwise, a result of another form."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halfeven.conformance import check
from halfeven.conformance.engine.call import PLAIN
from halfeven.conformance.engine.judge import answer_of
from halfeven.conformance.engine.misread import Misread, misread
from halfeven.conformance.engine.mostly import Row
from halfeven.reference import FORMULAS

QUANTIZE = FORMULAS["onnx/QuantizeLinear"]
FAKE = FORMULAS["pytorch-quantization/fake_tensor_quant"]
X = np.array([-3, -1, 0.3, 2], np.float32)


def other_default(inputs: Any, amax: Any, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = False) -> Any:
    return FAKE.function(inputs, amax, num_bits, unsigned, narrow_range)


def unread(inputs: Any, amax: Any, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True) -> Any:
    return FAKE.function(inputs, amax, 8, unsigned, narrow_range)


def rows(does: Callable[..., Any], *given: dict[str, Any]) -> list[Row]:
    calls = [{"inputs": X * k, "amax": np.asarray(a, np.float32)} | g for k in (1, 2) for a in (1, 2.5) for g in given]
    return [Row(c, answer_of(does, c), PLAIN, "some") for c in calls]


WIDTHS = ({"num_bits": 4}, {"num_bits": 8}, {})
RANGES = ({}, {"narrow_range": True}, {"narrow_range": False})


@pytest.mark.parametrize(
    ("does", "given", "found"),
    [
        (other_default, RANGES, Misread("narrow_range", False, where_absent=True)),
        (unread, WIDTHS, Misread("num_bits", 8)),
        (FAKE.function, (*RANGES, *WIDTHS), None),
        (lambda **given: FAKE.function(**given) * 2, (*RANGES, *WIDTHS), None),
        (unread, ({"num_bits": 4},), Misread("num_bits", 8)),  # the default, though no call gives it
    ],
)
def test_an_argument_that_is_read_otherwise(does: Any, given: Any, found: Misread | None) -> None:
    assert misread(FAKE, rows(does, *given)) == found


def test_of_one_call_nothing_is_said() -> None:
    [wrong] = [r for r in rows(other_default, {}) if not np.array_equal(r.seen.value, FAKE.function(**r.arguments))][:1]
    assert misread(FAKE, [wrong]) is None


def codes(does: Any, formula: str) -> set[str]:
    return {c.code for r in check(does, formula=formula, array="numpy").results for c in r.causes}


def test_another_default_is_told_and_not_a_choice_that_calls_refute() -> None:
    found = check(other_default, formula=FAKE.id, array="numpy")
    causes = {c.sentence for r in found.results for c in r.causes if c.code.startswith(("HE7", "HE3", "HE9"))}
    assert causes == {"takes narrow_range=False where narrow_range is not given"}


def test_a_result_of_another_dtype_has_its_code() -> None:
    def single(x: Any, x_scale: Any, x_zero_point: Any = None, **given: Any) -> Any:
        return FORMULAS["onnx/DequantizeLinear"].function(x, x_scale, x_zero_point, **given).astype(np.float32)

    assert codes(single, "onnx/DequantizeLinear") == {"HE502", "HE802"}


def test_a_result_of_another_shape_has_its_code() -> None:
    def flat(batches: Any, axis: Any = None) -> Any:
        return np.ravel(FORMULAS["pytorch-quantization/max_calibrator"].function(batches, axis=axis))

    found = codes(flat, "pytorch-quantization/max_calibrator")
    assert "HE501" in found
    assert not found & {"HE998", "HE999"}


def test_an_answer_where_the_document_refuses_has_its_code() -> None:
    def lenient(inputs: Any, amax: Any = None, E: Any = 4, M: Any = 3) -> Any:  # noqa: N803
        del E, M
        return FORMULAS["pytorch-quantization/scaled_e4m3"].function(inputs, amax, 4, 3)

    assert "HE451" in codes(lenient, "pytorch-quantization/scaled_e4m3")
