"""What every worker in another process does: batches, time-outs, restarts, giving up; commands."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from misbehaving import module

from halfeven.conformance.backends.registry import UnknownBackend, resolve
from halfeven.conformance.configuration import Configuration
from halfeven.conformance.engine.batch import dump
from halfeven.conformance.engine.call import Answer, Call
from halfeven.conformance.engine.memory import plain
from halfeven.conformance.quote import NoScript, Spelt
from halfeven.conformance.workers import server as servers
from halfeven.conformance.workers.child import Child
from halfeven.conformance.workers.inside import Inside
from halfeven.conformance.workers.pipe import Pipe
from halfeven.conformance.workers.process import Process, status_words
from halfeven.conformance.workers.remote import Remote
from halfeven.conformance.workers.server import Server
from halfeven.reference import Grid

Make = Callable[..., Child]


def calls(n: int, size: int = 4) -> list[Call]:
    scale, zero = plain(np.float32(1)), plain(np.int8(0))
    grid = {"qmin": -128, "qmax": 127}
    x = [np.full(size, i % 251 - 125, np.float32) for i in range(n)]
    return [Call("onnx:quantize", (plain(a), scale, zero), grid) for a in x]


def all_right(answers: Sequence[Answer], asked: Sequence[Call]) -> bool:
    return len(answers) == len(asked) and all(
        a.kind == "returned" and np.array_equal(a.value, c.positional[0].view())
        for a, c in zip(answers, asked, strict=True)
    )


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


@pytest.fixture
def make(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.syspath_prepend(str(tmp_path))
    made: list[Child] = []

    def child(text: str, timeout: float = 5, by: Server | None = None, **options: float) -> Child:
        (tmp_path / "given.py").write_text(text)
        made.append(Child(by or server, "given:Backend", timeout=timeout, **options))  # type: ignore[arg-type]
        return made[-1]

    yield child
    for worker in made:
        worker.close()


def test_batches_of_every_size(make: Make) -> None:
    child = make(module())
    for n in (0, 1, 15, 16, 17, 600):
        assert all_right(child.answers(calls(n)), calls(n))


@pytest.mark.parametrize("size", [1, 1 << 10, 1 << 14, 1 << 16, 1 << 20])
def test_frames_of_every_length(make: Make, size: int) -> None:
    child = make(module())
    assert all_right(child.answers(calls(20, size)), calls(20, size))
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0  # noqa: PTH208 - names alone
    child.answers(calls(20, size))
    assert not before or len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_call_that_ends_the_process_is_one_answer_and_the_rest_is_asked(make: Make) -> None:
    child = make(module(in_a_call="os._exit(3)"))
    kinds = [a.kind for a in child.answers(calls(9))]
    assert kinds == ["returned", "returned", "ended"] * 3


def test_what_was_answered_before_an_end_is_kept_though_nobody_reads_any_more() -> None:
    class Ending:
        """A process that answered fifteen calls and ended before the second batch was sent."""

        def __init__(self) -> None:
            self.channel, self.sent = self, 0
            self.frames = [json.dumps(GREETING).encode(), *(dump([Answer("returned", i)]) for i in range(15))]

        def send(self, pieces: Sequence[object]) -> None:
            self.sent += 1
            if self.sent > 1:
                raise BrokenPipeError

        def receive(self, deadline: float | None = None, *, more: bool = False) -> bytes:
            if not self.frames:
                raise EOFError
            return self.frames.pop(0)

        def end(self, grace: float = 0) -> str:
            return "signal 11 (SIGSEGV)"

        def printed(self) -> str:
            return "last words"

        def close(self) -> None:
            pass

    class Worker(Remote):
        def _start(self) -> Process:
            return Ending()

    [*answered, ended] = Worker("ending").answers(calls(100))[:16]
    assert [a.value for a in answered] == [*range(15)]
    assert (ended.kind, ended.message, ended.printed) == ("ended", "signal 11 (SIGSEGV)", "last words")


def test_five_ends_in_a_row_are_enough(make: Make) -> None:
    child = make(module(in_a_call="").replace("codes = ", "os.abort()\n        codes = "))
    answers = child.answers(calls(200))
    assert [a.message for a in answers[:5]] == ["signal 6 (SIGABRT)"] * 5
    told = "not asked: the worker ended 5 times, last: signal 6 (SIGABRT)"
    assert {(a.kind, a.message) for a in answers[5:]} == {("ended", told)}
    assert child.answers(calls(1))[0].message == told


def test_three_late_calls_are_enough(make: Make) -> None:
    child = make(module(in_a_call="time.sleep(1000)"), timeout=0.5, first=3)
    answers = child.answers(calls(12))
    late = [i for i, a in enumerate(answers[:9]) if a.message == "timed out after 0.5 s"]
    assert late == [2, 5, 8]
    told = "not asked: the worker ended 3 times, last: timed out after 0.5 s"
    assert [a.message for a in answers[9:]] == [told] * 3


def test_the_first_call_of_a_process_may_take_longer(make: Make) -> None:
    slow = module().replace(
        "Backend.calls += 1", "Backend.calls += 1\n        time.sleep(1.5 if self.calls < 2 else 0)"
    )
    child = make(slow, timeout=0.7)
    assert all_right(child.answers(calls(3)), calls(3))


def test_a_spent_budget(make: Make) -> None:
    slow = module().replace("Backend.calls += 1", "Backend.calls += 1\n        time.sleep(0.1)")
    child = make(slow, budget=1.5)
    child._left = 120.0  # to start: another process may keep the processor
    assert child.offer
    child._left = 1.5
    answers = child.answers(calls(8)) + child.answers(calls(40))
    kinds = [a.kind for a in answers]
    n = kinds.index("ended")
    assert n < 20
    assert answers[n].message == "timed out: the budget of 1.5 s is spent"
    assert {a.message for a in answers[n + 1 :]} == {"not asked: the budget of 1.5 s is spent"}
    assert len(answers) == 48


def test_a_backend_is_questioned(make: Make) -> None:
    c = Configuration("quantize", "float32", Grid(-128, 127), (4,), "channel", (1,))
    text = module() + "\n    def path(self): return 'kernel 7'\n"
    child = make(
        text + "    def script(self, c): return 'import npu', f'npu({c.grid.qmin}, {c.block_size}, {c.shape})'\n"
    )
    assert child.path() == "kernel 7"
    assert child.script("onnx:quantize", {}, c) == Spelt("import npu", "npu(-128, (1,), (4,))")
    hanging = make(text.replace("return 'kernel 7'", "time.sleep(1000)"), timeout=0.5)
    assert hanging.path() == "(not known: timed out after 2 s)"
    assert all_right(hanging.answers(calls(2)), calls(2))
    called = make(module()).script("onnx:quantize", {"0": "x", "qmin": "1"}, c).called
    assert called == "Backend().quantize(x, qmin=1)"
    raising = make(module() + "\n    def path(self): raise RuntimeError('no board')\n")
    assert raising.path() == "(not known: RuntimeError: no board)"


def test_the_answers_are_those_of_the_worker_inside(server: Server) -> None:
    spec = "torch.learnable"
    inside, child = Inside(resolve(spec)[0]), Child(server, spec)
    assert child.offer == inside.offer
    formula = inside.offer.functions[0]
    assert child.script(formula, {"x": "x"}) == inside.script(formula, {"x": "x"})
    with pytest.raises(NoScript, match="none/such"):
        child.script("none/such", {})
    child.close()


def test_a_backend_of_its_own_where_nothing_forks(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_FORKS", False)
    with Server() as alone:
        child = make(module(in_a_call="print('heard'); os.abort()"), by=alone, timeout=20)
        answers = child.answers(calls(5))
        assert [a.kind for a in answers] == ["returned", "returned", "ended", "returned", "returned"]
        assert answers[2].message == "signal 6 (SIGABRT)"
        child.close()


@pytest.mark.skipif(sys.platform != "linux", reason="another interpreter is served by forking")
def test_another_interpreter_without_this_package(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nunset PYTHONPATH\nexec {shlex.quote(sys.executable)} "$@"\n')
    other.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with Server(str(other)) as server:
        child = make(module(in_a_call="import halfeven.reference as r; print(r.__file__)"), by=server, timeout=20)
        asked = calls(4)
        answers = child.answers(asked)
        assert all_right(answers, asked), answers
        assert "/sources/halfeven/reference/" in answers[2].printed
        child.close()


PROGRAM = """\
import json, os, signal, sys, time
from halfeven.conformance.engine.batch import dump, load
from halfeven.conformance.engine.batch import dump
from halfeven.conformance.engine.call import Answer, Call
take, give = sys.stdin.buffer, sys.stdout.buffer
print(json.dumps({greeting}), flush=True)
n = 0
while len(head := take.read(8)) == 8:
    for call in load(take.read(int.from_bytes(head, "little")), Call):
        n += 1
        if n == 3:
            {third}
        frame = dump([Answer("returned", call.positional[0].view().astype("int8"))])
        give.write(len(frame).to_bytes(8, "little") + frame)
        give.flush()
print("bye", file=sys.stderr)
"""
GREETING = {"name": "device", "profile": "onnx", "operations": {"quantize": ["qmin", "qmax"]}}


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pipe]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, sys.path)))

    def made(third: str = "pass", greeting: object = GREETING, timeout: float = 5) -> Pipe:
        path = tmp_path / "a device.py"
        path.write_text(PROGRAM.format(greeting=repr(greeting), third=third))
        return Pipe(f"cmd:{shlex.join([sys.executable, str(path)])}", timeout=timeout, first=20)

    return made


def test_a_command_answers(command: Callable[..., Pipe]) -> None:
    device = command()
    assert (device.offer.name, device.offer.operations) == ("device", {"quantize": ("qmin", "qmax")})
    for n, size in ((300, 4), (3, 1 << 20)):
        assert all_right(device.answers(calls(n, size)), calls(n, size))
    assert device.path() == ""
    with pytest.raises(NoScript, match="a script cannot ask it"):
        device.script("onnx:quantize", {}, Configuration("quantize", "float32", Grid(0, 1), (1,)))
    device.close()


@pytest.mark.parametrize(
    ("third", "words"),
    [
        ("os.kill(os.getpid(), 11)", "signal 11 (SIGSEGV)"),
        ("sys.exit(7)", "exit status 7"),
        ("time.sleep(1000)", "timed out after 1 s"),
        ("give.write(bytes(8)); give.flush(); continue", "the channel broke: cut short: 0 bytes of 8 or more"),
        ("give.write(b'x' * 999); give.flush(); continue", "the channel broke: a frame of "),
    ],
)
def test_a_command_that_misbehaves(command: Callable[..., Pipe], third: str, words: str) -> None:
    device = command(third, timeout=1)
    answers = device.answers(calls(3))
    device.close()
    [n] = [i for i, a in enumerate(answers) if a.kind == "ended"]
    assert n == 2
    assert answers[n].message.startswith(words), answers[n]


@pytest.mark.parametrize(
    ("greeting", "words"),
    [
        ({"name": "device"}, "an offer has a name and a profile"),
        ({**GREETING, "profile": "mine"}, "profile of the offer is not accepted"),
        ([1], "an offer has a name and a profile"),
    ],
)
def test_a_greeting_that_is_none(command: Callable[..., Pipe], greeting: object, words: str) -> None:
    device = command(greeting=greeting)
    with pytest.raises(UnknownBackend, match=words):
        device.offer  # noqa: B018 - it is asked for
    assert device.answers(calls(1))[0].message.startswith("not asked: ")
    device.close()


def test_a_command_that_is_none() -> None:
    with pytest.raises(ValueError, match="give a command"):
        Pipe("cmd:")
    for command, words in [
        ("./no-such-device", "cannot be started"),
        ("true", "exit status 0"),
        ("echo hi", "does not"),
    ]:
        device = Pipe(f"cmd:{command}", timeout=2)
        with pytest.raises(UnknownBackend, match=words):
            device.offer  # noqa: B018
        device.close()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exit status 0"),
        (-9, "signal 9 (SIGKILL), as when memory runs out"),
        (-40, "signal 40 (a real-time signal)"),
    ],
)
def test_how_a_process_ended(status: int, words: str) -> None:
    assert status_words(status) == words
