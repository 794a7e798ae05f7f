"""This project's own functions go through the engine like anybody's, and conform."""

from dataclasses import replace

import pytest
import torch

from halfeven.conformance import check
from halfeven.conformance.backends.registry import REGISTRY, resolve
from halfeven.conformance.report.model import CONFORMING
from halfeven.conformance.systems import answers
from halfeven.optimized import kernels

OURS = [name for name, entry in REGISTRY.items() if entry.library == "halfeven"]
CLAIMS = [(name, dtype) for name in OURS for dtype in resolve(name)[0].dtypes]


@pytest.mark.parametrize(("name", "dtype"), CLAIMS)
def test_our_backends_conform(name: str, dtype: str) -> None:
    verdict = check(replace(resolve(name)[0], dtypes=(dtype,), functions={}))
    assert {r.outcome for r in verdict.results} <= CONFORMING, str(verdict)
    assert verdict.points > 1_000_000


@pytest.mark.parametrize("name", OURS)
def test_our_backends_name_the_kernels_that_ran(name: str) -> None:
    assert kernels.path()
    assert resolve(name)[0].path() == f"{kernels.path()}; torch {torch.__version__}"


# What the drop-in does not offer, and why.
NOT_OFFERED = {"aimet/float_cast/small": "its formats have IEEE's subnormal numbers, and the documented equation none"}


def test_the_drop_in_answers_every_formula_of_its_system_exactly() -> None:
    (backend,) = resolve("halfeven.aimet")
    verdict = check(replace(backend, operations={}))
    ran = {r.requirement: r.outcome for r in verdict.results if r.requirement not in NOT_OFFERED}
    assert set(ran.values()) == {"exact"}, str(verdict)
    assert {r.requirement for r in verdict.results if r.outcome == "not run"} == NOT_OFFERED.keys()
    assert backend.functions.keys() >= answers("aimet.functional").keys()
