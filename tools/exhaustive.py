"""A page of what the sweeps of a run came to, from what they have written down.

``python tools/exhaustive.py OUT PAGE [WORDS]``: OUT is the folder of a run with ``--tier exhaustive``; WORDS say how it
was run.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["main"]

_HEAD = (
    "backend",
    "operation, grid",
    "check",
    "parameters",
    "inputs",
    "judged",
    "differ",
    "s",
    "own s",
    "above",
)


def main(out: Path, page: Path, words: str = "") -> int:
    """Write the page; 1 where the folder has no sweeps."""
    journals = sorted((out / "exhaustive").glob("*.jsonl"))
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    rows = [row for path in journals for row in _rows(path)]
    if not rows:
        print(f"{out} has no sweeps", file=sys.stderr)
        return 1
    backends = {(b["backend"], f"{b['library']} {b['version']}") for b in map(_head, journals)}
    lines = [
        "# All inputs of our kernels and of torch",
        "",
        f"Made by `{report['command'].replace(str(out), 'OUT')}`{f'; {words}' if words else ''}.",
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
        "## Where they differ",
        "",
        *_causes(report),
        *_left(json.loads((out / "planned.json").read_text(encoding="utf-8"))["names"], journals),
    ]
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return 0


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
    _, operation, _, grid, *_, check = head["item"].split("/")
    done = sum(c["count"] for chunks in sets.values() for c in chunks.values())
    check = f"`{check}`" + ("" if done == head["inputs"] else f", interrupted after {done / head['inputs']:.0%}")
    for name, chunks in sets.items():
        keys = ("count", "points", "differing", "own", "wall", "above")
        count, points, differing, own, wall, above = (sum(c[key] for c in chunks.values()) for key in keys)
        shard = f"significands, shard {head['shard'] or '1/16'}, zero point 0" if "every-scale" in check else ""
        rate = f"{above / count * 2**32:.2f}" if count else ""
        facts = f"{count:,}", f"{points:,}", f"{differing:,}", f"{wall:.1f}", f"{own:.1f}", rate
        yield (f"`{head['backend']}`", f"{operation}, {grid}", check, name or shard, *facts)


def _left(planned: list[str], journals: list[Path]) -> Iterator[str]:
    """What was planned and not begun."""
    begun = {f"{head['backend']}::{head['item']}" for head in map(_head, journals)}
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
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))
