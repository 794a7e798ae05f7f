"""How a library answers the calls of a documented function: one file per part, each with its ``FUNCTIONS``.

A function takes the formula's own arguments by keyword (arrays as torch tensors, dtypes and enumerations as strings).
It imports its library inside, and needs nothing of this package, so that a witness can quote it.
"""

import importlib
from collections.abc import Callable
from typing import Any

from halfeven.conformance.backends.swap import swapped

__all__ = ["functions"]


def functions(*parts: str, swap: tuple[str, str] | None = None) -> dict[str, Callable[..., Any]]:
    """What the modules ``parts`` of this folder offer, by formula id; a later part goes before an earlier one.

    Args:
        parts: names of modules.
        swap: the module that their sources name, and the one to put for it: a drop-in replacement is asked by the code
            that was written for the library.
    """
    found: dict[str, Callable[..., Any]] = {}
    for part in parts:
        name = f"{__name__}.{part}"
        found |= (swapped(name, *swap) if swap else importlib.import_module(name)).FUNCTIONS
    return found
