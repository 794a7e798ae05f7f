"""The explanation of a value as data, and as text of at most a hundred characters a line."""

import dataclasses
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from halfeven.conformance.explaining.changes import Change
from halfeven.conformance.explaining.known import Group
from halfeven.reference.profile import Operation

__all__ = ["Number", "Step", "ValueExplanation", "wrapped"]

_WIDE = 100
_FEW = 12  # changes that are told; more are counted


@dataclass(frozen=True)
class Number:
    """A number with its bits; those of a code or a zero point are left out."""

    value: str
    bits: str = ""
    dtype: str = ""


@dataclass(frozen=True)
class Step:
    """A value on the way to the result."""

    name: str
    number: Number
    note: str = ""


@dataclass(frozen=True)
class ValueExplanation:
    """What is known of one value; it prints as text, and ``to_dict`` is JSON.

    Attributes:
        claim: the profile or formula by whose document the value is explained, and what that computes.
        x: the real, or for dequantize the code.
        exact: the exact quotient x / s, of dequantize the product (q - z) * s, as a fraction, if there is one.
        says: the exact number in words: in decimal, and how far it lies from a tie or from the result.
        steps: the document's, in order.
        result: the document's code or real.
        systems: what every known system gives, grouped by result.
        refused: the systems that do not take such a value.
        wanted: the code or real that was asked about, if one was.
        changes: what an implementation would have to do otherwise to give that.
    """

    operation: Operation
    dtype: str
    grid: str
    claim: str
    x: Number
    scale: Number
    zero: int
    exact: str
    says: str
    steps: tuple[Step, ...]
    result: str
    systems: tuple[Group, ...]
    refused: tuple[str, ...]
    wanted: str = ""
    changes: tuple[Change, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything, as what JSON has."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        """Some twenty lines."""
        return "\n".join(_lines(self)).rstrip()


def _lines(e: ValueExplanation) -> Iterator[str]:
    yield from _table(
        [
            ("q" if e.operation == "dequantize" else "x", *_cells(e.x)),
            ("s", *_cells(e.scale)),
            ("z", str(e.zero), "", ""),
        ]
    )
    yield f"grid {e.grid}, {e.operation} in {e.dtype}"
    yield ""
    what = "(q - z) * s" if e.operation == "dequantize" else "x / s"
    exact = f"{e.exact} = " if e.exact and "/" in e.exact and len(e.exact) < _WIDE // 2 else ""
    yield from wrapped(f"{what} exactly: {exact}{e.says}" if e.exact else e.says)
    yield ""
    yield from wrapped(e.claim)
    yield from _table([(f"  {s.name}", *_cells(s.number), s.note) for s in e.steps])
    yield ""
    yield "Known systems give"
    yield from _groups(e.systems)
    if e.refused:
        yield from wrapped(f"{len(e.refused)} take no such value: {', '.join(e.refused)}", "  ")
    if e.wanted:
        yield ""
        yield from _changes(e.wanted, e.result, e.changes)


def _groups(groups: Iterable[Group]) -> Iterator[str]:
    rows = list(groups)
    width = max((len(g.result) for g in rows), default=0)
    for g in rows:
        yield from wrapped(", ".join(g.names), f"  {g.result:<{width}}  ", " " * (width + 4))


def _changes(wanted: str, document: str, found: tuple[Change, ...]) -> Iterator[str]:
    if wanted == document:
        yield f"{wanted} is what the document gives."
        return
    if not found:
        yield f"No one or two choices that are known give {wanted}."
        return
    yield f"{'Two choices at once give' if len(found[0].codes) > 1 else 'One choice gives'} {wanted}:"
    for c in found[:_FEW]:
        because = f": {c.because}" if c.because else ""
        yield from wrapped(f"{c.words}{because}", f"  {'+'.join(c.codes)}  ", " " * (len("+".join(c.codes)) + 4))
    if len(found) > _FEW:
        yield f"  and {len(found) - _FEW:,} more; --json has them all"


def _cells(n: Number) -> tuple[str, str, str]:
    return n.value, n.bits, n.dtype


def _table(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    table = [(*row, *[""] * (5 - len(row))) for row in rows]
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    for row in table:
        yield "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()


def wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """Lines of at most a hundred characters, the first and the others indented."""
    later = first if rest is None else rest
    lines = textwrap.TextWrapper(_WIDE, first, later, break_on_hyphens=False, break_long_words=False)
    return lines.wrap(text) or [first]
