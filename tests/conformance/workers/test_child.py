"""A backend in a process of its own: whatever it does, its calls are answered, and nobody else's are touched."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from misbehaving import AT_IMPORT, BODIES, CALLS, IN_A_CALL, Came, module

from halfeven.conformance.backends.registry import NotInstalled, UnknownBackend
from halfeven.conformance.engine.call import Answer, Call, CallShape
from halfeven.conformance.engine.memory import plain
from halfeven.conformance.workers.child import Child
from halfeven.conformance.workers.server import Server

MEMORY = 1 << 30  # bytes: torch takes a fifth


def calls(repeats: int = 1, n: int = CALLS) -> list[Call]:
    x = np.linspace(-9, 9, 8, dtype=np.float32)
    arrays = [tuple(map(plain, (x * i, np.float32(0.5), np.int8(3)))) for i in range(1, n + 1)]
    return [Call("onnx:quantize", a, {"qmin": -128, "qmax": 127}, CallShape(repeats=repeats)) for a in arrays]


def expected(call: Call) -> list[int]:
    x, scale, zero = (a.view() for a in call.positional)
    return [int(c) for c in np.clip(np.rint(x / scale) + zero, -128, 127)]


def is_right(answer: Answer, call: Call) -> bool:
    codes: Any = answer.value
    return (
        (answer.kind, answer.faults) == ("returned", ())
        and getattr(codes, "dtype", None) == np.int8
        and codes.tolist() == expected(call)
    )


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    found = tmp_path_factory.mktemp("backends")
    (found / "right.py").write_text(module())
    sys.path.insert(0, str(found))
    yield found
    sys.path.remove(str(found))


def named(folder: Path, name: str, text: str) -> str:
    spec = "".join(c if c.isalnum() else "_" for c in f"m {name}")
    (folder / f"{spec}.py").write_text(text)
    return f"{spec}:Backend"


def right(server: Server, folder: Path) -> bool:
    child = Child(server, "right:Backend")
    try:
        asked = calls()
        return all(map(is_right, child.answers(asked), asked))
    finally:
        child.close()


@pytest.mark.parametrize("name", IN_A_CALL)
def test_a_call_that_misbehaves(server: Server, folder: Path, name: str) -> None:
    body, came = IN_A_CALL[name]
    spec = named(folder, f"call {name}", module(in_a_call=body))
    child = Child(server, spec, timeout=1 if "timed out" in came.message else 30, memory=MEMORY)
    asked = calls(came.repeats)
    answers = child.answers(asked)
    child.close()
    assert len(answers) == len(asked)
    wrong = [i for i, (a, c) in enumerate(zip(answers, asked, strict=True)) if not is_right(a, c)]
    assert wrong in ([came.at], []) or came.repeats > 1, answers
    answer = answers[came.at]
    assert answer.kind == came.kind, answer
    assert re.search(came.message, answer.message), answer.message[:200]
    assert re.search(came.error, answer.error[0] if answer.error else ""), answer
    assert len(answer.faults) == bool(came.fault), answer
    assert re.search(came.fault, " ".join(answer.faults)), answer
    assert re.search(came.value, repr(answer.value)), answer
    assert re.search(came.printed, answer.printed), answer.printed[:200]
    assert came != Came() or is_right(answer, asked[came.at]), answer
    assert right(server, folder)


@pytest.mark.parametrize("where", ["at_import", "in_constructor"])
@pytest.mark.parametrize("name", BODIES)
def test_a_backend_that_does_not_load(server: Server, folder: Path, name: str, where: str) -> None:
    body, words = BODIES[name]
    spec = named(folder, f"{where} {name}", module(**{where: body}))
    child = Child(server, spec, first=2 if "timed out" in words else 30, memory=MEMORY)
    with pytest.raises(UnknownBackend, match=words):
        child.offer  # noqa: B018 - it is asked for
    [answer] = child.answers(calls()[:1])
    assert answer.kind == "ended"
    assert answer.message.startswith(f"not asked: backend {spec!r} does not load: ")
    assert re.search(words, answer.message)
    child.close()
    assert right(server, folder)


@pytest.mark.parametrize("where", ["at_import", "in_constructor"])
@pytest.mark.parametrize("name", AT_IMPORT)
def test_a_backend_that_loads_all_the_same(server: Server, folder: Path, name: str, where: str) -> None:
    child = Child(server, named(folder, f"{where} {name}", module(**{where: AT_IMPORT[name]})), timeout=30)
    asked = calls()
    answers = child.answers(asked)
    child.close()
    assert all(map(is_right, answers, asked)), answers
    assert right(server, folder)


def test_there_are_sixty() -> None:
    assert len(IN_A_CALL) + 2 * len(BODIES) + 2 * len(AT_IMPORT) >= 60


def test_what_a_user_typed_wrong(server: Server) -> None:
    for spec, kind, words in [
        ("halfeven.onx", UnknownBackend, "'halfeven.onx' is not known"),
        ("halfeven.onnx", ValueError, "profile='nonsense'"),
        ("no_such_module:Backend", UnknownBackend, "does not import: ModuleNotFoundError"),
        ("math:pi", TypeError, "is not accepted"),
        ("default", UnknownBackend, "names"),
    ]:
        child = Child(server, spec, profile="nonsense" if spec == "halfeven.onnx" else None)
        with pytest.raises(kind, match=words):
            child.offer  # noqa: B018
        child.close()
    assert issubclass(NotInstalled, ValueError)
