"""A documented function that reads an argument otherwise than it is given: not at all, or with another default."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from halfeven.conformance.codes import reading_code
from halfeven.conformance.engine.mostly import Row, agrees
from halfeven.reference.catalogue import Formula

__all__ = ["Misread", "misread"]

_PLAIN = (bool, int, float, str, type(None))
_LEAST = 2  # calls that differ: one may by chance be right with another argument


@dataclass(frozen=True)
class Misread:
    """An argument that is taken for a value, whatever is given or where it is not given.

    >>> Misread("narrow_range", False, where_absent=True).words
    'takes narrow_range=False where narrow_range is not given'
    >>> Misread("opset", 25).words
    'computes with opset=25 whatever opset is given'
    """

    name: str
    value: Any
    where_absent: bool = False

    @property
    def code(self) -> str:
        """The code of the cause."""
        return reading_code("another default" if self.where_absent else "ignored argument")

    @property
    def words(self) -> str:
        """What is done, in words."""
        taken = f"{self.name}={self.value!r}"
        if self.where_absent:
            return f"takes {taken} where {self.name} is not given"
        return f"computes with {taken} whatever {self.name} is given"

    def read(self, row: Row) -> Row:
        """The call as it is taken."""
        if self.where_absent and self.name in row.arguments:
            return row
        return replace(row, arguments={**row.arguments, self.name: self.value})


def misread(claimed: Formula, rows: Sequence[Row]) -> Misread | None:
    """What gives all answers, those that differ from the document's included; None where they are too few to tell."""
    wrong = [row for row in rows if not agrees(claimed, row)]
    if len(wrong) < _LEAST:
        return None
    asked = [*wrong, *(row for row in rows if row not in wrong)]  # those that differ refute most candidates
    candidates = _candidates(claimed, rows, wrong)
    return next((m for m in candidates if all(agrees(claimed, m.read(row)) for row in asked)), None)


def _candidates(claimed: Formula, rows: Sequence[Row], wrong: Sequence[Row]) -> Iterator[Misread]:
    """Those that change every call that differs, with values that some call gives or that are the default."""
    for name, parameter in inspect.signature(claimed.function).parameters.items():
        values = [row.arguments[name] for row in rows if name in row.arguments]
        values += [] if parameter.default is parameter.empty else [parameter.default]
        if not all(isinstance(v, _PLAIN) for v in values):
            continue
        given = [name in row.arguments for row in wrong]
        for value in {repr(v): v for v in reversed(values)}.values():
            is_default = parameter.default is not parameter.empty and repr(value) == repr(parameter.default)
            if not any(given) and not is_default:
                yield Misread(name, value, where_absent=True)
            if all(given) and not any(repr(row.arguments[name]) == repr(value) for row in wrong):
                yield Misread(name, value)
