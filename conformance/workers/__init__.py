"""Workers turn calls into answers: in this process, in another, by way of files. The judge does not see which."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.configuration import Configuration
from halfeven.conformance.engine.call import Answer, Call
from halfeven.conformance.quote import Spelt

__all__ = ["Worker"]


class Worker(Protocol):
    """A backend, as the engine asks it. None of its methods raises for what the backend does."""

    @property
    def sweeps(self) -> bool:
        """Whether it takes calls that stand for many."""

    @property
    def offer(self) -> Offer:
        """What the backend offers."""

    def answers(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """One answer per call, in their order, whatever comes of them."""

    def script(self, formula: str, passed: Mapping[str, str], configuration: Configuration | None = None) -> Spelt:
        """How a script calls what answers ``formula``, with each argument as Python.

        Args:
            formula: as a ``Call`` has it.
            passed: by keyword; what is positional, by its number.
            configuration: of an operation's call.

        Raises:
            NoScript: no script can.
        """

    def path(self) -> str:
        """Which path (kernel, fallback) really ran; asked after the run."""

    def close(self) -> None:
        """Let go of what it holds; another answer is not to be asked for."""
