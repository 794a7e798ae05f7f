"""The tables of a results file, for people; and beside them the plots."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tabulate import tabulate

from kernels import plot
from kernels.cases import COLUMNS, TABLES, Column, Table, columns
from kernels.machine import slug
from kernels.others import is_disturbed
from kernels.targets import fastest_peer, kernel, standing, target

__all__ = ["index", "text", "write"]

_REACHED, _MISSED = "✓", "✗"
_METHOD = """\
A number is a time divided by that of `out.copy_(x)` of the same bytes, measured in the same round: 1 is the speed of
the memory, lower is faster. In brackets gigabytes per second. All implementations of a table take turns in one process,
in a new random order each round; in a round the mean of a batch of calls counts, over the rounds the median of the
ratios. The quartiles are in [results.json](results.json).

- **cache**: 1,048,576 elements; **memory**: 16,777,216; **call**: 1,024, as microseconds above `copy_`, for gradients
  above autograd's pass through a negation.
- `out=` and bound: into memory that the caller has. Without, the result is fresh, and above 32 MiB its first touch
  costs several times the arithmetic. **Pages kept**: fresh too, but the C library keeps freed memory for it.
- **differs**: the elements that are not the exact ones, bit for bit, checked before anything is measured. Ours must be
  exact; what is more than one code off, or computes something else, is listed as not measured.
- The limit of `quantize` is a copy that converts. From bfloat16 to int8 torch's is slow in the cache: compare
  gigabytes there. That of the reductions, which only read, is a copy that reads half of their bytes and writes as many;
  that of the gradients, which read two tensors and write one, a copy that reads and writes half of the sum.
- † fewer rounds, interrupted. ‡ other processes used more than a tenth of the cores meanwhile.
"""
_TARGETS = "Halfeven's kernels, with `out=` where they have it; ✓ or ✗ and the most that was aimed at."
_AGAINST = """\
The same against the least of all peers, exact or not, those included that compute a simpler function. Level: the
middle halves of the ratios overlap. A kernel that writes to `out=` stands beside peers that allocate: where that
decides, the tables below tell.
"""


def write(content: dict[str, Any], out: Path) -> None:
    """README.md and the plots."""
    drawn, problem = plot.draw(content, out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "README.md").write_text(_page(content, drawn, problem), encoding="utf-8")


def index(folder: Path, machines: Iterable[dict[str, Any]]) -> None:
    """The page that leads to the report of each processor."""
    rows = [(f"[{m['cpu']}]({slug(m)}/README.md)", m["kernels"], ", ".join(m["instructions"])) for m in machines]
    table = tabulate(rows, ("processor", "kernels", "instruction sets"), "github")
    page = (
        f"# Speed of the kernels, by processor\n\n{table}\n\nWritten by `make benchmark`, on each processor its own.\n"
    )
    (folder / "README.md").write_text(page, encoding="utf-8")


def text(content: dict[str, Any], out: Path) -> str:
    """The same for a terminal: the targets last."""
    tables = "\n\n".join(f"{title}\n{_table(rows, 'simple')}" for title, rows in _details(content))
    parts = [tables, _table(_not_run(content), "simple"), _table(_peers(content), "simple")]
    return "\n\n".join((*parts, _table(_targets(content), "simple"), f"Results, tables and plots: {out}"))


def _page(content: dict[str, Any], drawn: list[str], problem: str) -> str:
    parts = ["# Speed of the kernels", _machine(content["machine"]), _METHOD]
    if any(g["interrupted"] for g in content["groups"]):
        parts.append("**Partial**: the run was interrupted; columns with † have fewer rounds.")
    parts += [f"![{name.partition('.')[0].replace('-', ' ')}]({name})" for name in drawn]
    if problem:
        parts.append(problem)
    parts += ["## Targets", _TARGETS, _table(_targets(content), "github")]
    parts += ["## Against the fastest peer", _AGAINST, _table(_peers(content), "github")]
    for title, rows in _details(content):
        parts += [f"## {title[0].upper()}{title[1:]}", _table(rows, "github")]
    parts += ["## Not measured", _table(_not_run(content), "github")]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _machine(machine: dict[str, Any]) -> str:
    cpu = f"{machine['cpu']}, {machine['cores']} cores{' (virtual)' if machine['virtual'] else ''}"
    held = f"{', '.join(machine['caches'])}, {machine['memory_gib']} GiB; {', '.join(machine['instructions'])}"
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return f"{cpu}; {held}; {machine['system']}. Kernels: {machine['kernels']}. Python {machine['python']}; {versions}."


def _table(rows: list[dict[str, Any]], form: str) -> str:
    return tabulate(rows, headers="keys", tablefmt=form, disable_numparse=True) if rows else "Nothing."


def _groups(content: dict[str, Any]) -> dict[tuple[Table, Column], dict[str, Any]]:
    return {
        (Table(**g["table"]), Column(**g["column"] | {"shape": tuple(g["column"]["shape"])})): g
        for g in content["groups"]
        if g["rows"]
    }


def _measured(content: dict[str, Any]) -> Iterable[tuple[Table, dict[Column, dict[str, Any]]]]:
    groups = _groups(content)
    for table in TABLES:
        if found := {c: groups[table, c] for c in columns(table) if (table, c) in groups}:
            yield table, found


def _heads(content: dict[str, Any]) -> list[Column]:
    present = {column for _, column in _groups(content)}
    return [c for c in COLUMNS if c in present]


def _targets(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Ours in every table, and the target."""
    return _overview(content, _target)


def _peers(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Ours against the fastest peer in every table."""
    return _overview(content, _against)


def _overview(content: dict[str, Any], cell: Callable[[dict[str, Any]], str]) -> list[dict[str, Any]]:
    rows = []
    heads = _heads(content)
    for table, found in _measured(content):
        row = {"operation": table.operation, "reals": table.dtype, "per": table.layout}
        row |= {str(column): cell(found[column]) if column in found else "" for column in heads}
        rows.append(row)
    return rows


def _target(group: dict[str, Any]) -> str:
    if (ours := kernel(group)) is None:
        return ""
    call = group["column"]["size"] == "call"
    value, most = ours["microseconds_above_copy" if call else "ratio"][1], target(group)
    said = f"{value:.1f} µs" if call else f"{value:.2f}"
    return said + ("" if most is None else f" {_REACHED if value <= most else _MISSED} {most:g}") + _mark(group)


def _against(group: dict[str, Any]) -> str:
    ours, peer = kernel(group), fastest_peer(group)
    if ours is None or peer is None:
        return ""
    numbers = f"{ours['ratio'][1]:.2f} : {peer['ratio'][1]:.2f}"
    return f"{standing(ours, peer)}, {numbers} {peer['name'].removesuffix(', out=')}"


def _details(content: dict[str, Any]) -> Iterable[tuple[str, list[dict[str, Any]]]]:
    """Each table: the copy, then the implementations, the fastest first."""
    for table, found in _measured(content):
        names = {row["name"]: row for group in found.values() for row in group["rows"]}
        order = sorted(names, key=lambda name: _ratio(found, name))
        limit = {"implementation": "copy of the same bytes"}
        for column, group in found.items():
            limit[str(column)] = f"({group['copy']['gigabytes_per_second']:.3g})"
        yield str(table), [limit, *(_detail(found, names[name]) for name in order)]


def _ratio(found: dict[Column, dict[str, Any]], name: str) -> float:
    """What the rows are sorted by: the geometric middle of the ratios."""
    product, number = 1.0, 0
    for column, group in found.items():
        for row in group["rows"]:
            if row["name"] == name and column.size != "call":
                product, number = product * row["ratio"][1], number + 1
    return product ** (1 / number) if number else float("inf")


def _detail(found: dict[Column, dict[str, Any]], row: dict[str, Any]) -> dict[str, Any]:
    name = f"**{row['name']}**" if row["role"] != "peer" else row["name"]
    cells: dict[str, Any] = {"implementation": name}
    differs = ""
    for column, group in found.items():
        one = next((r for r in group["rows"] if r["name"] == row["name"]), None)
        cells[str(column)] = _cell(one, column, group)
        if one is not None:
            differs = _differs(one, group)  # that of the largest size
    return cells | {"differs": differs, "why": row["note"] if differs != "exact" else ""}


def _cell(row: dict[str, Any] | None, column: Column, group: dict[str, Any]) -> str:
    if row is None:
        return ""
    if column.size == "call":
        return f"{row['microseconds_above_copy'][1]:.1f} µs{_mark(group)}"
    return f"{row['ratio'][1]:.2f} ({row['gigabytes_per_second']:.3g}){_mark(group)}"


def _mark(group: dict[str, Any]) -> str:
    return "†" * group["interrupted"] + "‡" * is_disturbed(group)


def _differs(row: dict[str, Any], group: dict[str, Any]) -> str:
    first, *others = row["differences"]
    if not first and not any(others):
        return "exact"
    said = f"{first / group['elements']:.2g} of all" if first else "x exact"
    return said + ("; parameters" if any(others) else "")


def _not_run(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Each reason once per implementation, with the tables."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for group in content["groups"]:
        table = Table(**group["table"])
        for one in group["not_run"]:
            found.setdefault((one["name"], one["reason"]), {})[str(table)] = None
    return [
        {"implementation": name, "reason": reason, "tables": "; ".join(tables)}
        for (name, reason), tables in found.items()
    ]
