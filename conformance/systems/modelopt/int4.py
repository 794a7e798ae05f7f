"""ModelOpt's INT4. Calls: about the ties of every code, magnitudes whose reciprocal is rounded, zeros, rests."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, expected, measured

__all__ = ["ANSWERS"]

_QUANTIZE, _DEQUANTIZE = "modelopt/int4_quantize", "modelopt/int4_dequantize"
_SOURCE = "modelopt.torch.quantization.qtensor.INT4QTensor"
_F32, _HALVES = np.dtype(np.float32), (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_TIES = np.concatenate([[7], np.arange(13) - 6.5, [0.25, -0.25]])


@expected(_QUANTIZE, "the scale multiplies, and 7 is the largest code", aspect="scale")
def scale() -> Calls:
    """The scale of a block is 7 over its largest magnitude, rounded once."""
    for dtype in (_F32, *_HALVES):
        maxima = np.geomspace(0.01, 900, 40).astype(dtype)
        yield {"input": (maxima.astype(_F32)[:, None] * (_TIES / 7)).astype(dtype), "block_size": 16}


@measured(_QUANTIZE, _SOURCE)
def nearest() -> Calls:
    """The code is 8 more than the nearest integer to the product of the element and the scale, ties to even."""
    for top in (7.0, 14.0, 0.875, 7 * 2.0**-14):  # whose scale is exact, and its reciprocal times 7 too
        x = (_TIES * (top / 7)).astype(_F32)
        for k in (-1, 0, 1):
            moved = np.where(np.arange(16) == 0, x, step(x, np.int64(k)))
            yield {"input": moved.reshape(1, 16), "block_size": 16}
            yield {"input": -moved.reshape(1, 16), "block_size": 16}
    for dtype in _HALVES:
        yield {"input": (_TIES / 7).astype(dtype).reshape(1, 16), "block_size": 16}


@measured(_QUANTIZE, _SOURCE)
def small_magnitudes() -> Calls:
    """A scale beyond the dtype's largest number is infinite, and elements have the code 0 or 15 by their sign."""
    x = np.array([1, -1, 0.5, -0.3], np.float64)
    for dtype, top in ((_HALVES[0], 1e-4), (_HALVES[0], 6e-8), (_HALVES[1], 1e-38), (_F32, 1e-38), (_F32, 1e-45)):
        yield {"input": (x * top).astype(dtype).reshape(2, 2), "block_size": 4}


@expected(_QUANTIZE, "a zero has the code of zero")
def zeros() -> Calls:
    """A zero has the code 8 in a block of zeros too."""
    for dtype in (_F32, *_HALVES):
        x = np.zeros((2, 16), dtype)
        x[1, 3], x[0, 2] = 1, -0.0
        yield {"input": x, "block_size": 8}
        yield {"input": x, "block_size": 32}


@measured(_QUANTIZE, _SOURCE)
def nan() -> Calls:
    """A block with NaN has the scale NaN and the code 0; one with an infinity the scale 0, and codes 8 but for the
    infinity's, which is 0."""
    x = np.ones((2, 16), _F32)
    x[0, 3], x[1, 5] = np.nan, -np.inf
    for dtype in (_F32, *_HALVES):
        yield {"input": x.astype(dtype), "block_size": 16}


@measured(_QUANTIZE, _SOURCE)
def shapes() -> Calls:
    """Blocks run through all dimensions, the last one filled up with zeros; of two codes in a byte the one of the even
    index is in the high half."""
    x = ((np.arange(96) * 37) % 61 - 30.5).astype(_F32)
    for shape, block in (((96,), 32), ((96,), 96), ((3, 32), 16), ((2, 3, 16), 32), ((48, 2), 4), ((2, 12), 16)):
        yield {"input": x[: int(np.prod(shape))].reshape(shape), "block_size": block}
    yield {"input": x[:10], "block_size": 4}


@measured(_QUANTIZE, _SOURCE)
def refusals() -> Calls:
    """The last dimension is even, and what a block is filled up with is a whole number of rows."""
    yield {"input": np.ones((2, 5), _F32), "block_size": 2}
    yield {"input": np.ones((3, 4), _F32), "block_size": 8}


@measured(_DEQUANTIZE, _SOURCE)
def quotient() -> Calls:
    """A real is the code less 8, over the scale, in the dtype of the scales; the high half of a byte is the element of
    the even index."""
    data = np.arange(256).astype(np.uint8).reshape(16, 16)
    scales = np.geomspace(0.01, 900, 16)
    for kind in (_F32, *_HALVES):
        for dtype in ("float32", "bfloat16", "float16"):
            yield {"quantized_data": data, "scale": scales.astype(kind).reshape(16, 1), "shape": (16, 32)} | {
                "block_size": 32,
                "dtype": dtype,
            }


@measured(_DEQUANTIZE, _SOURCE)
def special_scales() -> Calls:
    """Of an infinite scale every element is zero, with the sign of its code less 8; of NaN it is NaN."""
    data = np.array([[0, 0xF8, 0x79, 0x80]] * 3, np.uint8)
    scale = np.array([np.inf, np.nan, 0], _F32).reshape(3, 1)
    yield {"quantized_data": data, "scale": scale, "shape": (3, 8), "block_size": 8}


@measured(_DEQUANTIZE, _SOURCE)
def rest() -> Calls:
    """What the last block was filled up with is cut off."""
    data = (np.arange(16) * 37 % 256).astype(np.uint8)
    scale = np.array([3, 0.7], _F32).reshape(2, 1)
    yield {"quantized_data": data.reshape(2, 8), "scale": scale, "shape": (2, 12), "block_size": 16}
    yield {"quantized_data": data, "scale": scale, "shape": (30,), "block_size": 16}


def _int4_quantize(input: Any, block_size: int) -> Any:  # noqa: A002 - its word
    from modelopt.torch.quantization.qtensor import INT4QTensor

    made, scale = INT4QTensor.quantize(input, block_size)
    return made._quantized_data, scale  # noqa: SLF001 - where it holds the codes


def _int4_dequantize(quantized_data: Any, scale: Any, shape: Any, block_size: int, dtype: str = "float32") -> Any:
    import torch
    from modelopt.torch.quantization.qtensor import INT4QTensor

    held = INT4QTensor(torch.Size(shape), torch.float32, quantized_data)
    return held.dequantize(getattr(torch, dtype), scale=scale, block_sizes={-1: block_size})


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt.qtensor": {_QUANTIZE: _int4_quantize, _DEQUANTIZE: _int4_dequantize},
}
