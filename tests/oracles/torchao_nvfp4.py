"""torchao's NVFP4, each scalar by itself in float32 operations, codes by search."""

from fractions import Fraction
from math import copysign, isinf, nan, prod

import ml_dtypes
import numpy as np

from oracles.codes import values
from oracles.exact import FORMATS
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, soft, softs
from oracles.torchao_float8 import float8_code
from oracles.torchao_floatx import nan_code
from oracles.torchao_mx import element_code, pack, unpack

__all__: list[str] = []

_SCALE, _ELEMENT = "float8_e4m3fn", "float4_e2m1fn_x2"
_NAN_CODES = (127, 255)


def _f32(value: float) -> Soft:
    return soft(value, "float32")


@derives("torchao/per_tensor_amax_to_scale")
def _amax_to_scale(amax: Array) -> Array:
    return array([a.to(FORMATS["float32"]) / _f32(448 * 6) for a in softs(amax)], amax.shape, np.float32)


def _scale_number(code: int) -> Soft:
    return _f32(nan if code in _NAN_CODES else float(values(4, 3, 7, 127)[code % 128]) * (1 if code < 128 else -1))


def _scale_code(ratio: Soft) -> int:
    """The code of a scale in [2^-6, 448], or of NaN with its sign."""
    if ratio.nan:
        return 255 if copysign(1, ratio.value) < 0 else 127
    return float8_code(min(max(ratio.value, 2.0**-6), 448.0), _SCALE)


def _code(x: Soft) -> int:
    magnitude = Fraction(6) if isinf(x.value) else min(abs(Fraction(x.value)), Fraction(6))
    return element_code(magnitude, copysign(1, x.value) < 0, _ELEMENT)


def _quantize(data_hp: Array, block_size: int, per_tensor_scale: Array | None, keep_nan: bool) -> tuple[Array, Array]:
    shape = data_hp.shape
    if data_hp.dtype.name not in ("float32", "bfloat16") or block_size != 4 * 4 or shape[-1] % 16 != 0:
        msg = f"data_hp={shape} {data_hp.dtype}, block_size={block_size} is not accepted"
        raise AssertionError(msg)
    if len(shape) == 1:
        msg = f"data_hp={shape} is not accepted: a matrix at least"
        raise RuntimeError(msg)
    numbers = softs(data_hp.astype(np.float32))
    outer = [_f32(1.0)] if per_tensor_scale is None else softs(per_tensor_scale)
    per_row = len(numbers) // shape[0] if shape[0] else 0
    scales: list[int] = []
    codes: list[int] = []
    for i in range(0, len(numbers), 16):
        block = numbers[i : i + 16]
        s_t = outer[i // per_row if len(outer) > 1 else 0]
        has_nan = any(x.nan for x in block)
        amax = _f32(nan) if has_nan else max((abs(x) for x in block), key=lambda x: x.value)
        ratio = (amax / _f32(6.0)) / s_t
        if not keep_nan and amax.value == 0:
            ratio = amax
        scales.append(_scale_code(ratio))
        factor = (_f32(1.0) / s_t) / _scale_number(scales[-1])
        for x in block:
            scaled = x * factor
            if not scaled.nan:
                codes.append(_code(scaled))
            elif keep_nan:
                codes.append(_nan_code(s_t, has_nan, ratio.nan))
            else:
                codes.append(_code(x) if x.value == 0 else 0)
    rows = (shape[0], prod(shape[1:]) // 16)
    stored = np.array(scales, np.uint8).reshape(rows).view(getattr(ml_dtypes, _SCALE))
    return stored, pack(np.array(codes, np.uint8).reshape(shape))


def _nan_code(s_t: Soft, has_nan: bool, no_ratio: bool) -> int:
    """The first NaN on the way to an element is left; one that x86-64 makes is negative, and e4m3 fills its payload."""
    if s_t.nan:
        return nan_code(0xFFC00000 if copysign(1, s_t.value) < 0 else 0x7FC00000, 2, 1)
    if has_nan:
        return nan_code(0x7FF00000, 2, 1)
    return nan_code(0xFFF00000 if no_ratio else 0xFFC00000, 2, 1)


@derives("torchao/nvfp4_quantize")
def _quantize_exact(data_hp: Array, block_size: int = 16, per_tensor_scale: Array | None = None) -> tuple[Array, Array]:
    return _quantize(data_hp, block_size, per_tensor_scale, keep_nan=False)


@derives("torchao/nvfp4_quantize@0.18")
def _quantize_0_18(data_hp: Array, block_size: int = 16, per_tensor_scale: Array | None = None) -> tuple[Array, Array]:
    return _quantize(data_hp, block_size, per_tensor_scale, keep_nan=True)


@derives("torchao/nvfp4_dequantize")
def _dequantize(
    qdata: Array,
    scale: Array,
    block_size: int = 16,
    per_tensor_scale: Array | None = None,
    output_dtype: str = "float32",
) -> Array:
    codes = unpack(qdata)
    if prod(codes.shape) != scale.size * block_size:
        msg = f"scale={scale.shape} is not accepted"
        raise RuntimeError(msg)
    scales = [_scale_number(int(c)) for c in scale.view(np.uint8).ravel()]
    if per_tensor_scale is not None:
        outer = softs(per_tensor_scale)
        scales = [outer[i * len(outer) // len(scales)] * s for i, s in enumerate(scales)]
    dtype = DTYPES[output_dtype]
    table = [float(v) for v in values(2, 1, 1, 8)]
    reals = [
        (_f32(copysign(table[int(c) % 8], 7.5 - int(c))) * scales[i // block_size]).to(form(dtype))
        for i, c in enumerate(codes.ravel())
    ]
    return array(reals, codes.shape, dtype)
