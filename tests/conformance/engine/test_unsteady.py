"""What a backend keeps from call to call is told as a cause, where no behaviour gives its answers."""

from dataclasses import replace
from typing import Any

import pytest
import wrong_kernels

from halfeven.conformance import check
from halfeven.conformance.engine.unsteady import AFTER, unsteady
from halfeven.conformance.report.model import Cause, Result

RESULT = Result("q/one", "npu", "onnx", "quantize", "q", "one", {}, "differs")
UNKNOWN, KNOWN, STALE = (Cause(code, code) for code in ("HE999", "HE101", "HE504"))


@pytest.mark.parametrize(
    ("name", "words"),
    [("first_scale", "another after other calls"), ("later_calls", "another among the calls of a check")],
)
def test_what_depends_on_calls_before_is_told(name: str, words: str) -> None:
    wrong_kernels.MEMORY.clear()
    kernel: Any = getattr(wrong_kernels, name)
    found = [r for r in check(kernel, profile="onnx", grids=("int8",)).results if r.causes]
    assert found
    assert {r.causes[0].code for r in found} == {"HE505"}
    assert all(r.causes[0].sentence.endswith(words) for r in found)
    shown = [r.witness for r in found if r.witness is not None and r.witness.reproduced]
    assert bool(shown) == (name == "first_scale")  # a script makes few calls
    assert all(w.script.count("earlier =") > 1 for w in shown)


def test_what_is_known_stays_beside_it() -> None:
    assert [c.code for c in unsteady(replace(RESULT, causes=(UNKNOWN,)), AFTER).causes] == ["HE505"]
    assert [c.code for c in unsteady(replace(RESULT, causes=(KNOWN,)), AFTER).causes] == ["HE505", "HE101"]
    assert unsteady(replace(RESULT, causes=(STALE,)), AFTER).causes == (STALE,)
