"""AIMET's gradient of float quantization, number by number: by what the clamp leaves as it is."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.aimet_float import quantize_dequantize
from oracles.exact import Format
from oracles.registry import derives
from oracles.soft import Soft, array, form, softs

Array = npt.NDArray[Any]

__all__: list[str] = []

_PRECISION = {"float16": (11, -14), "bfloat16": (8, -126), "float8_e4m3fn": (4, -6), "float8_e5m2": (3, -14)}
_LARGEST = {
    "float16": 65504,
    "bfloat16": (2**8 - 1) * 2**120,
    "float8_e4m3fn": 448,
    "float8_e5m2": 57344,
}


def _wide(dtype: Any) -> Format:
    """The format that a number of ``dtype`` and a float32 scale are computed in."""
    return form(dtype if dtype == np.float64 else np.dtype(np.float32))


def _kept(tensor: Array, scale: Array, dtype: str) -> list[bool]:
    """Whether the quotient, rounded to the tensor's dtype, is at most the format's largest number."""
    scales, own, wide = softs(np.broadcast_to(scale, tensor.shape)), form(tensor.dtype), _wide(tensor.dtype)
    quotients = [(x.to(wide) / s.to(wide)).to(own) for x, s in zip(softs(tensor), scales, strict=True)]
    return [not y.nan and abs(y.value) != float("inf") and abs(Fraction(y.value)) <= _LARGEST[dtype] for y in quotients]


@derives("aimet/float_gradient")
def float_gradient(tensor: Array, scale: Array, gradient: Array, dtype: str) -> Array:
    """Each is let through or not."""
    quantize_dequantize(tensor, scale, dtype=dtype)
    found = [g.value if kept else 0.0 for g, kept in zip(softs(gradient), _kept(tensor, scale, dtype), strict=True)]
    return array(found, gradient.shape, gradient.dtype)


@derives("aimet/float_gradient@2.42")
def float_gradient_2_42(tensor: Array, scale: Array, gradient: Array, dtype: str) -> Array:
    """What is let through is rounded to so many bits, above the least exponent."""
    quantize_dequantize(tensor, scale, dtype=dtype)
    narrow = Format(*_PRECISION[dtype], 1023)
    found = []
    scales = softs(np.broadcast_to(scale, tensor.shape))
    for g, s, kept in zip(softs(gradient), scales, _kept(tensor, scale, dtype), strict=True):
        own, wide = form(gradient.dtype), _wide(gradient.dtype)
        product = (g.to(wide) * s.to(wide)).to(own) if kept else Soft(0.0, own)
        found.append((Soft(product.to(narrow).value, wide) / s.to(wide)).to(own))
    return array(found, gradient.shape, gradient.dtype)
