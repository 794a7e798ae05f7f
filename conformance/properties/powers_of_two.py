"""Input and scale times a power of two: the same codes, and reals times that power."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Property, breach, related
from halfeven.conformance.properties.role import Role, Seen, changed, is_whole, number
from halfeven.reference.blocks import Array

__all__ = ["POWERS_OF_TWO"]

_TIMES = 4
_NARROW, _WIDE = (
    (2.0**-6, 2.0**10),
    (2.0**-16, 2.0**40),
)  # where all of float16, and all others, are far from their ends
_SAME = ("codes", "zero")


def _again(role: Role, first: Answered) -> dict[str, Any] | None:
    if role.times is not None:
        with np.errstate(over="ignore"):
            return role.times(first.arguments)
    numbers = [n for name in role.reals if name != role.data for n in _reals(first.arguments.get(name))]
    if role.kind == "gradient":
        return changed(first.arguments, role.reals, _times)
    if not all(np.all(_ordinary(n, zeros=role.kind == "choose")) for n in numbers):
        return None
    eps = first.arguments.get("eps")
    own = any(first.arguments.get(name) is None for name in role.reals) or (eps is not None and eps > _WIDE[0])
    if own or (is_whole(first.seen.dtype) and role.kind != "dequantize"):
        return None  # a scale of its own, a least one, and whole inputs are in no unit
    zeros = "zeros" in role.traits
    choosable = role.kind != "choose" or bool(np.all(_ordinary(first.seen.x, first.seen.dtype, zeros=zeros)))
    if not choosable or (role.kind == "blocks" and not _in_every_block(first.seen)):
        return None
    return changed(first.arguments, role.reals, _times)


def _times(value: Any) -> Any:
    if isinstance(value, float):
        return value * _TIMES
    with np.errstate(over="ignore"):
        return np.asarray(value * np.asarray(_TIMES, value.dtype), value.dtype)


def _in_every_block(seen: Seen) -> bool:
    """Whether the largest magnitude of every block is such that a scale of 16 bits holds it."""
    size = np.abs(seen.x).ravel()
    largest = [size[seen.group == g].max() for g in np.unique(seen.group)]
    return bool(np.all((np.array(largest) >= _NARROW[0]) & (np.array(largest) <= _NARROW[1])))


def _judge(first: Answered, second: Answered | None) -> Iterator[Breach]:
    assert second is not None, "there is a second call"
    seen = first.seen
    for name, before in first.leaves.items():
        after, times = second.leaves[name], 1 if name in _SAME else _TIMES
        if after.shape != before.shape:
            continue
        wanted = before.astype(np.float64) * times
        judged = np.ones(before.shape, bool) if times == 1 else _ordinary(before.astype(np.float64), before.dtype)
        if "least" in first.leaves:  # a range has a least width
            judged = judged & _wide(first)
        elif "scale" in first.leaves:
            scale = first.leaves["scale"]
            judged = judged & _ordinary(scale, zeros=False) & _ordinary(second.leaves["scale"], zeros=False)
        if first.kind == "dequantize" and seen.scale is not None:
            lost = (before == 0) & (seen.x != (0 if seen.zero is None else seen.zero))  # it has underflowed
            judged = judged & _ordinary(seen.scale, before.dtype) & second.seen.plain & ~lost
        if judged.shape == seen.x.shape:
            judged = judged & (_ordinary(seen.x, seen.dtype) | (first.kind == "dequantize")) & seen.plain
        if seen.gradient is not None:
            fine = _ordinary(seen.gradient, before.dtype) & np.isfinite(seen.x) & seen.plain
            judged = judged & (fine if judged.shape == fine.shape else fine.all())
        got = after.astype(np.float64)
        yield breach(
            name,
            after,
            judged,
            (got == wanted) | (np.isnan(got) & np.isnan(wanted)),
            _expected(wanted, before),
            related(name, "before" if times == 1 else f"{times} * before"),
        )


def _expected(wanted: Array, before: Array) -> Callable[[int], str]:
    where = f"{_TIMES} times the input and the scale"
    return lambda i: f"{number(wanted.flat[i])}: without {where} it is {number(before.flat[i])}"


def _wide(first: Answered) -> Array:
    """Where a range is so wide that the step of its grid is ordinary."""
    width = first.leaves["most"].astype(np.float64) - first.leaves["least"].astype(np.float64)
    steps = 2**16 if first.seen.low is None or first.seen.high is None else first.seen.high - first.seen.low
    found: Array = np.isfinite(width) & (width / steps >= _WIDE[0])
    return found


def _reals(value: Any) -> Iterator[Array]:
    if isinstance(value, tuple | list):
        for v in value:
            yield from _reals(v)
    elif value is not None:
        yield np.asarray(value)


def _ordinary(values: Array, dtype: "np.dtype[Any] | None" = None, *, zeros: bool = True) -> Array:
    name = (dtype or values.dtype).name
    low, high = _NARROW if name == "float16" else _WIDE
    size = np.abs(values.astype(np.float64))
    found: Array = ((size >= low) & (size <= high)) | ((size == 0) & zeros)
    return found


POWERS_OF_TWO = Property(
    "powers-of-two",
    "Input and scale times a power of two give the same codes, and reals, scales and gradients times that power, where "
    "nothing over- or underflows.",
    "gives other results in another unit, input and scale times a power of two",
    frozenset({"quantize", "fake_quantize", "dequantize", "choose", "blocks", "gradient"}),
    _judge,
    _again,
    needs="reals",
    exceptions={
        "torchao/choose_qparams_affine_with_min_max": "releases refuse the domain of those of its calls that are of "
        "ordinary size; choose_qparams_affine, which calls it, is judged",
        "torchao/nvfp4_quantize": "the scale of a block is a number of e4m3, which has few powers of two",
    },
)
