"""ONNX: ``DequantizeLinear`` by opset, and as ONNX Runtime and onnx's reference evaluator compute it. Real per code."""

import numpy as np

from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.onnx.quantize_measured import spread
from halfeven.reference.profiles.onnx.quantize_opsets import (
    FLOAT4,
    FLOAT8,
    Types,
    accept,
    dtype_of,
    fitted,
    in_dtype,
    output_type,
)
from halfeven.reference.profiles.profile import Array

__all__ = ["dequantize_linear", "dequantize_linear_onnxruntime", "dequantize_linear_reference"]

_FLOATS = ("float32", "float16", "bfloat16")
_CODE_10 = ("int8", "uint8", "int32")
_CODE_21 = (*_CODE_10, *FLOAT8, "int16", "uint16", "int4", "uint4")
_ATTRIBUTES = ("axis", "block_size", "output_dtype")
_TYPES = {
    10: Types(("float32",), ("float32",), _CODE_10, ()),
    13: Types(("float32",), ("float32",), _CODE_10, _ATTRIBUTES[:1]),
    19: Types(_FLOATS, _FLOATS, (*_CODE_10, *FLOAT8), _ATTRIBUTES[:1]),
    21: Types(_FLOATS, _FLOATS, _CODE_21, _ATTRIBUTES[:2]),
    23: Types(_FLOATS, _FLOATS, (*_CODE_21, FLOAT4), _ATTRIBUTES),
    24: Types(_FLOATS, (*_FLOATS, "float8_e8m0fnu"), (*_CODE_21, FLOAT4), _ATTRIBUTES),
    25: Types(_FLOATS, (*_FLOATS, "float8_e8m0fnu"), (*_CODE_21, FLOAT4, "int2", "uint2"), _ATTRIBUTES),
}


@formula(
    "onnx.dequantize_linear",
    equation=r"y = (x - x_{zero\_point}) \cdot x_{scale}",
    basis=AsComputed(dtype="the output's: the exact difference and the scale are rounded to it, then the product"),
    source="ONNX operator DequantizeLinear, opsets 10, 13, 19, 21, 23, 24, 25",
)
def dequantize_linear(
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
        x_zero_point: in the type of ``x`` and the scale's shape; without it zero. Beside int32 the document has it
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
    accept(_TYPES, opset, {"real": to, "scale": x_scale.dtype.name, "code": x.dtype.name}, given)
    zero = np.zeros(x_scale.shape, x.dtype) if x_zero_point is None else x_zero_point
    if zero.shape != x_scale.shape and {zero.shape, x_scale.shape} != {(), (1,)}:
        msg = f"x_zero_point of shape {zero.shape} is not accepted: x_scale has the shape {x_scale.shape}"
        raise ValueError(msg)
    s, z = (fitted(p, x.shape, axis, block_size, opset) for p in (x_scale, zero))
    with np.errstate(all="ignore"):
        y: Array = in_dtype(x.astype(np.float64) - z.astype(np.float64), to) * in_dtype(s, to)
    return y


@formula(
    "onnx.dequantize_linear@onnxruntime-1.31",
    equation=r"y = \mathrm{int32}(x - x_{zero\_point}) \cdot x_{scale}",
    basis=AsComputed(dtype="wrapping int32 for the difference, float32 for the product, then the output's"),
    source="ONNX Runtime 1.31.0, measured on the CPU",
)
def dequantize_linear_onnxruntime(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int | None = None,
    block_size: int | None = None,
    output_dtype: str | None = None,
    opset: int = 25,
) -> Array:
    """As documented, but the product is rounded in float32 first, and int32 differences wrap.

    Arguments and errors alike. The difference of integers wraps in int32. The product is rounded in float32, then to
    the output. A float8 zero point other than zero is refused. Opset 10 takes one scale per index along axis 1. Blocks
    with one scale for all are refused.
    """
    lifted = 13 if opset == 10 and axis is None else opset  # noqa: PLR2004 - opsets
    documented = dequantize_linear(
        x, x_scale, x_zero_point, axis=axis, block_size=block_size, output_dtype=output_dtype, opset=lifted
    )
    if block_size and x_scale.ndim != x.ndim:
        msg = f"block_size={block_size} is not accepted with x_scale of shape {x_scale.shape}: give one per block"
        raise ValueError(msg)
    to = documented.dtype
    if x.dtype.name == FLOAT4 or "bfloat16" in (to.name, x_scale.dtype.name) or x_scale.dtype.itemsize == 1:
        return documented  # it has no kernel for these
    zero = np.zeros(x_scale.shape, x.dtype) if x_zero_point is None else x_zero_point
    if x.dtype.name in FLOAT8 and zero.view(np.uint8).any():
        msg = f"x_zero_point={zero.astype(np.float32).tolist()} is not accepted: float8 has a zero point of zero"
        raise ValueError(msg)
    s, z = (fitted(p, x.shape, axis, block_size, lifted) for p in (x_scale, zero))
    with np.errstate(all="ignore"):
        d = x.astype(np.float64) - z.astype(np.float64)
        if x.dtype == np.int32:
            d = (d + 2.0**31) % 2.0**32 - 2.0**31
        y: Array = (d.astype(np.float32) * s.astype(np.float32)).astype(to)
    return y


@formula(
    "onnx.dequantize_linear@reference-1.23",
    equation=r"y = (\mathrm{float32}(x) - x_{zero\_point}) \cdot x_{scale}",
    basis=AsComputed(dtype="float32, or float64 with an int32 zero point; then the output's"),
    source="onnx 1.23.0: onnx.checker and onnx.reference, measured",
)
def dequantize_linear_reference(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int | None = None,
    block_size: int | None = None,
    output_dtype: str | None = None,
    opset: int = 25,
) -> Array:
    """As documented, but difference and product are rounded in float32 first, and float zero points are not subtracted.

    Arguments and errors alike. It rounds the codes to float32, subtracts and multiplies there (in float64 with an
    int32 zero point), and rounds to the output last. A float8 zero point must lie between -1 and 1 and is not
    subtracted, nor is a float4 one. The zero point needs not have the scale's shape, and a block may be longer than
    the scale asks for.
    """
    one = np.ones((), x_scale.dtype)  # the types and attributes are checked, the shapes are its own
    zero = np.zeros((), x.dtype if x_zero_point is None else x_zero_point.dtype)
    to = dequantize_linear(x, one, zero, axis=axis, block_size=block_size, output_dtype=output_dtype, opset=opset).dtype
    if opset < 21 and x_scale.ndim > 1:  # noqa: PLR2004 - opset
        msg = f"x_scale of shape {x_scale.shape} is not accepted: give a scalar or a list"
        raise ValueError(msg)
    with np.errstate(all="ignore"):
        d = x.astype(np.float32)
        if x.dtype.name in FLOAT8 and x_zero_point is not None:
            if (np.abs(x_zero_point.astype(np.float32)) >= 1).any():
                msg = f"x_zero_point={x_zero_point.astype(np.float32).tolist()} is not accepted: float8 has zero"
                raise ValueError(msg)
        elif x.dtype.name != FLOAT4 and x_zero_point is not None:
            z = spread(x_zero_point, x.shape, axis, block_size)
            d = d - z.astype(np.float64 if x.dtype == np.int32 else np.float32)
        y = d * spread(x_scale, x.shape, axis, block_size).astype(np.float32)
        if to == dtype_of("bfloat16"):
            y = y.astype(np.float32)
    return y.astype(to)
