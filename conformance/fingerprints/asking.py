"""Asking an implementation under a limit of calls and of its seconds; what it refuses is kept in words."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from halfeven.conformance.engine.call import Answer, Call
from halfeven.conformance.workers import Worker

__all__ = ["LARGEST", "MOST", "Asking"]

MOST = 196  # calls
LARGEST = 4096  # elements of one
_SECONDS = 60.0
_WORDS = 160


@dataclass(eq=False)
class Asking:
    """A worker, and how much it was asked.

    Attributes:
        worker: what answers.
        most: calls that may be made.
        seconds: that the worker may take; then nothing more is asked. What is thought between the calls does not count.
        calls: made so far.
        refused: what was not answered with a value, and how often.
    """

    worker: Worker
    most: int = MOST
    seconds: float = _SECONDS
    calls: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    _taken: float = 0.0

    @property
    def spent(self) -> bool:
        """Whether nothing more may be asked."""
        return self.calls >= self.most or self._taken >= self.seconds

    def answers(self, calls: Sequence[Call]) -> list[Answer]:
        """What comes of the calls, or of as many of them as may still be made."""
        found: list[Answer] = []
        for call in calls:
            if self.spent:
                break
            began = time.monotonic()
            [answer] = self.worker.answers([call])
            self._taken += time.monotonic() - began
            self.calls += 1
            found.append(self._seen(answer))
        return found

    def note(self, said: str) -> None:
        """Keep what is to be known."""
        self.refused[said] = self.refused.get(said, 0) + 1

    def notes(self) -> tuple[str, ...]:
        """All of it, in the order in which it came."""
        if self.spent:
            self.note(
                f"asked no further: {self.calls} calls" if self.calls >= self.most else "asked no further: time is up"
            )
        return tuple(f"{said} ({n} calls)" if n > 1 else said for said, n in self.refused.items())

    def _seen(self, answer: Answer) -> Answer:
        """The answer; a value that came with a fault is a value still, and the fault is told."""
        for fault in answer.faults:
            self.note(_short(fault))
        match answer.kind:
            case "unsupported":
                self.note(f"refused: {_short(answer.message)}")
            case "raised":
                self.note(f"raised {answer.error[0]}: {_short(answer.message)}")
            case "ended":
                self.note(f"its process ended: {_short(answer.message)}")
        return replace(answer, faults=())


def _short(said: str) -> str:
    return " ".join(said.split())[:_WORDS]
