"""AIMET: the gradient of float quantization. No document gives one; quantizers of integers have the straight one."""

import numpy as np

from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_FORMATS, cast
from halfeven.reference.profiles.aimet.float import float_quantize_dequantize

__all__ = ["float_gradient", "float_gradient_2_42"]

_SOURCE = "class FloatQuantizeDequantize: the derivative of the equations, as affine.quantize_dequantize has it"


@formula(
    "aimet.float_gradient",
    equation=r"\partial x = \begin{cases} g & |x / scale| \le max \\ 0 & else \end{cases}",
    basis=AsComputed(dtype="the tensor's"),
    source=_SOURCE,
)
def float_gradient(tensor: Array, scale: Array, gradient: Array, dtype: str) -> Array:
    """Gradient of ``float_quantize_dequantize`` with respect to ``tensor``, straight through the rounding.

    Args:
        tensor: as in ``float_quantize_dequantize``, and so the errors.
        scale: real per number, float32; broadcasts to ``tensor``.
        gradient: of the result, of the shape and dtype of ``tensor``.
        dtype: the format's name.
    """
    float_quantize_dequantize(tensor, scale, dtype=dtype)  # its errors
    inside = _inside(tensor, scale, dtype)
    return np.where(inside, gradient, np.asarray(0, gradient.dtype))


@formula(
    "aimet.float_gradient@2.42",
    equation=(
        r"\partial x = \begin{cases} \mathrm{cast}(g * scale) / scale & |x / scale| \le max"
        r" \\ 0 & else \end{cases}"
    ),
    basis=AsComputed(dtype="the tensor's"),
    source="aimet-torch 2.42, measured",
)
def float_gradient_2_42(tensor: Array, scale: Array, gradient: Array, dtype: str) -> Array:
    """``float_gradient``, but the gradient times the scale is rounded to the format on its way."""
    float_quantize_dequantize(tensor, scale, dtype=dtype)
    with np.errstate(all="ignore"):
        narrow = cast(gradient * scale.astype(gradient.dtype), FLOAT_FORMATS[dtype], overflow="special")
        found: Array = np.where(_inside(tensor, scale, dtype), narrow, 0) / scale.astype(gradient.dtype)
    return found.astype(gradient.dtype)


def _inside(tensor: Array, scale: Array, dtype: str) -> Array:
    with np.errstate(all="ignore"):
        y = np.abs(tensor / scale.astype(tensor.dtype))
    inside: Array = y <= FLOAT_FORMATS[dtype].max
    return inside
