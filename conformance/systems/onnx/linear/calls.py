"""Calls of ONNX's QuantizeLinear and DequantizeLinear: ties, saturation, types by opset, granularities, float8."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.requirement import Arguments, calls

__all__: list[str] = []


Array = npt.NDArray[Any]


_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2")
_TAIL = (np.inf, -np.inf, 3.4e38, -3.4e38, 2.0**31, -(2.0**31), 2.0**31 - 128, 2.0**63, 1e-45, 0.0, -0.0)


def _a(values: Any, dtype: str) -> Array:
    return np.asarray(values, np.float64).astype(getattr(ml_dtypes, dtype, dtype))


def _ends(name: str) -> tuple[int, int]:
    bits = int(name.lstrip("uint"))
    return (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _since(name: str) -> int:
    return 10 if name in ("int8", "uint8") else 25 if name.endswith("int2") else 21


def _near(values: Any, dtype: str) -> Array:
    """The numbers and their neighbours."""
    a = np.ravel(_a(values, dtype))
    if dtype == "bfloat16":
        bits = a.view(np.int16)
        return np.concatenate([a, (bits + 1).view(a.dtype), (bits - 1).view(a.dtype)])
    with np.errstate(all="ignore"):
        return np.concatenate([a, np.nextafter(a, a.dtype.type(np.inf)), np.nextafter(a, a.dtype.type(-np.inf))])


@calls("onnx/QuantizeLinear", "ties")
def _() -> Iterator[Arguments]:
    for name in _INTEGERS:
        low, high = _ends(name)
        for zero in sorted({low, low + 1, 0, high}):
            inner = np.unique(np.clip(np.arange(-9, 9), low - zero - 1, high - zero + 1))
            for scale in (1.0, 0.3):
                x = _near((inner + 0.5) * scale, "float32")
                s, z = _a(scale, "float32"), _a(zero, name)
                yield {"x": x, "y_scale": s, "y_zero_point": z, "opset": _since(name)}
    yield {"x": _a([2.5, 3.5, -2.5], "float32"), "y_scale": _a(1, "float32"), "opset": 10}


@calls("onnx/QuantizeLinear", "saturation")
def _() -> Iterator[Arguments]:
    for name in _INTEGERS:
        low, high = _ends(name)
        for zero in sorted({low, 1, high}):
            edges = np.array([low - zero, high - zero])
            x = _near(np.concatenate([edges + h for h in (-1.5, -0.5, 0.5, 1.5)]), "float32")
            yield {"x": x, "y_scale": _a(1, "float32"), "y_zero_point": _a(zero, name), "opset": 25}


@calls("onnx/QuantizeLinear", "huge")
def _() -> Iterator[Arguments]:
    for name in _INTEGERS:
        for zero in sorted({_ends(name)[0], 0, 1}):
            for dtype in ("float32", "float16", "bfloat16"):
                x, s = _a(_TAIL, dtype), _a(1, dtype)
                if dtype == "float16":
                    s = _a([2.0**-10], dtype)
                yield {"x": x, "y_scale": s, "y_zero_point": _a(zero, name), "opset": 25} | (
                    {"y_zero_point": _a([zero], name)} if dtype == "float16" else {}
                )
    x = _a([[np.inf, 3e9, -np.inf], [2.0**31, np.inf, 1], [-np.inf, 3e9, np.inf]], "float32")
    for name in ("int4", "uint4"):
        z = np.arange(3).astype(_a(0, name).dtype)
        for axis in (0, 1):
            s = np.ones(3, np.float32)
            yield {"x": x, "y_scale": s, "y_zero_point": z, "axis": axis, "opset": 21}
        s, z = np.ones((3, 2), np.float32), np.zeros((3, 2), z.dtype)
        yield {"x": x, "y_scale": s, "y_zero_point": z, "block_size": 2, "opset": 21}
    for scale in (0.0, -0.0, 1e-45, np.inf, -1.0):
        x = _a([1, -1, 2.5, 1e-45, 3.4e38], "float32")
        yield {"x": x, "y_scale": _a(scale, "float32"), "y_zero_point": _a(2, "int8"), "opset": 13}


@calls("onnx/QuantizeLinear", "nan")
def _() -> Iterator[Arguments]:
    for name in _INTEGERS:
        for zero in sorted({_ends(name)[0], 0, 1}):
            x, s = _a([np.nan, 1, np.inf], "float32"), _a(np.nan, "float32")
            yield {"x": x, "y_scale": _a(1, "float32"), "y_zero_point": _a(zero, name), "opset": 25}
            yield {"x": x, "y_scale": s, "y_zero_point": _a(zero, name), "opset": 25}
    x = _a([0, np.nan, np.inf], "float16")
    yield {"x": x, "y_scale": _a(0, "float16"), "y_zero_point": _a(1, "uint8"), "opset": 19}


@calls("onnx/QuantizeLinear", "division")
def _() -> Iterator[Arguments]:
    x = [0.25, 1000, 1 / 3, 2.5, -3e4, 65504, 0.15, 100.05]
    for dtype in ("float16", "bfloat16"):
        for opset in (19, 21, 25):
            yield {"x": _a(x, dtype), "y_scale": _a(0.1, dtype), "y_zero_point": _a(3, "uint8"), "opset": opset}
    for xt in ("float32", "float16", "bfloat16", "int32"):
        for st in ("float32", "float16", "bfloat16", "int32"):
            s, z = _a(0.1 if st != "int32" else 3, st), _a(3, "int8")
            yield {"x": _a(x, xt), "y_scale": s, "y_zero_point": z, "opset": 23}
    for xt in ("float32", "float16", "bfloat16"):
        yield {"x": _a(x, xt), "y_scale": _a(0.125, "float8_e8m0fnu"), "y_zero_point": _a(3, "uint8"), "opset": 24}
    for precision in ("float32", "float16", "bfloat16", "float64"):
        for dtype in ("float32", "float16"):
            s, z = _a(0.1, dtype), _a(3, "uint8")
            yield {"x": _a(x, dtype), "y_scale": s, "y_zero_point": z, "precision": precision, "opset": 23}


@calls("onnx/QuantizeLinear", "int32")
def _() -> Iterator[Arguments]:
    x = np.array([16777217, 2**31 - 1, -(2**31), 3 * 2**24 + 1, 7, -5, 0, 2**23 + 1], np.int32)
    for opset, scale in ((10, 2.0**25), (13, 2.0**24), (23, 0.1), (23, 3.0)):
        for name in ("int8", "uint8"):
            yield {"x": x, "y_scale": _a(scale, "float32"), "y_zero_point": _a(1, name), "opset": opset}
    n = np.array([2**30, 2**30 - 1, -(2**30), 3 * 2**29], np.int32)
    yield {"x": n, "y_scale": np.asarray(2**31 - 1, np.int32), "y_zero_point": _a(1, "int8"), "opset": 21}
    for divisor in (2, 3, -(2**31), 2**31 - 1, 5):
        for opset in (19, 21, 23):
            s = np.asarray(divisor, np.int32)
            yield {"x": x, "y_scale": s, "y_zero_point": _a(1, "int8"), "opset": opset}
    for t in ("float16", "bfloat16"):
        odd = np.array([32785, 2**30 + 2**22 + 1, 2**24 + 2**16 + 1, 2**12 + 2 + 1, 2057], np.int32)
        x = np.concatenate([odd, -odd])
        for scale in (1, 512, 2.0**15 if t == "float16" else 2.0**20):
            for zero in (1, 2**15):
                yield {"x": x, "y_scale": _a(scale, t), "y_zero_point": _a(zero, "uint16"), "opset": 23}


@calls("onnx/QuantizeLinear", "granularity")
def _() -> Iterator[Arguments]:
    def f(*v: Any) -> Array:
        return _a(v, "float32")

    def u(*v: Any) -> Array:
        return _a(v, "uint8")

    x = _a(np.arange(6).reshape(2, 3) * 10, "float32")
    for opset in (13, 19, 21, 25):
        yield {"x": x, "y_scale": f(1, 2, 3), "y_zero_point": u(1, 2, 3), "opset": opset}
        yield {"x": x, "y_scale": f(1, 2), "y_zero_point": u(1, 2), "axis": 0, "opset": opset}
        yield {"x": x, "y_scale": f(1, 2), "y_zero_point": u(1, 2), "axis": -2, "opset": opset}
        yield {"x": x[0], "y_scale": f(1, 2, 3), "axis": 0, "opset": opset}
        yield {"x": x, "y_scale": f(2), "y_zero_point": u(1), "opset": opset}
        yield {"x": _a(9, "float32"), "y_scale": _a(2, "float32"), "opset": opset}
        yield {"x": x[:0], "y_scale": _a(2, "float32"), "opset": opset}
        yield {"x": x[:0], "y_scale": f(1, 2, 3), "opset": opset}
        cube = _a(np.arange(8).reshape(2, 2, 2), "float32")
        for axis in (0, 1, 2, -1, -3):
            yield {"x": cube, "y_scale": f(1, 0.5), "y_zero_point": u(0, 9), "axis": axis, "opset": opset}
    yield {"x": x, "y_scale": f(2), "opset": 10}


@calls("onnx/QuantizeLinear", "blocks")
def _() -> Iterator[Arguments]:
    x = _a(np.arange(14).reshape(2, 7) * 10, "float32")
    for block, n in ((1, 7), (2, 4), (3, 3), (4, 2), (6, 2), (7, 1), (20, 1)):
        s = _a(np.arange(1, 2 * n + 1).reshape(2, n), "float32")
        yield {"x": x, "y_scale": s, "block_size": block, "opset": 21}
        z = _a(np.arange(2 * n).reshape(2, n), "uint8")
        yield {"x": x, "y_scale": s, "y_zero_point": z, "block_size": block, "axis": -1, "opset": 25}
    s = _a(np.arange(1, 8).reshape(1, 7), "float32")
    yield {"x": x, "y_scale": s, "block_size": 2, "axis": 0, "opset": 21}
    yield {"x": x[0], "y_scale": _a([1, 2, 3], "float32"), "block_size": 3, "axis": 0, "opset": 21}
    yield {"x": x, "y_scale": _a(2, "float32"), "block_size": 3, "opset": 21}


@calls("onnx/QuantizeLinear", "output-type")
def _() -> Iterator[Arguments]:
    x, s = _a([0, 1, -1, 300, 2.5], "float32"), _a(1, "float32")
    yield {"x": x, "y_scale": s, "opset": 13}
    for name in (*_INTEGERS, *_FLOAT8, "float4_e2m1fn"):
        yield {"x": x, "y_scale": s, "output_dtype": name, "opset": 25}
        yield {"x": x, "y_scale": s, "output_dtype": name, "y_zero_point": _a(0, name), "opset": 25}


def _small(*, special: bool) -> Iterator[Arguments]:
    points = [0.0, -0.0, 1.0, 1.0625, 1.125, -1.1875, 2.0**-9, 2.0**-10, 3 * 2.0**-11, 2.0**-16, 2.0**-17, 1e-45]
    points += [224, 240, 248, 256, 448, 464, 479, 480, 487, 488, 495, 496, 512, 57344, 61440, 61441, 65535, 65536, 1e9]
    with_signs = _near(points + [-p for p in points], "float32")
    tail = _a([np.inf, -np.inf, np.nan, 3.4e38], "float32")
    for name in _FLOAT8:
        for opset in (19, 23):
            x = np.concatenate([with_signs, tail])
            more = {"saturate": 0} if special else {}
            yield {"x": x, "y_scale": _a(1, "float32"), "y_zero_point": _a(0, name), "opset": opset} | more
        x = _a([0, -0.0, 1.0625, 448, 464, 465, 480, 61440, 65504, np.inf, -np.inf, np.nan], "float16")
        yield {"x": x, "y_scale": _a(1, "float16"), "y_zero_point": _a(0, name), "opset": 19} | more
        yield {"x": x[:6], "y_scale": _a(0.3, "float16"), "y_zero_point": _a(0, name), "opset": 19} | more


@calls("onnx/QuantizeLinear", "float8-saturating")
def _() -> Iterator[Arguments]:
    yield from _small(special=False)


@calls("onnx/QuantizeLinear", "float8-not-saturating")
def _() -> Iterator[Arguments]:
    yield from _small(special=True)


@calls("onnx/QuantizeLinear", "float8-zero-point")
def _() -> Iterator[Arguments]:
    x = _a([0, -0.0, 1, -1, 2.0625, 100, -1e9], "float32")
    for name in _FLOAT8:
        for zero in (1.0, -2.0, 0.5):
            yield {"x": x, "y_scale": _a(1, "float32"), "y_zero_point": _a(zero, name), "opset": 19}


@calls("onnx/QuantizeLinear", "float4")
def _() -> Iterator[Arguments]:
    ties = _near([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, 7, 1e9], "float32")
    x = np.concatenate([ties, -ties, _a([0, -0.0, np.inf, -np.inf, np.nan], "float32")])
    for opset in (23, 25):
        yield {"x": x, "y_scale": _a(1, "float32"), "output_dtype": "float4_e2m1fn", "opset": opset}
        for zero in (0, 1, -0.5):
            z = _a(zero, "float4_e2m1fn")
            yield {"x": x, "y_scale": _a(1, "float32"), "y_zero_point": z, "opset": opset}
    z = _a([0, 1], "float4_e2m1fn")
    x = _a([[1, 2.5], [3.5, 5]], "float16")
    yield {"x": x, "y_scale": _a([0.3, 7], "float16"), "y_zero_point": z, "opset": 23}


@calls("onnx/QuantizeLinear", "types")
def _() -> Iterator[Arguments]:
    def at(opset: int, x: str = "float32", s: str = "float32", z: str = "int8", **more: Any) -> Arguments:
        return {
            "x": _a([1, 2], x),
            "y_scale": _a(1, s),
            "y_zero_point": _a(0, z),
            "opset": opset,
        } | more

    for opset in (10, 13, 19, 21, 23, 24, 25):
        for z in ("int8", "int16", "uint4", "int2", "float8_e5m2", "float4_e2m1fn", "int32"):
            yield at(opset, z=z)
        for x in ("float16", "bfloat16", "float64"):
            yield at(opset, x=x, s=x)
        for s in ("float16", "float64", "float8_e8m0fnu"):
            yield at(opset, s=s)
        yield at(opset, saturate=0)
        yield at(opset, axis=0)
        yield at(opset, output_dtype="int8")
        yield at(opset, output_dtype="uint8")
        yield at(opset, precision="float32")
    yield {"x": _a([1, 2], "float32"), "y_scale": _a(1, "float32"), "y_zero_point": _a(0, "int2")}


@calls("onnx/QuantizeLinear", "refused-shapes")
def _() -> Iterator[Arguments]:
    def f(*shape: int) -> Array:
        return np.ones(shape, np.float32)

    x = _a(np.arange(6).reshape(2, 3), "float32")
    bad: list[tuple[Array, Array, dict[str, int]]] = [
        (x, f(2), {}),
        (x, f(3), {"axis": 2}),
        (x, f(3), {"axis": -3}),
        (x[0], f(3), {}),
        (x, f(2, 3), {}),
        (x, f(2, 2), {"block_size": 3}),
        (x, f(2, 2), {"block_size": 1}),
        (x, f(3, 1), {"block_size": 3}),
        (x, f(3, 1), {"block_size": -1}),
        (x, f(2), {"block_size": 3, "axis": 0}),
    ]
    for value, s, more in bad:
        yield {"x": value, "y_scale": s, "opset": 21, **more}
    for opset in (13, 21):
        yield {"x": x, "y_scale": f(1, 1), "opset": opset}
    yield {"x": x, "y_scale": f(3), "opset": 10}
    yield {"x": x, "y_scale": f(3), "y_zero_point": np.asarray(1, np.uint8), "opset": 13}
    yield {"x": x, "y_scale": f(), "y_zero_point": np.ones(3, np.uint8), "opset": 21}


@calls("onnx/DequantizeLinear", "all-codes")
def _() -> Iterator[Arguments]:
    for name in _INTEGERS:
        low, high = _ends(name)
        codes = np.arange(low, high + 1) if high - low < 256 else np.array([low, low + 1, -1, 0, 1, 255, 257, high])  # noqa: PLR2004
        codes = codes[(codes >= low) & (codes <= high)]
        for zero in sorted({low, 1, high}):
            s, z = _a(0.1, "float32"), _a(zero, name)
            yield {"x": _a(codes, name), "x_scale": s, "x_zero_point": z, "opset": _since(name)}
        yield {"x": _a(codes, name), "x_scale": _a(-1.1, "float32"), "opset": 25}
    for name in (*_FLOAT8, "float4_e2m1fn"):
        codes = np.arange(16 if name == "float4_e2m1fn" else 256, dtype=np.uint8)
        yield {"x": codes.view(getattr(ml_dtypes, name)), "x_scale": _a(0.1, "float32"), "opset": 23}


@calls("onnx/DequantizeLinear", "int32")
def _() -> Iterator[Arguments]:
    x = np.array([2**31 - 1, -(2**31), 16777217, 33554435, 7, -7, 0], np.int32)
    for opset in (10, 13, 19, 23):
        yield {"x": x, "x_scale": _a(0.1, "float32"), "opset": opset}
        yield {"x": x, "x_scale": _a(0.1, "float32"), "x_zero_point": np.asarray(0, np.int32), "opset": opset}
    odd = np.array([2**24 + 2**16 + 1, 2**30 + 2**22 + 1], np.int32)  # two roundings, by float32, lose the last 1
    yield {"x": odd, "x_scale": _a(1, "bfloat16"), "opset": 19}


@calls("onnx/DequantizeLinear", "int32-zero-point")
def _() -> Iterator[Arguments]:
    x = np.array([2**31 - 1, -(2**31), 16777217, 33554435, 7, -7, 0], np.int32)
    for zero in (3, -3, 2**31 - 1):
        z = np.asarray(zero, np.int32)
        for dtype in ("float32", "float16", "bfloat16"):
            yield {"x": x, "x_scale": _a(0.1, dtype), "x_zero_point": z, "opset": 21}


@calls("onnx/DequantizeLinear", "output-type")
def _() -> Iterator[Arguments]:
    x = np.array([32767, -32768, 2049, 1, 0, 4097], np.int16)
    for scale in (0.1, 0.0013, 3.0):
        for st in ("float32", "float16", "bfloat16"):
            yield {"x": x, "x_scale": _a(scale, st), "x_zero_point": np.asarray(-32768, np.int16), "opset": 21}
            for to in ("float32", "float16", "bfloat16"):
                z = np.asarray(1, np.int16)
                yield {"x": x, "x_scale": _a(scale, st), "x_zero_point": z, "output_dtype": to, "opset": 23}
    # By way of float32 the float16 is another.
    x = np.array([-22635, -21352, -10676, -5338], np.int16)
    more = {"x_zero_point": np.asarray(0, np.int16), "output_dtype": "float16", "opset": 23}
    yield {"x": x, "x_scale": _a(0.7233046293258667, "float32"), **more}
    codes = np.array([0, 1, 128, 255], np.uint8)
    yield {"x": codes, "x_scale": _a(1e5, "float32"), "output_dtype": "float16", "opset": 23}
    for to in ("float32", "float16", "bfloat16"):
        s = _a([0.25, 2.0**20, 2.0**-30, 2.0**127], "float8_e8m0fnu")
        yield {"x": codes, "x_scale": s, "output_dtype": to, "axis": 0, "opset": 24}


@calls("onnx/DequantizeLinear", "special-scales")
def _() -> Iterator[Arguments]:
    x = np.array([0, 1, 2, 255], np.uint8)
    for scale in (0.0, -0.0, -0.1, np.inf, np.nan, 1e-45, 3e38):
        yield {"x": x, "x_scale": _a(scale, "float32"), "x_zero_point": np.asarray(1, np.uint8), "opset": 13}


@calls("onnx/DequantizeLinear", "float-zero-point")
def _() -> Iterator[Arguments]:
    for name in (*_FLOAT8, "float4_e2m1fn"):
        x = _a([0, -0.0, 1, -6, 0.5], name)
        for zero in (0.0, 1.0, 0.5, -2.0):
            yield {"x": x, "x_scale": _a(0.1, "float32"), "x_zero_point": _a(zero, name), "opset": 23}
        lists = {"x_scale": _a([0.1, 0.2], "float32"), "x_zero_point": _a([0, 1], name), "axis": 0}
        yield {"x": x[:2], "opset": 23} | lists


@calls("onnx/DequantizeLinear", "granularity")
def _() -> Iterator[Arguments]:
    x = np.arange(14, dtype=np.uint8).reshape(2, 7)
    for opset in (13, 19, 21, 25):
        for axis in (0, 1, -1, -2):
            n = x.shape[axis]
            s, z = _a(np.arange(1, n + 1), "float32"), _a(np.arange(n), "uint8")
            yield {"x": x, "x_scale": s, "x_zero_point": z, "axis": axis, "opset": opset}
        yield {"x": x, "x_scale": _a([2], "float32"), "x_zero_point": _a([1], "uint8"), "opset": opset}
        yield {"x": x[0, 0], "x_scale": _a(2, "float32"), "opset": opset}
    for block, n in ((1, 7), (2, 4), (3, 3), (4, 2), (6, 2), (20, 1)):
        s, z = _a(np.arange(1, 2 * n + 1).reshape(2, n), "float32"), _a(np.arange(2 * n).reshape(2, n), "uint8")
        yield {"x": x, "x_scale": s, "x_zero_point": z, "block_size": block, "opset": 21}
    yield {"x": x, "x_scale": _a(2, "float32"), "opset": 10}


@calls("onnx/DequantizeLinear", "types")
def _() -> Iterator[Arguments]:
    for opset in (10, 13, 19, 21, 23, 24, 25):
        for name in ("int8", "int32", "int16", "uint4", "int2", "float8_e5m2", "float4_e2m1fn", "int64"):
            yield {"x": _a([1, 0], name), "x_scale": _a(1, "float32"), "opset": opset}
        for st in ("float16", "bfloat16", "float64", "float8_e8m0fnu"):
            yield {"x": _a([1, 2], "int8"), "x_scale": _a(1, st), "opset": opset}
        more: list[dict[str, Any]] = [{"axis": 0}, {"output_dtype": "float16"}, {"output_dtype": "float32"}]
        for attribute in more:
            yield {"x": _a([1, 2], "int8"), "x_scale": _a(1, "float32"), "opset": opset, **attribute}
    yield {"x": _a([1, 2], "int8"), "x_scale": _a(1, "float32"), "x_zero_point": _a(1, "uint8"), "opset": 21}
    yield {"x": _a([1, 0], "int2"), "x_scale": _a(1, "float32")}


@calls("onnx/DequantizeLinear", "block-size-of-one-scale")
def _() -> Iterator[Arguments]:
    x = np.arange(6, dtype=np.uint8).reshape(2, 3)
    yield {"x": x, "x_scale": np.ones((), np.float32), "opset": 21, "block_size": 2}


@calls("onnx/DequantizeLinear", "refused-shapes")
def _() -> Iterator[Arguments]:
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
