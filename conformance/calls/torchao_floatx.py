"""Calls for torchao's floatx: every format of 2 to 8 bits, its midpoints, and rows whose scale is at a bound."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.arrays import step
from halfeven.conformance.calls.registry import Arguments, calls
from halfeven.reference.minifloat import decode, floatx

Array = npt.NDArray[Any]
Calls = Iterator[Arguments]

__all__: list[str] = []

_ENCODE, _DECODE = "torchao.f32_to_floatx_unpacked", "torchao.floatx_unpacked_to_f32"
_CHOOSE, _QUANTIZE, _DEQUANTIZE, _FPX = (
    "torchao.choose_qparams_affine_floatx",
    "torchao.quantize_affine_floatx",
    "torchao.dequantize_affine_floatx",
    "torchao.from_hp_to_fpx",
)
_FORMATS = tuple((e, m) for e, m in product(range(1, 8), range(7)) if 1 + e + m <= 8)  # noqa: PLR2004 - bits of a byte
_USUAL = ((2, 1), (3, 2), (2, 3), (4, 3), (1, 0), (7, 0))
_DTYPES = (np.dtype("float32"), np.dtype("float16"), np.dtype(ml_dtypes.bfloat16))
_INF, _NAN = np.inf, np.nan
_NANS = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF, 0x7FD55555, 0xFFE80000], np.uint32)


def _f32(*values: float) -> Array:
    return np.array(values, np.float32)


def _numbers(e: int, m: int) -> Array:
    return decode(np.arange(2 ** (e + m)), floatx(e, m), "float32")


def _row(n: int, seed: int) -> Array:
    """Deterministic numbers of both signs over several binades."""
    k = np.arange(n) * 37 + seed
    return np.ldexp((k % 251 - 125).astype(np.float32), -(k % 11)).astype(np.float32)


@calls(_ENCODE, "nearest")
def _nearest() -> Calls:
    for e, m in _FORMATS:
        v = _numbers(e, m)
        middle = (v[1:] + v[:-1]) / 2
        points = np.concatenate([v, middle, step(middle, np.int64(1)), step(middle, np.int64(-1))]).astype(np.float32)
        points[::2] *= -1
        yield {"x": points, "ebits": e, "mbits": m}


@calls(_ENCODE, "saturation")
def _saturation() -> Calls:
    for e, m in _FORMATS:
        v = _numbers(e, m)
        top, gap = v[-1], v[-1] - v[-2]
        beyond = _f32(top, float(step(top, 1)), top + gap / 2, top + gap, 2 * top, 3.4e38, _INF)
        yield {"x": np.concatenate([beyond, -beyond]), "ebits": e, "mbits": m}


@calls(_ENCODE, "zeros")
def _zeros() -> Calls:
    for e, m in _FORMATS:
        yield {"x": _f32(0.0, -0.0, 1e-45, -1e-45, 1e-39, -1e-30), "ebits": e, "mbits": m}


@calls(_ENCODE, "nan")
def _nan() -> Calls:
    for e, m in _FORMATS:
        yield {"x": _NANS.view(np.float32), "ebits": e, "mbits": m}


@calls(_ENCODE, "shapes")
def _shapes() -> Calls:
    for shape in ((), (0,), (3, 0), (2, 3), (1, 2, 1, 2)):
        yield {"x": np.full(shape, 1.25, np.float32), "ebits": 2, "mbits": 3}


@calls(_ENCODE, "refusals")
def _refusals() -> Calls:
    x = _f32(1.0)
    yield {"x": x.astype(np.float64), "ebits": 2, "mbits": 1}
    yield {"x": x.astype(np.float16), "ebits": 2, "mbits": 1}
    yield {"x": x, "ebits": 4, "mbits": 4}
    yield {"x": x, "ebits": 8, "mbits": 0}
    yield {"x": x, "ebits": 0, "mbits": 3}


@calls(_DECODE, "all-codes")
def _all_codes() -> Calls:
    for e, m in _FORMATS:
        yield {"x": np.arange(2 ** (1 + e + m)).astype(np.uint8), "ebits": e, "mbits": m}


@calls(_DECODE, "refusals")
def _decode_refusals() -> Calls:
    yield {"x": np.zeros(2, np.int8), "ebits": 2, "mbits": 1}
    yield {"x": np.zeros(2, np.uint8), "ebits": 5, "mbits": 3}


@calls(_CHOOSE, "scale")
def _scale() -> Calls:
    rows = np.stack([_row(8, 3), _row(8, 77), -np.abs(_row(8, 5)), np.full(8, 0.1, np.float32)])
    for (e, m), dtype in product(_FORMATS, _DTYPES):
        yield {"tensor": rows.astype(dtype), "ebits": e, "mbits": m}


@calls(_CHOOSE, "small-rows")
def _small_rows() -> Calls:
    bound = np.float32(1e-12)
    rows = np.stack([_f32(0, 0), _f32(-0.0, 0), bound * _f32(1, 0), step(bound * _f32(1, 0), np.int64(1))])
    rows = np.concatenate([rows, [step(bound * _f32(1, 1), np.int64(-1))], [_f32(1e-40, 0)], [_f32(6e-8, -6e-8)]])
    for (e, m), dtype in product(_USUAL, _DTYPES):
        yield {"tensor": rows.astype(dtype), "ebits": e, "mbits": m}


@calls(_CHOOSE, "specials")
def _specials() -> Calls:
    rows = np.stack([_f32(1, _NAN), _f32(_INF, 1), _f32(-_INF, _NAN), _f32(3.4e38, -1)])
    for (e, m), dtype in product(_USUAL, _DTYPES):
        yield {"tensor": rows.astype(dtype), "ebits": e, "mbits": m}


@calls(_CHOOSE, "refusals")
def _choose_refusals() -> Calls:
    yield {"tensor": _f32(1, 2), "ebits": 2, "mbits": 1}
    yield {"tensor": np.ones((), np.float32), "ebits": 2, "mbits": 1}
    yield {"tensor": np.zeros((2, 0), np.float32), "ebits": 2, "mbits": 1}


@calls(_QUANTIZE, "rows")
def _rows() -> Calls:
    for (e, m), dtype in product(_USUAL, _DTYPES):
        x = np.stack([_row(24, 3), _row(24, 50)]).astype(dtype)
        for scale in (_f32(0.3, 7.0).astype(dtype), _f32(0.1, 1e-3), _f32(2.0)):
            yield {"tensor": x, "scale": scale, "ebits": e, "mbits": m}


@calls(_QUANTIZE, "ties")
def _ties() -> Calls:
    for e, m in _USUAL:
        v = _numbers(e, m)[:64]
        middle = (v[1:] + v[:-1]) / 2
        scales = _f32(1.0, 0.75, 41.0, 47.0, 55.0)  # 41 * (1 / 41) is not 1 in float32
        yield {"tensor": middle * scales[:, None], "scale": scales, "ebits": e, "mbits": m}


@calls(_QUANTIZE, "zero-scale")
def _zero_scale() -> Calls:
    x = np.stack([_f32(0, 0, -0.0), _f32(1, -1, 0.5)])
    for e, m in _USUAL:
        yield {"tensor": x, "scale": _f32(0, 1), "ebits": e, "mbits": m}
        yield {"tensor": np.stack([_f32(_NAN, 1, 2)] * 2), "scale": _f32(0.5, 1), "ebits": e, "mbits": m}


@calls(_QUANTIZE, "refusals")
def _quantize_refusals() -> Calls:
    yield {"tensor": np.ones((4, 2), np.float32), "scale": _f32(1, 2, 3), "ebits": 2, "mbits": 1}
    yield {"tensor": np.ones((4, 2), np.float32), "scale": _f32(1, 2, 3, 4), "ebits": 0, "mbits": 1}


@calls(_DEQUANTIZE, "all-codes")
def _dequantize() -> Calls:
    for e, m in _FORMATS:
        codes = np.arange(2 ** (1 + e + m)).astype(np.uint8)
        for dtype, scale in product(_DTYPES, (_f32(0.1), _f32(3.0).astype(np.float16))):
            yield {"tensor": codes[None], "scale": scale, "ebits": e, "mbits": m, "output_dtype": dtype.name}


@calls(_DEQUANTIZE, "rows")
def _dequantize_rows() -> Calls:
    codes = np.arange(48).reshape(4, 12).astype(np.uint8)
    for scale in (_f32(0.1, 0.2, 1e-30, 1e38), _f32(0, -1, _INF, _NAN)):
        yield {"tensor": codes, "scale": scale, "ebits": 3, "mbits": 2}
        yield {"tensor": codes, "scale": scale.astype(ml_dtypes.bfloat16), "ebits": 3, "mbits": 2}


@calls(_DEQUANTIZE, "refusals")
def _dequantize_refusals() -> Calls:
    yield {"tensor": np.zeros((4, 2), np.uint8), "scale": _f32(1, 2, 3), "ebits": 2, "mbits": 1}
    yield {"tensor": np.zeros((4, 2), np.int16), "scale": _f32(1), "ebits": 2, "mbits": 1}


@calls(_FPX, "rows")
def _fpx() -> Calls:
    for (e, m), dtype in zip(((3, 2), (2, 2), (1, 0), (5, 1)), (*_DTYPES, _DTYPES[0]), strict=True):
        x = _row(64 * 64, e).reshape(64, 64)
        x *= np.ldexp(np.float32(1), (np.arange(64) % 9 - 4)).astype(np.float32)[:, None]
        yield {"input_float": x.astype(dtype), "ebits": e, "mbits": m}


@calls(_FPX, "quotient")
def _fpx_quotient() -> Calls:
    for mbits in (0, 1):
        v = _numbers(5, mbits)[: 2 ** (5 + mbits)]
        middle = (v[1:] + v[:-1]) / 2
        x = np.resize(np.concatenate([middle, -middle]), (64, 64)).astype(np.float32)
        x[:, 0] = v[-1]
        scales = (np.arange(64) * 2 + 1).astype(np.float32)  # 41 * (1 / 41) is not 1 in float32
        yield {"input_float": x * scales[:, None], "ebits": 5, "mbits": mbits}


@calls(_FPX, "refusals")
def _fpx_refusals() -> Calls:
    for shape in ((64,), (64, 32), (63, 64), (1, 64, 64)):
        yield {"input_float": np.ones(shape, np.float32), "ebits": 3, "mbits": 2}
    yield {"input_float": np.ones((64, 64), np.float32), "ebits": 4, "mbits": 3}
    yield {"input_float": np.ones((64, 64), np.float32), "ebits": 0, "mbits": 3}
