"""torchao's MX blocks: exponents by search over powers of two, codes by search in the list of an element's numbers."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, copysign, isinf, isnan, ldexp, nan, prod

import ml_dtypes
import numpy as np

from oracles.codes import nearest, values
from oracles.exact import FORMATS, Format, round_to
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, soft
from oracles.torchao_float8 import logarithm, power_below
from oracles.torchao_floatx import nan_code

__all__ = ["ELEMENTS", "element_code", "pack", "unpack"]

# Exponent bits, mantissa bits, bias, and how many codes from zero on are finite; and whether there is a NaN.
ELEMENTS = {
    "float8_e4m3fn": ((4, 3, 7, 127), True),
    "float8_e5m2": ((5, 2, 15, 124), True),
    "fp6_e2m3": ((2, 3, 1, 32), False),
    "fp6_e3m2": ((3, 2, 3, 32), False),
    "float4_e2m1fn_x2": ((2, 1, 1, 8), False),
}
_QUIET, _X86 = 0x7FC00000, 0xFFC00000
_F32 = FORMATS["float32"]


def _refuse(argument: str, value: object) -> None:
    msg = f"{argument}={value} is not accepted"
    raise AssertionError(msg)


@derives("torchao/pack_uint4")
def pack(uint8_data: Array) -> Array:
    """Pairs of codes as one byte, the first in the low half."""
    if uint8_data.shape[-1] % 2 == 1:
        _refuse("uint8_data", uint8_data.shape)
    codes = [int(c) for c in uint8_data.ravel()]
    pairs = [low + 16 * high for low, high in zip(codes[::2], codes[1::2], strict=True)]
    return np.array(pairs, np.uint8).reshape(*uint8_data.shape[:-1], uint8_data.shape[-1] // 2)


@derives("torchao/unpack_uint4")
def unpack(uint8_data: Array) -> Array:
    """The two codes of each byte, the low half first."""
    halves = [half for b in uint8_data.ravel() for half in divmod(int(b), 16)[::-1]]
    return np.array(halves, np.uint8).reshape(*uint8_data.shape[:-1], uint8_data.shape[-1] * 2)


def element_code(x: Fraction, negative: bool, elem_dtype: str) -> int:
    """The code of the number nearest to a magnitude, with the sign bit."""
    fields, _ = ELEMENTS[elem_dtype]
    return nearest(x, values(*fields)) + int(negative * 2 ** (fields[0] + fields[1]))


def _largest(elem_dtype: str) -> Fraction:
    return values(*ELEMENTS[elem_dtype][0])[-1]


def _exponent(amax: float, elem_dtype: str, mode: str, ceiling: Callable[[Fraction], int]) -> int:
    """The exponent of the scale of a block with this largest magnitude, limited to what a code has."""
    top = power_below(_largest(elem_dtype))
    if isinf(amax):
        return 127 if mode == "RCEIL" else 128 - top
    if amax == 0:
        return -127
    a = Fraction(amax)
    match mode:
        case "FLOOR":
            k = power_below(a) - top
        case "CEIL":
            k = _least(a) - top
        case "EVEN":
            k = power_below(Fraction(round_to(a, Format(ELEMENTS[elem_dtype][0][1] + 1, -1000, 1000)))) - top
        case _:
            d = soft(amax, "float32") / soft(_largest(elem_dtype), "float32")
            k = ceiling(Fraction(d.value)) if d.value else -127
    return min(max(k, -127), 127)


def _least(value: Fraction) -> int:
    """The least k with value <= 2^k."""
    k = power_below(value)
    return k if Fraction(2) ** k == value else k + 1


def _least_rounded(value: Fraction) -> int:
    """The integer not below the logarithm once float32 has rounded it."""
    y = logarithm(value)
    return ceil(round_to(y, _F32)) if y else 0


def _blocks(data_hp: Array, elem_dtype: str, block_size: int, scaling_mode: str) -> list[Array]:
    if data_hp.dtype.name not in ("float32", "bfloat16"):
        _refuse("data_hp", data_hp.dtype)
    if block_size <= 0 or data_hp.shape[-1] % block_size != 0:
        _refuse("block_size", block_size)
    if elem_dtype not in ELEMENTS:
        _refuse("elem_dtype", elem_dtype)
    if scaling_mode not in ("FLOOR", "CEIL", "EVEN", "RCEIL"):
        _refuse("scaling_mode", scaling_mode)
    flat = data_hp.astype(np.float32).ravel()
    return [flat[i : i + block_size] for i in range(0, flat.size, block_size)]


def _result(
    scales: list[int], codes: list[int], data_hp: Array, elem_dtype: str, block_size: int
) -> tuple[Array, Array]:
    shape = (*data_hp.shape[:-1], data_hp.shape[-1] // block_size)
    stored = np.array(codes, np.uint8).reshape(data_hp.shape)
    if ELEMENTS[elem_dtype][1]:
        stored = stored.view(getattr(ml_dtypes, elem_dtype))
    elif elem_dtype == "float4_e2m1fn_x2":
        stored = pack(stored)
    return np.array(scales, np.uint8).reshape(shape), stored


def _element(x: float, exponent: int, elem_dtype: str) -> int:
    magnitude = _largest(elem_dtype) if isinf(x) else abs(Fraction(x)) / Fraction(2) ** exponent
    return element_code(magnitude, copysign(1, x) < 0, elem_dtype)


@derives("torchao/to_mx")
def _to_mx(data_hp: Array, elem_dtype: str, block_size: int, scaling_mode: str = "FLOOR") -> tuple[Array, Array]:
    scales: list[int] = []
    codes: list[int] = []
    for block in _blocks(data_hp, elem_dtype, block_size, scaling_mode):
        numbers = [float(v) for v in block]
        if any(isnan(v) for v in numbers):
            scales.append(255)
            codes += [127 if ELEMENTS[elem_dtype][1] else 0] * block_size
            continue
        k = _exponent(max(abs(v) for v in numbers), elem_dtype, scaling_mode, _least)
        scales.append(k + 127)
        codes += [_element(v, k, elem_dtype) for v in numbers]
    return _result(scales, codes, data_hp, elem_dtype, block_size)


@derives("torchao/to_mx@0.18")
def _to_mx_0_18(data_hp: Array, elem_dtype: str, block_size: int, scaling_mode: str = "FLOOR") -> tuple[Array, Array]:
    scales: list[int] = []
    codes: list[int] = []
    for block in _blocks(data_hp, elem_dtype, block_size, scaling_mode):
        numbers = [float(v) for v in block]
        if any(isnan(v) for v in numbers):
            scales.append(255)
            codes += [_lost(v, elem_dtype, scaling_mode == "RCEIL") for v in block]
            continue
        k = _exponent(max(abs(v) for v in numbers), elem_dtype, scaling_mode, _least_rounded)
        scales.append(k + 127)
        if k == -127:
            k = 0 if scaling_mode == "RCEIL" else -126
        codes += [_element(v, k, elem_dtype) for v in numbers]
    return _result(scales, codes, data_hp, elem_dtype, block_size)


def _lost(x: np.float32, elem_dtype: str, product: bool) -> int:
    """An element of a block with NaN: over infinity; or times NaN, which leaves a NaN its own bits, but for quiet."""
    fields, has_nan = ELEMENTS[elem_dtype]
    negative = copysign(1, x) < 0
    if not isnan(x) and not isinf(x) and not product:
        return element_code(Fraction(0), negative, elem_dtype)
    if has_nan:
        return 127
    if isnan(x):
        bits = int(x.view(np.uint32))
        return nan_code(bits if bits % 2**23 >= 2**22 else bits + 2**22, *fields[:2])
    return nan_code(_QUIET if product else _X86, *fields[:2])


@derives("torchao/mx_dequantize")
def _mx_dequantize(
    data_lp: Array, scale_e8m0: Array, elem_dtype: str, block_size: int, target_dtype: str = "float32"
) -> Array:
    if elem_dtype not in ELEMENTS:
        _refuse("elem_dtype", elem_dtype)
    stored = data_lp.view(np.uint8)
    stored = unpack(stored) if elem_dtype == "float4_e2m1fn_x2" else stored
    if prod(stored.shape) != scale_e8m0.size * block_size:
        msg = f"scale_e8m0={scale_e8m0.shape} is not accepted"
        raise RuntimeError(msg)
    dtype = DTYPES[target_dtype]
    powers = [_power(int(e), dtype.name) for e in scale_e8m0.ravel()]
    reals = [
        soft(_number(int(c), elem_dtype), "float64").to(form(dtype)) * powers[i // block_size]
        for i, c in enumerate(stored.ravel())
    ]
    return array(reals, stored.shape, dtype)


def _power(code: int, dtype: str) -> Soft:
    return soft(nan if code == 255 else ldexp(1.0, code - 127), dtype)


def _number(code: int, elem_dtype: str) -> float:
    fields, has_nan = ELEMENTS[elem_dtype]
    half, table = 2 ** (fields[0] + fields[1]), values(*fields)
    sign = -1.0 if code >= half else 1.0
    if code % half >= len(table):
        return sign * (np.inf if elem_dtype == "float8_e5m2" and code % half == len(table) else nan) if has_nan else nan
    return sign * float(table[code % half])


def _place(i: int, j: int, columns: int) -> int:
    """Where row i, column j of a matrix stands: tiles of 128 by 4 in order, in each four groups of 32 rows abreast."""
    tile = (i // 128) * -(-columns // 4) + j // 4
    group, row = divmod(i % 128, 32)
    return ((tile * 32 + row) * 4 + group) * 4 + j % 4


@derives("torchao/to_blocked")
def _to_blocked(input_matrix: Array) -> Array:
    if len(input_matrix.shape) != len("ij"):
        msg = f"input_matrix={input_matrix.shape} is not accepted"
        raise ValueError(msg)
    rows, columns = input_matrix.shape
    found = [0] * (-(-rows // 128) * -(-columns // 4) * 512)
    for i in range(rows):
        for j in range(columns):
            found[_place(i, j, columns)] = int(input_matrix[i, j])
    return np.array(found, input_matrix.dtype)


@derives("torchao/from_blocked")
def _from_blocked(blocked_tensor: Array, original_rows: int, original_cols: int) -> Array:
    flat = [int(c) for c in blocked_tensor.ravel()]
    if len(flat) != -(-original_rows // 128) * -(-original_cols // 4) * 512:
        msg = f"blocked_tensor={blocked_tensor.shape} is not accepted"
        raise RuntimeError(msg)
    found = [flat[_place(i, j, original_cols)] for i in range(original_rows) for j in range(original_cols)]
    return np.array(found, blocked_tensor.dtype).reshape(original_rows, original_cols)
