"""ModelOpt's MXFP8, each scalar by itself: exponents of fractions, a search among the numbers of e4m3."""

from fractions import Fraction
from math import ceil, copysign, inf, isfinite, isinf, nan, prod

import ml_dtypes
import numpy as np

from oracles.exact import FORMATS, round_to
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, soft, softs
from oracles.torchao_float8 import float8_code, float8_number, logarithm, power_below

__all__: list[str] = []

_E4M3 = "float8_e4m3fn"
_F32 = FORMATS["float32"]


def _blocks(shape: tuple[int, ...]) -> list[range]:
    """The flat indices of each block of 32 along the last dimension."""
    width = shape[-1]
    return [range(r + i, r + min(i + 32, width)) for r in range(0, prod(shape), width) for i in range(0, width, 32)]


def _exponent(block: list[Soft], *, documented: bool) -> int | None:
    """That of the scale; None of a block with NaN."""
    if any(v.nan for v in block):
        return None
    ratio = max((abs(v) for v in block), key=lambda v: v.value) / soft(448.0, "float32")
    if isinf(ratio.value) or not ratio.value:
        return 127 if ratio.value else -127
    exact = Fraction(ratio.value)
    k = power_below(exact)
    if exact == Fraction(2) ** k:
        return max(-127, k)
    return max(-127, k + 1 if documented else ceil(round_to(logarithm(exact), _F32)))


def _over(value: float, k: int) -> float:
    """``value`` over 2^k."""
    return float(Fraction(value) / Fraction(2) ** k) if isfinite(value) else value


def _quantize(x: Array, given: Array | None, *, documented: bool) -> tuple[Array, Array]:
    numbers, blocks = [v.to(_F32) for v in softs(x)], _blocks(x.shape)
    count = (*x.shape[:-1], (x.shape[-1] + 31) // 32)
    if given is not None and given.dtype != np.uint8:
        raise AssertionError(given.dtype)
    if given is not None and given.shape != count:
        raise RuntimeError(given.shape)
    codes = [0] * x.size
    scales: list[int] = []
    for n, block in enumerate(blocks):
        k = _exponent([numbers[i] for i in block], documented=documented)
        chosen = (255 if documented else 0) if k is None else k + 127
        code = chosen if given is None else int(given.flat[n])
        scales.append(code)
        for i in block:
            v = numbers[i].value
            lost = numbers[i].nan or (code == 255 and documented)
            codes[i] = float8_code(nan if lost else copysign(_over(v, code - 127), v), _E4M3)
    stored = np.array(codes, np.uint8).reshape(x.shape).view(getattr(ml_dtypes, _E4M3))
    return stored, np.array(scales, np.uint8).reshape(count)


@derives("modelopt/mxfp8_quantize")
def _documented(input: Array, weights_scaling_factor: Array | None = None) -> tuple[Array, Array]:  # noqa: A002
    return _quantize(input, weights_scaling_factor, documented=True)


@derives("modelopt/mxfp8_quantize@0.47")
def _measured(input: Array, weights_scaling_factor: Array | None = None) -> tuple[Array, Array]:  # noqa: A002
    return _quantize(input, weights_scaling_factor, documented=False)


def _values(quantized_data: Array, scale: Array, dtype: str, last: float) -> Array:
    codes, exponents = quantized_data.view(np.uint8).ravel().tolist(), scale.ravel().tolist()
    reals: list[Soft] = [soft(0.0, "float32")] * len(codes)
    for e, block in zip(exponents, _blocks(quantized_data.shape), strict=True):
        power = soft(last if e == 255 else Fraction(2) ** (e - 127), "float32")
        for i in block:
            reals[i] = soft(float8_number(codes[i], _E4M3), "float32") * power
    return array([v.to(form(DTYPES[dtype])) for v in reals], quantized_data.shape, DTYPES[dtype])


@derives("modelopt/mxfp8_dequantize")
def _documented_values(quantized_data: Array, scale: Array, dtype: str = "float32") -> Array:
    return _values(quantized_data, scale, dtype, nan)


@derives("modelopt/mxfp8_dequantize@0.47")
def _measured_values(quantized_data: Array, scale: Array, dtype: str = "float32") -> Array:
    return _values(quantized_data, scale, dtype, inf)
