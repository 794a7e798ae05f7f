"""ONNX graphs between codes, each element by itself in rounded float32 operations on fractions."""

from collections.abc import Callable
from fractions import Fraction
from math import isinf

import numpy as np

from oracles.exact import round_integer
from oracles.registry import derives
from oracles.soft import Array, Soft, array, soft, softs

__all__: list[str] = []


def _real(q: int, scale: Soft, zero: int) -> Soft:
    return soft(float(q - zero), "float32") * scale


def _code(x: Soft, scale: Soft, zero: Array) -> int:
    low, high = (0, 255) if zero.dtype == np.uint8 else (-128, 127)
    quotient = x / scale
    if quotient.nan:
        return low
    if isinf(quotient.value):
        return high if quotient.value > 0 else low
    return min(max(round_integer(Fraction(quotient.value), "half-even") + int(zero), low), high)


def _scale(a: Array) -> Soft:
    return softs(a)[0]


def _larger(x: Soft, y: Soft) -> Soft:
    return x if x.value >= y.value else y


_ZERO, _SIX = soft(0.0, "float32"), soft(6.0, "float32")
_EACH: dict[str, Callable[[Soft], Soft]] = {
    "Identity": lambda x: x,
    "Relu": lambda x: _larger(x, _ZERO),
    "Clip": lambda x: _SIX if x.value > 6 else _larger(x, _ZERO),
}


@derives("onnx/qdq-one-input")
def _one(x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array, node: str) -> Array:
    def moved(indices: Array) -> list[Soft]:
        return [_real(int(x.ravel()[i]), _scale(x_scale), int(x_zero_point)) for i in indices.ravel().tolist()]

    places = np.arange(x.size).reshape(x.shape)
    if node in _EACH:
        found, shape = [_EACH[node](v) for v in moved(places)], x.shape
    elif node == "Reshape":
        found, shape = moved(places), (x.size,)
    elif node == "Transpose":
        order = places.transpose(0, 2, 1)
        found, shape = moved(order), order.shape
    elif node == "MaxPool":
        left, right = places[:, :, :-1], places[:, :, 1:]
        found, shape = [_larger(a, b) for a, b in zip(moved(left), moved(right), strict=True)], left.shape
    else:
        raise ValueError(node)
    return np.array([_code(v, _scale(y_scale), y_zero_point) for v in found], x.dtype).reshape(shape)


@derives("onnx/qdq-two-inputs")
def _two(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    node: str,
) -> Array:
    if node not in ("Add", "Mul"):
        raise ValueError(node)
    first = [_real(q, _scale(a_scale), int(a_zero_point)) for q in a.ravel().tolist()]
    second = [_real(q, _scale(b_scale), int(b_zero_point)) for q in b.ravel().tolist()]
    results = [v + w if node == "Add" else v * w for v, w in zip(first, second, strict=True)]
    return np.array([_code(v, _scale(y_scale), y_zero_point) for v in results], a.dtype).reshape(a.shape)


@derives("onnx/qdq-twice")
def _twice(x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array) -> Array:
    found = softs(x)
    for scale, zero in ((x_scale, x_zero_point), (y_scale, y_zero_point)):
        found = [_real(_code(v, _scale(scale), zero), _scale(scale), int(zero)) for v in found]
    return array(found, x.shape, np.float32)
