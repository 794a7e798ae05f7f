"""``halfeven run``: the backends looked up, pytest run on them in a process of its own, and the exit status of that."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from halfeven.conformance.child import Ending, Tell
from halfeven.conformance.child import run as run_child

__all__ = ["CONFORMS", "DIFFERS", "USAGE", "Request", "run"]

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
        resume: whether to go on with what ``out`` holds.
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
    resume: bool
    given: Sequence[str]
    extra: Sequence[str]


def run(request: Request) -> int:
    """Carry out ``halfeven run``; the exit status: 0 conforms, 1 differs, 2 it is not known.

    Raises:
        ValueError: a backend cannot be had; the message has the reason.
        OSError: the report cannot be read or written.
    """
    _look_up(request)
    report = request.out / "report.json"
    before = _written(report)
    ending = run_child(_tests, _arguments(request))
    if ending.value == _PYTEST_USAGE:  # pytest has said what
        return USAGE
    if _written(report) == before:
        what = ending.words if ending.value is None else "pytest ended"
        return _unknown(f"{what} before the run began, so there is no report of it")
    return _status(request, ending)


def _look_up(request: Request) -> None:
    """Say what is wrong with a backend before anything starts, without importing a user's module here."""
    from halfeven.conformance.backends import registry  # noqa: PLC0415 - --help needs no torch

    own = []
    for spec in request.backends:
        if registry.is_own(spec):
            own.append(spec)
        elif spec not in registry.REGISTRY and spec not in registry.GROUPS:
            registry.resolve(spec)  # to be told the nearest names
    if not own:
        return
    ending = run_child(_resolve, own, request.profile, quiet=True)
    if ending.value is None:
        tried = f" while backend {ending.told[-1]!r} was imported and constructed" if ending.told else ""
        msg = f"{ending.words}{tried}"
        raise ValueError(msg)
    if ending.value:
        raise ValueError(ending.told[-1])


def _resolve(tell: Tell, specs: Sequence[str], profile: str | None) -> int:
    """Import and construct every backend; 1 where one fails, and the last that is told is why."""
    from halfeven.conformance.backends import registry  # noqa: PLC0415 - see above

    for spec in specs:
        tell(spec)
        try:
            registry.resolve(spec, profile)
        except registry.NotInstalled:
            continue
        except (ValueError, TypeError) as error:
            tell(str(error))
            return 1
    return 0


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
    words += [f"--halfeven-profile={r.profile}"] if r.profile else []
    words += [f"--halfeven-item={item}" for item in r.items]
    words += ["--halfeven-resume"] if r.resume else []
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
    from halfeven.conformance.report import codec, folder, terminal  # noqa: PLC0415 - they need jsonschema
    from halfeven.conformance.requirements import canonical_item  # noqa: PLC0415 - it needs NumPy
    from halfeven.conformance.suite import says_something  # noqa: PLC0415 - it needs torch

    died = ending.value is None
    report = folder.recover(request.out) if died else codec.read_json(request.out / folder.REPORT)
    print(terminal.to_text(report, shutil.get_terminal_size().columns, str(request.out)), flush=True)
    ran = {name for r in report.results for name in (r.id, f"{r.backend}::{r.id}")}
    if unknown := sorted(item for item in request.items if not {item, canonical_item(item)} & ran):
        return _unknown(
            f"--item={unknown[0]!r} is not accepted: no item of this run has that name, or it did not finish"
        )
    if not report.complete:
        return _incomplete(request, ending, f"{len(report.results)} of {report.expected} checks finished")
    if ending.value == _PYTEST_INTERNAL:
        return _unknown("pytest stopped with an internal error, so nothing is known to conform")
    if not report.ran:
        return _unknown("nothing ran, so nothing is known to conform; the report says why")
    if report.conforms and not says_something(report.results):
        return _unknown("no documented requirement was checked, so nothing is known to conform; the report says why")
    return CONFORMS if report.conforms else DIFFERS


def _incomplete(request: Request, ending: Ending, finished: str) -> int:
    rest = [w for w in request.given if w != "--resume"]
    again = shlex.join(["halfeven", *rest[:1], "--resume", *rest[1:]])
    said = [f"the run is incomplete: {finished}"]
    if ending.value is None and not ending.stopped:
        said.append(ending.words + (f" in {ending.told[-1]}" if ending.told and request.workers == "0" else ""))
    said.append(f"resume with: {again}")
    return _unknown("; ".join(said))


def _unknown(message: str) -> int:
    print(f"halfeven: {message}", file=sys.stderr)
    return USAGE
