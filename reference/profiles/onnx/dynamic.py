"""ONNX: ``DynamicQuantizeLinear``, as documented and as the libraries compute it. Real per code."""

import numpy as np

from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array

__all__ = [
    "dynamic_quantize_linear",
    "dynamic_quantize_linear_onnxruntime",
    "dynamic_quantize_linear_reference",
]

_EQUATION = (
    r"s = \frac{\max(0, \max x) - \min(0, \min x)}{255},"
    r"\quad z = \lceil \mathrm{saturate}(0 - \min(0, \min x) / s) \rfloor,"
    r"\quad y = \mathrm{saturate}(\lceil x / s \rfloor + z)"
)
_BASIS = AsComputed(dtype="float32")


@formula(
    "onnx.dynamic_quantize_linear",
    equation=_EQUATION,
    basis=_BASIS,
    source="ONNX operator DynamicQuantizeLinear, opset 11",
)
def dynamic_quantize_linear(x: Array) -> tuple[Array, Array, Array]:
    """Codes of ``x``, their scale and zero point.

    Measured, where the document is silent: NaN has no part in minimum and maximum, and its code is 0; without a
    number, zero point and codes are 0; an intermediate zero point of NaN (an infinite range, a scale that underflows)
    gives 255.

    Args:
        x: float32, any shape.

    Returns:
        y: uint8, the shape of ``x``; y_scale: float32, real per code, a scalar; y_zero_point: uint8, a scalar.

    Raises:
        TypeError: ``x`` is not of float32.
    """
    if x.dtype != np.float32:
        msg = f"x of {x.dtype.name} is not accepted: give float32"
        raise TypeError(msg)
    qmin, qmax = np.float32(0), np.float32(255)
    numbers = x[~np.isnan(x)]
    with np.errstate(all="ignore"):
        max_x = np.maximum(np.float32(0), np.max(numbers, initial=np.float32(0)))
        min_x = np.minimum(np.float32(0), np.min(numbers, initial=np.float32(0)))
        y_scale = (max_x - min_x) / (qmax - qmin)
        if max_x == min_x:
            return np.zeros(x.shape, np.uint8), y_scale, np.asarray(0, np.uint8)
        intermediate = qmin - min_x / y_scale
        saturated = np.where(np.isnan(intermediate), qmax, np.minimum(qmax, np.maximum(qmin, intermediate)))
        y_zero_point = np.rint(saturated)
        y = np.rint(x / y_scale) + y_zero_point
        y = np.where(y > qmax, qmax, np.where(y >= qmin, y, qmin))
    return y.astype(np.uint8), y_scale, y_zero_point.astype(np.uint8)


@formula(
    "onnx.dynamic_quantize_linear@onnxruntime-1.31",
    equation=_EQUATION,
    basis=_BASIS,
    source="ONNX Runtime 1.31.0, measured on the CPU",
)
def dynamic_quantize_linear_onnxruntime(x: Array) -> tuple[Array, Array, Array]:
    """As documented, but the scale of a tensor of zeros is 1."""
    y, y_scale, y_zero_point = dynamic_quantize_linear(x)
    empty = not (np.abs(x[~np.isnan(x)]) > 0).any()
    return y, np.asarray(1, np.float32) if empty else y_scale, y_zero_point


@formula(
    "onnx.dynamic_quantize_linear@reference-1.23",
    equation=_EQUATION,
    basis=_BASIS,
    source="onnx 1.23.0: onnx.reference, measured",
)
def dynamic_quantize_linear_reference(x: Array) -> tuple[Array, Array, Array]:
    """As documented, but zeros have the scale 1 / 255, a NaN makes the scale NaN, and a tensor needs an element.

    Raises:
        TypeError: ``x`` is not of float32.
        ValueError: ``x`` has no element.
    """
    y, y_scale, y_zero_point = dynamic_quantize_linear(x)
    if not x.size:
        msg = f"x of shape {x.shape} is not accepted: give at least one element"
        raise ValueError(msg)
    if np.isnan(x).any():
        return np.zeros(x.shape, np.uint8), np.asarray(np.nan, np.float32), np.asarray(255, np.uint8)
    return y, y_scale if (x != 0).any() else np.asarray(np.float32(1) / np.float32(255)), y_zero_point
