"""The suite's part of a pytest session: the plan becomes items, results come back, journal and report are written."""

import shlex
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance.backends.registry import GROUPS, NotInstalled, resolve
from halfeven.conformance.environment import environment
from halfeven.conformance.items import PlannedItem, record
from halfeven.conformance.plan import Item, plan
from halfeven.conformance.report import codec, folder
from halfeven.conformance.report.model import BackendRecord, Report, Result, Witness
from halfeven.conformance.report.terminal import to_text
from halfeven.conformance.requirements import canonical_item, requirements
from halfeven.conformance.suite import unused_waivers
from halfeven.reference.systems import PROFILES

__all__ = ["Session"]

_KEY = "halfeven"


class Session:
    """One run of the suite inside a pytest session; in a worker of xdist it only collects."""

    def __init__(self, config: pytest.Config) -> None:  # noqa: D107 - the plugin calls it
        self.config = config
        given = getattr(config, "workerinput", None)  # what xdist adds in a worker
        self.worker = given is not None
        self.results: list[dict[str, Any]] = []
        self.backends: dict[str, dict[str, Any]] = {}
        self.absent: dict[str, str] = {}
        self.waivers: dict[str, dict[str, int]] = {}
        self.planned: set[str] | None = None  # the names of the items; None until they are known
        self.promised = 0  # how many an interrupted run had planned
        self.interrupted = False
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.done: set[str] = set()
        self.command = config.getoption("halfeven_command") or shlex.join(["pytest", *config.invocation_params.args])
        out = config.getoption("halfeven_out")
        self.out = Path.cwd() / out if out else None  # whatever folder a backend changes to
        if given is not None:
            self.done = set(given[_KEY])
        elif self.out is not None:
            self._open(self.out)

    def _open(self, out: Path) -> None:
        """Begin the journal, or take up an interrupted one."""
        journal = out / folder.JOURNAL
        if not self.config.getoption("halfeven_resume"):
            out.mkdir(parents=True, exist_ok=True)
            journal.unlink(missing_ok=True)
            self._write(complete=False)
            return
        if not (out / folder.REPORT).exists():
            msg = f"--resume: {out} has no report.json of an earlier run; leave --resume out, or give its --out"
            raise pytest.UsageError(msg)
        earlier = codec.read_json(out / folder.REPORT)
        options = {key: self.config.getoption(f"halfeven_{key}") for key in ("tier", "seed")}
        if (earlier.tier, earlier.seed) != (options["tier"], options["seed"]):
            msg = f"--resume: {out} was begun with tier {earlier.tier} and seed {earlier.seed}; give the same"
            raise pytest.UsageError(msg)
        kept = codec.read_journal(journal) if journal.exists() else []
        self.done = {f"{r.backend}::{r.id}" for r in kept}
        self.command, self.promised = earlier.command, 0 if earlier.complete else earlier.expected
        self.results = [asdict(r) for r in kept]
        self.backends = {r.backend: {"name": r.backend, "profile": r.profile} for r in kept}
        self.backends |= {b.name: asdict(b) for b in earlier.backends}

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what is done: one that replaces another must plan the same, though more is journaled then."""
        node.workerinput[_KEY] = sorted(self.done)

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self) -> bool | None:
        """With --halfeven-only no file is looked at."""
        return True if self.config.getoption("halfeven_only") else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Append the plan first, so that -k, -m and --lf choose among its items too."""
        if self.config.getoption("halfeven_only"):
            items.clear()
        wanted = {canonical_item(item) for item in self.config.getoption("halfeven_item")}
        planned = list(self._plan())
        self._check_resumed({name.split("::")[0] for name, *_ in planned})
        for name, item, reason in planned:
            chosen = not wanted or name in wanted or name.partition("::")[2] in wanted  # the id, of any backend
            if chosen and name not in self.done:
                items.append(PlannedItem.from_parent(session, name=name, nodeid=name, planned=item, reason=reason))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Promise what -k and its like have left."""
        items = [item for item in session.items if isinstance(item, PlannedItem)]
        for item in items:
            if item.planned is not None:
                self.backends.setdefault(item.planned.backend.name, record(item.planned.backend))
        self._promise(item.nodeid for item in items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Promise what a worker is about to run: the controlling process collects nothing itself."""
        if self.planned is None:
            only = self.config.getoption("halfeven_only")
            self._promise(name for name in ids if only or _is_planned(name))

    def _promise(self, names: Iterable[str]) -> None:
        """Write down how much is planned before the first check, so that what never comes back is missed."""
        self.planned = {*names, *self.done}
        if not self.worker:
            self._write(complete=False)

    def _check_resumed(self, planned: set[str]) -> None:
        if left := sorted({name.partition("::")[0] for name in self.done} - planned):
            msg = f"--resume: {self.out} holds results of {', '.join(left)}: name what that run named, or another --out"
            raise pytest.UsageError(msg)

    def _plan(self) -> Iterator[tuple[str, Item | None, str]]:
        option = self.config.getoption
        specs = dict.fromkeys(n for spec in option("halfeven_backend") for n in GROUPS.get(spec, (spec,)))
        for spec in specs:
            try:
                backends = resolve(spec, option("halfeven_profile"))
            except NotInstalled as missing:
                yield spec, None, str(missing)
                continue
            except (ValueError, TypeError) as error:
                raise pytest.UsageError(str(error)) from error
            for backend in backends:
                for item in plan(backend, option("halfeven_tier"), option("halfeven_seed")):
                    yield f"{backend.name}::{item.id}", item, ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Let the report carry the result: plain data, because worker and controller are two processes."""
        report = yield
        if isinstance(item, PlannedItem) and call.when == "call":
            setattr(report, _KEY, item.sent)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a result, and journal it at once."""
        if self.worker or report.when != "call":
            self._crashed_worker(report)
            return
        sent = getattr(report, _KEY, None)
        if not sent:
            return
        if "absent" in sent:
            self.absent[sent["absent"]] = sent["reason"]
        else:
            self._keep(sent["result"], sent["backend"])
            self.waivers[sent["backend"]["name"]] = sent["waivers"]

    def _crashed_worker(self, report: pytest.TestReport) -> None:
        """A backend that took its process down leaves no result of its own: xdist reports the item as failed."""
        if self.worker or str(report.when) != "???" or not report.failed:
            return

        name, _, id_ = report.nodeid.partition("::")
        profile, operation, *_ = [*id_.split("/"), "", ""]
        requirement = next(r for r in requirements(profile) if f"{id_}/".startswith(f"{r.id}/"))
        check = next((c for c in requirement.checks if id_.endswith(f"/{c}")), requirement.checks[0])
        record = self.backends.get(name, {"name": name, "profile": profile})
        self._keep(
            {
                "id": id_,
                "backend": name,
                "profile": profile,
                "operation": operation,
                "requirement": requirement.id,
                "check": check,
                "configuration": {},
                "outcome": "crashed",
                "cause": "the process died",
                "detail": str(report.longrepr),
            },
            record,
        )

    def _keep(self, result: dict[str, Any], backend: dict[str, Any]) -> None:
        self.results.append(result)
        previous = self.backends.get(backend["name"], {})
        self.backends[backend["name"]] = {
            **previous,
            **backend,
            "path": backend.get("path") or previous.get("path", ""),
        }
        if self.out is not None:
            codec.append(self.out / folder.JOURNAL, _result(result))

    def pytest_keyboard_interrupt(self) -> None:
        """Remember that the run did not finish."""
        self.interrupted = True

    @property
    def _complete(self) -> bool:
        """Whether everything that was planned has come to a result."""
        have = {f"{r['backend']}::{r['id']}" for r in self.results} | self.absent.keys()
        whole = self.planned is not None and self.planned <= have and len(have) >= self.promised
        return whole and not self.interrupted

    def pytest_sessionfinish(self) -> None:
        """Write the report, complete or not."""
        if not self.worker and self.out is not None:
            self._write(complete=self._complete)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The few lines at the end of a run."""
        report = self._report(complete=self._complete)
        terminalreporter.section("halfeven")
        out = self.config.getoption("halfeven_out") or ""
        terminalreporter.write_line(to_text(report, shutil.get_terminal_size().columns, out))

    def _report(self, *, complete: bool) -> Report:
        option = self.config.getoption
        defaults = {"library": "", "version": "", "device": "", "path": ""}
        results = [_result(r) for r in self.results]
        results += self._waivers(results) if complete else []
        return Report(
            command=self.command,
            tier=option("halfeven_tier"),
            seed=option("halfeven_seed"),
            environment=environment(len(getattr(self.config.option, "tx", None) or [])),
            backends=tuple(BackendRecord(**{**defaults, **_tuples(b)}) for _, b in sorted(self.backends.items())),
            results=tuple(sorted(results, key=lambda r: (r.backend, r.id))),
            expected=max(len(self.planned or ()), self.promised, len(results)),
            complete=complete,
            not_run=tuple({"backend": name, "reason": reason} for name, reason in sorted(self.absent.items())),
            created=self.started,
        )

    def _waivers(self, results: list[Result]) -> list[Result]:
        records = [(name, self.backends[name]["profile"], given) for name, given in self.waivers.items()]
        return [w for name, profile, given in records for w in unused_waivers(name, profile, given, results)]

    def _write(self, *, complete: bool) -> None:
        if self.out is not None:
            folder.write(self._report(complete=complete), self.out)


def _is_planned(name: str) -> bool:
    """Whether an item among one's own tests is the suite's: ``backend::profile/...``, or a backend's name alone."""
    return "::" not in name or name.partition("::")[2].partition("/")[0] in PROFILES


def _result(data: dict[str, Any]) -> Result:
    shown = data.get("witness")
    return Result(**{**data, "witness": Witness(**shown) if isinstance(shown, dict) else shown})


def _tuples(record: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
