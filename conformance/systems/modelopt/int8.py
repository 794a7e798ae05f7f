"""ModelOpt's INT8. Calls: about the ties of every code, scales per tensor, axis and block, zeros, rests."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, expected, measured
from halfeven.conformance.systems.modelopt.fp8 import by_dimension
from halfeven.reference.blocks import Array, Shape

__all__ = ["ANSWERS"]

_QUANTIZE, _DEQUANTIZE = "modelopt/int8_quantize", "modelopt/int8_dequantize"
_SOURCE = "modelopt.torch.quantization.qtensor.INT8QTensor"
_F32, _HALVES = np.dtype(np.float32), (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_TIES = (np.arange(256) - 127.5).astype(_F32)
_WAVE = ((np.arange(96) * 37) % 61 - 30.3).astype(_F32) * np.geomspace(0.1, 9, 96, dtype=_F32)
_WHOLE: tuple[tuple[Shape, Shape], ...] = (
    ((6, 16), (1, 8)),
    ((6, 16), (2, 8)),
    ((2, 3, 16), (1, 3, 16)),
    ((96,), (12,)),
)


def _scalar(value: float, dtype: Any = np.float32) -> Array:
    return np.array(value, dtype)


@expected(_QUANTIZE, "the nearest integer, ties to even, saturating")
def nearest() -> Calls:
    """The code is the integer nearest to the quotient by the scale, of two equally near the even one, in [-128,
    127]."""
    x = np.concatenate([np.arange(-130, 130).astype(_F32), *(step(_TIES, np.int64(k)) for k in (-1, 0, 1))])
    beyond = np.array([127.4, 127.5, 128, -128.5, -129, 1e30, -1e30, np.inf, -np.inf], _F32)
    for power in (1, 0.25, 2.0**-130):
        yield {"input": x * _F32.type(power), "scales": _scalar(power)}
        yield {"input": beyond * _F32.type(power), "scales": _scalar(power)}
    yield {"input": x, "scales": _scalar(0.3)}
    yield {"input": _TIES[::3], "scales": _scalar(1 / 3)}


@measured(_QUANTIZE, _SOURCE)
def scale() -> Calls:
    """The scale is the largest magnitude over 127, and the quotient by it is computed, in the input's dtype."""
    for dtype in (_F32, *_HALVES):
        for top in (0.7, 3.3, 1e-3, 300, 3e4):
            yield {"input": (np.append(_TIES[::5], 127) * (top / 127.5)).astype(dtype)}
        yield {"input": (_TIES[::3] / 128).astype(dtype), "scales": _scalar(0.3, dtype)}


@measured(_QUANTIZE, _SOURCE)
def axis() -> Calls:
    """With an axis each of its indices has a scale."""
    x = _WAVE[:48]
    for shape, given in (((6, 8), 0), ((6, 8), 1), ((6, 8), -1), ((2, 3, 8), 1), ((1, 48), 0)):
        yield {"input": x.reshape(shape) * np.geomspace(0.1, 9, shape[-1], dtype=_F32), "axis": given}
    yield {"input": x.reshape(6, 8), "scales": np.geomspace(0.1, 3, 6, dtype=_F32).reshape(6, 1), "axis": 0}


@expected(_QUANTIZE, "the axis has a scale for each of its indices")
def only_axis() -> Calls:
    """Each index of an axis has a scale where the tensor has no other axis too."""
    for given in (0, -1):
        yield {"input": np.array([1, -2, 0.3, 127], _F32), "axis": given}


@measured(_QUANTIZE, _SOURCE)
def blocks() -> Calls:
    """With blocks each has a scale, and the input is filled up with zeros to whole ones."""
    for shape, sizes in (*_WHOLE, ((6, 16), (4, 5)), ((2, 3, 16), (1, 2, 16)), ((96,), (7,))):
        yield {"input": _WAVE.reshape(shape), "block_sizes": sizes}
    for dtype in _HALVES:
        yield {"input": _WAVE.astype(dtype).reshape(6, 16), "block_sizes": (1, 8)}
    scales = np.geomspace(0.1, 3, 12, dtype=_F32).reshape(6, 2)
    yield {"input": _WAVE.reshape(6, 16), "block_sizes": (1, 8), "scales": scales}


@measured(_QUANTIZE, _SOURCE)
def refusals() -> Calls:
    """With blocks, scales that are handed over have one entry for each, and the blocks are whole."""
    x = _WAVE.reshape(6, 16)
    for shape, sizes in (((12,), (1, 8)), ((12, 1), (1, 8)), ((6, 1), (1, 8)), ((6, 4), (1, 5)), ((6, 3), (1, 5))):
        yield {"input": x, "block_sizes": sizes, "scales": np.ones(shape, _F32)}


@expected(_QUANTIZE, "a zero has the code of zero")
def zeros() -> Calls:
    """A zero has the code 0 where all that share its scale are zeros too."""
    for dtype in (_F32, *_HALVES):
        x = np.zeros((2, 16), dtype)
        yield {"input": x}
        x[1, 3], x[0, 2] = 1, -0.0
        yield {"input": x, "axis": 0}
        yield {"input": x, "block_sizes": (1, 8)}


@measured(_QUANTIZE, _SOURCE)
def specials() -> Calls:
    """NaN has the code 0, and so has all that shares a scale with it; under an infinity's scale everything has the code
    0; a magnitude too small for a scale of its own has the code 127 or -128."""
    x = np.ones((3, 16), _F32)
    x[0, 3], x[1, 5], x[2, 7] = np.nan, -np.inf, -0.5
    x[2] *= _F32.type(1e-44)
    for dtype in (_F32, *_HALVES):
        yield {"input": x.astype(dtype), "axis": 0}
    yield {"input": (x[2:] * 1e38).astype(np.float16), "scales": _scalar(0, np.float16)}


@measured(_DEQUANTIZE, _SOURCE)
def product() -> Calls:
    """A real is the code times the scale, both in the dtype asked for."""
    codes = np.arange(-128, 128).astype(np.int8)
    for s in (1.0, 0.3, 1e-6, 900):
        for dtype in ("float32", "bfloat16", "float16"):
            yield {"quantized_data": codes, "scale": _scalar(s), "shape": (256,), "dtype": dtype}
    by_row = np.geomspace(0.01, 3, 16, dtype=_F32).reshape(16, 1)
    yield {"quantized_data": codes.reshape(16, 16), "scale": by_row, "shape": (16, 16)}


@measured(_DEQUANTIZE, _SOURCE, aspect="blocks")
def scales_of_blocks() -> Calls:
    """Each block has its scale; what was filled up is cut off."""
    codes = (np.arange(96) * 37 % 251 - 125).astype(np.int8)
    for shape, sizes in _WHOLE:
        count = tuple(n // size for n, size in zip(shape, sizes, strict=True))
        scale = np.geomspace(0.1, 3, int(np.prod(count)), dtype=_F32).reshape(count)
        given = {"quantized_data": codes.reshape(shape), "scale": scale, "block_sizes": sizes}
        yield {**given, "shape": shape}
        yield {**given, "shape": tuple(max(n - 1, 1) for n in shape), "dtype": "bfloat16"}


@measured(_DEQUANTIZE, _SOURCE, aspect="refusals")
def refused() -> Calls:
    """Blocks are whole, and each has its scale."""
    codes = np.zeros((6, 16), np.int8)
    for shape, sizes in (((6, 1), (1, 8)), ((12,), (1, 8)), ((6, 4), (1, 5))):
        yield {"quantized_data": codes, "scale": np.ones(shape, _F32), "shape": (6, 16), "block_sizes": sizes}


def _int8_quantize(input: Any, scales: Any = None, axis: int | None = None, block_sizes: Any = None) -> Any:  # noqa: A002
    from modelopt.torch.quantization.qtensor import INT8QTensor

    made, found = INT8QTensor.quantize(input, scales, axis, by_dimension(block_sizes))
    return made._quantized_data, found  # noqa: SLF001 - where it holds the codes


def _int8_dequantize(
    quantized_data: Any, scale: Any, shape: Any, dtype: str = "float32", block_sizes: Any = None
) -> Any:
    import torch
    from modelopt.torch.quantization.qtensor import INT8QTensor

    held = INT8QTensor(torch.Size(shape), torch.float32, quantized_data)
    return held.dequantize(getattr(torch, dtype), scale=scale, block_sizes=by_dimension(block_sizes))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt.qtensor": {_QUANTIZE: _int8_quantize, _DEQUANTIZE: _int8_dequantize},
}
