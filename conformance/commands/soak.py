"""``halfeven soak``: calls that Hypothesis draws, for as long as one likes, until the time is over."""

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from halfeven.conformance.bar import EVERY

if TYPE_CHECKING:
    from halfeven.conformance.engine.evidence import Evidence
    from halfeven.conformance.engine.item import Item
    from halfeven.conformance.workers import Worker

__all__ = ["ABOUT", "OPTIONS", "add", "carry_out", "seconds"]

ABOUT = "draw calls beyond the plan's for as long as told, and shrink what differs"
OPTIONS = ("--for", "--seed", "--profile", "--timeout", "--python")
_CONFORMS, _DIFFERS, _UNKNOWN = 0, 1, 2
_EXAMPLES = 25  # calls of one item, then the next one's
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add(parser: argparse.ArgumentParser) -> None:
    """The words of the command."""
    parser.add_argument("backends", nargs="+", metavar="BACKEND", help="names, groups or pkg.mod:attr")
    parser.add_argument("--for", dest="long", default="10m", metavar="TIME", help="such as 90s, 10m (default) or 8h")
    parser.add_argument("--seed", type=int, default=0, help="of the first round; each round has the next (default: 0)")
    parser.add_argument("--profile", help="hold every backend to this profile instead of its own claim")
    help_ = "what a call may take (default: 30)"
    parser.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help=help_)
    parser.add_argument("--python", metavar="PATH", help="the interpreter that has the backends, where it is another")


def seconds(text: str) -> float:
    """How long ``90s``, ``10m`` or ``8h`` is.

    >>> seconds("1.5m")
    90.0

    Raises:
        ValueError: it is none of these.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if found is None or not float(found[1]):
        msg = f"--for={text!r} is not accepted: give a time such as 90s, 10m or 8h"
        raise ValueError(msg)
    return float(found[1]) * _UNITS[found[2] or "s"]


def carry_out(options: argparse.Namespace, _given: Sequence[str]) -> int:
    """Soak; 0 where nothing differed, 1 where something did, 2 where nothing was compared."""
    from halfeven.conformance.backends.registry import NotInstalled, members
    from halfeven.conformance.workers.named import worker_of
    from halfeven.conformance.workers.server import Server

    until = time.monotonic() + seconds(options.long)
    with Server(options.python or sys.executable) as server:
        server.start()
        workers = []
        for spec in dict.fromkeys(n for given in options.backends for n in members(given)):
            worker = worker_of(spec, server, options.profile, timeout=options.timeout, budget=float("inf"), stops=True)
            try:
                worker.offer  # noqa: B018 - to be told what is wrong
                workers.append(worker)
            except NotInstalled as missing:
                print(missing)
        try:
            return _soaked(workers, options.seed, until)
        finally:
            for worker in workers:
                worker.close()


def _soaked(workers: "Sequence[Worker]", seed: int, until: float) -> int:
    from halfeven.conformance.engine.run import run
    from halfeven.conformance.report.model import CONFORMING
    from halfeven.conformance.report.printable import printable
    from halfeven.conformance.suite import failure

    said, values, differing = time.monotonic(), 0, set[str]()
    for turn, worker, item in _rounds(workers, seed):
        if time.monotonic() >= until:
            break
        if (name := f"{item.offer.name}::{item.id}") in differing:
            continue
        found = run(item, worker, gather=_drawn(turn))
        values += found.points
        if found.outcome not in {*CONFORMING, "not run"}:
            differing.add(name)
            print(printable(f"\n{name}, --seed {turn}:\n{failure(found)}\n"), flush=True)
        if time.monotonic() - said >= EVERY:
            said = time.monotonic()
            left = int(until - said)
            still = f"{left // 60}:{left % 60:02} left"
            print(f"seed {turn}: {values:,} values, {len(differing)} differ, {still}", flush=True)
    print(f"{values:,} values compared; {len(differing)} differ. Go on with --seed {turn}")
    return _UNKNOWN if not values else _DIFFERS if differing else _CONFORMS


def _rounds(workers: "Sequence[Worker]", seed: int) -> "Iterator[tuple[int, Worker, Item]]":
    """Every item about call shapes of every backend, round after round."""
    from itertools import count

    from halfeven.conformance.engine.plan import plan
    from halfeven.conformance.requirement import CALL_SHAPES

    items = [(w, i) for w in workers for i in plan(w.offer, "standard", seed) if i.check == CALL_SHAPES]
    if not items:
        msg = "BACKEND is not accepted: no backend named has an operation or a function that takes arrays"
        raise ValueError(msg)
    for turn in count(seed):
        for worker, item in items:
            yield turn, worker, item


def _drawn(seed: int) -> "Callable[[Evidence], None]":
    from halfeven.conformance.engine.explore import beyond

    return lambda e: beyond(e, _EXAMPLES, seed)
