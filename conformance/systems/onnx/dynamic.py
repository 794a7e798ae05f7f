"""What is required of ONNX's DynamicQuantizeLinear, the calls that decide it, and the libraries' answers."""

import numpy as np

from halfeven.conformance.requirement import Calls, calls, documented, measured
from halfeven.reference.blocks import Array

__all__: list[str] = []

DYNAMIC = "onnx/DynamicQuantizeLinear"

_INF, _NAN = np.inf, np.nan


def _f(*values: float) -> Array:
    return np.array(values, np.float32)


@documented(DYNAMIC, "DynamicQuantizeLinear, opset 11: equation of y_scale", aspect="scale")
@documented(
    DYNAMIC,
    "DynamicQuantizeLinear, opset 11: equation of y",
    aspect="codes",
    text="The codes are the rounded quotients plus the zero point, saturated to 0 to 255.",
)
def ranges() -> Calls:
    """The scale is the range of the input, widened to hold zero, over 255, in float32."""
    rows = [(1, 2), (-1, -2), (-1, 3), (3.0,), (-3.0,), (0.5, -0.5), (-127.5, 127.5), (-0.1, 0.7), (1e-3, -1e-5)]
    for ends in rows:
        yield {"x": _f(*ends)}
        yield {"x": np.linspace(min(ends), max(ends), 35, dtype=np.float32).reshape(5, 7)}
    yield {"x": np.asarray(3, np.float32)}


@documented(DYNAMIC, "DynamicQuantizeLinear, opset 11: equation of y_zero_point", aspect="zero-point")
@calls(DYNAMIC, "codes")
def zero_point_ties() -> Calls:
    """The zero point is the lowest real over the scale, subtracted from 0, saturated, and then rounded, a tie to the
    even integer."""
    for low in (-0.5, -1.5, -2.5, -127.5, -253.5, -254.5):
        # The scale is 1, or a power of two: the zero point falls on a tie.
        for scale in (1.0, 2.0**-7):
            ends = np.array([low, low + 255]) * scale
            inner = (np.arange(-6, 7) + 0.5) * scale
            yield {"x": np.concatenate([ends, inner[(inner > ends[0]) & (inner < ends[1])]]).astype(np.float32)}


@measured(DYNAMIC, "DynamicQuantizeLinear says nothing of it; ONNX Runtime 1.31.0 and onnx 1.23.0")
def extremes() -> Calls:
    """An infinite range and a scale that underflows keep to the equations; a zero point that they leave undefined is
    255."""
    rows = [(1e-45,), (-1e-45,), (1e-42, -1e-42), (-1e-45, 1), (3.4e38,), (-3.4e38,), (3e38, -3e38), (-1e-40,)]
    rows += [(_INF, 1), (-_INF, 1), (_INF, -_INF), (_INF,), (1.7e38, -1.7e38)]
    for row in rows:
        yield {"x": _f(*row)}


@documented(
    DYNAMIC,
    "DynamicQuantizeLinear, opset 11: equation of y_scale; zero point and codes are measured",
)
def zeros() -> Calls:
    """A tensor of zeros has the scale of the equation, 0, and zero point and codes of 0."""
    for x in (_f(0, 0), _f(-0.0), _f(0, -0.0, 0), np.zeros((2, 3), np.float32), np.asarray(0, np.float32)):
        yield {"x": x}


@measured(DYNAMIC, "DynamicQuantizeLinear says nothing of NaN; ONNX Runtime 1.31.0")
def nan() -> Calls:
    """NaN has no part in the range, and its code is 0."""
    for row in ((_NAN, 1), (1, _NAN, -1), (_NAN,), (_NAN, 0), (_NAN, _INF)):
        yield {"x": _f(*row)}
    for place in (0, 7, 16, 34):
        x = np.linspace(-1, 3, 35, dtype=np.float32)
        x[place] = _NAN
        yield {"x": x}


@measured(DYNAMIC, "DynamicQuantizeLinear says nothing of it; ONNX Runtime 1.31.0")
def empty() -> Calls:
    """A tensor without elements is quantized as one of zeros."""
    yield {"x": _f()}
    yield {"x": np.zeros((2, 0), np.float32)}


@documented(DYNAMIC, "DynamicQuantizeLinear, opset 11: type constraints", aspect="types")
def refused_types() -> Calls:
    """The input is of float32; other types are refused."""
    for dtype in ("float16", "float64", "int32"):
        yield {"x": np.ones(2, dtype)}


@documented(DYNAMIC, "DynamicQuantizeLinear, opset 11: examples")
def examples() -> Calls:
    """The worked examples come out as their equations say."""
    yield {"x": _f(0, 2, -3, -2.5, 1.34, 0.5)}
    yield {"x": _f(-1, -2.1, -1.3, -2.5, -3.34, -4)}
    yield {"x": _f(1, 2.1, 1.3, 2.5, 3.34, 4, 1.5, 2.6, 3.9, 4, 3, 2.345).reshape(3, 4)}
