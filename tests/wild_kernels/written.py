"""What a kernel is that is handed over as its author wrote it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["AFTER", "AWAY", "BEFORE", "EVEN", "RECIPROCAL", "UP", "Written"]

RECIPROCAL = {"division": {"reciprocal"}}
EVEN, AWAY, UP = ({"rounding": {name}} for name in ("half-even", "half-away", "half-up"))
AFTER, BEFORE = ({"zero_point": {name}} for name in ("after-rounding", "before-rounding"))


@dataclass(frozen=True, eq=False)
class Written:
    """One kernel.

    Attributes:
        name: what it is.
        function: as ``fingerprint`` takes it.
        does: the choices other than the textbook's that it makes, each with the values that say so, or ``...`` where
            several may be told.
        operation, array, dtype: what it can do.
        where: the start of a region's words, and what is done there other than the textbook's.
        grid: the codes that it has, as they are said.
        named: whether there are words for it: else nothing is to be told falsely.
    """

    name: str
    function: Callable[..., Any]
    does: Mapping[str, Any] = field(default_factory=dict)
    operation: str = "quantize"
    array: str = "numpy"
    dtype: str = "float32"
    where: tuple[str, Mapping[str, Any]] | None = None
    grid: str = ""
    named: bool = True
