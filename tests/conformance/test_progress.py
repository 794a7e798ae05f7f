"""What is shown while a run goes on."""

import io
import time
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance import progress
from halfeven.conformance.engine.exhaustive.journal import Done, Journal
from halfeven.conformance.progress import Display, Sweeps, line


@pytest.mark.parametrize(
    ("done", "elapsed", "said"),
    [
        (0, 0.0, "[  0/899] torch.learnable"),
        (214, 107.0, "[214/899] torch.learnable, about 5:42 left"),
        (898, 898.0, "[898/899] torch.learnable, about 0:01 left"),
        (899, 899.0, "[899/899] torch.learnable"),
    ],
)
def test_a_line(done: int, elapsed: float, said: str) -> None:
    assert line(done, 899, "torch.learnable", elapsed) == said


def test_without_a_terminal_a_line_comes_every_ten_seconds() -> None:
    stream, now, told = io.StringIO(), [0.0], []
    display = Display(told.append, stream, lambda: now[0])
    display.pytest_xdist_node_collection_finished([f"i{i}" for i in range(10)])
    display.pytest_xdist_node_collection_finished([f"i{i}" for i in range(10)])
    for i in range(10):
        display.pytest_runtest_logstart(f"npu::onnx/{i}")
        now[0] += 4.0
        display.pytest_runtest_logfinish()
    assert stream.getvalue().splitlines() == [
        "[ 3/10] npu, about 0:28 left",
        "[ 6/10] npu, about 0:16 left",
        "[ 9/10] npu, about 0:04 left",
    ]
    assert told == [f"npu::onnx/{i}" for i in range(10)]


def test_in_a_terminal_the_bar_shows_the_whole_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    stream: Any = Terminal()
    display = Display(lambda _: None, stream)
    name = "torch.quantized_decomposed.per_channel_group"
    display.pytest_xdist_node_collection_finished(["a", "b"])
    display.pytest_runtest_logstart(f"{name}::onnx/a")
    display.pytest_runtest_logfinish()
    display.pytest_unconfigure()
    assert name in stream.getvalue().replace("\n", "")
    assert "1/2" in stream.getvalue()


def test_how_far_sweeps_are_is_told_while_they_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_TICK", 0.01)
    told: list[str] = []
    now = iter(float(n) for n in range(1 << 30))
    sweeps = Sweeps(tmp_path, told.append, lambda: next(now))
    journal = Journal(tmp_path, "npu::all", {"inputs": 4 * 10**9})
    sweeps.start()
    time.sleep(0.1)
    assert told == []
    journal.add(Done("a", 10**9, 10**9, 0, "", 0.0, 0.0, 0.0, "int8"))
    end = time.monotonic() + 30
    while not told and time.monotonic() < end:
        time.sleep(0.01)
    sweeps.stop()
    assert told[0].startswith("1.00 of 4.00 billion inputs, ")
    assert told[0].endswith(" left")
