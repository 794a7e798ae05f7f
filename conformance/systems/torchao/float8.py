"""What is said of torchao's float8 primitives."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, calls, documented, expected, measured
from halfeven.conformance.systems.torchao.by_release import absent, by_release
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FLOAT_FORMATS, decode

__all__ = ["ANSWERS", "mixed"]

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


def mixed(*shape: int) -> Array:
    """Numbers of both signs and of nine binades."""
    k = np.arange(int(np.prod(shape))) * 37 + 5
    return np.ldexp((k % 251 - 125).astype(np.float32), -(k % 9)).astype(np.float32).reshape(shape)


@documented(
    _CHOOSE,
    "AffineQuantizedTensor: from_hp_to_floatx; the dtype of the division measured",
    aspect="largest-magnitude-over-largest-number",
)
def _scale() -> Calls:
    """The scale of a block is its largest magnitude over the largest number of the float8 dtype, divided in the dtype
    of the input and then held in float32."""
    rows = np.stack([mixed(6), -np.abs(mixed(6)), _f32(0.1, 0, 0, 0, 0, 0), _f32(10.2, -3.5, 1, 0, 0, 0)])
    for name, dtype in product(_FLOAT8, _DTYPES):
        yield {"tensor": rows.astype(dtype), "block_size": (1, 6), "float8_dtype": name}
    yield {"tensor": rows, "block_size": (4, 6)}


@documented(_CHOOSE, "AffineQuantizedTensor: block_size", aspect="one-scale-per-block")
def blocks() -> Calls:
    """Elements of one block share a scale, blocks of any rank and shape, and the scales have n / b entries along each
    dimension."""
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
        yield {"tensor": mixed(*shape), "block_size": block}


@documented(
    _CHOOSE, "AffineQuantizedTensor: block_size, the elements that share a parameter", aspect="blocks-of-one-element"
)
def single_elements() -> Calls:
    """A block size of ones gives each element its own scale."""
    yield {"tensor": mixed(2, 3), "block_size": (1, 1)}
    yield {"tensor": mixed(5), "block_size": (1,)}


@measured(_CHOOSE, "torchao.quantization.quant_primitives._choose_scale_float8", aspect="zero-block")
def zero_and_small_blocks() -> Calls:
    """A block of zeros has the scale zero, for there is no least scale, and so may a small block of float16."""
    rows = np.stack([_f32(0, -0.0), _f32(1e-45, 0), _f32(6e-6, 0), _f32(1e-4, 0), _f32(3e-38, 0), _f32(1e-40, 0)])
    for name, dtype in product(_FLOAT8, _DTYPES):
        yield {"tensor": rows.astype(dtype), "block_size": (1, 2), "float8_dtype": name}


@measured(_CHOOSE, "torchao.quantization.quant_primitives._choose_scale_float8")
def specials() -> Calls:
    """A block with NaN has the scale NaN, a block with an infinity an infinite one, unless an upper bound limits it."""
    rows = np.stack([_f32(1, _NAN), _f32(_INF, 1), _f32(-_INF, _NAN), _f32(3.4e38, -1)])
    for dtype in _DTYPES:
        yield {"tensor": rows.astype(dtype), "block_size": (1, 2)}
        yield {"tensor": rows.astype(dtype), "block_size": (1, 2), "hp_value_lb": 1e-3, "hp_value_ub": 100.0}


@measured(_CHOOSE, "torchao.quantization.quant_primitives._choose_scale_float8: hp_value_lb, hp_value_ub")
def bounds() -> Calls:
    """The bounds limit the magnitude before it is divided, in the dtype of the input; of bounds that cross the upper
    one wins."""
    rows = np.stack([_f32(0, 0), _f32(1e-3, 0), _f32(0.1, 0), _f32(5, 0), _f32(-700, 3)])
    # 1 + 2^-8 + 2^-40 is a tie of bfloat16 once it has been rounded to float32; 1e-12 is 0 in float16.
    limits = ((1e-12, None), (0.1, None), (None, 4.7), (0.1, 4.7), (7.0, 0.3), (1 + 2**-8 + 2**-40, None), (0.0, 0.0))
    tie = (1 + 2**-11 + 2**-30, None)  # and this one of float16
    for (low, high), dtype in product((*limits, tie), _DTYPES):
        yield {"tensor": rows.astype(dtype), "block_size": (1, 2), "hp_value_lb": low, "hp_value_ub": high}


def _scaled(scales: Array, dtype: Any) -> Array:
    """Rows of one number whose scale in float8_e4m3fn is near each of ``scales``: 448 times it, rounded."""
    with np.errstate(over="ignore"):
        return (scales.astype(np.float64) * 448).astype(dtype)[:, None] * np.ones((1, 2), dtype)


@measured(_CHOOSE, "torchao.quantization.quant_primitives._choose_scale_float8: scale_dtype")
def e8m0_scale() -> Calls:
    """A scale of dtype e8m0 is the power of two whose exponent is nearest to the scale's logarithm; zero, infinity and
    NaN stay."""
    exponents = np.array([-120.0, -60, -15, -9, -3, -2, -1, 0, 1, 2, 5, 7])
    for dtype in _DTYPES:
        mantissas = np.array([1.0, 1.2, 1.40, 1.43, 1.7, 1.99])
        scales = np.ldexp(mantissas, exponents[:, None].astype(np.int64)).ravel()
        yield {"tensor": _scaled(scales, dtype), "block_size": (1, 2), "scale_dtype": "float8_e8m0fnu"}
    yield {"tensor": np.stack([_f32(0, 0), _f32(1, _NAN), _f32(_INF, 1), _f32(1e-45, 0)]), "block_size": (1, 2)} | {
        "scale_dtype": "float8_e8m0fnu"
    }
    yield {"tensor": _f32(600, 1), "block_size": (2,), "scale_dtype": "float8_e8m0fnu"}


@expected(_CHOOSE, "the equation of the e8m0 scale over the reals", aspect="e8m0-decided-at-the-root-of-two")
def e8m0_half_way() -> Calls:
    """Between two powers of two the nearer one is decided at the lower times the square root of two, exactly."""
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
        if dtype == np.float16:
            mantissas = np.append(mantissas, np.ldexp(1.0 + np.arange(416, 432) / 1024, k))
        yield {"tensor": _scaled(mantissas, dtype), "block_size": (1, 2), "scale_dtype": "float8_e8m0fnu"}


@calls(_CHOOSE, "e8m0-decided-at-the-root-of-two")
def e8m0_subnormal_scale() -> Calls:
    """Scales that are subnormal in bfloat16, whose logarithms it rounds to integers."""
    rows = (np.arange(1.0, 13.0) * 448 * 2.0**-133).astype(_DTYPES[2])[:, None] * np.ones((1, 2), _DTYPES[2])
    yield {"tensor": rows, "block_size": (1, 2), "scale_dtype": "float8_e8m0fnu"}


@measured(_CHOOSE, "torchao.quantization.quant_primitives._choose_scale_float8")
def refusals() -> Calls:
    """The block size has one entry per dimension, each at least one and a divisor, and the scale dtype is float32 or
    e8m0."""
    x = mixed(4, 6)
    yield {"tensor": x, "block_size": (6,)}
    yield {"tensor": x, "block_size": (2,)}
    yield {"tensor": x, "block_size": (1, 4)}
    yield {"tensor": x, "block_size": (8, 6)}
    yield {"tensor": x, "block_size": (-1, -1)}
    yield {"tensor": x, "block_size": (1, 6), "scale_dtype": "bfloat16"}
    yield {"tensor": x, "block_size": (1, 6), "scale_dtype": "float16"}


@documented(_QUANTIZE, "AffineQuantizedTensor: the affine transformation, float over scale")
def nearest() -> Calls:
    """A code is the float8 number nearest to the float32 quotient of the number and its scale, of two equally near the
    one with the even code."""
    for name in _FLOAT8:
        v = _numbers(name)
        middle = (v[1:] + v[:-1]) / 2
        points = np.concatenate([v, middle, step(middle, np.int64(1)), step(middle, np.int64(-1))]).astype(np.float32)
        points[::2] *= -1
        yield {"tensor": points, "scale": _f32(1.0), "float8_dtype": name}
        yield {"tensor": points[:200], "scale": np.array(41.0, np.float32), "float8_dtype": name}
        yield {"tensor": points[:200] * 41, "scale": np.array(41.0, np.float32), "float8_dtype": name}


@measured(_QUANTIZE, "torchao.quantization.quant_primitives._quantize_affine_float8")
def saturation() -> Calls:
    """What is beyond the largest number, and an infinity, becomes the largest number of its sign, in dtypes with an
    infinity too."""
    for name in _FLOAT8:
        v = _numbers(name)
        top, gap = v[-1], v[-1] - v[-2]
        beyond = _f32(top, float(step(top, 1)), top + gap / 2, top + gap, 2 * top, 3.4e38, _INF)
        for scale in (1.0, 0.1, 1e-30):
            yield {"tensor": np.concatenate([beyond, -beyond]), "scale": _f32(scale), "float8_dtype": name}


@measured(_QUANTIZE, "torchao.quantization.quant_primitives._quantize_affine_float8")
def nan_and_zero() -> Calls:
    """NaN stays NaN, and so becomes zero over a zero scale; a zero keeps its sign where the dtype has one."""
    x = _f32(0.0, -0.0, 1e-45, -1e-45, _NAN, -_NAN, 1.0, _INF)
    for name, scale in product(_FLOAT8, (1.0, 0.0, -0.0, _INF, _NAN, 1e-45, -2.0)):
        yield {"tensor": x, "scale": _f32(scale), "float8_dtype": name}


@documented(_QUANTIZE, "AffineQuantizedTensor: block_size", aspect="scale-of-the-block")
def quantize_blocks() -> Calls:
    """Every element is divided by the scale of its block, in float32 whatever the input's dtype, and one scale serves
    all."""
    for name, dtype in product(_FLOAT8, (*_DTYPES, np.dtype("float64"))):
        x = mixed(4, 6).astype(dtype)
        yield {"tensor": x, "scale": _f32(0.1, 0.7, 3.0, 41.0).reshape(4, 1), "float8_dtype": name}
        yield {"tensor": mixed(2, 60).astype(dtype), "scale": _f32(0.3, 7.7).reshape(2, 1), "float8_dtype": name}
        yield {"tensor": x, "scale": _f32(0.1, 0.7, 3.0, 41.0, 5.0, 0.3).reshape(2, 3), "float8_dtype": name}
    x = mixed(2, 4, 6)
    for shape in ((1, 1, 1), (2, 1, 1), (1, 4, 1), (2, 2, 3), (2, 4, 6), (1, 2, 6), (1,), ()):
        yield {"tensor": x, "scale": np.asarray(np.abs(mixed(*shape)) + np.float32(0.1))}
    yield {"tensor": np.array(1.3, np.float32), "scale": np.array(0.1, np.float32)}
    yield {"tensor": np.zeros((0, 4), np.float32), "scale": np.zeros((0, 1), np.float32)}


@measured(_QUANTIZE, "torchao.quantization.quant_primitives._quantize_affine_float8", aspect="quotient-in-float32")
def sixteen_bit_scales() -> Calls:
    """The quotient is computed in float32, also where the input and the scale have one narrower dtype."""
    for name, dtype in product(_FLOAT8, _DTYPES[1:]):
        scale = _f32(0.1, 0.7, 3.0, 41.0).reshape(4, 1).astype(dtype)
        yield {"tensor": mixed(4, 60).astype(dtype), "scale": scale, "float8_dtype": name}


@expected(
    _QUANTIZE,
    "torchao.quantization.quant_primitives._quantize_affine_float8: scales have a dimension for each of the input's",
)
def scale_of_another_rank() -> Calls:
    """A scale of another rank than the input, with more than one entry, is refused."""
    pairs = (((4, 4), (4,)), ((4, 6), (4,)), ((2, 2, 3), (2,)), ((4,), (4, 1)), ((4, 6), (2,)), ((1, 2, 3), (2, 1)))
    for shape, scale in (*pairs, ((4,), (1, 1, 1))):
        yield {"tensor": mixed(*shape), "scale": np.abs(mixed(*scale)) + np.float32(1)}


@measured(_QUANTIZE, "torchao.quantization.quant_primitives._quantize_affine_float8", aspect="refusals")
def quantize_refusals() -> Calls:
    """A dimension of the scale divides that of the input."""
    for shape in ((3, 1), (4, 4), (1, 5), (8, 6)):
        yield {"tensor": mixed(4, 6), "scale": np.ones(shape, np.float32)}
    yield {"tensor": mixed(1, 4), "scale": np.ones((2, 1), np.float32)}


def _codes(name: str) -> Array:
    return np.arange(256).astype(np.uint8).view(np.dtype(getattr(ml_dtypes, name)))


@documented(_DEQUANTIZE, "AffineQuantizedTensor: dequantize", aspect="product")
def all_codes() -> Calls:
    """A real is the number of the code times the scale, in float32, rounded to the output dtype; NaN stays NaN."""
    for name, dtype in product(_FLOAT8, ("float32", "float16", "bfloat16", "float64")):
        yield {"tensor": _codes(name), "scale": _f32(0.1), "output_dtype": dtype}
    for name, scale in product(_FLOAT8, (1e38, 1e-42, 0.0, -3.0, _INF, _NAN)):
        yield {"tensor": _codes(name), "scale": np.array(scale, np.float32)}


@documented(_DEQUANTIZE, "AffineQuantizedTensor: block_size", aspect="scale-of-the-block")
def dequantize_blocks() -> Calls:
    """Every code is multiplied by the scale of its block."""
    x = _codes("float8_e4m3fn")[16:64].reshape(2, 4, 6)
    for shape in ((1, 1, 1), (2, 1, 1), (1, 4, 1), (2, 2, 3), (2, 4, 6), (1, 2, 6), (1,), ()):
        yield {"tensor": x, "scale": np.asarray(np.abs(mixed(*shape)) + np.float32(0.1))}
    yield {"tensor": x[:0], "scale": np.zeros((0, 1, 1), np.float32)}


@expected(
    _DEQUANTIZE, "torchao.quantization.quant_primitives._dequantize_affine_float8", aspect="scale-of-another-rank"
)
def dequantize_rank() -> Calls:
    """A scale of another rank than the codes, with more than one entry, is refused."""
    for shape, scale in (((4, 4), (4,)), ((4, 6), (4,)), ((4,), (4, 1)), ((4, 6), (2,)), ((4,), (1, 1, 1))):
        codes = _codes("float8_e5m2")[: int(np.prod(shape))].reshape(shape)
        yield {"tensor": codes, "scale": np.abs(mixed(*scale)) + np.float32(1)}


@measured(_DEQUANTIZE, "torchao.quantization.quant_primitives._dequantize_affine_float8", aspect="refusals")
def dequantize_refusals() -> Calls:
    """A dimension of the scale divides that of the codes."""
    for shape in ((3, 1), (4, 4), (1, 5), (8, 6)):
        yield {"tensor": _codes("float8_e5m2")[:24].reshape(4, 6), "scale": np.ones(shape, np.float32)}


def _choose_scale_float8(
    tensor: Any,
    block_size: Sequence[int],
    float8_dtype: str = "float8_e4m3fn",
    scale_dtype: str = "float32",
    hp_value_lb: float | None = None,
    hp_value_ub: float | None = None,
) -> Any:
    import torch
    from torchao.quantization.quant_primitives import _choose_scale_float8

    dtypes = getattr(torch, float8_dtype), getattr(torch, scale_dtype)
    return _choose_scale_float8(tensor, list(block_size), *dtypes, hp_value_lb, hp_value_ub)


def _quantize_affine_float8(tensor: Any, scale: Any, float8_dtype: str = "float8_e4m3fn") -> Any:
    import torch
    from torchao.quantization.quant_primitives import _quantize_affine_float8

    return _quantize_affine_float8(tensor, scale, getattr(torch, float8_dtype))


def _dequantize_affine_float8(tensor: Any, scale: Any, output_dtype: str = "float32") -> Any:
    import torch
    from torchao.quantization.quant_primitives import _dequantize_affine_float8

    return _dequantize_affine_float8(tensor, scale, getattr(torch, output_dtype))


def _quantize_affine_float8_0_11(tensor: Any, scale: Any, float8_dtype: str = "float8_e4m3fn") -> Any:
    import torch
    from torchao.quantization.quant_primitives import quantize_affine_float8

    return quantize_affine_float8(tensor, scale, getattr(torch, float8_dtype))


def _dequantize_affine_float8_0_11(tensor: Any, scale: Any, output_dtype: str = "float32") -> Any:
    import torch
    from torchao.quantization.quant_primitives import dequantize_affine_float8

    return dequantize_affine_float8(tensor, scale, getattr(torch, output_dtype))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {
            "torchao/choose_scale_float8": _choose_scale_float8,
            "torchao/quantize_affine_float8": _quantize_affine_float8,
            "torchao/dequantize_affine_float8": _dequantize_affine_float8,
        },
        v0_11={
            "torchao/choose_scale_float8": absent,
            "torchao/quantize_affine_float8": _quantize_affine_float8_0_11,
            "torchao/dequantize_affine_float8": _dequantize_affine_float8_0_11,
        },
    ),
}
