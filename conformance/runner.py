"""``halfeven run``: the backends looked up, pytest run on them in a process of its own, and the exit status of that.

``halfeven report`` ends as a run does, from what is written in the run's folder.
"""

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from halfeven.conformance.child import Ending, Tell
from halfeven.conformance.child import run as run_child
from halfeven.conformance.output import say
from halfeven.conformance.report.model import CONFORMING, Report
from halfeven.conformance.report.printable import printable

if TYPE_CHECKING:
    from halfeven.conformance.workers.server import Server

__all__ = ["CONFORMS", "DIFFERS", "USAGE", "Request", "report", "run", "show", "verdict"]

CONFORMS, DIFFERS, USAGE = 0, 1, 2
# Each restart costs an import of torch; xdist's own limit, 4 per process, ends a run in which one backend dies often.
_RESTARTS = 64
_PYTEST_USAGE, _PYTEST_INTERNAL = 4, 3


@dataclass(frozen=True)
class Request:
    """What was asked of ``halfeven run``.

    Attributes:
        backends: names, groups or ``pkg.mod:attr``.
        profile: the profile to hold every backend to, instead of its own claim.
        workers: processes: a number, or "auto"; "0" for none but the one that runs pytest.
        items: the items to run, as ``backend::id``; all where it is empty.
        require: how much must have been checked to conform, as ``share.requirement_share`` gives it.
        strict: whether what documents leave open, and what was only measured, is judged.
        resume: whether to go on with what ``out`` holds.
        timeout: seconds that a call may take.
        shard: of the exhaustive tier, the part of all scales; empty for what it takes by itself.
        python: the interpreter that has the backends; empty for this one.
        given: the command's words, as a report repeats them.
        extra: further arguments of pytest.
    """

    backends: Sequence[str]
    profile: str | None
    tier: str
    seed: int
    out: Path
    workers: str
    items: Sequence[str]
    require: str
    strict: bool
    resume: bool
    timeout: float
    shard: str
    python: str
    given: Sequence[str]
    extra: Sequence[str]


def run(request: Request) -> int:
    """Carry out ``halfeven run``; the exit status: 0 conforms, 1 differs, 2 it is not known.

    Raises:
        ValueError: a backend cannot be had; the message has the reason.
        OSError: the report cannot be read or written.
    """
    from halfeven.conformance.report import folder  # noqa: PLC0415 - it needs NumPy, which --help does without
    from halfeven.conformance.workers.server import Server  # noqa: PLC0415 - as above

    if (request.out / folder.LOCK).exists():  # else whoever waits for torch is told only then
        folder.Lock(request.out).release()
    plan = request.out / folder.PLAN
    before = _written(plan)
    with Server(request.python or sys.executable) as server:
        server.start()
        _look_up(request, server)
        ending = run_child(_tests, _arguments(request))
    if ending.value == _PYTEST_USAGE:  # pytest has said what
        return USAGE
    if _written(plan) == before:
        what = ending.words if ending.value is None else "pytest ended"
        return _unknown(f"{what} before the run began, so there is no report of it")
    return _status(request, ending)


def report(out: Path) -> int:
    """Carry out ``halfeven report``: write the report of what a run has written down; the status is as the run's.

    Nothing of a backend is imported.

    Raises:
        ValueError: a run is going on in ``out``, or it holds none, or a file is damaged.
        OSError: the report cannot be read or written.
    """
    from halfeven.conformance.report import folder  # noqa: PLC0415 - as above

    if not out.is_dir():
        msg = f"DIR={str(out)!r} is not accepted: give the folder of a run"
        raise ValueError(msg)
    with folder.locked(out):
        found = _concluded(out)
        folder.write(found, out)
    show(found, out)
    words = _split(found.command)
    if found.complete or words[:2] != ["halfeven", "run"]:
        return verdict(found)
    return _incomplete(found, _resuming(words[1:]))


def _look_up(request: Request, server: "Server") -> None:
    """Say what is wrong with a backend before anything starts, without importing a user's module here."""
    from halfeven.conformance.backends import registry  # noqa: PLC0415 - --help needs no NumPy
    from halfeven.conformance.workers.named import worker_of  # noqa: PLC0415 - as above

    named: dict[str, str] = {}
    for spec in dict.fromkeys(m for given in request.backends for m in registry.members(given)):
        name, words = registry.split(spec)
        if words or registry.is_own(spec) or name not in registry.REGISTRY:
            worker = worker_of(spec, server, request.profile, timeout=request.timeout)
            try:
                name = worker.offer.name
            except registry.NotInstalled:
                continue
            finally:
                worker.close()
        if named.setdefault(name, spec) != spec:  # a process of xdist could not say so
            raise ValueError(registry.same_name(name, named[name], spec))


def _tests(tell: Tell, arguments: Sequence[str]) -> int:
    import pytest  # noqa: PLC0415 - the process that waits does without

    from halfeven.conformance.progress import Display  # noqa: PLC0415 - as above

    return int(pytest.main(list(arguments), plugins=[Display(tell)]))


def _arguments(request: Request) -> list[str]:
    r = request
    words = ["-c", str(files("halfeven.conformance") / "run.ini"), f"--rootdir={Path.cwd()}"]
    words += ["-p", "no:cacheprovider", "--tb=no", "--halfeven-only"]
    words += [f"--halfeven-backend={b}" for b in r.backends]
    words += [f"--halfeven-tier={r.tier}", f"--halfeven-seed={r.seed}", f"--halfeven-out={r.out}"]
    words += [f"--halfeven-require={r.require}"]
    words += [f"--halfeven-profile={r.profile}"] if r.profile else []
    words += [f"--halfeven-item={item}" for item in r.items]
    words += ["--halfeven-strict"] if r.strict else []
    words += ["--halfeven-resume"] if r.resume else []
    words += [f"--halfeven-shard={r.shard}"] if r.shard else []
    words += [f"--halfeven-timeout={r.timeout}"] + ([f"--halfeven-python={r.python}"] if r.python else [])
    words += [f"--halfeven-command={shlex.join(['halfeven', *r.given])}"]
    words += ["-n", r.workers, f"--max-worker-restart={_RESTARTS}"] if r.workers != "0" else []
    return [*words, *r.extra]


def _written(path: Path) -> tuple[int, int] | None:
    """Which file this is: another one once it was written again."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _status(request: Request, ending: Ending) -> int:
    from halfeven.conformance.report import folder  # noqa: PLC0415 - as above
    from halfeven.conformance.requirements import canonical_item  # noqa: PLC0415 - as above

    with folder.locked(request.out):
        found = _concluded(request.out)
        show(found, request.out)  # before it is written, which may fail
        folder.write(found, request.out)
    planned = {*found.missing, *(r.name for r in found.results)}
    known = {name for full in planned for name in (full, full.partition("::")[2])}
    if unknown := sorted(item for item in request.items if not {item, canonical_item(item)} & known):
        return _unknown(
            f"--item={unknown[0]!r} is not accepted: no item of this run has that name, or it did not finish"
        )
    if not found.complete:
        died = ending.value is None and not ending.stopped
        at = f" in {ending.told[-1]}" if ending.told and request.workers == "0" else ""
        return _incomplete(found, _resuming(request.given), ending.words + at if died else "")
    if ending.value == _PYTEST_INTERNAL:
        return _unknown("pytest stopped with an internal error, so nothing is known to conform")
    return verdict(found)


def _concluded(out: Path) -> Report:
    """The report that follows from a folder; a run that was cut short has not said yet why anything differs."""
    from halfeven.conformance.concluding import conclusions  # noqa: PLC0415 - it needs NumPy, which --help does without
    from halfeven.conformance.report import folder  # noqa: PLC0415 - as above

    plan, journal = folder.read(out)
    for entry in conclusions(journal):
        journal.add(entry)
    return folder.report_of(plan, journal)


def show(found: Report, out: Path) -> None:
    """Print the end of a run."""
    from halfeven.conformance.report import terminal  # noqa: PLC0415 - it is slow to import

    say(terminal.to_text(found, shutil.get_terminal_size().columns, str(out)))


def verdict(found: Report) -> int:
    """The exit status of a report that is whole: 1 where anything differs, 2 where too little was checked to say."""
    from halfeven.conformance.claim import says_something  # noqa: PLC0415 - it needs NumPy

    if not found.complete:
        return _incomplete(found, "")
    if not found.ran:
        return _unknown("nothing ran, so nothing is known to conform; the report says why")
    if any(r.outcome not in CONFORMING for r in found.ran):
        return DIFFERS
    if not says_something(found.results):
        return _unknown("no documented requirement was checked, so nothing is known to conform; the report says why")
    if unmet := found.unmet:
        name, said = next(iter(unmet.items()))
        more = f" ({len(unmet) - 1} more backends likewise)" if len(unmet) > 1 else ""
        return _unknown(f"{name} is not known to conform: {said}{more}; --require any takes what ran for enough")
    return CONFORMS


def _incomplete(found: Report, again: str, why: str = "") -> int:
    finished = found.expected - len(found.missing)
    said = [f"the run is incomplete: {finished} of {found.expected} checks finished", why]
    said.append(f"resume with: {again}" if again else "")
    return _unknown("; ".join(filter(None, said)))


def _resuming(given: Sequence[str]) -> str:
    """The command that resumes a run; ``given`` are the words after ``halfeven``."""
    rest = [w for w in given if w != "--resume"]
    return shlex.join(["halfeven", *rest[:1], "--resume", *rest[1:]])


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # nobody's shell has written this
        return []


def _unknown(message: str) -> int:
    print(f"halfeven: {printable(message, '')}", file=sys.stderr)
    return USAGE
