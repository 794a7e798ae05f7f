"""Calls of ONNX's DynamicQuantizeLinear: ranges with and without zero, ties of zero point and codes, extremes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.conformance.calls.registry import Arguments, calls

Array = npt.NDArray[Any]

__all__: list[str] = []

_INF, _NAN = np.inf, np.nan


def _f(*values: float) -> Array:
    return np.array(values, np.float32)


@calls("onnx.dynamic_quantize_linear", "range")
def _() -> Iterator[Arguments]:
    ranges = [(1, 2), (-1, -2), (-1, 3), (3.0,), (-3.0,), (0.5, -0.5), (-127.5, 127.5), (-0.1, 0.7), (1e-3, -1e-5)]
    for ends in ranges:
        yield {"x": _f(*ends)}
        yield {"x": np.linspace(min(ends), max(ends), 35, dtype=np.float32).reshape(5, 7)}
    yield {"x": np.asarray(3, np.float32)}


@calls("onnx.dynamic_quantize_linear", "zero-point-ties")
def _() -> Iterator[Arguments]:
    for low in (-0.5, -1.5, -2.5, -127.5, -253.5, -254.5):
        # The scale is 1, or a power of two: the zero point falls on a tie.
        for scale in (1.0, 2.0**-7):
            ends = np.array([low, low + 255]) * scale
            inner = (np.arange(-6, 7) + 0.5) * scale
            yield {"x": np.concatenate([ends, inner[(inner > ends[0]) & (inner < ends[1])]]).astype(np.float32)}


@calls("onnx.dynamic_quantize_linear", "extremes")
def _() -> Iterator[Arguments]:
    rows = [(1e-45,), (-1e-45,), (1e-42, -1e-42), (-1e-45, 1), (3.4e38,), (-3.4e38,), (3e38, -3e38), (-1e-40,)]
    rows += [(_INF, 1), (-_INF, 1), (_INF, -_INF), (_INF,), (1.7e38, -1.7e38)]
    for row in rows:
        yield {"x": _f(*row)}


@calls("onnx.dynamic_quantize_linear", "zeros")
def _() -> Iterator[Arguments]:
    for x in (_f(0, 0), _f(-0.0), _f(0, -0.0, 0), np.zeros((2, 3), np.float32), np.asarray(0, np.float32)):
        yield {"x": x}


@calls("onnx.dynamic_quantize_linear", "nan")
def _() -> Iterator[Arguments]:
    for row in ((_NAN, 1), (1, _NAN, -1), (_NAN,), (_NAN, 0), (_NAN, _INF)):
        yield {"x": _f(*row)}
    for place in (0, 7, 16, 34):
        x = np.linspace(-1, 3, 35, dtype=np.float32)
        x[place] = _NAN
        yield {"x": x}


@calls("onnx.dynamic_quantize_linear", "empty")
def _() -> Iterator[Arguments]:
    yield {"x": _f()}
    yield {"x": np.zeros((2, 0), np.float32)}


@calls("onnx.dynamic_quantize_linear", "refused-types")
def _() -> Iterator[Arguments]:
    for dtype in ("float16", "float64", "int32"):
        yield {"x": np.ones(2, dtype)}
