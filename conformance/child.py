"""Work in a process of its own: a backend may end the process it runs in, and whoever waits for it must notice."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from halfeven.conformance.interrupt import interrupt

__all__ = ["Ending", "Tell", "run"]

Tell = Callable[[str], None]
"""What a task calls to report how far it is."""

_GRACE = 10.0  # seconds from asking a process to end until it is killed
_POLL = 0.1


@dataclass(frozen=True)
class Ending:
    """How a child process ended.

    Attributes:
        told: what the task reported on its way, in order.
        value: what the task returned; None where the process ended before the task did.
        status: the exit status; the negative number of the signal that ended the process.
        stopped: whether this process was told to stop meanwhile (SIGINT or SIGTERM).
    """

    told: tuple[str, ...]
    value: int | None
    status: int
    stopped: bool = False

    @property
    def words(self) -> str:
        """How a process ended that did not finish its task, in words."""
        if self.status >= 0:
            return f"the process ended early (exit status {self.status})"
        try:
            name = f", {signal.Signals(-self.status).name}"
        except ValueError:  # a real-time signal has no name
            name = ""
        return f"the process died (signal {-self.status}{name})"


def run(task: Callable[..., int], *arguments: Any, quiet: bool = False) -> Ending:
    """Call ``task(tell, *arguments)`` in a new process and wait until that has ended.

    SIGINT and SIGTERM reach the task as KeyboardInterrupt, once; a second one, or 10 seconds, kill the process. It
    is interrupted likewise where this process dies. ``quiet`` throws away what it prints. ``task`` is a function of
    a module; it and ``arguments`` are pickled.
    """
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sending, quiet, task, arguments))
    told: list[str] = []
    value: int | None = None
    with _signals() as stops:
        process.start()
        sending.close()
        last_call, asked = 0.0, False
        # The process itself is asked whether it lives: what it forked may keep its end of the pipe open.
        while (alive := process.is_alive()) or receiving.poll():
            with contextlib.suppress(EOFError, OSError):
                if receiving.poll(_POLL):
                    match receiving.recv():
                        case str(words):
                            told.append(words)
                        case int(number):
                            value = number
                    continue
            if not alive:
                break
            process.join(_POLL)
            if (stops or value is not None) and not last_call:
                last_call = time.monotonic() + _GRACE
            if stops and not asked:
                asked = True
                process.terminate()
            elif len(stops) > 1 or (last_call and time.monotonic() > last_call):
                process.kill()
        process.join()
    return Ending(tuple(told), value, process.exitcode or 0, bool(stops))


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """The stop signals that come meanwhile. A child started inside is spared those of the terminal."""
    stops: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield stops
        return
    before = {s: signal.signal(s, lambda number, _: stops.append(number)) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _child(sending: Connection, quiet: bool, task: Callable[..., int], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal, which the parent answers for all
    signal.signal(signal.SIGTERM, interrupt)
    threading.Thread(target=_follow_parent, daemon=True).start()
    if quiet:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(nowhere, descriptor)
    sending.send(task(sending.send, *arguments))


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
