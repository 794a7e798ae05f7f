"""The requirements: one TOML per profile, and ``every-profile.toml`` for what no document has to say.

A requirement's id is ``profile/operation/aspect``; a profile ``name@version`` answers to the requirements of ``name``.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, get_args

from halfeven.reference.profiles import OPERATIONS, PROFILES, Operation

Basis = Literal["documented", "measured", "expected", "silent"]

__all__ = ["Basis", "Requirement", "requirements"]

_EVERY = "every-profile"


@dataclass(frozen=True)
class Requirement:
    """One sentence that an implementation can be held to.

    Attributes:
        id: ``profile/operation/aspect``.
        text: the sentence, in our words.
        basis: the document says so; the library does so where the document leaves room; any user expects so; or
            the document is silent, and the outcome is the value seen.
        source: where the document says it.
        checks: the names of the checks that try it.
        kills: the mutants that they catch.
        needs: operations that a backend must have beside the one spoken of.
    """

    id: str
    text: str
    basis: Basis
    source: str
    checks: tuple[str, ...]
    kills: tuple[str, ...]
    needs: tuple[str, ...] = ()

    @property
    def operation(self) -> Operation:
        """The operation that it speaks of."""
        return next(o for o in OPERATIONS if o == self.id.split("/")[1])


@lru_cache(maxsize=64)
def requirements(profile: str) -> tuple[Requirement, ...]:
    """Every requirement of ``profile``: the smoke probes, its own in the order of its file, those of every profile."""
    own, common = _read(profile.split("@", maxsplit=1)[0]), _read(_EVERY)
    available = set(PROFILES[profile].numpy)
    spoken = {(aspect, o) for aspect, row in own.items() for o in row["operations"]}
    rows = [(aspect, row, o) for aspect, row in own.items() for o in row["operations"]]
    rows += [(aspect, row, o) for aspect, row in common.items() for o in row["operations"] if (aspect, o) not in spoken]
    found = [
        _requirement(f"{profile}/{o}/{aspect}", _measured(profile, aspect, row))
        for aspect, row, o in rows
        if {o, *row.get("needs", ())} <= available
    ]
    return tuple(sorted(found, key=lambda r: not r.id.endswith("/smoke")))


def _measured(profile: str, aspect: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a document leaves open, a library's measured behaviour settles, where its model states it."""
    stated = "@" in profile and aspect == "nan" and PROFILES[profile].model.nan != "propagate"
    return {**row, "basis": "measured"} if stated else row


def _read(name: str) -> Mapping[str, Mapping[str, Any]]:
    text = files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)
    for aspect, row in rows.items():
        known: dict[str, tuple[Any, ...]] = {"operations": OPERATIONS, "basis": get_args(Basis)}
        given = {"operations": row["operations"], "basis": [row["basis"]]}
        for key, accepted in known.items():
            if bad := [v for v in given[key] if v not in accepted]:
                msg = f"{name}.toml, {aspect}: {key}={bad} is not accepted: give one of {accepted}"
                raise ValueError(msg)
    return rows


def _requirement(id_: str, row: Mapping[str, Any]) -> Requirement:
    checks, kills, needs = (tuple(row.get(key, ())) for key in ("checks", "kills", "needs"))
    return Requirement(id_, row["text"], row["basis"], row.get("source", ""), checks, kills, needs)
