"""ModelOpt's FP8. Calls: about the ties of every code, scales per tensor, axis and block, zeros, rests."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, expected, measured
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import decode

__all__ = ["ANSWERS", "by_dimension"]

_QUANTIZE, _DEQUANTIZE = "modelopt/fp8_quantize", "modelopt/fp8_dequantize"
_SOURCE = "modelopt.torch.quantization.qtensor.FP8QTensor"
_F32, _HALVES = np.dtype(np.float32), (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_NUMBERS = decode(np.arange(127), "float8_e4m3fn", "float32")
_TIES = ((_NUMBERS[1:] + _NUMBERS[:-1]) / 2).astype(_F32)


def _scalar(value: float, dtype: Any = np.float32) -> Array:
    return np.array(value, dtype)


@expected(_QUANTIZE, "OCP FP8: the nearest, ties to even, saturating")
def nearest() -> Calls:
    """The code is that of the number of e4m3 nearest to the quotient by the scale, of two equally near the even one;
    beyond 448, infinity included, it is 448, and NaN stays NaN."""
    x = np.concatenate([_NUMBERS, *(step(_TIES, np.int64(k)) for k in (-1, 0, 1))])
    for sign in (1, -1):
        yield {"input": sign * x, "scales": _scalar(1)}
        yield {"input": sign * x * np.float32(0.25)}
        beyond = np.array([447, 449, 463.9, 464, 464.1, 480, 1e30, np.inf, np.nan], _F32)
        yield {"input": sign * beyond, "scales": _scalar(1)}


@measured(_QUANTIZE, _SOURCE)
def scale() -> Calls:
    """The scale is the largest magnitude over 448, and the quotient by it is computed, in the input's dtype."""
    for dtype in (_F32, *_HALVES):
        for top in (0.7, 3.3, 1e-3, 300, 3e4):
            yield {"input": (np.append(_TIES[::5], 448) * (top / 448)).astype(dtype)}
        yield {"input": (_TIES[::3] / 448).astype(dtype), "scales": _scalar(0.3, dtype)}


@measured(_QUANTIZE, _SOURCE)
def axis() -> Calls:
    """With an axis each of its indices has a scale."""
    x = ((np.arange(48) * 37) % 61 - 30.3).astype(_F32)
    for shape, given in (((6, 8), 0), ((6, 8), 1), ((6, 8), -1), ((2, 3, 8), 1), ((1, 48), 0)):
        yield {"input": x.reshape(shape) * np.geomspace(0.1, 9, shape[-1], dtype=_F32), "axis": given}


@expected(_QUANTIZE, "the axis has a scale for each of its indices")
def only_axis() -> Calls:
    """Each index of an axis has a scale where the tensor has no other axis too."""
    for given in (0, -1):
        yield {"input": np.array([1, -2, 0.3, 448], _F32), "axis": given}


@measured(_QUANTIZE, _SOURCE)
def blocks() -> Calls:
    """With blocks each has a scale, those at the ends of fewer elements too; scales that are handed over have one entry
    for each."""
    x = ((np.arange(96) * 37) % 61 - 30.3).astype(_F32) * np.geomspace(0.1, 9, 96, dtype=_F32)
    for shape, sizes in (
        ((6, 16), (1, 8)),
        ((6, 16), (2, 8)),
        ((6, 16), (4, 5)),
        ((2, 3, 16), (1, 2, 16)),
        ((96,), (7,)),
    ):
        yield {"input": x.reshape(shape), "block_sizes": sizes}
    scales = np.geomspace(0.1, 3, 12, dtype=_F32)
    for given in (scales.reshape(6, 2), scales, scales.reshape(12, 1), scales[:6].reshape(6, 1)):
        yield {"input": x.reshape(6, 16), "block_sizes": (1, 8), "scales": given}


@expected(_QUANTIZE, "a zero has the code of zero")
def zeros() -> Calls:
    """A zero has the code of zero where all that share its scale are zeros too."""
    for dtype in (_F32, *_HALVES):
        x = np.zeros((2, 16), dtype)
        yield {"input": x}
        x[1, 3], x[0, 2] = 1, -0.0
        yield {"input": x, "axis": 0}
        yield {"input": x, "block_sizes": (1, 8)}


@measured(_DEQUANTIZE, _SOURCE)
def product() -> Calls:
    """A real is the number times the scale, both in the dtype asked for."""
    codes = np.arange(256).astype(np.uint8).view(ml_dtypes.float8_e4m3fn)
    for s in (1.0, 0.3, 1e-6, 200):
        for dtype in ("float32", "bfloat16", "float16"):
            yield {"quantized_data": codes, "scale": _scalar(s), "dtype": dtype}
    by_row = np.geomspace(0.01, 3, 16, dtype=_F32).reshape(16, 1)
    yield {"quantized_data": codes.reshape(16, 16), "scale": by_row}


@measured(_DEQUANTIZE, _SOURCE, aspect="blocks")
def scales_of_blocks() -> Calls:
    """Each block has its scale, those at the ends of fewer elements too; with fewer scales it refuses."""
    codes = (np.arange(96) + 20).astype(np.uint8).view(ml_dtypes.float8_e4m3fn)
    for shape, sizes in (
        ((6, 16), (1, 8)),
        ((6, 16), (2, 8)),
        ((6, 16), (4, 5)),
        ((2, 3, 16), (1, 2, 16)),
        ((96,), (7,)),
    ):
        count = tuple(-(-n // size) for n, size in zip(shape, sizes, strict=True))
        scale = np.geomspace(0.1, 3, int(np.prod(count)), dtype=_F32).reshape(count)
        yield {"quantized_data": codes.reshape(shape), "scale": scale, "block_sizes": sizes}
    yield {"quantized_data": codes.reshape(6, 16), "scale": np.ones((6, 1), _F32), "block_sizes": (1, 8)}


def by_dimension(block_sizes: Any) -> dict[int, int] | None:
    """The library's word: sizes by dimension, from the last."""
    return block_sizes and {d - len(block_sizes): size for d, size in enumerate(block_sizes)}


def _fp8_quantize(input: Any, scales: Any = None, axis: int | None = None, block_sizes: Any = None) -> Any:  # noqa: A002
    from modelopt.torch.quantization.qtensor import FP8QTensor

    made, found = FP8QTensor.quantize(input, scales, axis, by_dimension(block_sizes))
    return made._quantized_data, found  # noqa: SLF001 - where it holds the codes


def _fp8_dequantize(quantized_data: Any, scale: Any, dtype: str = "float32", block_sizes: Any = None) -> Any:
    import torch
    from modelopt.torch.quantization.qtensor import FP8QTensor

    held = FP8QTensor(quantized_data.shape, torch.float32, quantized_data)
    return held.dequantize(getattr(torch, dtype), scale=scale, block_sizes=by_dimension(block_sizes))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt.qtensor": {_QUANTIZE: _fp8_quantize, _DEQUANTIZE: _fp8_dequantize},
}
