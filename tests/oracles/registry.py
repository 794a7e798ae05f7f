"""Where derivations register, by formula id."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["DERIVATIONS", "derives"]

DERIVATIONS: dict[str, Callable[..., Any]] = {}


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
