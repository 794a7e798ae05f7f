"""What is needed before anything is launched: driver, compiler, a place for what was compiled; and doing without."""

import ctypes
import hashlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from ptx.driver import StandIn, compiled
from ptx.emulate import WHY_NOT

from halfeven.optimized import kernels
from halfeven.optimized.kernels.cuda import driver, images, launcher, nvrtc, programs

_WHY_NOT = nvrtc.why_missing() or WHY_NOT
with_compilers = pytest.mark.skipif(bool(_WHY_NOT), reason=f"not run: {_WHY_NOT}")
_PROGRAM = programs.forward("Quantize", "F32", "F32", "I8")
_CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernels are asked for, and what a test finds is forgotten after it."""
    monkeypatch.setenv("HALFEVEN_KERNELS", "cuda")
    yield
    for function in (launcher.ready, driver._found, nvrtc._loaded, images.image):
        getattr(function, "cache_clear", lambda: None)()


def called() -> list[int]:
    """The operator that torch runs for CUDA."""
    given = (torch.ones(3), torch.tensor(0.5), None, -128, 127, None, torch.int8, False)
    found: list[int] = torch.ops.halfeven.quantize.default.redispatch(_CUDA, *given).tolist()
    return found


def test_without_a_driver_torch_operations_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(driver, "LIBRARY", "libcuda-of-nowhere.so.1")
    driver._found.cache_clear()
    launcher.ready.cache_clear()
    with caplog.at_level(logging.WARNING, "halfeven"):
        assert called() == called() == [2, 2, 2]
    (record,) = caplog.records
    assert "of the GPU run in torch operations, slower: there is no driver of a GPU" in record.getMessage()
    assert "libcuda-of-nowhere.so.1" in record.getMessage()
    assert kernels.path("cuda").startswith("torch: there is no driver")
    with pytest.raises(RuntimeError, match="there is no driver of a GPU"):
        driver.loaded()


@with_compilers
def test_without_a_compiler_torch_operations_run(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(driver, "_found", lambda: (driver.Driver(stand_in.library), ""))
    monkeypatch.setattr(nvrtc, "_places", lambda: iter(["libnvrtc-of-nowhere.so.13"]))
    nvrtc._loaded.cache_clear()
    launcher.ready.cache_clear()
    assert called() == [2, 2, 2]
    assert "NVRTC is not installed (pip install nvidia-cuda-nvrtc): libnvrtc-of-nowhere" in caplog.text
    assert stand_in.launched == []


@with_compilers
@pytest.mark.parametrize("wanted", ["", "torch", "avx2"])
def test_torch_operations_run_unless_kernels_are_asked_for(
    wanted: str,
    stand_in: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(driver, "_found", lambda: (driver.Driver(stand_in.library), ""))
    launcher.ready.cache_clear()
    assert isinstance(launcher.ready(), launcher.Launcher)
    assert kernels.path("cuda") == "CUDA C++"
    monkeypatch.setenv("HALFEVEN_KERNELS", wanted)
    launcher.ready.cache_clear()
    assert kernels.path("cuda").startswith("torch: HALFEVEN_KERNELS=cuda asks for the kernels")
    assert called() == [2, 2, 2]
    assert (stand_in.launched, caplog.text) == ([], "")


@pytest.mark.skipif(bool(WHY_NOT), reason=f"not run: {WHY_NOT}")
def test_a_driver_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    found = StandIn()
    found.says(status=100)
    with pytest.raises(RuntimeError, match="asked to start, and says CUDA_ERROR_NO_DEVICE"):
        driver.Driver(found.library)
    with pytest.raises(RuntimeError, match=r"the driver of the GPU is too old: .*cuInit"):
        driver.Driver(ctypes.CDLL(None))


@with_compilers
def test_a_program_that_does_not_compile(stand_in: StandIn) -> None:
    wrong = programs.forward("Quantize", "F32", "F32", "I7")
    with pytest.raises(RuntimeError, match=r"cuda/forward.cu for sm_90: (.|\n)*I7"):
        images.image(wrong, "sm_90")
    with pytest.raises(RuntimeError, match="gpu-architecture"):
        images.image(_PROGRAM, "sm_1")


@with_compilers
def test_what_to_compile_for() -> None:
    assert [images.architecture(c) for c in ((8, 0), (9, 0), (10, 0))] == ["sm_80", "sm_90", "sm_100"]
    # One that came after the compiler: PTX of the last that it knows.
    assert images.architecture((99, 9)) == f"compute_{max(nvrtc.architectures())}"
    with pytest.raises(RuntimeError, match=r"for no GPU of capability 3\.5"):
        images.architecture((3, 5))


@with_compilers
def test_ptx_is_a_text_with_an_end(stand_in: StandIn) -> None:
    made = images.image(_PROGRAM, "compute_90")
    assert made.endswith(b"}\n\n\0") or made.rstrip(b"\n\0").endswith(b"}")
    assert made[-1:] == b"\0"
    gpus = driver.Driver(stand_in.library)
    assert set(gpus.functions(0, made, _PROGRAM.kernels)) == set(_PROGRAM.kernels)


@pytest.fixture
def counted(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was compiled."""
    found: list[str] = []

    def counting(program: programs.Program, target: str) -> Any:
        found.append(f"{program} {target}")
        return compiled(program, target)

    monkeypatch.setattr(nvrtc, "compiled", counting)
    return found


def again(program: programs.Program = _PROGRAM, target: str = "sm_90") -> bytes:
    """As the next process asks."""
    images.image.cache_clear()
    return images.image(program, target)


def kept() -> list[Path]:
    place = images.folder()
    assert place is not None
    return sorted(place.iterdir())


@with_compilers
def test_compiled_once(counted: list[str]) -> None:
    made = again()
    assert made[:4] == b"\x7fELF"
    assert (again(), len(counted)) == (made, 1)
    assert images.image(_PROGRAM, "sm_90") is images.image(_PROGRAM, "sm_90")
    (path,) = kept()
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


@with_compilers
@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:40] + b"?" + b[41:], lambda b: b + b"0"]
)
def test_damaged_files_are_made_anew(damage: Any, counted: list[str]) -> None:
    made = again()
    (path,) = kept()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert (again(), len(counted)) == (made, 2)
    assert path.read_bytes() == whole


@with_compilers
def test_files_are_of_all_that_they_depend_on(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    again()
    again(target="compute_90")
    again(programs.forward("Quantize", "F32", "F32", "U8"))
    headers, text = programs.headers(), _PROGRAM.text
    for module, name, other in (
        (programs, "headers", lambda: {**headers, "core/arith.h": headers["core/arith.h"] + "//"}),
        (programs, "OPTIONS", (*programs.OPTIONS, "-DNOTHING")),
        (nvrtc, "version", lambda: "99.9"),
        (programs.Program, "text", property(lambda program: text + "//")),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, other)
            again()
    assert len(counted) == len(kept()) == 7


@with_compilers
@pytest.mark.parametrize("where", ["a file", "not to be written"])
def test_without_a_folder(where: str, counted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    place.write_text("") if where == "a file" else None
    if where == "not to be written":
        monkeypatch.setattr(Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(PermissionError))
    monkeypatch.setenv("HALFEVEN_CACHE", str(place))
    assert again() == again()
    assert len(counted) == 2


@with_compilers
def test_a_full_disk_leaves_nothing(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        again()
    assert kept() == []


def test_where_files_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HALFEVEN_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert images.folder() == tmp_path / "halfeven"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert images.folder() == tmp_path / ".cache/halfeven"

    def homeless() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", homeless)
    assert images.folder() is None


@with_compilers
def test_whoever_reads_while_it_is_written_reads_all_or_nothing(tmp_path: Path) -> None:
    path, made = tmp_path / "it", os.urandom(2**20)
    done, found = threading.Event(), set()

    def write() -> None:
        for _ in range(40):
            images._write(path, made)

    def read() -> None:
        while not done.is_set():
            found.add(hashlib.sha256(images._read(path)).digest())

    reader, writers = threading.Thread(target=read), [threading.Thread(target=write) for _ in range(2)]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    nothing = hashlib.sha256(b"").digest()
    assert hashlib.sha256(made).digest() in found
    assert found <= {hashlib.sha256(made).digest(), nothing}
    assert list(tmp_path.iterdir()) == [path]
    # Once it is there it is never gone: whoever begins now reads it whole.
    assert images._read(path) == made


def test_importing_loads_neither_driver_nor_compiler() -> None:
    code = (
        "from halfeven.optimized import affine\\n"
        "from halfeven.optimized.kernels.cuda import driver, nvrtc\\n"
        "print(driver._found.cache_info().currsize, nvrtc._loaded.cache_info().currsize)"
    ).replace("\\n", "\n")
    ran = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["0", "0"]
