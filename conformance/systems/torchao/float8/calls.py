"""Calls for torchao's float8: blocks of every rank, scales at their bounds, midpoints of the four formats."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Arguments, calls
from halfeven.reference.minifloat import FLOAT_FORMATS, decode

__all__: list[str] = []

Array = npt.NDArray[Any]
Calls = Iterator[Arguments]


_CHOOSE, _QUANTIZE, _DEQUANTIZE = (
    "torchao/choose_scale_float8",
    "torchao/quantize_affine_float8",
    "torchao/dequantize_affine_float8",
)
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_DTYPES = (np.dtype("float32"), np.dtype("float16"), np.dtype(ml_dtypes.bfloat16))
_INF, _NAN = np.inf, np.nan


def _f32(*values: float) -> Array:
    return np.array(values, np.float32)


def _numbers(name: str) -> Array:
    return decode(np.arange(FLOAT_FORMATS[name].max_code + 1), name, "float32")


def _mixed(*shape: int) -> Array:
    k = np.arange(int(np.prod(shape))) * 37 + 5
    return np.ldexp((k % 251 - 125).astype(np.float32), -(k % 9)).astype(np.float32).reshape(shape)


@calls(_CHOOSE, "scale")
def _scale() -> Calls:
    rows = np.stack([_mixed(6), -np.abs(_mixed(6)), _f32(0.1, 0, 0, 0, 0, 0), _f32(10.2, -3.5, 1, 0, 0, 0)])
    for name, dtype in product(_FLOAT8, _DTYPES):
        yield {"tensor": rows.astype(dtype), "block_size": (1, 6), "float8_dtype": name}
    yield {"tensor": rows, "block_size": (4, 6)}


@calls(_CHOOSE, "blocks")
def _blocks() -> Calls:
    yield {"tensor": np.array(-3, np.float32), "block_size": ()}
    for shape, block in (
        ((6,), (6,)),
        ((6,), (2,)),
        ((4, 6), (1, 6)),
        ((4, 6), (4, 1)),
        ((4, 6), (2, 3)),
        ((4, 6), (1, 2)),
        ((2, 4, 6), (1, 2, 3)),
        ((2, 4, 6), (2, 1, 6)),
        ((1, 1), (1, 1)),
        ((0, 4), (1, 4)),
        ((0, 4), (2, 2)),
    ):
        yield {"tensor": _mixed(*shape), "block_size": block}


@calls(_CHOOSE, "single-elements")
def _single_elements() -> Calls:
    yield {"tensor": _mixed(2, 3), "block_size": (1, 1)}
    yield {"tensor": _mixed(5), "block_size": (1,)}


@calls(_CHOOSE, "zero-and-small-blocks")
def _small() -> Calls:
    rows = np.stack([_f32(0, -0.0), _f32(1e-45, 0), _f32(6e-6, 0), _f32(1e-4, 0), _f32(3e-38, 0), _f32(1e-40, 0)])
    for name, dtype in product(_FLOAT8, _DTYPES):
        yield {"tensor": rows.astype(dtype), "block_size": (1, 2), "float8_dtype": name}


@calls(_CHOOSE, "specials")
def _specials() -> Calls:
    rows = np.stack([_f32(1, _NAN), _f32(_INF, 1), _f32(-_INF, _NAN), _f32(3.4e38, -1)])
    for dtype in _DTYPES:
        yield {"tensor": rows.astype(dtype), "block_size": (1, 2)}
        yield {"tensor": rows.astype(dtype), "block_size": (1, 2), "hp_value_lb": 1e-3, "hp_value_ub": 100.0}


@calls(_CHOOSE, "bounds")
def _bounds() -> Calls:
    rows = np.stack([_f32(0, 0), _f32(1e-3, 0), _f32(0.1, 0), _f32(5, 0), _f32(-700, 3)])
    # 1 + 2^-8 + 2^-40 is a tie of bfloat16 once it has been rounded to float32; 1e-12 is 0 in float16.
    limits = ((1e-12, None), (0.1, None), (None, 4.7), (0.1, 4.7), (7.0, 0.3), (1 + 2**-8 + 2**-40, None), (0.0, 0.0))
    for (low, high), dtype in product(limits, _DTYPES):
        yield {"tensor": rows.astype(dtype), "block_size": (1, 2), "hp_value_lb": low, "hp_value_ub": high}


def _scaled(scales: Array, dtype: Any) -> Array:
    """Rows of one number whose scale in float8_e4m3fn is near each of ``scales``: 448 times it, rounded."""
    with np.errstate(over="ignore"):
        return (scales.astype(np.float64) * 448).astype(dtype)[:, None] * np.ones((1, 2), dtype)


@calls(_CHOOSE, "e8m0-scale")
def _e8m0() -> Calls:
    exponents = np.array([-120.0, -60, -15, -9, -3, -2, -1, 0, 1, 2, 5, 7])
    for dtype in _DTYPES:
        mantissas = np.array([1.0, 1.2, 1.40, 1.43, 1.7, 1.99])
        scales = np.ldexp(mantissas, exponents[:, None].astype(np.int64)).ravel()
        yield {"tensor": _scaled(scales, dtype), "block_size": (1, 2), "scale_dtype": "float8_e8m0fnu"}
    yield {"tensor": np.stack([_f32(0, 0), _f32(1, _NAN), _f32(_INF, 1), _f32(1e-45, 0)]), "block_size": (1, 2)} | {
        "scale_dtype": "float8_e8m0fnu"
    }
    yield {"tensor": _f32(600, 1), "block_size": (2,), "scale_dtype": "float8_e8m0fnu"}


@calls(_CHOOSE, "e8m0-half-way")
def _e8m0_half_way() -> Calls:
    root = 11863283  # sqrt(2) in units of 2^-23, rounded down
    for k in (-118, -65, -64, -33, -8, -5, -2, -1, 0, 1, 2, 4, 9, 33, 64, 65, 100, 117):
        reach = np.unique([0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 30, 31, 32, 33, 40])
        units = np.concatenate([root - reach[::-1], root + 1 + reach])
        near = _scaled(np.ldexp(units.astype(np.float64), k - 23), np.float32)
        yield {"tensor": near, "block_size": (1, 2), "scale_dtype": "float8_e8m0fnu"}
    for dtype, k in product(_DTYPES[1:], (-100, -65, -64, -17, -8, -5, -2, -1, 0, 1, 2, 5, 6)):
        if dtype == np.float16 and not -9 < k < 7:  # noqa: PLR2004 - the range of float16
            continue
        mantissas = np.ldexp(1.0 + np.arange(20, 100, 2) / 128, k)
        yield {"tensor": _scaled(mantissas, dtype), "block_size": (1, 2), "scale_dtype": "float8_e8m0fnu"}


@calls(_CHOOSE, "refusals")
def _refusals() -> Calls:
    x = _mixed(4, 6)
    yield {"tensor": x, "block_size": (6,)}
    yield {"tensor": x, "block_size": (1, 4)}
    yield {"tensor": x, "block_size": (8, 6)}
    yield {"tensor": x, "block_size": (-1, -1)}
    yield {"tensor": x, "block_size": (1, 6), "scale_dtype": "bfloat16"}
    yield {"tensor": x, "block_size": (1, 6), "scale_dtype": "float16"}


@calls(_QUANTIZE, "nearest")
def _nearest() -> Calls:
    for name in _FLOAT8:
        v = _numbers(name)
        middle = (v[1:] + v[:-1]) / 2
        points = np.concatenate([v, middle, step(middle, np.int64(1)), step(middle, np.int64(-1))]).astype(np.float32)
        points[::2] *= -1
        yield {"tensor": points, "scale": _f32(1.0), "float8_dtype": name}
        yield {"tensor": points[:200], "scale": np.array(41.0, np.float32), "float8_dtype": name}
        yield {"tensor": points[:200] * 41, "scale": np.array(41.0, np.float32), "float8_dtype": name}


@calls(_QUANTIZE, "saturation")
def _saturation() -> Calls:
    for name in _FLOAT8:
        v = _numbers(name)
        top, gap = v[-1], v[-1] - v[-2]
        beyond = _f32(top, float(step(top, 1)), top + gap / 2, top + gap, 2 * top, 3.4e38, _INF)
        for scale in (1.0, 0.1, 1e-30):
            yield {"tensor": np.concatenate([beyond, -beyond]), "scale": _f32(scale), "float8_dtype": name}


@calls(_QUANTIZE, "nan-and-zero")
def _nan_and_zero() -> Calls:
    x = _f32(0.0, -0.0, 1e-45, -1e-45, _NAN, -_NAN, 1.0, _INF)
    for name, scale in product(_FLOAT8, (1.0, 0.0, -0.0, _INF, _NAN, 1e-45, -2.0)):
        yield {"tensor": x, "scale": _f32(scale), "float8_dtype": name}


@calls(_QUANTIZE, "blocks")
def _quantize_blocks() -> Calls:
    for name, dtype in product(_FLOAT8, (*_DTYPES, np.dtype("float64"))):
        x = _mixed(4, 6).astype(dtype)
        yield {"tensor": x, "scale": _f32(0.1, 0.7, 3.0, 41.0).reshape(4, 1), "float8_dtype": name}
        yield {"tensor": _mixed(2, 60).astype(dtype), "scale": _f32(0.3, 7.7).reshape(2, 1), "float8_dtype": name}
        yield {"tensor": x, "scale": _f32(0.1, 0.7, 3.0, 41.0, 5.0, 0.3).reshape(2, 3), "float8_dtype": name}
    x = _mixed(2, 4, 6)
    for shape in ((1, 1, 1), (2, 1, 1), (1, 4, 1), (2, 2, 3), (2, 4, 6), (1, 2, 6), (1,), ()):
        yield {"tensor": x, "scale": np.asarray(np.abs(_mixed(*shape)) + np.float32(0.1))}
    yield {"tensor": np.array(1.3, np.float32), "scale": np.array(0.1, np.float32)}
    yield {"tensor": np.zeros((0, 4), np.float32), "scale": np.zeros((0, 1), np.float32)}


@calls(_QUANTIZE, "sixteen-bit-scales")
def _sixteen() -> Calls:
    for name, dtype in product(_FLOAT8, _DTYPES[1:]):
        scale = _f32(0.1, 0.7, 3.0, 41.0).reshape(4, 1).astype(dtype)
        yield {"tensor": _mixed(4, 60).astype(dtype), "scale": scale, "float8_dtype": name}


@calls(_QUANTIZE, "scale-of-another-rank")
def _rank() -> Calls:
    for shape, scale in (((4, 4), (4,)), ((4, 6), (4,)), ((2, 2, 3), (2,)), ((4,), (4, 1)), ((4, 6), (2,))):
        yield {"tensor": _mixed(*shape), "scale": np.abs(_mixed(*scale)) + np.float32(1)}


@calls(_QUANTIZE, "refusals")
def _quantize_refusals() -> Calls:
    for shape in ((3, 1), (4, 4), (1, 5), (8, 6)):
        yield {"tensor": _mixed(4, 6), "scale": np.ones(shape, np.float32)}


def _codes(name: str) -> Array:
    return np.arange(256).astype(np.uint8).view(np.dtype(getattr(ml_dtypes, name)))


@calls(_DEQUANTIZE, "all-codes")
def _all_codes() -> Calls:
    for name, dtype in product(_FLOAT8, ("float32", "float16", "bfloat16", "float64")):
        yield {"tensor": _codes(name), "scale": _f32(0.1), "output_dtype": dtype}
    for name, scale in product(_FLOAT8, (1e38, 1e-42, 0.0, -3.0, _INF, _NAN)):
        yield {"tensor": _codes(name), "scale": np.array(scale, np.float32)}


@calls(_DEQUANTIZE, "blocks")
def _dequantize_blocks() -> Calls:
    x = _codes("float8_e4m3fn")[16:64].reshape(2, 4, 6)
    for shape in ((1, 1, 1), (2, 1, 1), (1, 4, 1), (2, 2, 3), (2, 4, 6), (1, 2, 6), (1,), ()):
        yield {"tensor": x, "scale": np.asarray(np.abs(_mixed(*shape)) + np.float32(0.1))}
    yield {"tensor": x[:0], "scale": np.zeros((0, 1, 1), np.float32)}


@calls(_DEQUANTIZE, "scale-of-another-rank")
def _dequantize_rank() -> Calls:
    for shape, scale in (((4, 4), (4,)), ((4, 6), (4,)), ((4,), (4, 1)), ((4, 6), (2,))):
        codes = _codes("float8_e5m2")[: int(np.prod(shape))].reshape(shape)
        yield {"tensor": codes, "scale": np.abs(_mixed(*scale)) + np.float32(1)}


@calls(_DEQUANTIZE, "refusals")
def _dequantize_refusals() -> Calls:
    for shape in ((3, 1), (4, 4), (1, 5), (8, 6)):
        yield {"tensor": _codes("float8_e5m2")[:24].reshape(4, 6), "scale": np.ones(shape, np.float32)}
