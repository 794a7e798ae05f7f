"""ModelOpt's MXFP4. Calls: magnitudes about powers of two, elements about midpoints, zeros, infinities and NaN."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, expected, measured
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS"]

_QUANTIZE, _DEQUANTIZE = "modelopt/mxfp4_quantize", "modelopt/mxfp4_dequantize"
_SOURCE = "modelopt.torch.quantization.qtensor.MXFP4QTensor"
_F32, _HALVES = np.dtype(np.float32), (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_INF, _NAN = np.inf, np.nan


def _with_maxima(maxima: Array) -> Array:
    """A row of four for each maximum: it, and others below it."""
    return (maxima.astype(_F32)[:, None] * np.array([-0.3, 1, 0.11, -0.9], _F32)).astype(_F32)


@measured(_QUANTIZE, _SOURCE, aspect="scale")
def scale() -> Calls:
    """The scale of a block is the least power of two that is no less than its largest magnitude over 6, from 2^-127
    on."""
    for k in (-130, -126, -100, -30, 0, 1, 31, 120):
        yield {"input": _with_maxima(np.ldexp([6, 6.1, 7.9, 8, 4, 11.9], k)), "block_size": 4}
    for dtype in _HALVES:
        yield {"input": _with_maxima(np.geomspace(1e-4, 6e4, 60)).astype(dtype), "block_size": 4}


@expected(_QUANTIZE, "the logarithm rounded up, whatever its dtype", aspect="scale-is-exact")
def just_above_a_power_of_two() -> Calls:
    """A quotient just above a power of two belongs to the next one, however close it is and whatever its exponent."""
    reach = np.array([-1, 0, 1, 2, 3, 4, 5, 7, 10, 11, 12, 13, 21, 22, 23, 24, 34])
    for k in (-112, -65, -64, -33, -17, -9, -5, -4, -1, 0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 100):
        maxima = step(np.ldexp(_F32.type(6), k)[None].astype(_F32), reach)
        yield {"input": _with_maxima(maxima), "block_size": 4}


@expected(_QUANTIZE, "OCP MX 1.0, section 5.3: e2m1; IEEE 754, section 4.3.1")
def nearest() -> Calls:
    """An element over the scale becomes the number of e2m1 nearest to it, of two equally near the one with the even
    code."""
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6], _F32)
    x = np.stack([step(ties, np.int64(k)) for k in (-1, 0, 1)])
    x = np.minimum(x, 6)
    for k in (0, -30, 30):
        for sign in (1, -1):
            yield {"input": np.ldexp(sign * x, k).astype(_F32), "block_size": 8}


@expected(_QUANTIZE, "OCP MX 1.0, section 5.3: e2m1 has a zero of either sign")
def zeros() -> Calls:
    """A block of zeros has the scale code zero; a zero, and an element too small, keeps its sign."""
    x = np.array([0, 0, 0, 0, -0.0, 0, -0.0, 0, 1, -0.0, 1e-20, -1e-20, 1e30, 1e-45, -1e-45, 0], _F32)
    yield {"input": x.reshape(4, 4), "block_size": 4}
    for dtype in _HALVES:
        yield {"input": x[:12].astype(dtype).reshape(3, 4), "block_size": 4}


@expected(_QUANTIZE, "OCP MX 1.0, section 5.4: the scale code 255 is NaN")
def nan() -> Calls:
    """A block with NaN has the scale code 255, or is not zero."""
    x = np.array([_NAN, 1, -1, 0.5, _NAN, _NAN, -_NAN, 5, 1, 2, 3, 4], _F32).reshape(3, 4)
    yield {"input": x, "block_size": 4}
    for dtype in _HALVES:
        yield {"input": x.astype(dtype), "block_size": 4}


@expected(_QUANTIZE, "what is beyond the largest number is not zero")
def infinity() -> Calls:
    """An infinity becomes the largest element of a block with the largest scale."""
    yield {"input": np.array([_INF, 1, -1, 3e38, -_INF, _INF, 5, 0.1], _F32).reshape(2, 4), "block_size": 4}


@measured(_QUANTIZE, _SOURCE)
def shapes() -> Calls:
    """Blocks run through all dimensions; of two codes in a byte the one of the even index is in the low half."""
    k = np.arange(96)
    x = np.ldexp(((k * 37) % 61 - 30.5), -(k % 12) - (k // 12) % 3).astype(_F32)
    for shape, block in (((96,), 32), ((96,), 96), ((3, 32), 16), ((2, 3, 16), 32), ((12, 8), 16), ((48, 2), 4)):
        yield {"input": x.reshape(shape), "block_size": block}
    yield {"input": x.reshape(3, 32)}


@measured(_QUANTIZE, _SOURCE)
def refusals() -> Calls:
    """The blocks are whole."""
    x = np.ones((2, 24), _F32)
    yield {"input": x}
    yield {"input": x, "block_size": 20}


@measured(_DEQUANTIZE, _SOURCE, aspect="product")
def all_codes() -> Calls:
    """A real is the element times the power of two of its block, rounded to the dtype; the low half of a byte is the
    element of the even index."""
    data = np.arange(256).astype(np.uint8).reshape(4, 64)
    scales = np.array([127, 130, 100, 0, 120, 141, 115, 126, 1, 254, 128, 110, 105, 142, 143, 144], np.uint8)
    for dtype in ("float32", "bfloat16", "float16"):
        yield {"quantized_data": data, "scale": scales.reshape(16, 1), "dtype": dtype}
    yield {"quantized_data": data.reshape(2, 2, 64), "scale": scales[:4], "block_size": 128}
    every = np.tile(np.array([0x71, 0xA3], np.uint8), (255, 1))
    yield {"quantized_data": every, "scale": np.arange(255).astype(np.uint8).reshape(255, 1), "block_size": 4}


@expected(_DEQUANTIZE, "OCP MX 1.0, section 5: where the scale is NaN, every value of the block is", aspect="nan")
def nan_scale() -> Calls:
    """The scale code 255 makes NaN."""
    yield {"quantized_data": np.array([0x71, 0x80, 0xF0], np.uint8), "scale": np.array([255], np.uint8)} | {
        "block_size": 6
    }


def _mxfp4_quantize(input: Any, block_size: int = 32) -> Any:  # noqa: A002 - its word
    from modelopt.torch.quantization.qtensor import MXFP4QTensor

    made, scale = MXFP4QTensor.quantize(input, block_size)
    return made._quantized_data, scale  # noqa: SLF001 - where it holds the codes


def _mxfp4_dequantize(quantized_data: Any, scale: Any, block_size: int = 32, dtype: str = "float32") -> Any:
    import torch
    from modelopt.torch.quantization.qtensor import MXFP4QTensor

    shape = torch.Size([*quantized_data.shape[:-1], 2 * quantized_data.shape[-1]])
    held = MXFP4QTensor(shape, torch.float32, quantized_data)
    return held.dequantize(getattr(torch, dtype), scale=scale, block_sizes={-1: block_size})


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt.qtensor": {_QUANTIZE: _mxfp4_quantize, _DEQUANTIZE: _mxfp4_dequantize},
}
