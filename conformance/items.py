"""The suite's items: what pytest runs for one line of the plan."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.plan import Item
from halfeven.conformance.report.model import CONFORMING
from halfeven.conformance.run import run
from halfeven.conformance.suite import failure

__all__ = ["PlannedItem", "record"]


def record(backend: Backend) -> dict[str, Any]:
    """A backend as plain data, before it has run: all of its ``BackendRecord`` but the path."""
    said = {key: getattr(backend, key) for key in ("name", "profile", "library", "version", "device")}
    return said | {key: list(getattr(backend, key)) for key in ("operations", "dtypes", "granularities")}


class PlannedItem(pytest.Item):
    """One item of the plan, or a backend that could not be had."""

    def __init__(self, *, planned: Item | None = None, reason: str = "", **keywords: Any) -> None:  # noqa: D107 - pytest calls it
        super().__init__(**keywords)
        self.planned, self.reason = planned, reason
        self.sent: dict[str, Any] = {}

    def runtest(self) -> None:
        """Carry the item out; what it came to is sent with pytest's report."""
        if self.planned is None:
            self.sent = {"absent": self.name, "reason": self.reason}
            pytest.skip(self.reason)
        result = run(self.planned)
        b = self.planned.backend
        self.sent = {
            "result": asdict(result),
            "backend": record(b) | {"path": b.path()},
            "waivers": dict(b.waivers),
        }
        if result.outcome == "not run":
            pytest.skip(result.detail)
        if result.outcome not in CONFORMING:
            raise _Parts(failure(result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The witness alone for a difference; the traceback for a mistake of ours."""
        return str(excinfo.value) if isinstance(excinfo.value, _Parts) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where pytest says the item stands."""
        return self.path, None, self.name


class _Parts(Exception):  # noqa: N818 - the backend parts from its profile
    pass
