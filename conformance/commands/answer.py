"""``halfeven answer``: answer a bundle with a backend in Python, as a device does with a program of its own."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halfeven.conformance.backends.offer import Offer
    from halfeven.conformance.engine.call import Call

__all__ = ["ABOUT", "OPTIONS", "add", "carry_out"]

ABOUT = "answer an exported bundle with a backend, which is imported and called here"
OPTIONS = ("--backend", "--out")


def add(parser: argparse.ArgumentParser) -> None:
    """The words of the command."""
    parser.add_argument("bundle", type=Path, metavar="DIR", help="what halfeven export wrote")
    parser.add_argument("--backend", required=True, help="a name, or pkg.mod:attr")
    parser.add_argument("--out", type=Path, required=True, help="folder, empty or not there yet")


def carry_out(options: argparse.Namespace, given: Sequence[str]) -> int:
    """Read the calls, make them, write what came."""
    del given
    from halfeven.conformance.backends.registry import resolve
    from halfeven.conformance.workers.folder import read_bundle, write_answers
    from halfeven.conformance.workers.inside import Inside

    bundle = read_bundle(options.bundle)
    profile = bundle.plan.offer.profile
    found = resolve(options.backend)
    if len(found) != 1:
        msg = f"--backend={options.backend!r} names {len(found)} backends: give one"
        raise ValueError(msg)
    [backend] = found if found[0].profile == profile else resolve(options.backend, profile)
    worker = Inside(backend)
    answers = (a for _, calls in bundle.batches() for a in worker.answers([_fitted(c, worker.offer) for c in calls]))
    write_answers(options.out, bundle, answers)
    print(f"{options.out}: {len(bundle.keys)} answers of {backend.name}")
    return 0


def _fitted(call: "Call", offer: "Offer") -> "Call":
    """The call as the backend's function takes it: a live run would not give it what its signature does not name."""
    operation: Any = call.formula.rpartition(":")[2]
    if operation not in offer.operations:
        return call
    named = {*offer.operations[operation], *(() if operation == "dequantize" else ("qmin", "qmax"))}
    if call.named.get("block_size") is not None:
        named.add("block_size")
    return replace(call, named={name: value for name, value in call.named.items() if name in named})
