"""A run claims no more than it did: refusals, two runs in one folder, a full disk, kills, and what resuming imports."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance import check, cli, conformance_suite
from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.report import codec, folder
from halfeven.conformance.report.journal import Plan
from halfeven.conformance.report.model import Report

COMMAND = [sys.executable, "-c", "import sys; from halfeven.conformance.cli import main; sys.exit(main())"]
FEW = ("--", "-k", "smoke or nan or zero-sign or huge or result")
MINE = """
import os, signal, sys, time, torch
import numpy as np
from halfeven.conformance import Unsupported


def of_numpy(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.trunc(x / scale + np.copysign(np.float32(0.5), x)) + zero_point, qmin, qmax).astype(np.int32)


class Good:
    profile = "onnx"

    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        return torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax).to(torch.int32)


class Slow(Good):
    def quantize(self, *a, **k):
        time.sleep(0.01)
        return super().quantize(*a, **k)


class Other(Slow):
    name = "Slow"


class Waits(Good):
    calls = 0

    def quantize(self, *a, **k):
        Waits.calls += 1
        while Waits.calls > 10 and not os.path.exists("go"):
            time.sleep(0.05)
        return super().quantize(*a, **k)


class Refuses(Good):
    calls = 0

    def quantize(self, *a, **k):
        Refuses.calls += 1
        if Refuses.calls > 40:
            raise Unsupported("no such kernel")
        return super().quantize(*a, **k)


class Dies(Good):
    def quantize(self, x, *a, **k):
        if (x == float("inf")).any() and os.environ.get("BROKEN") == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().quantize(x, *a, **k)


class Steers(Good):
    def quantize(self, x, *a, **k):
        if (x == float("inf")).any():
            raise RuntimeError("\\x1b[2J\\x1b]0;title\\x07 \\u202e \\x9b31m" + "A" * 1_000_000)
        return super().quantize(x, *a, **k)
"""


def start(cwd: Path, *arguments: str, **changes: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **changes,
    )


def halfeven(cwd: Path, *arguments: str, **changes: Any) -> "subprocess.CompletedProcess[str]":
    with start(cwd, *arguments, **changes) as process:
        out, err = process.communicate(timeout=300)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def run_pytest(cwd: Path, *arguments: str) -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(cwd), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--halfeven-only", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )


def lines(path: Path) -> int:
    journal = path / folder.JOURNAL
    return journal.read_bytes().count(b'"outcome"') if journal.exists() else 0


def until(condition: Any, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def timeless(report: Report) -> list[Any]:
    return [replace(r, seconds=0.0) for r in report.results]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def test_what_was_refused_keeps_a_backend_from_conforming(mine: Path) -> None:
    some = ("--", "-k", "smoke or nan or huge or nearest")
    ran = halfeven(mine, "run", "mine:Refuses", "-n", "0", "--out", "out", *some)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "Refuses is not known to conform: " in ran.stderr
    assert "no such kernel; --require any takes what ran for enough" in ran.stderr
    assert "Refuses  not judged" in ran.stdout
    report = codec.read_json(mine / "out/report.json")
    assert (report.complete, report.conforms) == (True, False)
    assert 0 < report.share < 1
    assert "is not judged against profile `onnx`" in (mine / "out/report.md").read_text()
    any_ = halfeven(mine, "run", "mine:Refuses", "-n", "0", "--out", "out", "--require", "any", *some)
    assert any_.returncode == 0, any_.stdout + any_.stderr


def test_a_function_of_numpy_is_checked_on_its_grids_and_shown_by_its_name(mine: Path) -> None:
    words = ("run", "mine:of_numpy@numpy,int8", "--profile", "torchao", "-n", "0", "--out", "out")
    ran = halfeven(mine, *words, "--", "-k", "nearest")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    report = codec.read_json(mine / "out/report.json")
    assert {r.profile for r in report.results} == {"torchao"}
    assert {str(r.configuration["grid"]) for r in report.results} == {"{'qmin': -128, 'qmax': 127}"}
    [shown] = [r.witness for r in report.results if r.witness is not None and r.witness.reproduced]
    assert "from mine import of_numpy" in shown.script
    assert "No script" not in (mine / "out/report.md").read_text()


def test_two_that_share_no_check_are_not_known(mine: Path) -> None:
    for backend, out in (("mine:Good", "one"), ("mine:Slow", "two")):
        halfeven(mine, "run", backend, "-n", "0", "--out", out, "--", "-k", "smoke")
    ran = halfeven(mine, "diff", "one", "two")
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "Not known." in ran.stdout


def test_whose_function_takes_no_tensors_is_told_what_to_say(mine: Path) -> None:
    ran = halfeven(mine, "run", "mine:of_numpy", "--profile", "onnx", "-n", "0", "--out", "out", "--", "-k", "smoke")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    help_ = 'for NumPy arrays say array="numpy", or @numpy after its name'
    assert help_ in " ".join(ran.stdout.split())
    told = halfeven(mine, "fingerprint", "mine:of_numpy").stdout
    assert help_ in told
    assert "nothing is decided" in told
    assert "not decided" not in told


@pytest.mark.parametrize(("require", "status"), [("each", 1), ("any", 0), ("most", 4)])
def test_what_was_refused_fails_pytest_s_run_too(mine: Path, require: str, status: int) -> None:
    arguments = ("--halfeven-backend", "mine:Refuses", f"--halfeven-require={require}")
    ran = run_pytest(mine, *arguments, "-k", "smoke or nan or huge or nearest")
    said, _ = ran.communicate(timeout=300)
    assert ran.returncode == status, said


def test_check_and_the_class_form_take_the_same_words() -> None:
    calls = 0

    def refuses(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        nonlocal calls
        calls += 1
        if calls > 40:
            msg = "no such kernel"
            raise Unsupported(msg)
        return (x / scale).round().add(zero_point).clamp(qmin, qmax).int()

    verdict = check(refuses, "onnx")
    assert (verdict.conforms, verdict.outcome) == (False, "not run")
    assert 0 < verdict.share < 0.5
    assert "too few to conform" in str(verdict)
    taken = replace(verdict, require="any")
    assert (taken.conforms, taken.outcome) == (True, "exact")
    assert replace(verdict, lacks=tuple(r.requirement for r in verdict.results)).conforms
    with pytest.raises(ValueError, match="require='most' is not accepted"):
        check(refuses, "onnx", require="most")

    class Refusing:
        profile = "onnx"

        def quantize(self, *_: Any, **__: Any) -> Any:
            msg = "no such kernel"
            raise Unsupported(msg)

    for require, outcome in (("each", pytest.skip.Exception), ("all", pytest.fail.Exception)):
        suite: Any = conformance_suite(Refusing, require=require)
        (mark,) = suite.test_conformance.pytestmark
        with pytest.raises(outcome, match="no such kernel"):
            suite().test_conformance(mark.args[1][0])


def test_two_runs_in_one_folder_refuse_each_other(mine: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(mine)
    with start(mine, "run", "mine:Waits", "-n", "0", "--out", "out", *FEW) as first:
        until(lambda: lines(mine / "out") >= 1)
        for command in (["run", "mine:Good", "-n", "0", "--out", "out"], ["report", "out"]):
            assert cli.main(command) == 2
            shown = capsys.readouterr()
            assert shown.out == ""
            (line,) = shown.err.splitlines()
            assert line.startswith("halfeven: out is in use by another run (process ")
        third = run_pytest(mine, "--halfeven-backend", "mine:Good", "--halfeven-out", "out")
        said, _ = third.communicate(timeout=120)
        assert third.returncode == pytest.ExitCode.USAGE_ERROR
        assert "out is in use by another run" in said
        (mine / "go").touch()
        out, err = first.communicate(timeout=300)
    assert first.returncode == 0, out + err
    report = codec.read_json(mine / "out/report.json")
    assert (report.complete, {r.backend for r in report.results}) == (True, {"Waits"})
    assert len(report.results) == report.expected == len({r.id for r in report.results})


def test_two_backends_of_one_name_are_refused(mine: Path) -> None:
    ran = halfeven(mine, "run", "mine:Slow", "mine:Other", "-n", "0", "--out", "out")
    assert ran.returncode == 2
    assert "'mine:Slow' and 'mine:Other' are not accepted: they have the same name, 'Slow'" in ran.stderr


def test_sigterm_ends_pytest_with_a_report(mine: Path, capsys: Any) -> None:
    one = run_pytest(mine, "--halfeven-backend", "mine:Waits", "--halfeven-out", "out")
    until(lambda: lines(mine / "out") >= 1)
    one.send_signal(signal.SIGTERM)
    said, _ = one.communicate(timeout=60)
    assert one.returncode == pytest.ExitCode.INTERRUPTED, said
    report = codec.read_json(mine / "out/report.json")
    assert not report.complete
    assert 1 <= len(report.results) == lines(mine / "out") < report.expected
    assert len(report.missing) == report.expected - len(report.results)
    assert cli.main(["report", str(mine / "out")]) == 2
    assert f"{len(report.results)} of {report.expected} checks finished" in capsys.readouterr().err


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_full_disk_ends_the_run_and_loses_nothing(mine: Path, workers: str) -> None:
    resource: Any = pytest.importorskip("resource")

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, 6_000))

    arguments = ("run", "mine:Good", "-n", workers, "--out", "out")
    # None with long results, which a backend hands over as memory: the limit holds for that too, not so a full disk.
    few = ("--", "-k", "smoke or nan or zero-sign or result")
    ran = halfeven(mine, *arguments, *few, preexec_fn=small)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr
    assert "INTERNALERROR" not in ran.stdout + ran.stderr
    assert "File too large: " in ran.stderr
    assert "journal.jsonl" in ran.stderr
    assert "Good     " in ran.stdout, "the table is shown though nothing can be written"
    kept = lines(mine / "out")
    assert kept > 2
    again = halfeven(mine, *arguments, "--resume", *FEW)
    assert again.returncode == 0, again.stdout + again.stderr
    report = codec.read_json(mine / "out/report.json")
    assert report.complete
    assert len(report.results) == report.expected == lines(mine / "out") > kept


def test_resuming_asks_again_what_died_and_imports_nothing_unasked(mine: Path, monkeypatch: Any, capsys: Any) -> None:
    some = ("--", "-k", "smoke or nan or huge")
    arguments = ("-n", "1", "--out", "out")
    ran = halfeven(mine, "run", "mine:Dies", *arguments, *some, env=os.environ | {"BROKEN": "1"})
    assert ran.returncode == 1, ran.stdout + ran.stderr
    report = codec.read_json(mine / "out/report.json")
    died = [r for r in report.results if r.outcome == "crashed"]
    assert died
    assert all(r.died for r in died)

    (mine / "mine.py").write_text("open('imported', 'w')\n" + MINE)
    monkeypatch.chdir(mine)
    assert cli.main(["run", "--resume", *arguments]) == 2
    named = "halfeven run mine:Dies --resume -n 1 --out out"
    said = f"halfeven: --resume: out names code that is not halfeven's, which must be named again: {named}\n"
    assert capsys.readouterr().err == said
    assert not (mine / "imported").exists()

    again = halfeven(mine, "run", "mine:Dies", "--resume", *arguments, *some)
    assert again.returncode == 0, again.stdout + again.stderr
    whole = codec.read_json(mine / "out/report.json")
    assert whole.complete
    assert {r.outcome for r in whole.results} <= {"exact", "implementation-defined"}
    assert {r.id for r in whole.results} == {r.id for r in report.results}
    others = [r for r in report.results if r not in died]
    assert all(r in whole.results for r in others), "what was answered is not asked again"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("halfeven run 'mine:Good", "No closing quotation"),
        ("halfeven run --version", "it is no run that can be resumed"),
        ("halfeven run --help", "it is no run that can be resumed"),
        ("halfeven run --tier", "it is no run that can be resumed"),
    ],
)
def test_a_foreign_folder_that_is_no_run_cannot_be_resumed(
    command: str, said: str, tmp_path: Path, capsys: Any
) -> None:
    codec.write_plan(Plan("", command, "quick", 0, "each", {}, ("a::b",)), tmp_path / folder.PLAN)
    assert cli.main(["run", "--resume", "--out", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err


def test_what_a_backend_says_steers_nothing(mine: Path) -> None:
    ran = halfeven(mine, "run", "mine:Steers", "-n", "0", "--out", "out", "--", "-k", "smoke or huge")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    page = (mine / "out/report.md").read_text()
    for text in (ran.stdout, ran.stderr, page):
        assert not set("\x1b\x07\x9b\u202e") & set(text)
    for text in (ran.stdout, page):
        assert "RuntimeError: \\x1b[2J" in text
    assert (mine / "out/report.json").stat().st_size < 500_000


def test_who_reads_no_further_changes_no_status(mine: Path) -> None:
    run = ("run", "mine:Good", "-n", "0", "--out")
    assert halfeven(mine, *run, "base", "--", "-k", "smoke or nan").returncode == 2, "none of it is documented"
    whole = codec.read_json(mine / "base/report.json")
    codec.write_json(replace(whole, results=whole.results[1:], expected=whole.expected - 1), mine / "head/report.json")
    reading, writing = os.pipe()
    os.close(reading)
    for arguments, status in ((("diff", "base", "head"), 1), (("diff", "base", "base"), 0), (("list", "profiles"), 0)):
        ran = subprocess.run(
            [*COMMAND, *arguments], cwd=mine, stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
        assert (ran.returncode, ran.stderr) == (status, "")
    os.close(writing)


def kills(drawn: random.Random) -> Iterator[tuple[str, int, float]]:
    """Twelve: what is killed, after how many more results, and how many seconds later."""
    for i in range(12):
        yield ("group", "controller")[i % 2], drawn.choice([0, 1, 1, 2]), drawn.random() * 0.2


def test_kills_at_random_points_lose_nothing_and_double_nothing(mine: Path) -> None:
    chosen = ("--", "-k", "not position and not layout and not nearest")
    arguments = ("run", "mine:Slow", "-n", "0", "--out", "out")
    out = mine / "out"
    took: list[int] = []
    for what, more, after in kills(random.Random(13)):
        before = lines(out)
        resumed = ["--resume"] if took else []
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(
            [*COMMAND, *arguments, *resumed, *chosen], cwd=mine, start_new_session=True, **quiet
        ) as one:
            until(partial(_far, one, out, before + more))
            time.sleep(after)
            with contextlib.suppress(ProcessLookupError):  # it came to its end
                (os.killpg if what == "group" else os.kill)(one.pid, signal.SIGKILL)
        until(lambda: _free(out))  # of a controller alone, the process that ran pytest writes its report first
        took.append(lines(out))
        status = cli.main(["report", str(out)])
        report = codec.read_json(out / "report.json")
        assert len(report.results) == took[-1]
        assert (report.complete, status) in {(True, 0), (False, 2)}
    assert took == sorted(took)
    again = halfeven(mine, *arguments, "--resume", *chosen)
    assert again.returncode == 0, again.stdout + again.stderr
    whole = codec.read_json(out / "report.json")
    assert lines(out) == len(whole.results) == whole.expected > 12, "no check was asked twice"
    straight = halfeven(mine, "run", "mine:Slow", "-n", "0", "--out", "straight", *chosen)
    assert straight.returncode == 0, straight.stdout + straight.stderr
    assert timeless(codec.read_json(mine / "straight/report.json")) == timeless(whole)


def _far(process: "subprocess.Popen[Any]", path: Path, enough: int) -> bool:
    return (lines(path) >= enough and (path / folder.PLAN).exists()) or process.poll() is not None


def _free(path: Path) -> bool:
    try:
        folder.Lock(path).release()
    except ValueError:
        return False
    return True
