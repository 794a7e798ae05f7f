"""ModelOpt's NF4. Calls: between every two levels, scales whose sums are exact in any order, rests, several blocks."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, expected, measured, silent
from halfeven.reference.blocks import Array
from halfeven.reference.systems.modelopt.nf4 import Nf4Codes, nf4_levels

__all__ = ["ANSWERS"]

_QUANTIZE, _DOUBLE, _DEQUANTIZE = (f"modelopt/nf4_{word}" for word in ("quantize", "double_quantize", "dequantize"))
_SOURCE = "modelopt.torch.quantization.qtensor.NF4QTensor"
_F32, _HALVES = np.dtype(np.float32), (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_LEVELS = nf4_levels(Nf4Codes())
_TIES = ((_LEVELS[1:] + _LEVELS[:-1]) / 2).astype(_F32)
_INF, _NAN = np.inf, np.nan
_NEAR = np.array([*(np.arange(33) - 16), -700, 700, -9000, 9000])


def _with_top(x: Array, top: float, size: int = 16) -> Array:
    """Blocks that begin with 1, then have others: all of them times ``top``."""
    filled = np.append(x, np.zeros(-x.size % (size - 1)))
    rows = filled.reshape(-1, size - 1).astype(np.float64)
    return np.concatenate([np.ones((len(rows), 1)), rows], axis=1) * top


@expected(_QUANTIZE, "QLoRA, section 3: the nearest level; IEEE 754, section 4.3.1", aspect="nearest")
def nearest() -> Calls:
    """The code is that of the level nearest to the element over the largest magnitude of its block."""
    beside = np.concatenate([step(_TIES, np.int64(k)) for k in _NEAR if k])
    yield {"input": _with_top(beside, 1).astype(_F32), "block_size": 16, "scale_block_size": 1}
    for top in (0.25, 2.0**-60, 3.0, 0.7, 1e-40, 1.7e38):
        x = np.concatenate([beside[::3], _LEVELS, np.linspace(-1, 1, 41)])
        yield {"input": _with_top(x, top).astype(_F32), "block_size": 16, "scale_block_size": 2}
    for dtype in _HALVES:
        near = np.concatenate([step(_TIES.astype(dtype), np.int64(k)) for k in (-2, -1, 1, 2)]).astype(_F32)
        for top in (1.0, 0.7, 3.0, 448.0):
            yield {"input": _with_top(near, top).astype(dtype), "block_size": 16, "scale_block_size": 1}


@measured(_QUANTIZE, _SOURCE, aspect="tie")
def ties() -> Calls:
    """Of two levels that are equally near it is the lower one."""
    for top in (1.0, 0.125, 2.0**20):
        yield {"input": _with_top(_TIES, top).astype(_F32), "block_size": 16, "scale_block_size": 1}
    for dtype in _HALVES:
        exact = _TIES[_TIES.astype(dtype).astype(_F32) == _TIES]
        yield {"input": _with_top(exact, 1).astype(dtype), "block_size": 16, "scale_block_size": 1}


@expected(_QUANTIZE, "QLoRA, appendix E: NF4 has a level for zero", aspect="zeros")
def zeros() -> Calls:
    """A zero has the code 7 in a block of zeros too, and so has what is too small."""
    for dtype in (_F32, *_HALVES):
        x = np.zeros((2, 16), dtype)
        x[1, 3], x[0, 2], x[1, 4] = 1, -0.0, 1e-7
        yield {"input": x, "block_size": 8, "scale_block_size": 2}
        yield {"input": x, "block_size": 32, "scale_block_size": 1}


@silent(_QUANTIZE, "neither says what is made of NaN and of infinity")
def nan() -> Calls:
    """The codes of a block with NaN, and of one with an infinity."""
    x = np.linspace(-1, 1, 32).astype(_F32).reshape(2, 16)
    x[0, 3], x[1, 5], x[1, 6] = _NAN, -_INF, _INF
    for dtype in (_F32, *_HALVES):
        yield {"input": x.astype(dtype), "block_size": 16, "scale_block_size": 1}


@measured(_QUANTIZE, _SOURCE)
def shapes() -> Calls:
    """Blocks run through all dimensions, the last one filled up with zeros, and so are the scales; of two codes in a
    byte the one of the even index is in the high half."""
    x = ((np.arange(96) * 37) % 61 - 30.5).astype(_F32)
    for shape, size, of_scales in (((96,), 32, 3), ((95,), 16, 4), ((3, 5), 4, 3), ((2, 3, 16), 32, 1), ((7,), 96, 2)):
        yield {"input": x[: int(np.prod(shape))].reshape(shape), "block_size": size, "scale_block_size": of_scales}


@expected(_QUANTIZE, _SOURCE + "'s signature: None is scale_block_size's default", aspect="default")
def without_scale_blocks() -> Calls:
    """Without scale_block_size there is a scale for each block."""
    yield {"input": _with_top(_TIES, 1).astype(_F32), "block_size": 16}
    yield {"input": np.linspace(-2, 3, 50).astype(_F32), "block_size": 8}


def _around(mean: float, parts: Array) -> Array:
    """Numbers that lie about ``mean`` in pairs, so that it is theirs and every sum of them is exact."""
    return np.stack([mean + parts, mean - parts], axis=-1).reshape(-1)


@measured(_DOUBLE, _SOURCE, aspect="codes")
def double_codes() -> Calls:
    """A scale less the mean of all, times the largest code over the largest such difference of its block, is rounded to
    the nearest integer, ties to even."""
    k = np.arange(32)
    for bits in (8, 4, 2):
        bound = 2 ** (bits - 1) - 1
        ties = (k % (bound + 1) + 0.5 * (k // (bound + 1) % 2)).clip(0, bound)
        ties[::4] = bound
        for unit, mean in ((2.0**-7, 4.0), (2.0**-10, 1.0), (0.25, 96.0)):
            s = _around(mean, ties * unit)
            yield {"scales": s.astype(_F32), "scale_block_size": 8, "num_scale_bits": bits}
    uneven = np.array([-7, 1, 2.5, 3.5, 0, 0, 3.5, -3.5, 7, -2.5, -1.5, -3])
    yield {"scales": (1 + uneven / 16).astype(_F32), "scale_block_size": 4, "num_scale_bits": 4}
    for dtype in _HALVES:
        s = _around(2.0, np.array([7, 1, 2.5, 3.5, 6.5, 5.5, 7, 4]) / 16)
        yield {"scales": s.astype(dtype), "scale_block_size": 8, "num_scale_bits": 4}


@expected(_DOUBLE, "IEEE 754, section 5.4.1: a quotient is rounded once", aspect="factor")
def factor() -> Calls:
    """What a block is multiplied by is a quotient rounded to the dtype of the scales, and the product is rounded to it
    before it becomes an integer."""
    for dtype, unit in ((_F32, 2.0**-14), (_HALVES[0], 2.0**-8), (_HALVES[1], 2.0**-6)):
        parts = (np.arange(48) * 7 % 31 + 1) * unit
        s = _around(1.0, parts)
        for size in (2, 6, 32):
            yield {"scales": s.astype(dtype), "scale_block_size": size, "num_scale_bits": 8}


@silent(_DOUBLE, "QLoRA says nothing of scales that are all the same, nor of NaN")
def alike() -> Calls:
    """Scales that are all the mean, and NaN."""
    for dtype in (_F32, *_HALVES):
        yield {"scales": np.full(8, 1.5, dtype), "scale_block_size": 4, "num_scale_bits": 8}
        yield {"scales": np.array([1, _NAN, 2, 1], dtype), "scale_block_size": 2, "num_scale_bits": 8}


@measured(_DOUBLE, _SOURCE)
def whole_blocks() -> Calls:
    """The blocks of scales are whole."""
    yield {"scales": np.arange(9).astype(_F32), "scale_block_size": 4, "num_scale_bits": 8}


@measured(_DEQUANTIZE, _SOURCE, aspect="sum")
def all_codes() -> Calls:
    """A real is the level times a scale: its code over double_scale, rounded to that one's dtype and then to the dtype
    asked for, in which the mean, rounded to it, is added."""
    data = (np.arange(128) * 37 % 256).astype(np.uint8)
    given = {"quantized_data": data, "shape": (256,), "block_size": 16}
    for kind in (_F32, *_HALVES):
        for by, zero in ((100, 1.25), (77.7, 0.3337), (3e4, 2.0**-14), (0.01, 1e-3)):
            for dtype in ("float32", "bfloat16", "float16"):
                scales = (np.arange(16) * 17 % 255 - 127).astype(np.int8)
                parameters = {"double_scale": np.full(1, by, kind), "scale_zeros": np.asarray(zero, _F32)}
                yield {**given, "scale": scales, **parameters, "dtype": dtype}


@expected(_DEQUANTIZE, "QLoRA, section 3: each block of scales has a constant of its own", aspect="double_scale")
def several_blocks() -> Calls:
    """The code of a scale is divided by the double_scale of its block of scales."""
    data = (np.arange(64) * 37 % 256).astype(np.uint8)
    scales = (np.arange(8) * 31 % 255 - 127).astype(np.int8)
    zero = np.asarray(0.5, _F32)
    for by in ((100.0, 3.0), (7.0, 0.9, 11.0, 64.0), (2.0,) * 8):
        given = {"scale": scales.reshape(len(by), -1), "double_scale": np.array(by, _F32), "scale_zeros": zero}
        yield {"quantized_data": data, **given, "shape": (128,), "block_size": 16}


@measured(_DEQUANTIZE, _SOURCE)
def rest() -> Calls:
    """What the last block was filled up with is cut off, and scales beyond it are left out."""
    data = (np.arange(24) * 37 % 256).astype(np.uint8)
    given = {"double_scale": np.array([9], _F32), "scale_zeros": np.asarray(1.5, _F32)}
    scales = np.array([[3, -7, 100, 55]], np.int8)
    for shape, size in (((48,), 16), ((5, 9), 16), ((33,), 16), ((2, 2, 10), 16), ((47,), 12), ((3, 13), 24)):
        yield {"quantized_data": data, "scale": scales, **given, "shape": shape, "block_size": size}


def _nf4_quantize(input: Any, block_size: int, scale_block_size: int | None = None) -> Any:  # noqa: A002 - its word
    from modelopt.torch.quantization.qtensor import NF4QTensor

    made, scales = NF4QTensor.quantize(input, block_size, scale_block_size)
    return made._quantized_data, scales  # noqa: SLF001 - where it holds the codes


def _nf4_double_quantize(scales: Any, scale_block_size: int, num_scale_bits: int) -> Any:
    from modelopt.torch.quantization.qtensor import NF4QTensor

    return NF4QTensor.double_quantization(scales, scale_block_size, num_scale_bits)


def _nf4_dequantize(
    quantized_data: Any,
    scale: Any,
    double_scale: Any,
    scale_zeros: Any,
    shape: Any,
    block_size: int,
    dtype: str = "float32",
) -> Any:
    import torch
    from modelopt.torch.quantization.qtensor import NF4QTensor

    held = NF4QTensor(torch.Size(shape), torch.float32, quantized_data)
    named = {"scale": scale, "double_scale": double_scale, "scale_zeros": scale_zeros}
    return held.dequantize(getattr(torch, dtype), **named, block_sizes={-1: block_size})


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt.qtensor": {_QUANTIZE: _nf4_quantize, _DOUBLE: _nf4_double_quantize, _DEQUANTIZE: _nf4_dequantize},
}
