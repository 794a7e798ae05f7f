"""What a sweep writes down as it goes: a line for each chunk that is judged, so that an interrupted one goes on."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["FOLDER", "Done", "Journal", "Progress", "clear", "progress"]

#: In the folder of a run, where the journals lie.
FOLDER = "exhaustive"


@dataclass(frozen=True)
class Done:
    """A chunk that was asked and judged.

    Attributes:
        chunk: its parameters and the first of its inputs, in words.
        count: its inputs, and how many of them were judged (``points``) and are ``differing``.
        digest: the hash of the answer.
        own: seconds that the backend took, and ``wall``, that passed.
        above: seconds of processor time that all else took than the backend.
        shown: of inputs that differ the place in the chunk, and the bits of what came.
        dtype: of the answer.
    """

    chunk: str
    count: int
    points: int
    differing: int
    digest: str
    own: float
    wall: float
    above: float
    dtype: str
    shown: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Progress:
    """How far the sweeps of a run are that were begun: inputs done, and planned."""

    done: int
    planned: int

    def words(self, before: "Progress", seconds: float) -> str:
        """With the rate since ``before``, so many seconds ago, and the time left at that rate.

        >>> Progress(3 * 10**9, 9 * 10**9).words(Progress(10**9, 9 * 10**9), 2.0)
        '3.00 of 9.00 billion inputs, 1,000 million/s, about 0:06 left'
        """
        said = f"{self.done / 1e9:.2f} of {self.planned / 1e9:.2f} billion inputs"
        rate = (self.done - before.done) / seconds if seconds else 0.0
        if rate <= 0:
            return said
        minutes, left = divmod(round((self.planned - self.done) / rate), 60)
        return f"{said}, {rate / 1e6:,.0f} million/s, about {minutes}:{left:02} left"


class Journal:
    """The journal of one sweep: in a file, or in nothing where no folder is given."""

    def __init__(self, folder: Path | None, name: str, about: Mapping[str, object]) -> None:
        """Take up what the file holds, where it is ``about`` the same; else begin it anew.

        Raises:
            OSError: the folder cannot be written to.
        """
        self.done: dict[str, Done] = {}
        self._path = None if folder is None else folder / FOLDER / f"{_slug(name)}.jsonl"
        if self._path is None:
            return
        lines = list(_lines(self._path))
        if lines and lines[0] == dict(about):
            self.done = {d.chunk: d for d in map(_done, lines[1:]) if d is not None}
            if not self._path.read_bytes().endswith(b"\n"):  # it was cut short, and what follows begins a line
                with self._path.open("a", encoding="utf-8") as file:
                    file.write("\n")
        else:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(dict(about)) + "\n", encoding="utf-8")

    def add(self, done: Done) -> None:
        """Write a chunk down.

        Raises:
            OSError: it cannot be written.
        """
        self.done[done.chunk] = done
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(done)) + "\n")


def clear(folder: Path) -> None:
    """Forget the sweeps of an earlier run."""
    for path in (folder / FOLDER).glob("*.jsonl"):
        path.unlink(missing_ok=True)


def progress(folder: Path) -> Progress:
    """How far the sweeps are that were begun in a folder."""
    done = planned = 0
    for path in (folder / FOLDER).glob("*.jsonl"):
        first, *rest = [*_lines(path)] or [{}]
        own = {d.chunk: d.count for d in map(_done, rest) if d is not None}
        size = first.get("inputs", 0)
        planned += size if isinstance(size, int) else 0
        done += sum(own.values())
    return Progress(done, planned)


def _lines(path: Path) -> Iterator[dict[str, object]]:
    """The lines that are whole: of a process that was killed the last one may not be."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _done(line: Mapping[str, object]) -> Done | None:
    try:
        found = Done(**line)  # type: ignore[arg-type]
        return Done(**{**asdict(found), "shown": tuple((int(p), int(b)) for p, b in found.shown)})
    except (TypeError, ValueError):
        return None


def _slug(name: str) -> str:
    words = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")[:120]
    return f"{words}-{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"
