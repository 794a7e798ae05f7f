"""This project's own functions go through the engine like anybody's, and conform."""

from dataclasses import replace

import pytest
import torch

from halfeven.conformance import check
from halfeven.conformance.backends.registry import REGISTRY, resolve
from halfeven.conformance.report.model import CONFORMING
from halfeven.conformance.requirements import requirements
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
_SUBNORMAL = "its formats have IEEE's subnormal numbers, and the documented equation none"
NOT_OFFERED = {"aimet/float_cast/small": _SUBNORMAL, "aimet/float_cast/zero": _SUBNORMAL}
# Properties that the release breaks for which it stands in, and with it whoever gives the same; docs/findings.md.
AS_THE_RELEASE = {
    "aimet/compute_encodings/covers",
    "aimet/minmax_encodings/covers",
    "aimet/percentile_encodings/powers-of-two",
    "aimet/scale_and_offset/covers",
    "aimet/scale_and_offset/on-grid",
}


def test_the_drop_in_answers_every_formula_of_its_system_as_documented_or_measured() -> None:
    (backend,) = resolve("halfeven.aimet")
    verdict = check(replace(backend, operations={}))
    ran = {r.requirement: r.outcome for r in verdict.results if r.requirement not in NOT_OFFERED}
    assert {
        name for name, outcome in ran.items() if outcome not in {"exact", "bounded", "as measured"}
    } == AS_THE_RELEASE
    assert {ran[name] for name in AS_THE_RELEASE} == {"differs"}
    basis = {r.id: r.basis for r in requirements(backend.profile)}
    assert {basis[name] for name, outcome in ran.items() if outcome == "as measured"} == {"measured"}
    assert {ran[name] for name, of in basis.items() if of == "measured" and name in ran} == {"as measured"}
    assert {r.requirement for r in verdict.results if r.outcome == "not run"} == NOT_OFFERED.keys()
    assert backend.functions.keys() >= answers("aimet.functional").keys()
