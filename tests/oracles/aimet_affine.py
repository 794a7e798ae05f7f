"""AIMET's affine functions element by element: exact fractions, rounded where the library's dtype rounds."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.exact import Format
from oracles.registry import derives
from oracles.soft import DTYPES, Soft, array, form, soft, softs

Array = npt.NDArray[Any]

__all__ = [
    "codes_of",
    "dequantize",
    "ends",
    "limited",
    "owners",
    "quantize",
    "quantize_dequantize",
    "refuse",
    "working",
]


def ends(bitwidth: Any, num_steps: Any, qmin: Any, qmax: Any, signed: Any) -> tuple[int, int]:
    """The grid's ends, from exactly one of the three ways to name it."""
    given = [bitwidth is not None, num_steps is not None, qmin is not None or qmax is not None]
    values = [v for v in (bitwidth, num_steps, qmin, qmax) if v is not None]
    if sum(given) != 1 or not all(isinstance(v, int) for v in values) or (given[2] and len(values) != 2):
        msg = f"{values} is not accepted: give bitwidth, num_steps, or qmin and qmax"
        raise TypeError(msg)
    if given[2]:
        low, high = qmin, qmax
    else:
        steps = num_steps if given[1] else (1 << bitwidth) - 1 if bitwidth >= 0 else -1
        high = (steps >> 1) if signed else steps
        low = high - steps if steps >= 0 else high + 1
    if low > high:
        msg = f"qmin={low} is above qmax={high}"
        raise RuntimeError(msg)
    return low, high


def _holds(f: Format, low: int, high: int) -> bool:
    near = {low, high, min(low + 1, high), max(high - 1, low)}
    # An integer is held where its odd part has at most as many bits as the significand, and it is not too large.
    odd = [abs(code) // (code & -code) if code else 0 for code in near]
    return all(o.bit_length() <= f.precision for o in odd) and max(map(abs, near)) < 2 ** (f.emax + 1)


def working(name: str, low: int, high: int) -> str:
    """The name of the dtype that AIMET computes in for inputs of the dtype ``name``."""
    fine = [
        t
        for t in (name, "float32")
        if _holds(form(DTYPES[t]), low, high) and 4 * (high - low) <= 2 ** (form(DTYPES[t]).precision - 1)
    ]
    return [*fine, "float64"][0]


def refuse(dtype: "np.dtype[Any]", low: int, high: int) -> None:
    """Refuse a dtype that is no float, or holds no codes of this grid."""
    if dtype.name not in DTYPES:
        msg = f"tensor of dtype {dtype.name} is not accepted"
        raise ValueError(msg)
    if not _holds(form(dtype), low, high):
        msg = f"[{low}, {high}] is not accepted for {dtype.name}"
        raise RuntimeError(msg)


def owners(shape: Sequence[int], scales: Sequence[int], block_size: Sequence[int] | None) -> list[int]:
    """For every element of a tensor of ``shape``, in order, the place of its parameter in an array of ``scales``."""
    lead = len(shape) - len(scales)
    if block_size is not None:
        if len(block_size) != len(scales):
            msg = f"block_size={block_size} is not accepted for {len(scales)} dimensions"
            raise RuntimeError(msg)
        if lead < 0:
            msg = f"scale of {len(scales)} dimensions is not accepted for a tensor of {len(shape)}"
            raise IndexError(msg)
        pairs = list(zip(shape[lead:], scales, block_size, strict=True))
        if any(n != (n // c if b == -1 else b) * c for n, c, b in pairs):
            msg = f"block_size={block_size} is not accepted for {shape} and {scales}"
            raise RuntimeError(msg)
        block = [n // c for n, c, _ in pairs]
    else:
        if lead < 0 or any(c not in {1, n} for c, n in zip(scales, shape[lead:], strict=True)):
            msg = f"scale of shape {scales} is not accepted for a tensor of shape {shape}"
            raise RuntimeError(msg)
        block = [1 if c == n else n for c, n in zip(scales, shape[lead:], strict=True)]
    found = []
    for place in product(*map(range, shape)):
        flat = 0
        for j, b, c in zip(place[lead:], block, scales, strict=True):
            flat = flat * c + j // b
        found.append(flat)
    return found


def limited(code: Soft, low: int, high: int) -> Soft:
    """The code, or the end that it passes; NaN passes neither."""
    if code.nan or low <= code.value <= high:
        return code
    return Soft(float(low if code.value < low else high), code.form)


def codes_of(x: Soft, s: Soft, o: Soft, shift: float = 0.0) -> tuple[Soft, Soft, Soft]:
    """The real code, its nearest integer, and that integer less the offset; all three in the format of ``s``."""
    real = x.to(s.form) / s
    if shift:
        real = real - Soft(shift, s.form)
    nearest = real.rint()
    return real, nearest, nearest - o


@derives("aimet/affine.quantize")
def quantize(
    tensor: Array,
    scale: Array,
    offset: Array,
    bitwidth: Any = None,
    signed: Any = False,
    block_size: Any = None,
    num_steps: Any = None,
    qmin: Any = None,
    qmax: Any = None,
) -> Array:
    """Every code by itself."""
    low, high = ends(bitwidth, num_steps, qmin, qmax, signed)
    owner = owners(tensor.shape, scale.shape, block_size)
    refuse(tensor.dtype, low, high)
    t = working(tensor.dtype.name, low, high)
    s, o = _parameters(scale, offset, t)
    found = [limited(codes_of(x, s[i], o[i])[2], low, high) for x, i in zip(softs(tensor), owner, strict=True)]
    return array((q.to(form(tensor.dtype)) for q in found), tensor.shape, tensor.dtype)


@derives("aimet/affine.quantize_dequantize")
def quantize_dequantize(
    tensor: Array,
    scale: Array,
    offset: Array,
    bitwidth: Any = None,
    signed: Any = False,
    block_size: Any = None,
    num_steps: Any = None,
    qmin: Any = None,
    qmax: Any = None,
    zero_point_shift: float = 0.0,
) -> Array:
    """Every real by itself."""
    low, high = ends(bitwidth, num_steps, qmin, qmax, signed)
    owner = owners(tensor.shape, scale.shape, block_size)
    if tensor.dtype.name not in DTYPES:
        msg = f"tensor of dtype {tensor.dtype.name} is not accepted"
        raise ValueError(msg)
    t = working(tensor.dtype.name, low, high)
    if not _holds(form(DTYPES[t]), low, high):
        msg = f"[{low}, {high}] is not accepted: not even {t} holds it"
        raise RuntimeError(msg)
    s, o = _parameters(scale, offset, t)
    found = []
    for x, i in zip(softs(tensor), owner, strict=True):
        q = limited(codes_of(x, s[i], o[i], zero_point_shift)[2], low, high)
        back = o[i] + Soft(zero_point_shift, q.form) if zero_point_shift else o[i]
        found.append(((q + back) * s[i]).to(form(tensor.dtype)))
    return array(found, tensor.shape, tensor.dtype)


@derives("aimet/affine.dequantize")
def dequantize(tensor: Array, scale: Array, offset: Array, block_size: Any = None) -> Array:
    """The sum rounded, then the product."""
    owner = owners(tensor.shape, scale.shape, block_size)
    if tensor.dtype.name not in DTYPES:
        msg = f"tensor of dtype {tensor.dtype.name} is not accepted"
        raise TypeError(msg)
    s, o = _parameters(scale, offset, tensor.dtype.name)
    found = [(q + o[i]) * s[i] for q, i in zip(softs(tensor), owner, strict=True)]
    return array(found, tensor.shape, tensor.dtype)


@derives("aimet/affine.quantize@2.42")
def quantize_2_42(signed: Any = None, **given: Any) -> Array:
    """The document's function, for the calls that the library's overloads take."""
    _overload(signed=signed, **given)
    given = _in_ends(**given)
    return quantize(signed=signed is True, **given)


@derives("aimet/affine.quantize_dequantize@2.42")
def quantize_dequantize_2_42(signed: Any = None, **given: Any) -> Array:
    """The document's function, for the calls that the library's overloads take; float64 loses bits twice."""
    _overload(signed=signed, **given)
    given = _in_ends(**given)
    tensor: Array = given.pop("tensor")
    found = quantize_dequantize(tensor, signed=signed is True, **given)
    bitwidth, num_steps, qmin, qmax = (given.get(n) for n in ("bitwidth", "num_steps", "qmin", "qmax"))
    low, high = ends(bitwidth, num_steps, qmin, qmax, signed)
    if working(tensor.dtype.name, low, high) != "float64":
        return found
    wide = array(softs(tensor), tensor.shape, np.float64)
    steps = (form(DTYPES["float32"]), form(tensor.dtype)) if tensor.dtype != np.float64 else ()
    values = softs(quantize_dequantize(wide, signed=signed is True, **given))
    for step in steps:
        values = [v.to(step) for v in values]
    return array(values, tensor.shape, tensor.dtype)


@derives("aimet/affine.dequantize@2.42")
def dequantize_2_42(tensor: Array, scale: Array, offset: Array, block_size: Any = None) -> Array:
    """Integers of ``bits`` bits: every result modulo 2^bits, scale and offset cut to integers."""
    if tensor.dtype.name in DTYPES:
        return dequantize(tensor, scale, offset, block_size)
    owner = owners(tensor.shape, scale.shape, block_size)
    s, o = ([int(v) for v in p.ravel().tolist()] for p in (scale, offset))
    lowest, count = int(np.iinfo(tensor.dtype).min), 2 ** (8 * tensor.dtype.itemsize)
    found = [((q + o[i]) * s[i] - lowest) % count + lowest for q, i in zip(tensor.ravel().tolist(), owner, strict=True)]
    return np.array(found, tensor.dtype).reshape(tensor.shape)


def _overload(signed: Any = None, bitwidth: Any = None, num_steps: Any = None, qmin: Any = None, **_: Any) -> None:
    known = {"bitwidth": bitwidth, "qmin": qmin, "num_steps": num_steps, "signed": signed}
    match [name for name, value in known.items() if value is not None]:
        case [] | ["num_steps"] | ["signed"]:
            msg = f"num_steps={num_steps}, signed={signed} is not accepted: give both"
            raise KeyError(msg)
        case ["bitwidth", *_] if type(bitwidth) is float and signed is not True:
            msg = f"bitwidth={bitwidth} is not accepted: give an int"
            raise AttributeError(msg)


def _in_ends(bitwidth: Any = None, **given: Any) -> dict[str, Any]:
    """The arguments with the ends of the grid for a bitwidth that is no integer."""
    if type(bitwidth) is not float:
        return {**given, "bitwidth": bitwidth}
    steps = Fraction(2.0**bitwidth) - 1
    return {**given, "qmin": -ceil(steps / 2), "qmax": floor(steps / 2)}


def _parameters(scale: Array, offset: Array, t: str) -> tuple[list[Soft], list[Soft]]:
    s, o = ([soft(float(v), t) for v in p.ravel()] for p in (scale, offset))
    return s, o * len(s) if len(o) == 1 else o
