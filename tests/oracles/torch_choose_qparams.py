"""The choose_qparams of torch's quantized_decomposed, number by number in the input's format."""

from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.exact import round_integer
from oracles.registry import derives
from oracles.soft import Soft, array, form, soft, softs

Array = npt.NDArray[Any]

__all__: list[str] = []

_F = "float32"
_CODES = {"uint8", "int8", "uint16", "int16", "int32", "float8_e5m2", "float8_e4m3fn"}
_HALF = 2**31


def _check(x: Array, qmin: int, qmax: int, dtype: str) -> None:
    if x.dtype.name not in ("float32", "float16", "bfloat16") or dtype not in _CODES:
        msg = f"{x.dtype.name}, {dtype}"
        raise AssertionError(msg)
    if qmin > 0 or qmax < 0 or qmin == qmax:
        msg = f"{qmin}, {qmax}"
        raise AssertionError(msg)
    if x.size == 0:
        msg = "no element"
        raise RuntimeError(msg)


def _top(values: list[Soft]) -> Soft:
    return next((v for v in values if v.nan), None) or max(values, key=lambda v: v.value)


def _over(v: Soft, divisor: Fraction) -> Soft:
    """``v`` divided by a number that float32 holds rounded, or float64, rounded to ``v``'s own format."""
    if v.form.precision == 53:
        return v / soft(divisor, "float64")
    f32 = v.to(soft(0.0, _F).form)
    return (f32 / soft(divisor, _F)).to(v.form)


def _pair(scale: Soft, zero: int) -> tuple[Array, Array]:
    return array([scale], (1,), np.float64), np.array([zero], np.int64)


@derives("torch/quantized_decomposed.choose_qparams")
def _(input: Array, qmin: int, qmax: int, eps: float, dtype: str) -> tuple[Array, Array]:  # noqa: A002
    _check(input, qmin, qmax, dtype)
    values, f32 = softs(input), soft(0.0, _F).form
    zero = Soft(0.0, values[0].form)
    high, low = _top([*values, zero]), -_top([*(-v for v in values), zero])
    scale = _top([_over(high - low, Fraction(qmax - qmin)).to(f32), soft(eps, _F)])
    quotient = (low.to(f32) / scale).value
    steps = round_integer(Fraction(quotient), "half-even") if isfinite(quotient) else -_HALF
    wrapped = (qmin - (steps if abs(steps) < _HALF else -_HALF) + _HALF) % (2 * _HALF) - _HALF
    return _pair(scale, sorted((qmin, wrapped, qmax))[1])


@derives("torch/quantized_decomposed.choose_qparams_symmetric")
def _(input: Array, qmin: int, qmax: int, eps: float, dtype: str) -> tuple[Array, Array]:  # noqa: A002
    _check(input, qmin, qmax, dtype)
    amax = _top([abs(v) for v in softs(input)])
    scale = _top([_over(amax, Fraction(qmax - qmin, 2)).to(soft(0.0, _F).form), soft(eps, _F)])
    return _pair(scale, 128 if dtype == "uint8" else 0)


def _tokens(x: Array) -> tuple[list[list[Soft]], tuple[int, ...]]:
    if x.ndim and x.shape[-1] == 0:
        msg = "an empty last dimension"
        raise IndexError(msg)
    values, n = softs(x), x.shape[-1] if x.ndim else 1
    return [values[i : i + n] for i in range(0, len(values), n)], (*x.shape[:-1], 1) if x.ndim else ()


@derives("torch/quantized_decomposed.choose_qparams_per_token")
def _(input: Array, dtype: str) -> tuple[Array, Array]:  # noqa: A002
    tokens, shape = _tokens(input)
    if dtype != "int8":
        msg = f"dtype={dtype}"
        raise Exception(msg)  # noqa: TRY002
    held: Any = np.float32 if input.dtype == np.float16 else input.dtype
    f = form(held)
    least = soft(1e-5, {53: "float64", 24: _F}.get(f.precision, "bfloat16"))
    scales = [_over(_top([_top([abs(v) for v in t]).to(f), least]), Fraction(127)) for t in tokens]
    return array(scales, shape, held), array([0] * len(scales), shape, held)


@derives("torch/quantized_decomposed.choose_qparams_per_token_asymmetric")
def _(input: Array, dtype: str) -> tuple[Array, Array]:  # noqa: A002
    tokens, shape = _tokens(input)
    f = form(input.dtype)

    def number(v: int) -> Soft:
        return Soft(float(v), f)

    scales, zeros = [], []
    for t in tokens:
        high, low = _top([*t, number(0)]), -_top([*(-v for v in t), number(0)])
        scale = _top([_over(high - low, Fraction(255)), Soft(2.0**-23, f)])
        a, b = low / scale, high / scale
        error = (number(-128) + a) + (number(127) + b)
        z = number(-128) - a if error.value > 0 else number(127) - b
        scales.append(scale)
        zeros.append(-(2**63) if z.nan else round_integer(Fraction(max(-128.0, min(127.0, z.value))), "half-even"))
    return array(scales, shape, np.float64), np.array(zeros, np.int64).reshape(shape)
