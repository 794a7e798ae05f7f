"""AIMET's float quantization by search: the nearest number of the format's list, or the nearest multiple of a unit."""

from fractions import Fraction
from math import copysign, inf
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.aimet_affine import owners
from oracles.codes import nearest, values
from oracles.exact import Format
from oracles.registry import derives
from oracles.soft import DTYPES, Soft, array, form, soft, softs

Array = npt.NDArray[Any]
Widths = tuple[int, int, bool, bool]

__all__ = ["quantize_dequantize"]

_TORCH: dict[str, Widths] = {
    "float16": (5, 10, False, False),
    "bfloat16": (8, 7, False, False),
    "float8_e4m3fn": (4, 3, True, False),
    "float8_e4m3fnuz": (4, 3, True, True),
    "float8_e5m2": (5, 2, False, False),
    "float8_e5m2fnuz": (5, 2, True, True),
}
_E2M1 = (2, 1, True, False)


def _wide_enough(exponent_bits: int, mantissa_bits: int) -> None:
    if exponent_bits <= 1 or mantissa_bits <= 0:
        msg = f"{exponent_bits}, {mantissa_bits} is too narrow"
        raise ValueError(msg)


def _widths(given: dict[str, Any]) -> Widths:
    e, m, dtype = (given.get(n) for n in ("exponent_bits", "mantissa_bits", "dtype"))
    flags = (bool(given.get("finite")), bool(given.get("unsigned_zero")))
    if (dtype is not None and (e is not None or m is not None or dtype not in _TORCH)) or (
        dtype is None and None in {e, m}
    ):
        msg = f"{given} names no format"
        raise ValueError(msg)
    if dtype is None:
        _wide_enough(e, m)  # type: ignore[arg-type]
    found: Any = _TORCH[dtype] if dtype is not None else (e, m, *flags)
    if any(found[2:]) and found not in _TORCH.values() and found != _E2M1:
        msg = f"{found} is not accepted"
        raise RuntimeError(msg)
    return found  # type: ignore[no-any-return]


def _numbers(widths: Widths, *, measured: bool) -> list[Fraction]:
    """All numbers that are not negative: of 2^(e+m) codes the last 2^m, the last, or none are no numbers."""
    e, m, finite, unsigned = widths
    bias, without = (1 << (e - 1)) - 1, 1 << m
    if finite:
        bias, without = (bias + 1, 0) if unsigned else (bias, 0 if widths == _E2M1 else 1)
    elif measured and widths not in _TORCH.values():
        bias, without = bias + 1, 0
    return values(e, m, bias, (1 << (e + m)) - without)


def _cast(y: Soft, numbers: list[Fraction], *, unsigned: bool) -> Soft:
    if y.nan:
        return y
    i = len(numbers) - 1 if abs(y.value) == inf else nearest(abs(Fraction(y.value)), numbers)
    sign = 1.0 if unsigned and i == 0 else y.value
    return Soft(copysign(float(numbers[i]), sign), y.form)


@derives("aimet/float_scale")
def float_scale(maxval: Array, **given: Any) -> Array:
    """The quotient of two rationals, rounded once."""
    largest = _numbers(_widths(given), measured=False)[-1]
    found = []
    for v in softs(maxval):
        size = abs(v)
        found.append(soft(Fraction(size.value) / largest, "float32") if size.value < inf else size)
    return array(found, maxval.shape, np.float32)


@derives("aimet/float_cast")
def float_cast(tensor: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounding to a format of m + 1 bits and any exponent, and the largest number of the IEEE one."""
    _wide_enough(exponent_bits, mantissa_bits)
    kept = Format(mantissa_bits + 1, -10000, 10000)
    largest = (2 - Fraction(1, 2**mantissa_bits)) * 2 ** ((2**exponent_bits - 1) // 2)
    found = []
    for x in softs(tensor):
        held = x if x.nan or abs(x.value) <= largest else Soft(copysign(float(largest), x.value), x.form)
        found.append(held if held.nan else Soft(held.to(kept).value, x.form))
    return array(found, tensor.shape, tensor.dtype)


@derives("aimet/float_cast@2.42")
def float_cast_2_42(tensor: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """The nearest of the list."""
    _wide_enough(exponent_bits, mantissa_bits)
    numbers = _numbers((exponent_bits, mantissa_bits, False, False), measured=True)
    return array((_cast(x, numbers, unsigned=False) for x in softs(tensor)), tensor.shape, tensor.dtype)


@derives("aimet/float_quantize_dequantize")
def quantize_dequantize(tensor: Array, scale: Array, block_size: Any = None, **given: Any) -> Array:
    """Quotient and product in float32, or float64 for its own, rounded to the tensor's dtype; the number by search."""
    widths = _widths(given)
    owner = owners(tensor.shape, scale.shape, block_size)
    found = _each(softs(tensor), softs(scale), owner, widths, form(tensor.dtype), _wide(tensor))
    return array(found, tensor.shape, tensor.dtype)


@derives("aimet/float_quantize_dequantize@2.42")
def quantize_dequantize_2_42(tensor: Array, scale: Array, block_size: Any = None, **given: Any) -> Array:
    """Whatever torch broadcasts and promotes."""
    widths = _widths(given)
    own = tensor.shape != () and scale.shape == ()
    dtype = tensor.dtype if own or tensor.dtype == np.float64 else np.dtype(np.float32)
    if dtype == np.float16 and _numbers(widths, measured=True)[-1] > 65504:
        msg = f"tensor of dtype float16 is not accepted for {widths}"
        raise RuntimeError(msg)
    if block_size:
        lead = tensor.ndim - scale.ndim
        split: list[int] = []
        for n, c, b in zip(tensor.shape[lead:], scale.shape, block_size, strict=True):
            split += [c, n // c if b == -1 else b]
        shape: tuple[int, ...] = (tensor.size // int(np.prod(split)), *split)
        scales: tuple[int, ...] = tuple(n for c in scale.shape for n in (c, 1))
        xs = softs(tensor)
    else:
        shape, scales = np.broadcast_shapes(tensor.shape, scale.shape), scale.shape
        xs = softs(np.broadcast_to(tensor, shape))
    found = _each(xs, softs(scale), owners(shape, scales, None), widths, form(dtype), _wide(tensor), measured=True)
    return array(found, tensor.shape if block_size else shape, dtype)


def _each(
    xs: list[Soft],
    scales: list[Soft],
    owner: list[int],
    widths: Widths,
    kept: Format,
    wide: Format,
    *,
    measured: bool = False,
) -> list[Soft]:
    numbers = _numbers(widths, measured=measured)
    narrow = measured and widths in _TORCH.values()
    found = []
    for x, i in zip(xs, owner, strict=True):
        s = scales[i].to(wide)
        y = (x.to(wide) / s).to(kept)
        if narrow and kept == form(DTYPES["float64"]):
            y = y.to(form(DTYPES["float32"])).to(kept)
        near = _cast(y, numbers, unsigned=widths[3])
        # The library clamps to the largest number as the narrow dtype rounds it: above it there is infinity.
        if narrow and kept == form(DTYPES["bfloat16"]) and widths == _TORCH["float16"] and abs(y.value) >= 65520:
            near = Soft(copysign(inf, y.value), kept)
        found.append((near.to(kept).to(wide) * s).to(kept))
    return found


def _wide(tensor: Array) -> Format:
    return form(DTYPES["float64" if tensor.dtype == np.float64 else "float32"])
