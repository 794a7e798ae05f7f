"""What ONNX requires of DequantizeLinear."""

from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, calls, documented, expected, silent
from halfeven.conformance.systems.onnx.linear.quantize import FLOAT8, INTEGERS, array, ends_of, since
from halfeven.reference.blocks import Array

__all__: list[str] = []


@documented("onnx/DequantizeLinear", "DequantizeLinear, opsets 10 to 25: equation", aspect="value")
def all_codes() -> Calls:
    """A code or small float becomes its difference from x_zero_point times x_scale."""
    for name in INTEGERS:
        low, high = ends_of(name)
        codes = np.arange(low, high + 1) if high - low < 256 else np.array([low, low + 1, -1, 0, 1, 255, 257, high])  # noqa: PLR2004
        codes = codes[(codes >= low) & (codes <= high)]
        for zero in sorted({low, 1, high}):
            s, z = array(0.1, "float32"), array(zero, name)
            yield {"x": array(codes, name), "x_scale": s, "x_zero_point": z, "opset": since(name)}
        yield {"x": array(codes, name), "x_scale": array(-1.1, "float32"), "opset": 25}
    for name in (*FLOAT8, "float4_e2m1fn"):
        codes = np.arange(16 if name == "float4_e2m1fn" else 256, dtype=np.uint8)
        yield {"x": codes.view(getattr(ml_dtypes, name)), "x_scale": array(0.1, "float32"), "opset": 23}


@calls("onnx/DequantizeLinear", "value")
def dequantized_int32() -> Calls:
    """Codes of int32, some of which no float32 holds."""
    x = np.array([2**31 - 1, -(2**31), 16777217, 33554435, 7, -7, 0], np.int32)
    for opset in (10, 13, 19, 23):
        yield {"x": x, "x_scale": array(0.1, "float32"), "opset": opset}
        yield {"x": x, "x_scale": array(0.1, "float32"), "x_zero_point": np.asarray(0, np.int32), "opset": opset}
    odd = np.array([2**24 + 2**16 + 1, 2**30 + 2**22 + 1], np.int32)  # two roundings, by float32, lose the last 1
    yield {"x": odd, "x_scale": array(1, "bfloat16"), "opset": 19}


@expected("onnx/DequantizeLinear", "DequantizeLinear, opsets 10 to 25: int32 has a zero point of zero")
def int32_zero_point() -> Calls:
    """The difference of int32 codes from a zero point does not wrap."""
    x = np.array([2**31 - 1, -(2**31), 16777217, 33554435, 7, -7, 0], np.int32)
    for zero in (3, -3, 2**31 - 1):
        z = np.asarray(zero, np.int32)
        for dtype in ("float32", "float16", "bfloat16"):
            yield {"x": x, "x_scale": array(0.1, dtype), "x_zero_point": z, "opset": 21}


@documented("onnx/DequantizeLinear", "DequantizeLinear, opset 23: sentences on the output type", aspect="output-type")
def dequantized_output_type() -> Calls:
    """The product has the precision of the output's type: output_dtype, else the type of x_scale."""
    x = np.array([32767, -32768, 2049, 1, 0, 4097], np.int16)
    for scale in (0.1, 0.0013, 3.0):
        for st in ("float32", "float16", "bfloat16"):
            yield {"x": x, "x_scale": array(scale, st), "x_zero_point": np.asarray(-32768, np.int16), "opset": 21}
            for to in ("float32", "float16", "bfloat16"):
                z = np.asarray(1, np.int16)
                yield {"x": x, "x_scale": array(scale, st), "x_zero_point": z, "output_dtype": to, "opset": 23}
    # By way of float32 the float16 is another.
    x = np.array([-22635, -21352, -10676, -5338], np.int16)
    more = {"x_zero_point": np.asarray(0, np.int16), "output_dtype": "float16", "opset": 23}
    yield {"x": x, "x_scale": array(0.7233046293258667, "float32"), **more}
    codes = np.array([0, 1, 128, 255], np.uint8)
    yield {"x": codes, "x_scale": array(1e5, "float32"), "output_dtype": "float16", "opset": 23}
    for to in ("float32", "float16", "bfloat16"):
        s = array([0.25, 2.0**20, 2.0**-30, 2.0**127], "float8_e8m0fnu")
        yield from ({"x": codes, "x_scale": s, "output_dtype": to, "axis": 0, "opset": opset} for opset in (24, 25))


@calls("onnx/DequantizeLinear", "value")
def special_scales() -> Calls:
    """Scales of zero, infinite and NaN."""
    x = np.array([0, 1, 2, 255], np.uint8)
    for scale in (0.0, -0.0, -0.1, np.inf, np.nan, 1e-45, 3e38):
        yield {"x": x, "x_scale": array(scale, "float32"), "x_zero_point": np.asarray(1, np.uint8), "opset": 13}


@documented("onnx/DequantizeLinear", "DequantizeLinear, opsets 19 and 23: the equation holds for float8 and 4 bits too")
def float_zero_point() -> Calls:
    """A zero point of float8 or float4 is subtracted like any other."""
    for name in (*FLOAT8, "float4_e2m1fn"):
        x = array([0, -0.0, 1, -6, 0.5], name)
        for zero in (0.0, 1.0, 0.5, -2.0):
            yield {"x": x, "x_scale": array(0.1, "float32"), "x_zero_point": array(zero, name), "opset": 23}
        lists = {"x_scale": array([0.1, 0.2], "float32"), "x_zero_point": array([0, 1], name), "axis": 0}
        yield {"x": x[:2], "opset": 23} | lists


@documented("onnx/DequantizeLinear", "DequantizeLinear, opsets 13 and 21: granularities", aspect="granularity")
def dequantized_granularity() -> Calls:
    """One scale serves the tensor, an index along axis, or a block along it, as in QuantizeLinear."""
    x = np.arange(14, dtype=np.uint8).reshape(2, 7)
    for opset in (13, 19, 21, 25):
        for axis in (0, 1, -1, -2):
            n = x.shape[axis]
            s, z = array(np.arange(1, n + 1), "float32"), array(np.arange(n), "uint8")
            yield {"x": x, "x_scale": s, "x_zero_point": z, "axis": axis, "opset": opset}
        yield {"x": x, "x_scale": array([2], "float32"), "x_zero_point": array([1], "uint8"), "opset": opset}
        yield {"x": x[0, 0], "x_scale": array(2, "float32"), "opset": opset}
    for block, n in ((1, 7), (2, 4), (3, 3), (4, 2), (6, 2), (20, 1)):
        s, z = array(np.arange(1, 2 * n + 1).reshape(2, n), "float32"), array(np.arange(2 * n).reshape(2, n), "uint8")
        yield {"x": x, "x_scale": s, "x_zero_point": z, "block_size": block, "opset": 21}
    yield {"x": x, "x_scale": array(2, "float32"), "opset": 10}
    for name in (*INTEGERS[:1], *INTEGERS[2:], "int32", *FLOAT8, "float4_e2m1fn"):
        codes = array([[[1, 0], [1, 1]], [[0, 1], [1, 0]]], name)
        for axis in (-1, -3):  # of every type of code
            yield {"x": codes, "x_scale": array([0.3, 7], "float32"), "axis": axis, "opset": 25}


@documented(
    "onnx/DequantizeLinear",
    "DequantizeLinear, opsets 10, 13, 19, 21, 23, 24, 25: type constraints and attributes",
    aspect="types-by-opset",
)
def dequantized_types() -> Calls:
    """Each opset accepts its own types and attributes and refuses others, and x and x_zero_point have one type."""
    for opset in (10, 13, 19, 21, 23, 24, 25):
        for name in ("int8", "int32", "int16", "uint4", "int2", "float8_e5m2", "float4_e2m1fn", "int64"):
            yield {"x": array([1, 0], name), "x_scale": array(1, "float32"), "opset": opset}
        for st in ("float16", "bfloat16", "float64", "float8_e8m0fnu"):
            yield {"x": array([1, 2], "int8"), "x_scale": array(1, st), "opset": opset}
        more: list[dict[str, Any]] = [{"axis": 0}, {"output_dtype": "float16"}, {"output_dtype": "float32"}]
        for attribute in more:
            yield {"x": array([1, 2], "int8"), "x_scale": array(1, "float32"), "opset": opset, **attribute}
    yield {"x": array([1, 2], "int8"), "x_scale": array(1, "float32"), "x_zero_point": array(1, "uint8"), "opset": 21}
    for opset in (13, 19):
        yield {"x": array([1, 2], "int8"), "x_scale": array(1, "float32"), "opset": opset, "block_size": 2}
    yield {"x": array([1, 0], "int2"), "x_scale": array(1, "float32")}


@silent("onnx/DequantizeLinear", "DequantizeLinear, opset 21: attribute block_size, which is for a scale per block")
def block_size_of_one_scale() -> Calls:
    """One scale serves the tensor whatever block_size says."""
    x = np.arange(6, dtype=np.uint8).reshape(2, 3)
    yield {"x": x, "x_scale": np.ones((), np.float32), "opset": 21, "block_size": 2}


@documented(
    "onnx/DequantizeLinear",
    "DequantizeLinear, opsets 10, 13, 21: shapes of x_scale and x_zero_point, attributes axis and block_size",
    aspect="shapes",
)
def dequantized_refused_shapes() -> Calls:
    """Scales of another shape, a zero point of another shape than the scale, an axis outside the rank and a block size
    outside its range are refused."""

    def f(*shape: int) -> Array:
        return np.ones(shape, np.float32)

    x = np.arange(6, dtype=np.uint8).reshape(2, 3)
    bad: list[tuple[Array, Array, dict[str, int]]] = [
        (x, f(2), {}),
        (x, f(3), {"axis": 2}),
        (x[0], f(3), {}),
        (x, f(2, 3), {}),
        (x, f(2, 2), {"block_size": 3}),
        (x, f(2, 2), {"block_size": 1}),
        (x, f(3, 1), {"block_size": 3}),
        (x, f(3, 1), {"block_size": -1}),
    ]
    for value, s, more in bad:
        yield {"x": value, "x_scale": s, "opset": 21, **more}
    for opset in (13, 21):
        yield {"x": x, "x_scale": f(1, 1), "opset": opset}
    yield {"x": x, "x_scale": f(3), "opset": 10}
    yield {"x": x, "x_scale": f(3), "x_zero_point": np.asarray(1, np.uint8), "opset": 13}
