"""What ``halfeven run`` shows while it runs, in place of what pytest prints: a finding is no failure of the run."""

import io
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import pytest
from rich.progress import TaskID

from halfeven.conformance.bar import EVERY, bar, line
from halfeven.conformance.child import Tell
from halfeven.conformance.engine.exhaustive.journal import progress
from halfeven.conformance.report.printable import printable

__all__ = ["Display"]

_TICK = 1.0  # seconds between two looks at how far the sweeps are


class Display:
    """A pytest plugin that takes the place of pytest's terminal reporter; workers of xdist have none.

    Attributes:
        total, done: the checks planned and finished.
        backend: whose check was begun last.
    """

    def __init__(self, tell: Tell, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """``tell`` is called with each check that begins; ``stream`` is standard output unless it is given."""
        self.tell, self.clock = tell, clock
        self.stream = stream or os.fdopen(os.dup(1), "w")  # pytest puts a file in place of 1 during a check
        self.total, self.done, self.backend = 0, 0, ""
        self.begun = self.said = clock()
        self.bar = bar(self.stream) if self.stream.isatty() else None
        self.task: TaskID | None = None
        self.sweeps: Sweeps | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Let pytest's reporter, which is registered by now, write to nowhere before xdist asks for it."""
        plugins = config.pluginmanager
        if plugins.has_plugin("terminalreporter"):
            reporter: Any = plugins.unregister(name="terminalreporter")
            plugins.register(type(reporter)(config, io.StringIO()), "terminalreporter")  # pytest 8.3 has no name for it
        if config.getoption("halfeven_tier", "") == "exhaustive" and (out := config.getoption("halfeven_out")):
            self.sweeps = Sweeps(Path.cwd() / out, self._tell_sweeps, self.clock)
            self.sweeps.start()

    def pytest_internalerror(self, excrepr: object) -> None:
        """Print what pytest's reporter no longer shows."""
        print(f"halfeven: pytest stopped with an internal error:\n{excrepr}", file=sys.stderr)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Begin, where this process runs the checks itself."""
        self._begin(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Begin, where workers run the checks."""
        if not self.total:
            self._begin(len(ids))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Name the backend that runs."""
        self.tell(nodeid)
        self.backend = printable(nodeid.partition("::")[0], "")
        self._show()

    def pytest_runtest_logfinish(self) -> None:
        """Count a check."""
        self.done += 1
        self._show()

    def concluding(self, backend: str) -> None:
        """Say that the checks are done and that causes are sought."""
        self.backend = f"why {printable(backend, '')} differs"
        self._show()

    def pytest_unconfigure(self) -> None:
        """Leave no bar behind."""
        if self.sweeps is not None:
            self.sweeps.stop()
        if self.bar is not None:
            self.bar.stop()

    def _tell_sweeps(self, words: str) -> None:
        now = self.clock()
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, description=f"{self.backend}: {words}")
        elif self.bar is None and now - self.said >= EVERY:
            self.said = now
            print(f"{self.backend}: {words}", file=self.stream, flush=True)

    def _begin(self, total: int) -> None:
        self.total, self.begun = total, self.clock()
        if self.bar is not None:
            self.task = self.bar.add_task(self.backend, total=total)
            self.bar.start()

    def _show(self) -> None:
        now = self.clock()
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=self.done, description=self.backend)
        elif self.bar is None and now - self.said >= EVERY:
            self.said = now
            print(line(self.done, self.total, self.backend, now - self.begun), file=self.stream, flush=True)


class Sweeps:
    """Looks every second at what the sweeps of a run have written down, in whatever process they are."""

    def __init__(self, folder: Path, tell: Callable[[str], None], clock: Callable[[], float]) -> None:
        """``tell`` is called with how far they are, from a thread, while they go on."""
        self._folder, self._tell, self._clock = folder, tell, clock
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join(EVERY)

    def _look(self) -> None:
        seen = [(self._clock(), progress(self._folder))]
        while not self._ended.wait(_TICK):
            now = (self._clock(), progress(self._folder))
            if now[1].done != seen[-1][1].done:
                self._tell(now[1].words(seen[0][1], now[0] - seen[0][0]))
            seen = [*seen, now][-int(EVERY / _TICK) :]
