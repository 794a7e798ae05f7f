"""``halfeven compare``: two backends, the same calls; each runs in a process of its own."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ABOUT", "OPTIONS", "add", "carry_out"]

ABOUT = "compare two backends on the same calls; status 1 where they differ"
OPTIONS = ("--formula", "--profile", "--tier", "--seed", "--timeout", "--python-a", "--python-b", "--out")
_SAME, _DIFFERS, _UNKNOWN = 0, 1, 2


def add(parser: argparse.ArgumentParser) -> None:
    """The words of the command."""
    what = "a name or pkg.mod:attr, and perhaps how it computes: torch.observers@cuda,compiled"
    parser.add_argument("a", metavar="A", help=what)
    parser.add_argument(
        "b", metavar="B", help="the other: perhaps the same with other words, or of another interpreter"
    )
    parser.add_argument(
        "--formula", action="append", default=[], metavar="ID", help="these functions alone; repeatable"
    )
    parser.add_argument("--profile", help="the profile of both, instead of their own")
    parser.add_argument("--tier", default="quick", help="quick (default) or standard")
    parser.add_argument("--seed", type=int, default=0, help="seed of what is drawn (default: 0)")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds that a call may take (default: 30)")
    for side in "ab":
        parser.add_argument(f"--python-{side}", default="", metavar="PATH", help=f"the interpreter of {side.upper()}")
    parser.add_argument("--out", type=Path, help="folder for comparison.json and comparison.md (default: none)")


def carry_out(options: argparse.Namespace, given: Sequence[str]) -> int:
    """Ask both, say what came; 0 the same, 1 they differ, 2 it is not known."""
    del given
    from halfeven.conformance.backends.protocol import canonical_profile
    from halfeven.conformance.engine.pair import compare
    from halfeven.conformance.engine.tier import TIERS
    from halfeven.conformance.nearest import among, nearest
    from halfeven.conformance.output import say
    from halfeven.conformance.report import pair_words
    from halfeven.conformance.workers.named import worker_of
    from halfeven.conformance.workers.server import NoServer, Server
    from halfeven.reference import FORMULAS
    from halfeven.reference.systems import PROFILES

    among("tier", options.tier, TIERS)
    if options.profile is not None:
        options.profile = canonical_profile(options.profile)
        among("profile", options.profile, PROFILES)
    for formula in options.formula:
        if formula not in FORMULAS:
            msg = f"--formula={formula!r} is not accepted{nearest(formula, FORMULAS)}"
            raise ValueError(msg)
    formulas = [FORMULAS[f].id.partition("@")[0] for f in options.formula]
    budget = options.timeout * TIERS[options.tier].budget
    pythons = options.python_a, options.python_b
    servers = {python: Server(python or sys.executable) for python in dict.fromkeys(pythons)}
    workers = [
        worker_of(spec, servers[python], options.profile, timeout=options.timeout, budget=budget)
        for spec, python in zip((options.a, options.b), pythons, strict=True)
    ]
    try:
        found = compare(workers[0], workers[1], options.tier, options.seed, formulas, pythons)
    except NoServer as error:
        raise ValueError(str(error)) from None
    finally:
        for worker in workers:
            worker.close()
        for server in servers.values():
            server.close()
    say(str(found))
    if options.out is not None:
        pair_words.write(found, options.out)
        say(f"\nPage: {options.out / pair_words.PAGE}, record: {options.out / pair_words.RECORD}")
    return _DIFFERS if found.differences else _SAME if found.same else _UNKNOWN
