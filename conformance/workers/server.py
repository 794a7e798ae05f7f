"""The fork server, as who asks sees it: a process of some interpreter that makes children within milliseconds.

One server does for all processes of a run: it listens on a Unix socket in a folder of its own, whose path the variable
``HALFEVEN_SERVER`` hands down. Where there is no such forking (elsewhere than on Linux) each child is started anew.

Another interpreter needs Python 3.11 or later with NumPy, ml_dtypes and torch. It need not have this package: it gets
the reference and the engine of the process that asks, and so always the same version of them.
"""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from halfeven.conformance.workers.process import REQUEST, Forked, Process, Started

__all__ = ["FOLDER", "NoServer", "Server"]

FOLDER = "HALFEVEN_SERVER"
_FORKS = sys.platform == "linux"
_PARTS = ("reference", "conformance")  # what another interpreter is given
_SERVE = "from halfeven.conformance.workers.nursing import serve; serve(int(sys.argv[1]), int(sys.argv[2]))"
_ALONE = "from halfeven.conformance.workers.alone import answer; answer(sys.argv[1])"
# A child keeps the memory that it frees: new pages for every large call would cost more than the call. One thread for
# NumPy's linear algebra, so that the server has one thread when it forks.
_ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 28),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(1 << 26),
    "OPENBLAS_NUM_THREADS": "1",
}
_BACKLOG = 128
_LONGEST_START = 120.0
_PATIENCE = 5.0


class NoServer(RuntimeError):  # noqa: N818 - it says what there is not
    """The interpreter cannot serve: it is none, or lacks what a worker needs; the message says which."""


class Server:
    """A fork server of an interpreter: that of this run, or else one of this process's own.

    It is started when the first child is asked for, and ends with ``close``, or with this process.
    """

    def __init__(self, python: str = sys.executable) -> None:
        """``python`` is the interpreter's path."""
        self.python = shutil.which(python) or python
        self._own = self.python == (shutil.which(sys.executable) or sys.executable)
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._name = hashlib.sha256(os.fsencode(self.python)).hexdigest()[:16]

    def __enter__(self) -> Self:
        """Itself; the block's end closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @property
    def pid(self) -> int | None:
        """The process, where it is this one's."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it already, so that the processes that this one starts find it.

        Raises:
            NoServer: the interpreter cannot be started.
        """
        if not _FORKS:
            return
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="halfeven-")  # its mode is 0700
            os.environ.setdefault(FOLDER, self._folder.name)
        path = self._socket(self._folder.name)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.bind(str(path))
            door.listen(_BACKLOG)
            with self._errors.open("wb") as errors:
                try:
                    self._process = subprocess.Popen(  # noqa: S603 - the interpreter that the user names
                        [*self._command(_SERVE), str(door.fileno()), str(os.getpid())],
                        stdin=subprocess.DEVNULL,
                        stdout=errors,
                        stderr=errors,
                        pass_fds=[door.fileno()],
                        start_new_session=True,  # a signal from the terminal is this process's
                        env={**os.environ, **_ENVIRONMENT},
                    )
                except OSError as error:
                    msg = f"python={self.python!r} cannot be started: {error.strerror}"
                    raise NoServer(msg) from None

    def child(self, spec: str, profile: str | None, memory: int) -> Process:
        """A new process for the backend ``spec``, with so many bytes of memory.

        Raises:
            NoServer: there is no server, and none can be had.
        """
        request: dict[str, Any] = {"spec": spec, "profile": profile, "memory": memory, "folder": str(Path.cwd())}
        request["path"] = [str(Path(p).absolute()) for p in sys.path] if self._own else None
        if not _FORKS:
            return Started([*self._command(_ALONE), json.dumps(request)], greeted=False, environment=_ENVIRONMENT)
        for again in range(2):
            for folder in (*self._folders(), None):
                with contextlib.suppress(ConnectionError, FileNotFoundError):
                    if folder is None:
                        self._end()
                        self.start()
                    return self._forked(json.dumps(request).encode(), folder or self._own_folder)
            if again or (self._process is not None and self._process.poll() is None):
                break
        msg = f"python={self.python!r} cannot run a worker: {self._last_error()}"
        raise NoServer(msg)

    def close(self) -> None:
        """End it, if it is this process's own, and every child of it."""
        self._end()
        if self._folder is not None:
            if os.environ.get(FOLDER) == self._folder.name:
                del os.environ[FOLDER]
            self._folder.cleanup()
            self._folder = None

    def _end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            self._process.wait(_PATIENCE)
            self._process = None

    @property
    def _own_folder(self) -> str:
        return "" if self._folder is None else self._folder.name

    @property
    def _errors(self) -> Path:
        return Path(self._own_folder) / f"{self._name}.txt"

    def _folders(self) -> list[str]:
        """Where a server may listen: this process's own, and the run's."""
        own = [self._own_folder] if self._process is not None and self._process.poll() is None else []
        handed = os.environ.get(FOLDER, "")
        return [*own, *([handed] if handed and handed not in own else [])]

    def _socket(self, folder: str) -> Path:
        return Path(folder) / self._name

    def _last_error(self) -> str:
        lines = self._errors.read_text(errors="replace").strip().splitlines() if self._errors.exists() else []
        return lines[-1] if lines else "it ended at its start"

    def _command(self, what: str) -> list[str]:
        """The interpreter with ``what``; it takes nothing from the folder that it starts in."""
        if self._own:
            paths = [str(Path(p).absolute()) for p in sys.path]
            return [self.python, "-P", "-c", f"import sys; sys.path[:] = {paths!r}; {what}"]
        sources = Path(self._own_folder) / "sources"
        (sources / "halfeven").mkdir(parents=True, exist_ok=True)
        for part in _PARTS:
            found = find_spec(f"halfeven.{part}")
            link = sources / "halfeven" / part
            if found is not None and found.origin is not None and not link.exists():
                link.symlink_to(Path(found.origin).parent)
        return [self.python, "-P", "-c", f"import sys; sys.path.insert(0, {str(sources)!r}); {what}"]

    def _forked(self, request: bytes, folder: str) -> Forked:
        control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        channel, theirs = socket.socketpair()
        printed = os.memfd_create("printed")
        try:
            os.set_blocking(printed, True)
            _append_only(printed)
            with theirs:
                control.connect(str(self._socket(folder)))
                control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST)
                socket.send_fds(control, [request], [theirs.fileno(), printed])
            control.settimeout(_LONGEST_START)
            nurse, child = _pids(control.recv(8))
        except BaseException:
            control.close()
            channel.close()
            os.close(printed)
            raise
        return Forked(control, channel, printed, (nurse, child))


def _pids(told: bytes) -> tuple[int, int]:
    if len(told) < 8:  # noqa: PLR2004 - two ints
        raise ConnectionResetError
    nurse, child = struct.unpack("<ii", told)
    return nurse, child


def _append_only(descriptor: int) -> None:
    """Whoever writes after the file was cut writes at its end."""
    import fcntl  # noqa: PLC0415 - there is none on Windows

    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
