"""The command and the pytest plugin, as a user starts them: in a folder of their own, in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from halfeven.conformance import cli
from halfeven.conformance.report import codec

NPU = """
import os, time, torch
from halfeven.conformance import Unsupported, conformance_suite


class Good:
    profile = "onnx"
    version = "1.2"

    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        return torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax).to(torch.int32)

    def path(self):
        return "plain torch"


class Up(Good):
    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        quotient = x / scale
        whole = quotient.floor()
        rounded = torch.where(quotient - whole >= 0.5, whole + 1, whole)
        return torch.clamp(rounded + zero_point, qmin, qmax).to(torch.int32)


class Dies(Good):
    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        if (x == float("inf")).any():
            os._exit(3)
        return super().quantize(x, scale, zero_point, qmin=qmin, qmax=qmax)


class Slow(Good):
    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        time.sleep(0.02)
        return super().quantize(x, scale, zero_point, qmin=qmin, qmax=qmax)


class Nothing(Good):
    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        raise Unsupported("the device is not there")
"""

OWN_TESTS = """
from halfeven.conformance import conformance_suite
from npu import Good, Up

TestNpu = conformance_suite(Good)
TestUp = conformance_suite(Up)


def test_my_own():
    assert True
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "npu.py").write_text(NPU)
    (tmp_path / "test_mine.py").write_text(OWN_TESTS)
    return tmp_path


def halfeven(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from halfeven.conformance.cli import main; sys.exit(main())"]
    return subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | {"PYTHONPATH": path}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=environment
    )


def test_status_0_and_a_whole_report(folder: Path) -> None:
    ran = halfeven(folder, "run", "npu:Good", "-n", "2", "--out", "out")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = codec.read_json(folder / "out/report.json")
    assert report.complete
    assert report.conforms
    assert len(report.results) == report.expected > 20
    assert report.backends[0].path == "plain torch"
    assert report.environment["torch"]
    assert len(codec.read_journal(folder / "out/journal.jsonl").results) == report.expected
    assert "Good" in (folder / "out/report.md").read_text()
    assert f"\nGood     conforms  {report.expected:>6}       0%\n" in ran.stdout
    assert "passed" not in ran.stdout, "no word of pytest's"
    assert ran.stdout.splitlines()[-1] == "Compare with another run: halfeven diff out OTHER"


def test_status_1_a_witness_and_what_pytest_offers_besides(folder: Path) -> None:
    ran = halfeven(folder, "run", "npu:Up", "-n", "0", "--out", "out", "--", "-k", "nearest", "--junitxml=j.xml")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    report = codec.read_json(folder / "out/report.json")
    assert report.complete
    assert {r.requirement for r in report.results} == {"onnx/quantize/nearest-code"}
    assert all(
        r.cause == "rounds ties up where the document rounds ties to even"
        for r in report.results
        if r.outcome == "differs"
    )
    assert "rounds ties up" in (folder / "out/report.md").read_text()
    assert "nearest-code" in (folder / "j.xml").read_text()
    assert "failed" not in ran.stdout, "a finding is no failure of the run"
    assert "rounds ties up where the document rounds ties to even" in ran.stdout
    same = halfeven(folder, "diff", "out", "out/report.json")
    assert same.returncode == 0, same.stdout


def test_an_internal_error_of_pytest_is_shown_and_is_no_verdict(folder: Path) -> None:
    (folder / "broken.py").write_text("def pytest_runtest_logfinish():\n    raise ValueError('a broken plugin')\n")
    ran = halfeven(folder, "run", "npu:Good", "-n", "0", "--", "-k", "smoke", "-p", "broken")
    assert ran.returncode == 2
    assert "halfeven: pytest stopped with an internal error:\n" in ran.stderr
    assert "ValueError: a broken plugin" in ran.stderr
    assert "INTERNALERROR" not in ran.stdout + ran.stderr


def test_status_2_when_nothing_ran(folder: Path) -> None:
    ran = halfeven(folder, "run", "npu:Nothing", "-n", "0")
    assert ran.returncode == 2
    assert "nothing ran" in ran.stderr
    assert "the device is not there" in (folder / "halfeven-report/report.md").read_text()


def test_a_process_that_dies_is_one_crash_and_the_rest_runs_on(folder: Path) -> None:
    ran = halfeven(folder, "run", "npu:Dies", "-n", "2", "--out", "out", "--", "-k", "huge or nan")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    report = codec.read_json(folder / "out/report.json")
    crashed = [r for r in report.results if r.outcome == "crashed"]
    assert {r.requirement for r in crashed} == {"onnx/quantize/huge-inputs"}
    assert all(r.ended and r.ended in r.cause for r in crashed)
    assert any(r.requirement == "onnx/quantize/nan" for r in report.results)


def test_an_interrupted_run_keeps_what_it_finished_and_is_taken_up_again(folder: Path) -> None:
    command = [sys.executable, "-c", "import sys; from halfeven.conformance.cli import main; sys.exit(main())"]
    arguments = [
        "run",
        "npu:Slow",
        "-n",
        "0",
        "--out",
        "out",
        "--",
        "-k",
        "smoke or result or nan or zero-sign or (nearest and uint4)",
    ]
    with subprocess.Popen(
        [*command, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        journal = folder / "out/journal.jsonl"
        deadline = time.monotonic() + 120
        while not (journal.exists() and journal.read_bytes().count(b'"outcome"') >= 3):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"incomplete" in said
    report = codec.read_json(folder / "out/report.json")
    assert not report.complete
    assert 3 <= len(report.results) < report.expected
    assert "ncomplete" in (folder / "out/report.md").read_text()[:400]

    taking_up = ["-n", "0", "--out", "out", "--resume"]
    first = f"{report.results[0].backend}::{report.results[0].id}"
    for less, said_of_it in (
        (halfeven(folder, "run", "npu:Good", *taking_up), "holds a run with backends ['npu:Slow']"),
        (halfeven(folder, "run", "npu:Slow", *taking_up, "--item", first), "holds a run with item by default"),
        (halfeven(folder, "run", "npu:Slow", *taking_up, "--", "-k", "zero-sign"), "incomplete"),
        (halfeven(folder, "run", *taking_up), "named again: halfeven run npu:Slow -n 0 --out out --resume"),
    ):
        assert less.returncode == 2, "what is left out is not done by leaving it out"
        assert said_of_it in less.stderr
    options = ("--halfeven-only", "--halfeven-resume", "--halfeven-out", "out")
    other = run_pytest(folder, "--halfeven-backend", "npu:Good", *options)
    assert other.returncode == pytest.ExitCode.USAGE_ERROR
    left = codec.read_json(folder / "out/report.json")
    assert (left.complete, left.expected) == (False, report.expected)

    again = halfeven(folder, "run", "npu:Slow", "-n", "0", "--out", "out", "--resume", *arguments[6:])
    assert again.returncode == 0, again.stdout + again.stderr
    whole = codec.read_json(folder / "out/report.json")
    assert whole.complete
    assert len(whole.results) == report.expected
    assert all(r in whole.results for r in report.results), "what was finished is not done again"

    other = halfeven(folder, "run", "npu:Slow", "-n", "0", "--out", "out", "--resume", "--seed", "5")
    assert other.returncode == 2


def test_an_item_is_named_by_its_id_with_or_without_the_backend(folder: Path) -> None:
    id_ = "onnx/quantize/nearest-code/int8/float32/per-tensor"
    for item in (id_, f"Good::{id_}"):
        ran = halfeven(folder, "run", "npu:Good", "--item", item, "-n", "0", "--out", "out")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert [r.id for r in codec.read_json(folder / "out/report.json").results] == [id_]


def test_an_item_that_is_none_is_named(folder: Path) -> None:
    for workers in "02":
        ran = halfeven(folder, "run", "npu:Good", "--item", "nope", "-n", workers, "--out", "out")
        assert ran.returncode == 2
        assert "--item='nope' is not accepted" in ran.stderr


def test_the_plugin_beside_one_s_own_tests(folder: Path) -> None:
    ran = run_pytest(
        folder, "--halfeven-backend", "npu:Good", "-n", "2", "-k", "my_own or (nearest and int8)", "--junitxml=j.xml"
    )
    assert ran.returncode == 1, ran.stdout
    said = (folder / "j.xml").read_text()
    assert "test_my_own" in said
    assert "TestNpu" in said
    assert "onnx/quantize/nearest-code/int8/float32/per-tensor" in said
    assert "rounds ties up where the document rounds ties to even" in ran.stdout, (
        "the message of a failed item says the cause"
    )
    assert "actual = Up().quantize(" in ran.stdout, "and has the script"
    assert "TestNpu" not in ran.stdout.split("short test summary")[-1], "the conforming suite passes"


def test_the_plugin_alone(folder: Path) -> None:
    only = ("--halfeven-backend", "npu:Good", "--halfeven-only", "--halfeven-out", "out", "-k", "smoke or nan")
    ran = run_pytest(folder, *only, "-n", "2")
    assert ran.returncode == 0, ran.stdout
    report = json.loads((folder / "out/report.json").read_text())
    assert {r["check"] for r in report["results"]} == {"smoke", "nan"}
    assert "test_my_own" not in ran.stdout


def test_an_unknown_backend_stops_pytest_too(folder: Path) -> None:
    ran = run_pytest(folder, "--halfeven-backend", "torchoa", "--halfeven-only")
    assert ran.returncode == 4
    assert "torchao" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["run", "torch.fake_quantise_per_tensor_affine"], "torch.fake_quantize_per_tensor_affine"),
        (["run", "no_such_module:Backend"], "no_such_module"),
        (["run", "json:Backend"], "'Backend'"),
        (["run", "--profile", "onx"], "onnx"),
        (["run", "--tier", "quik"], "quick"),
        (["run", "--teir", "quick"], "--tier"),
        (["run", "-n", "many"], "number of processes"),
        (["check", "mine:fn"], "did you mean run, as in halfeven run pkg.mod:fn"),
        (["fingerprnt", "mine:fn"], "did you mean fingerprint?"),
        (["list", "profles"], "profiles"),
        (["list", "requirements", "--profile", "torch-ao"], "torchao"),
        (["diff", "missing.json", "missing.json"], "missing.json"),
    ],
)
def test_bad_usage_is_status_2_with_the_nearest_names(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        ("backends", "torchao"),
        ("profiles", "clamp(round("),
        ("formulas", "torchao/choose_qparams_affine "),
        ("requirements", "onnx/quantize/nearest-code"),
        ("documents", "not testable: It is the path of a Python module"),
    ],
)
def test_lists(what: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", what]) == 0
    said = capsys.readouterr().out
    assert shown in said
    assert cli.main(["list", what, "--profile", "aimet"]) == 0
    assert 0 < len(capsys.readouterr().out) < len(said)
