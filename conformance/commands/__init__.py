"""The commands that have a module each: ``about`` says what one is for, ``add`` its words, ``carry_out`` does it."""

import argparse
import re
from collections.abc import Sequence
from typing import Any

from halfeven.conformance.commands import answer, compare, explain, export, fingerprint, judge, questions, soak

__all__ = ["COMMANDS", "OPTIONS", "add", "carry_out", "joined"]

COMMANDS: dict[str, Any] = {
    "explain": explain,
    "questions": questions,
    "fingerprint": fingerprint,
    "compare": compare,
    "export": export,
    "answer": answer,
    "judge": judge,
    "soak": soak,
}
#: Their options, to be told the nearest.
OPTIONS = {name: list(module.OPTIONS) for name, module in COMMANDS.items()}
_GRID = re.compile(r"-\d+:-?\d+")


def add(to: Any) -> None:
    """Tell the parser of every command."""
    for name, module in COMMANDS.items():
        module.add(to.add_parser(name, help=module.ABOUT, allow_abbrev=False))


def carry_out(options: argparse.Namespace, given: Sequence[str]) -> int:
    """Carry one out; the exit status."""
    status: int = COMMANDS[options.command].carry_out(options, given)
    return status


def joined(given: Sequence[str]) -> list[str]:
    """The words, with a grid in one with its option: argparse takes ``-128:127`` for an option, and ``-inf``.

    >>> joined(["export", "onnx", "--grid", "-128:127"]), joined(["explain", "-1e-3", "0.1"])
    (['export', 'onnx', '--grid=-128:127'], ['explain', ' -1e-3', '0.1'])
    """
    found: list[str] = []
    for word in given:
        if found and found[-1] == "--grid" and _GRID.fullmatch(word):
            found[-1] = f"--grid={word}"
        else:
            found.append(explain.signed(word) if given[0] == "explain" else word)
    return found
