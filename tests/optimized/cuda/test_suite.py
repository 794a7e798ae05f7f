"""The suite on the kernels of the GPU: its quick tier, with every launch emulated."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from ptx.driver import Pretended, StandIn
from ptx.emulate import WHY_NOT

from halfeven.conformance import check
from halfeven.conformance.backends.registry import resolve
from halfeven.conformance.report.model import CONFORMING
from halfeven.optimized.kernels.cuda import nvrtc, programs
from halfeven.optimized.operators.schemas import OPERATORS
from halfeven.reference.profile import OPERATIONS, Operation

#: All of them in one dtype, one in each of the others, and how many points and launches at least: emulated, each takes
#: a minute.
ASKED: list[tuple[str, tuple[Operation, ...], int, int]] = [
    ("float32", OPERATIONS, 10_000_000, 10_000),
    ("float64", ("quantize",), 3_000_000, 3_000),
    ("float16", ("fake_quantize",), 3_000_000, 3_000),
    ("bfloat16", ("dequantize",), 3_000_000, 3_000),
]
_WHY_NOT = nvrtc.why_missing() or WHY_NOT
pytestmark = [
    pytest.mark.skipif(bool(_WHY_NOT), reason=f"not run: {_WHY_NOT}"),
    pytest.mark.filterwarnings("ignore:Warning only once for all operators"),
    pytest.mark.usefixtures("instead_of_the_cpu"),
]


@pytest.fixture
def instead_of_the_cpu(pretended: Pretended, on_cuda: Callable[..., Any]) -> Iterator[Pretended]:
    """Operators of tensors on the CPU run what is registered for CUDA."""

    def redirected(name: str) -> Callable[..., Any]:
        return lambda *given: on_cuda(name, *given, out=given[-1] if name.endswith("_out") else None)

    with torch.library._scoped_library("halfeven", "IMPL") as library:
        for name, operator in OPERATORS.items():
            if operator.cuda is not None:
                library.impl(name, redirected(name), "CPU", allow_override=True)
        yield pretended


@pytest.mark.parametrize(("dtype", "operations", "points", "launches"), ASKED, ids=[row[0] for row in ASKED])
def test_the_quick_tier(
    dtype: str, operations: tuple[Operation, ...], points: int, launches: int, stand_in: StandIn
) -> None:
    backend = resolve("halfeven")[0]
    asked = {name: backend.operations[name] for name in operations}
    verdict = check(replace(backend, dtypes=(dtype,), operations=asked))
    assert {r.outcome for r in verdict.results} <= CONFORMING, str(verdict)
    assert verdict.points > points
    assert len(stand_in.launched) > launches
    assert stand_in.faults == {}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("core/arith.h", "return __builtin_rintf(v);", "const float r = rintf(v); return v - r == 0.5f ? r + 1 : r;"),
        ("core/reciprocal.h", "__builtin_fmaf(near, inverse, near * correction)", "near * inverse"),
    ],
    ids=["half up", "reciprocal of one part"],
)
def test_mutants_differ(file: str, old: str, new: str, stand_in: StandIn, mutated: Callable[..., None]) -> None:
    mutated(programs.forward("Quantize", "F32", "F32", "I8"), file, old, new)
    backend = resolve("halfeven")[0]
    only = {"quantize": backend.operations["quantize"]}
    verdict = check(replace(backend, dtypes=("float32",), operations=only), first=True)
    assert "differs" in {r.outcome for r in verdict.results}
    assert stand_in.launched
