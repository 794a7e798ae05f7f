"""ModelOpt's MXFP8. Calls: magnitudes about powers of two, elements about midpoints, scale codes given, rests."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, expected, measured, silent
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import decode

__all__ = ["ANSWERS"]

_QUANTIZE, _DEQUANTIZE = "modelopt/mxfp8_quantize", "modelopt/mxfp8_dequantize"
_SOURCE = "modelopt.torch.quantization.qtensor.MXFP8QTensor"
_F32, _HALVES = np.dtype(np.float32), (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_NUMBERS = decode(np.arange(127), "float8_e4m3fn", "float32")
_TIES = ((_NUMBERS[1:] + _NUMBERS[:-1]) / 2).astype(_F32)
_INF, _NAN = np.inf, np.nan


def _with_maxima(maxima: Array) -> Array:
    """A block for each maximum: it, in turn at one place and the other, and others below it."""
    below = np.linspace(-0.9, 0.9, 32)
    rows = [np.roll([m, *(m * below[1:])], 5 * i) for i, m in enumerate(maxima.astype(np.float64))]
    return np.array(rows).astype(_F32)


@measured(_QUANTIZE, _SOURCE)
def scale() -> Calls:
    """The scale of a block is the least power of two that is no less than its largest magnitude over 448, from 2^-127
    to 2^127."""
    for k in (-149, -136, -135, -127, -126, -100, -30, -9, -8, 0, 1, 31, 119):
        yield {"input": _with_maxima(np.ldexp([448, 450, 511, 512, 256, 300], k))}
    for dtype in _HALVES:
        yield {"input": _with_maxima(np.geomspace(1e-4, 6e4, 60)).astype(dtype)}


@expected(_QUANTIZE, "the logarithm rounded up, whatever its dtype", aspect="scale-is-exact")
def just_above_a_power_of_two() -> Calls:
    """A quotient just above a power of two belongs to the next one, however close it is and whatever its exponent."""
    reach = np.array([-1, 0, 1, 2, 3, 4, 5, 7, 10, 11, 12, 13, 21, 22, 23, 24, 34])
    for k in (-112, -65, -64, -33, -17, -9, -5, -4, -1, 0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 100):
        yield {"input": _with_maxima(step(np.ldexp(_F32.type(448), k)[None].astype(_F32), reach))}


@expected(_QUANTIZE, "OCP MX 1.0, section 5.2: e4m3; IEEE 754, section 4.3.1")
def nearest() -> Calls:
    """An element over the scale becomes the number of e4m3 nearest to it, of two equally near the one with the even
    code; beyond 448, infinity included, it is 448, and NaN stays NaN."""
    x = np.concatenate([_NUMBERS, *(step(_TIES, np.int64(k)) for k in (-1, 0, 1))])
    beyond = np.array([447, 449, 463.9, 464, 464.1, 480, 1e30, _INF, _NAN], _F32)
    for sign in (1, -1):
        for code in (127, 120, 254, 40):
            near = np.ldexp(sign * x, code - 127).astype(_F32)
            yield {"input": near, "weights_scaling_factor": np.full(-(-near.size // 32), code, np.uint8)}
        yield {"input": sign * beyond, "weights_scaling_factor": np.array([127], np.uint8)}
    for dtype in _HALVES:
        yield {"input": _TIES[80:].astype(dtype), "weights_scaling_factor": np.array([129, 127], np.uint8)}


@expected(_QUANTIZE, "OCP MX 1.0, section 5.2: e4m3 has a zero of either sign")
def zeros() -> Calls:
    """A block of zeros has the scale code 0; a zero, and an element too small, keeps its sign."""
    x = np.zeros((3, 32), _F32)
    x[0, 5], x[1, 3:6], x[2, 7:11] = -0.0, (1, -0.0, -1e-20), (1e30, 1e-45, -1e-45, -0.0)
    yield {"input": x}
    for dtype in _HALVES:
        yield {"input": x[:2].astype(dtype)}


@silent(_QUANTIZE, "OCP MX 1.0 says what a scale of NaN means, not what is made of NaN")
def nan() -> Calls:
    """The scale code of a block with NaN, and its elements."""
    x = np.zeros((3, 32), _F32)
    x[0, :4], x[1, 9:12], x[2, 31] = (_NAN, 1, -1, 1e-39), (5, _NAN, _INF), _NAN
    yield {"input": x}
    for dtype in _HALVES:
        yield {"input": x.astype(dtype)}


@measured(_QUANTIZE, _SOURCE)
def infinity() -> Calls:
    """A block with an infinity has the scale 2^127, and the infinity is 448."""
    x = np.ones((2, 32), _F32)
    x[0, :4], x[1, 9:12] = (_INF, 1, -3e38, 0), (5, -_INF, _INF)
    yield {"input": x}


@expected(_QUANTIZE, "OCP MX 1.0, section 5: where the scale is NaN, every value of the block is", aspect="nan-scale")
def given_nan() -> Calls:
    """Under the scale code 255 every element is NaN."""
    x = np.array([1, -1, 0, 3e38, -3e38], _F32)
    yield {"input": x, "weights_scaling_factor": np.array([255], np.uint8)}


@measured(_QUANTIZE, _SOURCE)
def shapes() -> Calls:
    """Blocks of 32 run along the last dimension, the last one of fewer elements; each has a scale code."""
    k = np.arange(192)
    x = np.ldexp(((k * 37) % 61 - 30.5), -(k % 12) - (k // 12) % 3).astype(_F32)
    for shape in ((96,), (5,), (33,), (3, 32), (2, 3, 32), (4, 40), (6, 31), (12, 1), (2, 2, 48)):
        yield {"input": x[: int(np.prod(shape))].reshape(shape)}
    yield {"input": x.reshape(3, 64), "weights_scaling_factor": np.array([[120, 121], [122, 123], [124, 1]], np.uint8)}
    yield {"input": x[:40], "weights_scaling_factor": np.array([120, 126], np.uint8)}


@measured(_QUANTIZE, _SOURCE)
def refusals() -> Calls:
    """Scale codes are uint8, and there is one for each block."""
    x = np.ones((2, 64), _F32)
    yield {"input": x, "weights_scaling_factor": np.ones((2, 2), _F32)}
    yield {"input": x, "weights_scaling_factor": np.full((2, 3), 127, np.uint8)}


@measured(_DEQUANTIZE, _SOURCE, aspect="product")
def all_codes() -> Calls:
    """A real is the element times the power of two of its block, rounded to the dtype."""
    codes = np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e4m3fn)
    for scales in ((127, 130, 100, 0, 120, 141, 115, 1), (254, 128, 110, 105, 142, 143, 144, 126)):
        for dtype in ("float32", "bfloat16", "float16"):
            yield {"quantized_data": codes, "scale": np.array(scales, np.uint8), "dtype": dtype}
    some = np.tile(np.array([0x71, 0xA3, 0x01], np.uint8).view(codes.dtype), (255, 1))
    yield {"quantized_data": some, "scale": np.arange(255).astype(np.uint8).reshape(255, 1)}


@measured(_DEQUANTIZE, _SOURCE)
def rest() -> Calls:
    """The last block of the last dimension may have fewer elements."""
    codes = (np.arange(160) * 37 % 120).astype(np.uint8).view(ml_dtypes.float8_e4m3fn)
    scales = np.arange(110, 140).astype(np.uint8)
    for shape in ((40,), (5,), (4, 40), (2, 2, 40), (5, 32)):
        blocks = (*shape[:-1], -(-shape[-1] // 32))
        given = scales[: int(np.prod(blocks))].reshape(blocks)
        yield {"quantized_data": codes[: int(np.prod(shape))].reshape(shape), "scale": given}


@expected(_DEQUANTIZE, "OCP MX 1.0, section 5: where the scale is NaN, every value of the block is", aspect="nan")
def nan_scale() -> Calls:
    """The scale code 255 makes NaN."""
    codes = np.array([0x71, 0x80, 0xF0, 0], np.uint8).view(ml_dtypes.float8_e4m3fn)
    yield {"quantized_data": codes, "scale": np.array([255], np.uint8)}


def _mxfp8_quantize(input: Any, weights_scaling_factor: Any = None) -> Any:  # noqa: A002 - its word
    from modelopt.torch.quantization.qtensor import MXFP8QTensor

    made, scale = MXFP8QTensor.quantize(input, weights_scaling_factor)
    return made._quantized_data, scale  # noqa: SLF001 - where it holds the codes


def _mxfp8_dequantize(quantized_data: Any, scale: Any, dtype: str = "float32") -> Any:
    import torch
    from modelopt.torch.quantization.qtensor import MXFP8QTensor

    held = MXFP8QTensor(quantized_data.shape, torch.float32, quantized_data)
    return held.dequantize(getattr(torch, dtype), scale=scale)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt.qtensor": {_QUANTIZE: _mxfp8_quantize, _DEQUANTIZE: _mxfp8_dequantize},
}
