"""The set-up script: it recognises a CUDA build before anything is downloaded."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(name="script")
def load_script() -> Any:
    spec = importlib.util.spec_from_file_location("install_torch", ROOT / "tools/install_torch.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_versions(script: Any) -> None:
    assert [script.enough(v, (2, 11)) for v in ("2.11.0", "2.13.0+cpu", "3.0", "2.9.1", "1.13", "")] == [
        *(True, True, True),
        *(False, False, False),
    ]
    assert script.pinned((ROOT / "constraints.txt").read_text(encoding="utf-8")) == "2.13.0"
    with pytest.raises(ValueError, match="torch==VERSION"):
        script.pinned("torch>=2.11")


def test_cuda_packages(script: Any) -> None:
    cpu = ["torch", "filelock", "typing_extensions", "setuptools", "sympy", "networkx", "Jinja2", "fsspec"]
    assert script.cuda_packages(cpu) == []
    cuda = ["nvidia-cublas", "nvidia_nccl_cu13", "cuda-toolkit", "triton"]
    assert script.cuda_packages([*cpu, *cuda]) == ["cuda-toolkit", "nvidia-cublas", "nvidia-nccl-cu13", "triton"]


@pytest.mark.parametrize(
    ("gpu", "accept", "finds_cpu", "installs"),
    [
        (False, "", True, "torch==2.13.0+cpu"),
        (False, "", False, None),
        (False, "0", False, None),
        (False, "1", False, "torch==2.13.0"),
        (True, "", False, "torch==2.13.0"),
    ],
)
def test_a_cuda_build_is_installed_only_beside_a_gpu_or_by_consent(
    script: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    gpu: bool,
    accept: str,
    finds_cpu: bool,
    installs: str | None,
) -> None:
    installed: list[str] = []

    def would_install(requirement: str, errors: list[str]) -> list[str] | None:
        del errors
        if requirement.endswith("+cpu"):
            return ["torch", "sympy"] if finds_cpu else None
        return ["torch", "nvidia-cublas"]

    class Ran:
        returncode = 0
        stdout = "pip 26.3 from somewhere"

    def pip(*arguments: str, show: bool = False) -> Ran:
        if show:
            installed.append(arguments[-1])
        return Ran()

    monkeypatch.setattr(script, "installed_torch", lambda: "2.13.0" if installed else None)
    monkeypatch.setattr(script, "_would_install", would_install)
    monkeypatch.setattr(script, "_pip", pip)
    monkeypatch.setattr(script, "has_gpu", lambda: gpu)
    monkeypatch.setenv("HALFEVEN_ANY_TORCH", accept)
    status = script.main(ROOT / "constraints.txt", tmp_path / "torch.txt")
    assert installed == ([installs] if installs else [])
    assert status == (0 if installs else 1)
    assert (tmp_path / "torch.txt").exists() == (status == 0)
    assert ("nvidia-cublas" in capsys.readouterr().err) == (status == 1)
