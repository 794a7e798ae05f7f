"""ONNX: ``QuantizeLinear`` and ``DequantizeLinear``. Real per code, x̂ = (q - zero_point) * scale."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfeven.reference.behaviour import choice, roundings
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.minifloat import encode
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.readings import Readings
from halfeven.reference.rounding import ROUNDINGS, cast_once
from halfeven.reference.systems.onnx.opsets import (
    DEQUANTIZE_TYPES,
    FLOAT4,
    FLOAT8,
    PRECISIONS,
    QUANTIZE_TYPES,
    Fitting,
    accept,
    along,
    dtype_of,
    fitted,
    in_dtype,
    output_type,
)

__all__ = [
    "ONNX",
    "ONNXRUNTIME_1_31",
    "ONNX_REFERENCE_1_23",
    "DequantizeLinear",
    "QuantizeLinear",
    "dequantize_linear",
    "quantize_linear",
]

MODEL = EvaluationModel(integer="exact", subtract="exact", product="float64")
_PRECISION = (
    "DequantizeLinear: the output type determines the precision of the multiplication; whether its operands are rounded"
    " to it, the document does not say"
)
_DIVISION = "QuantizeLinear: only from opset 23 on the document says in which precision it divides"


@dataclass(frozen=True)
class QuantizeLinear(Fitting):
    """The choices in quantizing. What ONNX Runtime does, it does where it has a kernel: see ``_SINGLE``."""

    precision: str = choice(
        {
            "stated": "divides in the type of the scale, or in the one that precision names",
            "float32": "divides float32 and float16 in float32, whatever precision says",
            "since-23": "divides float32 and float16 in float32 before opset 23, the first that states a precision",
            "promoted": "divides in the type that NumPy promotes both operands to, unless precision names one",
        }
    )
    division: str = choice(
        {
            "divide": "divides by the scale",
            "reciprocal": "multiplies by the rounded reciprocal of the scale",
        }
    )
    rounding: str = roundings("the quotient")
    zero_point: str = choice(
        {
            "after-rounding": "adds an integer zero point after rounding",
            "before-rounding": "adds an integer zero point before rounding",
        }
    )
    sum: str = choice(
        {
            "exact": "adds an integer zero point without bound",
            "int32": "casts the rounded quotient to int32, and lets the sum with the zero point wrap",
            "int32-in-part": (
                "casts the rounded quotient to int32 and lets the sum wrap for float16, for 2-bit codes, and for 4-bit "
                "codes that share a byte with none of the same scale"
            ),
        }
    )
    nan: str = choice(
        {
            "qmin": "gives NaN the lowest code, as ONNX Runtime does: the document does not speak of it",
            "zero": "gives NaN the code 0",
            "zero-point": "gives NaN the zero point",
            "qmax": "gives NaN the highest code",
        }
    )
    overflow: str = choice(
        {
            "saturate": "saturates what is beyond the output type",
            "wrap": "wraps what is beyond the output type",
        }
    )
    float8_infinity: str = choice(
        {
            "by-type": "makes an infinity the largest float8, and NaN in the fnuz types, where numbers saturate",
            "largest": "makes an infinity the largest float8 of every type, where numbers saturate",
        }
    )
    float8_beyond: str = choice(
        {
            "rounded": "decides by the rounded number whether it is beyond float8, where numbers do not saturate",
            "cut": "makes 448 of [480, 496) in e4m3fn and NaN of [61440, 65536) in e5m2, where numbers do not saturate",
        }
    )
    float8_zero_point: str = choice(
        {
            "added": "adds a float8 zero point before rounding to float8",
            "ignored": "adds no float8 zero point",
        }
    )
    float_zero: str = choice(
        {
            "left-out": "adds no float zero point of zero, so that -0 stays -0",
            "added": "adds a float zero point of zero too, which makes 0 of -0",
        }
    )


@dataclass(frozen=True)
class DequantizeLinear(Fitting):
    """The choices in dequantizing."""

    difference: str = choice(
        {
            "exact": "subtracts the zero point exactly",
            "output": "rounds code and zero point to the output's type before it subtracts",
            "int32": "subtracts in an int32 that wraps, for scales and outputs of float32 and float16",
            "float32": "rounds code and zero point to float32 before it subtracts, but an int32 zero point to float64",
        }
    )
    product: str = choice(
        {
            "once": "multiplies the exact difference by the scale and rounds once, to the output's type",
            "output": "rounds difference and scale to the output's type and multiplies there",
            "float32": "multiplies in float32, and rounds to an output of float16 last",
            "promoted": "multiplies in the type that NumPy promotes both operands to, and rounds to the output's last",
        }
    )
    float_zero_point: str = choice(
        {
            "subtracted": "subtracts a zero point of float8 or float4 like any other",
            "refused": "refuses a float8 zero point other than zero",
            "ignored": "subtracts no zero point of float8 or float4, and refuses a float8 one of magnitude 1 or more",
        }
    )


def _quotient(b: QuantizeLinear, x: Array, s: Array, precision: str | None, opset: int, *, single: bool) -> Array:
    if single and (b.precision == "float32" or (b.precision == "since-23" and opset < 23)):  # noqa: PLR2004 - the opset
        x, s = x.astype(np.float32), s.astype(np.float32)
    elif precision or b.precision != "promoted":
        scales = {"float8_e8m0fnu": "float32", "int32": "float64"}
        t = precision or scales.get(s.dtype.name, s.dtype.name)
        x, s = in_dtype(x, t), in_dtype(s, t)
    if b.division == "divide":
        divided: Array = x / s
        return divided
    product: Array = x * (1 / s)
    return product


def _codes(b: QuantizeLinear, v: Array, z: Array, grid: Grid, wraps: Array | bool) -> Array:
    """The codes of quotients, as float64; NaN stays. The zero point is an integer, and so the sum is exact."""
    z = z.astype(np.float64)
    round_, before = ROUNDINGS[b.rounding], b.zero_point == "before-rounding"
    y = round_(v + z.astype(v.dtype)).astype(np.float64) if before else round_(v).astype(np.float64)
    total = y if before else y + z
    int32 = np.where(np.abs(y) < 2.0**31, y, -(2.0**31)) + (0 if before else z)
    total = np.where(wraps, (int32 + 2.0**31) % 2.0**32 - 2.0**31, total)
    if b.overflow == "wrap":
        total = np.where(np.isfinite(total), (total - grid.qmin) % (grid.num_steps + 1) + grid.qmin, total)
    return np.where(total < grid.qmin, float(grid.qmin), np.where(total > grid.qmax, float(grid.qmax), total))


def _reals(b: DequantizeLinear, x: Array, s: Array, z: Array | None, to: str, *, single: bool = False) -> Array:
    """The reals of codes, in the type ``to``; without a zero point as with zero."""
    match b.difference:
        case "float32":
            d: Array = x.astype(np.float32)
            if z is not None:
                d = d - z.astype(np.float64 if x.dtype == np.int32 else np.float32)
        case "output":
            d = in_dtype(x, to) - in_dtype(np.zeros((), x.dtype) if z is None else z, to)
        case kind:
            d = x.astype(np.float64) - (0 if z is None else z.astype(np.float64))
            if kind == "int32" and single and x.dtype == np.int32:
                d = (d + 2.0**31) % 2.0**32 - 2.0**31
    if b.product == "float32" and single:
        return (d.astype(np.float32) * s.astype(np.float32)).astype(dtype_of(to))
    if b.product in {"once", "float32"} and d.dtype == np.float64:  # what the release does not offer is as documented
        return _rounded_product(d, s, dtype_of(to))
    if b.product == "promoted":
        y: Array = d * s.astype(np.float32)
        return y.astype(dtype_of(to))
    return np.asarray(in_dtype(d, to) * in_dtype(s, to))


def _rounded_product(d: Array, s: Array, dtype: "np.dtype[Any]") -> Array:
    """``d * s``, of up to 33 and 24 bits, rounded once.

    The products with the halves of ``d`` are exact in float64, and so is their sum but for a last bit that is made odd.
    """
    wide = s.astype(np.float64)
    high = np.where(np.isfinite(d), np.trunc(d / 2.0**16) * 2.0**16, d)
    low = np.where(np.isfinite(d), d - high, 0)
    first, second = high * wide, np.where(low == 0, 0, low * wide)
    total = np.where((low == 0) | ~np.isfinite(wide), d * wide, first + second)
    back = total - first
    error = (first - (total - back)) + (second - back)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & np.isfinite(error) & (error != 0) & (low != 0) & (bits & 1 == 0)
    odd = np.where(inexact, bits + np.where((error > 0) == (total > 0), 1, -1), bits).view(np.float64)
    return cast_once(odd, dtype)


ONNX = Profile(
    name="onnx",
    title="saturate(round(x / s) + zero_point); (q - zero_point) * s",
    source="ONNX: operators QuantizeLinear and DequantizeLinear, opset 25",
    model=MODEL,
    dtypes=("float32", "float16", "bfloat16"),
    scale_dtype="input",
    grids=tuple(Grid.from_bitwidth(b, signed=s) for b in (8, 4, 16, 2) for s in (True, False)),
    partial_blocks=True,
    readings=Readings(
        f"{_DIVISION}; {_PRECISION}",
        (
            replace(MODEL, compute="float32"),
            *(replace(MODEL, product="output", compute=c) for c in ("input", "float32")),
        ),
    ),
)

ONNXRUNTIME_1_31 = replace(
    ONNX,
    name="onnx@onnxruntime-1.31",
    title="as onnx, and the code of NaN is qmin; float32",
    source="ONNX Runtime 1.31.0, measured on the CPU in float32",
    model=replace(MODEL, nan="qmin"),
    dtypes=("float32",),
    readings=None,
)

ONNX_REFERENCE_1_23 = replace(
    ONNX,
    name="onnx@reference-1.23",
    title="as onnx, but the rounded quotient is cast to int32 before the zero point is added; float32",
    source="onnx 1.23.0: onnx.reference, measured in float32",
    model=replace(MODEL, integer="int32"),
    dtypes=("float32",),
    readings=None,
)

# The documented signatures.


def _arguments(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    s, attributes = along(scale, x.shape, block_size)
    z, _ = along(zero.astype(dtype_of(str(grid))), x.shape, block_size)
    return {"x": x, "y_scale": s, "y_zero_point": z} | attributes


def _dequantize_arguments(
    q: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, dtype: "np.dtype[Any]"
) -> dict[str, Any]:
    s, attributes = along(scale, q.shape, block_size)
    z, _ = along(zero.astype(dtype_of(str(grid))), q.shape, block_size)
    given = {"x": q.astype(dtype_of(str(grid))), "x_scale": s, "x_zero_point": z, "output_dtype": dtype.name}
    return given | attributes


#: The floats that ONNX Runtime has kernels for, without float4; what it does with others its point does not say.
_SINGLE = {"float32", "float16"}
_RUNTIME, _EVALUATOR = (
    "ONNX Runtime 1.31.0, measured on the CPU",
    "onnx 1.23.0: onnx.checker and onnx.reference, measured",
)


@formula(
    "onnx/QuantizeLinear",
    equation=r"y = \mathrm{saturate}(\lceil x / y_{scale} \rfloor + y_{zero\_point})",
    basis=AsComputed(dtype="the scale's, or precision's, for the division; exact for the sum of integers"),
    source="ONNX operator QuantizeLinear, opsets 10, 13, 19, 21, 23, 24, 25; Cast, opset 19: the tables of float8",
    behaviour=QuantizeLinear(),
    versions={
        "onnxruntime-1.31": (
            QuantizeLinear(
                lists_since=10,
                one_scale="no-block-size",
                precision="float32",
                sum="int32-in-part",
                float8_infinity="largest",
                float8_beyond="cut",
                float8_zero_point="ignored",
            ),
            _RUNTIME,
        ),
        "onnxruntime-1.32": (
            QuantizeLinear(
                lists_since=10,
                one_scale="no-block-size",
                precision="since-23",
                float8_infinity="largest",
                float8_beyond="cut",
                float8_zero_point="ignored",
            ),
            "ONNX Runtime 1.32.0, measured on the CPU",
        ),
        "reference-1.23": (
            QuantizeLinear(
                shapes="lenient",
                precision="promoted",
                sum="int32",
                float8_infinity="largest",
                float8_zero_point="ignored",
                float_zero="added",
            ),
            _EVALUATOR,
        ),
    },
    affine=AffineView("onnx", "quantize", _arguments),
    readings=Readings(_DIVISION, (QuantizeLinear(precision="since-23"),)),
)
def quantize_linear(
    b: QuantizeLinear,
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    axis: int | None = None,
    block_size: int | None = None,
    saturate: int | None = None,
    precision: str | None = None,
    output_dtype: str | None = None,
    opset: int = 25,
) -> Array:
    """Codes of ``x``, or small floats. An attribute of None is not set.

    The division is rounded in ``precision``, else in the scale's type; in float32 with e8m0, and exactly enough
    with an int32 scale (measured). The document says nothing of NaN: in integers it is qmin, as ONNX Runtime has it,
    and in float4, which has no NaN, -0. A float zero point
    of zero is not added, so that -0 stays -0.

    Args:
        x: reals or int32, any shape.
        y_scale: real per code: a scalar, one per index along ``axis``, or one per block along it.
        y_zero_point: in the output's type and the scale's shape; without it ``output_dtype``, else uint8.
        axis: -r to r - 1, by default 1.
        block_size: elements per block along ``axis``.
        saturate: what float8 makes of a number beyond its largest: the largest (1, the default), else infinity or NaN.
        precision: one of ``PRECISIONS``.
        output_dtype: the name of a dtype, such as "int4" or "float8_e5m2".
        opset: 10, 13, 19, 21, 23, 24 or 25.

    Raises:
        TypeError: a type or an attribute that the opset does not have; zero point and output of two types.
        ValueError: no such opset; or the parameters do not fit ``x``.
    """
    to = output_type(y_zero_point, output_dtype, "uint8")
    given: dict[str, int | str | None] = {"axis": axis, "block_size": block_size, "saturate": saturate}
    given |= {"precision": precision, "output_dtype": output_dtype}
    accept(QUANTIZE_TYPES, opset, {"real": x.dtype.name, "scale": y_scale.dtype.name, "code": to}, given)
    if precision not in (None, *PRECISIONS) or (x.dtype != y_scale.dtype and opset in (19, 21)):
        msg = f"x of {x.dtype.name}, y_scale of {y_scale.dtype.name}, precision={precision!r} are not accepted: "
        msg += f"give one type before opset 23, and a precision of {PRECISIONS}"
        raise TypeError(msg)
    zero = np.zeros(y_scale.shape, dtype_of(to)) if y_zero_point is None else y_zero_point
    s, z = fitted(b, y_scale, zero, x.shape, axis, block_size, opset)
    single = x.dtype == y_scale.dtype and x.dtype.name in _SINGLE and to != FLOAT4
    with np.errstate(all="ignore"):
        v = _quotient(b, x, s, precision, opset, single=single)
        if to in (*FLOAT8, FLOAT4):
            if y_zero_point is not None and (to == FLOAT4 or b.float8_zero_point == "added"):
                zf = z.astype(np.float32).astype(v.dtype)
                v = v + zf if b.float_zero == "added" else np.where(zf == 0, v, v + zf)
            return _small(b, v, to, saturates=saturate != 0)
        grid = Grid.from_dtype(dtype_of(to))
        wraps: Array | bool = b.sum == "int32"
        if b.sum == "int32-in-part" and single:
            owner = fitted(b, np.arange(y_scale.size).reshape(y_scale.shape), zero, x.shape, axis, block_size, opset)[0]
            wraps = x.dtype == np.float16 or to in ("int2", "uint2") or (to in ("int4", "uint4") and _lone(owner, x))
        y = _codes(b, v, z, grid, wraps)
        nan: dict[str, Any] = {"qmin": grid.qmin, "qmax": grid.qmax, "zero": 0.0, "zero-point": z.astype(np.float64)}
        y = np.where(np.isnan(y if b.nan == "qmin" else v), nan[b.nan], y)
    return y.astype(np.int32).astype(dtype_of(to))


def _small(b: QuantizeLinear, v: Array, to: str, *, saturates: bool) -> Array:
    """The numbers ``v`` as float8 or float4, each rounded once."""
    if to == FLOAT4:
        v, saturates = np.where(np.isnan(v), -np.zeros_like(v), v), True
    elif to.endswith("fnuz") and b.float8_infinity == "by-type":
        v = np.where(np.isinf(v), np.full_like(v, np.nan), v)
    elif not saturates and b.float8_beyond == "cut":
        size = np.abs(v)
        if to == "float8_e4m3fn":
            v = np.where((size >= 480) & (size < 496), np.copysign(v.dtype.type(448), v), v)  # noqa: PLR2004
        if to == "float8_e5m2":
            v = np.where((size >= 61440) & (size < 65536), np.full_like(v, np.nan), v)  # noqa: PLR2004
    return encode(v, to, overflow="saturate" if saturates else "special").view(dtype_of(to))


def _lone(owner: Array, x: Array) -> Array:
    """Whether an element of ``x`` shares its byte, of two codes, with none of the same scale."""
    run = np.broadcast_to(owner, x.shape).ravel()
    odd, changes = np.arange(x.size) % 2 == 1, np.concatenate([[True], run[1:] != run[:-1], [True]])
    lone: Array = (changes[:-1][: x.size] & odd) | (changes[1:][: x.size] & ~odd)
    return lone.reshape(x.shape)


@formula(
    "onnx/DequantizeLinear",
    equation=r"y = (x - x_{zero\_point}) \cdot x_{scale}",
    basis=AsComputed(dtype="the output's: the exact product of difference and scale is rounded to it"),
    source="ONNX operator DequantizeLinear, opsets 10, 13, 19, 21, 23, 24, 25",
    behaviour=DequantizeLinear(),
    readings=Readings(_PRECISION, tuple(DequantizeLinear(product=p) for p in ("output", "float32", "promoted"))),
    versions={
        "onnxruntime-1.31": (
            DequantizeLinear(
                lists_since=10,
                one_scale="no-block-size",
                difference="int32",
                product="float32",
                float_zero_point="refused",
            ),
            _RUNTIME,
        ),
        "reference-1.23": (
            DequantizeLinear(shapes="lenient", difference="float32", product="promoted", float_zero_point="ignored"),
            _EVALUATOR,
        ),
    },
    affine=AffineView("onnx", "dequantize", _dequantize_arguments),
)
def dequantize_linear(
    b: DequantizeLinear,
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int | None = None,
    block_size: int | None = None,
    output_dtype: str | None = None,
    opset: int = 25,
) -> Array:
    """Reals of the codes ``x``. An attribute of None is not set.

    Args:
        x: codes, or small floats, any shape.
        x_scale: real per code: a scalar, one per index along ``axis``, or one per block along it.
        x_zero_point: in the type of ``x`` and the scale's shape; without it zero. With int32 the document has it
            zero; another is subtracted, without wrapping.
        axis: -r to r - 1, by default 1.
        block_size: elements per block along ``axis``.
        output_dtype: float32, float16 or bfloat16, by default the scale's type.
        opset: 10, 13, 19, 21, 23, 24 or 25.

    Raises:
        TypeError: a type or an attribute that the opset does not have; codes and zero point of two types.
        ValueError: no such opset; or the parameters do not fit ``x``.
    """
    to = output_dtype or x_scale.dtype.name
    output_type(x_zero_point, x.dtype.name, "")
    given = {"axis": axis, "block_size": block_size, "output_dtype": output_dtype}
    accept(DEQUANTIZE_TYPES, opset, {"real": to, "scale": x_scale.dtype.name, "code": x.dtype.name}, given)
    zero = np.zeros(x_scale.shape, x.dtype) if x_zero_point is None else x_zero_point
    s, z = fitted(b, x_scale, zero, x.shape, axis, block_size, opset)
    least = {"refused": 0, "ignored": 1}.get(b.float_zero_point)
    if least is not None and x.dtype.name in FLOAT8:
        size = np.abs(zero.astype(np.float32))
        if ((size > 0) & (size >= least)).any():
            msg = f"x_zero_point={zero.astype(np.float32).tolist()} is not accepted: float8 has a zero point of zero"
            raise ValueError(msg)
    single = {to, x_scale.dtype.name} <= _SINGLE and x.dtype.name != FLOAT4
    ignored = b.float_zero_point == "ignored" and x.dtype.name in (*FLOAT8, FLOAT4)
    with np.errstate(all="ignore"):
        return _reals(b, x, s, None if x_zero_point is None or ignored else z, to, single=single)
