"""``adapt``: what becomes a backend, and which profile it then claims."""

from dataclasses import replace
from typing import Any

import pytest

from halfeven.conformance.backends.protocol import Backend, adapt
from halfeven.reference import Grid
from halfeven.reference.systems import PROFILES


def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
    return x


class Npu:
    profile = "onnx"

    def quantize(self, x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return x


class Unclaimed:
    def quantize(self, x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return x


BACKEND = Backend("mine", "onnx", {"quantize": quantize})
FITTING = [
    n for n, p in PROFILES.items() if (p.parameters, p.codes) == (("scale", "zero_point"), "integer") and p.operations
]


@pytest.mark.parametrize("source", [BACKEND, Npu, Npu()], ids=["backend", "class", "instance"])
def test_what_claims_a_profile_takes_another_that_fits(source: Any) -> None:
    assert adapt(source).profile == "onnx"
    assert [adapt(source, profile=p).profile for p in FITTING] == FITTING
    assert {"onnx", "torchao", "torch.quantize"} < set(FITTING)


@pytest.mark.parametrize("source", [BACKEND, Npu, Npu()], ids=["backend", "class", "instance"])
@pytest.mark.parametrize(
    ("profile", "handed"), [("aimet", "scale, offset with input"), ("pytorch-quantization", "amax")]
)
def test_a_profile_that_does_not_fit_is_refused_with_those_that_do(source: Any, profile: str, handed: str) -> None:
    with pytest.raises(ValueError, match=f"profile='{profile}' is not accepted") as caught:
        adapt(source, profile=profile)
    assert f"hands over {handed}" in str(caught.value)
    assert str(caught.value).endswith(f"give one of {', '.join(FITTING)}")


@pytest.mark.parametrize("source", [quantize, Unclaimed], ids=["function", "class without a profile"])
@pytest.mark.parametrize("profile", PROFILES)
def test_what_claims_nothing_takes_every_profile(source: Any, profile: str) -> None:
    assert adapt(source, profile=profile).profile == profile


def test_a_function_with_a_profile_of_its_own_takes_every_other() -> None:
    def function(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return x

    function.profile = "onnx"  # type: ignore[attr-defined]
    assert adapt(function).profile == "onnx"
    assert adapt(function, profile="aimet").profile == "aimet"


@pytest.mark.parametrize("source", [BACKEND, Npu, quantize], ids=["backend", "class", "function"])
def test_an_unknown_profile_is_refused(source: Any) -> None:
    with pytest.raises(ValueError, match=r"profile='onx' is not accepted: give one of aimet, "):
        adapt(source, profile="onx")


def test_grids_are_given_as_people_write_them() -> None:
    given = ["int4", "-127:127", Grid(0, 3)]
    assert replace(BACKEND, grids=given).grids == (Grid(-8, 7), Grid(-127, 127), Grid(0, 3))
    with pytest.raises(ValueError, match=r"grid='int' is not accepted: give int8, "):
        replace(BACKEND, grids=["int"])


def test_array_replaces_what_a_backend_or_class_says() -> None:
    assert [adapt(s).array for s in (BACKEND, Npu)] == ["torch", "torch"]
    assert [adapt(s, array="numpy").array for s in (BACKEND, Npu)] == ["numpy", "numpy"]
