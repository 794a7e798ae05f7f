"""brevitas, scalar by scalar: quotient and sum rounded as floats, their rounding to a code on fractions."""

from collections.abc import Iterator
from fractions import Fraction
from math import copysign, isfinite
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from oracles.exact import round_integer
from oracles.registry import derives
from oracles.soft import Soft, array, soft, softs

Array = npt.NDArray[Any]
_Rule = Literal["half-even", "floor", "ceil", "toward-zero"]

__all__: list[str] = []

_RULES: dict[str, _Rule] = {
    "ROUND": "half-even",
    "FLOOR": "floor",
    "CEIL": "ceil",
    "ROUND_TO_ZERO": "toward-zero",
    "DPU": "half-even",
}


def _ends(bits: int, *, signed: bool, narrow: bool, least: int = 1) -> tuple[Fraction, Fraction]:
    """The lowest and highest of 2^bits codes, one of them dropped where the range is narrow."""
    if type(bits) is not int:
        msg = f"bit_width={bits!r} is no int"
        raise TypeError(msg)
    if bits < least:
        msg = f"bit_width={bits}"
        raise ValueError(msg)
    codes = Fraction(2) ** bits
    low = -codes / 2 if signed else Fraction(0)
    high = low + codes - 1
    return (low + narrow, high) if signed else (low, high - narrow)


def _single(value: Fraction) -> Array:
    return array([soft(value, "float32")], (), np.float32)


@derives("brevitas/max_int")
def max_int(signed: bool, narrow_range: bool, bit_width: int) -> Array:
    """The last code."""
    return _single(_ends(bit_width, signed=signed, narrow=narrow_range)[1])


@derives("brevitas/min_int")
def min_int(signed: bool, narrow_range: bool, bit_width: int) -> Array:
    """The first code."""
    return _single(_ends(bit_width, signed=signed, narrow=narrow_range)[0])


@derives("brevitas/IntScaling")
def int_scaling(bit_width: int, signed: bool, narrow_range: bool) -> Array:
    """The end of the grid that is farther from 0; of a signed grid it is turned round, which a single 0 shows."""
    low, high = _ends(bit_width, signed=signed, narrow=narrow_range)
    return array([-soft(low, "float32") if signed else soft(high, "float32")], (), np.float32)


def _round(v: Soft, how: str) -> Soft:
    if how not in _RULES:
        msg = f"float_to_int={how!r}"
        raise ValueError(msg)
    if not isfinite(v.value):
        return v
    exact = Fraction(v.value)
    negative_tie = exact < 0 and exact.denominator == 2
    rule: _Rule = "ceil" if how == "DPU" and negative_tie else _RULES[how]
    code = float(round_integer(exact, rule))
    if how == "ROUND_TO_ZERO" and v.value == 0:
        return Soft(0.0, v.form)  # a sign of 0 times 0
    return Soft(copysign(code, v.value), v.form)


def _rows(*arrays: Array) -> Iterator[tuple[Soft, ...]]:
    lengths = [tuple(reversed(a.shape)) for a in arrays]
    if any(len({n[d] for n in lengths if d < len(n)} - {1}) > 1 for d in range(max(map(len, lengths)))):
        msg = f"shapes {[a.shape for a in arrays]}"
        raise RuntimeError(msg)
    return zip(*(softs(a) for a in np.broadcast_arrays(*arrays)), strict=True)


def _code(x: Soft, s: Soft, z: Soft, ends: tuple[Soft, Soft], how: str) -> tuple[Soft, bool]:
    """The code, and whether the grid held the rounded number."""
    y = _round(x / s + z, how)
    low, high = ends
    if y.value > high.value:
        return (high if high.value >= low.value else low), False
    return (low, False) if y.value < low.value else (y, True)


def _grid(x: Array, bits: int, *, signed: bool, narrow: bool, least: int = 1) -> tuple[Soft, Soft]:
    name = x.dtype.name
    ends = _ends(bits, signed=signed, narrow=narrow, least=least)
    low, high = (soft(soft(end, "float32").value, name) for end in ends)
    return low, high


@derives("brevitas/IntQuant.to_int")
def to_int(
    scale: Array,
    zero_point: Array,
    bit_width: int,
    x: Array,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> Array:
    """Code by code."""
    ends = _grid(x, bit_width, signed=signed, narrow=narrow_range)
    codes = [_code(v, s, z, ends, float_to_int)[0] for v, s, z in _rows(x, scale, zero_point)]
    return array(codes, np.broadcast_shapes(x.shape, scale.shape, zero_point.shape), x.dtype)


@derives("brevitas/IntQuant.to_int@0.13")
def to_int_any_width(
    scale: Array,
    zero_point: Array,
    bit_width: int,
    x: Array,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> Array:
    """Code by code, between whatever ends the power of two gives."""
    ends = _grid(x, bit_width, signed=signed, narrow=narrow_range, least=-1000)
    if not signed and bit_width < 0:
        ends = (-ends[0], ends[1])  # 0 times a negative width
    codes = [_code(v, s, z, ends, float_to_int)[0] for v, s, z in _rows(x, scale, zero_point)]
    return array(codes, np.broadcast_shapes(x.shape, scale.shape, zero_point.shape), x.dtype)


@derives("brevitas/IntQuant")
def int_quant(
    scale: Array,
    zero_point: Array,
    bit_width: int,
    x: Array,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> Array:
    """Code by code, and back."""
    ends = _grid(x, bit_width, signed=signed, narrow=narrow_range)
    reals = [(_code(v, s, z, ends, float_to_int)[0] - z) * s for v, s, z in _rows(x, scale, zero_point)]
    return array(reals, np.broadcast_shapes(x.shape, scale.shape, zero_point.shape), x.dtype)


@derives("brevitas/IntQuant.backward")
def int_quant_gradients(
    grad: Array,
    scale: Array,
    zero_point: Array,
    bit_width: int,
    x: Array,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> tuple[Array, Array, Array]:
    """The chain rule along (clamp(round(x / s + z)) - z) * s: product, difference, clamp, sum, quotient."""
    ends = _grid(x, bit_width, signed=signed, narrow=narrow_range)
    found = []
    for g, v, s, z in _rows(grad, x, scale, zero_point):
        code, held = _code(v, s, z, ends, float_to_int)
        by_difference, by_product = g * s, g * (code - z)
        by_sum = by_difference if held else Soft(0.0, v.form)
        by_quotient = -by_sum * (v / s / s)
        found.append((by_sum / s, by_product + by_quotient, -by_difference + by_sum))
    x_, s_, z_ = (array([row[i] for row in found], x.shape, x.dtype) for i in range(3))
    return x_, s_, z_


@derives("brevitas/RescalingIntQuant")
def rescaling_int_quant(
    x: Array, threshold: Array, bit_width: int, signed: bool = True, narrow_range: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The scale first."""
    divisor = softs(int_scaling(bit_width, signed, narrow_range))[0]
    scale = array([abs(softs(threshold)[0]) / abs(divisor)], (), np.float32)
    zero = _single(Fraction(0))
    return int_quant(scale, zero, bit_width, x, signed, narrow_range), scale, zero, _single(Fraction(bit_width))


@derives("brevitas/scale_shift_zero_point")
def scale_shift_zero_point(
    zero_point: Array,
    scale: Array,
    bit_width: int,
    signed: bool = True,
    narrow_range: bool = False,
    quantize_zero_point: bool = True,
) -> Array:
    """Steps above the lowest code."""
    ends = _grid(zero_point, bit_width, signed=signed, narrow=narrow_range)
    found = []
    for z, s in _rows(zero_point, scale):
        code, _ = _code(z, s, ends[0], ends, "ROUND")
        found.append(code if quantize_zero_point else z / s + ends[0])
    return array(found, zero_point.shape, zero_point.dtype)
