"""How many codes the bulk checks compare per second, everything included: inputs, reference, backend, comparison.

``python benchmarks/bulk.py [OUT.json]``. One thread. The backends take turns in one process, in random order each
round, together with a copy of as many bytes; medians over the rounds, and ratios to the copy in the same round.
"""

import json
import random
import statistics
import sys
import time
from pathlib import Path

import torch
from tabulate import tabulate

from halfeven.conformance.backends.registry import resolve
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import answered
from halfeven.conformance.environment import environment
from halfeven.conformance.workers.inside import Inside

BACKENDS = (
    "halfeven",
    "halfeven.integer",
    "torch.quantize_per_channel",
    "torch.quantized_decomposed.per_channel",
    "torch.fake_quantize_per_channel_affine",
)
ROUNDS = 9


def bulk_items(worker: Inside) -> list[Item]:
    """The boundary checks of 8-bit grids with one scale per row: the form in which most points are compared."""
    return [
        item
        for item in plan(worker.offer, "standard")
        if item.check == "boundaries"
        and item.configuration.dtype == "float32"
        and item.configuration.granularity != "tensor"
        and str(item.configuration.grid) in {"int8", "uint8"}
    ]


def timed(worker: Inside) -> tuple[float, int]:
    items = bulk_items(worker)
    start = time.perf_counter()
    points = sum(answered(item, worker).result.points for item in items)
    return time.perf_counter() - start, points


def main(out: Path | None) -> None:
    torch.set_num_threads(1)
    work = {name: Inside(resolve(name)[0]) for name in BACKENDS}
    points = {name: timed(worker)[1] for name, worker in work.items()}  # the first round warms up and counts
    seconds: dict[str, list[float]] = {name: [] for name in BACKENDS}
    copies: dict[str, list[float]] = {name: [] for name in BACKENDS}
    for _ in range(ROUNDS):
        for name in random.sample(BACKENDS, len(BACKENDS)):
            source = torch.zeros(points[name])
            target = torch.empty_like(source)
            target.copy_(source)
            start = time.perf_counter()
            target.copy_(source)
            copies[name].append(time.perf_counter() - start)
            seconds[name].append(timed(work[name])[0])
    rows = []
    for name in BACKENDS:
        rates = [points[name] / s / 1e6 for s in seconds[name]]
        ratios = [s / c for s, c in zip(seconds[name], copies[name], strict=True)]
        rows.append(
            {
                "backend": name,
                "points": points[name],
                "million points per second": round(statistics.median(rates), 1),
                "least": round(min(rates), 1),
                "most": round(max(rates), 1),
                "times a float32 copy": round(statistics.median(ratios)),
            }
        )
    print(tabulate(rows, headers="keys"))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({"environment": environment(), "rounds": ROUNDS, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
