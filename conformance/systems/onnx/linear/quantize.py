"""What ONNX requires of QuantizeLinear, by calls, and of both operators as operations."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, documented, measured, on, says, silent
from halfeven.reference.blocks import Array

__all__ = ["FLOAT8", "INTEGERS", "array", "ends_of", "since"]

on(
    "onnx",
    says(
        "nearest-code",
        "The input divided by y_scale is rounded to the nearest integer; a tie goes to the even one.",
        "QuantizeLinear: description of the rounding",
    ),
    says(
        "zero-point-after-rounding",
        "y_zero_point is added to the rounded quotient.",
        "QuantizeLinear: it is (x / y_scale) that is rounded",
    ),
    says(
        "saturation",
        "The sum saturates to the range of the output type.",
        "QuantizeLinear: description of the saturation, by type",
    ),
    says(
        "huge-inputs",
        "Inputs however large, and the infinities, saturate to the end of the range on their side.",
        "QuantizeLinear: description of the saturation",
    ),
    says("dequantized-value", "A code becomes (x - x_zero_point) * x_scale.", "DequantizeLinear: equation"),
)


FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2")
_TAIL = (np.inf, -np.inf, 3.4e38, -3.4e38, 2.0**31, -(2.0**31), 2.0**31 - 128, 2.0**63, 1e-45, 0.0, -0.0)


def array(values: Any, dtype: str) -> Array:
    """The array of ``values`` in a dtype of NumPy or ml_dtypes."""
    return np.asarray(values, np.float64).astype(getattr(ml_dtypes, dtype, dtype))


def ends_of(name: str) -> tuple[int, int]:
    """The lowest and the highest code of an integer dtype."""
    bits = int(name.lstrip("uint"))
    return (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def since(name: str) -> int:
    """The first opset with an output of a dtype."""
    return 10 if name in ("int8", "uint8") else 25 if name.endswith("int2") else 21


def _near(values: Any, dtype: str) -> Array:
    """The numbers and their neighbours."""
    a = np.ravel(array(values, dtype))
    if dtype == "bfloat16":
        bits = a.view(np.int16)
        return np.concatenate([a, (bits + 1).view(a.dtype), (bits - 1).view(a.dtype)])
    with np.errstate(all="ignore"):
        return np.concatenate([a, np.nextafter(a, a.dtype.type(np.inf)), np.nextafter(a, a.dtype.type(-np.inf))])


@documented(
    "onnx/QuantizeLinear",
    "QuantizeLinear, opsets 10 to 25: equation, and the sentence on rounding",
    aspect="round-then-add",
)
def quantized_ties() -> Calls:
    """The quotient of x and y_scale is rounded to the nearest integer, a tie to the even one, and y_zero_point is added
    after that."""
    for name in INTEGERS:
        low, high = ends_of(name)
        for zero in sorted({low, low + 1, 0, high}):
            inner = np.unique(np.clip(np.arange(-9, 9), low - zero - 1, high - zero + 1))
            for scale in (1.0, 0.3):
                x = _near((inner + 0.5) * scale, "float32")
                s, z = array(scale, "float32"), array(zero, name)
                yield {"x": x, "y_scale": s, "y_zero_point": z, "opset": since(name)}
    yield {"x": array([2.5, 3.5, -2.5], "float32"), "y_scale": array(1, "float32"), "opset": 10}


@documented("onnx/QuantizeLinear", "QuantizeLinear, opset 25: list of the ranges")
def saturation() -> Calls:
    """The sum saturates to the whole range of the output type, of 2, 4, 8 or 16 bits."""
    for name in INTEGERS:
        low, high = ends_of(name)
        for zero in sorted({low, 1, high}):
            edges = np.array([low - zero, high - zero])
            x = _near(np.concatenate([edges + h for h in (-1.5, -0.5, 0.5, 1.5)]), "float32")
            yield {"x": x, "y_scale": array(1, "float32"), "y_zero_point": array(zero, name), "opset": 25}


@documented("onnx/QuantizeLinear", "QuantizeLinear, opsets 10 to 25: saturation", aspect="huge-inputs")
def huge() -> Calls:
    """Quotients however large, and infinities, saturate on their side whatever the zero point is."""
    for name in INTEGERS:
        for zero in sorted({ends_of(name)[0], 0, 1}):
            for dtype in ("float32", "float16", "bfloat16"):
                x, s = array(_TAIL, dtype), array(1, dtype)
                if dtype == "float16":
                    s = array([2.0**-10], dtype)
                yield {"x": x, "y_scale": s, "y_zero_point": array(zero, name), "opset": 25} | (
                    {"y_zero_point": array([zero], name)} if dtype == "float16" else {}
                )
    x = array([[np.inf, 3e9, -np.inf], [2.0**31, np.inf, 1], [-np.inf, 3e9, np.inf]], "float32")
    for name in ("int4", "uint4"):
        z = np.arange(3).astype(array(0, name).dtype)
        for axis in (0, 1):
            s = np.ones(3, np.float32)
            yield {"x": x, "y_scale": s, "y_zero_point": z, "axis": axis, "opset": 21}
        s, z = np.ones((3, 2), np.float32), np.zeros((3, 2), z.dtype)
        yield {"x": x, "y_scale": s, "y_zero_point": z, "block_size": 2, "opset": 21}
    # Sums that int32 wraps, and quotients that it would wrap to a code.
    for big, z in ((2.0**31 - 128, np.asarray(255, np.uint8)), (2.0**32 - 256, np.asarray(0, np.int16))):
        yield {"x": array([big, -big], "float32"), "y_scale": array(1, "float32"), "y_zero_point": z, "opset": 21}
    for scale in (0.0, -0.0, 1e-45, np.inf, -1.0):
        x = array([1, -1, 2.5, 1e-45, 3.4e38], "float32")
        yield {"x": x, "y_scale": array(scale, "float32"), "y_zero_point": array(2, "int8"), "opset": 13}


@silent("onnx/QuantizeLinear", "QuantizeLinear says nothing of NaN")
def nan() -> Calls:
    """What code NaN becomes; the document does not say."""
    for name in INTEGERS:
        for zero in sorted({ends_of(name)[0], 0, 1}):
            x, s = array([np.nan, 1, np.inf], "float32"), array(np.nan, "float32")
            yield {"x": x, "y_scale": array(1, "float32"), "y_zero_point": array(zero, name), "opset": 25}
            yield {"x": x, "y_scale": s, "y_zero_point": array(zero, name), "opset": 25}
    x = array([0, np.nan, np.inf], "float16")
    yield {"x": x, "y_scale": array(0, "float16"), "y_zero_point": array(1, "uint8"), "opset": 19}


@documented(
    "onnx/QuantizeLinear",
    "QuantizeLinear, opset 23: sentence on the precision of the division, and attribute precision",
    aspect="precision",
)
def division() -> Calls:
    """The division is rounded in the type of y_scale, or in the type that precision names."""
    x = [0.25, 1000, 1 / 3, 2.5, -3e4, 65504, 0.15, 100.05, 4.6]
    for dtype in ("float16", "bfloat16"):
        for opset in (19, 21, 25):
            yield {
                "x": array(x, dtype),
                "y_scale": array(0.1, dtype),
                "y_zero_point": array(3, "uint8"),
                "opset": opset,
            }
    for xt in ("float32", "float16", "bfloat16", "int32"):
        for st in ("float32", "float16", "bfloat16", "int32"):
            s, z = array(0.1 if st != "int32" else 3, st), array(3, "int8")
            yield {"x": array(x, xt), "y_scale": s, "y_zero_point": z, "opset": 23}
    for xt in ("float32", "float16", "bfloat16"):
        yield {
            "x": array(x, xt),
            "y_scale": array(0.125, "float8_e8m0fnu"),
            "y_zero_point": array(3, "uint8"),
            "opset": 24,
        }
    # A quotient next to a tie, which float32 rounds to it.
    x32, s = np.array([20480257, -20480257], np.int32), array(512, "float8_e8m0fnu")
    yield {"x": x32, "y_scale": s, "y_zero_point": array(0, "uint16"), "opset": 24}
    for precision in ("float32", "float16", "bfloat16", "float64"):
        for dtype in ("float32", "float16"):
            s, z = array(0.1, dtype), array(3, "uint8")
            yield {"x": array(x, dtype), "y_scale": s, "y_zero_point": z, "precision": precision, "opset": 23}


@measured(
    "onnx/QuantizeLinear", "QuantizeLinear, opset 23: type of y_scale; for an int32 scale onnx 1.23.0: onnx.reference"
)
def int32() -> Calls:
    """An int32 input is divided in the type of y_scale; an int32 scale divides as if over the reals."""
    x = np.array([16777217, 2**31 - 1, -(2**31), 3 * 2**24 + 1, 7, -5, 0, 2**23 + 1], np.int32)
    for opset, scale in ((10, 2.0**25), (13, 2.0**24), (23, 0.1), (23, 3.0)):
        for name in ("int8", "uint8"):
            yield {"x": x, "y_scale": array(scale, "float32"), "y_zero_point": array(1, name), "opset": opset}
    n = np.array([2**30, 2**30 - 1, -(2**30), 3 * 2**29], np.int32)
    yield {"x": n, "y_scale": np.asarray(2**31 - 1, np.int32), "y_zero_point": array(1, "int8"), "opset": 21}
    for divisor in (2, 3, -(2**31), 2**31 - 1, 5):
        for opset in (19, 21, 23):
            s = np.asarray(divisor, np.int32)
            yield {"x": x, "y_scale": s, "y_zero_point": array(1, "int8"), "opset": opset}
    for t in ("float16", "bfloat16"):
        odd = np.array([32785, 2**30 + 2**22 + 1, 2**24 + 2**16 + 1, 2**12 + 2 + 1, 2057], np.int32)
        x = np.concatenate([odd, -odd])
        for scale in (1, 512, 2.0**15 if t == "float16" else 2.0**20):
            for zero in (1, 2**15):
                yield {"x": x, "y_scale": array(scale, t), "y_zero_point": array(zero, "uint16"), "opset": 23}


@documented("onnx/QuantizeLinear", "QuantizeLinear, opsets 13 and 21: granularities, and attribute axis")
def granularity() -> Calls:
    """A scalar scale serves the tensor, a list of scales has one per index along axis, which is 1 by default and may be
    negative."""

    def f(*v: Any) -> Array:
        return array(v, "float32")

    def u(*v: Any) -> Array:
        return array(v, "uint8")

    x = array(np.arange(6).reshape(2, 3) * 10, "float32")
    for opset in (13, 19, 21, 25):
        yield {"x": x, "y_scale": f(1, 2, 3), "y_zero_point": u(1, 2, 3), "opset": opset}
        yield {"x": x, "y_scale": f(1, 2), "y_zero_point": u(1, 2), "axis": 0, "opset": opset}
        yield {"x": x, "y_scale": f(1, 2), "y_zero_point": u(1, 2), "axis": -2, "opset": opset}
        yield {"x": x[0], "y_scale": f(1, 2, 3), "axis": 0, "opset": opset}
        yield {"x": x, "y_scale": f(2), "y_zero_point": u(1), "opset": opset}
        yield {"x": array(9, "float32"), "y_scale": array(2, "float32"), "opset": opset}
        yield {"x": array(9, "float32"), "y_scale": f(2), "opset": opset}
        yield {"x": x[:0], "y_scale": array(2, "float32"), "opset": opset}
        yield {"x": x[:0], "y_scale": f(1, 2, 3), "opset": opset}
        cube = array(np.arange(8).reshape(2, 2, 2), "float32")
        for axis in (0, 1, 2, -1, -3):
            yield {"x": cube, "y_scale": f(1, 0.5), "y_zero_point": u(0, 9), "axis": axis, "opset": opset}
    yield {"x": x, "y_scale": f(2), "opset": 10}
    # Every type of code along axes counted from the end; a float8 zero point that is not 0 is another requirement's.
    for name in (*INTEGERS[:1], *INTEGERS[2:], *FLOAT8, "float4_e2m1fn"):
        for axis in (-1, -3):
            z = array([0, 0 if name in FLOAT8 else 1], name)
            yield {"x": cube, "y_scale": f(4, 2.2), "y_zero_point": z, "axis": axis, "opset": 25}


@documented("onnx/QuantizeLinear", "QuantizeLinear, opset 21: blocked quantization, and attribute block_size")
def blocks() -> Calls:
    """Blocks of block_size along axis have one scale each, and the last may be shorter."""
    x = array(np.arange(14).reshape(2, 7) * 10, "float32")
    for block, n in ((1, 7), (2, 4), (3, 3), (4, 2), (6, 2), (7, 1), (20, 1)):
        s = array(np.arange(1, 2 * n + 1).reshape(2, n), "float32")
        yield {"x": x, "y_scale": s, "block_size": block, "opset": 21}
        z = array(np.arange(2 * n).reshape(2, n), "uint8")
        yield {"x": x, "y_scale": s, "y_zero_point": z, "block_size": block, "axis": -1, "opset": 25}
    s = array(np.arange(1, 8).reshape(1, 7), "float32")
    yield {"x": x, "y_scale": s, "block_size": 2, "axis": 0, "opset": 21}
    yield {"x": x[0], "y_scale": array([1, 2, 3], "float32"), "block_size": 3, "axis": 0, "opset": 21}
    yield {"x": x, "y_scale": array(2, "float32"), "block_size": 3, "opset": 21}


@documented("onnx/QuantizeLinear", "QuantizeLinear, opset 21: attribute output_dtype")
def output_type() -> Calls:
    """The output has the type of y_zero_point, else of output_dtype, else uint8."""
    x, s = array([0, 1, -1, 300, 2.5], "float32"), array(1, "float32")
    yield {"x": x, "y_scale": s, "opset": 13}
    for name in (*INTEGERS, *FLOAT8, "float4_e2m1fn"):
        yield {"x": x, "y_scale": s, "output_dtype": name, "opset": 25}
        yield {"x": x, "y_scale": s, "output_dtype": name, "y_zero_point": array(0, name), "opset": 25}


def _small(*, special: bool) -> Iterator[Arguments]:
    points = [0.0, -0.0, 1.0, 1.0625, 1.125, -1.1875, 2.0**-9, 2.0**-10, 3 * 2.0**-11, 2.0**-16, 2.0**-17, 1e-45]
    points += [224, 240, 248, 256, 448, 464, 479, 480, 487, 488, 495, 496, 512, 57344, 61440, 61441, 65535, 65536, 1e9]
    with_signs = _near(points + [-p for p in points], "float32")
    tail = array([np.inf, -np.inf, np.nan, 3.4e38], "float32")
    for name in FLOAT8:
        for opset in (19, 23):
            x = np.concatenate([with_signs, tail])
            more = {"saturate": 0} if special else {}
            yield {"x": x, "y_scale": array(1, "float32"), "y_zero_point": array(0, name), "opset": opset} | more
        x = array([0, -0.0, 1.0625, 448, 464, 465, 480, 61440, 65504, np.inf, -np.inf, np.nan], "float16")
        yield {"x": x, "y_scale": array(1, "float16"), "y_zero_point": array(0, name), "opset": 19} | more
        yield {"x": x[:6], "y_scale": array(0.3, "float16"), "y_zero_point": array(0, name), "opset": 19} | more


@documented("onnx/QuantizeLinear", "QuantizeLinear, opset 19: attribute saturate; Cast, opset 19: first table")
def float8_saturating() -> Calls:
    """By default a number that rounds beyond the largest float8 becomes the largest; an infinity does so in e4m3fn and
    e5m2 and becomes NaN in the fnuz types; -0 stays where the type has it."""
    yield from _small(special=False)


@documented("onnx/QuantizeLinear", "QuantizeLinear, opset 19: attribute saturate; Cast, opset 19: second table")
def float8_not_saturating() -> Calls:
    """With saturate=0 a number that rounds beyond the largest float8 becomes an infinity in e5m2 and NaN in the other
    types."""
    yield from _small(special=True)


@documented("onnx/QuantizeLinear", "QuantizeLinear, opset 19: the equation holds for float8 too")
def float8_zero_point() -> Calls:
    """A float8 zero point is added to the quotient before it is rounded to float8."""
    x = array([0, -0.0, 1, -1, 2.0625, 100, -1e9], "float32")
    for name in FLOAT8:
        for zero in (1.0, -2.0, 0.5):
            yield {"x": x, "y_scale": array(1, "float32"), "y_zero_point": array(zero, name), "opset": 19}


@measured("onnx/QuantizeLinear", "QuantizeLinear, opset 23: output type float4e2m1; NaN: onnx 1.23.0, onnx.reference")
def float4() -> Calls:
    """float4e2m1 takes the nearest number, a tie the even code, and saturates; its zero point is added first; NaN
    becomes -0."""
    ties = _near([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, 7, 1e9], "float32")
    x = np.concatenate([ties, -ties, array([0, -0.0, np.inf, -np.inf, np.nan], "float32")])
    for opset in (23, 25):
        yield {"x": x, "y_scale": array(1, "float32"), "output_dtype": "float4_e2m1fn", "opset": opset}
        for zero in (0, 1, -0.5):
            z = array(zero, "float4_e2m1fn")
            yield {"x": x, "y_scale": array(1, "float32"), "y_zero_point": z, "opset": opset}
    z = array([0, 1], "float4_e2m1fn")
    x = array([[1, 2.5], [3.5, 5]], "float16")
    yield {"x": x, "y_scale": array([0.3, 7], "float16"), "y_zero_point": z, "opset": 23}


@documented(
    "onnx/QuantizeLinear",
    "QuantizeLinear, opsets 10, 13, 19, 21, 23, 24, 25: type constraints and attributes",
    aspect="types-by-opset",
)
def types() -> Calls:
    """Each opset accepts its own types and attributes and refuses others: x and y_scale of one type before 23,
    output_dtype that agrees with y_zero_point."""

    def at(opset: int, x: str = "float32", s: str = "float32", z: str = "int8", **more: Any) -> Arguments:
        return {
            "x": array([1, 2], x),
            "y_scale": array(1, s),
            "y_zero_point": array(0, z),
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
    yield at(19, block_size=2)
    yield {"x": array([1, 2], "float32"), "y_scale": array(1, "float32"), "y_zero_point": array(0, "int2")}


@documented(
    "onnx/QuantizeLinear",
    "QuantizeLinear, opsets 10, 13 and 21: shapes of y_scale and y_zero_point, attributes axis and block_size",
    aspect="shapes",
)
def refused_shapes() -> Calls:
    """Scales of another shape, a zero point of another shape than the scale, an axis outside the rank and a block size
    outside its range are refused."""

    def f(*shape: int) -> Array:
        return np.ones(shape, np.float32)

    x = array(np.arange(6).reshape(2, 3), "float32")
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
        (x, f(2, 3), {"block_size": 0}),
        (x, f(2), {"block_size": 3, "axis": 0}),
        (x, f(1, 3), {}),
        (x, f(3), {"block_size": 2}),
    ]
    for value, s, more in bad:
        yield {"x": value, "y_scale": s, "opset": 21, **more}
    for opset in (13, 21):
        yield {"x": x, "y_scale": f(1, 1), "opset": opset}
    yield {"x": x, "y_scale": f(3), "opset": 10}
    yield {"x": x, "y_scale": f(3), "y_zero_point": np.asarray(1, np.uint8), "opset": 13}
    yield {"x": x, "y_scale": f(), "y_zero_point": np.ones(3, np.uint8), "opset": 21}
