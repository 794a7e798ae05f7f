"""The requirements: what each profile's documents say, sentence by sentence, in tables beside this file.

``<profile>.toml`` speaks of the operations, ``every-profile.toml`` of what no document has to say, and the files in
``<profile>/`` of the documented functions around them. A requirement's id is ``profile/operation/aspect``, or
``profile/function/aspect``; a profile ``name@version`` answers to the requirements of ``name``.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, get_args

from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.profiles import OPERATIONS, PROFILES

Basis = Literal["documented", "measured", "expected", "silent"]

__all__ = ["Basis", "Requirement", "requirements"]

_EVERY = "every-profile"
_KEYS = {"text", "basis", "source", "operations", "formula", "checks", "kills", "needs"}


@dataclass(frozen=True)
class Requirement:
    """One sentence that an implementation can be held to.

    Attributes:
        id: ``profile/operation/aspect``, or ``profile/function/aspect``.
        text: the sentence, in our words.
        basis: the document says so; the library does so where the document leaves room; any user expects so; or
            the document is silent, and the outcome is the value seen.
        source: where the document says it.
        checks: the names of the checks that try it, or of the formula's call sets.
        kills: the mutants that they catch, or the edits of the formula.
        needs: operations that a backend must have beside the one spoken of.
        formula: the id of the formula that it speaks of; empty where the profile states none.
        called: whether the formula is a function tried by calls; else its operation is tried by checks.
    """

    id: str
    text: str
    basis: Basis
    source: str
    checks: tuple[str, ...]
    kills: tuple[str, ...]
    needs: tuple[str, ...] = ()
    formula: str = ""
    called: bool = False

    @property
    def operation(self) -> str:
        """The operation or the documented function that it speaks of."""
        return self.id.split("/")[1]


@lru_cache(maxsize=64)
def requirements(profile: str) -> tuple[Requirement, ...]:
    """Every requirement of ``profile``: the smoke probes, its operations', those of every profile, its functions'."""
    name = profile.split("@", maxsplit=1)[0]
    found = [*_of_operations(profile, name), *_of_functions(profile, name)]
    return tuple(sorted(found, key=lambda r: not r.id.endswith("/smoke")))


def _of_operations(profile: str, name: str) -> Iterator[Requirement]:
    available = set(PROFILES[profile].numpy)
    if not available:
        return
    own, common = _read(f"{name}.toml"), _read(f"{_EVERY}.toml")
    spoken = {(aspect, o) for aspect, row in own.items() for o in row["operations"]}
    rows = [(aspect, row, o) for aspect, row in own.items() for o in row["operations"]]
    rows += [(aspect, row, o) for aspect, row in common.items() for o in row["operations"] if (aspect, o) not in spoken]
    transcriptions = PROFILES[name].transcriptions
    formulas = {o: f.id for o, t in transcriptions.items() for f in FORMULAS.values() if f.function is t}
    for aspect, row, o in rows:
        if {o, *row.get("needs", ())} <= available:
            yield _requirement(f"{profile}/{o}/{aspect}", _measured(profile, aspect, row), formulas.get(o, ""))


def _of_functions(profile: str, name: str) -> Iterator[Requirement]:
    folder = files(__name__).joinpath(name)
    tables = sorted(t.name for t in folder.iterdir() if t.name.endswith(".toml")) if folder.is_dir() else []
    for table in tables:
        for key, row in _read(f"{name}/{table}").items():
            yield _requirement(f"{profile}/{key}", row, row["formula"], called=True)


def _measured(profile: str, aspect: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a document leaves open, a library's measured behaviour settles, where its model states it."""
    stated = "@" in profile and aspect == "nan" and PROFILES[profile].model.nan != "propagate"
    return {**row, "basis": "measured"} if stated else row


def _read(path: str) -> Mapping[str, Mapping[str, Any]]:
    rows = tomllib.loads(files(__name__).joinpath(path).read_text(encoding="utf-8"))
    for aspect, row in rows.items():
        if unknown := row.keys() - _KEYS:
            msg = f"{path}, {aspect}: {', '.join(sorted(unknown))} is not accepted: give {', '.join(sorted(_KEYS))}"
            raise ValueError(msg)
        known: dict[str, tuple[Any, ...]] = {"operations": OPERATIONS, "basis": get_args(Basis)}
        given = {"operations": row.get("operations", ()), "basis": [row["basis"]]}
        for key, accepted in known.items():
            if bad := [v for v in given[key] if v not in accepted]:
                msg = f"{path}, {aspect}: {key}={bad} is not accepted: give one of {accepted}"
                raise ValueError(msg)
        if ("formula" in row) == ("operations" in row) or ("formula" in row and "/" not in aspect):
            msg = f"{path}, {aspect}: give operations, or a formula and the name function/aspect"
            raise ValueError(msg)
    return rows


def _requirement(id_: str, row: Mapping[str, Any], formula: str, *, called: bool = False) -> Requirement:
    checks, kills, needs = (tuple(row.get(key, ())) for key in ("checks", "kills", "needs"))
    return Requirement(id_, row["text"], row["basis"], row.get("source", ""), checks, kills, needs, formula, called)
