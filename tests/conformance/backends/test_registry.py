"""The registry: names, groups, ``pkg.mod:attr``, and what it says of what it cannot resolve."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

from halfeven.conformance import systems
from halfeven.conformance.backends import registry
from halfeven.conformance.backends.axes import along
from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.backends.registry import (
    GROUPS,
    REGISTRY,
    Entry,
    NotInstalled,
    UnknownBackend,
    describe,
    names,
    resolve,
)
from halfeven.conformance.systems import answers
from halfeven.reference.systems import PROFILES

MODULE = """
def quantize(x, scale, zero_point, *, qmin, qmax):
    return x

class Npu:
    profile = "onnx"
    def dequantize(self, q, scale, zero_point):
        return q

NUMBER = 3
"""


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"user_module_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_broken.py").write_text("import no_such_library_anywhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    return name


def test_every_entry_names_a_profile_an_adapter_and_is_described_once() -> None:
    assert all(entry.profile in PROFILES for entry in REGISTRY.values())
    folder = Path(systems.__file__).parent
    extras = metadata.metadata("halfeven").get_all("Provides-Extra")
    for name, entry in REGISTRY.items():
        assert entry.adapter == "" or (folder / f"{entry.adapter.replace('.', '/')}.py").is_file(), name
        assert entry.adapter or answers(entry.answers or name), name
        assert not entry.extra or entry.extra in extras, name
    assert [row["backend"] for row in describe()] == names()


def test_the_registry_imports_no_vendor_library() -> None:
    code = (
        "import sys\nfrom halfeven.conformance.backends.registry import describe\nassert len(describe()) > 9\n"
        "found = {'torchao', 'onnx', 'onnxruntime', 'aimet_torch'} & set(sys.modules)\nassert not found, found"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 0, done.stderr


def test_groups_hold_registered_names_only() -> None:
    assert all(name in REGISTRY for group in GROUPS.values() for name in group)
    assert "torchao" not in GROUPS["torch"]
    assert len(GROUPS["torch"]) == 11
    assert set(GROUPS["default"]) == {"halfeven", "halfeven.integer", "halfeven.aimet", *GROUPS["torch"]}
    assert set(GROUPS["aimet"]) == {"aimet.functional", "aimet.frozen"}


def test_a_group_resolves_to_its_backends() -> None:
    assert tuple(b.name for b in resolve("torch")) == GROUPS["torch"]


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("torch.fake_quantise_per_tensor_affine", "torch.fake_quantize_per_tensor_affine"),
        ("torcha", "torchao"),
        ("onnx-runtime", "onnxruntime"),
        ("per_token", "torch.quantized_decomposed.per_token"),
        ("zzzzzz", "aimet.frozen"),
    ],
)
def test_an_unknown_name_gets_the_nearest_ones(typed: str, nearest: str) -> None:
    with pytest.raises(UnknownBackend) as caught:
        resolve(typed)
    assert isinstance(caught.value, ValueError)
    assert repr(typed) in str(caught.value)
    assert nearest in str(caught.value)


def test_an_unknown_profile_gets_the_nearest_ones() -> None:
    with pytest.raises(ValueError, match=r"profile='onx' is not accepted.*onnx"):
        resolve("halfeven.integer", profile="onx")


def test_a_profile_replaces_the_one_claimed() -> None:
    assert resolve("halfeven.integer")[0].profile == "onnx"
    assert resolve("halfeven.integer", profile="torchao")[0].profile == "torchao"


def test_a_profile_with_other_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match=r"hands over scale, offset .* the backend takes scale, zero_point"):
        resolve("halfeven.integer", profile="aimet")


def test_a_class_with_an_attribute_takes_no_profile_with_other_parameters(user_module: str) -> None:
    with pytest.raises(ValueError, match=r"profile='aimet' is not accepted for Npu: .*give one of .*torchao"):
        resolve(f"{user_module}:Npu", profile="aimet")


def test_a_library_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry("torchao", "no-such-distribution", "", extra="torchao")
    monkeypatch.setitem(REGISTRY, "absent", entry)
    with pytest.raises(NotInstalled, match=r"no-such-distribution.*pip install halfeven\[torchao\]"):
        resolve("absent")
    row = next(r for r in describe() if r["backend"] == "absent")
    assert row["version"] == "not installed: pip install halfeven[torchao]"


def test_a_library_that_does_not_import_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "broken", Entry("onnx", "numpy", "", extra="onnx", adapter="no_such_adapter"))
    with pytest.raises(NotInstalled, match=rf"numpy {metadata.version('numpy')} is installed, but does not import"):
        resolve("broken")


def test_a_function_of_a_module_in_the_current_directory(user_module: str) -> None:
    (backend,) = resolve(f"{user_module}:quantize", profile="torchao")
    assert isinstance(backend, Backend)
    assert (backend.name, backend.profile, list(backend.operations)) == ("quantize", "torchao", ["quantize"])


def test_a_class_of_a_module_with_its_own_and_with_another_profile(user_module: str) -> None:
    assert resolve(f"{user_module}:Npu")[0].profile == "onnx"
    (backend,) = resolve(f"{user_module}:Npu", profile="torchao")
    assert (backend.profile, list(backend.operations)) == ("torchao", ["dequantize"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("no_such_module_here:f", r"module 'no_such_module_here' .* does not import: ModuleNotFoundError"),
        ("{}_broken:f", r"module '.*_broken' .* does not import: ModuleNotFoundError: .*no_such_library_anywhere"),
        ("{}:quantise", r"has no 'quantise' in .*did you mean quantize"),
        ("{}:Npu.missing", r"has no 'missing' in"),
        ("{}:", r"has no '' in"),
        (":f", r"does not import"),
    ],
)
def test_which_part_of_a_module_and_attribute_failed(user_module: str, spec: str, message: str) -> None:
    with pytest.raises(UnknownBackend, match=message):
        resolve(spec.format(user_module))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise SystemExit(0)", r"module '.*' of backend '.*' does not import: SystemExit: 0$"),
        ("raise KeyboardInterrupt", r"module '.*' of backend '.*' does not import: KeyboardInterrupt$"),
        ("raise OSError('a\\nb')", r"module '.*' of backend '.*' does not import: OSError: a b$"),
        ("class B:\n def __init__(self): raise SystemExit(7)", r"the constructor of .* fails: SystemExit: 7$"),
        ("class B:\n def __init__(self): raise ValueError('no')", r"the constructor of .* fails: ValueError: no$"),
        ("class B:\n @property\n def profile(self): 1 / 0", r"backend '.*' cannot be used: ZeroDivisionError: "),
    ],
)
def test_whatever_a_module_or_constructor_raises_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    name = f"raising_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UnknownBackend, match=message) as caught:
        resolve(f"{name}:B")
    assert "\n" not in str(caught.value)


def test_an_object_that_is_no_backend_is_a_type_error(user_module: str) -> None:
    with pytest.raises(TypeError, match="give a function, or a class"):
        resolve(f"{user_module}:NUMBER", profile="onnx")


class _Point:
    name, value, dist = "mine", "somewhere:thing", None

    def __init__(self, found: object) -> None:
        self.found = found

    def load(self) -> object:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def test_an_entry_point_is_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def quantize(x: object, _scale: object, _zero_point: object, **_: int) -> object:
        return x

    asked: list[str] = []

    def points(*, group: str) -> list[_Point]:
        asked.append(group)
        return [_Point(quantize)]

    monkeypatch.setattr(registry.metadata, "entry_points", points)
    assert resolve("mine", profile="onnx")[0].operations["quantize"] is quantize
    assert "mine" in names()
    assert describe()[-1]["backend"] == "mine"
    assert set(asked) == {"halfeven.backends"}


def test_an_entry_point_that_is_a_backend_is_claimed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Backend("mine", "onnx", {"quantize": lambda x, *_: x})
    monkeypatch.setattr(registry.metadata, "entry_points", lambda **_: [_Point(backend)])
    assert resolve("mine")[0].profile == "onnx"
    assert resolve("mine", profile="torchao")[0].profile == "torchao"
    with pytest.raises(ValueError, match=r"hands over scale, offset .* the backend takes scale, zero_point"):
        resolve("mine", profile="aimet")


def test_an_entry_point_that_fails_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.metadata, "entry_points", lambda **_: [_Point(OSError("no driver"))])
    with pytest.raises(UnknownBackend, match=r"entry point 'mine' \(somewhere:thing\) does not import: OSError: no dr"):
        resolve("mine")


def test_unsupported_is_no_value_error() -> None:
    assert not issubclass(Unsupported, ValueError)


def test_the_path_is_that_of_the_device() -> None:
    told = Backend("b", "onnx", {"quantize": torch.round}, path=lambda device="cpu": f"kernels of {device}")
    silent = Backend("b", "onnx", {"quantize": torch.round}, path=lambda: "always")
    assert [along(b, ["xpu"], tried=False).path() for b in (told, silent)] == ["kernels of xpu", "always"]
    assert along(told, ["compiled"]).path() == "kernels of cpu; torch.compile, inductor: 0 graphs"
    ours = resolve("halfeven.integer")[0]
    assert along(ours, ["xpu"], tried=False).path().startswith("torch: there are no kernels for xpu; torch ")
