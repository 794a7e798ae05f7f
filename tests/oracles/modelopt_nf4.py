"""ModelOpt's NF4, each scalar by itself: a search among the levels in fractions, sums of scales in fractions."""

from fractions import Fraction
from math import isfinite, prod
from typing import Any

import numpy as np

from oracles.exact import FORMATS, round_to
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, largest, soft, softs

__all__: list[str] = []

# QLoRA's, to the fourth decimal.
_PRINTED = (-10000, -6962, -5251, -3949, -2844, -1848, -911, 0, 796, 1609, 2461, 3379, 4407, 5626, 7230, 10000)
_LEVELS = [Fraction(round_to(Fraction(p, 10_000), FORMATS["bfloat16"])) for p in _PRINTED]


def _nearest(quotient: Soft) -> int:
    if not isfinite(quotient.value):
        return 0
    x = Fraction(quotient.value)
    return min(range(16), key=lambda k: (abs(x - _LEVELS[k]), k))


def _quantize(x: Array, size: int, of_scales: int | None, *, documented: bool) -> tuple[Array, Array]:
    if of_scales is None and not documented:
        raise TypeError(of_scales)
    zero = Soft(0.0, form(x.dtype))
    numbers = softs(x)
    numbers += [zero] * (-len(numbers) % size)
    codes: list[int] = []
    scales: list[Soft] = []
    for i in range(0, len(numbers), size):
        block = numbers[i : i + size]
        scales.append(largest(block))
        empty = scales[-1].value == 0
        codes += [7 if empty and documented else _nearest(v / scales[-1]) for v in block]
    scales += [zero] * (-len(scales) % (of_scales or 1))
    packed = [16 * high + low for high, low in zip(codes[::2], codes[1::2], strict=True)]
    return np.array(packed, np.uint8), array(scales, (len(scales),), x.dtype)


@derives("modelopt/nf4_quantize")
def _documented(
    input: Array,  # noqa: A002
    block_size: int,
    scale_block_size: int | None = None,
) -> tuple[Array, Array]:
    return _quantize(input, block_size, scale_block_size, documented=True)


@derives("modelopt/nf4_quantize@0.47")
def _measured(
    input: Array,  # noqa: A002
    block_size: int,
    scale_block_size: int | None = None,
) -> tuple[Array, Array]:
    return _quantize(input, block_size, scale_block_size, documented=False)


def _double(scales: Array, size: int, bits: int, *, documented: bool) -> tuple[Array, Array, Array]:
    numbers, f, most = softs(scales), form(scales.dtype), float(2 ** (bits - 1) - 1)
    if len(numbers) % size:
        raise AssertionError(size)
    lost = [v for v in numbers if v.nan]
    mean = lost[0] if lost else Soft(round_to(sum(Fraction(v.value) for v in numbers) / len(numbers), f), f)
    codes: list[int] = []
    factors: list[Soft] = []
    for i in range(0, len(numbers), size):
        block = [v - mean for v in numbers[i : i + size]]
        top = largest(block)
        factors.append(Soft(most, f) / top if documented else Soft(1.0, f) / top * Soft(most, f))
        products = [(v * factors[-1]).rint() for v in block]
        codes += [0 if p.nan else int(min(max(p.value, -most), most)) for p in products]
    stored = np.array(codes, np.int8).reshape(-1, size)
    return stored, array(factors, (len(factors),), scales.dtype), array([mean], (), scales.dtype)


@derives("modelopt/nf4_double_quantize")
def _documented_double(scales: Array, scale_block_size: int, num_scale_bits: int) -> tuple[Array, Array, Array]:
    return _double(scales, scale_block_size, num_scale_bits, documented=True)


@derives("modelopt/nf4_double_quantize@0.47")
def _measured_double(scales: Array, scale_block_size: int, num_scale_bits: int) -> tuple[Array, Array, Array]:
    return _double(scales, scale_block_size, num_scale_bits, documented=False)


@derives("modelopt/nf4_dequantize")
def _documented_values(
    quantized_data: Array,
    scale: Array,
    double_scale: Array,
    scale_zeros: Array,
    shape: tuple[int, ...],
    block_size: int,
    dtype: str = "float32",
) -> Array:
    f, by, [zero] = form(DTYPES[dtype]), softs(double_scale), softs(scale_zeros)
    each, codes = scale.size // len(by), scale.ravel().tolist()
    quotients = [soft(float(c), double_scale.dtype.name) / by[i // each] for i, c in enumerate(codes)]
    halves = [half for b in quantized_data.ravel().tolist() for half in divmod(b, 16)]
    scales = [q.to(f) + zero.to(f) for q in quotients]
    reals = [soft(_LEVELS[half], dtype) * scales[i // block_size] for i, half in enumerate(halves)]
    return array(reals[: prod(shape)], shape, DTYPES[dtype])


@derives("modelopt/nf4_dequantize@0.47")
def _measured_values(double_scale: Array, **given: Any) -> Array:
    if double_scale.size > 1:
        raise RuntimeError(double_scale.shape)
    return _documented_values(double_scale=double_scale, **given)
