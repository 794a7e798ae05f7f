"""Frames between two processes: eight bytes of length, little-endian, then as many bytes.

Between a process and a child that it had forked for it, a long frame crosses as memory: the length's highest bit is
set, and a descriptor comes with it. What is received there is read, never mapped by who must not trust the sender: the
sender could cut the memory short under the reader.
"""

import mmap
import os
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from halfeven.conformance.engine.batch import Damaged

__all__ = ["HEAD", "LONG", "LONGEST", "Channel", "Pipes", "Sockets", "read_exactly"]

HEAD = 8
LONG = 1 << 16  # bytes: two shorter frames fit into a socket's buffer, so that sending them never waits
LONGEST = 1 << 32
_MEMORY = 1 << 63
_CHUNK = 1 << 18
_DESCRIPTORS = 16
_SOON = 1e-6  # seconds; 0 would mean something else
_NAP = 0.002  # seconds: to wake a reader for every small frame costs the writer as much as to write it
_STUCK = 30.0  # seconds: nothing is ever sent that does not fit into the buffer


class Channel(Protocol):
    """Frames there and back."""

    def send(self, pieces: Sequence[Any]) -> None:
        """Send one frame, given in pieces; OSError where nobody is there any more."""

    def receive(self, deadline: float | None = None, *, more: bool = False) -> Any:
        """The next frame; EOFError at the end, TimeoutError at the deadline (of ``time.monotonic``), or Damaged.

        ``more`` where many are to come: then it may wait a little, to be woken less often.
        """

    def close(self) -> None:
        """Send and receive no more."""


class Sockets:
    """One end of a Unix socket pair."""

    def __init__(self, own: socket.socket, *, trusting: bool = False) -> None:
        """``trusting`` maps what it receives as memory, instead of reading it."""
        self._socket, self._trusting = own, trusting
        self._data = bytearray()
        self._small = False
        self._descriptors: deque[int] = deque()

    def send(self, pieces: Sequence[Any]) -> None:
        """Send one frame."""
        size = sum(len(p) if isinstance(p, bytes) else p.nbytes for p in pieces)
        self._socket.settimeout(None if self._trusting else _STUCK)
        if size < LONG:
            self._socket.sendall(b"".join([size.to_bytes(HEAD, "little"), *pieces]))
            return
        memory = os.memfd_create("frame")
        try:
            _write(memory, pieces)
            socket.send_fds(self._socket, [(size | _MEMORY).to_bytes(HEAD, "little")], [memory])
        finally:
            os.close(memory)

    def receive(self, deadline: float | None = None, *, more: bool = False) -> Any:
        """The next frame."""
        while (frame := self._frame()) is None:
            if more and self._small:
                time.sleep(_NAP)
            self._more(deadline)
        return frame

    def close(self) -> None:
        """Close the socket, and what came with frames that nobody asked for."""
        self._socket.close()
        while self._descriptors:
            os.close(self._descriptors.popleft())

    def _frame(self) -> Any:
        if len(self._data) < HEAD:
            return None
        size = int.from_bytes(self._data[:HEAD], "little")
        if size & _MEMORY:
            if not self._descriptors:
                msg = "a frame lacks its memory"
                raise Damaged(msg)
            del self._data[:HEAD]
            return self._memory(size & ~_MEMORY)
        if size >= LONG:
            msg = f"a frame of {size} bytes"
            raise Damaged(msg)
        if len(self._data) < HEAD + size:
            return None
        frame = bytes(memoryview(self._data)[HEAD : HEAD + size])
        del self._data[: HEAD + size]
        return frame

    def _memory(self, size: int) -> Any:
        memory = self._descriptors.popleft()
        try:
            if size > LONGEST or os.fstat(memory).st_size != size:
                msg = f"a frame of {size} bytes in memory of {os.fstat(memory).st_size}"
                raise Damaged(msg)
            if self._trusting:
                return memoryview(mmap.mmap(memory, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ))
            frame, at = bytearray(size), 0
            view = memoryview(frame)
            while at < size:
                got = os.preadv(memory, [view[at:]], at)
                if not got:
                    msg = "a frame was cut short"
                    raise Damaged(msg)
                at += got
            return view.toreadonly()
        except OSError as error:
            msg = f"a frame's memory cannot be read: {error.strerror}"
            raise Damaged(msg) from None
        finally:
            os.close(memory)

    def _more(self, deadline: float | None) -> None:
        self._socket.settimeout(None if deadline is None else max(_SOON, deadline - time.monotonic()))
        try:
            data, descriptors, *_ = socket.recv_fds(self._socket, _CHUNK, _DESCRIPTORS)
        except ConnectionError:
            raise EOFError from None
        self._descriptors.extend(descriptors)
        if not data:
            raise EOFError
        if len(self._descriptors) > 4 * _DESCRIPTORS:
            msg = "memory comes without frames"
            raise Damaged(msg)
        self._data += data
        self._small = len(data) < _CHUNK >> 4


class Pipes:
    """Two descriptors, one to read and one to write: a thread each, since a pipe of any system can wait for ever."""

    def __init__(self, reading: int, writing: int, *, greeted: bool = False) -> None:
        """``greeted`` where the first that comes is a line, which is handed over as a frame."""
        self._came: queue.Queue[Any] = queue.Queue()
        self._going: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._read, args=(reading, greeted), daemon=True).start()
        threading.Thread(target=self._write, args=(writing,), daemon=True).start()

    def send(self, pieces: Sequence[Any]) -> None:
        """Send one frame, by and by."""
        self._going.put(b"".join(pieces))

    def receive(self, deadline: float | None = None, *, more: bool = False) -> Any:
        """The next frame."""
        del more  # the threads are woken anyhow
        try:
            frame = self._came.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(frame, Exception):
            self._came.put(frame)  # so it stays
            raise frame
        return frame

    def close(self) -> None:
        """Close what is written to; what is read from closes when the other side does."""
        self._going.put(None)

    def _read(self, reading: int, greeted: bool) -> None:
        with os.fdopen(reading, "rb") as file:
            try:
                if greeted:
                    line = file.readline(LONG)
                    if not line.endswith(b"\n"):
                        self._came.put(Damaged(f"its greeting is no line: {line[:80]!r}") if line else EOFError())
                        return
                    self._came.put(line)
                while True:
                    size = int.from_bytes(read_exactly(file, HEAD), "little")
                    if size > LONGEST:
                        self._came.put(Damaged(f"a frame of {size} bytes"))
                        return
                    self._came.put(read_exactly(file, size))
            except (EOFError, OSError, MemoryError):
                self._came.put(EOFError())

    def _write(self, writing: int) -> None:
        try:
            with os.fdopen(writing, "wb") as file:
                while (frame := self._going.get()) is not None:
                    file.write(len(frame).to_bytes(HEAD, "little"))
                    file.write(frame)
                    file.flush()
        except OSError:  # nobody reads: what is received says why
            pass


def read_exactly(file: Any, size: int) -> bytes:
    """So many bytes of a file; EOFError where there are fewer. A length that lies takes no memory."""
    found: list[bytes] = []
    while size:
        data = file.read(min(size, 1 << 22))
        if not data:
            raise EOFError
        found.append(data)
        size -= len(data)
    return b"".join(found)


def _write(memory: int, pieces: Sequence[Any]) -> None:
    left: deque[Any] = deque(memoryview(p) for p in pieces if len(p))
    while left:
        sent = os.writev(memory, [left[i] for i in range(min(len(left), 512))])
        while left and sent >= left[0].nbytes:
            sent -= left.popleft().nbytes
        if sent:
            left[0] = left[0][sent:]
