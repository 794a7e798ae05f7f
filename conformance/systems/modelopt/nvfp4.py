"""ModelOpt's NVFP4. Calls: about the midpoints of elements and scales, at the bounds of a scale, zeros, NaN, rests."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, expected, measured
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import decode

__all__ = ["ANSWERS"]

_QUANTIZE, _DEQUANTIZE = "modelopt/nvfp4_quantize", "modelopt/nvfp4_dequantize"
_SOURCE = "modelopt.torch.quantization.qtensor.NVFP4QTensor"
_F32, _HALVES = np.dtype(np.float32), (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_INF, _NAN = np.inf, np.nan
# About the midpoints of e2m1, over the largest number.
_ELEMENTS = np.array([6, 0.24, 0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 5.1, -0.25, -0.75, -2.5, -5, -6]) / 6


def _blocks(maxima: Array) -> Array:
    return (maxima.astype(_F32)[:, None] * _ELEMENTS.astype(_F32)).astype(_F32)


def _scale(value: float) -> Array:
    return np.array(value, _F32)


@expected(_QUANTIZE, "OCP MX 1.0, section 5.3: e2m1; IEEE 754, section 4.3.1")
def nearest() -> Calls:
    """An element over both scales becomes the number of e2m1 nearest to it, of two equally near the one with the even
    code; beyond 6 it becomes 6."""
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6], _F32)
    x = np.concatenate([step(ties, np.int64(k)) for k in (-1, 0, 1)])
    x = np.concatenate([x, np.zeros(8, _F32)])
    for by in (1.0, 0.25):  # the scales of a block are powers of two: no quotient is rounded
        for sign in (1, -1):
            yield {"input": (sign * by * x).reshape(2, 16), "weights_scaling_factor_2": _scale(by)}


@measured(_QUANTIZE, _SOURCE)
def two_levels() -> Calls:
    """The tensor's scale is its largest magnitude over 2688; a block's scale is its largest magnitude over the product
    of 6 and the tensor's scale, rounded to e4m3; an element is divided by the product of both."""
    for top in (1.0, 3.3, 2688.0, 1e-10, 1e10):
        yield {"input": _blocks(top * np.array([1, 0.7, 0.31, 0.01, 1e-3, 1e-6]))}
    for dtype in _HALVES:
        yield {"input": _blocks(np.geomspace(0.1, 900, 24)).astype(dtype)}
    scales = decode(np.arange(1, 127), "float8_e4m3fn", "float32").astype(np.float64)
    for s_2 in (1.0, 0.1, 41.0):
        middle = (3 * (scales[1:] + scales[:-1]) * np.float32(s_2)).astype(_F32)
        for ulps in (-1, 0, 1):
            yield {"input": _blocks(step(middle, np.int64(ulps))), "weights_scaling_factor_2": _scale(s_2)}


@measured(_QUANTIZE, _SOURCE)
def scale_bounds() -> Calls:
    """A block's scale lies in [2^-9, 448], the numbers of e4m3 above zero."""
    maxima = np.array([1e-30, 0.001, 0.0058, 0.0117, 0.0118, 0.02, 2687, 2688, 2689, 2700, 1e10, 3.4e38])
    for s_2 in (1.0, 0.01, 100.0):
        yield {"input": _blocks(maxima), "weights_scaling_factor_2": _scale(s_2)}


@measured(_QUANTIZE, _SOURCE)
def zero_block() -> Calls:
    """A block whose largest magnitude over the tensor's scale is zero has the scale 1."""
    x = np.zeros((2, 32), _F32)
    x[1, 3], x[0, 20] = 1, 1e-45
    yield {"input": x}
    yield {"input": x, "weights_scaling_factor_2": _scale(100)}
    yield {"input": np.zeros((1, 16), _F32), "weights_scaling_factor_2": _scale(0.5)}


@expected(_QUANTIZE, "a tensor of zeros has no NaN in it")
def zero_tensor() -> Calls:
    """A tensor of zeros has finite scales, and the codes of zeros."""
    for dtype in (_F32, *_HALVES):
        yield {"input": np.zeros((2, 32), dtype)}
    yield {"input": np.zeros((1, 16), _F32), "weights_scaling_factor_2": _scale(0)}


@expected(_QUANTIZE, "OCP MX 1.0, section 5.3: e2m1 has a zero of either sign")
def signed_zeros() -> Calls:
    """A zero, and an element too small, keeps its sign."""
    x = np.ones((2, 16), _F32)
    x[0, ::3], x[1, ::3], x[1, 1] = -0.0, 0.0, -1e-45
    yield {"input": x}
    yield {"input": x, "weights_scaling_factor_2": _scale(1)}


@measured(_QUANTIZE, _SOURCE)
def nan() -> Calls:
    """A block with NaN has the scale NaN, and so has every block under a tensor scale of NaN, and one with an infinity
    under a tensor scale of infinity; each NaN has the code of 6."""
    x = _blocks(np.array([1, 100, 3]))
    x[0, 3], x[1, 5], x[1, 6] = _NAN, -_NAN, 0
    yield {"input": x}
    yield {"input": x, "weights_scaling_factor_2": _scale(0.5)}
    x[0, 3], x[1, 5] = _INF, -_INF
    yield {"input": x}
    yield {"input": x, "weights_scaling_factor_2": _scale(0.5)}


@measured(_QUANTIZE, _SOURCE)
def shapes() -> Calls:
    """Blocks run along the last dimension, which is filled up with zeros; the even index is in the low half of a
    byte."""
    x = _blocks(np.geomspace(0.1, 90, 12))
    for shape in ((192,), (1, 192), (12, 16), (2, 1, 3, 32)):
        yield {"input": x.reshape(shape)}
    for columns in (20, 7, 33):
        yield {"input": x.reshape(-1)[: 3 * columns].reshape(3, columns)}
    for size in (2, 8, 32):
        yield {"input": x.reshape(6, 32), "block_size": size}


def _codes(*shape: int) -> Array:
    return ((np.arange(int(np.prod(shape))) * 37) % 256).astype(np.uint8).reshape(shape)


def _e4m3(codes: Array) -> Array:
    return codes.astype(np.uint8).view(ml_dtypes.float8_e4m3fn)


@measured(_DEQUANTIZE, _SOURCE)
def product() -> Calls:
    """A real is the element times the float32 product of both scales, rounded to the dtype; a scale of NaN makes
    NaN."""
    # Without the code 8, of minus zero.
    data = np.array([b for b in range(256) if b % 16 != 8 and b // 16 != 8], np.uint8)[:224].reshape(28, 8)  # noqa: PLR2004
    scale = _e4m3(np.arange(28) * 4 + 19).reshape(28, 1)
    for s_2 in (1.0, 0.1, 1e-30, 1e36):
        for dtype in ("float32", "bfloat16", "float16"):
            given = {"quantized_data": data, "scale": scale, "double_scale": _scale(s_2), "shape": (28, 16)}
            yield given | {"dtype": dtype}
    yield given | {"scale": np.linspace(0.1, 3, 28, dtype=_F32).reshape(28, 1), "double_scale": _scale(0.3)}


@expected(_DEQUANTIZE, "OCP MX 1.0, section 5.3: e2m1")
def minus_zero() -> Calls:
    """The code 8 is minus zero."""
    given = {"scale": _e4m3(np.full((2, 1), 60)), "double_scale": _scale(0.3), "shape": (2, 16)}
    yield {"quantized_data": np.tile(np.array([0x80, 0x08, 0x88, 0x00], np.uint8), (2, 2)), **given}


@measured(_DEQUANTIZE, _SOURCE)
def places() -> Calls:
    """The low half of a byte is the element of the even index, and each block has its scale."""
    for shape, size in (((12, 16), 16), ((2, 96), 16), ((3, 2, 32), 16), ((192,), 16), ((6, 32), 8), ((6, 32), 2)):
        blocks = (*shape[:-1], shape[-1] // size)
        scale = _e4m3(np.arange(np.prod(blocks)) % 100 + 8).reshape(blocks)
        data = _codes(*shape[:-1], shape[-1] // 2)
        yield {"quantized_data": data, "scale": scale, "double_scale": _scale(0.1), "shape": shape} | {
            "block_size": size
        }


@expected(_DEQUANTIZE, "what quantize gives, dequantize takes")
def rest() -> Calls:
    """What quantization filled up comes back in its own shape."""
    for columns in (20, 7, 33):
        blocks = -(-columns // 16)
        scale = _e4m3(np.arange(3 * blocks) * 9 + 8).reshape(3, blocks)
        yield {"quantized_data": _codes(3, 8 * blocks), "scale": scale, "double_scale": _scale(0.1)} | {
            "shape": (3, columns)
        }


def _nvfp4_quantize(input: Any, block_size: int = 16, weights_scaling_factor_2: Any = None) -> Any:  # noqa: A002
    from modelopt.torch.quantization.qtensor import NVFP4QTensor

    made, scale, outer = NVFP4QTensor.quantize(
        input, block_size, None, weights_scaling_factor_2, keep_high_precision=False, try_tensorrt=False
    )
    return made._quantized_data, scale, outer  # noqa: SLF001 - where it holds the codes


def _nvfp4_dequantize(
    quantized_data: Any,
    scale: Any,
    double_scale: Any,
    shape: Any,
    block_size: int = 16,
    dtype: str = "float32",
) -> Any:
    import torch
    from modelopt.torch.quantization.qtensor import NVFP4QTensor

    held = NVFP4QTensor(torch.Size(shape), torch.float32, quantized_data)
    return held.dequantize(getattr(torch, dtype), scale=scale, double_scale=double_scale, block_sizes={-1: block_size})


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt.qtensor": {_QUANTIZE: _nvfp4_quantize, _DEQUANTIZE: _nvfp4_dequantize},
}
