"""Workers turn calls into answers: in this process, in another, by way of files. The judge does not see which."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.configuration import Configuration
from halfeven.conformance.engine.call import Answer, Call

__all__ = ["Worker"]


class Worker(Protocol):
    """A backend, as the engine asks it. None of its methods raises for what the backend does."""

    @property
    def offer(self) -> Offer:
        """What the backend offers."""

    def answers(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """One answer per call, in their order, whatever comes of them."""

    def script(self, configuration: Configuration) -> tuple[str, str]:
        """For a witness of an operation, the lines that import the library, and the expression that calls it."""

    def quoted(self, formula: str, passed: Mapping[str, str]) -> tuple[str, str] | None:
        """The same for a documented function and its arguments' source; None where the function has no source."""

    def path(self) -> str:
        """Which path (kernel, fallback) really ran; asked after the run."""

    def close(self) -> None:
        """Let go of what it holds; another answer is not to be asked for."""
