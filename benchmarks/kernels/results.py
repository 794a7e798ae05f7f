"""What becomes of a measurement: checked results, ratios per round, and the file they are kept in."""

import json
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kernels import pages
from kernels.cases import Case, Column, Table
from kernels.exact import differences, exact, refusal
from kernels.implementations import Call, Implementation, NotOffered, results
from kernels.measure import Budget, Rounds, measure
from kernels.others import Others

__all__ = ["SCHEMA", "NotExact", "Where", "group", "read", "spread", "write"]

SCHEMA = 1
_MOST_REASON = 160


class NotExact(Exception):  # noqa: N818 - named for what the user sees
    """One of ours is not bit-exact: nothing is measured."""


@dataclass(frozen=True)
class Where:
    """What is measured, where, and by which clock, which waits for the device; ``checked`` at another shape, if any."""

    device: str = "cpu"
    checked: tuple[int, int] | None = None
    clock: Callable[[], float] = time.perf_counter


def group(
    table: Table,
    column: Column,
    implementations: Sequence[Implementation],
    budget: Budget,
    say: Callable[[str], None],
    where: Where = Where(),
) -> dict[str, Any]:
    """Check and measure one table at one size and number of threads; the record of it.

    Raises:
        NotExact: a result of ours differs from the exact one.
    """
    case = Case(table, column.shape, where.device)
    small = Case(table, where.checked, where.device) if where.checked else case
    exact_of = Case(table, small.shape)
    torch.set_num_threads(column.threads)
    calls, not_run, checked = {}, [], {}
    if not pages.keep(column.kept) and column.kept:
        not_run = [{"name": "pages kept", "reason": "the C library cannot be told to keep them"}]
        implementations = ()
    expected: dict[bool, tuple[torch.Tensor, ...]] = {}
    for one in implementations:
        if table.operation not in one.makers:
            continue
        if one.zero_point not in expected:
            expected[one.zero_point] = exact(exact_of, with_zero_point=one.zero_point)
        try:
            call, checked[one.name] = _checked(small, one, expected[one.zero_point])
            calls[one.name] = call if small is case else _warm(one.call(case))
        except NotExact:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a library raises is the reason why it is not measured
            not_run.append({"name": one.name, "reason": _reason(error)})
    del expected
    others = Others()
    found = measure(calls, case.limit, budget, say, where.clock)
    share = others.share()
    rows = [
        _row(one, case, column, found, checked[one.name])
        for one in implementations
        if one.name in calls and found.limit
    ]
    return {
        "table": table._asdict(),
        "column": column._asdict() | {"shape": list(column.shape)},
        "elements": case.elements,
        "bytes": case.bytes,
        "rounds": len(found.limit),
        "interrupted": found.interrupted,
        "others": share,
        "copy": _times(found.limit, case) if found.limit else None,
        "rows": rows,
        "not_run": not_run,
    }


def _checked(case: Case, one: Implementation, expected: tuple[torch.Tensor, ...]) -> tuple[Call, list[int]]:
    """The call, and how many elements of each of its results differ.

    Raises:
        NotOffered: its results are of another function.
        NotExact: it is ours and differs.
    """
    call = one.call(case)
    case.out.fill_(float("nan") if case.out.dtype.is_floating_point else 77)  # nothing that was there before counts
    found = tuple(t.cpu() for t in results(call(), expected))
    reason = refusal(case, found, expected)
    if one.offset and len(found) > 2:
        found = (*found[:2], -found[2])
    different = [] if reason and reason.startswith("results of shapes") else differences(found, expected)
    if one.role != "peer" and (reason or any(different)):
        msg = f"{one.name}: {case.table} at {case.shape}: {different} elements differ from the exact result ({reason})"
        raise NotExact(msg)
    if reason:
        raise NotOffered(reason)
    return call, different


def _warm(call: Call) -> Call:
    """A call that has been made: what it cannot do is said before anything is measured."""
    call()
    return call


def _reason(error: Exception) -> str:
    text = re.sub(r"(?:/[^\s/:'\"()]+)+/", "", " ".join(str(error).split()))  # without the folders of this machine
    text = text if isinstance(error, NotOffered) else f"{type(error).__name__}: {text}"
    return text if len(text) <= _MOST_REASON else text[:_MOST_REASON] + "…"


def spread(values: list[float]) -> list[float]:
    """First quartile, median, third quartile."""
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return [float(f"{value:.4g}") for value in quartiles]


def _times(seconds: list[float], case: Case) -> dict[str, Any]:
    middle = spread(seconds)
    return {"seconds": middle, "gigabytes_per_second": float(f"{case.bytes / middle[1] / 1e9:.4g}")}


def _row(one: Implementation, case: Case, column: Column, found: Rounds, different: list[int]) -> dict[str, Any]:
    seconds = found.calls[one.name]
    pairs = list(zip(seconds, found.limit, strict=False))  # of the same rounds; a slow one has fewer
    row = {
        "name": one.name,
        "out": one.out,
        "role": one.role,
        "note": one.note,
        "rounds": len(pairs),
        "differences": different,
        "ratio": spread([s / c for s, c in pairs]),
        **_times(seconds, case),
    }
    if column.size == "call":
        row["microseconds_above_copy"] = spread([(s - c) * 1e6 for s, c in pairs])
    return row


def read(path: Path) -> dict[str, Any]:
    """The file, or an empty one.

    Raises:
        ValueError: it has another schema.
    """
    if not path.exists():
        return {"schema": SCHEMA, "groups": []}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if content.get("schema") != SCHEMA:
        msg = f"{path.name} has schema {content.get('schema')!r}: this program writes and reads {SCHEMA}"
        raise ValueError(msg)
    return content


def write(path: Path, content: dict[str, Any]) -> None:
    """Replace the file as a whole, so that an interruption leaves the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    unfinished.replace(path)
