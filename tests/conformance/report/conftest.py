from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from halfeven.conformance.report.model import BackendRecord, Cause, OutcomeName, Report, Result, Witness

SCRIPT = """\
import numpy as np
import torch
from torchao.quantization.quant_primitives import quantize_affine
x = np.array([0x3f000000], np.uint32).view(np.float32)  # 0.5
expected = np.clip(np.rint(x / np.float32(1)) + 1, -128, 127)
actual = quantize_affine(torch.from_numpy(x), (1,), torch.tensor(1.0), torch.tensor(1), torch.int8)
print(expected, actual)"""

WITNESS = Witness(
    x="0x3f000000 (0.5)",
    scale="0x3f800000 (1.0)",
    zero="1",
    expected="1",
    actual="2",
    quotient="1/2",
    to_tie="0",
    where="element (0,) of shape (1,), int8/float32/per-tensor, blocks none",
    script=SCRIPT,
    reproduced=True,
)

TORCHAO = BackendRecord(
    "torchao", "torchao", "torchao", "0.18.0", "cpu", "quant_primitives", ("quantize",), ("float32",), ("tensor",)
)
ONNX = BackendRecord("onnxruntime", "onnx", "onnxruntime", "1.31.0", "cpu", "CPUExecutionProvider", ("quantize",))
EXPLAINED = "as torchao@0.18: adds the zero point before rounding where the document adds the zero point after rounding"
ENVIRONMENT = {"torch": "2.12.0", "cpu": {"capability": "AVX2", "threads": 2}, "flush_to_zero": False, "seconds": 1.5}

MakeResult = Callable[..., Result]


def _result(
    aspect: str = "nearest-code",
    outcome: OutcomeName = "exact",
    backend: str = "torchao",
    profile: str = "torchao",
    operation: str = "quantize",
    **changes: Any,
) -> Result:
    check = changes.pop("check", "boundaries")
    parts = outcome in {"explained", "differs"}
    given: dict[str, Any] = {
        "id": f"{profile}/{operation}/int8/float32/per-tensor/{check}",
        "backend": backend,
        "profile": profile,
        "operation": operation,
        "requirement": f"{profile}/{operation}/{aspect}",
        "check": check,
        "configuration": {"operation": operation, "grid": "int8", "shape": [3, 5], "block_size": None},
        "outcome": outcome,
        "points": 0 if outcome in {"not run", "timed out", "crashed"} else 1000,
        "differing": 12 if parts else 0,
        "steps": 1 if parts else 0,
        "unit": "code steps",
        "cause": EXPLAINED if outcome == "explained" else "",
        "witness": WITNESS if parts else None,
        "seconds": 0.25,
    }
    return Result(**(given | changes))


@pytest.fixture
def apart() -> Result:
    """A result of two causes, of which the second has a witness of its own."""
    own = replace(WITNESS, x="0x40a00000 (5.0)", script="own = 1", where="alone")
    return _result("odd", "differs", causes=(Cause("HE111", "rounds"), Cause("HE701", "narrows", "int8", witness=own)))


@pytest.fixture
def result() -> MakeResult:
    """Makes a result; by default an exact one of torchao."""
    return _result


@pytest.fixture
def report() -> Callable[..., Report]:
    """Makes a report of the results given, complete and with as many results as planned."""

    def make(*results: Result, **changes: Any) -> Report:
        known = {"torchao": TORCHAO, "onnxruntime": ONNX}
        names = dict.fromkeys(r.backend for r in results)
        made = Report(
            command="halfeven run torchao onnxruntime",
            tier="quick",
            seed=7,
            environment=ENVIRONMENT,
            backends=tuple(known[n] for n in names if n in known),
            results=results,
            expected=len(results),
            complete=True,
            created="2026-03-01T12:00:00+00:00",
        )
        return replace(made, **changes)

    return make


@pytest.fixture
def mixed(result: MakeResult, report: Callable[..., Report]) -> Report:
    """Two backends, every outcome, two of the operations."""
    return report(
        result("nearest-code"),
        result("odd-zero-point", "explained", check="odd"),
        result("odd-zero-point", "explained", check="even", steps=3),
        result("nan", "implementation-defined", check="nan", detail="NaN gives 0"),
        result("ties", "budgeted", check="ties"),
        result("values", "exact", operation="dequantize", unit="ulp"),
        result("layout", "differs", "onnxruntime", "onnx", check="layout", cause="the last block is untouched"),
        result("huge", "crashed", "onnxruntime", "onnx", cause="RuntimeError: no kernel", detail="Traceback\nboom"),
        result("grid", "not run", "onnxruntime", "onnx", check="grid", detail="int3 is not offered"),
        not_run=({"backend": "modelopt", "reason": "nvidia-modelopt is not installed"},),
    )
