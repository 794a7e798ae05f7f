"""ONNX: ``DynamicQuantizeLinear``, which chooses scale and zero point of a tensor. Real per code."""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.rounding import ROUNDINGS

__all__ = ["DynamicQuantizeLinear", "dynamic_quantize_linear"]


@dataclass(frozen=True)
class DynamicQuantizeLinear(Behaviour):
    """The choices in choosing a scale and a zero point of a tensor, and in quantizing it."""

    range: str = choice(
        {
            "with-zero": "widens the range to hold zero",
            "own": "takes the range as it is",
        }
    )
    steps: int = choice(
        {
            255: "divides the range by 255, the steps of the grid",
            256: "divides the range by 256, the codes of the grid",
        }
    )
    zeros: str = choice(
        {
            "equation": "gives zeros the scale 0",
            "one": "gives zeros the scale 1",
            "one-step": "gives zeros the scale 1 / 255",
        }
    )
    zero_point_rounding: str = roundings("the zero point")
    division: str = choice(
        {
            "divide": "divides by the scale",
            "reciprocal": "multiplies by the rounded reciprocal of the scale",
        }
    )
    rounding: str = roundings("the quotient")
    zero_point: str = choice(
        {
            "after-rounding": "adds the zero point after rounding",
            "before-rounding": "adds the zero point before rounding",
        }
    )
    nan: str = choice(
        {
            "left-out": "leaves NaN out of the range",
            "spreads": "gives a tensor with a NaN the scale NaN, the zero point 255 and codes of 0",
        }
    )
    empty: str = choice(
        {
            "accepted": "takes a tensor without elements as one of zeros",
            "refused": "refuses a tensor without elements",
        }
    )


@formula(
    "onnx/DynamicQuantizeLinear",
    equation=(
        r"s = \frac{\max(0, \max x) - \min(0, \min x)}{255},"
        r"\quad z = \lceil \mathrm{saturate}(0 - \min(0, \min x) / s) \rfloor,"
        r"\quad y = \mathrm{saturate}(\lceil x / s \rfloor + z)"
    ),
    basis=AsComputed(dtype="float32"),
    source="ONNX operator DynamicQuantizeLinear, opset 11",
    behaviour=DynamicQuantizeLinear(),
    versions={
        "onnxruntime-1.31": (DynamicQuantizeLinear(zeros="one"), "ONNX Runtime 1.31.0, measured on the CPU"),
        "reference-1.23": (
            DynamicQuantizeLinear(zeros="one-step", nan="spreads", empty="refused"),
            "onnx 1.23.0: onnx.reference, measured",
        ),
    },
)
def dynamic_quantize_linear(b: DynamicQuantizeLinear, x: Array) -> tuple[Array, Array, Array]:
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
        ValueError: ``x`` has no element, where that is refused.
    """
    if x.dtype != np.float32:
        msg = f"x of {x.dtype.name} is not accepted: give float32"
        raise TypeError(msg)
    if b.empty == "refused" and not x.size:
        msg = f"x of shape {x.shape} is not accepted: give at least one element"
        raise ValueError(msg)
    qmin, qmax = np.float32(0), np.float32(255)
    numbers = x[~np.isnan(x)]
    if b.nan == "spreads" and numbers.size < x.size:
        return np.zeros(x.shape, np.uint8), np.asarray(np.nan, np.float32), np.asarray(255, np.uint8)
    widened = b.range == "with-zero" or not numbers.size
    with np.errstate(all="ignore"):
        max_x = np.max(numbers, initial=0) if widened else np.max(numbers)
        min_x = np.min(numbers, initial=0) if widened else np.min(numbers)
        y_scale = (max_x - min_x) / np.float32(b.steps)
        if max_x == min_x:
            of_zeros = {"equation": y_scale, "one": np.float32(1), "one-step": np.float32(1) / np.float32(255)}
            return np.zeros(x.shape, np.uint8), np.asarray(of_zeros[b.zeros]), np.asarray(0, np.uint8)
        intermediate = qmin - min_x / y_scale
        saturated = np.where(np.isnan(intermediate), qmax, np.minimum(qmax, np.maximum(qmin, intermediate)))
        y_zero_point = ROUNDINGS[b.zero_point_rounding](saturated)
        quotient = x / y_scale if b.division == "divide" else x * (np.float32(1) / y_scale)
        round_ = ROUNDINGS[b.rounding]
        y = round_(quotient) + y_zero_point if b.zero_point == "after-rounding" else round_(quotient + y_zero_point)
        y = np.where(y > qmax, qmax, np.where(y >= qmin, y, qmin))
    return y.astype(np.uint8), y_scale, y_zero_point.astype(np.uint8)
