"""A backend that is a command: a program in any language that answers calls on its standard input and output.

It greets with one line of JSON, its offer. Then frames come in, each a batch of calls, and frames go out, each a batch
of one or more answers, in the order of the calls. A frame is its length in eight bytes, little-endian, and as many
bytes. It ends when its input does.
"""

import shlex
from collections.abc import Mapping

from halfeven.conformance.backends.axes import COMMAND
from halfeven.conformance.configuration import Configuration
from halfeven.conformance.quote import NoScript, Spelt
from halfeven.conformance.workers.process import Process, Started
from halfeven.conformance.workers.remote import BUDGET, TIMEOUT, Remote

__all__ = ["Pipe"]


class Pipe(Remote):
    """A command, started again where it ends."""

    def __init__(
        self, spec: str, *, timeout: float = TIMEOUT, first: float | None = None, budget: float = BUDGET
    ) -> None:
        """The command of ``spec``, its words as a shell would take them; no shell takes part.

        Args:
            spec: the command, with ``cmd:`` before it or without.
            timeout: seconds that a call may take.
            first: seconds for the greeting, and for the first call; four times ``timeout``.
            budget: seconds for all calls together.

        Raises:
            ValueError: there is no command, or a quotation mark is missing.
        """
        super().__init__(spec, timeout, first, budget)
        self.command = shlex.split(spec.removeprefix(COMMAND))
        if not self.command:
            msg = f"backend={spec!r} is not accepted: give a command, as in 'cmd:./my-device --flag'"
            raise ValueError(msg)

    def script(self, formula: str, passed: Mapping[str, str], configuration: Configuration | None = None) -> Spelt:
        """None."""
        del passed, configuration
        msg = f"{shlex.join(self.command)} answered {formula}: a script cannot ask it"
        raise NoScript(msg)

    def path(self) -> str:
        """Nothing is known of it."""
        return ""

    def _start(self) -> Process:
        return Started(self.command, greeted=True)
