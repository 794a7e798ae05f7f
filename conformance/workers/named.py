"""The worker that a word on the command line means."""

from halfeven.conformance.backends.axes import COMMAND
from halfeven.conformance.workers.child import Child
from halfeven.conformance.workers.pipe import Pipe
from halfeven.conformance.workers.remote import BUDGET, TIMEOUT
from halfeven.conformance.workers.server import Server

__all__ = ["worker_of"]


def worker_of(
    spec: str,
    server: Server,
    profile: str | None = None,
    *,
    timeout: float = TIMEOUT,
    budget: float = BUDGET,
    stops: bool = False,
) -> Child | Pipe:
    """A command for ``cmd:./my-device --flag``; else a backend in children of the server.

    With ``stops``, what follows an end in the same batch is not asked.

    Raises:
        ValueError: there is no command; or a command is to claim another profile than it greets with.
    """
    if not spec.startswith(COMMAND):
        found: Child | Pipe = Child(server, spec, profile, timeout=timeout, budget=budget)
        found.stops = stops
        return found
    if profile is not None:
        msg = f"profile={profile!r} is not accepted for {spec!r}: a command says itself what it claims"
        raise ValueError(msg)
    found = Pipe(spec, timeout=timeout, budget=budget)
    found.stops = stops
    return found
