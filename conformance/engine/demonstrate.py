"""Scripts are run alone before they are shown: what a witness says to be seen was seen, or it is not said."""

import ast
import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from halfeven.conformance.engine.unsteady import AFTER, ALONE, is_everywhere, unsteady
from halfeven.conformance.properties import CHECK
from halfeven.conformance.report.causes import witnessed
from halfeven.conformance.report.model import Result, Witness
from halfeven.conformance.report.words import AFTER_OTHERS

__all__ = ["GUARD", "Seen", "demonstrated", "run_alone", "unrun"]

GUARD = "HALFEVEN_ALONE"  # set where a script is run
RAISED = 113  # the exit status of a script that an error has ended
TIMEOUT = 60.0  # seconds that a script may take, the import of its library among them
_TRIED = 4  # of the witnesses of one cause
_FORKS = sys.platform == "linux"


@dataclass(frozen=True)
class Seen:
    """What a script showed.

    Attributes:
        expected, actual: what it printed after these words; of a process that ended, how it did.
        trouble: why it showed nothing, such as the last line of an error.
    """

    expected: str = ""
    actual: str = ""
    trouble: str = ""

    @property
    def differs(self) -> bool:
        """Whether it showed a difference."""
        return not self.trouble and self.expected != self.actual


def demonstrated(results: Iterable[Result], python: str = sys.executable, timeout: float = TIMEOUT) -> list[Result]:
    """The results, of each backend's cause one with a script that was run alone and showed its difference.

    Where a script does not, that of another result with the same cause is tried. Only what was seen keeps its script;
    every other witness says why it has none. Where the difference shows only after other calls, that is a cause.

    Args:
        results: of any backends.
        python: the interpreter that their libraries are installed in.
        timeout: seconds for each script.
    """
    found = list(results)
    groups: dict[tuple[str, ...], list[int]] = {}
    for i, r in enumerate(found):
        if r.witness is not None and r.witness.script:
            groups.setdefault((r.backend, r.profile, r.outcome, r.cause), []).append(i)
    for places in groups.values():
        places.sort(key=lambda i: _rank(found[i]))
    showing, agreed = _run_groups(found, groups, python, timeout)
    for key, places in groups.items():
        other = showing.get(key)
        sentence = _unsteadily(None if other is None else found[other], any(i in agreed for i in places))
        for i in places:
            w = found[i].witness
            if w is not None and i != other and w.script:
                said = (
                    "scripts of other checks with its cause showed nothing"
                    if other is None
                    else f"{found[other].id} shows the same cause"
                )
                found[i] = _changed(found[i], "", said)
            if sentence == AFTER or (sentence == ALONE and is_everywhere(found[i])):
                found[i] = unsteady(found[i], sentence)
    return _each_cause(found, python, timeout)


def _each_cause(results: Sequence[Result], python: str, timeout: float) -> list[Result]:
    """The results; a cause's own witness stays if it has no script, or its script showed the difference."""
    pairs = ((i, c, c.witness) for i, r in enumerate(results) for c in r.causes)
    own = [(i, c, w) for i, c, w in pairs if w is not None and w.script and not w.reproduced]
    found = list(results)
    for (i, cause, w), came in zip(own, run_alone([w.script for _, _, w in own], python, timeout), strict=True):
        found[i] = witnessed(found[i], cause, replace(w, reproduced=True) if came.differs else None)
    return found


def unrun(result: Result) -> Result:
    """A result without the scripts that were not seen to show a difference: of an earlier run nothing is run."""

    def kept(w: Witness | None) -> Witness | None:
        if w is None or w.reproduced or not w.script:
            return w
        return replace(w, script="", longer="", unshown="its check is of an earlier run, whose scripts are not run")

    every = (result.witness, *(c.witness for c in result.causes))
    if all(kept(w) is w for w in every):
        return result
    causes = tuple(replace(c, witness=kept(c.witness)) for c in result.causes)
    return replace(result, witness=kept(result.witness), causes=causes)


def _after(r: Result) -> Result:
    """With the words that its witness makes other calls first."""
    assert r.witness is not None, "it has one"
    return replace(r, witness=replace(r.witness, where=f"{r.witness.where}; after{AFTER_OTHERS}"))


def _unsteadily(shows: Result | None, agreed: bool) -> str:
    """What the scripts of a cause say of calls before: of the result that shows it, or whether one showed nothing."""
    if shows is None:
        return ALONE if agreed else ""
    return AFTER if shows.witness is not None and shows.witness.where.endswith(AFTER_OTHERS) else ""


def _run_groups(
    found: list[Result], groups: Mapping[tuple[str, ...], Sequence[int]], python: str, timeout: float
) -> tuple[dict[tuple[str, ...], int], set[int]]:
    """For each group the result whose script showed its difference; those whose script showed the document's answer.

    What showed no difference loses its script in ``found``.
    """
    tries = {key: _tries([(i, found[i].witness) for i in places[:_TRIED]]) for key, places in groups.items()}
    showing: dict[tuple[str, ...], int] = {}
    agreed: set[int] = set()
    for turn in range(2 * _TRIED):
        tried = {key: some[turn] for key, some in tries.items() if key not in showing and turn < len(some)}
        seen = run_alone([script for _, script in tried.values()], python, timeout)
        for (key, (i, script)), came in zip(tried.items(), seen, strict=True):
            found[i] = _changed(found[i], script if came.differs else "", "" if came.differs else _why(came))
            if came.differs:
                showing[key] = i
                found[i] = _after(found[i]) if i in agreed else found[i]
            elif not came.trouble and not found[i].check.startswith(CHECK):
                agreed.add(i)  # a property's script shows that it holds, not what the document gives
    return showing, agreed


def _tries(witnesses: Sequence[tuple[int, Witness | None]]) -> list[tuple[int, str]]:
    """The scripts of one cause in the order in which they are tried, each with its result's place."""
    short = [(i, w.script) for i, w in witnesses if w is not None]
    return short + [(i, w.longer) for i, w in witnesses if w is not None and w.longer]


def run_alone(scripts: Sequence[str], python: str = sys.executable, timeout: float = TIMEOUT) -> list[Seen]:
    """What each script shows, run in a process of its own; an equal one is run once."""
    distinct = list(dict.fromkeys(scripts))
    if os.environ.get(GUARD):  # this is such a script's own process
        return [Seen(trouble="a script that is run alone runs no others")] * len(scripts)
    groups: dict[frozenset[str], list[str]] = {}
    for script in distinct:
        groups.setdefault(_imports(script), []).append(script)
    came: dict[str, Seen] = {}
    for some in groups.values():
        told = _staged(some, python, timeout) if _FORKS else [_started(s, python, timeout) for s in some]
        came |= dict(zip(some, map(_seen, told), strict=True))
    return [came[s] for s in scripts]


def _rank(r: Result) -> tuple[Any, ...]:
    w = r.witness
    assert w is not None, "it has one"
    return bool(w.nearer), len(w.script), r.id


def _changed(r: Result, script: str, unshown: str) -> Result:
    """With the script that was seen to show the difference, or with the reason why there is none."""
    assert r.witness is not None, "it has one"
    return replace(r, witness=replace(r.witness, reproduced=bool(script), unshown=unshown, script=script, longer=""))


def _why(came: Seen) -> str:
    said = came.trouble or f"it printed {came.expected!r:.80} for both"
    return f"run alone, its script did not show the difference: {' '.join(said.split()):.300}"


def _imports(script: str) -> frozenset[str]:
    """The modules that a script imports: those with the same ones are run from one process."""
    found: set[str] = set()
    with contextlib.suppress(SyntaxError):
        for node in ast.walk(ast.parse(script)):
            match node:
                case ast.Import(names=names):
                    found |= {a.name for a in names}
                case ast.ImportFrom(module=str(module)):
                    found.add(module)
    return frozenset(found)


def _seen(told: Mapping[str, Any]) -> Seen:
    """What the lines say; a process that ended after its first line shows how it did."""
    lines = str(told["printed"]).splitlines()
    said = {
        word: line.removeprefix(word).strip()
        for line in lines
        for word in ("expected", "actual")
        if line.startswith(word)
    }
    status, expected = int(told["status"]), said.get("expected")
    last = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
    if expected is None:
        return Seen(trouble=last)
    if "actual" in said:
        return Seen(expected, said["actual"])
    if told["late"]:
        return Seen(expected, "timed out")
    if status == RAISED:
        return Seen(trouble=last)
    return Seen(expected, f"signal {-status}" if status < 0 else f"exit status {status}")


class _Stage:
    """The process that forks, kept for this process's life."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - the interpreter that the user names
            [python, "-P", str(Path(__file__).with_name("stage.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )

    def run(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return [json.loads(self.process.stdout.readline()) for _ in request["scripts"]]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        self.process.kill()
        self.process.wait()


_STAGES: dict[tuple[str, int], _Stage] = {}


def _staged(scripts: Sequence[str], python: str, timeout: float) -> list[dict[str, Any]]:
    own = python == sys.executable
    path = [str(Path(p).absolute()) for p in sys.path] if own else []
    request = {"scripts": list(scripts), "timeout": timeout, "path": path, "folder": str(Path.cwd())}
    key = (python, os.getpid())
    for _ in range(2):
        try:
            if key not in _STAGES:
                _STAGES[key] = _Stage(python)
                atexit.register(_STAGES[key].close)
            return _STAGES[key].run(request)
        except (OSError, ValueError) as error:
            if (broken := _STAGES.pop(key, None)) is not None:
                atexit.unregister(broken.close)
                broken.close()
            trouble = str(error)
    return [{"status": RAISED, "late": False, "printed": f"no process can run it: {trouble}"}] * len(scripts)


def _started(script: str, python: str, timeout: float) -> dict[str, Any]:
    """Where nothing forks: a new process for each script."""
    with tempfile.TemporaryDirectory(prefix="halfeven-") as folder:
        path = Path(folder, "script.py")
        path.write_text(script, encoding="utf-8")
        own = (
            {"PYTHONPATH": os.pathsep.join([*map(str, sys.path), str(Path.cwd())])} if python == sys.executable else {}
        )
        try:
            ran = subprocess.run(  # noqa: S603 - as above
                [python, "-P", str(path)],
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
                env={**os.environ, **own, GUARD: "1"},
            )
        except subprocess.TimeoutExpired as late:
            text = late.stdout if isinstance(late.stdout, str) else (late.stdout or b"").decode(errors="replace")
            return {"status": -9, "late": True, "printed": text}
    raised = ran.returncode == 1 and "Traceback" in ran.stderr
    return {"status": RAISED if raised else ran.returncode, "late": False, "printed": ran.stdout + ran.stderr}
