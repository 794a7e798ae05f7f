"""Write the catalogue: ``python tools/requirements.py docs/requirements.md``.

The documents sentence by sentence, with the requirements that each became, and the requirements system by system.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tabulate import tabulate

from halfeven.conformance.documents import Document, documents
from halfeven.conformance.requirement import Requirement
from halfeven.conformance.requirements import every_requirement
from halfeven.reference.systems import SYSTEMS, system_of

__all__ = ["catalogue", "main"]

_HEAD = """# Requirements

*Made by `make docs` from `conformance/systems/` and `conformance/documents/`; a test compares it.*

What an implementation can be held to. A requirement's id is its formula and an aspect; of an operation its profile, the
operation and an aspect. Its basis: *documented*, the document says so; *measured*, a release does so where the document
leaves room; *expected*, every user expects so; *silent*, the document is silent, and the outcome is reported and never
failed. The last column names the checks, or the sets of calls, that decide it."""


def catalogue() -> str:
    """The whole file."""
    found = documents()
    systems = {
        name: [r for r in every_requirement().values() if system_of(r.id.split("/")[0]) == name] for name in SYSTEMS
    }
    lines = [_HEAD, "", "## Documents", "", *_counts(found), ""]
    for document in found:
        lines += [*_document(document), ""]
    lines += ["## Systems", "", *_sizes(systems), ""]
    for name, own in systems.items():
        lines += [f"### {name}", *_system(SYSTEMS[name], own), ""]
    return "\n".join(lines).rstrip() + "\n"


def _counts(found: Iterable[Document]) -> Iterator[str]:
    rows = []
    for document in found:
        tested = sum(bool(s.requirements) for s in document.sentences)
        linked = {i for s in document.sentences for i in s.requirements}
        total = len(document.sentences)
        rows.append((f"[{document.name}](#{document.name})", total, tested, total - tested, len(linked)))
    rows.append(("in all", *(sum(column) for column in list(zip(*rows, strict=True))[1:4]), ""))
    yield _table(rows, ("document", "sentences", "tested", "not testable", "requirements"))


def _document(document: Document) -> Iterator[str]:
    yield f"### {document.name}"
    yield f"\n{document.source}.\n"
    rows = [
        (s.place, s.says, _codes(s.requirements) if s.requirements else f"not testable: {s.not_testable}")
        for s in document.sentences
    ]
    yield _table(rows, ("place", "what it says", "requirements, or why not"))


def _sizes(systems: dict[str, list[Requirement]]) -> Iterator[str]:
    bases = ("documented", "measured", "expected", "silent")
    rows = [(name, len(own), *(sum(r.basis == b for r in own) for b in bases)) for name, own in systems.items()]
    rows.append(("in all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    yield _table(rows, ("system", "requirements", *bases))


def _system(title: str, own: Iterable[Requirement]) -> Iterator[str]:
    yield f"\n{title}\n"
    yield _table(
        [(f"`{r.id}`", r.basis, r.text, ", ".join(r.checks)) for r in own],
        ("requirement", "basis", "text", "decided by"),
    )


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(rows: Iterable[tuple[object, ...]], headers: tuple[str, ...]) -> str:
    """A Markdown table, without the padding that would change every line with the longest."""
    escaped = [[_escaped(str(cell)) for cell in row] for row in rows]
    table = tabulate(escaped, headers, tablefmt="github", disable_numparse=True)
    return re.sub(r"-{3,}", "---", re.sub(r" {2,}", " ", table))


def _escaped(cell: str) -> str:
    """Text as a cell; what stands in backticks is code, where only the bar has to be escaped."""
    parts = re.sub(r"\s+", " ", cell).replace("|", "\\|").split("`")
    parts[::2] = [re.sub(r"([*<>]|\b_|_\b)", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def main(path: Path) -> int:
    """Write the catalogue to ``path``."""
    path.write_text(catalogue(), encoding="utf-8")
    print(f"{path}: {sum(len(d.sentences) for d in documents())} sentences")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
