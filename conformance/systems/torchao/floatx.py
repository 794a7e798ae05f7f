"""torchao: floatx. Calls: every format of 2 to 8 bits, its midpoints, and rows whose scale is at a bound."""

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, calls, documented, measured, silent
from halfeven.conformance.systems.torchao.by_release import by_release
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import decode, floatx

__all__ = ["ANSWERS"]

_ENCODE, _DECODE = "torchao/f32_to_floatx_unpacked", "torchao/floatx_unpacked_to_f32"
_CHOOSE, _QUANTIZE, _DEQUANTIZE = (
    "torchao/choose_qparams_affine_floatx",
    "torchao/quantize_affine_floatx",
    "torchao/dequantize_affine_floatx",
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


@measured(_ENCODE, "torchao.prototype.custom_fp_utils._f32_to_floatx_unpacked")
def nearest() -> Calls:
    """A number becomes the nearest one of the format, and halfway between two the one with the even code, for every
    exponent and mantissa width."""
    for e, m in _FORMATS:
        v = _numbers(e, m)
        middle = (v[1:] + v[:-1]) / 2
        points = np.concatenate([v, middle, step(middle, np.int64(1)), step(middle, np.int64(-1))]).astype(np.float32)
        points[::2] *= -1
        yield {"x": points, "ebits": e, "mbits": m}


@calls(_ENCODE, "nearest")
def ties_of_both_signs() -> Calls:
    """Midpoints, negative too."""
    for e, m in _FORMATS:
        v = _numbers(e, m)
        middle = (v[1:] + v[:-1]) / 2
        yield {"x": np.concatenate([middle, -middle]), "ebits": e, "mbits": m}


@measured(_ENCODE, "torchao.prototype.custom_fp_utils._f32_to_floatx_unpacked")
def saturation() -> Calls:
    """What is larger than the largest number, and an infinity, becomes the largest number of its sign: no code is
    infinity or NaN."""
    for e, m in _FORMATS:
        v = _numbers(e, m)
        top, gap = v[-1], v[-1] - v[-2]
        beyond = _f32(top, float(step(top, 1)), top + gap / 2, top + gap, 2 * top, 3.4e38, _INF)
        yield {"x": np.concatenate([beyond, -beyond]), "ebits": e, "mbits": m}


@measured(_ENCODE, "torchao.prototype.custom_fp_utils._f32_to_floatx_unpacked", aspect="zero-keeps-its-sign")
def zeros() -> Calls:
    """Zero keeps its sign, and a number too small becomes the zero of its sign."""
    for e, m in _FORMATS:
        yield {"x": _f32(0.0, -0.0, 1e-45, -1e-45, 1e-39, -1e-30), "ebits": e, "mbits": m}


@silent(_ENCODE, "torchao.prototype.custom_fp_utils._f32_to_floatx_unpacked")
def nan() -> Calls:
    """NaN is refused, for no code stands for it."""
    for e, m in _FORMATS:
        yield {"x": _NANS.view(np.float32), "ebits": e, "mbits": m}


@calls(_ENCODE, "nearest")
def shapes() -> Calls:
    """Any rank, and no elements."""
    for shape in ((), (0,), (3, 0), (2, 3), (1, 2, 1, 2)):
        yield {"x": np.full(shape, 1.25, np.float32), "ebits": 2, "mbits": 3}


@measured(_ENCODE, "torchao.prototype.custom_fp_utils._f32_to_floatx_unpacked")
def refusals() -> Calls:
    """The input is float32, sign, exponent and mantissa fit in eight bits, and the exponent has at least one bit."""
    x = _f32(1.0)
    yield {"x": x.astype(np.float64), "ebits": 2, "mbits": 1}
    yield {"x": x.astype(np.float16), "ebits": 2, "mbits": 1}
    yield {"x": x, "ebits": 4, "mbits": 4}
    yield {"x": x, "ebits": 8, "mbits": 0}
    yield {"x": x, "ebits": 0, "mbits": 3}


@measured(_DECODE, "torchao.prototype.custom_fp_utils._floatx_unpacked_to_f32", aspect="every-code")
def all_codes() -> Calls:
    """Every code stands for one number: subnormal where the exponent field is zero, and finite where it is all ones."""
    for e, m in _FORMATS:
        yield {"x": np.arange(2 ** (1 + e + m)).astype(np.uint8), "ebits": e, "mbits": m}


@measured(_DECODE, "torchao.prototype.custom_fp_utils._floatx_unpacked_to_f32", aspect="refusals")
def decode_refusals() -> Calls:
    """Codes are uint8, and sign, exponent and mantissa fit in eight bits."""
    yield {"x": np.zeros(2, np.int8), "ebits": 2, "mbits": 1}
    yield {"x": np.zeros(2, np.uint8), "ebits": 5, "mbits": 3}


@documented(_CHOOSE, "AffineQuantizedTensor: from_hp_to_fpx, and choose_qparams_affine_floatx", aspect="row-scale")
def _scale() -> Calls:
    """The scale of a row is its largest magnitude over the largest number of the format, divided in float32 and rounded
    to the dtype of the input."""
    rows = np.stack([_row(8, 3), _row(8, 77), -np.abs(_row(8, 5)), np.full(8, 0.1, np.float32)])
    for (e, m), dtype in product(_FORMATS, _DTYPES):
        yield {"tensor": rows.astype(dtype), "ebits": e, "mbits": m}


@measured(_CHOOSE, "torchao.quantization.quant_primitives.choose_qparams_affine_floatx", aspect="smallest-scale")
def small_rows() -> Calls:
    """The magnitude is at least 1e-12 before it is divided, in float32: a float16 scale may still be zero."""
    bound = np.float32(1e-12)
    rows = np.stack([_f32(0, 0), _f32(-0.0, 0), bound * _f32(1, 0), step(bound * _f32(1, 0), np.int64(1))])
    rows = np.concatenate([rows, [step(bound * _f32(1, 1), np.int64(-1))], [_f32(1e-40, 0)], [_f32(6e-8, -6e-8)]])
    for (e, m), dtype in product(_USUAL, _DTYPES):
        yield {"tensor": rows.astype(dtype), "ebits": e, "mbits": m}


@measured(_CHOOSE, "torchao.quantization.quant_primitives.choose_qparams_affine_floatx")
def specials() -> Calls:
    """A row with NaN has the scale NaN, a row with an infinity an infinite one."""
    rows = np.stack([_f32(1, _NAN), _f32(_INF, 1), _f32(-_INF, _NAN), _f32(3.4e38, -1)])
    for (e, m), dtype in product(_USUAL, _DTYPES):
        yield {"tensor": rows.astype(dtype), "ebits": e, "mbits": m}


@measured(_CHOOSE, "torchao.quantization.quant_primitives.choose_qparams_affine_floatx", aspect="refusals")
def choose_refusals() -> Calls:
    """A tensor without rows of at least one column is refused."""
    yield {"tensor": _f32(1, 2), "ebits": 2, "mbits": 1}
    yield {"tensor": np.ones((), np.float32), "ebits": 2, "mbits": 1}
    yield {"tensor": np.zeros((2, 0), np.float32), "ebits": 2, "mbits": 1}


@documented(_QUANTIZE, "AffineQuantizedTensor: the affine transformation, float over scale", aspect="divides")
def _rows() -> Calls:
    """A code is that of the float32 quotient of the number and the scale of its row, divided, not multiplied by a
    reciprocal."""
    for (e, m), dtype in product(_USUAL, _DTYPES):
        x = np.stack([_row(24, 3), _row(24, 50)]).astype(dtype)
        for scale in (_f32(0.3, 7.0).astype(dtype), _f32(0.1, 1e-3), _f32(2.0)):
            yield {"tensor": x, "scale": scale, "ebits": e, "mbits": m}


@calls(_QUANTIZE, "divides")
def ties() -> Calls:
    """Quotients midway between two numbers."""
    for e, m in _USUAL:
        v = _numbers(e, m)[:64]
        middle = (v[1:] + v[:-1]) / 2
        scales = _f32(1.0, 0.75, 41.0, 47.0, 55.0)  # 41 * (1 / 41) is not 1 in float32
        yield {"tensor": middle * scales[:, None], "scale": scales, "ebits": e, "mbits": m}


@calls(_QUANTIZE, "divides")
def sixteen_bit_rows() -> Calls:
    """Rows of float16 and bfloat16."""
    for (e, m), dtype in product(_USUAL, _DTYPES[1:]):
        x = np.stack([_row(240, 3), _row(240, 50), _row(240, 99)]).astype(dtype)
        yield {"tensor": x, "scale": _f32(0.3, 7.0, 1.1).astype(dtype), "ebits": e, "mbits": m}


@silent(_QUANTIZE, "torchao.quantization.quant_primitives.quantize_affine_floatx")
def zero_scale() -> Calls:
    """Zero over a zero scale is NaN and is refused, as is a NaN in the input."""
    x = np.stack([_f32(0, 0, -0.0), _f32(1, -1, 0.5)])
    for e, m in _USUAL:
        yield {"tensor": x, "scale": _f32(0, 1), "ebits": e, "mbits": m}
        yield {"tensor": np.stack([_f32(_NAN, 1, 2)] * 2), "scale": _f32(0.5, 1), "ebits": e, "mbits": m}


@measured(_QUANTIZE, "torchao.quantization.quant_primitives.quantize_affine_floatx", aspect="refusals")
def quantize_refusals() -> Calls:
    """There is one scale per row, and the exponent has at least one bit."""
    yield {"tensor": np.ones((4, 2), np.float32), "scale": _f32(1, 2, 3), "ebits": 2, "mbits": 1}
    yield {"tensor": np.ones((4, 2), np.float32), "scale": _f32(1, 2, 3, 4), "ebits": 0, "mbits": 1}


@documented(_DEQUANTIZE, "AffineQuantizedTensor: dequantize", aspect="product")
def dequantize() -> Calls:
    """A real is the number of the code times the scale of its row in float32, rounded to the output dtype."""
    for e, m in _FORMATS:
        codes = np.arange(2 ** (1 + e + m)).astype(np.uint8)
        for dtype, scale in product(_DTYPES, (_f32(0.1), _f32(3.0).astype(np.float16))):
            yield {"tensor": codes[None], "scale": scale, "ebits": e, "mbits": m, "output_dtype": dtype.name}


@calls(_DEQUANTIZE, "product")
def dequantize_rows() -> Calls:
    """A scale for each row."""
    codes = np.arange(48).reshape(4, 12).astype(np.uint8)
    for scale in (_f32(0.1, 0.2, 1e-30, 1e38), _f32(0, -1, _INF, _NAN)):
        yield {"tensor": codes, "scale": scale, "ebits": 3, "mbits": 2}
        yield {"tensor": codes, "scale": scale.astype(ml_dtypes.bfloat16), "ebits": 3, "mbits": 2}
    yield {"tensor": codes, "scale": _f32(0.1), "ebits": 3, "mbits": 2}
    # Five or seven times these is next to a tie of float16 or bfloat16, and float32 rounds it to the tie.
    scale = _f32((1 + 5 * 2.0**-11) / 5, (1 + 2.0**-11) / 7, (1 + 2.0**-8) / 5, (1 + 3 * 2.0**-8) / 5)
    for dtype in ("float16", "bfloat16"):
        yield {"tensor": codes, "scale": scale, "ebits": 3, "mbits": 2, "output_dtype": dtype}


@measured(_DEQUANTIZE, "torchao.quantization.quant_primitives.dequantize_affine_floatx", aspect="refusals")
def dequantize_refusals() -> Calls:
    """Codes are uint8, and there is one scale per row."""
    yield {"tensor": np.zeros((4, 2), np.uint8), "scale": _f32(1, 2, 3), "ebits": 2, "mbits": 1}
    yield {"tensor": np.zeros((4, 2), np.int16), "scale": _f32(1), "ebits": 2, "mbits": 1}


def _f32_to_floatx_unpacked(x: Any, ebits: int, mbits: int) -> Any:
    from torchao.prototype.custom_fp_utils import _f32_to_floatx_unpacked

    return _f32_to_floatx_unpacked(x, ebits, mbits)


def _floatx_unpacked_to_f32(x: Any, ebits: int, mbits: int) -> Any:
    from torchao.prototype.custom_fp_utils import _floatx_unpacked_to_f32

    return _floatx_unpacked_to_f32(x, ebits, mbits)


def _choose_qparams_affine_floatx(tensor: Any, ebits: int, mbits: int) -> Any:
    from torchao.quantization.quant_primitives import _choose_qparams_affine_floatx

    return _choose_qparams_affine_floatx(tensor, ebits, mbits)


def _quantize_affine_floatx(tensor: Any, scale: Any, ebits: int, mbits: int) -> Any:
    from torchao.quantization.quant_primitives import _quantize_affine_floatx

    return _quantize_affine_floatx(tensor, scale, ebits, mbits)


def _dequantize_affine_floatx(tensor: Any, scale: Any, ebits: int, mbits: int, output_dtype: str = "float32") -> Any:
    import torch
    from torchao.quantization.quant_primitives import _dequantize_affine_floatx

    return _dequantize_affine_floatx(tensor, scale, ebits, mbits, getattr(torch, output_dtype))


def _choose_qparams_affine_floatx_0_11(tensor: Any, ebits: int, mbits: int) -> Any:
    from torchao.quantization.quant_primitives import choose_qparams_affine_floatx

    return choose_qparams_affine_floatx(tensor, ebits, mbits)


def _quantize_affine_floatx_0_11(tensor: Any, scale: Any, ebits: int, mbits: int) -> Any:
    from torchao.quantization.quant_primitives import quantize_affine_floatx

    return quantize_affine_floatx(tensor, scale, ebits, mbits)


def _dequantize_affine_floatx_0_11(
    tensor: Any, scale: Any, ebits: int, mbits: int, output_dtype: str = "float32"
) -> Any:
    import torch
    from torchao.quantization.quant_primitives import dequantize_affine_floatx

    return dequantize_affine_floatx(tensor, scale, ebits, mbits, getattr(torch, output_dtype))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {
            "torchao/f32_to_floatx_unpacked": _f32_to_floatx_unpacked,
            "torchao/floatx_unpacked_to_f32": _floatx_unpacked_to_f32,
            "torchao/choose_qparams_affine_floatx": _choose_qparams_affine_floatx,
            "torchao/quantize_affine_floatx": _quantize_affine_floatx,
            "torchao/dequantize_affine_floatx": _dequantize_affine_floatx,
        },
        v0_11={
            "torchao/choose_qparams_affine_floatx": _choose_qparams_affine_floatx_0_11,
            "torchao/quantize_affine_floatx": _quantize_affine_floatx_0_11,
            "torchao/dequantize_affine_floatx": _dequantize_affine_floatx_0_11,
        },
    ),
}
