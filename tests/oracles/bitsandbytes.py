"""bitsandbytes' blocks, element by element: distances to levels in fractions, a release's steps in soft floats."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from math import floor, inf, isfinite, isnan, nan
from typing import Any

import numpy as np

from oracles.exact import FORMATS, multiply, round_to, round_value
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, form, soft, softs

__all__: list[str] = []

_F32 = FORMATS["float32"]
_ONE = soft(1.0, "float32")
_LEAST = soft(Fraction(1, 10**38), "float32")
_SIZES = [2**k for k in range(5, 13)]
_NF4 = """-1.0 -0.6961928009986877 -0.5250730514526367 -0.39491748809814453 -0.28444138169288635 -0.18477343022823334
-0.09105003625154495 0.0 0.07958029955625534 0.16093020141124725 0.24611230194568634 0.33791524171829224
0.44070982933044434 0.5626170039176941 0.7229568362236023 1.0"""

Levels = tuple[float, ...]
Search = Callable[[Soft, Soft, Levels], int]


@derives("bitsandbytes/get_4bit_type")
def _type(typename: str) -> Array:
    return np.array(_levels(typename), np.float64).astype(np.float32)


@cache
def _levels(typename: str) -> Levels:
    if typename == "nf4":
        return tuple(round_to(Fraction(word), _F32) for word in _NF4.split())
    found = []
    for code in range(16):
        exponent, mantissa = (code >> 1) & 3, code & 1
        value = Fraction(mantissa, 16) if exponent == 0 else Fraction(2 + mantissa, 2 ** (exponent - 1)) * 4
        found.append(round_to((-value if code & 8 else value) / 12, _F32))
    return tuple(found)


def _largest(x: list[Soft]) -> Soft:
    return Soft(nan, _F32) if any(v.nan for v in x) else max((abs(v) for v in x), key=lambda v: v.value)


def _count(smaller: Callable[[int], bool], levels: Levels) -> int:
    """How many neighbours have their midpoint below: by halving, since the midpoints ascend."""
    low, high = 0, len(levels) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if smaller(middle) else (low, middle)
    return low


def _nearest(x: Soft, largest: Soft, levels: Levels) -> int:
    """Of two equally near the lower; with what is not finite, by the products that the equation names."""
    m = largest.value or 1.0
    if isnan(m):
        return 0
    if not isfinite(m):
        return sum(levels[i] + levels[i + 1] < 0 and x.value > -inf for i in range(len(levels) - 1))
    twice = 2 * Fraction(x.value) / Fraction(m)
    return _count(lambda i: Fraction(levels[i]) + Fraction(levels[i + 1]) < twice, levels)


def _compared(scaled: Soft, levels: Levels) -> int:
    """Against midpoints that are rounded; NaN is above all."""
    half = soft(0.5, "float32")
    return _count(
        lambda i: scaled.nan or ((Soft(levels[i], _F32) + Soft(levels[i + 1], _F32)) * half).value < scaled.value,
        levels,
    )


def _tabled(x: Soft, largest: Soft, levels: Levels) -> int:
    """By the entry of a table of 65,536 that is nearest, halves up."""
    if largest.value == 0:
        return 0
    half = soft(Fraction(65535, 2), "float32")
    place = (x * (_ONE / largest) + _ONE) * half + soft(0.5, "float32")
    i = 0 if place.nan else floor(min(max(place.value, 0.0), 65535.0))
    return _compared(soft(float(i), "float32") / half - _ONE, levels)


def _blocks(A: Array, blocksize: int) -> list[list[Soft]]:  # noqa: N803 - the document's own word
    if A.dtype.name not in DTYPES or A.dtype.name == "float64":
        raise ValueError(A.dtype)
    flat = [v.to(_F32) for v in softs(A)]
    return [flat[i : i + blocksize] for i in range(0, len(flat), blocksize)]


def _eight(search: Search, A: Array, code: Array, blocksize: int = 4096) -> tuple[Array, Array]:  # noqa: N803 - as above
    if blocksize <= 0:
        raise ValueError(blocksize)
    blocks, levels = _blocks(A, blocksize), tuple(code.tolist())
    magnitudes = [_largest(x) for x in blocks]
    found = [search(v, m, levels) for x, m in zip(blocks, magnitudes, strict=True) for v in x]
    return np.array(found, np.uint8).reshape(A.shape), _column(magnitudes)


def _column(values: list[Soft]) -> Array:
    return np.array([v.value for v in values], np.float64).astype(np.float32)


derives("bitsandbytes/quantize_blockwise")(partial(_eight, _nearest))
derives("bitsandbytes/quantize_blockwise@0.50")(partial(_eight, _tabled))


def _checked(blocksize: int, quant_type: str) -> None:
    if blocksize not in _SIZES or quant_type not in ("nf4", "fp4"):
        raise ValueError(blocksize, quant_type)


def _packed(codes: list[int], zero: int) -> Array:
    whole = codes + [zero] * (len(codes) % 2)
    return np.array([16 * a + b for a, b in zip(whole[::2], whole[1::2], strict=True)], np.uint8).reshape(-1, 1)


@derives("bitsandbytes/quantize_4bit")
def _four(A: Array, blocksize: int = 64, quant_type: str = "fp4") -> tuple[Array, Array]:  # noqa: N803 - as above
    _checked(blocksize, quant_type)
    levels = _levels(quant_type)
    ascending = tuple(sorted(set(levels)))
    blocks = _blocks(A, blocksize)
    magnitudes = [_largest(x) for x in blocks]
    found = [_nearest(v, m, ascending) for x, m in zip(blocks, magnitudes, strict=True) for v in x]
    return _packed([levels.index(ascending[i]) for i in found], levels.index(0.0)), _column(magnitudes)


@derives("bitsandbytes/quantize_4bit@0.50")
def _four_0_50(A: Array, blocksize: int = 64, quant_type: str = "fp4") -> tuple[Array, Array]:  # noqa: N803 - as above
    _checked(blocksize, quant_type)
    levels = _levels(quant_type)
    ascending = tuple(sorted(set(levels)))
    codes, magnitudes = [], []
    for x in _blocks(A, blocksize):
        largest = _largest(x)
        least = largest if largest.nan or largest.value > _LEAST.value else _LEAST
        whole = len(x) == blocksize
        magnitudes.append(largest if whole else least)
        for v in x:
            scaled = v * (_ONE / least) if whole else v / least
            limited = scaled if scaled.nan else Soft(min(max(scaled.value, -1.0), 1.0), _F32)
            code = levels.index(ascending[_compared(limited, ascending)])
            codes.append(8 if quant_type == "fp4" and code == 0 and limited.value > 0 else code)
    return _packed(codes, levels.index(0.0)), _column(magnitudes)


@derives("bitsandbytes/dequantize_blockwise")
def _of_eight(A: Array, absmax: Array, code: Array, blocksize: int = 4096) -> Array:  # noqa: N803 - as above
    if blocksize <= 0 or A.dtype != np.uint8:
        raise ValueError(blocksize, A.dtype)
    found = [multiply(float(code[q]), float(absmax[i // blocksize]), _F32) for i, q in enumerate(A.ravel().tolist())]
    return np.array(found, np.float64).astype(np.float32).reshape(A.shape)


@derives("bitsandbytes/dequantize_4bit")
def _of_four(
    A: Array,  # noqa: N803 - as above
    absmax: Array,
    shape: tuple[int, ...],
    dtype: str,
    blocksize: int = 64,
    quant_type: str = "fp4",
) -> Array:
    _checked(blocksize, quant_type)
    if dtype not in ("float32", "float16", "bfloat16"):
        raise ValueError(dtype)
    levels = _levels(quant_type)
    codes = [half for byte in A.ravel().tolist() for half in divmod(byte, 16)]
    size = int(np.prod(shape))
    made = [multiply(levels[q], float(absmax[i // blocksize]), _F32) for i, q in enumerate(codes[:size])]
    kind = form(DTYPES[dtype])
    return np.array([round_value(v, kind) for v in made], np.float64).astype(DTYPES[dtype]).reshape(shape)


@derives("bitsandbytes/dequantize_4bit@0.50")
def _of_four_0_50(**given: Any) -> Array:
    found = _of_four(**given)
    if found.ndim == 1 and found.size % 2 == 0:
        found = found[None]
    return found.T if given["A"].size == 1 else found


@derives("bitsandbytes/dequantize_4bit@0.50-avx2")
def _of_four_0_50_avx2(**given: Any) -> Array:
    """The highest bit is the sign, so code 8 is -0.0; rows of odd length are made of the levels."""
    found = _of_four_0_50(**given)
    if given.get("quant_type", "fp4") == "fp4" and given["shape"][-1] % 2 == 0:
        codes = np.array([half for byte in given["A"].ravel().tolist() for half in divmod(byte, 16)], np.uint8)
        found = np.where((codes[: found.size] == 8).reshape(found.shape), -found, found).astype(found.dtype)
    return found
