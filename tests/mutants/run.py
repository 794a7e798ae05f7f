"""Every mutant of many modules, in processes that are forked for some of one module's mutants at a time."""

import gc
import inspect
import os
import pkgutil
import resource
import select
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal

from mutants.generator import Mutant, mutants
from mutants.kill import Asked, ready_to_fork

__all__ = ["NO_FORMULA", "Verdict", "examine", "mutants_of", "walk"]

Verdict = Literal["seen", "survives", "not run", "timed out"]
_VERDICTS: dict[bool | None, Verdict] = {True: "seen", False: "survives", None: "not run"}
_LETTERS = {"s": "seen", "a": "survives", "n": "not run"}
_AT_A_TIME = 40
#: Modules without a number in them, which register and find the others; and a signpost, which cannot be imported.
NO_FORMULA = {f"halfeven.reference.{name}" for name in ("behaviour", "catalogue", "former", "profiles", "systems")}
_SILENCE = 60.0  # seconds without a verdict, of which a call has five: the rest is no Python, and is ended from outside
_MEMORY = 6 << 30  # more than a call needs, and less than makes the machine swap


def walk(package: str) -> Iterator[str]:
    """The modules of a package that compute something, by name."""
    for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        if found.name not in NO_FORMULA:
            import_module(found.name)
            yield found.name


def mutants_of(modules: Iterable[str]) -> list[Mutant]:
    """Every mutant of the modules."""
    return [m for name in modules for m in mutants(name, inspect.getsource(import_module(name)))]


@dataclass(eq=False)
class _Child:
    process: int
    pipe: int
    left: list[Mutant]
    heard: float = field(default=0.0)


def examine(
    asked: Asked, chosen: Sequence[Mutant], workers: int, seen: Callable[[Mutant, Verdict], None]
) -> dict[Mutant, Verdict]:
    """The verdict on each mutant; ``seen`` hears of each as it comes."""
    waiting = _portions(chosen)
    ready_to_fork()
    gc.collect()
    gc.freeze()  # what is there before a fork stays shared
    children: dict[int, _Child] = {}
    found: dict[Mutant, Verdict] = {}

    def note(mutant: Mutant, verdict: Verdict) -> None:
        found[mutant] = verdict
        seen(mutant, verdict)

    try:
        while waiting or children:
            while waiting and len(children) < workers:
                child = _fork(asked, waiting.pop())
                children[child.pipe] = child
            ready, _, _ = select.select(list(children), [], [], _SILENCE)
            # All are silent: what they are at does not end.
            for pipe in ready or list(children):
                child = children[pipe]
                letters = os.read(pipe, 4096).decode() if ready else ""
                for letter in letters:
                    note(child.left.pop(0), _LETTERS[letter])  # type: ignore[arg-type]
                if not letters:
                    del children[pipe]
                    _end(child)
                    if child.left:
                        note(child.left.pop(0), "timed out")
                        waiting.append(child.left)
    finally:
        gc.unfreeze()  # what looks for functions next sees what is there
        for child in children.values():
            _end(child)
    return found


def _portions(chosen: Sequence[Mutant]) -> list[list[Mutant]]:
    by_module: dict[str, list[Mutant]] = {}
    for mutant in chosen:
        by_module.setdefault(mutant.module, []).append(mutant)
    return [every[i : i + _AT_A_TIME] for every in by_module.values() for i in range(0, len(every), _AT_A_TIME)]


def _fork(asked: Asked, portion: list[Mutant]) -> _Child:
    read, write = os.pipe()
    with warnings.catch_warnings(action="ignore"):  # of threads, which the child has no use for
        process = os.fork()
    if process:
        os.close(write)
        return _Child(process, read, list(portion))
    os.close(read)
    try:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, hard))
        warnings.simplefilter("ignore")  # of a mutant, no error
        for mutant in portion:
            verdict = _VERDICTS[asked.sees(mutant)]
            os.write(write, next(k for k, v in _LETTERS.items() if v == verdict).encode())
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - a forked process must not go on as its parent
        print(f"{mutant.owner}: {mutant.change}: {error!r}", file=sys.stderr)
        os._exit(1)


def _end(child: _Child) -> None:
    os.close(child.pipe)
    if os.waitpid(child.process, os.WNOHANG)[0] == 0:
        os.kill(child.process, 9)
        os.waitpid(child.process, 0)
