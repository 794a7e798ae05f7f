"""AIMET: what the tensors that quantizers return represent, as codes, as integers and as reals."""

import numpy as np

from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.profiles.aimet.affine import dequantize, quantize, quantize_dequantize

__all__ = ["quantized_repr", "quantized_repr_2_42", "represented", "represented_2_42"]

# The dtypes that an encoding may have, in the order in which they are tried (measured).
_DTYPES = (("uint8", 0, 255), ("int8", -128, 127), ("int16", -(2**15), 2**15 - 1), ("int32", -(2**31), 2**31 - 1))


def _dtype(qmin: int, qmax: int) -> str | None:
    return next((name for name, lowest, highest in _DTYPES if lowest <= qmin and qmax <= highest), None)


@formula(
    "aimet.quantized_repr",
    equation=r"repr(q) = \mathrm{trunc}(q)",
    basis=Real(),
    source="class QuantizedTensorBase, quantized_repr (the order of the dtypes, and fractions: measured)",
)
def quantized_repr(tensor: Array, qmin: int, qmax: int) -> tuple[str, Array]:
    """The codes of a quantized tensor as integers, and their dtype: the encoding's, the first that holds its grid.

    A code of -0.0 is 0; a fraction, which an offset may leave, is cut off.

    Args:
        tensor: codes in [qmin, qmax], floats of any shape.
        qmin: the lowest code.
        qmax: the highest code.

    Returns:
        The dtype's name (uint8, int8, int16 or int32), and the codes.

    Raises:
        ValueError: no dtype holds the grid.
    """
    dtype = _dtype(qmin, qmax)
    if dtype is None:
        msg = f"qmin={qmin}, qmax={qmax} is not accepted: give a grid that int32 holds"
        raise ValueError(msg)
    return dtype, np.trunc(tensor).astype(dtype)


@formula(
    "aimet.quantized_repr@2.42",
    equation=r"repr(q) = \mathrm{trunc}(q),\ -2^{31} \text{ where int32 does not hold it}",
    basis=Real(),
    source="aimet-torch 2.42, measured",
)
def quantized_repr_2_42(tensor: Array, qmin: int, qmax: int) -> tuple[str, Array]:
    """``quantized_repr``, save that a grid that no dtype holds gets int32, and codes beyond that -2^31."""
    if _dtype(qmin, qmax) is not None:
        return quantized_repr(tensor, qmin, qmax)
    held = (tensor >= -(2**31)) & (tensor < 2**31)
    return "int32", np.where(held, np.trunc(np.where(held, tensor, 0)), -(2**31)).astype(np.int32)


@formula(
    "aimet.represented",
    equation=r"codes(\hat x) = q,\quad values(codes(\hat x)) = \hat x \quad\text{where}\quad \hat x = (q + o) * s",
    basis=AsComputed(dtype="the tensor's, widened as in quantize_dequantize"),
    source="class QuantizedTensorBase: first paragraph, quantize, dequantize",
)
def represented(
    tensor: Array, scale: Array, offset: Array, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> tuple[Array, Array]:
    """Of the dequantized tensor that ``tensor`` becomes: its codes, int64, and the values of those, ``tensor.dtype``.

    A tensor that was quantized or dequantized represents the same data afterwards: the codes are those of ``quantize``
    and the values those of ``quantize_dequantize``. Arguments and errors as in ``quantize``.
    """
    codes = quantize(tensor, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size)
    values = quantize_dequantize(tensor, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size)
    return codes.astype(np.int64), values


@formula(
    "aimet.represented@2.42",
    equation=(
        r"codes(\hat x) = \mathrm{clamp}(\lceil \hat x / s' \rfloor - o', q_{min}, q_{max}),"
        r"\ (s', o') = (s, o) \text{ in the tensor's dtype}"
    ),
    basis=AsComputed(dtype="the tensor's"),
    source="aimet-torch 2.42, measured",
)
def represented_2_42(
    tensor: Array, scale: Array, offset: Array, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> tuple[Array, Array]:
    """``represented``, save that scale and offset are rounded to the tensor's dtype once the values are made."""
    values = quantize_dequantize(tensor, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size)
    s, o = scale.astype(tensor.dtype), offset.astype(tensor.dtype)
    codes = quantize(values, s, o, qmin=qmin, qmax=qmax, block_size=block_size)
    return codes.astype(np.int64), dequantize(codes, s, o, block_size)
