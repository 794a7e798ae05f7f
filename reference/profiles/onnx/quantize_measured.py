"""ONNX: ``QuantizeLinear`` as ONNX Runtime and the reference evaluator of onnx compute it. Real per code."""

import numpy as np

from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.minifloat import encode
from halfeven.reference.profiles.onnx.quantize_opsets import (
    FLOAT4,
    FLOAT8,
    dtype_of,
    fitted,
    output_type,
    quantize_linear,
)
from halfeven.reference.profiles.profile import Array

__all__ = ["quantize_linear_onnxruntime", "quantize_linear_reference", "spread"]


@formula(
    "onnx.quantize_linear@onnxruntime-1.31",
    equation=r"y = \mathrm{saturate}(\lceil x / y_{scale} \rfloor + y_{zero\_point})",
    basis=AsComputed(dtype="float32 for the division; wrapping int32 for the sum of a float16 input or a 2-bit output"),
    source="ONNX Runtime 1.31.0, measured on the CPU",
)
def quantize_linear_onnxruntime(
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
    """As documented, but in float32, for float16 and 2 bits in an int32 that wraps, and with float8 rules of its own.

    Arguments and errors alike. It divides in float32 whatever ``precision`` says. The rounded quotient of a float16
    input, or for a 2-bit output, is cast to int32 before the zero point is added, and the sum wraps; so it does for a
    4-bit code that shares its byte with no code of the same scale, such as the last of an odd number. A float8 zero
    point is not added. An infinity becomes the largest float8 of every type where numbers saturate; where they do not,
    e4m3fn makes 448 of [480, 496) and e5m2 makes NaN of [61440, 65536). Opset 10 takes one scale per index along axis
    1. Blocks with one scale for all are refused.
    """
    to = output_type(y_zero_point, output_dtype, "uint8")
    lifted = 13 if opset == 10 and y_scale.dtype == np.float32 and axis is None else opset  # noqa: PLR2004 - opsets
    documented = quantize_linear(
        x,
        y_scale,
        y_zero_point,
        axis=axis,
        block_size=block_size,
        saturate=saturate,
        precision=precision,
        output_dtype=output_dtype,
        opset=lifted,
    )
    if block_size and y_scale.ndim != x.ndim:
        msg = f"block_size={block_size} is not accepted with y_scale of shape {y_scale.shape}: give one per block"
        raise ValueError(msg)
    if x.dtype not in (np.float32, np.float16) or x.dtype != y_scale.dtype or to == FLOAT4:
        return documented  # it has no kernel for these
    zero = np.zeros(y_scale.shape, dtype_of(to)) if y_zero_point is None else y_zero_point
    s, z = (fitted(p, x.shape, axis, block_size, lifted) for p in (y_scale, zero))
    with np.errstate(all="ignore"):
        v = x.astype(np.float32) / s.astype(np.float32)
        if to in FLOAT8:
            if saturate != 0:
                return encode(v, to, overflow="saturate").view(dtype_of(to))
            if to == "float8_e4m3fn":
                v = np.where((np.abs(v) >= 480) & (np.abs(v) < 496), np.copysign(np.float32(448), v), v)  # noqa: PLR2004
            if to == "float8_e5m2":
                v = np.where((np.abs(v) >= 61440) & (np.abs(v) < 65536), np.float32(np.nan), v)  # noqa: PLR2004
            return encode(v, to, overflow="special").view(dtype_of(to))
        grid = Grid.from_dtype(dtype_of(to))
        y = np.rint(v).astype(np.float64)
        int32 = np.where(np.abs(y) < 2.0**31, y, -(2.0**31)) + z.astype(np.float64)
        int32 = (int32 + 2.0**31) % 2.0**32 - 2.0**31
        owner = fitted(np.arange(y_scale.size).reshape(y_scale.shape), x.shape, axis, block_size, lifted)
        run = np.broadcast_to(owner, x.shape).ravel()
        odd, changes = np.arange(x.size) % 2 == 1, np.concatenate([[True], run[1:] != run[:-1], [True]])
        lone = ((changes[:-1][: x.size] & odd) | (changes[1:][: x.size] & ~odd)).reshape(x.shape)
        wraps = x.dtype == np.float16 or to in ("int2", "uint2") or (lone if to in ("int4", "uint4") else False)
        y = np.where(wraps, int32, y + z.astype(np.float64))
        y = np.where(y > grid.qmax, grid.qmax, np.where(y >= grid.qmin, y, grid.qmin))
    return y.astype(np.int32).astype(dtype_of(to))


def spread(parameter: Array, shape: tuple[int, ...], axis: int | None, block_size: int | None) -> Array:
    """A parameter as the reference evaluator spreads it over a tensor of ``shape``: its own rules of what fits.

    Raises:
        ValueError: it does not fit.
    """
    d = 1 if axis is None else axis
    if parameter.size == 1:
        return parameter.reshape(())
    msg = f"parameters of shape {parameter.shape} are not accepted for shape {shape}, axis={d}, block_size={block_size}"
    if not -len(shape) <= d < len(shape) or (block_size or 0) < 0 or (not block_size and parameter.ndim != 1):
        raise ValueError(msg)
    d %= len(shape)
    if not block_size:
        parameter = parameter.reshape([parameter.size if i == d else 1 for i in range(len(shape))])
        if parameter.shape[d] != shape[d]:
            raise ValueError(msg)
        return parameter
    if d >= parameter.ndim or parameter.shape[d] * block_size < shape[d]:
        raise ValueError(msg)
    whole = parameter.repeat(block_size, axis=d).take(range(shape[d]), axis=d)
    if whole.shape != shape:
        raise ValueError(msg)
    return whole


@formula(
    "onnx.quantize_linear@reference-1.23",
    equation=r"y = \mathrm{saturate}(\mathrm{int32}(\lceil x / y_{scale} \rfloor) + y_{zero\_point})",
    basis=AsComputed(dtype="what NumPy promotes the division to; wrapping int32 for the sum of integers"),
    source="onnx 1.23.0: onnx.checker and onnx.reference, measured",
)
def quantize_linear_reference(
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
    """As documented, but in NumPy's promoted type, and cast to int32 before it saturates.

    Arguments and errors alike. It divides in the type that NumPy promotes both operands to (float64 for int32). The
    rounded quotient is cast to int32, which makes -2^31 of all that is too large, of the infinities and of NaN, and
    the sum wraps. A float8 zero point is not added, a float4 one always. An infinity becomes the largest float8 of
    every type where numbers saturate. The zero point needs not have the scale's shape, a block may be longer than the
    scale asks for, and opset 10 takes one scale per index along axis 1.
    """
    to = output_type(y_zero_point, output_dtype, "uint8")
    one = np.ones((), y_scale.dtype)  # the types and attributes are checked, the shapes are its own
    quantize_linear(
        x,
        one,
        np.zeros((), dtype_of(to)),
        axis=axis,
        block_size=block_size,
        saturate=saturate,
        precision=precision,
        output_dtype=output_dtype,
        opset=opset,
    )
    if opset < 21 and y_scale.ndim > 1:  # noqa: PLR2004 - opset
        msg = f"y_scale of shape {y_scale.shape} is not accepted: give a scalar or a list"
        raise ValueError(msg)
    s = spread(y_scale, x.shape, axis, block_size)
    z = np.zeros((), dtype_of(to)) if y_zero_point is None else spread(y_zero_point, x.shape, axis, block_size)
    with np.errstate(all="ignore"):
        v = x.astype(dtype_of(precision)) / s.astype(dtype_of(precision)) if precision else x / s
        if to in FLOAT8:
            if saturate == 0:
                return encode(v, to, overflow="special").view(dtype_of(to))
            return encode(v, to, overflow="saturate").view(dtype_of(to))
        if to == FLOAT4:
            v = v + z.astype(v.dtype) if y_zero_point is not None else v
            return encode(np.where(np.isnan(v), -np.zeros_like(v), v), to, overflow="saturate").view(dtype_of(to))
        grid = Grid.from_dtype(dtype_of(to))
        r = np.rint(v).astype(np.float64)
        xi = np.where(np.abs(r) < 2.0**31, r, -(2.0**31))
        xi = (xi + z.astype(np.float64) + 2.0**31) % 2.0**32 - 2.0**31
        xi = np.where(xi > grid.qmax, grid.qmax, np.where(xi < grid.qmin, grid.qmin, xi))
    return xi.astype(np.int32).astype(dtype_of(to))
