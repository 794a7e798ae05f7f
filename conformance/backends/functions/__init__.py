"""How a library answers the calls of a documented function: one file per part, each with its ``FUNCTIONS``.

A function takes the formula's own arguments by keyword (arrays as torch tensors, dtypes and enumerations as strings).
It imports its library inside, and needs nothing of this package, so that a witness can quote it.
"""

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["functions"]


def functions(*parts: str) -> dict[str, Callable[..., Any]]:
    """What the modules ``parts`` of this folder offer, by formula id."""
    found: dict[str, Callable[..., Any]] = {}
    for part in parts:
        found |= importlib.import_module(f"{__name__}.{part}").FUNCTIONS
    return found
