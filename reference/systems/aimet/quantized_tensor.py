"""AIMET: what the tensors that quantizers return represent, as codes, as integers and as reals."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.systems.aimet.affine import CODES, REALS, VALUES, dequantize, quantize, quantize_dequantize

__all__ = ["quantized_repr", "represented"]

_MEASURED = "aimet-torch 2.42, measured"


@dataclass(frozen=True)
class Integers(Behaviour):
    """The choices in making integers of codes."""

    wide: str = choice({
        "refused": "refuses a grid that int32 does not hold",
        "int32": "takes int32 for a grid that it does not hold, and its least number for codes beyond it",
    })  # fmt: skip
    fraction: str = choice({"cut": "cuts off the fraction of a code", "rounded": "rounds the fraction of a code"})


@dataclass(frozen=True)
class Represented(Behaviour):
    """The choice of what a dequantized tensor represents."""

    parameters: str = choice({
        "kept": "keeps the codes and the values of a tensor when it is quantized or dequantized again",
        "narrowed": "rounds scale and offset to the tensor's dtype before it quantizes the values again",
    })  # fmt: skip


# The dtypes that an encoding may have, in the order in which they are tried (measured).
_DTYPES = (("uint8", 0, 255), ("int8", -128, 127), ("int16", -(2**15), 2**15 - 1), ("int32", -(2**31), 2**31 - 1))


def _dtype(qmin: int, qmax: int) -> str | None:
    return next((name for name, lowest, highest in _DTYPES if lowest <= qmin and qmax <= highest), None)


@formula(
    "aimet/quantized_repr",
    equation=r"repr(q) = \mathrm{trunc}(q)",
    basis=Real(),
    source="class QuantizedTensorBase, quantized_repr (the order of the dtypes, and fractions: measured)",
    behaviour=Integers(),
    versions={"2.42": (Integers(wide="int32"), _MEASURED)},
)
def quantized_repr(b: Integers, tensor: Array, qmin: int, qmax: int) -> tuple[str, Array]:
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
    if dtype is None and b.wide == "refused":
        msg = f"qmin={qmin}, qmax={qmax} is not accepted: give a grid that int32 holds"
        raise ValueError(msg)
    whole = np.trunc(tensor) if b.fraction == "cut" else np.rint(tensor)
    if dtype is not None:
        return dtype, whole.astype(dtype)
    info = np.iinfo(np.int32)
    return "int32", np.where(np.abs(whole) <= info.max, whole, info.min).astype(np.int32)


@formula(
    "aimet/represented",
    equation=r"codes(\hat x) = q,\quad values(codes(\hat x)) = \hat x \quad\text{where}\quad \hat x = (q + o) * s",
    basis=AsComputed(dtype="the tensor's, widened as in quantize_dequantize"),
    source="class QuantizedTensorBase: first paragraph, quantize, dequantize",
    behaviour=Represented(),
    versions={"2.42": (Represented("narrowed"), _MEASURED)},
)
def represented(
    b: Represented,
    tensor: Array,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    block_size: BlockSize | None = None,
) -> tuple[Array, Array]:
    """Of the dequantized tensor that ``tensor`` becomes: its codes, int64, and the values of those, ``tensor.dtype``.

    A tensor that was quantized or dequantized represents the same data afterwards: the codes are those of ``quantize``
    and the values those of ``quantize_dequantize``. Arguments and errors as in ``quantize``.
    """
    given: dict[str, Any] = {"qmin": qmin, "qmax": qmax, "block_size": block_size}
    values = quantize_dequantize(VALUES, tensor, scale, offset, **given)
    if b.parameters == "kept":
        return quantize(CODES, tensor, scale, offset, **given).astype(np.int64), values
    s, o = scale.astype(tensor.dtype), offset.astype(tensor.dtype)
    codes = quantize(CODES, values, s, o, **given)
    return codes.astype(np.int64), dequantize(REALS, codes, s, o, block_size)
