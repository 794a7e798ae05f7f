"""torchao's float8 by search in lists of numbers; logarithms in binary digits, by squaring integers."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import copysign, inf, isinf, isnan, nan, prod
from typing import Any

import ml_dtypes
import numpy as np

from oracles.codes import nearest, values
from oracles.exact import FORMATS, Format, round_integer, round_to
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, soft, softs

__all__ = ["float8_code", "float8_number", "logarithm", "power_below"]

_MORE, _DIGITS = 256, 90
# Exponent bits, mantissa bits, bias, and how many codes from zero on are finite.
_FLOAT8 = {
    "float8_e4m3fn": (4, 3, 7, 127),
    "float8_e4m3fnuz": (4, 3, 8, 128),
    "float8_e5m2": (5, 2, 15, 124),
    "float8_e5m2fnuz": (5, 2, 16, 128),
}


def power_below(value: Fraction) -> int:
    """The largest k with 2^k <= value."""
    k = value.numerator.bit_length() - value.denominator.bit_length()
    return k if Fraction(2) ** k <= value else k - 1


def logarithm(value: Fraction) -> Fraction:
    """The binary logarithm within 2^-_DIGITS, exact for powers of two; never on a number of fewer digits otherwise."""
    k = power_below(value)
    mantissa = value / Fraction(2) ** k
    if mantissa == 1:
        return Fraction(k)
    fixed, digits = (mantissa.numerator << _MORE) // mantissa.denominator, 0
    for _ in range(_DIGITS):
        fixed = fixed * fixed >> _MORE
        digits *= 2
        if fixed >> (_MORE + 1):
            digits += 1
            fixed >>= 1
    return k + Fraction(2 * digits + 1, 2 ** (_DIGITS + 1))


@cache
def _finite(dtype: str) -> tuple[Fraction, ...]:
    return tuple(values(*_FLOAT8[dtype]))


def float8_code(x: float, dtype: str) -> int:
    """The code of ``x``, the largest number's beyond it; NaN has the sign bit of ``x``, or the code of -0."""
    table, unsigned_zero = _finite(dtype), dtype.endswith("uz")
    sign = 128 * (copysign(1, x) < 0)
    if isnan(x):
        return 128 if unsigned_zero else 127 + sign
    index = len(table) - 1 if isinf(x) else nearest(abs(Fraction(x)), table)
    return 0 if unsigned_zero and not index else index + sign


def float8_number(code: int, dtype: str) -> float:
    """The number of a code."""
    table, magnitude = _finite(dtype), code % 128
    sign = -1.0 if code > magnitude else 1.0
    if magnitude >= len(table) or (dtype.endswith("uz") and code == 128):
        return sign * inf if (dtype, magnitude) == ("float8_e5m2", 124) else nan
    return sign * float(table[magnitude])


def _members(shape: Sequence[int], block: Sequence[int]) -> Iterator[list[tuple[int, ...]]]:
    for start in product(*(range(0, n, b) for n, b in zip(shape, block, strict=True))):
        yield list(product(*(range(i, i + b) for i, b in zip(start, block, strict=True))))


def _largest(numbers: list[Soft]) -> Soft:
    return next((n for n in numbers if n.nan), max(numbers, key=lambda n: n.value))


def _choose(
    tensor: Array, block_size: Sequence[int], float8_dtype: str, scale_dtype: str, bounds: Any, digits: Format | None
) -> Array:
    shape = tensor.shape
    if len(block_size) != len(shape):
        msg = f"block_size={block_size} is not accepted: one entry per dimension"
        raise AssertionError(msg)
    if any(b <= 0 for b in block_size):
        msg = f"block_size={block_size} is not accepted: positive entries"
        raise RuntimeError(msg)
    if any(n != n // b * b for n, b in zip(shape, block_size, strict=True)):
        msg = f"block_size={block_size} is not accepted: a divisor of {shape}"
        raise AssertionError(msg)
    if digits and prod(block_size) == 1 and tensor.size != 1:
        msg = f"block_size={block_size} is not accepted: single elements"
        raise RuntimeError(msg)
    if scale_dtype not in ("float32", "float8_e8m0fnu"):
        msg = f"scale_dtype={scale_dtype!r} is not accepted"
        raise AssertionError(msg)
    own = form(tensor.dtype)
    low, high = (None if b is None else soft(b, "float32").to(own) for b in bounds)
    divisor = Soft(float(_finite(float8_dtype)[-1]), own)
    found = []
    for block in _members(shape, block_size):
        amax = _largest([abs(softs(tensor[i])[0]) for i in block])
        if low and amax.value < low.value:
            amax = low
        if high and amax.value > high.value:
            amax = high
        scale = (amax / divisor).value
        found.append(scale if scale_dtype == "float32" else _power(scale, digits))
    return array(found, tuple(n // b for n, b in zip(shape, block_size, strict=True)), np.float32)


def _power(scale: float, digits: Format | None) -> float:
    """The power of two whose exponent is nearest to the logarithm, itself rounded to ``digits`` if they are given."""
    if isnan(scale) or isinf(scale) or not scale:
        return scale
    y = logarithm(Fraction(scale))
    y = Fraction(round_to(y, digits)) if digits and y else y
    return float(Fraction(2) ** round_integer(y, "half-even"))


@derives("torchao/choose_scale_float8")
def _choose_exact(
    tensor: Array,
    block_size: Sequence[int],
    float8_dtype: str = "float8_e4m3fn",
    scale_dtype: str = "float32",
    hp_value_lb: float | None = None,
    hp_value_ub: float | None = None,
) -> Array:
    return _choose(tensor, block_size, float8_dtype, scale_dtype, (hp_value_lb, hp_value_ub), None)


@derives("torchao/choose_scale_float8@0.18")
def _choose_0_18(
    tensor: Array,
    block_size: Sequence[int],
    float8_dtype: str = "float8_e4m3fn",
    scale_dtype: str = "float32",
    hp_value_lb: float | None = None,
    hp_value_ub: float | None = None,
) -> Array:
    return _choose(tensor, block_size, float8_dtype, scale_dtype, (hp_value_lb, hp_value_ub), form(tensor.dtype))


def _scales(scale: Array, shape: tuple[int, ...]) -> Iterator[Soft]:
    """The scale of each element: element j of n stands at floor(j * k / n) of k scales."""
    held = scale.astype(np.float32)
    if held.size != 1 and (held.ndim != len(shape) or any(k and n % k for n, k in zip(shape, held.shape, strict=True))):
        msg = f"scale={scale.shape} is not accepted for {shape}"
        raise ValueError(msg)
    for index in product(*map(range, shape)):
        at = tuple(j * k // n for j, k, n in zip(index, held.shape, shape, strict=held.size != 1))
        yield softs(held.ravel()[:1] if held.size == 1 else held[at])[0]


def _spread(tensor: Array, scale: Array) -> tuple[Array, Array]:
    """Both in their common shape, where the ranks differ and the leading dimensions agree."""
    agree = all(k in {1, n} for k, n in zip(scale.shape, tensor.shape, strict=False))
    if scale.ndim == tensor.ndim or not agree:
        return tensor, scale
    rank = max(tensor.ndim, scale.ndim)
    ones = [(1,) * (rank - a.ndim) + a.shape for a in (tensor, scale)]
    if any(1 not in pair and len(set(pair)) > 1 for pair in zip(*ones, strict=True)):
        msg = f"scale={scale.shape} is not accepted for {tensor.shape}"
        raise RuntimeError(msg)
    shape = tuple(max(pair) for pair in zip(*ones, strict=True))
    pair = []
    for a, padded in zip((tensor, scale), ones, strict=True):
        flat = a.reshape(padded)
        cells = [flat[tuple(j % n for j, n in zip(i, padded, strict=True))] for i in product(*map(range, shape))]
        pair.append(np.array(cells, a.dtype).reshape(shape))
    return pair[0], pair[1]


@derives("torchao/quantize_affine_float8")
def _quantize(tensor: Array, scale: Array, float8_dtype: str = "float8_e4m3fn") -> Array:
    numbers = [x.to(FORMATS["float32"]) for x in softs(tensor)]
    pairs = zip(numbers, list(_scales(scale, tensor.shape)), strict=True)
    codes = [float8_code((x / s).value, float8_dtype) for x, s in pairs]
    return np.array(codes, np.uint8).reshape(tensor.shape).view(getattr(ml_dtypes, float8_dtype))


@derives("torchao/quantize_affine_float8@0.18")
def _quantize_0_18(tensor: Array, scale: Array, float8_dtype: str = "float8_e4m3fn") -> Array:
    return _quantize(*_spread(tensor, scale), float8_dtype)


@derives("torchao/dequantize_affine_float8")
def _dequantize(tensor: Array, scale: Array, output_dtype: str = "float32") -> Array:
    dtype = DTYPES[output_dtype]
    codes = [int(c) for c in np.ascontiguousarray(tensor).view(np.uint8).ravel()]
    pairs = zip(codes, list(_scales(scale, tensor.shape)), strict=True)
    reals = [(soft(float8_number(c, tensor.dtype.name), "float32") * s).to(form(dtype)) for c, s in pairs]
    return array(reals, tensor.shape, dtype)


@derives("torchao/dequantize_affine_float8@0.18")
def _dequantize_0_18(tensor: Array, scale: Array, output_dtype: str = "float32") -> Array:
    return _dequantize(*_spread(tensor, scale), output_dtype)


def _known(target_dtype: str) -> None:
    if target_dtype not in _FLOAT8:
        msg = f"target_dtype={target_dtype!r} is not accepted: a float8 dtype"
        raise NotImplementedError(msg)


@derives("torchao/from_hp_to_floatx")
def _floatx(
    input_float: Array, block_size: Sequence[int], target_dtype: str, scale_dtype: str | None = None
) -> dict[str, Array]:
    _known(target_dtype)
    scale = _choose_exact(input_float, block_size, target_dtype, scale_dtype or "float32")
    return {"data": _quantize(input_float, scale, target_dtype), "scale": scale}


@derives("torchao/from_hp_to_floatx_static")
def _floatx_static(input_float: Array, scale: Array, block_size: Sequence[int], target_dtype: str) -> dict[str, Array]:
    _known(target_dtype)
    if any(k * b != n for n, k, b in zip(input_float.shape, scale.shape, block_size, strict=True)):
        msg = f"scale={scale.shape} is not accepted"
        raise ValueError(msg)
    return {"data": _quantize(input_float, scale, target_dtype), "scale": scale}
