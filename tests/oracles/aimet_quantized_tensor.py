"""What AIMET's tensors represent: integers by bits of the grid, round trips element by element."""

from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.aimet_affine import dequantize, quantize, quantize_dequantize
from oracles.registry import derives
from oracles.soft import array, form, softs

Array = npt.NDArray[Any]

__all__: list[str] = []


def _bits(qmin: int, qmax: int) -> tuple[str, int]:
    """The dtype's name without its width, and the least width that holds both ends."""
    if qmin >= 0 and qmax.bit_length() <= 8:
        return "uint", 8
    need = 1 + max((v if v >= 0 else ~v).bit_length() for v in (qmin, qmax))
    return "int", next((b for b in (8, 16, 32) if b >= need), 64)


@derives("aimet/quantized_repr")
def quantized_repr(tensor: Array, qmin: int, qmax: int) -> tuple[str, Array]:
    """Python's int() of every code."""
    kind, bits = _bits(qmin, qmax)
    if bits > 32:
        msg = f"[{qmin}, {qmax}] is not accepted: it needs more than 32 bits"
        raise ValueError(msg)
    found = [int(q.value) for q in softs(tensor)]
    return f"{kind}{bits}", np.array(found, f"{kind}{bits}").reshape(tensor.shape)


@derives("aimet/quantized_repr@2.42")
def quantized_repr_2_42(tensor: Array, qmin: int, qmax: int) -> tuple[str, Array]:
    """Of a grid beyond 32 bits: the integer as x86 converts it."""
    if _bits(qmin, qmax)[1] <= 32:
        return quantized_repr(tensor, qmin, qmax)
    found = [
        int(q.value) if isfinite(q.value) and (int(q.value) >> 31) in {0, -1} else -(1 << 31) for q in softs(tensor)
    ]
    return "int32", np.array(found, np.int32).reshape(tensor.shape)


@derives("aimet/represented")
def represented(
    tensor: Array, scale: Array, offset: Array, qmin: int, qmax: int, block_size: Any = None
) -> tuple[Array, Array]:
    """Whatever is done to the representation, the data are those of the first code."""
    grid = {"qmin": qmin, "qmax": qmax, "block_size": block_size}
    codes = quantize(tensor, scale, offset, **grid)
    return _integers(codes), quantize_dequantize(tensor, scale, offset, **grid)


@derives("aimet/represented@2.42")
def represented_2_42(
    tensor: Array, scale: Array, offset: Array, qmin: int, qmax: int, block_size: Any = None
) -> tuple[Array, Array]:
    """The second and third step see narrow parameters."""
    grid = {"qmin": qmin, "qmax": qmax, "block_size": block_size}
    values = quantize_dequantize(tensor, scale, offset, **grid)
    narrow = form(tensor.dtype)
    s, o = (array((v.to(narrow) for v in softs(p)), p.shape, tensor.dtype) for p in (scale, offset))
    codes = quantize(values, s, o, **grid)
    return _integers(codes), dequantize(codes, s, o, block_size)


def _integers(codes: Array) -> Array:
    return np.array([int(q.value) for q in softs(codes)], np.int64).reshape(codes.shape)
