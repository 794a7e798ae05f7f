"""ModelOpt's MXFP4: exponents of fractions, codes by search among the numbers of e2m1."""

import itertools
from fractions import Fraction
from math import ceil, copysign, inf, isinf, nan

import numpy as np

from oracles.codes import nearest, values
from oracles.exact import FORMATS, round_to
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, soft, softs
from oracles.torchao_float8 import logarithm, power_below

__all__: list[str] = []

_NUMBERS = values(2, 1, 1, 8)
_F32 = FORMATS["float32"]


def _blocks(x: Array, size: int) -> list[list[Soft]]:
    if x.size % size:
        msg = f"block_size={size}"
        raise RuntimeError(msg)
    numbers = [v.to(_F32) for v in softs(x)]
    return [numbers[i : i + size] for i in range(0, len(numbers), size)]


def _descale(block: list[Soft]) -> Fraction | float:
    """The largest magnitude over 6, a float32; an infinity or NaN as it is."""
    if any(v.nan for v in block):
        return nan
    ratio = max((abs(v) for v in block), key=lambda v: v.value) / soft(6.0, "float32")
    return inf if isinf(ratio.value) else Fraction(ratio.value)


def _stored(codes: list[int], scales: list[int], shape: tuple[int, ...]) -> tuple[Array, Array]:
    packed = [low + 16 * high for low, high in zip(codes[::2], codes[1::2], strict=True)]
    rows = (*shape[:-1], shape[-1] // 2)
    return np.array(packed, np.uint8).reshape(rows), np.array(scales, np.uint8).reshape(-1, 1)


@derives("modelopt/mxfp4_quantize")
def _documented(input: Array, block_size: int = 32) -> tuple[Array, Array]:  # noqa: A002
    codes: list[int] = []
    scales: list[int] = []
    for block in _blocks(input, block_size):
        d = _descale(block)
        if d != d:  # noqa: PLR0124 - NaN
            codes += [0] * block_size
            scales.append(255)
            continue
        if isinstance(d, float):
            k = 127
        else:
            k = -127
            while Fraction(2) ** k < d:
                k += 1
        scales.append(k + 127)
        for v in block:
            q = 7 if isinf(v.value) else nearest(Fraction(abs(v.value)) / Fraction(2) ** k, _NUMBERS)
            codes.append(q + 8 * (copysign(1, v.value) < 0))
    return _stored(codes, scales, input.shape)


def _lower_at_ties(x: Fraction) -> int:
    """How many midpoints lie below."""
    return sum(2 * x > low + high for low, high in itertools.pairwise(_NUMBERS))


@derives("modelopt/mxfp4_quantize@0.47")
def _measured(input: Array, block_size: int = 32) -> tuple[Array, Array]:  # noqa: A002
    codes: list[int] = []
    scales: list[int] = []
    for block in _blocks(input, block_size):
        d = _descale(block)
        if isinstance(d, float):  # no number: its logarithm has no code
            codes += [8] * block_size
            scales.append(0)
            continue
        k = -127
        if d:
            exact = power_below(d) if Fraction(2) ** power_below(d) == d else None
            k = max(-127, ceil(round_to(logarithm(d), _F32)) if exact is None else exact)
        scales.append(k + 127)
        for v in block:
            quotient = round_to(Fraction(v.value) / Fraction(2) ** k, _F32)
            magnitude = _lower_at_ties(abs(Fraction(quotient)))
            codes.append(magnitude + 8 * (quotient <= 0))
    return _stored(codes, scales, input.shape)


def _values(quantized_data: Array, scale: Array, block_size: int, dtype: str, last: float) -> Array:
    codes = [half for b in quantized_data.ravel().tolist() for half in (b % 16, b // 16)]
    exponents = scale.ravel().tolist()
    reals = []
    for i, c in enumerate(codes):
        e = exponents[i // block_size]
        power = soft(last if e == 255 else Fraction(2) ** (e - 127), "float32")
        number = soft(copysign(float(_NUMBERS[c % 8]), 7.5 - c), "float32")
        reals.append((number * power).to(form(DTYPES[dtype])))
    return array(reals, (*quantized_data.shape[:-1], 2 * quantized_data.shape[-1]), DTYPES[dtype])


@derives("modelopt/mxfp4_dequantize")
def _documented_values(quantized_data: Array, scale: Array, block_size: int = 32, dtype: str = "float32") -> Array:
    return _values(quantized_data, scale, block_size, dtype, nan)


@derives("modelopt/mxfp4_dequantize@0.47")
def _measured_values(quantized_data: Array, scale: Array, block_size: int = 32, dtype: str = "float32") -> Array:
    return _values(quantized_data, scale, block_size, dtype, inf)
