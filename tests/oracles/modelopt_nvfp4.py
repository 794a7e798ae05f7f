"""ModelOpt's NVFP4, each scalar by itself in float32 operations, codes by search among the numbers of the format."""

from fractions import Fraction
from math import copysign, isinf, nan, prod

import ml_dtypes
import numpy as np

from oracles.codes import nearest, values
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, soft, softs
from oracles.torchao_float8 import float8_code, float8_number

__all__: list[str] = []

_E4M3 = "float8_e4m3fn"
_NUMBERS = values(2, 1, 1, 8)


def _f32(value: float) -> Soft:
    return soft(value, "float32")


def _largest(numbers: list[Soft]) -> Soft:
    return next((abs(n) for n in numbers if n.nan), max((abs(n) for n in numbers), key=lambda n: n.value))


def _rows(x: Array, size: int) -> list[list[Soft]]:
    """Each row of the last dimension, filled up to whole blocks."""
    numbers = [v.to(_f32(0).form) for v in softs(x)]
    found = [numbers[i : i + x.shape[-1]] for i in range(0, len(numbers), x.shape[-1])]
    return [row + [_f32(0)] * (-len(row) % size) for row in found]


def _code(x: Soft, *, signed: bool) -> int:
    if x.nan:
        return 7
    index = 7 if isinf(x.value) else nearest(abs(Fraction(x.value)), _NUMBERS)
    return index + 8 * (copysign(1, x.value) < 0 if signed else x.value < 0)


def _quantize(x: Array, size: int, given: Array | None, *, signed: bool) -> tuple[Array, Array, Array]:
    """``signed``: as documented; else as measured, where a zero has no sign, and one over zero is none."""
    rows = _rows(x, size)
    s_2 = _largest([v for row in rows for v in row]) / _f32(2688) if given is None else softs(given)[0]
    scales: list[int] = []
    codes: list[int] = []
    for row in rows:
        for i in range(0, len(row), size):
            block = row[i : i + size]
            amax = _largest(block)
            ratio = _f32(1) if signed and amax.value == 0 else amax / (_f32(6) * s_2)
            limited = 1.0 if ratio.value == 0 else min(max(ratio.value, 2.0**-9), 448.0)
            scales.append(127 if ratio.nan else float8_code(limited, _E4M3))
            s = _f32(float8_number(scales[-1], _E4M3)) * s_2
            codes += [_code(v if signed and v.value == 0 else v / s, signed=signed) for v in block]
    packed = [low + 16 * high for low, high in zip(codes[::2], codes[1::2], strict=True)]
    leading = x.shape[:-1]
    held = np.array(scales, np.uint8).view(getattr(ml_dtypes, _E4M3)).reshape(*leading, -1)
    return np.array(packed, np.uint8).reshape(*leading, -1), held, array([s_2], (), np.float32)


@derives("modelopt/nvfp4_quantize")
def _documented(
    input: Array,  # noqa: A002
    block_size: int = 16,
    weights_scaling_factor_2: Array | None = None,
) -> tuple[Array, Array, Array]:
    return _quantize(input, block_size, weights_scaling_factor_2, signed=True)


@derives("modelopt/nvfp4_quantize@0.47")
def _measured(
    input: Array,  # noqa: A002
    block_size: int = 16,
    weights_scaling_factor_2: Array | None = None,
) -> tuple[Array, Array, Array]:
    return _quantize(input, block_size, weights_scaling_factor_2, signed=False)


def _dequantize(
    quantized_data: Array,
    scale: Array,
    double_scale: Array,
    shape: tuple[int, ...],
    block_size: int,
    dtype: str,
    *,
    signed: bool,
) -> Array:
    codes = [half for b in quantized_data.ravel().tolist() for half in (b % 16, b // 16)]
    if scale.dtype.name == _E4M3:
        scales = [_f32(float8_number(c, _E4M3)) for c in scale.view(np.uint8).ravel().tolist()]
    else:
        scales = softs(scale)
    by = [s * softs(double_scale)[0] for s in scales]
    width = quantized_data.shape[-1] * 2
    target, reals = DTYPES[dtype], []
    for i, c in enumerate(codes):
        if i % width >= shape[-1]:
            continue
        magnitude = float(_NUMBERS[c % 8])
        number = _f32(copysign(magnitude, 7.5 - c) if signed or magnitude else 0.0)
        factor = by[i // block_size]
        reals.append((_f32(nan) if factor.nan else number * factor).to(form(target)))
    assert len(reals) == prod(shape)
    return array(reals, shape, target)


@derives("modelopt/nvfp4_dequantize")
def _documented_values(
    quantized_data: Array,
    scale: Array,
    double_scale: Array,
    shape: tuple[int, ...],
    block_size: int = 16,
    dtype: str = "float32",
) -> Array:
    return _dequantize(quantized_data, scale, double_scale, shape, block_size, dtype, signed=True)


@derives("modelopt/nvfp4_dequantize@0.47")
def _measured_values(
    quantized_data: Array,
    scale: Array,
    double_scale: Array,
    shape: tuple[int, ...],
    block_size: int = 16,
    dtype: str = "float32",
) -> Array:
    if 2 * quantized_data.size != prod(shape):
        msg = f"shape={shape}"
        raise RuntimeError(msg)
    return _dequantize(quantized_data, scale, double_scale, shape, block_size, dtype, signed=False)
