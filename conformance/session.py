"""The suite's part of a pytest session: the plan becomes items, results come back, journal and report are written."""

import contextlib
import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance.backends.registry import NotInstalled, members, same_name
from halfeven.conformance.codes import fault_code
from halfeven.conformance.concluding import conclusions, unexplained
from halfeven.conformance.engine.checks import CHECKS
from halfeven.conformance.engine.demonstrate import demonstrated, unrun
from halfeven.conformance.engine.exhaustive.journal import clear
from halfeven.conformance.engine.exhaustive.parameters import shard_of
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.tier import TIERS
from halfeven.conformance.environment import environment
from halfeven.conformance.interrupt import interrupt
from halfeven.conformance.items import PlannedItem, record
from halfeven.conformance.progress import Display
from halfeven.conformance.report import codec, folder
from halfeven.conformance.report.journal import Absent, Entry, Journal, Kept, Known, Plan
from halfeven.conformance.report.model import BackendRecord, Cause, Report, Result
from halfeven.conformance.report.printable import printable
from halfeven.conformance.report.share import requirement_share
from halfeven.conformance.report.terminal import to_text
from halfeven.conformance.requirements import canonical_item, requirements
from halfeven.conformance.workers import Worker
from halfeven.conformance.workers.child import Child
from halfeven.conformance.workers.named import worker_of
from halfeven.conformance.workers.pipe import Pipe
from halfeven.conformance.workers.server import FOLDER, Server
from halfeven.reference.systems import PROFILES

__all__ = ["Session"]

_KEY = "halfeven"


class Session:
    """One run of the suite inside a pytest session; in a worker of xdist it only collects."""

    def __init__(self, config: pytest.Config) -> None:  # noqa: D107 - the plugin calls it
        self.config = config
        given = getattr(config, "workerinput", None)  # what xdist adds in a worker
        self.worker = given is not None
        self.server = Server(config.getoption("halfeven_python") or sys.executable)
        self.asked: Worker | None = None
        self.journal = Journal()
        self.lock: folder.Lock | None = None
        self.promised = False
        self.report: Report | None = None
        self.fault = ""  # why the folder cannot be written to
        option = config.getoption
        try:
            require = requirement_share(option("halfeven_require"))
            shard_of(option("halfeven_shard") or "1/1")
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
        self.plan = Plan(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command=option("halfeven_command") or shlex.join(["pytest", *config.invocation_params.args]),
            tier=option("halfeven_tier"),
            seed=option("halfeven_seed"),
            require=require,
            environment=environment(len(getattr(config.option, "tx", None) or [])),
        )
        self.done: set[str] = set()
        out = option("halfeven_out")
        self.out = Path.cwd() / out if out else None  # whatever folder a backend changes to
        if given is None and FOLDER not in os.environ:
            self.server.start()  # once for all processes of xdist
        if given is not None:
            self.done = set(given[_KEY])
        elif self.out is not None:
            try:
                self._open(self.out)
            except (ValueError, OSError) as error:
                raise pytest.UsageError(printable(str(error))) from error
            _interrupt_on_sigterm()

    def _open(self, out: Path) -> None:
        """Begin the folder, or take up an interrupted run; no other run writes there until this process ends."""
        self.lock = folder.Lock(out)
        if not self.config.getoption("halfeven_resume"):
            (out / folder.JOURNAL).unlink(missing_ok=True)
            clear(out)
            self._keep_plan(None)
            folder.write(folder.report_of(self.plan, self.journal), out)
            return
        if not (out / folder.PLAN).exists():
            msg = f"--resume: {out} has no {folder.PLAN} of an earlier run; leave --resume out, or give its --out"
            raise ValueError(msg)
        earlier, self.journal = folder.read(out)
        if (earlier.tier, earlier.seed) != (self.plan.tier, self.plan.seed):
            msg = f"--resume: {out} was begun with tier {earlier.tier} and seed {earlier.seed}; give the same"
            raise ValueError(msg)
        self.done = self.journal.answered
        self.plan = replace(self.plan, command=earlier.command, created=earlier.created, names=earlier.names)

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
        for name, item, worker, reason in planned:
            chosen = not wanted or name in wanted or name.partition("::")[2] in wanted  # the id, of any backend
            if chosen and name not in self.done:
                items.append(
                    PlannedItem.from_parent(
                        session, name=name, nodeid=name, planned=item, worker=worker, reason=reason, folder=self.out
                    )
                )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Promise what -k and its like have left."""
        items = [item for item in session.items if isinstance(item, PlannedItem)]
        for offer in {id(i.planned.offer): i.planned.offer for i in items if i.planned is not None}.values():
            self._keep(_known(record(offer), offer.waivers))
        self._promise(item.nodeid for item in items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Promise what a worker is about to run: the controlling process collects nothing itself."""
        if not self.promised:
            only = self.config.getoption("halfeven_only")
            self._promise(name for name in ids if only or _is_planned(name))

    def _promise(self, names: Iterable[str]) -> None:
        """Write down what is planned before the first check, so that what never comes back is missed, by name."""
        self.promised = True
        self._keep_plan({*names, *self.done, *(self.plan.names or ())})
        if not self.worker and self.out is not None:
            folder.write(folder.report_of(self.plan, self.journal), self.out)

    def _keep_plan(self, names: set[str] | None) -> None:
        self.plan = replace(self.plan, names=None if names is None else tuple(sorted(names)))
        if not self.worker and self.out is not None:
            codec.write_plan(self.plan, self.out / folder.PLAN)

    def _check_resumed(self, planned: set[str]) -> None:
        if left := sorted({r.backend for r in self.journal.results.values()} - planned):
            msg = f"--resume: {self.out} holds results of {', '.join(left)}: name what that run named, or another --out"
            raise pytest.UsageError(msg)

    def _plan(self) -> Iterator[tuple[str, Item | None, Worker | None, str]]:
        option = self.config.getoption
        specs = dict.fromkeys(n for spec in option("halfeven_backend") for n in members(spec))
        named: dict[str, str] = {}
        for spec in specs:
            try:
                worker = self._worker(spec)
                offer = worker.offer
            except NotInstalled as missing:
                yield spec, None, None, str(missing)
                continue
            except (ValueError, TypeError) as error:
                raise pytest.UsageError(printable(str(error))) from error
            if named.setdefault(offer.name, spec) != spec:  # their results would be taken for each other's
                raise pytest.UsageError(same_name(offer.name, named[offer.name], spec))
            tier, seed, shard = (option(f"halfeven_{name}") for name in ("tier", "seed", "shard"))
            for item in plan(offer, tier, seed, shard, strict=option("halfeven_strict")):
                yield f"{offer.name}::{item.id}", item, worker, ""
            worker.close()  # until its first item; most of the others wait longer

    def _worker(self, spec: str) -> Child | Pipe:
        """A backend in a process of its own, which starts when it is asked."""
        option = self.config.getoption
        timeout = option("halfeven_timeout")
        budget = timeout * TIERS[option("halfeven_tier")].budget
        return worker_of(spec, self.server, option("halfeven_profile"), timeout=timeout, budget=budget, stops=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """End the process of the backend before, whose checks are done: libraries are large."""
        if isinstance(item, PlannedItem) and item.worker is not self.asked:
            if self.asked is not None:
                self.asked.close()
            self.asked = item.worker

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
            self._keep(Absent(sent["absent"], sent["reason"]))
        else:
            self._keep(_known(sent["backend"], sent["waivers"]))
            result = codec.result_of(sent["result"])
            if sent["kept"]:
                self._keep(Kept(result.name, sent["kept"]))
            self._keep(result)

    def _crashed_worker(self, report: pytest.TestReport) -> None:
        """A backend that took its process down leaves no result of its own: xdist reports the item as failed."""
        if self.worker or str(report.when) != "???" or not report.failed:
            return

        name, _, id_ = report.nodeid.partition("::")
        profile, operation, *_ = [*id_.split("/"), "", ""]
        requirement = next(r for r in requirements(profile) if f"{id_}/".startswith(f"{r.id}/"))
        check = next((c for c in (*requirement.checks, *CHECKS) if id_.endswith(f"/{c}")), requirement.checks[0])
        self._keep(
            Result(
                id=id_,
                backend=name,
                profile=profile,
                operation=operation,
                requirement=requirement.id,
                check=check,
                configuration={},
                outcome="crashed",
                cause="the process died",
                causes=(Cause(fault_code("ended"), "ends the process it runs in"),),
                detail=str(report.longrepr),
                ended="the worker process died",
            )
        )

    def _keep(self, entry: Entry) -> None:
        """Take up what came, and write it down at once; where that fails, the run ends."""
        if not self.journal.add(entry) or self.worker or self.out is None or self.fault:
            return
        try:
            codec.append(self.out / folder.JOURNAL, entry)
        except OSError as error:
            self.fault = str(error)
            self.session.shouldstop = "the journal cannot be written"

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Know the session, to stop it."""
        self.session = session

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report, complete or not; too little checked is a failure of pytest's run too."""
        if self.worker:
            return
        self._conclude(asking=session.exitstatus != pytest.ExitCode.INTERRUPTED)
        report = self.report = self._demonstrated(folder.report_of(self.plan, self.journal))
        if self.out is not None and not self.fault:
            try:
                folder.write(report, self.out)
            except OSError as error:
                self.fault = str(error)
        if session.exitstatus == pytest.ExitCode.OK and (self.fault or report.unmet):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _conclude(self, *, asking: bool) -> None:
        """Say why what differs does so, from all that was answered, and write that down too.

        With ``asking`` each explanation is tried on fresh calls of the backends.
        """
        wanted = unexplained(self.journal)
        workers = dict(self._again(wanted)) if asking and wanted else {}
        try:
            for entry in conclusions(self.journal, workers, self._tell):
                self._keep(entry)
        except ValueError as error:
            self.fault = self.fault or str(error)
        finally:
            for worker in workers.values():
                worker.close()

    def _tell(self, backend: str) -> None:
        for plugin in self.config.pluginmanager.get_plugins():
            if isinstance(plugin, Display):
                plugin.concluding(backend)

    def _again(self, wanted: set[str]) -> Iterator[tuple[str, Worker]]:
        """The backends of these names, to be asked again: the process that concludes may have asked none itself."""
        for spec in dict.fromkeys(n for given in self.config.getoption("halfeven_backend") for n in members(given)):
            if not wanted:
                return
            try:
                worker = self._worker(spec)
                name = worker.offer.name
            except (NotInstalled, ValueError, TypeError):
                continue
            if name in wanted:
                wanted = wanted - {name}
                yield name, worker
            else:
                worker.close()

    def _demonstrated(self, report: Report) -> Report:
        """The report with the scripts that show what they say, run where the libraries are; journaled too.

        A resumed folder may come from anywhere: scripts that stand there are not run.
        """
        python = self.config.getoption("halfeven_python") or sys.executable
        own = [r for r in report.results if r.name not in self.done]
        shown = {after.name: after for after in demonstrated(own, python)}
        shown |= {r.name: unrun(r) for r in report.results if r.name in self.done}
        for before in report.results:
            if shown[before.name] is not before:
                self._keep(shown[before.name])
        return replace(report, results=tuple(shown[r.name] for r in report.results))

    def pytest_unconfigure(self) -> None:
        """End every backend; say what could not be written, past what captures output; give the folder free."""
        self.server.close()
        if self.fault:
            capture: Any = self.config.pluginmanager.getplugin("capturemanager")
            with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
                print(f"halfeven: {printable(self.fault)}", file=sys.stderr, flush=True)
        if self.lock is not None:
            self.lock.release()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The few lines at the end of a run."""
        report = self.report or folder.report_of(self.plan, self.journal)
        terminalreporter.section("halfeven")
        out = self.config.getoption("halfeven_out") or ""
        terminalreporter.write_line(to_text(report, shutil.get_terminal_size().columns, out))


def _interrupt_on_sigterm() -> None:
    """Let SIGTERM end the run as Ctrl-C does, with a report, where nobody else has taken it."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, interrupt)


def _is_planned(name: str) -> bool:
    """Whether an item among one's own tests is the suite's: ``backend::profile/...``, or a backend's name alone."""
    return "::" not in name or name.partition("::")[2].partition("/")[0] in PROFILES


def _known(said: dict[str, Any], waivers: Mapping[str, int]) -> Known:
    defaults = {"library": "", "version": "", "device": "", "path": ""}
    record: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in {**defaults, **said}.items()}
    return Known(BackendRecord(**record), dict(waivers))
