"""The documents, sentence by sentence: which requirements each sentence became, or why it cannot be tried.

One table per document in this folder: its ``source``, then its sentences, equations and examples in the document's
order, told in our own words.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

__all__ = ["Document", "Sentence", "documents", "parsed"]

_KEYS = {"says", "requirements", "not_testable"}


@dataclass(frozen=True)
class Sentence:
    """One sentence, equation or example of a document.

    Attributes:
        place: where it stands.
        says: what it says, in our words.
        requirements: the ids of the requirements that hold an implementation to it; empty where there are none.
        not_testable: why there are none; else empty.
    """

    place: str
    says: str
    requirements: tuple[str, ...] = ()
    not_testable: str = ""


@dataclass(frozen=True)
class Document:
    """One document: the table's name, what the document is, and its sentences in order."""

    name: str
    source: str
    sentences: tuple[Sentence, ...]


@lru_cache(maxsize=1)
def documents() -> tuple[Document, ...]:
    """Every document, by name."""
    folder = files(__name__)
    tables = sorted((t for t in folder.iterdir() if t.name.endswith(".toml")), key=lambda t: t.name)
    return tuple(parsed(t.name.removesuffix(".toml"), t.read_text(encoding="utf-8")) for t in tables)


def parsed(name: str, text: str) -> Document:
    """The document of one table.

    Raises:
        ValueError: no source; a sentence with another key, without words, or with both or neither of ``requirements``
            and ``not_testable``.
    """
    rows = tomllib.loads(text)
    source = rows.pop("source", None)
    if not source or not isinstance(source, str):
        msg = f"{name}.toml: source={source!r} is not accepted: say which document it is"
        raise ValueError(msg)
    return Document(name, source, tuple(_sentences(name, rows)))


def _sentences(name: str, rows: Mapping[str, Any]) -> Iterator[Sentence]:
    for place, row in rows.items():
        if not isinstance(row, Mapping) or (unknown := row.keys() - _KEYS):
            given = ", ".join(sorted(unknown)) if isinstance(row, Mapping) else repr(row)
            msg = f"{name}.toml, {place}: {given} is not accepted: give a table of {', '.join(sorted(_KEYS))}"
            raise ValueError(msg)
        if not row.get("says"):
            msg = f"{name}.toml, {place}: says={row.get('says')!r} is not accepted: tell the sentence in our words"
            raise ValueError(msg)
        ids, reason = tuple(row.get("requirements", ())), row.get("not_testable", "")
        if bool(ids) == bool(reason):
            msg = f"{name}.toml, {place}: give either requirements or not_testable, and not an empty one"
            raise ValueError(msg)
        yield Sentence(place, row["says"], ids, reason)
