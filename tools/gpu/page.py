"""The page that the steps write: each part with its outcome, and tables of what was measured."""

from pathlib import Path
from typing import Any

from gpu.steps import PASSED, read

__all__ = ["STEPS", "write"]

STEPS = ("correct", "fast", "libraries")


def write(out: Path) -> None:
    """Write ``README.md`` of a folder from what its steps have written down."""
    lines = ["# On a GPU", "", "Made by `make gpu`, of which [docs/optimized.md](../../docs/optimized.md) tells.", ""]
    for step in STEPS:
        found = read(out / f"{step}.jsonl")
        lines += [f"## {step.capitalize()}", ""]
        if not found:
            lines += ["Not run.", ""]
            continue
        for machine in dict.fromkeys(_words(line["machine"]) for line in found):
            lines += [f"{machine}.", ""]
        lines += _speeds(found) if step == "fast" else []
        lines += ["| part | outcome | s | |", "|---|---|---|---|"]
        lines += [f"| {_cell(p['part'])} | {p['outcome']} | {p['seconds']} | {_cell(_said(p, step))} |" for p in found]
        lines += [""]
    (out / "README.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _words(machine: dict[str, Any]) -> str:
    return "; ".join(f"{value}" if name == "gpu" else f"{name} {value}" for name, value in machine.items())


def _said(part: dict[str, Any], step: str) -> str:
    found = part["found"]
    if step == "fast" or part["outcome"] != PASSED:
        return str(part["words"])
    if isinstance(found, dict):
        return ", ".join(f"{n} {outcome}" for outcome, n in sorted(found.items()))
    return f"{found:,}" if isinstance(found, int) else ""


def _speeds(found: list[dict[str, Any]]) -> list[str]:
    """Bandwidth of ours and of the copy, and the fastest peer; all of a table's rows are in ``fast.jsonl``."""
    heads = ("", "copy GB/s", "ours GB/s", "of the copy", "µs", "torch operations", "fastest peer")
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for part in found:
        if not (speed := part["found"]):
            continue
        rows = {r["name"]: r for r in speed["rows"]}
        ours = next((r for name, r in rows.items() if name in ("halfeven, out=", "halfeven")), None)
        plain = next((r for name, r in rows.items() if "without a compiler" in name), None)
        of_peer = ""
        if speed["peer"]:
            standing, name = speed["peer"]
            of_peer = f"{standing}: {name} {1 / rows[name]['ratio'][1]:.2f}"
        cells = [part["part"], f"{speed['copy']['gigabytes_per_second']:g}"]
        cells += _of(ours) if ours else ["", "", ""]
        cells += [f"{1 / plain['ratio'][1]:.2f}" if plain else "", of_peer]
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return [*lines, ""]


def _of(row: dict[str, Any]) -> list[str]:
    return [f"{row['gigabytes_per_second']:g}", f"{1 / row['ratio'][1]:.2f}", f"{row['microseconds']:.1f}"]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
