"""How fast the kernels are on a GPU: beside a copy of as many bytes, torch operations, the installed peers."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from kernels.cases import TABLES, Column, Table
from kernels.measure import Budget
from kernels.peers import IMPLEMENTATIONS
from kernels.results import NotExact, Where, group
from kernels.targets import fastest_peer, kernel, standing

from gpu.steps import Left, NotRunError, Part

__all__ = ["clock", "parts", "row"]

#: Of the copy's bandwidth, for every kernel of forward, and microseconds of a call.
_LEAST, _MOST_CALL = 0.9, 10.0
_FORWARD = ("quantize", "fake quantize", "dequantize")
_BYTES = 2**30  # of the reals
_CHECKED = (1024, 1024)


def clock() -> float:
    """Seconds, once the GPU has done all that it was asked."""
    torch.cuda.synchronize()
    return time.perf_counter()


def parts(device: str, why_not: Callable[[], str], seconds: float = 2.0) -> Iterator[Part]:
    """Each table from memory, and calls of few elements."""
    for table in TABLES:
        wide = {"float32": 4, "bfloat16": 2}[table.dtype]
        column = Column("1 GiB", (_BYTES // wide // 2**14, 2**14), torch.get_num_threads())
        yield Part(f"{table}", partial(_measured, table, column, device, why_not, seconds))
    for table in TABLES:
        if table.layout == "tensor":
            column = Column("call", (8, 128), torch.get_num_threads())
            yield Part(f"{table}, a call", partial(_measured, table, column, device, why_not, seconds))


def _measured(
    table: Table, column: Column, device: str, why_not: Callable[[], str], seconds: float, _: Left
) -> tuple[str, Any]:
    if why := why_not():
        raise NotRunError(why)
    call = column.size == "call"
    chosen = [one for one in IMPLEMENTATIONS if not call or "compile" not in one.name]
    where = Where(device, None if call else _CHECKED, clock)
    try:
        found = group(table, column, chosen, Budget(seconds, 9, 25), lambda _: None, where)
    except NotExact as error:
        return str(error), None
    torch.cuda.empty_cache()
    if found["interrupted"]:
        raise KeyboardInterrupt
    return _wanting(found), row(found)


def _wanting(found: dict[str, Any]) -> str:
    """What a group lacks of its target, "" where it has reached it or has none."""
    ours = kernel(found)
    if ours is None:
        return "the kernels were not measured: " + "; ".join(one["reason"] for one in found["not_run"])
    if found["column"]["size"] == "call":
        took = ours["seconds"][1] * 1e6
        return f"a call takes {took:.1f} µs, at most {_MOST_CALL:g} are wanted" if took > _MOST_CALL else ""
    of_copy = 1 / ours["ratio"][1]
    wanted = found["table"]["operation"] in _FORWARD and of_copy < _LEAST
    return f"{of_copy:.2f} of the copy's bandwidth, {_LEAST:g} are wanted" if wanted else ""


def row(found: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a group: medians, each beside the copy of its own rounds."""
    ours, peer = kernel(found), fastest_peer(found)
    kept = ("name", "ratio", "gigabytes_per_second", "differences", "rounds")
    return {
        "bytes": found["bytes"],
        "copy": found["copy"],
        "rows": [{key: r[key] for key in kept} | {"microseconds": r["seconds"][1] * 1e6} for r in found["rows"]],
        "peer": None if ours is None or peer is None else [standing(ours, peer), peer["name"]],
        "not_run": found["not_run"],
    }
