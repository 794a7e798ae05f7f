"""ONNX graphs between codes, each element by itself in rounded float32 operations on fractions."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import isinf
from typing import Any

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


_LOWEST = soft(-float(2**128 - 2**104), "float32")
_ZERO, _SIX = soft(0.0, "float32"), soft(6.0, "float32")
_EACH: dict[str, Callable[[Soft], Soft]] = {
    "Identity": lambda x: x,
    "Relu": lambda x: _larger(x, _ZERO),
    "Clip": lambda x: _SIX if x.value > 6 else _larger(x, _ZERO),
}


def _one(
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    node: str,
    *,
    finite: bool,
) -> Array:
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
        found = [_larger(v, _LOWEST) for v in found] if finite else found
    else:
        raise ValueError(node)
    return np.array([_code(v, _scale(y_scale), y_zero_point) for v in found], x.dtype).reshape(shape)


@derives("onnx/qdq-one-input")
def _one_documented(
    x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array, node: str
) -> Array:
    return _one(x, x_scale, x_zero_point, y_scale, y_zero_point, node, finite=False)


@derives("onnx/qdq-one-input@onnxruntime-1.32")
def _one_plain(x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array, node: str) -> Array:
    return _one(x, x_scale, x_zero_point, y_scale, y_zero_point, node, finite=True)


@derives("onnx/qdq-one-input@optimized-1.32")
def _one_optimized(
    x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array, node: str
) -> Array:
    kept = x_scale == y_scale and x_zero_point == y_zero_point
    lowest = 0 if x.dtype == np.uint8 else -128
    match node:
        case "Identity" if kept:
            return x
        case "Relu" if kept and int(x_zero_point) == lowest:
            return x
        case "Reshape" if kept:
            return x.flatten()
        case "Transpose" if kept:
            return x.transpose(0, 2, 1)
        case "MaxPool" if kept:
            rows = [[max(p) for p in pairwise(row)] for row in x.reshape(-1, x.shape[-1]).tolist()]
            return np.array(rows, x.dtype).reshape(*x.shape[:2], -1)
    return _one(x, x_scale, x_zero_point, y_scale, y_zero_point, node, finite=True)


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


@derives("onnx/qdq-two-inputs@optimized-1.32")
def _two_optimized(
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
    s_a, s_b, s_y = _scale(a_scale), _scale(b_scale), _scale(y_scale)
    z_a, z_b, z_y = (int(z) for z in (a_zero_point, b_zero_point, y_zero_point))
    r_a, r_b, r = s_a / s_y, s_b / s_y, s_a * s_b / s_y
    zeros = soft(float(z_y), "float32") - _fused(z_a, r_a, (r_b * soft(float(z_b), "float32")))
    codes = []
    for p, q in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
        if node == "Add":
            found = _fused(p, r_a, _fused(q, r_b, zeros))
        else:
            found = soft(float((p - z_a) * (q - z_b)), "float32") * r + soft(float(z_y), "float32")
        codes.append(_held(Fraction(found.value), a.dtype))
    return np.array(codes, a.dtype).reshape(a.shape)


def _fused(code: int, ratio: Soft, rest: Soft) -> Soft:
    return soft(code * Fraction(ratio.value) + Fraction(rest.value), "float32")


def _held(x: Fraction, dtype: Any) -> int:
    low = 0 if dtype == np.uint8 else -128
    return min(max(round_integer(x, "half-even"), low), low + 255)


@derives("onnx/qdq-twice@optimized-1.32")
def _twice_optimized(x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array) -> Array:
    qmin = 0 if x_zero_point.dtype == np.uint8 else -128
    grids = ((_scale(x_scale), int(x_zero_point)), (_scale(y_scale), int(y_zero_point)))
    low = max((_real(qmin, s, z) for s, z in grids), key=lambda v: v.value)
    high = min((_real(qmin + 255, s, z) for s, z in grids), key=lambda v: v.value)
    s = (high - low) / soft(255.0, "float32")
    place = Fraction((soft(float(qmin), "float32") - low / s).value)
    z = np.array(min(max(round_integer(place, "half-away"), qmin), qmin + 255), x_zero_point.dtype)
    return array([_real(_code(v, s, z), s, int(z)) for v in softs(x)], x.shape, np.float32)


@derives("onnx/qdq-twice")
def _twice(x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array) -> Array:
    found = softs(x)
    for scale, zero in ((x_scale, x_zero_point), (y_scale, y_zero_point)):
        found = [_real(_code(v, _scale(scale), zero), _scale(scale), int(zero)) for v in found]
    return array(found, x.shape, np.float32)
