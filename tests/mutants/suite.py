"""The mutants that there are, each beside the calls that must see it."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

from mutants import asked, asked_engine, asked_sums, asked_tools
from mutants.generator import Mutant
from mutants.kill import Asked
from mutants.run import Verdict, examine, mutants_of, walk

__all__ = ["PARTS", "every_mutant", "verdicts"]

#: By the package whose functions are noted: the modules that are mutated, and the calls.
PARTS: dict[str, tuple[Callable[[], Sequence[str]], Callable[[], list[asked.Row]]]] = {
    "halfeven.reference": (
        lambda: list(walk("halfeven.reference")),
        lambda: [row for rows in (*asked_tools.KINDS, *asked_sums.KINDS, *asked.KINDS) for row in rows()],
    ),
    "halfeven.conformance": (lambda: asked_engine.MODULES, lambda: list(asked_engine.engine())),
}


@cache
def every_mutant() -> dict[str, list[Mutant]]:
    """The mutants of each part."""
    return {part: mutants_of(modules()) for part, (modules, _) in PARTS.items()}


def verdicts(
    chosen: Callable[[Mutant], bool], workers: int, seen: Callable[[Mutant, Verdict], None]
) -> dict[Mutant, Verdict]:
    """The verdict on each mutant that is chosen."""
    found: dict[Mutant, Verdict] = {}
    for part, (_, rows) in PARTS.items():
        if wanted := [m for m in every_mutant()[part] if chosen(m)]:
            folder = str(Path(str(import_module(part).__file__)).parent)
            found |= examine(Asked(rows(), folder), wanted, workers, seen)
    return found
