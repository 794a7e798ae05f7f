"""ONNX: ``QuantizeLinear`` by opset, with its types, granularities, float8 and float4. Real per code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import Shape, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.minifloat import cast, encode
from halfeven.reference.profiles.profile import Array

__all__ = [
    "FLOAT4",
    "FLOAT8",
    "PRECISIONS",
    "Types",
    "accept",
    "dtype_of",
    "fitted",
    "in_dtype",
    "output_type",
    "quantize_linear",
]

PRECISIONS = ("float32", "float16", "bfloat16", "float64")
FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
FLOAT4 = "float4_e2m1fn"


@dataclass(frozen=True)
class Types:
    """What one opset accepts: the dtypes of the input, the scale and the codes, and the attributes."""

    real: tuple[str, ...]
    scale: tuple[str, ...]
    code: tuple[str, ...]
    attributes: tuple[str, ...]


_REAL_13, _REAL_19 = ("float32", "int32"), ("float32", "float16", "bfloat16", "int32")
_CODE_10, _CODE_21 = ("int8", "uint8"), ("int8", "uint8", *FLOAT8, "int16", "uint16", "int4", "uint4")
_AXIS = ("axis", "saturate", "block_size", "output_dtype", "precision")
_TYPES = {
    10: Types(_REAL_13, ("float32",), _CODE_10, ()),
    13: Types(_REAL_13, ("float32",), _CODE_10, _AXIS[:1]),
    19: Types(_REAL_19, _REAL_19, (*_CODE_10, *FLOAT8), _AXIS[:2]),
    21: Types(_REAL_19, _REAL_19, _CODE_21, _AXIS[:4]),
    23: Types(_REAL_19, _REAL_19, (*_CODE_21, FLOAT4), _AXIS),
    24: Types(_REAL_19, (*_REAL_19, "float8_e8m0fnu"), (*_CODE_21, FLOAT4), _AXIS),
    25: Types(_REAL_19, (*_REAL_19, "float8_e8m0fnu"), (*_CODE_21, FLOAT4, "int2", "uint2"), _AXIS),
}
_MIXED_SINCE = 23


def dtype_of(name: str) -> "np.dtype[Any]":
    """The dtype of this name, of NumPy or ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name, name))


def in_dtype(a: Array, name: str) -> Array:
    """``a`` in a float dtype, rounded once: NumPy takes int32 and float64 to 16 bits by way of float32."""
    if a.dtype in (np.int32, np.float64) and name in ("float16", "bfloat16"):
        a = cast(a.astype(np.float64), name, overflow="special")
    return a.astype(dtype_of(name))


def accept(types: Mapping[int, Types], opset: int, dtypes: Mapping[str, str], attributes: Mapping[str, Any]) -> Types:
    """The types of an opset.

    Args:
        types: the table of an operator.
        opset: the version of the operator.
        dtypes: by a field of ``Types``, what a call has.
        attributes: those that the call sets.

    Raises:
        ValueError: the table has no such opset.
        TypeError: the opset has no such type or attribute.
    """
    if (t := types.get(opset)) is None:
        msg = f"opset={opset!r} is not accepted: give one of {tuple(types)}"
        raise ValueError(msg)
    for name, value in attributes.items():
        if value is not None and name not in t.attributes:
            msg = f"{name}={value!r} is not accepted at opset {opset}: its attributes are {t.attributes}"
            raise TypeError(msg)
    for field, dtype in dtypes.items():
        if dtype not in getattr(t, field):
            msg = f"{field} dtype {dtype!r} is not accepted at opset {opset}: give one of {getattr(t, field)}"
            raise TypeError(msg)
    return t


def output_type(zero_point: Array | None, output_dtype: str | None, default: str) -> str:
    """The type of the output: the zero point's, else ``output_dtype``, else the default.

    Raises:
        TypeError: both are given and differ.
    """
    if zero_point is None:
        return output_dtype or default
    if output_dtype not in (None, zero_point.dtype.name):
        msg = f"output_dtype={output_dtype!r} is not accepted: the zero point is of {zero_point.dtype.name}"
        raise TypeError(msg)
    return zero_point.dtype.name


def fitted(parameter: Array, x: Shape, axis: int | None, block_size: int | None, opset: int) -> Array:
    """A parameter as every element of a tensor of shape ``x`` sees it: it has or broadcasts to that shape.

    Raises:
        ValueError: its shape is none of those that the opset describes.
    """
    if parameter.shape in ((), (1,)):
        return parameter.reshape(())
    d = 1 if axis is None else axis
    if opset > 10 and -len(x) <= d < len(x):  # noqa: PLR2004 - the first opset has one scale for the tensor
        d %= len(x)
        if not block_size and parameter.shape == (x[d],):
            return parameter.reshape([x[d] if i == d else 1 for i in range(len(x))])
        if block_size and block_size > 0 and parameter.shape == (*x[:d], -(-x[d] // block_size), *x[d + 1 :]):
            return per_element(parameter, x, tuple(block_size if i == d else 1 for i in range(len(x))))
    msg = f"parameters of shape {parameter.shape} are not accepted for x of shape {x}, axis={axis}, "
    msg += f"block_size={block_size}, opset={opset}: give a scalar, one per index, or one per block"
    raise ValueError(msg)


@formula(
    "onnx.quantize_linear",
    equation=r"y = \mathrm{saturate}(\lceil x / y_{scale} \rfloor + y_{zero\_point})",
    basis=AsComputed(dtype="the scale's, or precision's, for the division; exact for the sum of integers"),
    source="ONNX operator QuantizeLinear, opsets 10, 13, 19, 21, 23, 24, 25; Cast, opset 19: the tables of float8",
)
def quantize_linear(
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

    The division is rounded in ``precision``, else in the scale's type; in float32 beside e8m0, and exactly enough
    beside an int32 scale (measured). NaN becomes qmin; in float4, which has no NaN, -0 (measured). A float zero point
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
    accept(_TYPES, opset, {"real": x.dtype.name, "scale": y_scale.dtype.name, "code": to}, given)
    if precision not in (None, *PRECISIONS) or (x.dtype != y_scale.dtype and opset in (19, 21)):
        msg = f"x of {x.dtype.name}, y_scale of {y_scale.dtype.name}, precision={precision!r} are not accepted: "
        msg += f"give one type before opset {_MIXED_SINCE}, and a precision of {PRECISIONS}"
        raise TypeError(msg)
    zero = np.zeros(y_scale.shape, dtype_of(to)) if y_zero_point is None else y_zero_point
    if zero.shape != y_scale.shape and {zero.shape, y_scale.shape} != {(), (1,)}:
        msg = f"y_zero_point of shape {zero.shape} is not accepted: y_scale has the shape {y_scale.shape}"
        raise ValueError(msg)
    s, z = (fitted(p, x.shape, axis, block_size, opset) for p in (y_scale, zero))

    t = precision or {"float8_e8m0fnu": "float32", "int32": "float64"}.get(s.dtype.name, s.dtype.name)
    with np.errstate(all="ignore"):
        v = in_dtype(x, t) / in_dtype(s, t)
        if to in (*FLOAT8, FLOAT4):
            zf = z.astype(np.float32).astype(v.dtype)
            v = np.where(zf == 0, v, v + zf)
            if to == FLOAT4:
                return encode(np.where(np.isnan(v), -np.zeros_like(v), v), to, overflow="saturate").view(dtype_of(to))
            if to.endswith("fnuz"):
                v = np.where(np.isinf(v), np.full_like(v, np.nan), v)
            return encode(v, to, overflow="special" if saturate == 0 else "saturate").view(dtype_of(to))
        grid = Grid.from_dtype(dtype_of(to))
        y = np.rint(v).astype(np.float64) + z.astype(np.float64)
        y = np.where(y > grid.qmax, grid.qmax, np.where(y >= grid.qmin, y, grid.qmin))
    return y.astype(np.int32).astype(dtype_of(to))
