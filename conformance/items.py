"""The suite's items: what pytest runs for one line of the plan."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance.plan import Item
from halfeven.conformance.report.model import CONFORMING
from halfeven.conformance.run import run
from halfeven.conformance.suite import failure

__all__ = ["SELECTED", "PlannedItem"]

SELECTED = pytest.StashKey[int]()
"""How many items -k and its like have left, which is what the report promises."""


class PlannedItem(pytest.Item):
    """One item of the plan, or a backend that could not be had."""

    def __init__(self, *, planned: Item | None = None, reason: str = "", **keywords: Any) -> None:  # noqa: D107 - pytest calls it
        super().__init__(**keywords)
        self.planned, self.reason = planned, reason
        self.sent: dict[str, Any] = {}

    def runtest(self) -> None:
        """Carry the item out; what it came to is sent with pytest's report."""
        total = self.config.stash[SELECTED]
        if self.planned is None:
            self.sent = {"absent": self.name, "reason": self.reason, "total": total}
            pytest.skip(self.reason)
        result = run(self.planned)
        b = self.planned.backend
        record = {key: getattr(b, key) for key in ("name", "profile", "library", "version", "device")}
        record |= {key: list(getattr(b, key)) for key in ("operations", "dtypes", "granularities")}
        record["path"] = b.path()
        self.sent = {
            "result": asdict(result),
            "backend": record,
            "waivers": dict(b.waivers),
            "total": total,
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
