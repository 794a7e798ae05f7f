"""A device of torch's: nothing of a right backend is charged there, and what is wrong there alone is found."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance import Backend, check
from halfeven.conformance.backends.axes import along, extended
from halfeven.conformance.backends.protocol import NotInstalled
from halfeven.conformance.backends.registry import resolve

_HERE = Path(__file__).parent
_HIDDEN = """
import sys
sys.path.insert(0, {folder!r})
import pretended
pretended.install(hidden=True)
from halfeven.conformance.backends.registry import resolve
try:
    resolve("torch.fake_quantize_per_tensor_affine@pretend")
except ValueError as error:
    print(type(error).__name__, error)
"""


def _run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def charges() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_run(str(_HERE / "on_pretended.py")))
    return found


@pytest.mark.parametrize(
    "name", ["quantize", "torch.fake_quantize_per_tensor_affine", "torch.quantized_decomposed.per_channel"]
)
def test_a_right_backend_is_charged_with_nothing(charges: dict[str, Any], name: str) -> None:
    came = charges[name]
    assert came["charges"] == []
    assert came["returned"] > 0.9 * came["calls"]  # the rest is not offered, here nor there
    assert came["strided"] > 10


@pytest.mark.parametrize(
    ("name", "charge"),
    [
        ("ignores_strides", "another value"),
        ("is_not_synchronized", "not synchronized: the result changed after the call had returned"),
        ("leaves_the_device", "wrong device: the result is on cpu, its arguments were on pretend"),
        ("changes_its_input", "mutated input: the call changed an argument in place, or the memory around it"),
        ("writes_beyond", "mutated input: the call changed an argument in place, or the memory around it"),
        ("reuses_its_result", "stale output: this call wrote into the result that an earlier call had returned"),
        ("fails_later", "RuntimeError: an illegal memory access was encountered"),
    ],
)
def test_a_fault_on_the_device_is_found(charges: dict[str, Any], name: str, charge: str) -> None:
    assert charge in charges[name]["charges"]


def test_ignored_strides_show_in_strided_tensors_alone(charges: dict[str, Any]) -> None:
    assert charges["ignores_strides"]["only strided"]


def test_the_device_is_named(charges: dict[str, Any]) -> None:
    assert charges["words"] == "pretend (Pretended 100, capability 9.0)"


def test_a_device_under_another_name_is_refused() -> None:
    said = _run("-c", _HIDDEN.format(folder=str(_HERE)))
    assert said.startswith("NotInstalled")
    assert said.endswith("a tensor put on pretend is on cpu")


def test_a_device_that_is_not_there_is_not_run() -> None:
    with pytest.raises(NotInstalled, match=r"the device xpu is not there"):
        resolve("torch.fake_quantize_per_tensor_affine@xpu")
    verdict = check(Backend("mine", "onnx", {"quantize": lambda x, *_, **__: x}, device="xpu"))
    assert {r.outcome for r in verdict.results} == {"not run"}
    assert "device xpu is not there" in verdict.results[0].detail


@pytest.mark.parametrize(
    ("spec", "kind", "said"),
    [
        ("torch.fake_quantize_per_tensor_affine@nowhere", ValueError, "'nowhere' of .* is not accepted: give a device"),
        ("torch.fake_quantize_per_tensor_affine@meta", ValueError, "'meta' of"),
        ("torch.fake_quantize_per_tensor_affine@cpu,xpu", ValueError, "give one device"),
    ],
)
def test_words_that_are_not_accepted(spec: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        resolve(spec)


def test_arrays_of_numpy_are_on_no_device() -> None:
    mine = Backend("mine", "onnx", {"quantize": lambda x, *_, **__: x}, array="numpy")
    with pytest.raises(NotInstalled, match="takes NumPy arrays"):
        along(mine, ["compiled"])


def test_options_become_words() -> None:
    assert extended("a.b:C@cuda", "cuda", compiled=True) == "a.b:C@cuda,compiled"
    assert extended("torch") == "torch"
