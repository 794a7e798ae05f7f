"""Backends that end the process they run in: no status of a run may pass for a verdict that nobody reached."""

import os
import re
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from halfeven.conformance.child import Ending
from halfeven.conformance.interrupt import interrupt
from halfeven.conformance.report import codec

COMMAND = [sys.executable, "-c", "import sys; from halfeven.conformance.cli import main; sys.exit(main())"]
GOOD = """
import os, signal, sys, time, torch


class Good:
    profile = "onnx"
    calls, after = 0, float("inf")

    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        Good.calls += 1
        if Good.calls > self.after and os.environ.get("BROKEN") == "1":
            self.end()
        return torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax).to(torch.int32)


class Cuts(Good):
    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        return torch.clamp(torch.trunc(x / scale) + zero_point, qmin, qmax).to(torch.int32)


class Exits(Good):
    after = 40

    def end(self):
        os._exit(0)


class Dies(Exits):
    def end(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Always(Exits):
    after = 0

    def end(self):
        os._exit(1)


class Hangs(Exits):
    def end(self):
        time.sleep(1000)
"""
#: A plugin of pytest that ends the process which runs the checks, as no backend can: those live in other processes.
ENDS = """
import os, signal

begun = 0


def pytest_runtest_call(item):
    global begun
    begun += 1
    how, after = os.environ["ENDS"].split()
    if os.environ["BROKEN"] == "1" and begun > int(after):
        os._exit(int(how)) if how.isdigit() else os.kill(os.getpid(), getattr(signal, how))
"""
ENDED = "backend 'mine:B' does not load: exit status 0"
AT_IMPORT = "import os, sys\n{}\n"
IN_CONSTRUCTOR = "import os, sys\nclass B:\n    def __init__(self):\n        {}\n"


def halfeven(folder: Path, *arguments: str, broken: bool = True) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"BROKEN": str(int(broken))}
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=environment
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "ends.py").write_text(ENDS)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "said", "workers"),
    [
        (AT_IMPORT.format("os._exit(0)"), ENDED, "0"),
        (IN_CONSTRUCTOR.format("os._exit(0)"), ENDED, "2"),
        (AT_IMPORT.format("sys.exit(0)"), "module 'mine' of backend 'mine:B' does not import: SystemExit: 0", "2"),
        (IN_CONSTRUCTOR.format("sys.exit(5)"), "the constructor of backend 'mine:B' fails: SystemExit: 5", "0"),
    ],
)
def test_what_ends_the_process_before_the_run_is_told_in_one_line(
    folder: Path, source: str, said: str, workers: str
) -> None:
    (folder / "mine.py").write_text(source)
    ran = halfeven(folder, "run", "good:Exits", "mine:B", "-n", workers, "--out", "out")
    assert ran.returncode == 2
    assert ran.stderr.splitlines() == [f"halfeven: {said}"]
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Exits", "exit status 0"),
        ("Dies", "signal 9 (SIGKILL), as when memory runs out"),
        ("Always", "exit status 1"),
    ],
)
def test_a_backend_that_ends_its_process_ends_no_run(folder: Path, name: str, said: str) -> None:
    some = ("-n", "0", "--out", "out", "--", "-k", "smoke or huge")
    ran = halfeven(folder, "run", f"good:{name}", *some)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    report = codec.read_json(folder / "out/report.json")
    assert report.complete
    died = [r for r in report.results if r.outcome == "crashed"]
    assert died
    assert {(r.cause, r.ended) for r in died} == {(said, said)}
    assert all(r.died for r in died)
    assert said in ran.stdout
    shown = (folder / "out/report.md").read_text()
    assert f"HE508 ends the process it runs in: {said}" in shown
    assert f"In {len(died)} checks." in shown

    again = halfeven(folder, "run", f"good:{name}", "--resume", *some, broken=False)
    assert again.returncode == 0, again.stdout + again.stderr
    whole = codec.read_json(folder / "out/report.json")
    assert whole.complete
    assert {r.name for r in whole.results} == {r.name for r in report.results}


@pytest.mark.parametrize(
    ("how", "said"),
    [("0", "the process ended early (exit status 0)"), ("SIGKILL", "the process died (signal 9, SIGKILL)")],
)
def test_a_process_that_ends_during_a_check_leaves_what_was_finished(
    folder: Path, how: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without workers, so that it is pytest's own process that ends."""
    monkeypatch.setenv("ENDS", f"{how} 2")
    some = ("--", "-p", "ends", "-k", "smoke or nan")
    ran = halfeven(folder, "run", "good:Good", "-n", "0", "--out", "out", *some)
    assert ran.returncode == 2
    report = codec.read_json(folder / "out/report.json")
    assert not report.complete
    assert len(report.results) == 2 < report.expected
    assert f"2 of {report.expected} checks finished; {said} in Good::onnx/quantize/" in ran.stderr
    assert "halfeven run --resume good:Good -n 0" in ran.stderr
    first = (folder / "out/report.md").read_text().splitlines()[0]
    assert first == f"**Incomplete: 2 of {report.expected} checks finished.**"
    assert report.backends[0].dtypes == ("float32",), "what is known of the backend outlives it too"

    again = halfeven(folder, "run", "good:Good", "--resume", "-n", "0", "--out", "out", *some, broken=False)
    assert again.returncode == 2, "nothing documented was among these"
    whole = codec.read_json(folder / "out/report.json")
    assert whole.complete
    assert len(whole.results) == whole.expected == report.expected


def test_a_script_that_stands_in_a_resumed_folder_is_not_run(folder: Path) -> None:
    some = ("-n", "0", "--out", "out", "--", "-k", "nearest-code and int8")
    assert halfeven(folder, "run", "good:Cuts", *some).returncode == 1
    journal, ran = folder / "out/journal.jsonl", folder / "ran"
    planted, count = re.subn(
        r'"script": ?"(?!")', lambda m: m[0] + f"open('{ran}', 'w').close()\\n", journal.read_text()
    )
    assert count
    journal.write_text(re.sub(r'"reproduced": ?true', '"reproduced": false', planted))
    assert halfeven(folder, "run", "good:Cuts", "--resume", *some).returncode == 1
    assert not ran.exists()
    shown = [r.witness for r in codec.read_json(folder / "out/report.json").results if r.witness is not None]
    assert not any(w.script for w in shown)
    assert any("of an earlier run" in w.unshown for w in shown)


def test_workers_that_keep_dying_are_counted_against_the_plan(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENDS", "1 0")
    some = ("--", "-p", "ends", "-k", "nan or huge or zero-sign")
    ran = halfeven(folder, "run", "good:Good", "-n", "1", "--out", "out", *some, "--max-worker-restart=1")
    assert ran.returncode == 2
    report = codec.read_json(folder / "out/report.json")
    assert (report.complete, len(report.results)) == (False, 2)
    assert f"2 of {report.expected} checks finished" in ran.stderr

    # Each worker that dies is replaced, by one that must plan what the others did although more is journaled by then.
    again = halfeven(folder, "run", "good:Good", "--resume", "-n", "1", "--out", "out", *some)
    assert again.returncode == 1, again.stdout + again.stderr
    whole = codec.read_json(folder / "out/report.json")
    assert whole.complete
    assert len(whole.results) == whole.expected == report.expected > 4
    assert {r.outcome for r in whole.results} == {"crashed"}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_told_to_stop_leaves_a_report(folder: Path, how: signal.Signals) -> None:
    arguments = ["run", "good:Hangs", "-n", "0", "--out", "out"]
    journal, page = folder / "out/journal.jsonl", folder / "out/report.md"
    deadline = time.monotonic() + 120
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"BROKEN": "1"},
    ) as process:
        while not (journal.exists() and journal.read_bytes().count(b'\n{"id"') == 2):  # results
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(how)
        _, said = process.communicate(timeout=60)
    if how is signal.SIGKILL:  # the process that runs pytest notices
        while not page.read_text().startswith("**Incomplete: 2 of"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    else:
        assert process.returncode == 2
        assert b"the run is incomplete: 2 of" in said
    assert page.read_text().startswith("**Incomplete: 2 of")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (0, "the process ended early (exit status 0)"),
        (-signal.SIGSEGV, "the process died (signal 11, SIGSEGV)"),
        (-40, "the process died (signal 40)"),
    ],
)
def test_how_a_process_ended(status: int, said: str) -> None:
    assert Ending((), None, status).words == said


def test_sigterm_waits_for_a_line_that_a_traceback_can_name() -> None:
    """Python 3.11 has instructions of no line; pytest ended in an error of its own over a traceback of one."""
    before = signal.signal(signal.SIGTERM, interrupt)

    def until_told() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        while signal.getsignal(signal.SIGTERM) is interrupt:
            pass

    lineless = types.FunctionType(until_told.__code__.replace(co_linetable=b""), globals())

    def task() -> None:
        lineless()
        time.sleep(60)

    try:
        with pytest.raises(KeyboardInterrupt) as raised:
            task()
        assert [entry.lineno for entry in raised.traceback], "which fails where a line has no number"
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
