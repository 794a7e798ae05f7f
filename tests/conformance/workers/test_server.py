"""The fork server: its ends, its children's ends, and what is left of them."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from misbehaving import module

from halfeven.conformance.engine.call import Call
from halfeven.conformance.engine.memory import plain
from halfeven.conformance.workers.child import Child
from halfeven.conformance.workers.process import Forked
from halfeven.conformance.workers.server import FOLDER, NoServer, Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no fork server elsewhere")


def calls(n: int) -> list[Call]:
    scale, zero = plain(np.float32(1)), plain(np.int8(0))
    grid = {"qmin": -128, "qmax": 127}
    return [Call("onnx:quantize", (plain(np.full(4, i % 251 - 125, np.float32)), scale, zero), grid) for i in range(n)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "served.py").write_text(module())
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(FOLDER, raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


@pytest.fixture
def child(server: Server) -> Iterator[Child]:
    made = Child(server, "served:Backend", timeout=10)
    yield made
    made.close()


def forked(child: Child) -> Forked:
    process = child._process
    assert isinstance(process, Forked)
    return process


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def within(seconds: float, true: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def test_it_has_computed_nothing_and_is_nobody_elses() -> None:
    with Server() as server:
        child = Child(server, "served:Backend")
        assert child.offer.name == "Backend"
        child.close()
        assert os.listdir(f"/proc/{server.pid}/task") == [str(server.pid)]  # noqa: PTH208 - no thread but its first
        folder = Path(os.environ[FOLDER])
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()
    assert FOLDER not in os.environ


def test_a_child_is_made_within_milliseconds(server: Server, child: Child) -> None:
    assert child.offer
    start = time.perf_counter()
    other = Child(server, "served:Backend")
    assert other.offer
    other.close()
    assert time.perf_counter() - start < 1


def test_several_processes_share_one(server: Server, child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    assert child.offer
    assert server._folder is not None
    monkeypatch.setenv(FOLDER, server._folder.name)
    text = """
import sys, os
from halfeven.conformance.workers.child import Child
from halfeven.conformance.workers.server import Server
server = Server()
child = Child(server, "served:Backend")
print(child.offer.name, server.pid, child._process.nurse)
"""
    path = os.pathsep.join(map(str, sys.path))
    command = [sys.executable, "-c", text]
    found = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})
        for _ in range(2)
    ]
    for process in found:
        name, pid, _ = process.communicate(timeout=60)[0].split()
        assert (name, pid) == ("Backend", "None")


@pytest.mark.parametrize("how", ["closed", "killed", "server killed"])
def test_an_ended_child_leaves_nothing(folder: Path, how: str) -> None:
    body = """\
one = subprocess.Popen(["sleep", "1000"], start_new_session=True)
two = int(subprocess.run(["sh", "-c", "setsid sleep 1000 >&- & echo $!"], stdout=-1).stdout)
print(one.pid, two, os.getpid())"""
    (folder / "daemons.py").write_text(module(in_a_call=body))
    with Server() as server:
        child = Child(server, "daemons:Backend")
        answers = child.answers(calls(4))
        left = [int(pid) for pid in answers[2].printed.split()]
        assert len(left) == 3
        assert all(map(lives, left))
        assert server.pid is not None
        match how:
            case "closed":
                child.close()
            case "killed":
                os.kill(left[-1], signal.SIGKILL)
            case "server killed":
                os.kill(server.pid, signal.SIGKILL)
        assert within(5, lambda: not any(map(lives, left)))
        child.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_who_started_it(folder: Path, how: signal.Signals) -> None:
    text = """
import time
from halfeven.conformance.workers.child import Child
from halfeven.conformance.workers.server import Server
server = Server()
child = Child(server, "served:Backend")
child.offer
print(server._folder.name)
print(server.pid, child._process.nurse, child._process.child, flush=True)
time.sleep(1000)
"""
    path = os.pathsep.join(map(str, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    with process:
        assert process.stdout is not None
        made = Path(process.stdout.readline().strip())
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert all(map(lives, pids))
        assert made.is_dir()
        process.send_signal(how)
    assert within(5, lambda: not any(map(lives, pids))), [pid for pid in pids if lives(pid)]
    assert not made.exists()


def test_a_killed_server_takes_its_children_along_and_is_replaced(server: Server, child: Child) -> None:
    assert child.answers(calls(3))[2].kind == "returned"
    first, pids = server.pid, [forked(child).nurse, forked(child).child]
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert within(5, lambda: not any(map(lives, pids)))
    ended, *rest = child.answers(calls(3))
    assert ended.kind == "ended"
    assert [a.kind for a in rest] == ["returned", "returned"]
    assert server.pid != first


def test_a_killed_nurse_takes_its_child_along(child: Child, folder: Path) -> None:
    assert child.offer
    pids = [forked(child).nurse, forked(child).child]
    os.kill(pids[0], signal.SIGKILL)
    assert within(5, lambda: not any(map(lives, pids)))


@pytest.mark.parametrize("seed", range(20))
def test_killed_at_any_point_no_answer_is_lost_or_doubled(server: Server, child: Child, seed: int) -> None:
    draw = random.Random(seed)
    asked = calls(400)
    assert child.offer
    victims = {"child": forked(child).child, "nurse": forked(child).nurse, "server": server.pid}
    victim = victims["server" if seed % 7 == 0 else draw.choice(["child", "nurse"])]  # a new server takes seconds
    assert victim is not None

    def kill() -> None:
        time.sleep(draw.random() * 0.15)
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    answers = child.answers(asked)
    killer.join()
    assert len(answers) == len(asked)
    ended = [i for i, a in enumerate(answers) if a.kind == "ended"]
    assert len(ended) <= 1, [answers[i] for i in ended]
    for i, (call, answer) in enumerate(zip(asked, answers, strict=True)):
        if i not in ended:
            assert answer.kind == "returned"
            assert answer.value.tolist() == call.positional[0].view().tolist()


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    for python, words in [(str(tmp_path / "none"), "cannot be started"), ("/bin/true", "cannot run a worker")]:
        with Server(python) as server, pytest.raises(NoServer, match=words):
            server.child("served:Backend", None, 1 << 30)
    with Server("/bin/true") as server:
        child = Child(server, "served:Backend")
        assert child.answers(calls(1))[0].message.startswith("not asked: backend 'served:Backend' cannot be started")
