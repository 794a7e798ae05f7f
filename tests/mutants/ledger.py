"""The survivors that are known, each with its reason, from the table beside this file."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from mutants.generator import Mutant
from mutants.run import Verdict

__all__ = ["EVERY", "HOLE", "LEDGER", "gone", "is_new", "read", "reason"]

Key = tuple[str, str]
EVERY = "*"
HOLE = "hole"
PATH = Path(__file__).with_name("survivors.toml")


def read(text: str) -> dict[Key, str]:
    """The reason of each survivor, by function and change.

    Raises:
        ValueError: a survivor stands twice, or without a reason.
    """
    found: dict[Key, str] = {}
    for name, row in tomllib.loads(text).items():
        reason = row.pop("reason", "")
        if not reason:
            msg = f"{name}: no reason is not accepted: say why no call sees these mutants"
            raise ValueError(msg)
        for owner, changes in row.items():
            for change in changes:
                if (owner, change) in found:
                    msg = f"{owner}: {change!r} stands twice: under {found[owner, change]!r} too"
                    raise ValueError(msg)
                found[owner, change] = reason
    return found


LEDGER = read(PATH.read_text(encoding="utf-8"))


def reason(mutant: Mutant, ledger: Mapping[Key, str]) -> str | None:
    """Why a mutant survives; ``*`` stands for every mutant of a function that no call runs."""
    return ledger.get(mutant.key, ledger.get((mutant.home, EVERY)))


def is_new(mutant: Mutant, verdict: Verdict, ledger: Mapping[Key, str]) -> bool:
    """Whether a mutant survives, or is run by no call, and no reason is known."""
    return {"survives": mutant.key not in ledger, "not run": reason(mutant, ledger) is None}.get(verdict, False)


def gone(verdicts: Iterable[tuple[Mutant, Verdict]], ledger: Mapping[Key, str]) -> set[Key]:
    """The rows whose mutants are all seen now."""
    verdicts = list(verdicts)
    asked = {key for m, _ in verdicts for key in (m.key, (m.home, EVERY))} & ledger.keys()
    left = {m.key for m, verdict in verdicts if verdict in {"survives", "not run"}}
    return asked - left - {(m.home, EVERY) for m, verdict in verdicts if verdict == "not run"}
