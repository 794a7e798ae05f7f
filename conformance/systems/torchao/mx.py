"""What is said of torchao's MX blocks."""

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, calls, expected, measured
from halfeven.conformance.systems.torchao.by_release import absent, by_release
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FLOAT_FORMATS, FloatFormat, decode

__all__ = ["ANSWERS"]

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


@measured(_TO, "torchao.prototype.mx_formats.mx_tensor.to_mx; OCP MX 1.0, section 6.3")
def _scale() -> Calls:
    """The scale of a block is the power of two that its mode makes of the largest magnitude: rounded down, up, after
    rounding to the element's mantissa, or such that the quotient by the largest number is rounded up."""
    for (name, form), mode in product(_FORMATS.items(), _MODES):
        m = form.mantissa_bits
        points = np.ldexp([1, 1.25, 1.5, 1.75, 1.875, 1.9375, 2 - 2.0 ** -(m + 1)], _top(form))
        points = np.concatenate([points, [form.max, form.max / 4]])
        yield {"data_hp": _with_maxima(_about(points)), "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@calls(_TO, "scale")
def far_scales() -> Calls:
    """Magnitudes at the ends of the exponents."""
    exponents = np.array([-100, -65, -33, -17, -9, -5, 4, 9, 17, 33, 65, 100, 118])
    for (name, form), mode in product(_FORMATS.items(), _MODES[:3]):
        points = np.ldexp(2 - 2.0 ** -(form.mantissa_bits + 1), exponents)
        points = np.concatenate([points, np.ldexp(1.0, exponents)])
        yield {"data_hp": _with_maxima(_about(points)), "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@expected(_TO, "OCP MX 1.0, section 6.3: round up; the quotient is a float32", aspect="rceil-is-exact")
def rceil_just_above_a_power_of_two() -> Calls:
    """In RCEIL a quotient just above a power of two belongs to the next one, however close it is and whatever its
    exponent."""
    reach = np.array([-1, 0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 21, 22, 23, 24, 34, 40, 43])
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


@measured(_TO, "torchao.prototype.mx_formats.mx_tensor.to_mx; OCP MX 1.0, section 6.3")
def nearest() -> Calls:
    """An element becomes the number nearest to it over the scale, of two equally near the one with the even code."""
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


@measured(_TO, "torchao.prototype.mx_formats.mx_tensor.to_mx")
def saturation() -> Calls:
    """An element that a scale rounded down leaves above the largest number becomes that number, with its sign."""
    for (name, form), mode in product(_FORMATS.items(), _MODES):
        power = 2.0 ** _top(form)
        points = _f32(form.max, power * 1.76, power * 1.9, power * 1.93, power * 1.99, power * 2)
        x = np.stack([points, -points, np.zeros(6, np.float32), points[::-1]], axis=1)
        yield {"data_hp": x, "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@measured(_TO, "torchao.prototype.mx_formats.mx_tensor.to_mx")
def zeros() -> Calls:
    """A block of zeros has the scale code zero; a zero, and an element too small, keeps its sign."""
    for name, mode in product(_FORMATS, _MODES):
        x = _f32(0, 0, 0, 0, -0.0, 0, -0.0, 0, 1, -0.0, 1e-20, -1e-20).reshape(3, 4)
        yield {"data_hp": x, "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@expected(_TO, "OCP MX 1.0, section 5.4: the scale code 0 is 2^-127")
def smallest_scale() -> Calls:
    """Where the scale code is zero, elements are divided by 2^-127, which is what the code says."""
    for (name, form), mode in product(_FORMATS.items(), _MODES):
        exponents = np.array([-149, -148, -140, -130, -127, -126, -125, -124, -122, -120, -119, -118, -113, -112, -111])
        points = np.concatenate([np.ldexp(1.0, exponents), np.ldexp(1.3, exponents), np.ldexp(form.max, [-128, -127])])
        yield {"data_hp": _with_maxima(_about(points)), "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@calls(_TO, "scale")
def largest_scale() -> Calls:
    """The largest magnitudes of the dtype."""
    for name, mode in product(_FORMATS, _MODES):
        maxima = _f32(3e38, 3.4e38, 2.0**127, 1.5 * 2.0**127, 1.7 * 2.0**127, 1.99 * 2.0**127, 1.99 * 2.0**126)
        yield {"data_hp": _with_maxima(maxima), "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@measured(_TO, "torchao.prototype.mx_formats.mx_tensor.to_mx")
def infinity() -> Calls:
    """An infinity counts as 2^128, or has the largest scale in RCEIL, and becomes the largest number."""
    for name, mode in product(_FORMATS, _MODES):
        x = _f32(_INF, 1, -1, 3e38, -_INF, _INF, 0, -0.0).reshape(2, 4)
        yield {"data_hp": x, "elem_dtype": name, "block_size": 4, "scaling_mode": mode}


@measured(_TO, "torchao.prototype.mx_formats.mx_tensor.to_mx; its elements are without meaning", aspect="nan-block")
def nan() -> Calls:
    """A block with NaN has the scale code 255."""
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


@calls(_TO, "nearest")
def shapes() -> Calls:
    """Any rank of whole blocks."""
    k = np.arange(96)
    x = np.ldexp(((k * 37) % 61 - 30).astype(np.float32), -(k % 12) - (k // 12) % 3).astype(np.float32)
    for shape, block in (((96,), 32), ((96,), 96), ((3, 32), 16), ((2, 3, 16), 2), ((2, 1, 3, 16), 16), ((96, 1), 1)):
        for name in ("float8_e4m3fn", "fp6_e3m2", "float4_e2m1fn_x2"):
            if name == "float4_e2m1fn_x2" and shape[-1] % 2:
                continue
            for dtype in (np.dtype(np.float32), _BFLOAT16):
                yield {"data_hp": x.reshape(shape).astype(dtype), "elem_dtype": name, "block_size": block}
    yield {"data_hp": np.zeros((0, 32), np.float32), "elem_dtype": "float8_e5m2", "block_size": 32}


@measured(_TO, "torchao.prototype.mx_formats.mx_tensor.to_mx")
def refusals() -> Calls:
    """The input is float32 or bfloat16, the block divides the last dimension, and the element dtype and the mode are
    among those named."""
    x = np.ones((2, 32), np.float32)
    good = {"data_hp": x, "elem_dtype": "float8_e4m3fn", "block_size": 32}
    yield good | {"data_hp": x.astype(np.float16)}
    yield good | {"data_hp": x.astype(np.float64)}
    yield good | {"block_size": 24}
    yield good | {"block_size": 64}
    yield good | {"elem_dtype": "float8_e4m3fnuz"}
    yield good | {"elem_dtype": "int8"}
    yield good | {"scaling_mode": "NEAREST"}


@measured(_FROM, "torchao.prototype.mx_formats.mx_tensor.to_dtype; OCP MX 1.0, section 5", aspect="product")
def all_codes() -> Calls:
    """A real is the element times the power of two of its block, each in the target dtype; the scale code 255 makes
    NaN."""
    for (name, form), dtype in product(_FORMATS.items(), ("float32", "bfloat16", "float16")):
        codes = np.arange(2**form.bits).astype(np.uint8) if form.bits > 4 else np.arange(256).astype(np.uint8)  # noqa: PLR2004
        block = (codes.size if form.bits > 4 else 512) // 4  # noqa: PLR2004 - two elements per byte
        scale = np.array([127, 130, 100, 255], np.uint8)
        given = {"data_lp": codes, "scale_e8m0": scale, "elem_dtype": name, "block_size": block}
        yield {**given, "target_dtype": dtype}
    yield given


@calls(_FROM, "product")
def every_scale() -> Calls:
    """Every code of the scale."""
    codes = {"float8_e4m3fn": [1, 126], "float8_e5m2": [1, 251], "fp6_e2m3": [1, 63], "fp6_e3m2": [1, 31]}
    for (name, pair), dtype in product(
        (codes | {"float4_e2m1fn_x2": [0x71]}).items(), ("float32", "bfloat16", "float16")
    ):
        data = np.tile(np.array(pair, np.uint8), (256, 1))
        yield {"data_lp": data, "scale_e8m0": np.arange(256).astype(np.uint8).reshape(256, 1), "elem_dtype": name} | {
            "block_size": 2,
            "target_dtype": dtype,
        }


@measured(_FROM, "torchao.prototype.mx_formats.mx_tensor.to_dtype", aspect="refusals")
def from_refusals() -> Calls:
    """There is one scale for each whole block, and the element dtype is among those named."""
    good: dict[str, Any] = {"data_lp": np.zeros((2, 32), np.uint8), "scale_e8m0": np.zeros((2, 1), np.uint8)}
    good |= {"elem_dtype": "float8_e4m3fn", "block_size": 32}
    yield good | {"block_size": 24}
    yield good | {"scale_e8m0": np.zeros((3, 1), np.uint8)}
    yield good | {"elem_dtype": "uint8"}


@measured(_PACK, "torchao.prototype.mx_formats.kernels.pack_uint4")
def low_half_first() -> Calls:
    """Of two float4 codes in a byte the one of the even index is in the low half."""
    yield {"uint8_data": np.array([1, 2, 3, 15], np.uint8)}
    for shape in ((16,), (2, 8), (2, 2, 4), (6,), (3, 2), (0, 4), (3, 0)):
        size = int(np.prod(shape))
        yield {"uint8_data": ((np.arange(size) * 7) % 16).astype(np.uint8).reshape(shape)}


@measured(_PACK, "torchao.prototype.mx_formats.kernels.pack_uint4", aspect="refusals")
def pack_refusals() -> Calls:
    """The last dimension of what is packed is even."""
    yield {"uint8_data": np.zeros((2, 3), np.uint8)}


@measured(_UNPACK, "torchao.prototype.mx_formats.kernels.unpack_uint4", aspect="low-half-first")
def unpack() -> Calls:
    """A byte holds the code of the even index in its low half, and the last dimension doubles."""
    yield {"uint8_data": np.array([0x21, 0xF3], np.uint8)}
    for shape in ((256,), (16, 16), (2, 2, 64), (5,), (3, 1), (0, 4)):
        size = int(np.prod(shape))
        yield {"uint8_data": np.arange(size).astype(np.uint8).reshape(shape)}


@measured(_BLOCKED, "torchao.prototype.mx_formats.utils.to_blocked", aspect="tiles")
def blocked() -> Calls:
    """Swizzled scales are tiles of 128 rows by 4 columns, row of tiles by row of tiles, in each of which row r stands
    in group r / 32 of line r mod 32; what is missing is zero."""
    for rows, columns in ((128, 4), (1, 1), (32, 4), (33, 5), (129, 4), (200, 9), (256, 8)):
        yield {"input_matrix": ((np.arange(rows * columns) * 7) % 255 + 1).astype(np.uint8).reshape(rows, columns)}


@measured(_BLOCKED, "torchao.prototype.mx_formats.utils.to_blocked", aspect="refusals")
def blocked_refusals() -> Calls:
    """Only a matrix of scales is swizzled."""
    yield {"input_matrix": np.zeros(512, np.uint8)}
    yield {"input_matrix": np.zeros((1, 128, 4), np.uint8)}


@measured(_UNBLOCKED, "torchao.prototype.mx_formats.utils.from_blocked", aspect="tiles")
def unblocked() -> Calls:
    """The matrix comes back from its swizzled form, without the padding."""
    for rows, columns in ((128, 4), (1, 1), (32, 4), (33, 5), (129, 4), (200, 9), (256, 8)):
        tiles = -(-rows // 128) * -(-columns // 4)
        flat = ((np.arange(512 * tiles) * 7) % 256).astype(np.uint8)
        yield {"blocked_tensor": flat, "original_rows": rows, "original_cols": columns}


@calls(_UNBLOCKED, "tiles")
def order_of_tiles() -> Calls:
    """Entries all different, so that each shows its place."""
    for rows, columns in ((129, 5), (200, 9), (256, 8)):
        tiles = -(-rows // 128) * -(-columns // 4)
        flat = ((np.arange(512 * tiles) * 7) % 251).astype(np.uint8)  # no two tiles are equal
        yield {"blocked_tensor": flat, "original_rows": rows, "original_cols": columns}


@measured(_UNBLOCKED, "torchao.prototype.mx_formats.utils.from_blocked", aspect="refusals")
def unblocked_refusals() -> Calls:
    """The swizzled form has 512 entries for each tile."""
    yield {"blocked_tensor": np.zeros(512, np.uint8), "original_rows": 129, "original_cols": 4}
    yield {"blocked_tensor": np.zeros(511, np.uint8), "original_rows": 128, "original_cols": 4}


def _to_mx(data_hp: Any, elem_dtype: str, block_size: int, scaling_mode: str = "FLOOR") -> Any:
    import torch
    from torchao.prototype.mx_formats.config import ScaleCalculationMode
    from torchao.prototype.mx_formats.mx_tensor import to_mx

    element = elem_dtype if elem_dtype.startswith("fp6") else getattr(torch, elem_dtype)
    mode = ScaleCalculationMode.__members__.get(scaling_mode, scaling_mode)
    scale, data = to_mx(data_hp, element, block_size, mode)
    return scale.view(torch.uint8), data


def _mx_dequantize(
    data_lp: Any, scale_e8m0: Any, elem_dtype: str, block_size: int, target_dtype: str = "float32"
) -> Any:
    import torch
    from torchao.prototype.mx_formats.mx_tensor import to_dtype

    element = elem_dtype if elem_dtype.startswith("fp6") else getattr(torch, elem_dtype)
    data = data_lp.view(element) if elem_dtype.startswith("float8") else data_lp
    return to_dtype(data, scale_e8m0, element, block_size, getattr(torch, target_dtype))


def _pack_uint4(uint8_data: Any) -> Any:
    from torchao.prototype.mx_formats.kernels import pack_uint4

    return pack_uint4(uint8_data)


def _unpack_uint4(uint8_data: Any) -> Any:
    from torchao.prototype.mx_formats.kernels import unpack_uint4

    return unpack_uint4(uint8_data)


def _to_blocked(input_matrix: Any) -> Any:
    from torchao.prototype.mx_formats.utils import to_blocked

    return to_blocked(input_matrix)


def _from_blocked(blocked_tensor: Any, original_rows: int, original_cols: int) -> Any:
    from torchao.prototype.mx_formats.utils import from_blocked

    return from_blocked(blocked_tensor, original_rows, original_cols)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {
            "torchao/to_mx": _to_mx,
            "torchao/mx_dequantize": _mx_dequantize,
            "torchao/pack_uint4": _pack_uint4,
            "torchao/unpack_uint4": _unpack_uint4,
            "torchao/to_blocked": _to_blocked,
            "torchao/from_blocked": _from_blocked,
        },
        v0_11={
            "torchao/to_mx": absent,
            "torchao/mx_dequantize": absent,
            "torchao/pack_uint4": absent,
            "torchao/unpack_uint4": absent,
            "torchao/from_blocked": absent,
        },
    ),
}
