"""How far long work is: a bar on a terminal, a line elsewhere."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["EVERY", "bar", "counted", "line"]

EVERY = 10.0  # seconds between two lines where there is no terminal
_WIDTH = 20
_SOON = 2.0  # seconds: what is done by then needs no bar
_T = TypeVar("_T")


def counted(items: Sequence[_T], name: str, *, lines: bool = False) -> Iterator[_T]:
    """The items, with a bar on standard error meanwhile where that is a terminal and they take a while.

    With ``lines`` one is printed there every ten seconds where it is none.
    """
    begun, shown, task = time.monotonic(), None, None
    said = begun
    try:
        for done, item in enumerate(items):
            if lines and not sys.stderr.isatty() and (now := time.monotonic()) - said >= EVERY:
                said = now
                print(line(done, len(items), name, now - begun), file=sys.stderr, flush=True)
            if shown is None and sys.stderr.isatty() and time.monotonic() - begun > _SOON:
                shown = bar(sys.stderr)
                task = shown.add_task(name, total=len(items))
                shown.start()
            if shown is not None and task is not None:
                shown.update(task, completed=done)
            yield item
    finally:
        if shown is not None:
            shown.stop()


def line(done: int, total: int, backend: str, elapsed: float) -> str:
    """How far a run is, in one line: ``[214/899] torch.learnable, about 1:04 left``; ``elapsed`` is in seconds."""
    width = len(str(total))
    if done in {0, total}:  # after the last check it is told why they differ, which may take as long
        return f"[{done:>{width}}/{total}] {backend}"
    minutes, seconds = divmod(round(elapsed / done * (total - done)), 60)
    return f"[{done:>{width}}/{total}] {backend}, about {minutes}:{seconds:02} left"


def bar(stream: TextIO) -> "Progress":
    """One that leaves nothing behind."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    return Progress(
        TextColumn("{task.completed}/{task.total}"),
        BarColumn(_WIDTH),
        TimeRemainingColumn(),
        TextColumn("{task.description}", table_column=Column(overflow="fold"), markup=False),
        console=Console(file=stream),
        transient=True,
    )
