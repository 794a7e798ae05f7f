"""The engine leaves nothing of Hypothesis behind; one's own Hypothesis tests beside it keep what they find."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

NPU = """
import torch

LIMIT = 12345  # a constant, of those that Hypothesis collects from modules around it and caches


class Npu:
    profile = "onnx"

    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        return torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax).to(torch.int32)
"""
CHECK = """
from halfeven.conformance import check
from npu import Npu

verdict = check(Npu())
assert verdict.conforms, verdict
"""
OWN = """
from hypothesis import given, settings, strategies as st
from hypothesis.configuration import storage_directory
from halfeven.conformance import check
from npu import Npu


def test_first():
    assert check(Npu()).conforms


@given(st.integers())
def test_mine(n):
    assert n < 1000


def test_last():
    print("home is", storage_directory(intent_to_write=False).path)
"""


def python(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "HYPOTHESIS", "CI"))}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**environment, "PYTHONPATH": str(folder), **variables},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "npu.py").write_text(NPU)
    return tmp_path


def test_check_leaves_nothing_behind(folder: Path) -> None:
    ran = python(folder, "-B", "-c", CHECK)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [p.name for p in folder.iterdir()] == ["npu.py"]


def test_a_run_leaves_its_report_alone(folder: Path) -> None:
    arguments = ["run", "npu:Npu", "-n", "1", "--", "-k", "layout or huge"]
    code = f"import sys; from halfeven.conformance.cli import main; sys.exit(main({arguments}))"
    ran = python(folder, "-B", "-c", code, PYTHONDONTWRITEBYTECODE="1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert {p.name for p in folder.iterdir()} == {"npu.py", "halfeven-report"}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_one_s_own_tests_beside_the_suite_keep_their_database(folder: Path, elsewhere: bool) -> None:
    (folder / "test_mine.py").write_text(OWN)
    home = folder / ("elsewhere" if elsewhere else ".hypothesis")
    chosen = {"HYPOTHESIS_STORAGE_DIRECTORY": str(home)} if elsewhere else {}
    options = ["-p", "no:cacheprovider", "-rP", "--halfeven-backend", "npu:Npu", "-k", "mine or layout"]
    ran = python(folder, "-B", "-m", "pytest", *options, **chosen)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert f"home is {home}\n" in ran.stdout
    assert any((home / "examples").rglob("*")), "what failed is kept for the next run"
    assert (folder / ".hypothesis").exists() is not elsewhere
