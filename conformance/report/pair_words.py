"""A comparison of two backends as text for a terminal, as Markdown, and as a record of its own."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from halfeven.conformance.report.printable import printable

if TYPE_CHECKING:
    from halfeven.conformance.report.pair import Compared, Comparison, Shown, Side

__all__ = ["PAGE", "RECORD", "to_dict", "to_markdown", "to_text", "write"]

RECORD, PAGE = "comparison.json", "comparison.md"
VERSION = "1.0"
_WIDE = 600
_SHAPE = re.compile(r"\bshape \([\d, ]*\)")
_ENTITIES = {"<": "&lt;", ">": "&gt;"}
_HEAD = ("what", "calls", "values", "differ", "by up to")


def to_text(found: "Comparison") -> str:
    """The table, each cause with an input that shows it, and what was not compared."""
    table = tabulate(map(_row, found.parts), headers=_HEAD, disable_numparse=True)
    lines = [_verdict(found), "", *table.splitlines()]
    for part in found.differences:
        lines += ["", f"{part.name}: {part.cause}"]
        lines += [f"    {line}" for line in _shown(found, part.shown)] if part.shown else []
    if notes := _notes(found):
        lines += ["", "Not compared:", *(f"  {note}" for note in notes)]
    return printable("\n".join(line if len(line) <= _WIDE else f"{line[:_WIDE]} ..." for line in lines))


def to_markdown(found: "Comparison") -> str:
    """The same as a page."""
    sides = [(s.name, s.profile, _from(s), s.device, s.path) for s in (found.a, found.b)]
    lines = [
        f"# {_cell(found.a.name)} and {_cell(found.b.name)}",
        "",
        _cell(_verdict(found)),
        "",
        _table(("backend", "profile", "library", "device", "path"), sides),
        "",
        _table(_HEAD, list(map(_row, found.parts))),
    ]
    for part in found.differences:
        lines += ["", f"## {_cell(part.name)}", "", _cell(part.cause)]
        lines += ["", *(f"    {line}" for line in _shown(found, part.shown))] if part.shown else []
    if notes := _notes(found):
        lines += ["", "## Not compared", "", *(f"- {_cell(note)}" for note in notes)]
    return printable("\n".join([*lines, ""]))


def to_dict(found: "Comparison") -> dict[str, Any]:
    """The record: what the two are, each part, and what came of all."""
    record = {"schema": "halfeven-comparison", "schema_version": VERSION}
    return record | {"same": found.same, "known": found.known} | asdict(found)


def write(found: "Comparison", out: Path) -> None:
    """Write the record and the page into a folder.

    Raises:
        OSError: they cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name, text in ((RECORD, json.dumps(to_dict(found), indent=1) + "\n"), (PAGE, to_markdown(found))):
        whole = out / f".{name}.tmp"
        whole.write_text(text, encoding="utf-8")
        whole.replace(out / name)


def _verdict(found: "Comparison") -> str:
    both = f"{found.a.name} and {found.b.name}"
    if found.differences:
        said = f"{both} differ in {len(found.differences)} of {len(found.parts)}"
        return f"{said}; then {found.ended}" if found.ended else f"{said}."
    if found.ended:
        return f"Not known whether {both} differ: {found.ended}"
    if not found.known:
        return f"Not known whether {both} differ: nothing was compared."
    values = sum(p.values for p in found.parts)
    return f"{both} give the same: {values:,} values compared."


def _row(part: "Compared") -> tuple[str, ...]:
    by = f"{part.steps:,} {part.unit}" if part.steps else ""
    return part.name, f"{part.calls:,}", f"{part.values:,}", f"{part.differing:,}" if part.differing else "", by


def _shown(found: "Comparison", shown: "Shown") -> list[str]:
    given = f"x = {shown.x}" if shown.scale else shown.x
    zero = f", zero point = {shown.zero}" if shown.scale else ""
    lines = [f"{given}, scale = {shown.scale}{zero}" if shown.scale else given]
    lines += [f"{found.a.name} gives {shown.a}", f"{found.b.name} gives {shown.b}"]
    lines += [f"the document of {found.a.profile} gives {shown.document}"] if shown.document else []
    return [" ".join(line.split()) for line in [*lines, shown.where]]


def _notes(found: "Comparison") -> list[str]:
    """What was not compared and why: in one line where the reasons differ in the numbers of a shape alone."""
    alike: dict[str, list[tuple[str, int, str]]] = {}
    for part in found.parts:
        for why, calls in part.left.items():
            alike.setdefault(_SHAPE.sub("shape (...)", why), []).append((part.name, calls, why))
    return [*found.left, *(_note(pattern, some) for pattern, some in alike.items())]


def _note(pattern: str, some: Sequence[tuple[str, int, str]]) -> str:
    names = dict.fromkeys(name for name, _, _ in some)
    reasons = {why for _, _, why in some}
    first = f"{next(iter(names))} and {len(names) - 1} more" if len(names) > 1 else next(iter(names))
    return f"{first}: {sum(n for _, n, _ in some):,} calls {reasons.pop() if len(reasons) == 1 else pattern}"


def _from(side: "Side") -> str:
    return " ".join(word for word in (side.library, side.version, side.python) if word)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    """Text that Markdown shows as it is."""
    plain = " ".join(printable(text, "").split())
    for character in "\\`*_[]<>|~#":
        plain = plain.replace(character, _ENTITIES.get(character, "\\" + character))
    return plain if len(plain) <= _WIDE else f"{plain[:_WIDE]} ..."
