"""``halfeven judge``: the report of the answers that a device gave to a bundle."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halfeven.conformance.backends.offer import Offer
    from halfeven.conformance.report.model import Report, Result
    from halfeven.conformance.workers.folder import Plan

__all__ = ["ABOUT", "OPTIONS", "add", "carry_out"]

ABOUT = "judge a device's answers to an exported bundle, and write a report"
OPTIONS = ("--out", "--name", "--version", "--device", "--require", "--again")


def add(parser: argparse.ArgumentParser) -> None:
    """The words of the command."""
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="DIR ANSWERS", help="a bundle and its answers; a second round's follow"
    )
    parser.add_argument("--out", type=Path, default=Path("halfeven-report"), help="folder (default: halfeven-report)")
    parser.add_argument("--name", default="device", help="what the report calls the device (default: device)")
    parser.add_argument("--version", default="", help="its version")
    parser.add_argument("--device", default="", help="where it computes")
    parser.add_argument(
        "--require", metavar="SHARE", help="to conform: each requirement checked (default), all, any, or as 90%%"
    )
    parser.add_argument(
        "--again", type=Path, help="write a second bundle, of calls that would tell more, into this folder"
    )


def carry_out(options: argparse.Namespace, given: Sequence[str]) -> int:
    """Read, judge, write the report; the exit status is that of a run."""
    from halfeven.conformance.engine.conclude import concluded
    from halfeven.conformance.engine.plan import plan
    from halfeven.conformance.engine.run import answered
    from halfeven.conformance.report import folder
    from halfeven.conformance.report.share import EACH, requirement_share
    from halfeven.conformance.runner import show, verdict
    from halfeven.conformance.workers.folder import read_answers, read_bundle, write_bundle
    from halfeven.conformance.workers.record import Replay

    if len(options.folders) % 2:
        msg = f"{options.folders[-1]} has no folder of answers: give DIR ANSWERS, and of a second round both again"
        raise ValueError(msg)
    bundles = [read_bundle(path) for path in options.folders[::2]]
    asked = bundles[0].plan
    for other in bundles[1:]:
        if other.plan != asked:
            msg = f"{other.folder} belongs to another plan than {bundles[0].folder}"
            raise ValueError(msg)
    answers = [read_answers(path, b) for path, b in zip(options.folders[1::2], bundles, strict=True)]
    said = {"name": options.name, "version": options.version, "device": options.device or asked.offer.device}
    pairs = [(b.keys, a) for b, a in zip(bundles, answers, strict=True)]
    worker = Replay(replace(asked.offer, **said), pairs)
    came = [answered(item, worker) for item in plan(worker.offer, asked.tier, asked.seed)]
    samples = [a.sample for a in came if a.sample is not None]
    found, _ = concluded([a.result for a in came], samples, {worker.offer.name: worker})
    report = replace(_report(worker.offer, asked, found, given), require=requirement_share(options.require or EACH))
    with folder.locked(options.out):
        folder.write(report, options.out)
    show(report, options.out)
    if options.again is not None and worker.missing:
        guess = Replay(worker.offer, pairs, guessing=True)
        for item in plan(worker.offer, asked.tier, asked.seed):
            answered(item, guess)
        missing = [*(worker.missing | guess.missing).values()]
        write_bundle(options.again, asked, missing, bundles[0].format)
        words = shlex.join(["halfeven", "judge", *map(str, options.folders), str(options.again), "ANSWERS"])
        print(f"{options.again}: {len(missing)} more calls. Answer them, then: {words}")
    return verdict(report)


def _report(offer: "Offer", asked: "Plan", found: Sequence["Result"], given: Sequence[str]) -> "Report":
    from datetime import UTC, datetime

    from halfeven.conformance.environment import environment
    from halfeven.conformance.report.model import BackendRecord, Report

    record = BackendRecord(
        name=offer.name,
        profile=offer.profile,
        library=offer.library,
        version=offer.version,
        device=offer.device,
        path="",
        operations=tuple(offer.operations),
        dtypes=offer.dtypes,
        granularities=offer.granularities,
    )
    return Report(
        command=shlex.join(["halfeven", *given]),
        tier=asked.tier,
        seed=asked.seed,
        environment=environment(),
        backends=(record,),
        results=tuple(sorted(found, key=lambda r: (r.backend, r.id))),
        expected=len(found),
        complete=True,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
