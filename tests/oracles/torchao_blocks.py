"""torchao's blocks, dtypes and integers, counted: which element belongs to which block, what a dtype holds."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import inf, isnan, prod
from typing import Any

import ml_dtypes
import numpy as np

from oracles.exact import FORMATS
from oracles.registry import derives
from oracles.soft import Array, Soft, soft

__all__ = [
    "as_integer",
    "bounds",
    "clamped",
    "each",
    "float8_max",
    "from_number",
    "in_float",
    "members",
    "numbers",
    "pack",
    "parameter_count",
    "storage",
]

_FLOAT8 = {"float8_e4m3fn": 448, "float8_e4m3fnuz": 240, "float8_e5m2": 57344, "float8_e5m2fnuz": 57344}
_HALF = 65504
_BYTE, _LONG = 8, 64


def float8_max(name: str) -> int | None:
    """The largest number of a float8 dtype, None for another."""
    return _FLOAT8.get(name)


def bounds(name: str, quant_min: int | None, quant_max: int | None) -> tuple[int, int]:
    """The grid: its ends as given, or those of the dtype, from its name."""
    kind, _, bits = name.partition("int")
    if name in _FLOAT8:
        low, high = -_FLOAT8[name], _FLOAT8[name]
    elif kind in ("", "u") and bits.isdigit() and (int(bits) <= _BYTE or name in ("int16", "int32")):
        codes = 2 ** int(bits)
        low, high = (0, codes - 1) if kind else (-codes // 2, codes // 2 - 1)
    else:
        raise ValueError(name)
    first, last = (e if given is None else given for given, e in ((quant_min, low), (quant_max, high)))
    if not (low <= first and last <= high):
        raise AssertionError(name)
    return first, last


def storage(name: str) -> "np.dtype[Any]":
    """What holds the dtype of this name."""
    kind, _, bits = name.partition("int")
    if kind in ("", "u") and bits.isdigit() and int(bits) < _BYTE:
        return np.dtype(kind + "int8")
    return np.dtype(getattr(ml_dtypes, name, name))


def in_float(end: int, dtype: str) -> Soft:
    """An end of the grid as a number of ``dtype``."""
    if dtype == "float16" and abs(end) > _HALF:
        raise RuntimeError(end)
    return soft(float(end), dtype)


def from_number(value: float, dtype: str) -> Soft:
    """A number as an array of ``dtype`` takes it; an integer becomes a bfloat16 by way of a float32."""
    if isinstance(value, int) and dtype == "bfloat16":
        return soft(Fraction(value), "float32").to(FORMATS[dtype])
    return soft(Fraction(value), dtype) if isinstance(value, int) else soft(value, dtype)


def clamped(q: Soft, low: Soft, high: Soft) -> Soft:
    """``q`` between two others; NaN stays."""
    return low if q.value < low.value else high if q.value > high.value else q


def as_integer(value: float, bits: int, *, signed: bool) -> int:
    """What an x86 processor converts a float to, in two's complement of ``bits``."""
    wide = _LONG if bits == _LONG else 32
    fits = not isnan(value) and abs(value) != inf and -(2 ** (wide - 1)) <= int(value) < 2 ** (wide - 1)
    low: int = (int(value) if fits else -(2 ** (wide - 1))) % 2**bits
    top: int = 2 ** (bits - 1)
    return low - 2 * top if signed and low >= top else low


def members(shape: tuple[int, ...], block_size: tuple[int, ...]) -> list[list[int]]:
    """For each block, in order, the flat positions of its elements."""
    found: list[list[int]] = [[] for _ in range(parameter_count(shape, block_size))]
    for position, block in enumerate(_blocks(shape, block_size)):
        found[block].append(position)
    return found


def each(values: list[Any], shape: tuple[int, ...], block_size: tuple[int, ...]) -> list[Any]:
    """A parameter's entries, one per block, as the elements see them."""
    if len(values) != parameter_count(shape, block_size):
        raise RuntimeError(len(values))
    return [values[block] for block in _blocks(shape, block_size)]


def parameter_count(shape: tuple[int, ...], block_size: tuple[int, ...]) -> int:
    """The number of blocks."""
    return prod(_counts(shape, block_size))


def numbers(a: Array) -> list[float | int]:
    """The elements of an array, in order, as Python numbers."""
    flat = np.asarray(a).ravel()
    return [int(v) for v in flat] if flat.dtype.kind in "iu" else [float(v) for v in flat]


def pack(values: list[float | int], shape: tuple[int, ...], name: str) -> Array:
    """Numbers as an array of a dtype that holds them."""
    if storage(name).kind in "iu":
        return np.array([int(v) for v in values], np.int64).astype(storage(name)).reshape(shape)
    return np.array(values, np.float64).astype(storage(name)).reshape(shape)


def _counts(shape: tuple[int, ...], block_size: tuple[int, ...]) -> list[int]:
    if len(shape) != len(block_size) or any(b > 1 and b != n and n % b for n, b in zip(shape, block_size, strict=True)):
        raise AssertionError(block_size)
    return [1 if b < 1 or (b == n and b != 1) else n // b for n, b in zip(shape, block_size, strict=True)]


def _blocks(shape: tuple[int, ...], block_size: tuple[int, ...]) -> Iterator[int]:
    counts = _counts(shape, block_size)
    for index in product(*(range(n) for n in shape)):
        block = 0
        for i, n, count in zip(index, shape, counts, strict=True):
            block = block * count + (i // (n // count) if count > 1 else 0)
        yield block


@derives("torchao/get_reduction_params")
def _reduction(block_size: tuple[int, ...], input_size: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Marks: a dimension to reduce is written with a star before it, so that positions need no counting."""
    _counts(input_size, block_size)
    marked = [
        ((n // b, False), (b, True)) if 1 < b != n else ((n, b != 1),)
        for n, b in zip(input_size, block_size, strict=True)
    ]
    flat = [entry for part in marked for entry in part]
    return tuple(n for n, _ in flat), tuple(i for i, (_, star) in enumerate(flat) if star)


@derives("torchao/get_block_size")
def _block_size(
    input_shape: tuple[int, ...],
    granularity: str,
    axis: int | None = None,
    dim: int = -1,
    group_size: int | None = None,
    block_size: tuple[int, ...] = (),
) -> tuple[int, ...]:
    """Each entry by itself: whole, one, or what is given."""
    rank = len(input_shape)
    if granularity not in ("PerTensor", "PerAxis", "PerToken", "PerRow", "PerGroup", "PerBlock"):
        raise ValueError(granularity)
    if (granularity, axis) == ("PerAxis", None) or (granularity, group_size) == ("PerGroup", None):
        raise TypeError(granularity)
    given = (1,) * (rank - len(block_size)) + block_size
    found = []
    for d, n in enumerate(input_shape):
        entry = {
            "PerTensor": n,
            "PerAxis": 1 if axis is not None and d == axis % rank else n,
            "PerToken": n if d == rank - 1 else 1,
            "PerRow": n if d in (dim, dim + rank) else 1,
            "PerGroup": group_size if d == rank - 1 else 1,
            "PerBlock": given[d] if len(given) == rank else 0,
        }[granularity]
        if granularity in ("PerGroup", "PerBlock") and (entry == 0 or n % entry):
            raise AssertionError(block_size)
        found.append(entry)
    return tuple(found)
