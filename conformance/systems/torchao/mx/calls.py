"""Calls for torchao's MX: block maxima about the thresholds of each mode, elements about their midpoints, both ends."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Arguments, calls
from halfeven.reference.minifloat import FLOAT_FORMATS, FloatFormat, decode

__all__: list[str] = []

Array = npt.NDArray[Any]
Calls = Iterator[Arguments]


_TO, _FROM, _PACK, _UNPACK = "torchao/to_mx", "torchao/mx_dequantize", "torchao/pack_uint4", "torchao/unpack_uint4"
_BLOCKED, _UNBLOCKED = "torchao/to_blocked", "torchao/from_blocked"
_MODES = ("FLOOR", "CEIL", "EVEN", "RCEIL")
_FORMATS = {
    "float8_e4m3fn": FLOAT_FORMATS["float8_e4m3fn"],
    "float8_e5m2": FLOAT_FORMATS["float8_e5m2"],
    "fp6_e2m3": FLOAT_FORMATS["float6_e2m3fn"],
    "fp6_e3m2": FLOAT_FORMATS["float6_e3m2fn"],
    "float4_e2m1fn_x2": FLOAT_FORMATS["float4_e2m1fn"],
}
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_INF, _NAN = np.inf, np.nan


def _f32(*values: float) -> Array:
    return np.array(values, np.float32)


def _top(form: FloatFormat) -> int:
    """The exponent of the largest number."""
    return int(np.frexp(form.max)[1]) - 1


def _with_maxima(maxima: Array) -> Array:
    """A row of four elements for each maximum: it, and others below it."""
    with np.errstate(all="ignore"):
        return (maxima.astype(np.float32)[:, None] * _f32(-0.3, 1, 0.11, -0.9)).astype(np.float32)


def _about(points: Array, reach: int = 1) -> Array:
    return step(points.astype(np.float32)[:, None], np.arange(-reach, reach + 1)).ravel()


@calls(_TO, "scale")
def _scale() -> Calls:
    for (name, form), mode in product(_FORMATS.items(), _MODES):
        m = form.mantissa_bits
        points = np.ldexp([1, 1.25, 1.5, 1.75, 1.875, 1.9375, 2 - 2.0 ** -(m + 1)], _top(form))
        points = np.concatenate([points, [form.max, form.max / 4]])
        yield {"data_hp": _with_maxima(_about(points)), "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@calls(_TO, "far-scales")
def _far_scales() -> Calls:
    exponents = np.array([-100, -65, -33, -17, -9, -5, 4, 9, 17, 33, 65, 100, 118])
    for (name, form), mode in product(_FORMATS.items(), _MODES[:3]):
        points = np.ldexp(2 - 2.0 ** -(form.mantissa_bits + 1), exponents)
        points = np.concatenate([points, np.ldexp(1.0, exponents)])
        yield {"data_hp": _with_maxima(_about(points)), "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@calls(_TO, "rceil-just-above-a-power-of-two")
def _rceil() -> Calls:
    reach = np.array([-1, 0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 21, 22, 23, 24])
    for name, form in _FORMATS.items():
        highest = 127 - _top(form)
        for k in (
            -112,
            -65,
            -64,
            -33,
            -32,
            -17,
            -16,
            -9,
            -8,
            -5,
            -4,
            -1,
            0,
            1,
            3,
            4,
            7,
            8,
            15,
            16,
            31,
            32,
            63,
            64,
            100,
        ):
            if k < highest:
                maxima = step(np.ldexp(np.float32(form.max), k)[None].astype(np.float32), reach)
                yield {"data_hp": _with_maxima(maxima), "elem_dtype": name, "block_size": 4, "scaling_mode": "RCEIL"}


@calls(_TO, "nearest")
def _nearest() -> Calls:
    for name, form in _FORMATS.items():
        v = decode(np.arange(form.max_code + 1), form, "float32")
        middle = (v[1:] + v[:-1]) / 2
        points = np.concatenate([v, middle, step(middle, np.int64(1)), step(middle, np.int64(-1))]).astype(np.float32)
        points[::2] *= -1
        points = np.resize(points, -(-points.size // 3) * 3).reshape(-1, 3)
        block = np.concatenate([points, np.full((len(points), 1), form.max, np.float32)], axis=1)
        for mode, k in product(_MODES, (0, -30)):
            x = np.ldexp(block, k).astype(np.float32)
            yield {"data_hp": x, "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@calls(_TO, "saturation")
def _saturation() -> Calls:
    for (name, form), mode in product(_FORMATS.items(), _MODES):
        power = 2.0 ** _top(form)
        points = _f32(form.max, power * 1.76, power * 1.9, power * 1.93, power * 1.99, power * 2)
        x = np.stack([points, -points, np.zeros(6, np.float32), points[::-1]], axis=1)
        yield {"data_hp": x, "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@calls(_TO, "zeros")
def _zeros() -> Calls:
    for name, mode in product(_FORMATS, _MODES):
        x = _f32(0, 0, 0, 0, -0.0, 0, -0.0, 0, 1, -0.0, 1e-20, -1e-20).reshape(3, 4)
        yield {"data_hp": x, "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@calls(_TO, "smallest-scale")
def _smallest() -> Calls:
    for (name, form), mode in product(_FORMATS.items(), _MODES):
        exponents = np.array([-149, -148, -140, -130, -127, -126, -125, -124, -122, -120, -119, -118, -113, -112, -111])
        points = np.concatenate([np.ldexp(1.0, exponents), np.ldexp(1.3, exponents), np.ldexp(form.max, [-128, -127])])
        yield {"data_hp": _with_maxima(_about(points)), "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@calls(_TO, "largest-scale")
def _largest() -> Calls:
    for name, mode in product(_FORMATS, _MODES):
        maxima = _f32(3e38, 3.4e38, 2.0**127, 1.5 * 2.0**127, 1.7 * 2.0**127, 1.99 * 2.0**127, 1.99 * 2.0**126)
        yield {"data_hp": _with_maxima(maxima), "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@calls(_TO, "infinity")
def _infinity() -> Calls:
    for name, mode in product(_FORMATS, _MODES):
        x = _f32(_INF, 1, -1, 3e38, -_INF, _INF, 0, -0.0).reshape(2, 4)
        yield {"data_hp": x, "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@calls(_TO, "nan")
def _nan() -> Calls:
    for name, mode in product(_FORMATS, _MODES):
        x = _f32(_NAN, 1, -1, 0, _NAN, _NAN, -0.0, 5, 1, 2, 3, 4).reshape(3, 4)
        yield {"data_hp": x, "elem_dtype": name, "block_size": 4, "scaling_mode": mode}
        if mode == "RCEIL":
            continue  # 0.18 multiplies two NaNs there: whose bits are left depends on the shape
        y = np.tile(_f32(1, 0, -0.0, _INF), (6, 1))
        y[:, 1] = np.array([0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFF800001], np.uint32).view(
            np.float32
        )
        yield {"data_hp": y, "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@calls(_TO, "shapes")
def _shapes() -> Calls:
    k = np.arange(96)
    x = np.ldexp(((k * 37) % 61 - 30).astype(np.float32), -(k % 12) - (k // 12) % 3).astype(np.float32)
    for shape, block in (((96,), 32), ((96,), 96), ((3, 32), 16), ((2, 3, 16), 2), ((2, 1, 3, 16), 16), ((96, 1), 1)):
        for name in ("float8_e4m3fn", "fp6_e3m2", "float4_e2m1fn_x2"):
            if name == "float4_e2m1fn_x2" and shape[-1] % 2:
                continue
            for dtype in (np.dtype(np.float32), _BFLOAT16):
                yield {"data_hp": x.reshape(shape).astype(dtype), "elem_dtype": name, "block_size": block}
    yield {"data_hp": np.zeros((0, 32), np.float32), "elem_dtype": "float8_e5m2", "block_size": 32}


@calls(_TO, "refusals")
def _refusals() -> Calls:
    x = np.ones((2, 32), np.float32)
    good = {"data_hp": x, "elem_dtype": "float8_e4m3fn", "block_size": 32}
    yield good | {"data_hp": x.astype(np.float16)}
    yield good | {"data_hp": x.astype(np.float64)}
    yield good | {"block_size": 24}
    yield good | {"block_size": 64}
    yield good | {"elem_dtype": "float8_e4m3fnuz"}
    yield good | {"elem_dtype": "int8"}
    yield good | {"scaling_mode": "NEAREST"}


@calls(_FROM, "all-codes")
def _all_codes() -> Calls:
    for (name, form), dtype in product(_FORMATS.items(), ("float32", "bfloat16", "float16")):
        codes = np.arange(2**form.bits).astype(np.uint8) if form.bits > 4 else np.arange(256).astype(np.uint8)  # noqa: PLR2004
        block = (codes.size if form.bits > 4 else 512) // 4  # noqa: PLR2004 - two elements per byte
        scale = np.array([127, 130, 100, 255], np.uint8)
        yield {"data_lp": codes, "scale_e8m0": scale, "elem_dtype": name, "block_size": block, "target_dtype": dtype}


@calls(_FROM, "every-scale")
def _every_scale() -> Calls:
    codes = {"float8_e4m3fn": [1, 126], "float8_e5m2": [1, 251], "fp6_e2m3": [1, 63], "fp6_e3m2": [1, 31]}
    for (name, pair), dtype in product(
        (codes | {"float4_e2m1fn_x2": [0x71]}).items(), ("float32", "bfloat16", "float16")
    ):
        data = np.tile(np.array(pair, np.uint8), (256, 1))
        yield {"data_lp": data, "scale_e8m0": np.arange(256).astype(np.uint8).reshape(256, 1), "elem_dtype": name} | {
            "block_size": 2,
            "target_dtype": dtype,
        }


@calls(_FROM, "refusals")
def _from_refusals() -> Calls:
    good: dict[str, Any] = {"data_lp": np.zeros((2, 32), np.uint8), "scale_e8m0": np.zeros((2, 1), np.uint8)}
    good |= {"elem_dtype": "float8_e4m3fn", "block_size": 32}
    yield good | {"block_size": 24}
    yield good | {"scale_e8m0": np.zeros((3, 1), np.uint8)}
    yield good | {"elem_dtype": "uint8"}


@calls(_PACK, "low-half-first")
def _pack() -> Calls:
    yield {"uint8_data": np.array([1, 2, 3, 15], np.uint8)}
    for shape in ((16,), (2, 8), (2, 2, 4), (0, 4), (3, 0)):
        size = int(np.prod(shape))
        yield {"uint8_data": ((np.arange(size) * 7) % 16).astype(np.uint8).reshape(shape)}


@calls(_PACK, "refusals")
def _pack_refusals() -> Calls:
    yield {"uint8_data": np.zeros((2, 3), np.uint8)}


@calls(_UNPACK, "low-half-first")
def _unpack() -> Calls:
    yield {"uint8_data": np.array([0x21, 0xF3], np.uint8)}
    for shape in ((256,), (16, 16), (2, 2, 64), (0, 4)):
        size = int(np.prod(shape))
        yield {"uint8_data": np.arange(size).astype(np.uint8).reshape(shape)}


@calls(_BLOCKED, "tiles")
def _blocked() -> Calls:
    for rows, columns in ((128, 4), (1, 1), (32, 4), (33, 5), (129, 4), (200, 9), (256, 8)):
        yield {"input_matrix": ((np.arange(rows * columns) * 7) % 255 + 1).astype(np.uint8).reshape(rows, columns)}


@calls(_BLOCKED, "refusals")
def _blocked_refusals() -> Calls:
    yield {"input_matrix": np.zeros(512, np.uint8)}
    yield {"input_matrix": np.zeros((1, 128, 4), np.uint8)}


@calls(_UNBLOCKED, "tiles")
def _unblocked() -> Calls:
    for rows, columns in ((128, 4), (1, 1), (32, 4), (33, 5), (129, 4), (200, 9), (256, 8)):
        tiles = -(-rows // 128) * -(-columns // 4)
        flat = ((np.arange(512 * tiles) * 7) % 256).astype(np.uint8)
        yield {"blocked_tensor": flat, "original_rows": rows, "original_cols": columns}


@calls(_UNBLOCKED, "order-of-tiles")
def _order() -> Calls:
    for rows, columns in ((129, 5), (200, 9), (256, 8)):
        tiles = -(-rows // 128) * -(-columns // 4)
        flat = ((np.arange(512 * tiles) * 7) % 251).astype(np.uint8)  # no two tiles are equal
        yield {"blocked_tensor": flat, "original_rows": rows, "original_cols": columns}


@calls(_UNBLOCKED, "refusals")
def _unblocked_refusals() -> Calls:
    yield {"blocked_tensor": np.zeros(512, np.uint8), "original_rows": 129, "original_cols": 4}
    yield {"blocked_tensor": np.zeros(511, np.uint8), "original_rows": 128, "original_cols": 4}
