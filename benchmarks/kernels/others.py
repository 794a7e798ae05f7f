"""How much of the machine other processes used meanwhile: what a disturbed measurement is told by."""

import os
from pathlib import Path
from typing import Any

__all__ = ["Others", "is_disturbed"]

_STAT = Path("/proc/stat")
_IDLE = (3, 4)  # idle and waiting for a disk, of the times in the first line
_MOST = 0.1
_LEAST = 1.0  # seconds of all cores; the times are in hundredths


class Others:
    """From its making on, the share of all cores' time that went to other processes, or was stolen from a guest."""

    def __init__(self) -> None:
        self._start = _busy()

    def share(self) -> float | None:
        """0 to 1; None where the system does not tell, or the time was too short for its clock."""
        if self._start is None or (now := _busy()) is None:
            return None
        total, busy, own = (b - a for a, b in zip(self._start, now, strict=True))
        return round(max(0.0, busy - own) / total, 3) if total >= _LEAST else None


def _busy() -> tuple[float, float, float] | None:
    """Seconds of all cores, of those busy, and of this process."""
    try:
        times = [int(t) for t in _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    tick, own = os.sysconf("SC_CLK_TCK"), os.times()
    idle = sum(times[i] for i in _IDLE)
    used = own.user + own.system + own.children_user + own.children_system
    return sum(times) / tick, (sum(times) - idle) / tick, used


def is_disturbed(group: dict[str, Any]) -> bool:
    """Whether other processes took so much of a group's time that its numbers say little."""
    return (group["others"] or 0.0) > _MOST
