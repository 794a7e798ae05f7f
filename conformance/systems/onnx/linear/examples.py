"""The worked examples of ONNX's QuantizeLinear and DequantizeLinear, replayed."""

from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, documented
from halfeven.reference.blocks import Array

__all__: list[str] = []


def _a(values: Any, dtype: str) -> Array:
    return np.asarray(values, np.float64).astype(getattr(ml_dtypes, dtype, dtype))


@documented("onnx/QuantizeLinear", "QuantizeLinear, opset 25: examples")
def examples() -> Calls:
    """The worked examples come out as printed."""
    two = _a(2, "float32")
    x = _a([0, 2, 3, 1000, -254, -1000], "float32")
    yield {"x": x, "y_scale": two, "y_zero_point": _a(128, "uint8"), "opset": 13}
    x = _a([0, 1, 2, 100000, 200], "float32")
    for name in ("float8_e4m3fn", "float8_e5m2"):
        yield {"x": x, "y_scale": two, "y_zero_point": _a([0], name), "opset": 19}
    x = _a([0, -128, 3, -3, 2.9, -2.9, 3.1, -3.1, 65536, -65534, 70000, -70000], "float32")
    yield {"x": x, "y_scale": two, "y_zero_point": _a(32767, "uint16"), "opset": 21}
    x = _a([0, -514, 3, -3, 2.9, -2.9, 3.1, -3.1, 65022, -66046, 65023, -66047, 65024, -66048, 7e4, -7e4], "float32")
    yield {"x": x, "y_scale": two, "y_zero_point": _a(256, "int16"), "opset": 21}
    x, s = _a([[0, 2.5, 4.8, 8.6], [-30, -20, 6, 9], [12, 15, 16, 40]], "float32"), _a([2, 3, 4], "float32")
    for name in ("uint4", "int4"):
        yield {"x": x, "y_scale": s, "y_zero_point": _a([1, 1, 1], name), "axis": 0, "opset": 21}
    x, s = (
        _a([[6, 12, 50, 5], [1, 8, 4, 5], [0, 20, 10, 4]], "float32"),
        _a([[1.5, 2.5], [3, 4.9], [5.1, 6.9]], "float32"),
    )
    z = _a([[0, 1], [1, 0], [2, 3]], "uint8")
    yield {"x": x, "y_scale": s, "y_zero_point": z, "axis": 1, "block_size": 2, "opset": 21}


@documented("onnx/DequantizeLinear", "DequantizeLinear, opset 25: examples", aspect="examples")
def dequantized_examples() -> Calls:
    """The worked examples come out as printed."""
    two = _a(2, "float32")
    yield {"x": _a([0, 3, 128, 255], "uint8"), "x_scale": two, "x_zero_point": _a(128, "uint8"), "opset": 13}
    for dtype in ("float32", "float16"):
        yield {"x": _a([0, 0.5, 1, 448, -104], "float8_e4m3fn"), "x_scale": _a(2, dtype), "axis": 0, "opset": 19}
    yield {"x": _a([0, 0.5, 1, 49152, -96], "float8_e5m2"), "x_scale": two, "axis": 0, "opset": 19}
    x, z = _a([30000, 31000, 32768, 33000], "uint16"), _a(32767, "uint16")
    yield {"x": x, "x_scale": two, "x_zero_point": z, "opset": 21}
