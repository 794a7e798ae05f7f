"""The suite's items: what pytest runs for one line of the plan."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.kept import encoded
from halfeven.conformance.engine.run import answered
from halfeven.conformance.report.model import CONFORMING
from halfeven.conformance.report.printable import printable
from halfeven.conformance.suite import failure
from halfeven.conformance.workers import Worker

__all__ = ["PlannedItem", "record"]


def record(offer: Offer) -> dict[str, Any]:
    """A backend as plain data, before it has run: all of its ``BackendRecord`` but the path."""
    said = {key: getattr(offer, key) for key in ("name", "profile", "library", "version", "device")}
    return said | {key: list(getattr(offer, key)) for key in ("operations", "dtypes", "granularities", "lacks")}


class PlannedItem(pytest.Item):
    """One item of the plan, or a backend that could not be had."""

    def __init__(  # noqa: D107 - pytest calls it
        self,
        *,
        planned: Item | None = None,
        worker: Worker | None = None,
        reason: str = "",
        folder: Path | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(**keywords)
        self.planned, self.worker, self.reason, self.folder = planned, worker, reason, folder
        self.sent: dict[str, Any] = {}

    def runtest(self) -> None:
        """Carry the item out; what it came to is sent with pytest's report."""
        if self.planned is None or self.worker is None:
            self.sent = {"absent": self.name, "reason": self.reason}
            pytest.skip(printable(self.reason))
        found = answered(self.planned, self.worker, folder=self.folder)
        result, offer = found.result, self.planned.offer
        self.sent = {
            "result": asdict(result),
            "kept": encoded(found.sample) if found.sample is not None else "",
            "backend": record(offer) | {"path": self.worker.path()},
            "waivers": dict(offer.waivers),
        }
        if result.outcome == "not run":
            pytest.skip(printable(result.detail))
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
