"""torchao's floatx from the list of a format's numbers: the nearest one is searched for, each scalar by itself."""

from fractions import Fraction
from math import copysign, isinf, isnan
from typing import Any

import numpy as np

from oracles.codes import nearest, values
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, soft, softs

__all__ = ["choose", "code", "codes", "dequantize", "fpx", "nan_code", "numbers", "quantize"]

_WIDEST, _PACKED, _TILE = 8, 7, 64


def _numbers(ebits: int, mbits: int) -> list[Fraction]:
    if ebits + mbits >= _WIDEST:
        msg = f"ebits={ebits}, mbits={mbits} is not accepted: a code has at most 8 bits"
        raise AssertionError(msg)
    return values(ebits, mbits, 2 ** (ebits - 1) - 1 if ebits else 0, 2 ** (ebits + mbits))


def code(x: float, ebits: int, mbits: int) -> int:
    """The code of the nearest number; NaN is a ValueError."""
    if isnan(x):
        msg = "x=NaN is not accepted: no code is NaN"
        raise ValueError(msg)
    table = _numbers(ebits, mbits)
    index = len(table) - 1 if isinf(x) else nearest(abs(Fraction(x)), table)
    return index + len(table) * (copysign(1, x) < 0)


def nan_code(bits: int, ebits: int, mbits: int) -> int:
    """The code that a NaN of these bits gets, read as a number of exponent 128: significand rounded, field moved."""
    significand = Fraction(2**23 + bits % 2**23, 2 ** (23 - mbits))
    kept = round(significand)  # half to even
    field = 128 + 2 ** (ebits - 1) - 1
    return int((field * 2**mbits + kept - 2**mbits) % 256 | (bits >> 31) << (ebits + mbits))


def _checked(x: Array) -> Array:
    if x.dtype != np.float32:
        msg = f"x={x.dtype} is not accepted: give float32"
        raise AssertionError(msg)
    return x


@derives("torchao/f32_to_floatx_unpacked")
def codes(x: Array, ebits: int, mbits: int) -> Array:
    """The code of each number, by search."""
    found = [code(float(v), ebits, mbits) for v in _checked(x).ravel()]
    _numbers(ebits, mbits)
    return array(found, x.shape, np.uint8)


@derives("torchao/f32_to_floatx_unpacked@0.18")
def _codes_0_18(x: Array, ebits: int, mbits: int) -> Array:
    _numbers(ebits, mbits)
    found = [
        nan_code(int(b), ebits, mbits) if isnan(v) else code(float(v), ebits, mbits)
        for v, b in zip(_checked(x).ravel(), x.ravel().view(np.uint32), strict=True)
    ]
    return array(found, x.shape, np.uint8)


@derives("torchao/floatx_unpacked_to_f32")
def numbers(x: Array, ebits: int, mbits: int) -> Array:
    """The number of each code, from the list."""
    if x.dtype != np.uint8:
        msg = f"x={x.dtype} is not accepted: give uint8"
        raise AssertionError(msg)
    table = _numbers(ebits, mbits)
    found = [copysign(float(table[int(c) % len(table)]), -1 if int(c) >= len(table) else 1) for c in x.ravel()]
    return array(found, x.shape, np.float32)


@derives("torchao/choose_qparams_affine_floatx")
def choose(tensor: Array, ebits: int, mbits: int) -> Array:
    """The scale of each row: in float32, then in the dtype of the tensor."""
    if len(tensor.shape) == 1 or not tensor.shape or not tensor.shape[1]:
        msg = f"tensor={tensor.shape} is not accepted: give rows"
        raise IndexError(msg)
    largest = soft(_numbers(ebits, mbits)[-1], "float32")
    return array([_scale(row, largest).to(form(tensor.dtype)) for row in tensor], tensor.shape[:1], tensor.dtype)


def _scale(row: Array, largest: Soft) -> Soft:
    numbers = [abs(v) for v in softs(row.astype(np.float32))]
    if any(v.nan for v in numbers):
        return next(v for v in numbers if v.nan)
    return max([soft(1e-12, "float32"), *numbers], key=lambda v: v.value) / largest


def _quotients(tensor: Array, scale: Array) -> Array:
    scales = softs(scale.astype(np.float32))
    if len(scales) not in {1, tensor.shape[0]}:
        msg = f"scale={scale.shape} is not accepted: one per row"
        raise RuntimeError(msg)
    rows = [[x / scales[i % len(scales)] for x in softs(row.astype(np.float32))] for i, row in enumerate(tensor)]
    return array([q for row in rows for q in row], tensor.shape, np.float32)


@derives("torchao/quantize_affine_floatx")
def quantize(tensor: Array, scale: Array, ebits: int, mbits: int) -> Array:
    """Each number over the scale of its row, then its code."""
    return codes(_quotients(tensor, scale), ebits, mbits)


@derives("torchao/quantize_affine_floatx@0.18")
def _quantize_0_18(tensor: Array, scale: Array, ebits: int, mbits: int) -> Array:
    quotients = _quotients(tensor, scale)
    # A NaN keeps its bits, the first of two those; of 0 / 0 and inf / inf, x86-64 makes the one with the sign bit set.
    bits = np.array(quotients.view(np.uint32))
    for index, q in np.ndenumerate(quotients):
        operands = tensor[index], scale.ravel()[index[0] % scale.size]
        held = next((o.astype(np.float32).view(np.uint32) for o in operands if isnan(o)), 0xFFC00000)
        bits[index] = held if isnan(q) else bits[index]
    return _codes_0_18(bits.view(np.float32), ebits, mbits)


@derives("torchao/dequantize_affine_floatx")
def dequantize(tensor: Array, scale: Array, ebits: int, mbits: int, output_dtype: str = "float32") -> Array:
    """The number of each code times the scale of its row, rounded in float32, then in the output's dtype."""
    found = numbers(tensor, ebits, mbits)
    scales = softs(scale.astype(np.float32))
    if len(scales) not in {1, tensor.shape[0]}:
        msg = f"scale={scale.shape} is not accepted: one per row"
        raise RuntimeError(msg)
    dtype = DTYPES[output_dtype]
    reals = [(v * scales[i % len(scales)]).to(form(dtype)) for i, row in enumerate(found) for v in softs(row)]
    return array(reals, tensor.shape, dtype)


@derives("torchao/from_hp_to_fpx")
def fpx(input_float: Array, ebits: int, mbits: int) -> dict[str, Any]:
    """Scales, then codes."""
    if input_float.ndim in (0, 1):
        raise IndexError(input_float.shape)
    if [n % _TILE for n in input_float.shape] != [0, 0]:
        raise AssertionError(input_float.shape)
    if ebits + mbits >= _PACKED:
        raise ValueError(ebits + mbits)
    scale = choose(input_float, ebits, mbits)
    return {"codes": quantize(input_float, scale, ebits, mbits), "scale": scale}


@derives("torchao/from_hp_to_fpx@0.15")
def _fpx_0_15(input_float: Array, ebits: int, mbits: int) -> dict[str, Any]:
    fpx(np.ones_like(input_float), ebits, mbits)  # the same refusals
    scale = choose(input_float, ebits, mbits)
    return {"codes": _quantize_0_18(input_float, scale, ebits, mbits), "scale": scale}
