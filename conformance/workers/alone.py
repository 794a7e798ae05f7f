"""A backend's process where no server forks it: started for it, with frames on its standard input and output."""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from halfeven.conformance.workers.answering import answer_all, streams
from halfeven.conformance.workers.frames import HEAD, read_exactly

__all__ = ["answer"]


class _Files:
    """Frames over two descriptors, one after the other."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = os.fdopen(reading, "rb"), os.fdopen(writing, "wb")

    def send(self, pieces: Sequence[Any]) -> None:
        frame = b"".join(pieces)
        self._writing.write(len(frame).to_bytes(HEAD, "little"))
        self._writing.write(frame)
        self._writing.flush()

    def receive(self, deadline: float | None = None, *, more: bool = False) -> Any:
        del deadline, more  # who answers waits as long as it is asked
        return read_exactly(self._reading, int.from_bytes(read_exactly(self._reading, HEAD), "little"))

    def close(self) -> None:
        self._reading.close()
        self._writing.close()


def answer(request: str) -> None:
    """Answer for the backend that ``request`` names, until the input closes; never returns."""
    asked = json.loads(request)
    channel = _Files(os.dup(0), os.dup(1))
    with tempfile.TemporaryFile(buffering=0) as printed, contextlib.suppress(EOFError):
        streams(printed.fileno())
        if sys.platform != "win32":
            import resource  # noqa: PLC0415 - there is none on Windows

            with contextlib.suppress(ValueError, OSError):  # not on every system
                resource.setrlimit(resource.RLIMIT_DATA, (asked["memory"], asked["memory"]))
        answer_all(channel, asked["spec"], asked["profile"], printed.fileno())
    os._exit(0)
