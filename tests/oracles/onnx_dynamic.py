"""ONNX's DynamicQuantizeLinear: numbers sorted as fractions, the code of each by the exact quotient's float."""

from fractions import Fraction
from math import isinf, isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.exact import round_integer
from oracles.registry import derives
from oracles.soft import Soft, array, soft, softs

Array = npt.NDArray[Any]

__all__: list[str] = []


def _code(v: Soft, z: int, of_nan: int) -> int:
    """The code of a quotient: saturated after the zero point is added, as an int."""
    if v.nan:
        return of_nan
    if isinf(v.value):
        return 255 if v.value > 0 else 0
    return sorted((0, round_integer(Fraction(v.value), "half-even") + z, 255))[1]


def _parts(x: Array) -> tuple[list[Soft], Soft, int, list[int]]:
    if x.dtype.name != "float32":
        msg = f"x of {x.dtype.name}"
        raise TypeError(msg)
    values = softs(x)
    ordered = sorted([0.0] + [v.value for v in values if not isnan(v.value)])
    low, high = soft(ordered[0], "float32"), soft(ordered[-1], "float32")
    scale = (high - low) / soft(255.0, "float32")
    if low.value == high.value:
        return values, soft(0.0, "float32"), 0, [0] * len(values)
    zero = _code(-(low / scale), 0, of_nan=255)
    return values, scale, zero, [_code(v / scale, zero, of_nan=0) for v in values]


def _answer(codes: list[int], scale: Soft, zero: int, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    return array(codes, shape, np.uint8), array([scale], (), np.float32), array([zero], (), np.uint8)


@derives("onnx/DynamicQuantizeLinear")
def _(x: Array) -> tuple[Array, Array, Array]:
    _, scale, zero, codes = _parts(x)
    return _answer(codes, scale, zero, x.shape)


@derives("onnx/DynamicQuantizeLinear@onnxruntime-1.31")
def _(x: Array) -> tuple[Array, Array, Array]:
    values, scale, zero, codes = _parts(x)
    flat = all(v.nan or v.value == 0 for v in values)
    return _answer(codes, soft(1.0, "float32") if flat else scale, zero, x.shape)


@derives("onnx/DynamicQuantizeLinear@reference-1.23")
def _(x: Array) -> tuple[Array, Array, Array]:
    values, scale, zero, codes = _parts(x)
    if not values:
        msg = "x is empty"
        raise ValueError(msg)
    if any(v.nan for v in values):
        return _answer([0] * len(values), soft(float("nan"), "float32"), 255, x.shape)
    flat = all(v.value == 0 for v in values)
    return _answer(codes, soft(Fraction(1, 255), "float32") if flat else scale, zero, x.shape)
