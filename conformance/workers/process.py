"""A process that answers, as the one that asks sees it: forked by a server, or started as a command."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from halfeven.conformance.workers.frames import Channel, Pipes, Sockets

__all__ = ["REQUEST", "Forked", "Process", "Started", "status_words"]

_PATIENCE = 10.0  # seconds: a process that was killed is gone within them
_GRACE = 0.5
_PRINTED = 1 << 16
REQUEST = 1 << 18  # bytes that a fork server is asked with


class Process(Protocol):
    """One life of a worker's process."""

    channel: Channel

    def end(self, grace: float = 0.0) -> str:
        """How it ended, in words: ``signal 11 (SIGSEGV)``, ``exit status 0``; empty where it had to be killed.

        ``grace`` is how many seconds it gets to end by itself.
        """

    def printed(self) -> str:
        """What it has printed that no answer holds."""

    def close(self) -> None:
        """End it, and let go of it."""


class Forked:
    """A child that a fork server made; its nurse, at the other end of ``control``, waits for it."""

    def __init__(self, control: socket.socket, channel: socket.socket, printed: int, pids: tuple[int, int]) -> None:
        """``pids``: of the nurse and of the child."""
        self.channel: Channel = Sockets(channel)
        self.nurse, self.child = pids
        self._control, self._printed = control, printed

    def end(self, grace: float = 0.0) -> str:
        """How it ended; the nurse ends it where it does not by itself."""
        self.channel.close()
        try:
            self._control.settimeout(max(grace, 1e-3))
            return self._told()
        except TimeoutError:
            pass
        try:
            self._control.shutdown(socket.SHUT_WR)
            self._control.settimeout(_PATIENCE)
            self._told()
        except OSError:
            pass
        return ""

    def printed(self) -> str:
        """What its file holds."""
        return os.pread(self._printed, _PRINTED, 0).decode(errors="replace")

    def close(self) -> None:
        """The nurse ends what lives."""
        self.channel.close()
        self._control.close()
        with contextlib.suppress(OSError):
            os.close(self._printed)

    def _told(self) -> str:
        status = self._control.recv(4)
        if len(status) < 4:  # noqa: PLR2004 - an int
            return "its supervisor ended"
        return status_words(struct.unpack("<i", status)[0])


class Started:
    """A command, with frames on its standard input and output."""

    def __init__(self, command: Sequence[str], *, greeted: bool, environment: Mapping[str, str] | None = None) -> None:
        """``greeted`` where its greeting is a line.

        Raises:
            OSError: it cannot be started.
        """
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it stays open
        new: dict[str, Any] = {"start_new_session": True} if os.name == "posix" else {"creationflags": 0x200}
        try:
            self._process = subprocess.Popen(  # noqa: S603 - it is what the user asks for
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=None if environment is None else {**os.environ, **environment},
                **new,
            )
        except OSError:
            self._errors.close()
            raise
        if self._process.stdin is None or self._process.stdout is None:  # they are pipes
            raise OSError
        ends = [os.dup(pipe.fileno()) for pipe in (self._process.stdout, self._process.stdin)]
        self._process.stdin.close()
        self._process.stdout.close()
        self.channel: Channel = Pipes(*ends, greeted=greeted)

    def end(self, grace: float = 0.0) -> str:
        """How it ended; closing its input tells it to, and what does not is killed, all that it started too."""
        self.channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        by_itself = self._process.returncode is not None
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        words = status_words(self._process.wait(_PATIENCE))
        return words if by_itself else ""

    def printed(self) -> str:
        """What it wrote on its standard error."""
        self._errors.seek(0)
        return self._errors.read(_PRINTED).decode(errors="replace")

    def close(self) -> None:
        """End it, and let go of it."""
        self.end(_GRACE)
        self._errors.close()


def status_words(status: int) -> str:
    """How a process ended, in words.

    >>> status_words(-11)
    'signal 11 (SIGSEGV)'
    """
    if status >= 0:
        return f"exit status {status}"
    name = signal.Signals(-status).name if -status in {*signal.Signals} else "a real-time signal"
    return f"signal {-status} ({name})" + (", as when memory runs out" if name == "SIGKILL" else "")
