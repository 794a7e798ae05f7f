"""The same elements in another order give the same, in that order."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Property, breach, related, said
from halfeven.conformance.properties.role import Role, Seen
from halfeven.reference.blocks import Array

__all__ = ["ORDER"]


def _again(role: Role, first: Answered) -> dict[str, Any] | None:
    """Every array reversed along every axis; where blocks are consecutive elements, rows of whole blocks, or parts."""
    seen, arguments = first.seen, first.arguments
    if seen.parts is not None:
        one = seen.parts < 2  # noqa: PLR2004 - which has no other order
        return None if one else {n: _turned(v, seen.parts) if n in role.runs else v for n, v in arguments.items()}
    block, axis = arguments.get("block_size"), arguments.get("axis")
    if isinstance(block, int) and isinstance(axis, int) and role.kind != "blocks" and seen.x.shape[axis] % block:
        return None  # the last block is shorter
    if role.kind != "blocks":
        return {name: _flipped(value) for name, value in arguments.items()}
    rows = seen.x.shape[0] if seen.x.ndim > 1 else 0
    if rows < 2 or seen.block is None:  # noqa: PLR2004 - one row has no other order
        return None
    by_row = seen.block.reshape(rows, -1)
    whole = not seen.block.any() or not np.any(by_row[:-1, -1] == by_row[1:, 0])
    return {
        name: np.flip(value, 0).copy() if name in role.reals and np.shape(value)[:1] == (rows,) else value
        for name, value in arguments.items()
    } if whole else None  # fmt: skip


def _turned(value: Any, parts: int) -> Any:
    """The parts of an array in the reverse order; what all share stays."""
    if np.size(value) < parts:
        return value
    return np.flip(value.reshape(parts, -1), 0).copy().reshape(value.shape)


def _flipped(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_flipped, value))
    return np.flip(value).copy() if isinstance(value, np.ndarray) else value


def _judge(first: Answered, second: Answered | None) -> Iterator[Breach]:
    assert second is not None, "there is a second call"
    seen = first.seen
    for name, before in first.leaves.items():
        if name.startswith("the gradient"):  # a sum may be taken in any order
            continue
        got = second.leaves[name]
        if got.shape != before.shape:
            continue
        judged = np.ones(got.shape, bool)
        places = _places(seen, before)
        wanted = before.ravel()[places].reshape(before.shape)
        shown = related(name, at=partial(_at, places))
        yield breach(name, got, judged, _same(got, wanted), said(wanted, ", as in the other order"), shown)


def _places(seen: Seen, before: Array) -> Array:
    """For each place of the second answer that of the first."""
    axes: Any = 0 if seen.block is not None or seen.parts is not None else None
    shape = before.shape if seen.parts is None else (seen.parts, -1)
    return np.flip(np.arange(before.size).reshape(shape), axes).ravel()


def _at(places: Array, i: int) -> int:
    return int(places[i])


def _same(a: Array, b: Array) -> Array:
    x, y = a.astype(np.float64), b.astype(np.float64)
    found: Array = (x == y) | (np.isnan(x) & np.isnan(y))
    return found


ORDER = Property(
    "any-order",
    "Elements, channels and blocks in the reverse order give the same results in that order.",
    "gives other results for the same elements in another order",
    frozenset({"quantize", "fake_quantize", "dequantize", "cast", "choose", "blocks", "gradient"}),
    _judge,
    _again,
    exceptions={
        "brevitas/RescalingIntQuant": "its calls are vectors; IntQuant, which it calls, is judged",
        **dict.fromkeys(
            (
                "pytorch-quantization/percentile_amax",
                "pytorch-quantization/mse_amax",
                "pytorch-quantization/entropy_amax",
                "torch/HistogramObserver._non_linear_param_search",
            ),
            "it is given a histogram, whose bins lie in the order of their edges",
        ),
    },
)
