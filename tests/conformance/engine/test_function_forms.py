"""Answers in another form than the document's: what else is done is told beside it, and nothing that is not."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halfeven.conformance import check
from halfeven.reference import FORMULAS


@pytest.mark.parametrize(
    ("formula", "change", "code"),
    [
        ("torchao/choose_qparams_affine", lambda a, b: (a.ravel(), b), "HE501"),
        ("torchao/choose_qparams_affine", lambda a, b: (a.reshape(-1, 1), b), "HE501"),
        ("bitsandbytes/quantize_4bit", lambda a, b: (a.astype(object), b), "HE511"),
    ],
)
def test_a_leaf_of_another_form_is_no_error_of_ours(formula: str, change: Callable[..., Any], code: str) -> None:
    function = FORMULAS[formula].function

    @functools.wraps(function)
    def changed(**arguments: Any) -> Any:
        return change(*function(**arguments))

    results = check(changed, formula=formula, array="numpy").results
    assert not any("halfeven itself" in f"{r.cause} {r.detail}" for r in results)
    assert code in {c.code for r in results for c in r.causes}


def test_what_is_refused_is_no_call_that_agrees() -> None:
    """Every answer is wrong; rows of other lengths are refused, as documented."""
    quantize = FORMULAS["gguf/Q8_0.quantize"].function

    def other(tensor: Any) -> Any:
        return quantize(tensor) ^ 1

    codes = {c.code for r in check(other, formula="gguf/Q8_0.quantize", array="numpy").results for c in r.causes}
    assert "HE999" in codes
    assert "HE602" not in codes


def test_a_reading_that_is_admitted_is_no_cause_beside_another_dtype() -> None:
    formula = FORMULAS["onnx/DequantizeLinear"]
    assert formula.readings is not None
    reading = next(p for p in formula.readings.points if p.product == "output")

    def widened(**arguments: Any) -> Any:
        return formula.at(reading)(**arguments).astype(np.float32)

    found = check(widened, formula="onnx/DequantizeLinear", array="numpy")
    codes = {c.code for r in found.results for c in r.causes}
    assert "HE502" in codes
    assert not any(code.startswith("HE3") for code in codes), codes


def packed(codes: Any, *, swapped: bool) -> Any:
    assert codes.shape[-1] % 2 == 0
    high, low = (codes[..., 1::2], codes[..., ::2])[:: -1 if swapped else 1]
    return (high << 4) | low


def test_what_is_done_besides_shows_in_numbers_of_another_dtype() -> None:
    def signed(uint8_data: Any) -> Any:
        return packed(uint8_data, swapped=False).view(np.int8)

    def swapped(uint8_data: Any) -> Any:
        return packed(uint8_data, swapped=True).view(np.int8)

    def long(uint8_data: Any) -> Any:
        return packed(uint8_data, swapped=uint8_data.shape[-1] >= 64)

    def rounds(uint8_data: Any) -> Any:
        found = packed(uint8_data, swapped=False)
        rest = found.shape[-1] % 8
        return found if not rest else np.concatenate([found[..., :-rest], ~found[..., -rest:]], -1)

    found = {
        fn.__name__: {
            (c.code, c.where.partition(",")[0])
            for r in check(fn, formula="torchao/pack_uint4", array="numpy").results
            for c in r.causes
        }
        for fn in (signed, swapped, long, rounds)
    }
    both = check(swapped, formula="torchao/pack_uint4", array="numpy").results
    assert not any(c.witness for r in both for c in r.causes if c.code == "HE3642"), "it would show HE502"
    assert found == {
        "signed": {("HE502", "")},
        "swapped": {("HE502", ""), ("HE3642", "")},
        "long": {("HE602", "uint8_data whose rows have more than k elements")},
        "rounds": {("HE602", "uint8_data whose rows have n elements")},
    }
