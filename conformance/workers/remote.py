"""What every worker in another process shares: batches that overlap, time-outs, restarts, and giving up."""

import contextlib
import json
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from halfeven.conformance.backends.axes import COMPILED, split
from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.backends.registry import NotInstalled, UnknownBackend
from halfeven.conformance.engine.batch import Damaged, load, pieces
from halfeven.conformance.engine.call import Answer, Call
from halfeven.conformance.engine.memory import Strided
from halfeven.conformance.workers.greeting import offer_of
from halfeven.conformance.workers.process import Process

__all__ = ["BROKEN", "BUDGET", "ENDS", "TIMEOUT", "TIMEOUTS", "Remote"]

TIMEOUT = 30.0  # seconds that a call may take
BUDGET = 600.0  # seconds that a backend may take
TIMEOUTS = 3  # so many late calls, and it is not asked any more
ENDS = 5  # so many ends in a row, likewise
_FIRST = 4  # times as long: the first call of a process may import or compile
_CALLS, _BYTES = 256, 4 << 20  # of a batch
_FIRST_CALLS = 16
_AHEAD = 2  # batches under way
_MANY = 16  # answers to come
_GRACE = 1.0
BROKEN = (EOFError, OSError, ValueError)  # late, gone, or no frame
_REFUSALS: dict[str, type[Exception]] = {
    "NotInstalled": NotInstalled,
    "UnknownBackend": UnknownBackend,
    "TypeError": TypeError,
}


class Remote(ABC):
    """A worker whose backend lives in processes, one after the other where they end."""

    sweeps = False

    def __init__(self, name: str, timeout: float = TIMEOUT, first: float | None = None, budget: float = BUDGET) -> None:
        """``name`` is what a user calls the backend; the rest are seconds (``first``: of a process's first call)."""
        self.name, self.timeout = name, timeout
        self.first = _FIRST * timeout if first is None else first
        self.stops = False
        """Whether an end leaves the rest of a batch unasked: who judges a check looks no further."""
        self._budget, self._left = budget, budget
        self._process: Process | None = None
        self._offer: Offer | None = None
        self._fresh = True
        self._compiles = COMPILED in split(name)[1]  # then any call may be the first of its kind
        self._ends = self._late = 0
        self._given_up = ""
        self._refused: Exception | None = None

    @abstractmethod
    def _start(self) -> Process:
        """A new process; OSError or RuntimeError where there can be none."""

    @property
    def offer(self) -> Offer:
        """What the backend offers.

        Raises:
            ValueError: it does not load; the message says why.
            TypeError: the object named is no backend.
        """
        if self._offer is None:
            self._greeted(time.monotonic() + self._left)
        if self._offer is None:
            raise self._refused or UnknownBackend(self._given_up)
        return self._offer

    def answers(self, calls: Sequence[Call]) -> list[Answer]:
        """One answer per call, in order, however often the process ends."""
        done: list[Answer] = []
        begun = time.monotonic()
        try:
            while len(done) < len(calls) and not self._given_up:
                self._answer(calls, done, begun + self._left)
                if self.stops and done and done[-1].kind == "ended":
                    break
        finally:
            if len(done) < len(calls):  # interrupted, or given up: nobody waits for what was asked
                self.close()
        self._left -= time.monotonic() - begun
        why = self._given_up or "the process ended in a call before"
        not_asked = Answer("ended", message=f"not asked: {why}")
        return done + [not_asked] * (len(calls) - len(done))

    def close(self) -> None:
        """End the process, and all that it has started."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _answer(self, calls: Sequence[Call], done: list[Answer], end: float) -> None:
        """Ask from where ``done`` ends, until all is answered or the process has ended."""
        process = self._greeted(end)
        if process is None:
            return
        asked = len(done)
        batches, under_way = _batches(calls, asked), deque[int]()
        try:
            while len(done) < len(calls):
                while len(under_way) < _AHEAD and (batch := next(batches, None)) is not None:
                    with contextlib.suppress(ConnectionError):  # it has ended; what it answered before is still to come
                        process.channel.send(pieces(batch))
                    asked += len(batch)
                    under_way.append(asked)
                upto = under_way.popleft()
                while len(done) < upto:
                    answers = load(self._received(process, end, asked - len(done) >= _MANY), Answer)
                    if not 0 < len(answers) <= asked - len(done):
                        msg = "answers that no call has asked for"
                        raise Damaged(msg)
                    done += answers
                    self._fresh, self._ends = False, 0
        except BROKEN as error:
            words, printed = self._ended(process, error)
            done.append(Answer("ended", message=words, printed=printed))

    def _received(self, process: Process, end: float, more: bool = False) -> Any:
        limit = self.first if self._fresh or self._compiles else self.timeout
        try:
            return process.channel.receive(min(time.monotonic() + limit, end), more=more)
        except TimeoutError:
            if time.monotonic() >= end:
                self._given_up = f"the budget of {self._budget:g} s is spent"
                msg = f"timed out: {self._given_up}"
                raise TimeoutError(msg) from None
            msg = f"timed out after {limit:g} s"
            raise TimeoutError(msg) from None

    def _ended(self, process: Process, error: Exception) -> tuple[str, str]:
        """How the process ended, and what it had printed; it is let go of, and perhaps no other one is started."""
        if isinstance(error, TimeoutError):
            words = str(error)
            self._late += 1
        else:
            broken = f"the channel broke: {error or 'it was closed'}"
            words = broken if isinstance(error, ValueError) else process.end(_GRACE) or broken
        process.end()
        printed = process.printed()
        self.close()
        self._ends += 1
        if not self._given_up and (self._late >= TIMEOUTS or self._ends >= ENDS):
            self._given_up = f"the worker ended {max(self._ends, self._late)} times, last: {words}"
        return words, printed

    def _greeted(self, end: float) -> Process | None:
        """The process, where it lives or another can be started, and has said what it offers."""
        while self._process is None and not self._given_up:
            try:
                self._process, self._fresh = self._start(), True
            except (OSError, RuntimeError) as error:
                self._given_up = f"backend {self.name!r} cannot be started: {error}"
                return None
            try:
                told = json.loads(bytes(self._received(self._process, end)))
                if "refused" in told:
                    self._refused = _REFUSALS.get(told["refused"], ValueError)(str(told.get("said")))
                    self._given_up = f"backend {self.name!r} does not load: {self._refused}"
                    self.close()
                else:
                    self._offer = self._offer or offer_of(told)
            except (*BROKEN, TypeError, LookupError, RecursionError) as error:
                words, printed = self._ended(self._process, error)
                if self._offer is None:
                    last = printed.strip().splitlines()[-1:]
                    self._given_up = ": ".join([f"backend {self.name!r} does not load", words, *last])
        return None if self._given_up else self._process


def _batches(calls: Sequence[Call], start: int) -> Iterator[list[Call]]:
    """The calls from ``start`` on: a few at first, so that the other side begins, then many."""
    batch: list[Call] = []
    size, most = 0, _FIRST_CALLS
    for call in calls[start:]:
        batch.append(call)
        size += sum(a.memory.nbytes for a in (*call.positional, *call.named.values()) if isinstance(a, Strided))
        if size >= _BYTES or len(batch) >= most:
            yield batch
            batch, size, most = [], 0, min(2 * most, _CALLS)
    if batch:
        yield batch
