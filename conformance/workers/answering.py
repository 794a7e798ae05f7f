"""The backend's own process: it makes the backend, says what it offers, and answers until nobody asks any more.

Nothing here is imported by who asks, and nothing of the backend is imported anywhere else.
"""

import contextlib
import ctypes
import gc
import io
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.backends.registry import NotInstalled, UnknownBackend, resolve
from halfeven.conformance.configuration import Configuration
from halfeven.conformance.engine.batch import load, pieces
from halfeven.conformance.engine.call import Answer, Call
from halfeven.conformance.quote import NoScript, Spelt
from halfeven.conformance.workers.frames import Channel
from halfeven.conformance.workers.greeting import greeting
from halfeven.conformance.workers.inside import Inside, text_of
from halfeven.reference import Grid

__all__ = ["PRINTED", "answer_all", "streams", "taken"]

PRINTED = 1 << 16  # bytes of what a call prints
_STDOUT = (1, 2)
_STACK = 1000  # calls deep: what is asked here needs them, whatever limit the backend set


def answer_all(channel: Channel, spec: str, profile: str | None, printed: int) -> None:
    """Greet, then answer batches of calls and questions about the backend until the channel closes.

    ``printed`` is the file that the backend's output goes to.
    """
    mine = os.getpid()
    try:
        worker = Inside(_one(spec, profile), alone=True)
        told = greeting(worker.offer)
    except BaseException as error:  # noqa: BLE001 - a module may raise anything, SystemExit too
        told = {"refused": _refusal(error), "said": text_of(error)}
    if os.getpid() != mine:  # the backend forked while it was made, and this is a copy
        os._exit(0)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _STACK))
    gc.collect()
    gc.freeze()  # what was imported stays: to look at it again and again would take a tenth of the time
    channel.send([_text(told)])
    if "refused" in told:
        return
    taken(printed)
    with contextlib.suppress(EOFError):
        while True:
            frame = channel.receive()
            if frame[:1] == b"{":
                channel.send([_text(_told(worker, json.loads(bytes(frame))))])
                continue
            for call in load(frame, Call):
                answer = worker.answer(call)
                if os.getpid() != mine:  # the call forked, and this is its copy
                    os._exit(0)
                _open_streams(printed)
                channel.send(_pieces(replace(answer, printed=text) if (text := taken(printed)) else answer))


def streams(printed: int) -> None:
    """Let what Python, C and other programs write go to ``printed``, at once, and let nothing come in."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    if nothing:  # a backend may have closed 0: then that is the number it got
        os.dup2(nothing, 0)
        os.close(nothing)
    for descriptor in _STDOUT:
        os.dup2(printed, descriptor)
    for name, descriptor in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        raw = open(descriptor, "wb" if descriptor else "rb", 0, closefd=False)  # noqa: SIM115 - it stays open
        stream = io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    with contextlib.suppress(OSError, ValueError):  # C's own buffer: by line
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 1, 0)


def taken(printed: int) -> str:
    """What was printed since the last time, as far as it is kept."""
    size = os.fstat(printed).st_size
    if not size:
        return ""
    text = os.pread(printed, PRINTED, 0).decode(errors="replace")
    os.ftruncate(printed, 0)
    return text if size <= PRINTED else f"{text}\n(the rest was not kept)"


def _one(spec: str, profile: str | None) -> Backend:
    found = resolve(spec, profile)
    if len(found) != 1:
        msg = f"backend={spec!r} names {len(found)} backends: give one of {', '.join(b.name for b in found)}"
        raise UnknownBackend(msg)
    return found[0]


def _refusal(error: BaseException) -> str:
    kinds = {"NotInstalled": NotInstalled, "UnknownBackend": UnknownBackend, "TypeError": TypeError}
    return next((name for name, kind in kinds.items() if isinstance(error, kind)), "ValueError")


def _told(worker: Inside, asked: Mapping[str, Any]) -> dict[str, Any]:
    questions: dict[str, Callable[[Any], Any]] = {
        "path": lambda _: str(worker.path()),
        "script": lambda q: _spelt(worker.script(q[0], q[1], None if q[2] is None else _configuration(q[2]))),
    }
    [(what, about)] = asked.items()
    try:
        return {what: questions[what](about)}
    except NoScript as reason:
        return {"raised": str(reason)}
    except BaseException as error:  # noqa: BLE001 - as for a call
        return {"raised": f"{type(error).__name__}: {text_of(error)}"}


def _spelt(found: Spelt) -> list[str]:
    return [str(found.header), str(found.called), str(found.steps), str(found.refusals)]


def _configuration(data: Mapping[str, Any]) -> Configuration:
    lists = {name: None if data[name] is None else tuple(data[name]) for name in ("shape", "block_size")}
    return Configuration(**{**data, **lists, "grid": Grid(*data["grid"])})


def _pieces(answer: Answer) -> list[Any]:
    try:
        return pieces([answer])
    except Exception as error:  # noqa: BLE001 - such as an integer of a million digits
        fault = f"wrong result: it cannot be handed over: {type(error).__name__}: {error}"[:PRINTED]
        return pieces([replace(answer, value=None, faults=(*answer.faults, fault))])


def _open_streams(printed: int) -> None:
    """A call may have closed a descriptor: the next file to be opened would get its number, and what is printed."""
    for descriptor in (0, *_STDOUT):
        try:
            os.fstat(descriptor)
        except OSError:
            streams(printed)
            return


def _text(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data).encode()
