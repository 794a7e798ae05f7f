"""The suite on a GPU: a run of each backend, whose report is kept."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from gpu.steps import CutError, Left, NotRunError, Part
from halfeven.conformance.backends.registry import describe

__all__ = ["libraries", "ours"]

_OURS = ("halfeven", "halfeven.integer", "halfeven.aimet")
_CONFORMS, _DIFFERS = 0, 1
_ENDS = 30.0  # seconds to end by itself
_FOR_A_RUN = ("journal.jsonl", "planned.json", "lock")


def ours(out: Path, device: str) -> list[Part]:
    """Of our own backends, which are to conform."""
    return [Part(f"suite, {name}", partial(_run, name, device, out / name, conforms=True)) for name in _OURS]


def libraries(out: Path, device: str) -> list[Part]:
    """Of the others that are installed: that one differs is a finding, and no failure."""
    rows = [row for row in describe() if row["backend"] not in _OURS and "not installed" not in row["version"]]
    names = [row["backend"] for row in rows]
    return [Part(name, partial(_run, name, device, out / name), extra=True) for name in names]


def _run(name: str, device: str, out: Path, left: Left, *, conforms: bool = False) -> tuple[str, Any]:
    command = [Path(sys.executable).with_name("halfeven"), "run", f"{name}@{device}", "--out", out]
    command += ["--resume"] if (out / "planned.json").exists() else []
    (out / "report.json").unlink(missing_ok=True)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    child = subprocess.Popen(command, **streams, text=True, start_new_session=True)
    try:
        _, said = child.communicate(timeout=max(left(), 1))
    except subprocess.TimeoutExpired:
        _end(child)
        raise CutError from None
    except BaseException:
        _end(child)
        raise
    last = (said.strip().splitlines() or [""])[-1]
    path = out / "report.json"
    results = json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else []
    found = Counter(r["outcome"] for r in results)
    if path.exists() and not sum(found.values()) - found["not run"]:
        raise NotRunError(last)
    if child.returncode not in (_CONFORMS, _DIFFERS):
        return f"status {child.returncode}: {last}", None
    for kept in _FOR_A_RUN:
        (out / kept).unlink(missing_ok=True)
    wrong = conforms and child.returncode != _CONFORMS
    return ("it differs: see its report" if wrong else ""), dict(found)


def _end(child: "subprocess.Popen[str]") -> None:
    """As Ctrl-C does, so that it keeps what it has; then for good."""
    os.killpg(child.pid, signal.SIGINT)
    try:
        child.communicate(timeout=_ENDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
