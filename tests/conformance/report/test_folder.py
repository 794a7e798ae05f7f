"""The folder of a run: what follows from its plan and its journal, and who may write there."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance import cli
from halfeven.conformance.report import codec, folder
from halfeven.conformance.report.journal import Absent, Journal, Known, Plan
from halfeven.conformance.report.model import Report

Make = Callable[..., Any]

HOLD = """
import sys, time
from pathlib import Path
from halfeven.conformance.report.folder import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def render(path: Path) -> Report:
    report = folder.report_of(*folder.read(path))
    folder.write(report, path)
    return report


def planned(*names: str, **changes: Any) -> Plan:
    return replace(Plan("", "halfeven run torchao", "quick", 0, "each", {"torch": "2.13.0"}, names), **changes)


def kept(path: Path, plan: Plan, *entries: Any) -> None:
    codec.write_plan(plan, path / folder.PLAN)
    for entry in entries:
        codec.append(path / folder.JOURNAL, entry)


def test_what_is_missing_is_said_by_name_and_not_by_count(result: Make, tmp_path: Path) -> None:
    a, b, other = (result(x, check=x) for x in ("a", "b", "other"))
    kept(tmp_path, planned(a.name, b.name), a, other)
    report = render(tmp_path)
    assert (report.complete, report.missing, report.expected, len(report.results)) == (False, (b.name,), 3, 2)
    codec.append(tmp_path / folder.JOURNAL, b)
    assert render(tmp_path).complete
    assert render(tmp_path) == codec.read_json(tmp_path / folder.REPORT)
    assert (tmp_path / "report.md").read_text().startswith("# Conformance report")


def test_a_plan_that_was_never_known_is_no_whole_run(result: Make, tmp_path: Path) -> None:
    kept(tmp_path, planned(names=None))
    assert not render(tmp_path).complete
    codec.append(tmp_path / folder.JOURNAL, result())
    assert not render(tmp_path).complete


def test_two_lines_on_one_check_count_once_the_last(result: Make, tmp_path: Path) -> None:
    died = result("a", "crashed", cause="the process died", ended="signal 9, SIGKILL")
    again = result("a")
    kept(tmp_path, planned(again.name), died, died)
    report = render(tmp_path)
    assert [r.outcome for r in report.results] == ["crashed"]
    codec.append(tmp_path / folder.JOURNAL, again)
    report = render(tmp_path)
    assert (report.complete, report.expected, [r.outcome for r in report.results]) == (True, 1, ["exact"])


def test_what_died_is_asked_again_and_what_was_answered_is_not(result: Make) -> None:
    journal = Journal()
    answered = [result(o, o, check=o) for o in ("exact", "differs", "crashed", "not run")]
    died = [result("x", "crashed", check="x", ended="signal 9, SIGKILL"), result("y", "timed out", check="y")]
    for entry in (*answered, *died):
        journal.add(entry)
    assert journal.answered == {r.name for r in answered}


def test_backends_waivers_and_what_is_absent_outlive_the_process(result: Make, mixed: Any, tmp_path: Path) -> None:
    record, a = mixed.backends[0], result("a")
    waived = Known(record, {"torchao/quantize/ties": 1})
    absent = Absent("modelopt", "nvidia-modelopt is not installed")
    kept(tmp_path, planned(a.name, "modelopt"), Known(replace(record, path=""), {}), waived, absent, a)
    report = render(tmp_path)
    assert report.complete
    assert report.backends == (record,)
    assert report.not_run == ({"backend": "modelopt", "reason": absent.reason},)
    assert report.results[-1].cause == "the waiver of 1 steps is not needed: remove it"
    assert (len(report.results), report.expected) == (2, 3)


def test_what_is_known_of_a_backend_is_written_once(mixed: Any) -> None:
    journal, known = Journal(), Known(mixed.backends[0], {})
    assert journal.add(known)
    assert not journal.add(known)
    assert not journal.add(replace(known, record=replace(known.record, path="")))
    assert journal.known["torchao"].record.path == "quant_primitives"
    assert journal.add(replace(known, record=replace(known.record, path="another kernel")))


@pytest.mark.parametrize(
    ("outcomes", "require", "status", "said"),
    [
        (("exact", "exact"), "each", 0, ""),
        (("exact", "differs"), "each", 1, ""),
        (("exact", "timed out"), "each", 1, ""),
        (("exact", "not run"), "each", 2, "torchao is not known to conform: 1 of 2 requirements were never checked"),
        (("exact", "not run"), "any", 0, ""),
        (("exact", "not run"), "0.6", 2, "1 of 2 checks were not run"),
        (("not run", "not run"), "any", 2, "nothing ran"),
        (("exact",), "each", 2, "the run is incomplete: 1 of 2 checks finished; resume with: halfeven run --resume t"),
        ((), "each", 2, "0 of 2 checks finished"),
    ],
)
def test_the_report_command_ends_as_the_run_would_have(
    outcomes: Any, require: str, status: int, said: str, result: Make, tmp_path: Path, capsys: Any
) -> None:
    requirements = ("nearest-code", "zero-point-after-rounding")
    results = [result(r, check=r) for r in requirements]
    came = [
        replace(r, outcome=o, points=0 if o in {"not run", "timed out"} else r.points)
        for r, o in zip(results, outcomes, strict=False)
    ]
    kept(tmp_path, planned(*(r.name for r in results), require=require), *came)
    assert cli.main(["report", str(tmp_path)]) == status
    shown = capsys.readouterr()
    assert said in shown.err
    assert bool(said) == bool(shown.err)
    assert codec.read_json(tmp_path / folder.REPORT).results == tuple(sorted(came, key=lambda r: r.id))


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        (None, "", "no run was begun there"),
        (folder.PLAN, "{", "planned.json is not JSON"),
        (folder.PLAN, '{"names": []}', "planned.json, at / (the whole document)"),
        (folder.JOURNAL, '{"id": 1}\n', "journal.jsonl, line 1, at /"),
        (folder.JOURNAL, '{"id": \n', "journal.jsonl, line 1 is not JSON"),
        (folder.JOURNAL, '{"a": ' * 100_000 + "\n", "journal.jsonl, line 1"),
    ],
)
def test_a_damaged_folder_is_status_2_and_one_line(
    file: str | None, content: str, said: str, tmp_path: Path, capsys: Any
) -> None:
    if file is not None:
        kept(tmp_path, planned("a::b"))
        (tmp_path / file).write_text(content)
    assert cli.main(["report", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
    assert cli.main(["report", str(tmp_path / "nowhere")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_one_process_alone_writes_to_a_folder_and_a_file_left_behind_locks_nothing(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    (tmp_path / folder.LOCK).write_text("999999")
    folder.Lock(tmp_path).release()
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ValueError, match=rf"is in use by another run \(process {other.pid}\)"):
            folder.Lock(tmp_path)
        assert cli.main(["report", str(tmp_path)]) == 2
        other.kill()
        other.wait()
        folder.Lock(tmp_path).release()


def test_a_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(folder, "fcntl", None)
    folder.Lock(tmp_path).release()
    assert "this system has no file locks" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named(result: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path, planned("a::b"), result())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        render(tmp_path)
    assert caught.value.filename == str(tmp_path / folder.REPORT)
