"""torchao: ``AffineQuantizedTensor`` of floatx, scaled per row. x̂ = decode(codes) * scale."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.systems.torchao.floatx import (
    FloatxQuotients,
    FloatxScale,
    format_of,
    quantize_affine_floatx,
    scale_of,
)

__all__ = ["FloatxTensor", "from_hp_to_fpx"]


@dataclass(frozen=True)
class FloatxTensor(FloatxScale, FloatxQuotients):
    """The choices in making the scale of each row, and its codes."""


@formula(
    "torchao/from_hp_to_fpx",
    equation=r"s_r = \max(\max_c |x_{rc}|,\ 10^{-12}) / v_{max},\quad q = \mathrm{encode}(x / s)",
    basis=AsComputed(dtype="float32; the scale as in the input's"),
    source="AffineQuantizedTensor: from_hp_to_fpx",
    behaviour=FloatxTensor(),
    versions={
        "0.15": (
            FloatxTensor(nan="as-a-number"),
            "torchao 0.15.0 and 0.11.0, measured on x86-64, where 0 / 0 is a NaN with the sign bit set",
        ),
    },
)
@np.errstate(all="ignore")
def from_hp_to_fpx(b: FloatxTensor, input_float: Array, ebits: int, mbits: int) -> dict[str, Any]:
    """The codes and the row scales of ``input_float``; the layout of the document gives the two widths.

    Args:
        input_float: (rows, columns), both multiples of 64; float32, float16 or bfloat16.
        ebits: bits of the exponent, at least 1.
        mbits: bits of the mantissa; a code has at most 7 bits.

    Returns:
        ``codes``: uint8, before they are packed; ``scale``: one per row, in the dtype of the input.

    Raises:
        AssertionError: the rows or columns are no multiples of 64, or there are more dimensions.
        IndexError: there are fewer (measured on 0.11 and 0.15).
        ValueError: a code of more than 7 bits, which torchao does not pack; or as in ``quantize_affine_floatx``.
    """
    if input_float.ndim < 2:  # noqa: PLR2004 - rows and columns
        msg = f"input_float of shape {input_float.shape} is not accepted: give rows and columns"
        raise IndexError(msg)
    if input_float.ndim != 2 or any(n % 64 for n in input_float.shape):  # noqa: PLR2004 - rows and columns
        msg = f"input_float of shape {input_float.shape} is not accepted: give rows and columns, multiples of 64"
        raise AssertionError(msg)
    if 1 + ebits + mbits > 7:  # noqa: PLR2004 - float7 is the largest that the document names
        msg = f"ebits={ebits}, mbits={mbits} is not accepted: 1 + ebits + mbits is at most 7"
        raise ValueError(msg)
    scale = scale_of(b, np.abs(input_float).max(axis=1), format_of(ebits, mbits))
    return {"codes": quantize_affine_floatx(b, input_float, scale, ebits, mbits), "scale": scale}
