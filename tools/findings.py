"""Write what our transcriptions do that no user expects: ``python tools/findings.py docs/findings.md``.

Every formula, and every version of it that was measured, is held to the properties of its kind. Whoever does the same
as a version is ``as measured`` there, and differs from the property.
"""

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from halfeven.conformance.engine.held import OwnCall, judged, own_calls
from halfeven.conformance.engine.judge import answer_of
from halfeven.conformance.properties import PROPERTIES, ROLES, of
from halfeven.conformance.properties.judged import breaches, first_of, second_of
from halfeven.conformance.properties.property import Answered, Breach, Property
from halfeven.conformance.properties.role import number
from halfeven.reference.catalogue import FORMULAS, Formula

__all__ = ["compared", "findings", "main", "section"]

_HEAD = """# What was measured, and no user expects

*Made by `make docs` from the transcriptions; a test compares it.*

Each formula, and each release that was measured, is held to what any user expects of its kind, in all of the calls of
its requirements. A library that does the same as a release agrees with the measurement (`as measured`), and differs
from the property all the same. *Rests on*: what the requirement rests on whose calls show it. Where a document itself
wants what a property does not, the document wins, and the last list says so."""


def main(path: Path) -> int:
    """Write the page."""
    parts = [_HEAD, "## The properties", _table(), "## By formula"]
    parts += [s for formula in FORMULAS.values() if (s := section(formula))]
    parts += ["## Where the document wins", _won()]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return 0


def section(formula: Formula) -> str:
    """What one transcription does that no user expects; empty where there is nothing."""
    lines = [
        f"- **{p.name}**: {p.words}, in {broken:,} of {points:,} values (rests on: {basis}). {_shown(own, breach)}"
        for p, broken, points, basis, own, breach in findings(formula)
    ]
    return "\n".join([f"### {formula.id}", "", *lines]) if lines else ""


def findings(formula: Formula) -> Iterator[tuple[Property, int, int, str, OwnCall, Breach]]:
    """The properties that a transcription breaks: the values broken and judged, and the smallest call that shows it."""
    for p, found in _held(formula.id).items():
        broken = [(own, b) for own, b in found if b.broken.size]
        if broken:
            own, b = min(broken, key=lambda pair: pair[1].values.size)
            total = sum(b.points for _, b in found)
            basis = ", ".join(sorted({own.basis for own, _ in broken}))
            yield p, sum(b.broken.size for _, b in broken), total, basis, own, b


def compared(formula: Formula) -> dict[str, int]:
    """How many values of a transcription each property judges."""
    return {p.name: sum(b.points for _, b in found) for p, found in _held(formula.id).items()}


@lru_cache(maxsize=1)
def _held(id_: str) -> dict[Property, list[tuple[OwnCall, Breach]]]:
    formula, symbol = FORMULAS[id_], id_.partition("@")[0]
    found: dict[Property, list[tuple[OwnCall, Breach]]] = {p: [] for p in of(symbol)}
    if not found:
        return found
    for own in own_calls(symbol):
        first = _answered(formula, own.arguments)
        for p in found if first is not None else ():
            assert first is not None, "there is an answer"
            second = None
            if p.again is not None:
                again = second_of(p, ROLES[symbol], first)
                second = None if again is None else _answered(formula, again)
                if second is None:
                    continue
            found[p] += [(own, b) for b in judged(p, symbol, own, first, second)]
    return found


def _answered(formula: Formula, arguments: Mapping[str, Any]) -> Answered | None:
    answer = answer_of(formula.function, arguments)
    role = ROLES[formula.id.partition("@")[0]]
    return first_of(role, arguments, answer.value) if answer.kind == "returned" else None


def _shown(own: OwnCall, b: Breach) -> str:
    i = int(b.broken[0])
    said = ", ".join(f"{name}={_short(value)}" for name, value in own.arguments.items())
    return f"`{said}`: {b.leaf}[{i}] is {number(b.values[i])}; expected {b.expected(i)}."


def _short(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_short, value))})"
    if not isinstance(value, np.ndarray | np.generic):
        return repr(value)
    few = [number(v) for v in np.ravel(value)[:8]]
    more = ", ..." if np.size(value) > len(few) else ""
    return f"{value.dtype}[{', '.join(few)}{more}]"


def _table() -> str:
    rows = [f"| `{p.name}` | {p.text} | {sum(p in of(f) for f in ROLES)} |" for p in PROPERTIES.values()]
    return "\n".join(["| property | what any user expects | formulas |", "|---|---|---|", *rows])


def _won() -> str:
    lines = [
        f"- `{formula}`, {p.name}: {reason}." for p in PROPERTIES.values() for formula, reason in p.exceptions.items()
    ]
    for formula in (f for f in FORMULAS.values() if not f.version and f.id in ROLES):
        lines += [
            f"- `{formula.id}`, {p.name}: in {n:,} values of calls that its document speaks of."
            for p in of(formula.id)
            if (n := _broken_by_document(formula, p))
        ]
    return "\n".join(lines)


def _broken_by_document(formula: Formula, p: Property) -> int:
    total = 0
    for own in (o for o in own_calls(formula.id) if o.basis == "documented"):
        first = _answered(formula, own.arguments)
        again = None if first is None else second_of(p, ROLES[formula.id], first)
        second = None if again is None else _answered(formula, again)
        if first is not None and (p.again is None or second is not None):
            total += sum(b.broken.size for b in breaches(p, first, second))
    return total


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
