"""A step is parts that are run in turn and written down as each ends, so that a step that was cut goes on where it was.

A step ends with a status of its own for each way it can end. What was not run never counts as passed.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CUT", "FAILED", "NOT_RUN", "PASSED", "STATUS", "CutError", "Left", "NotRunError", "Part", "read", "run"]

PASSED, FAILED, CUT, NOT_RUN = "passed", "failed", "cut", "NOT RUN"
#: Of a step: 75 asks to be called again, 77 is what is skipped, as other tools have them.
STATUS = {PASSED: 0, FAILED: 1, CUT: 75, NOT_RUN: 77}
_WORST = (FAILED, CUT, NOT_RUN, PASSED)

#: Seconds that are left to a step.
Left = Callable[[], float]


class NotRunError(Exception):
    """What a part needs is not there; the message says what."""


class CutError(Exception):
    """The time of the step is over."""


@dataclass(frozen=True)
class Part:
    """One thing that a step looks at.

    Attributes:
        name: of which there is one in a step.
        run: given the seconds that are left; what is wrong, "" for nothing, and what was found.
        extra: whether the step can pass without it, as where a second GPU would be needed.
    """

    name: str
    run: Callable[[Left], tuple[str, Any]]
    extra: bool = False


def run(
    step: str,
    parts: Sequence[Part],
    path: Path,
    machine: dict[str, Any],
    seconds: float,
    say: Callable[[str], None],
    written: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Run what is not written down yet, and give the status of the step.

    Args:
        step: its name.
        parts: in the order they are run in.
        path: a line for each part that ended; those of another machine are run anew.
        machine: what the results are of.
        seconds: after which no part begins, and long ones end.
        say: is told each outcome.
        written: is called after each part.
        clock: for tests.
    """
    end = clock() + seconds
    known = {line["part"]: line for line in read(path) if line["machine"] == machine}
    done = {name: line for name, line in known.items() if line["outcome"] in (PASSED, FAILED)}
    lines = list(done.values())
    _write(path, lines)
    outcomes = []
    for part in parts:
        line = done.get(part.name)
        if line is None:
            line = _line(part, machine, lambda: end - clock(), clock)
            lines.append(line)
            _write(path, lines)
            written()
        outcomes.append((part, line["outcome"]))
        say(f"{step}, {part.name}: {line['outcome']}{': ' * bool(line['words'])}{line['words']}")
    # A step without parts, or of extra ones alone, has shown nothing.
    counted = [outcome for part, outcome in outcomes if outcome != NOT_RUN or not part.extra] or [NOT_RUN]
    worst = next(outcome for outcome in _WORST if outcome in counted)
    count = ", ".join(f"{n} {o}" for o in STATUS if (n := sum(outcome == o for _, outcome in outcomes)))
    again = {CUT: "; its time is over: call it again, and it goes on", NOT_RUN: "; this is no pass"}.get(worst, "")
    say(f"{step}: {worst} ({count}){again}")
    return STATUS[worst]


def _line(part: Part, machine: dict[str, Any], left: Left, clock: Callable[[], float]) -> dict[str, Any]:
    start, found = clock(), None
    try:
        if left() > 0:
            words, found = part.run(left)
            outcome = FAILED if words else PASSED
        else:
            outcome, words = CUT, ""
    except NotRunError as error:
        outcome, words = NOT_RUN, str(error)
    except CutError:
        outcome, words = CUT, ""
    except Exception as error:  # noqa: BLE001 - whatever it is, the other parts are run
        outcome, words = FAILED, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    seconds = round(clock() - start, 1)
    line = {"part": part.name, "outcome": outcome, "words": words, "seconds": seconds}
    return line | {"found": found, "machine": machine}


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a step, none where it was not run."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """All at once: whoever is interrupted leaves the old or the new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    unfinished.replace(path)
