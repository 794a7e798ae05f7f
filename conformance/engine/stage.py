"""A process that runs scripts alone: each in a process of its own, forked where NumPy and torch are imported already.

It is started as a program, by the path of this file, and imports nothing of this package: it reads a line of JSON with
scripts from its standard input, and answers each with a line: how it ended, and what it printed. Scripts that import
the same libraries are forked of a process that has imported these; what is a user's own module is imported by the
script alone.
"""

import ast
import contextlib
import importlib
import importlib.util
import json
import os
import resource
import runpy
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

__all__ = ["serve"]

_GUARD = "HALFEVEN_ALONE"  # as demonstrate has them
_RAISED = 113
_PRINTED = 1 << 16
_TICK = 0.002
_BASE = ("numpy", "ml_dtypes", "torch")


def serve() -> None:
    """Answer until the input ends."""
    os.environ[_GUARD] = "1"
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    started = False
    for line in requests:
        asked = json.loads(line)
        if asked["path"]:
            sys.path[:] = asked["path"]
        if asked["folder"] not in sys.path:  # where backends are found, too
            sys.path.append(asked["folder"])
        if not started:
            _import(_BASE)
            started = True
        for told in _of_group(asked):
            answers.write(json.dumps(told) + "\n")
        answers.flush()


def _of_group(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The scripts of a request, from a process between, which imports what they import."""
    with tempfile.TemporaryDirectory(prefix="halfeven-") as folder:
        answer = Path(folder, "answer.json")
        if (group := os.fork()) == 0:
            with contextlib.suppress(BaseException):
                os.chdir(asked["folder"])
                _prepare(asked["scripts"][0])
                found = [_alone(script, asked["timeout"], Path(folder, "script.py")) for script in asked["scripts"]]
                answer.write_text(json.dumps(found), encoding="utf-8")
            os._exit(0)
        os.waitpid(group, 0)
        if answer.exists():
            return list(json.loads(answer.read_text(encoding="utf-8")))
    return [{"status": _RAISED, "late": False, "printed": "the process between ended"}] * len(asked["scripts"])


def _prepare(script: str) -> None:
    """Import the libraries that a script imports, after the lines that stand before them."""
    with contextlib.suppress(BaseException):
        names = []
        for node in ast.walk(ast.parse(script)):
            if isinstance(node, ast.Import):
                names += [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.append(node.module)
        libraries = [n for n in dict.fromkeys(names) if n.split(".")[0] not in _BASE and _is_installed(n)]
        if libraries and "shim" in script:
            exec(compile(_prelude(script), "<prelude>", "exec"), _KEPT)  # noqa: S102 - the script's own lines
        _import(libraries)


_KEPT: dict[str, Any] = {}


def _prelude(script: str) -> str:
    """The lines that define what a library's import needs."""
    lines = script.splitlines()
    last = max(i for i, line in enumerate(lines) if "shim" in line)
    return "\n".join(line for line in lines[: last + 1] if line == "import torch" or "shim" in line)


def _is_installed(name: str) -> bool:
    """Whether a module is of an installed library, not a user's own."""
    top = name.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False
    return spec is not None and "site-packages" in str(spec.origin)


def _import(names: Any) -> None:
    for name in names:
        with contextlib.suppress(BaseException):
            importlib.import_module(name)


def _alone(script: str, timeout: float, path: Path) -> dict[str, Any]:
    path.write_text(script, encoding="utf-8")
    with tempfile.TemporaryFile() as printed:
        if (child := os.fork()) == 0:
            _run(str(path), printed.fileno())
        end, status = time.monotonic() + timeout, None
        while status is None and time.monotonic() < end:
            done, found = os.waitpid(child, os.WNOHANG)
            status = os.waitstatus_to_exitcode(found) if done else None
            if status is None:
                time.sleep(_TICK)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if late := status is None:
            _, found = os.waitpid(child, 0)
            status = os.waitstatus_to_exitcode(found)
        printed.seek(0)
        return {"status": status, "late": late, "printed": printed.read(_PRINTED).decode(errors="replace")}


def _run(path: str, printed: int) -> None:
    """The script's process; never returns."""
    status = 0
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - an error ends a script
        status = _RAISED
        with contextlib.suppress(BaseException):
            sys.stdout.flush()  # what it printed before comes first
            traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
