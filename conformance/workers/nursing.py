"""The fork server's own process, on Linux: torch is imported, nothing is computed, and every request forks a child.

A nurse stands between the server and each child: it waits for the child's end, kills what the child leaves behind
(whatever session or parent that has), and tells how it ended. It ends the child when the asker is gone, or the server;
the server ends when the process is gone that started it.
"""

import contextlib
import ctypes
import gc
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch  # noqa: F401 - every child has it

from halfeven.conformance.workers.answering import PRINTED, answer_all, streams
from halfeven.conformance.workers.frames import Sockets
from halfeven.conformance.workers.process import REQUEST

__all__ = ["serve"]

_TICK = 0.2  # seconds
_PATIENCE = 5.0
_SUBREAPER, _DEATH_SIGNAL = 36, 1  # of prctl
_MOST_PRINTED = 1 << 20


def serve(listening: int, starter: int) -> None:
    """Fork a nurse for every request that comes at the socket ``listening``, as long as ``starter`` is the parent."""
    door = socket.socket(fileno=listening)
    door.settimeout(_TICK)
    _prctl(_SUBREAPER, 1)  # where a nurse was killed, what it looked after comes here
    alive, held = os.pipe()
    nurses: set[int] = set()
    gc.collect()
    gc.freeze()
    while os.getppid() == starter:
        _reap(nurses)
        try:
            asker, _ = door.accept()
        except TimeoutError:
            continue
        with asker:
            asker.settimeout(_PATIENCE)
            try:
                request, descriptors, *_ = socket.recv_fds(asker, REQUEST, 2)
            except OSError:
                continue
            if len(descriptors) == 2:  # noqa: PLR2004 - the channel, and the file for what is printed
                if (nurse := os.fork()) == 0:
                    door.close()
                    os.close(held)
                    _nurse(json.loads(request), asker, alive, *descriptors)
                nurses.add(nurse)
        for descriptor in descriptors:
            os.close(descriptor)
    shutil.rmtree(Path(door.getsockname()).parent, ignore_errors=True)  # whoever made the folder cannot any more


def _reap(nurses: set[int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            nurses.discard(ended)
    for orphan in _children() - nurses:
        with contextlib.suppress(ProcessLookupError):
            os.kill(orphan, signal.SIGKILL)


def _nurse(request: Mapping[str, Any], asker: socket.socket, alive: int, channel: int, printed: int) -> None:
    """Fork the child, wait until it ends or must end, and tell how it did; never returns."""
    try:
        _prctl(_SUBREAPER, 1)
        mine = os.getpid()
        if (child := os.fork()) == 0:
            asker.close()
            os.close(alive)
            _child(request, mine, channel, printed)
        os.close(channel)
        asker.settimeout(_PATIENCE)
        asker.send(struct.pack("<ii", mine, child))
        ended = os.pidfd_open(child)
        waiting = select.poll()
        for descriptor in (ended, asker.fileno(), alive):
            waiting.register(descriptor, select.POLLIN)
        while not (events := waiting.poll(_TICK * 1000)):
            if os.fstat(printed).st_size > _MOST_PRINTED:
                os.ftruncate(printed, PRINTED + 1)
        if ended not in {descriptor for descriptor, _ in events}:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        _end_all()
        asker.send(struct.pack("<i", os.waitstatus_to_exitcode(status)))
    finally:
        os._exit(0)


def _end_all() -> None:
    """Kill and wait for what the child has left behind: it has become this process's own, by and by."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for left in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
            os.waitpid(-1, 0)


def _child(request: Mapping[str, Any], nurse: int, channel: int, printed: int) -> None:
    """The backend's process; never returns."""
    try:
        _prctl(_DEATH_SIGNAL, signal.SIGKILL)
        os.setsid()  # a signal from the terminal is the asker's
        streams(printed)
        if os.getppid() == nurse:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_DATA, (request["memory"], request["memory"]))
            sys.path[:] = request["path"] or sys.path
            os.chdir(request["folder"])
            answer_all(
                Sockets(socket.socket(fileno=channel), trusting=True), request["spec"], request["profile"], printed
            )
        os._exit(0)
    except BaseException:  # noqa: BLE001 - what is told is told by what it printed, and by the status
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        os._exit(1)


def _children() -> set[int]:
    """The processes whose parent is this one."""
    mine = os.getpid()
    try:
        return {int(pid) for pid in Path(f"/proc/self/task/{mine}/children").read_text(encoding="ascii").split()}
    except OSError:  # a kernel without this file: look at all processes
        found = set()
        for status in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(status.read_text(errors="replace").rpartition(")")[2].split()[1]) == mine:
                    found.add(int(status.parent.name))
        return found


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
