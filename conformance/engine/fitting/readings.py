"""Arguments read otherwise than they are given: what elements would be then."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from halfeven.conformance.engine.fitting.elements import Elements

__all__ = ["READINGS", "read"]

#: By the name under which ``codes`` has it: the elements as an implementation sees them that reads an argument so.
READINGS: Mapping[str, Callable[[Elements], Elements]] = {
    "narrow grid": lambda g: replace(g, lo=np.where(g.lo < 0, g.lo + 1, g.lo)),
    "wide grid": lambda g: replace(g, lo=np.where(g.lo == -g.hi, g.lo - 1, g.lo)),
    "zero point": lambda g: replace(g, zero=np.zeros_like(g.zero)),
}


def read(groups: Sequence[Elements], name: str) -> list[Elements]:
    """The elements as they are read by one of ``READINGS``; as they are given, where ``name`` is empty."""
    return [READINGS[name](g) for g in groups] if name else list(groups)
