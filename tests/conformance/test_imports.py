"""What is imported when: nobody pays for torch who has not asked for it. Counted in modules, in fresh processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from halfeven.conformance.report.model import OPERATIONS
from halfeven.reference import profile

HEAVY = ("torch", "numpy", "ml_dtypes", "hypothesis", "pytest", "xdist")
SHOW = f"print('HEAVY', *[m for m in {HEAVY!r} if m in sys.modules])"

BACKEND = """
import torch


class Npu:
    profile = "onnx"

    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        return torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax).to(torch.int32)
"""
# What has been imported once every test ran. Hypothesis has a plugin too, which imports it after that, for its summary.
CONFTEST = """
import sys

import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    with open("seen.txt", "w") as seen:
        print(*[m for m in sys.modules if m.startswith(("halfeven", "torch", "hypothesis", "numpy"))], file=seen)
"""
NO_TORCH = 'raise OSError("libcudart.so.12: cannot open shared object file")\n'


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | {"PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )


def command(folder: Path, *arguments: str) -> tuple[int, set[str]]:
    """The status of ``halfeven``, and what of HEAVY it imported."""
    code = f"""
import sys
from halfeven.conformance.cli import main
try:
    status = main({list(arguments)!r})
except SystemExit as end:
    status = end.code
{SHOW}
sys.exit(status)
"""
    ran = python(folder, "-c", code)
    assert "HEAVY" in ran.stdout, ran.stderr
    return ran.returncode, set(ran.stdout.rpartition("HEAVY")[2].split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "npu.py").write_text(BACKEND)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_mine.py").write_text("def test_mine():\n    assert True\n")
    return tmp_path


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two reports, one of a backend that conforms and one of the same backend with less tried."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "npu.py").write_text(BACKEND)
    found = [folder / name for name in ("base", "head")]
    for out, chosen in zip(found, ("smoke or nan", "smoke"), strict=True):
        options = ["run", "npu:Npu", "-n", "0", "--out", out.name, "--", "-k", chosen]
        ran = python(folder, "-c", f"from halfeven.conformance.cli import main; main({options!r})")
        assert (out / "report.json").exists(), ran.stderr
    return found[0], found[1]


@pytest.mark.parametrize("option", [["--help"], ["--version"], ["run", "--help"], ["list", "--help"]])
def test_help_and_version_import_next_to_nothing(option: list[str], tmp_path: Path) -> None:
    assert command(tmp_path, *option) == (0, set())


@pytest.mark.parametrize("what", ["backends", "profiles", "formulas", "requirements", "documents", "codes"])
def test_lists_do_without_torch(what: str, tmp_path: Path) -> None:
    assert command(tmp_path, "list", what) == (0, {"numpy", "ml_dtypes"})


@pytest.mark.parametrize("words", [["HE101"], ["0.25", "0.1", "0", "--code", "3"], ["-inf", "0.1", "--json"]])
def test_explanations_do_without_torch(words: list[str], tmp_path: Path) -> None:
    assert command(tmp_path, "explain", *words) == (0, {"numpy", "ml_dtypes"})


def test_diff_reads_two_reports_and_imports_no_library(reports: tuple[Path, Path], tmp_path: Path) -> None:
    base, head = map(str, reports)
    assert command(tmp_path, "diff", base, base) == (0, set())
    assert command(tmp_path, "diff", base, head) == (1, set()), "a regression is looked into without them too"


def test_the_operations_of_reports_are_those_of_the_reference() -> None:
    assert OPERATIONS == profile.OPERATIONS


def test_the_public_names_are_there_before_their_modules(tmp_path: Path) -> None:
    code = f"""
import sys
import halfeven.conformance as c
assert set(c._HOMES) == set(c.__all__) <= set(dir(c))
assert {{"Backend", "check", "compare", "explain_value"}} <= set(c.__all__)
{SHOW}
try:
    c.chek
except AttributeError as error:
    print(error)
assert not hasattr(c, "suit")
from halfeven.conformance import *
from halfeven.conformance import suite
assert check is c.check is suite.check and c.Verdict is suite.Verdict and "check" in vars(c)
{SHOW}
"""
    ran = python(tmp_path, "-c", code)
    assert ran.returncode == 0, ran.stderr
    first, message, then = ran.stdout.splitlines()
    assert first == "HEAVY"
    assert message == "module 'halfeven.conformance' has no attribute 'chek'"
    assert "torch" in then


def test_a_pytest_run_without_our_options_imports_the_options_alone(folder: Path) -> None:
    ran = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert set((folder / "seen.txt").read_text().split()) == {"halfeven", "halfeven.plugin"}


def test_an_option_brings_the_engine(folder: Path) -> None:
    ran = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--halfeven-backend", "npu:Npu", "-k", "nan")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert {"halfeven.conformance.session", "torch", "hypothesis"} <= set((folder / "seen.txt").read_text().split())


def test_a_torch_that_does_not_import_stops_nobody_else(folder: Path) -> None:
    (folder / "torch").mkdir()
    (folder / "torch/__init__.py").write_text(NO_TORCH)
    ran = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout
    asked = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--halfeven-backend", "npu:Npu")
    assert asked.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--halfeven-backend" in asked.stderr
    assert "libcudart.so.12" in asked.stderr
    assert command(folder, "--version") == (0, set())
