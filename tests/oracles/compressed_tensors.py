"""compressed-tensors, scalar by scalar: fractions for scales, thresholds for powers of two, tables for floats."""

from collections.abc import Iterator
from fractions import Fraction
from math import copysign, inf, isfinite, isinf, isnan, ldexp, nan
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from oracles.codes import nearest, values
from oracles.exact import round_integer
from oracles.registry import derives
from oracles.soft import DTYPES, Soft, array, soft, softs

Array = npt.NDArray[Any]

__all__: list[str] = []

_MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}  # bits of the mantissa
_EPSILON = {"float16": -10, "bfloat16": -7, "float32": -23, "float64": -52, "float8_e4m3fn": -3, "uint8": 0}
_SMALLEST = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}  # exponent of the smallest normal
_E4M3 = values(4, 3, 7, 127)  # 0 to 448
_LAST = 254  # the biased exponent of the largest power of two of float32


def _ends(type_: str, bits: int) -> tuple[Fraction, Fraction]:
    if type(bits) is not int:
        msg = f"num_bits={bits!r} is no int"
        raise ValueError(msg)
    if type_ == "int":
        half = Fraction(2) ** bits / 2
        return -half, half - 1
    if type_ != "float":
        msg = f"type={type_!r} is unknown"
        raise ValueError(msg)
    formats = {4: (2, 1, 1, 8), 6: (2, 3, 1, 32), 8: (4, 3, 7, 127)}
    if bits not in formats:
        msg = f"there is no float of num_bits={bits}"
        raise NotImplementedError(msg)
    top = values(*formats[bits])[-1]
    return -top, top


@derives("compressed-tensors/calculate_range")
def calculate_range(type: str, num_bits: int) -> tuple[Array, Array]:  # noqa: A002
    """The ends as fractions, rounded once."""
    low, high = (array([soft(end, "float32")], (), np.float32) for end in _ends(type, num_bits))
    return low, high


def _minimum(a: Soft, b: Soft) -> Soft:
    return a if a.nan or (not b.nan and a.value < b.value) else b


def _interval(low: Soft, high: Soft) -> tuple[Soft, Soft]:
    zero = Soft(0.0, low.form)
    return _minimum(low, zero), -_minimum(-high, zero)


def _magnitude(low: Soft, high: Soft) -> Soft:
    low, high = _interval(low, high)
    return -_minimum(low, -high)


def _limit(value: Soft, low: Soft, high: Soft) -> Soft:
    return value if value.nan else min(max(value, low, key=_number), high, key=_number)


def _number(s: Soft) -> float:
    return s.value


def _e4m3(value: Soft) -> float:
    """The nearest of the table, its end for what is beyond."""
    if value.nan:
        return nan
    code = len(_E4M3) - 1 if isinf(value.value) else nearest(Fraction(abs(value.value)), _E4M3)
    return copysign(float(_E4M3[code]), value.value)


def _integer(value: Soft, dtype: str) -> int:
    info = np.iinfo(dtype)
    if value.nan:
        return 0
    if isinf(value.value):
        return int(info.max if value.value > 0 else info.min)
    return min(max(round_integer(Fraction(value.value), "half-even"), int(info.min)), int(info.max))


def _to(value: Soft, dtype: str) -> Soft:
    """Rounded to a scale's dtype, and back."""
    if dtype in DTYPES:
        largest = {"float16": 65504.0, "bfloat16": float(Fraction(255, 128) * 2**127)}.get(dtype, inf)
        short = _limit(value, soft(-largest, "float64"), soft(largest, "float64"))
        return soft(soft(short.value, dtype).value, "float64").to(value.form)
    return Soft(_e4m3(value) if dtype == "float8_e4m3fn" else float(_integer(value, dtype)), value.form)


@derives("compressed-tensors/calculate_qparams")
def calculate_qparams(
    min_vals: Array,
    max_vals: Array,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002
    symmetric: bool = True,
    group_size: int | None = None,
    scale_dtype: str | None = None,
    global_scale: Array | None = None,
) -> tuple[Array, Array]:
    """One pair at a time."""
    if group_size is not None and group_size not in {-1, *range(1, 10**4)}:
        msg = f"group_size={group_size}"
        raise ValueError(msg)
    ends = _ends(type, num_bits)
    if type == "float" and num_bits != 8 and not symmetric:
        msg = f"a float of {num_bits} bits is symmetric"
        raise NotImplementedError(msg)
    mx = (type, group_size, scale_dtype) == ("float", 32, "uint8")
    name = min_vals.dtype.name
    wide = name if global_scale is None else "float32"
    pairs = np.broadcast(min_vals, max_vals)
    zp_dtype = "int8" if num_bits < 9 else "int16" if num_bits < 17 else "int32"
    scales, zeros = [], []
    for low, high in _pairs(min_vals, max_vals):
        scale, zero = _one(low, high, ends, symmetric=symmetric, mx=num_bits if mx else 0, name=name)
        if global_scale is not None:
            scale = softs(global_scale)[0] * scale.to(soft(0.0, "float32").form)
        if scale_dtype is not None:
            scale = _to(scale, scale_dtype)
        if mx:
            biased = int(scale.value)
            scale = soft(inf if biased > _LAST else Fraction(2) ** (biased - 127), "float32").to(scale.form)
        scales.append(soft(Fraction(2) ** _EPSILON[scale_dtype or wide], wide) if scale.value == 0 else scale)
        zeros.append(_e4m3(zero) if type == "float" else _integer(zero, zp_dtype))
    shape = pairs.shape or (1,)
    to = ml_dtypes.float8_e4m3fn if type == "float" else zp_dtype
    return array(scales, shape, DTYPES[wide]), array(zeros, shape, to)


def _pairs(low: Array, high: Array) -> Iterator[tuple[Soft, Soft]]:
    both = np.broadcast_arrays(low, high)
    return zip(softs(both[0]), softs(both[1]), strict=True)


def _one(
    low: Soft, high: Soft, ends: tuple[Fraction, Fraction], *, symmetric: bool, mx: int, name: str
) -> tuple[Soft, Soft]:
    """The scale before any rounding to a dtype, and the zero point as a float."""
    low, high = _interval(low, high)
    zero = soft(0.0, name)
    if mx:
        return soft(_exponent(abs(_magnitude(low, high)).value, name, mx), name), zero
    steps = soft(soft(ends[1] - ends[0], "float32").value, name)
    if symmetric:
        return _magnitude(low, high) / (steps / soft(2.0, name)), zero
    scale = (high - low) / steps
    first, last = (soft(soft(end, "float32").value, name) for end in ends)
    return scale, _limit(first - low / scale, first, last)


@derives("compressed-tensors/generate_gparam")
def generate_gparam(updated_min_val: Array, updated_max_val: Array) -> Array:
    """One rounding of 448 * 6 over the magnitude."""
    size = _single(updated_min_val, updated_max_val)
    return _global(soft(2688.0, updated_min_val.dtype.name) / size)


@derives("compressed-tensors/generate_gparam@0.20")
def generate_gparam_0_20(updated_min_val: Array, updated_max_val: Array) -> Array:
    """Two roundings."""
    size = _single(updated_min_val, updated_max_val)
    name = updated_min_val.dtype.name
    return _global(soft(1.0, name) / size * soft(2688.0, name))


def _single(low: Array, high: Array) -> Soft:
    pairs = list(_pairs(low, high))
    if len(pairs) != 1:
        msg = f"{len(pairs)} numbers"
        raise RuntimeError(msg)
    size = _magnitude(*pairs[0])
    least = Soft(ldexp(1.0, _SMALLEST[low.dtype.name]), size.form)
    return least if size.value < least.value else size


def _global(value: Soft) -> Array:
    return array([value.value if isfinite(value.value) else 1.0], (1,), np.float32)


def _power(value: float, name: str, k: int) -> float:
    """The power of two at or below; the next from 2 - 2^-(k+1) times it on; below the normal numbers 0."""
    size = abs(value)
    if size == 0 or isinf(size):
        return value
    threshold = 2 - Fraction(1, 2 ** (k + 1))
    exponent, least = _exponent_of(Fraction(size)), _SMALLEST[name]
    if exponent < least:  # subnormal numbers are as far apart as the smallest normal ones
        exponent = least
        if Fraction(size) < Fraction(2) ** exponent * (threshold - 1):
            return copysign(0.0, value)
    elif Fraction(size) >= Fraction(2) ** exponent * threshold:
        exponent += 1
    return copysign(soft(Fraction(2) ** exponent, name).value, value)


def _exponent_of(size: Fraction) -> int:
    """The largest k with 2^k <= size, from the lengths of numerator and denominator."""
    k = size.numerator.bit_length() - size.denominator.bit_length()
    return k if Fraction(2) ** k <= size else k - 1


@derives("compressed-tensors/round_to_power_2")
def round_to_power_2(x: Array, elem_mantissa: int = 1) -> Array:
    """By thresholds; NaN by what the addition makes of its payload."""
    if x.dtype.name not in _MANTISSA:
        msg = f"x of dtype {x.dtype}"
        raise TypeError(msg)
    bits = _MANTISSA[x.dtype.name]
    found = []
    for i, v in enumerate(softs(x)):
        if not isnan(v.value):
            found.append(_power(v.value, x.dtype.name, elem_mantissa))
            continue
        pattern = int(x.ravel()[i : i + 1].view(f"u{x.dtype.itemsize}")[0])
        carries = pattern % 2**bits >= 2**bits - 2 ** (bits - elem_mantissa - 1)
        negative = pattern >= 2 ** (8 * x.dtype.itemsize - 1)
        # A carry out of the exponent turns the sign: infinity's bits plus one step are those of the other zero.
        found.append(copysign(0.0, 1 if negative else -1) if carries else copysign(inf, -1 if negative else 1))
    return array(found, x.shape, x.dtype)


def _exponent(size: float, name: str, num_bits: int) -> float:
    """The biased exponent of one magnitude, which is no negative number."""
    if isnan(size):
        return inf
    power = _power(size, name, 3 if num_bits == 6 else 1)
    if power == 0 or isinf(power):
        return inf if power else -inf
    exponent = _exponent_of(Fraction(power))
    return float(127 + exponent - (8 if num_bits == 8 else 2))


@derives("compressed-tensors/generate_mx_scales")
def generate_mx_scales(x: Array, num_bits: int = 4) -> Array:
    """The exponent counted."""
    if num_bits not in {4, 6, 8}:
        msg = f"num_bits={num_bits}"
        raise KeyError(msg)
    powers = [p.value for p in softs(round_to_power_2(x, 3 if num_bits == 6 else 1))]
    found = [nan if p < 0 else inf if isinf(p) else _exponent(p, x.dtype.name, num_bits) for p in powers]
    return array(found, x.shape, x.dtype)


@derives("compressed-tensors/cast_to_fp4")
def cast_to_fp4(x: Array) -> Array:
    """The table 0 to 6."""
    table = values(2, 1, 1, 8)
    found = []
    for v in (s.value for s in softs(x)):
        if isnan(v):
            found.append(nan)
            continue
        size = table[-1] if isinf(v) else table[nearest(Fraction(abs(v)), table)]
        found.append(-float(size) if v < 0 else float(size))
    return array(found, x.shape, x.dtype)


def _divisor(scale: Soft, factor: Soft | None) -> Soft:
    return scale if factor is None else scale.to(factor.form) / factor


def _wide(x: Array, global_scale: Array | None) -> str:
    return x.dtype.name if global_scale is None else "float32"


def _rounded(value: Soft, type_: str, bits: int) -> Soft:
    if type_ == "int" or value.nan:
        return value.rint()
    if bits == 8:
        return Soft(_e4m3(value), value.form)
    table = values(2, 3, 1, 32) if bits == 6 else values(2, 1, 1, 8)
    size = float(table[nearest(Fraction(abs(value.value)), table)])
    if bits == 6:
        return Soft(copysign(size, value.value), value.form)
    return Soft(-size if value.value < 0 else size, value.form)


def _zeros(zero_point: Array | None, x: Array) -> list[Soft | None]:
    if zero_point is None:
        return [None] * x.size
    return [soft(float(z), x.dtype.name) for z in np.broadcast_to(zero_point, x.shape).ravel()]


def _codes(
    x: Array, scale: Array, zero_point: Array | None, grid: tuple[str, int], global_scale: Array | None
) -> list[tuple[Soft, Soft, Soft | None]]:
    """Code, effective scale and zero point of every element."""
    type_, bits = grid
    wide = _wide(x, global_scale)
    low, high = (soft(soft(end, "float32").value, wide) for end in _ends(type_, bits))
    factor = None if global_scale is None else softs(global_scale)[0]
    found = []
    for (v, s), z in zip(_pairs(x, scale), _zeros(zero_point, x), strict=True):
        divisor = _divisor(s, factor)
        sum_ = v.to(divisor.form) / divisor
        sum_ = sum_ if z is None else sum_ + z.to(divisor.form)
        found.append((_rounded(_limit(sum_, low, high), type_, bits), divisor, z))
    return found


@derives("compressed-tensors/quantize")
def quantize(
    x: Array,
    scale: Array,
    zero_point: Array | None = None,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002
    dtype: str | None = None,
    global_scale: Array | None = None,
) -> Array:
    """Code by code."""
    codes = [row[0] for row in _codes(x, scale, zero_point, (type, num_bits), global_scale)]
    to = getattr(ml_dtypes, dtype, dtype) if dtype else DTYPES[_wide(x, global_scale)]
    return array(codes, x.shape, to)


@derives("compressed-tensors/fake_quantize")
def fake_quantize(
    x: Array,
    scale: Array,
    zero_point: Array | None = None,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002
    global_scale: Array | None = None,
) -> Array:
    """Code by code, and back."""
    rows = _codes(x, scale, zero_point, (type, num_bits), global_scale)
    reals = [(q if z is None else q - z.to(s.form)) * s for q, s, z in rows]
    return array(reals, x.shape, DTYPES[_wide(x, global_scale)])


@derives("compressed-tensors/dequantize")
def dequantize(
    x_q: Array,
    scale: Array,
    zero_point: Array | None = None,
    dtype: str | None = None,
    global_scale: Array | None = None,
) -> Array:
    """Real by real, rounded a last time."""
    wide = _wide(scale, global_scale)
    factor = None if global_scale is None else softs(global_scale)[0]
    parts = softs(np.broadcast_to(scale, x_q.shape))
    zeros = _zeros(zero_point, np.zeros(x_q.shape, DTYPES[wide]))
    reals = []
    for code, part, z in zip(x_q.ravel(), parts, zeros, strict=True):
        s = _divisor(part, factor)
        q = soft(float(code), wide)
        reals.append((q if z is None else q - z) * s)
    final = reals if dtype is None else [soft(r.value, dtype) for r in reals]
    return array(final, x_q.shape, DTYPES[dtype or wide])


@derives("compressed-tensors/dequantize@0.20")
def dequantize_0_20(
    x_q: Array,
    scale: Array,
    zero_point: Array | None = None,
    dtype: str | None = None,
    global_scale: Array | None = None,
) -> Array:
    """The dtype asked for plays no part."""
    del dtype
    return dequantize(x_q, scale, zero_point, None, global_scale)
