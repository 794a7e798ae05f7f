"""What was quantized stays as it is when it is quantized again."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Property, breach, related, said
from halfeven.conformance.properties.role import Role, Seen, is_whole
from halfeven.reference.blocks import Array

__all__ = ["IDEMPOTENCE"]


def _again(role: Role, first: Answered) -> dict[str, Any] | None:
    """The same call for what the first gave; for codes, their reals."""
    seen, given = first.seen, np.asarray(first.arguments[role.data])
    if is_whole(given.dtype) or not seen.odd:  # not reals, or not rounded to the nearest
        return None
    if "codes" in first.leaves:
        if seen.scale is None or seen.zero is None or seen.low is None:
            return None
        q = np.where(_clear(first), first.leaves["codes"].astype(np.float64), seen.zero)
        reals = ((q - seen.zero) * seen.scale).astype(given.dtype)
    else:
        reals = first.leaves["reals"]
        if role.kind == "fake_quantize" and reals.dtype != given.dtype:
            return None
        if not np.array_equal(reals.astype(given.dtype).astype(np.float64), reals.astype(np.float64), equal_nan=True):
            return None
        reals = reals.astype(given.dtype)
    return {**first.arguments, role.data: reals.reshape(given.shape)}


def _judge(first: Answered, second: Answered | None) -> Iterator[Breach]:
    assert second is not None, "there is a second call"
    name = next(n for n in ("codes", "reals") if n in first.leaves)
    before, after = first.leaves[name], second.leaves[name]
    judged = ~np.isnan(first.seen.x) & np.isfinite(before.astype(np.float64)) & first.seen.plain & _clear(first)
    yield breach(name, after, judged, before == after, said(before, ", as it was quantized before"), related(name))


def _derived(first: Answered, i: int, came: str) -> str:
    seen = first.seen
    if "codes" not in first.leaves or seen.scale is None or seen.zero is None:
        return came
    zero, scale = float(seen.zero.flat[i]), float(seen.scale.flat[i])
    return f"({came} - {zero!r}) * {scale!r}" if _clear(first).flat[i] else "0.0"


def _clear(first: Answered) -> Array:
    """Where the real of a code is not so far from zero that its own rounding makes it another's."""
    seen = first.seen
    if seen.scale is None or seen.zero is None or seen.low is None or seen.high is None:
        return np.ones(seen.x.shape, bool)
    whole = np.rint(seen.zero) == seen.zero
    q = first.leaves["codes"].astype(np.float64) if "codes" in first.leaves else _farthest(seen)
    least = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}.get(seen.dtype.name, 2.0**-52)
    size = np.abs(q - seen.zero) + np.abs(q) + np.abs(seen.zero)
    real = np.abs(q - seen.zero) * seen.scale
    apart = 2.0**-10 if seen.dtype.name == "float16" else 2.0**-100
    clear: Array = whole & (size * least < 1 / 8) & ((real == 0) | ((real > apart) & (real < 1 / apart)))
    return clear


def _farthest(seen: Seen) -> Array:
    ends: Array = np.maximum(np.abs(seen.low or 0), np.abs(seen.high or 0)) * np.ones(seen.x.shape)
    return ends


IDEMPOTENCE = Property(
    "stays-quantized",
    "What was quantized stays as it is: the real of a code gets that code, and a value on the grid is kept.",
    "changes what is quantized already",
    frozenset({"quantize", "fake_quantize", "cast"}),
    _judge,
    _again,
    derived=_derived,
    needs="kept",
)
