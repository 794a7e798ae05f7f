"""ONNX: the types and attributes of each opset of the linear operators, and which parameters fit a tensor.

Nothing here is a formula; ``linear.py`` has those. The scale is real per code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.affine import channel_of
from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, BlockSize, Shape, per_element
from halfeven.reference.minifloat import cast

__all__ = [
    "DEQUANTIZE_TYPES",
    "FLOAT4",
    "FLOAT8",
    "PRECISIONS",
    "QUANTIZE_TYPES",
    "Fitting",
    "Types",
    "accept",
    "along",
    "dtype_of",
    "fitted",
    "in_dtype",
    "output_type",
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


_FLOATS, _REAL_13, _REAL_19 = (
    ("float32", "float16", "bfloat16"),
    ("float32", "int32"),
    ("float32", "float16", "bfloat16", "int32"),
)
_CODE_10, _CODE_21 = ("int8", "uint8"), ("int8", "uint8", *FLOAT8, "int16", "uint16", "int4", "uint4")
_CODE_25 = (*_CODE_21, FLOAT4, "int2", "uint2")
_AXIS = ("axis", "saturate", "block_size", "output_dtype", "precision")
QUANTIZE_TYPES = {
    10: Types(_REAL_13, ("float32",), _CODE_10, ()),
    13: Types(_REAL_13, ("float32",), _CODE_10, _AXIS[:1]),
    19: Types(_REAL_19, _REAL_19, (*_CODE_10, *FLOAT8), _AXIS[:2]),
    21: Types(_REAL_19, _REAL_19, _CODE_21, _AXIS[:4]),
    23: Types(_REAL_19, _REAL_19, (*_CODE_21, FLOAT4), _AXIS),
    24: Types(_REAL_19, (*_REAL_19, "float8_e8m0fnu"), (*_CODE_21, FLOAT4), _AXIS),
    25: Types(_REAL_19, (*_REAL_19, "float8_e8m0fnu"), _CODE_25, _AXIS),
}
_BACK = ("axis", "block_size", "output_dtype")
DEQUANTIZE_TYPES = {
    10: Types(("float32",), ("float32",), (*_CODE_10, "int32"), ()),
    13: Types(("float32",), ("float32",), (*_CODE_10, "int32"), _BACK[:1]),
    19: Types(_FLOATS, _FLOATS, (*_CODE_10, "int32", *FLOAT8), _BACK[:1]),
    21: Types(_FLOATS, _FLOATS, (*_CODE_21, "int32"), _BACK[:2]),
    23: Types(_FLOATS, _FLOATS, (*_CODE_21, "int32", FLOAT4), _BACK),
    24: Types(_FLOATS, (*_FLOATS, "float8_e8m0fnu"), (*_CODE_21, "int32", FLOAT4), _BACK),
    25: Types(_FLOATS, (*_FLOATS, "float8_e8m0fnu"), (*_CODE_25, "int32"), _BACK),
}


@dataclass(frozen=True)
class Fitting(Behaviour):
    """The choices in what parameters an operator accepts for a tensor."""

    axis: int = choice(
        {
            1: "takes axis 1 where none is given",
            -1: "takes the last axis where none is given",
        }
    )
    lists_since: int = choice(
        {
            13: "takes one scale per index along an axis from opset 13 on",
            10: "takes one scale per index along an axis from opset 10 on",
        }
    )
    one_scale: str = choice(
        {
            "any-block-size": "takes one scale for the tensor whatever block_size says",
            "no-block-size": "refuses blocks with one scale for all",
        }
    )
    shapes: str = choice(
        {
            "exact": "refuses a zero point not of the scale's shape, and blocks longer than the scales ask for",
            "lenient": "accepts a zero point not of the scale's shape, and blocks longer than the scales ask for",
        }
    )


def dtype_of(name: str) -> "np.dtype[Any]":
    """The dtype of this name, of NumPy or ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name, name))


def in_dtype(a: Array, name: str) -> Array:
    """``a`` in a float dtype, rounded once: NumPy takes int32 and float64 to bfloat16 by way of float32."""
    if name == "bfloat16":
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


def fitted(
    b: Fitting, scale: Array, zero: Array, x: Shape, axis: int | None, block_size: int | None, opset: int
) -> tuple[Array, Array]:
    """Scale and zero point as every element of a tensor of shape ``x`` sees them: they have or broadcast to that shape.

    Raises:
        ValueError: a shape is none of those that the opset describes; or the two differ in theirs.
    """
    if b.one_scale == "no-block-size" and block_size and scale.ndim != len(x):
        msg = f"block_size={block_size} is not accepted with a scale of shape {scale.shape}: give one per block"
        raise ValueError(msg)
    lists = opset >= b.lists_since
    if b.shapes == "lenient":
        lists = True
        if opset < 21 and scale.ndim > 1:  # noqa: PLR2004 - the first opset with blocks
            msg = f"scale of shape {scale.shape} is not accepted: give a scalar or a list"
            raise ValueError(msg)
    elif zero.shape != scale.shape and {zero.shape, scale.shape} != {(), (1,)}:
        msg = f"zero point of shape {zero.shape} is not accepted: the scale has the shape {scale.shape}"
        raise ValueError(msg)
    d = b.axis if axis is None else axis
    return _fitted(b, scale, x, d, block_size, lists=lists), _fitted(b, zero, x, d, block_size, lists=lists)


def _fitted(b: Fitting, parameter: Array, x: Shape, d: int, block_size: int | None, *, lists: bool) -> Array:
    if parameter.shape in ((), (1,)) or (b.shapes == "lenient" and parameter.size == 1):
        return parameter.reshape(())
    if lists and -len(x) <= d < len(x):
        d %= len(x)
        if not block_size and parameter.shape == (x[d],):
            return parameter.reshape([x[d] if i == d else 1 for i in range(len(x))])
        if block_size is not None and block_size > 0 and parameter.ndim == len(x):
            needed = -(-x[d] // block_size)
            blocks = max(parameter.shape[d], needed) if b.shapes == "lenient" else needed
            if parameter.shape == (*x[:d], blocks, *x[d + 1 :]):
                used = parameter.take(range(needed), axis=d)
                return per_element(used, x, tuple(block_size if i == d else 1 for i in range(len(x))))
    msg = f"parameters of shape {parameter.shape} are not accepted for x of shape {x}, axis={d}, "
    msg += f"block_size={block_size}: give a scalar, one per index, or one per block"
    raise ValueError(msg)


def along(parameter: Array, shape: Shape, block_size: BlockSize | None) -> tuple[Array, dict[str, int]]:
    """A parameter of blocks in one of the operators' shapes, and the attributes that say which.

    Raises:
        ValueError: the blocks are neither slices along an axis, nor blocks along one axis of every slice.
    """
    if block_size is None:
        return parameter, {}
    longer = [d for d, b in enumerate(block_size) if b > 1]
    if len(longer) == 1 and block_size[longer[0]] < shape[longer[0]]:
        return parameter, {"axis": longer[0], "block_size": block_size[longer[0]]}
    return parameter.reshape(-1), {"axis": channel_of(block_size, shape, parameter.size)}
