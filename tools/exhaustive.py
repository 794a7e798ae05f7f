"""A page of what the sweeps of runs came to, from what they have written down.

``python tools/exhaustive.py PAGE WORDS OUT [OUT ...]``: each OUT is the folder of a run with ``--tier exhaustive``, and
WORDS say how they were run.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["main"]

_HEAD = (
    "backend",
    "operation, grid, dtype",
    "check",
    "parameters",
    "inputs",
    "judged",
    "differ",
    "s",
    "own s",
    "above",
)


def main(page: Path, words: str, *outs: Path) -> int:
    """Write the page; 1 where no folder has sweeps."""
    runs = [_Run.of(out) for out in outs]
    journals = [path for run in runs for path in run.journals]
    rows = sorted(row for path in journals for row in _rows(path))
    if not rows:
        print(f"{', '.join(map(str, outs))}: no sweeps", file=sys.stderr)
        return 1
    backends = {(b["backend"], f"{b['library']} {b['version']}") for b in map(_head, journals)}
    lines = [
        "# All inputs of our kernels and of torch",
        "",
        *(f"Made by `{run.report['command'].replace(str(run.out), 'OUT')}`.  " for run in runs),
        f"{words}.",
        "[docs/exhaustive.md](../docs/exhaustive.md) says what each check asks. Seconds are those that passed, the",
        "backend's own among them; *above* is the processor time that all else took, for 2^32 inputs.",
        "NaNs are asked, and judged in `every-nan` alone.",
        "",
        *(f"- `{name}`: {library}" for name, library in sorted(backends)),
        "",
        f"| {' | '.join(_HEAD)} |",
        f"|{'---|' * len(_HEAD)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        "## By many inputs",
        "",
        "What else these runs checked, of which no sweep was kept.",
        "",
        "| backend | check | inputs | differ | what was asked |",
        "|---|---|---|---|---|",
        *(line for run in runs for line in _sampled(run)),
        "",
        "## Where they differ",
        "",
        *(line for run in runs for line in _causes(run.report)),
        *_left([name for run in runs for name in run.planned], [*journals], runs),
    ]
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return 0


@dataclass(frozen=True)
class _Run:
    """What a run has left in its folder."""

    out: Path
    report: dict[str, Any]
    planned: list[str]
    journals: list[Path]

    @classmethod
    def of(cls, out: Path) -> "_Run":
        report, planned = (json.loads((out / f"{name}.json").read_text("utf-8")) for name in ("report", "planned"))
        return cls(out, report, planned["names"], sorted((out / "exhaustive").glob("*.jsonl")))


def _head(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])
    return found


def _rows(path: Path) -> Iterator[tuple[str, ...]]:
    """One row for each set of parameters of an item."""
    head = _head(path)
    sets: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        done = json.loads(line)
        name = done["chunk"].partition(", from ")[0].partition("scales from ")[0].rstrip(", ")
        sets[name][done["chunk"]] = done
    _, operation, _, grid, dtype, *_, check = head["item"].split("/")
    done = sum(c["count"] for chunks in sets.values() for c in chunks.values())
    check = f"`{check}`" + ("" if done == head["inputs"] else f", interrupted after {done / head['inputs']:.0%}")
    for name, chunks in sets.items():
        keys = ("count", "points", "differing", "own", "wall", "above")
        count, points, differing, own, wall, above = (sum(c[key] for c in chunks.values()) for key in keys)
        shard = f"significands, shard {head['shard'] or '1/16'}, zero point 0" if "every-scale" in check else ""
        rate = f"{above / count * 2**32:.2f}" if count else ""
        facts = f"{count:,}", f"{points:,}", f"{differing:,}", f"{wall:.1f}", f"{own:.1f}", rate
        yield (f"`{head['backend']}`", f"{operation}, {grid}, {dtype}", check, name or shard, *facts)


def _sampled(run: _Run) -> Iterator[str]:
    """A row for each result that is not of a sweep."""
    swept = {(head["backend"], head["item"]) for head in map(_head, run.journals)}
    for r in run.report["results"]:
        if (r["backend"], r["id"]) not in swept and r["outcome"] != "not run":
            yield f"| `{r['backend']}` | {r['id']} | {r['points']:,} | {r['differing']:,} | {r['detail']} |"


def _left(planned: list[str], journals: list[Path], runs: list[_Run]) -> Iterator[str]:
    """What was planned and not begun in any run."""
    begun = {f"{head['backend']}::{head['item']}" for head in map(_head, journals)}
    begun |= {f"{r['backend']}::{r['id']}" for run in runs for r in run.report["results"] if r["outcome"] != "not run"}
    if left := [name for name in planned if name not in begun]:
        yield from ("", "## Planned, and not run", "")
        yield from (f"- `{backend}`, {item}" for backend, _, item in (name.partition("::") for name in left))


def _causes(report: dict[str, Any]) -> Iterator[str]:
    """What each check that differs says, with its witness."""
    for r in report["results"]:
        w = r.get("witness") or {}
        if r["outcome"] not in {"exact", "not run", "implementation-defined"}:
            yield f"- `{r['backend']}`, {r['id']}: {r['differing']:,} of {r['points']:,} inputs: {r['cause']}."
            if w:
                yield f"  x = {w['x']}, scale {w['scale']}, zero point {w['zero']}:"
                yield f"  expected {w['expected']}, got {w['actual']}."


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], *map(Path, sys.argv[3:])))
