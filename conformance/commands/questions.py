"""``halfeven questions``: ask backends what engineers ask: 1/s or x / s, NaN, infinity, a tensor of zeros, ..."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halfeven.conformance.questions.pages import Answers

__all__ = ["ABOUT", "OPTIONS", "add", "asked", "carry_out"]

ABOUT = "ask backends the same questions (1/s or x / s, NaN, a tensor of zeros, ...): one table per question"
OPTIONS = ("--question", "--out", "--timeout")


def add(parser: argparse.ArgumentParser) -> None:
    """The words of the command."""
    parser.add_argument("backends", nargs="+", metavar="BACKEND", help="names, groups (all) or pkg.mod:attr")
    parser.add_argument("--question", action="append", default=[], metavar="NAME", help="these alone; repeatable")
    parser.add_argument("--out", type=Path, help="folder for the pages and answers.json (default: print the pages)")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds that a call may take (default: 30)")


def carry_out(options: argparse.Namespace, given: Sequence[str]) -> int:
    """Ask, and write or print; 0."""
    del given
    from halfeven.conformance.nearest import among
    from halfeven.conformance.output import say
    from halfeven.conformance.questions.pages import LAST, QUESTIONS, pages, write

    for name in options.question:
        among("question", name, QUESTIONS)
    found = asked(options.backends, options.question or list(QUESTIONS), options.timeout)
    if options.out is not None:
        write(found, options.out)
        say(f"Pages: {options.out / 'README.md'}")
    else:
        say("\n".join(page.removesuffix(f"\n{LAST}\n") for name, page in pages(found).items() if name != "README.md"))
    return 0


def asked(specs: Sequence[str], names: Sequence[str], timeout: float) -> "Answers":
    """The answers of the backends that ``specs`` name, each in a process of its own."""
    from halfeven.conformance.backends.registry import members
    from halfeven.conformance.questions.asking import rows
    from halfeven.conformance.questions.pages import QUESTIONS, Answers
    from halfeven.conformance.questions.question import Row
    from halfeven.conformance.workers.named import worker_of
    from halfeven.conformance.workers.server import Server

    found: dict[str, list[Row]] = {name: [] for name in names}
    absent: dict[str, str] = {}
    with Server(sys.executable) as server:
        for spec in dict.fromkeys(member for s in specs for member in members(s)):
            worker = worker_of(spec, server, timeout=timeout)
            try:
                for name in names:
                    found[name] += rows(QUESTIONS[name], worker)
            except ValueError as error:  # not installed, or no backend
                absent[spec] = str(error)
            finally:
                worker.close()
    return Answers(found, absent)
