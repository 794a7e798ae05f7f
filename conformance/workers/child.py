"""A backend in a process of its own: nothing of it is imported here, and nothing that it does reaches anybody else."""

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from halfeven.conformance.configuration import Configuration
from halfeven.conformance.quote import NoScript, Spelt
from halfeven.conformance.workers.process import Process
from halfeven.conformance.workers.remote import BROKEN, BUDGET, TIMEOUT, Remote
from halfeven.conformance.workers.server import Server

__all__ = ["Child"]


class Child(Remote):
    """A registered backend, an entry point or ``pkg.mod:attr``, in children of a server."""

    sweeps = True

    def __init__(
        self,
        server: Server,
        spec: str,
        profile: str | None = None,
        *,
        timeout: float = TIMEOUT,
        first: float | None = None,
        budget: float = BUDGET,
        memory: int | None = None,
    ) -> None:
        """The backend that ``spec`` names, as ``resolve`` reads it; it is one, no group.

        Args:
            server: what makes the children.
            spec: as on the command line.
            profile: the profile claimed, where it is another than the backend's own.
            timeout: seconds that a call may take.
            first: seconds for the first call of a process, and for its import; four times ``timeout``.
            budget: seconds for all calls together.
            memory: bytes that the process may have of its own; half of the machine's.
        """
        super().__init__(spec, timeout, first, budget)
        self._server, self._profile = server, profile
        self._memory = memory or _half_of_all()

    def script(self, formula: str, passed: Mapping[str, str], configuration: Configuration | None = None) -> Spelt:
        """The backend's own script, or the call of the function itself."""
        c = configuration
        said = None if c is None else {**vars(c), "grid": [c.grid.qmin, c.grid.qmax]}
        told = self._told({"script": [formula, dict(passed), said]})
        match told:
            case {"script": [str(header), str(called), str(steps), str(refusals)]}:
                return Spelt(header, called, steps, refusals)
        raise NoScript(_why(told))

    def path(self) -> str:
        """What the backend says of its path."""
        told = self._told({"path": None})
        match told:
            case {"path": str(path)}:
                return path
        return f"(not known: {_why(told)})"

    def _start(self) -> Process:
        return self._server.child(self.name, self._profile, self._memory)

    def _told(self, question: Mapping[str, Any]) -> Any:
        end = time.monotonic() + max(self._left, 2 * self.first)  # a question is not of the budget
        process = self._greeted(end)
        if process is None:
            return {"raised": self._given_up}
        try:
            process.channel.send([json.dumps(question).encode()])
            return json.loads(bytes(self._received(process, end)))
        except (*BROKEN, RecursionError) as error:
            return {"raised": self._ended(process, error)[0]}


def _why(told: Any) -> str:
    said = told.get("raised") if isinstance(told, Mapping) else None
    return " ".join(f"{said or 'the answer is none'}".split())


def _half_of_all() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not on Windows
        return 1 << 33
