"""Where derivations register: by formula id, and those of operations by profile and operation."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["DERIVATIONS", "OPERATIONS", "derives", "derives_operation"]

DERIVATIONS: dict[str, Callable[..., Any]] = {}
OPERATIONS: dict[tuple[str, str], Callable[..., Any]] = {}


def derives_operation(profile: str, operation: str) -> Callable[[F], F]:
    """Register the decorated function as the second derivation of a profile's transcription."""

    def register(function: F) -> F:
        assert (profile, operation) not in OPERATIONS
        OPERATIONS[profile, operation] = function
        return function

    return register


def derives(*formulas: str) -> Callable[[F], F]:
    """Register the decorated function as the second derivation of ``formulas``.

    Raises:
        ValueError: one of them has a derivation already.
    """

    def register(function: F) -> F:
        for formula in formulas:
            if formula in DERIVATIONS:
                msg = f"formula={formula!r} is taken: a formula has one second derivation"
                raise ValueError(msg)
            DERIVATIONS[formula] = function
        return function

    return register
