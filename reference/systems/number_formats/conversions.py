"""Number formats: codes of one small float made codes of another, and small integers made of numbers and back."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference import minifloat
from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import Real, formula
from halfeven.reference.grid import Grid
from halfeven.reference.minifloat import FLOAT_DTYPES, Named, Overflow, format_of
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.number_formats.casts import Encoding, encode

__all__ = ["SMALL_INTEGERS", "Converting", "Cutting", "Widening", "convert", "from_integer", "to_integer"]

SMALL_INTEGERS = ("int1", "int2", "int4", "uint1", "uint2", "uint4")
_INTEGERS = {name: np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")}
_ENCODING = Encoding.choices()


@dataclass(frozen=True)
class Converting(Behaviour):
    """The choices in making a code of one format of a code of another."""

    rounding: str = roundings("to a number of the format")
    overflow: str = choice(_ENCODING["overflow"])
    subnormals: str = choice(_ENCODING["subnormals"])
    zeros: str = choice(_ENCODING["zeros"])
    nan: str = choice(_ENCODING["nan"])
    nan_without_code: str = choice(_ENCODING["nan_without_code"])
    e8m0_ties: str = choice(_ENCODING["e8m0_ties"])
    e8m0_outside: str = choice(_ENCODING["e8m0_outside"])
    fnuz_nan: str = choice({
        "negative": "takes the NaN of an fnuz format, whose code is that of the sign, for a negative one",
        "positive": "takes the NaN of an fnuz format for a positive one",
    })  # fmt: skip
    same_format: str = choice({
        "kept": "keeps every code in a cast to its own format",
        "recoded": "makes one NaN of all in a cast to the same format",
    })  # fmt: skip


@dataclass(frozen=True)
class Cutting(Behaviour):
    """The choices in making a small integer of a number."""

    rounding: str = choice({
        "toward-zero": "drops the fraction",
        "half-even": "rounds to the nearest integer, ties to even",
        "floor": "rounds down",
    })  # fmt: skip
    outside: str = choice({
        "low-bits": "keeps the low bits of an integer that the dtype does not hold",
        "saturated": "gives the nearest end of the dtype for an integer that it does not hold",
    })  # fmt: skip


@dataclass(frozen=True)
class Widening(Behaviour):
    """The choices in making a number of a byte that holds a small integer."""

    upper_bits: str = choice({
        "ignored": "ignores the bits of a byte above those of the integer",
        "read": "reads the bits of a byte above those of the integer too",
    })  # fmt: skip


_ML_DTYPES = Converting(nan_without_code="zero", e8m0_ties="up")
_TORCH = Converting(nan="every-bit", e8m0_ties="up", e8m0_outside="magnitude", fnuz_nan="positive")


@formula(
    "number-formats/convert",
    equation=r"c' = \mathrm{encode}_{target}(\mathrm{decode}_{source}(c))",
    basis=Real(),
    source="IEEE 754-2019: 5.4.2, convertFormat; OCP OFP8 1.0 and MX 1.0: conversion",
    behaviour=Converting(),
    versions={
        "ml_dtypes-0.6": (_ML_DTYPES, "ml_dtypes 0.6.0: astype, measured on the CPU"),
        "torch-2.13": (_TORCH, "torch 2.13.0: Tensor.to, measured on the CPU"),
    },
)
def convert(b: Converting, codes: Array, source: Named, target: Named, *, overflow: Overflow) -> Array:
    """Codes of ``target`` for the numbers that ``codes`` are in ``source``: one rounding, ties to the even code.

    Args:
        codes: any shape; any integer dtype, the bits above the format's are zero.
        source, target: a ``FloatFormat``, a name of ``FLOAT_FORMATS``, or (exponent_bits, mantissa_bits, bias,
            specials).
        overflow: as in ``halfeven.reference.minifloat.encode``.

    Returns:
        The codes in the shape of ``codes``: uint8, or uint16 for more than 8 bits.

    Raises:
        TypeError: ``codes`` is not an integer array, or a format is of no accepted type.
        ValueError: no such format or policy, a code outside [0, 2^bits), or NaN where the target has none.
    """
    f, point = format_of(source), {name: getattr(b, name) for name in b.choices() if name in _ENCODING}
    numbers = minifloat.decode(codes, f, "float64")
    if f.specials == "fnuz" and b.fnuz_nan == "positive":
        numbers = np.where(np.isnan(numbers), np.nan, numbers)
    found = encode(Encoding(**point), numbers, target, overflow=overflow)
    return codes.astype(found.dtype) if b.same_format == "kept" and f == format_of(target) else found


@formula(
    "number-formats/to_integer",
    equation=r"q = \mathrm{sign}(x) \lfloor |x| \rfloor \bmod 2^{bits}",
    basis=Real(),
    source="ml_dtypes: README, int2, int4, uint2 and uint4; numpy: ndarray.astype",
    behaviour=Cutting(),
)
def to_integer(b: Cutting, x: Array, dtype: str) -> Array:
    """Integers of ``bits`` bits: ``x`` without its fraction and, where the dtype does not hold that, its low bits.

    Args:
        x: any shape; float64, float32, float16, bfloat16, or an integer dtype but uint64. A float that no int32 holds,
            NaN too, stands for -2^31, as x86 converts it.
        dtype: one of ``SMALL_INTEGERS``.

    Returns:
        The integers in the shape of ``x``: int8 of a signed dtype, else uint8.

    Raises:
        TypeError: ``x`` is of another dtype.
        ValueError: no such ``dtype``.
    """
    grid = _grid(dtype)
    if x.dtype not in (*FLOAT_DTYPES.values(), *_INTEGERS.values()):
        msg = f"x of dtype {x.dtype} is not accepted: give floats or integers"
        raise TypeError(msg)
    whole = np.asarray(x)
    if whole.dtype in FLOAT_DTYPES.values():
        with np.errstate(invalid="ignore"):
            real = ROUNDINGS[b.rounding](whole.astype(np.float64))
            whole = np.where((real >= -(2.0**31)) & (real < 2.0**31), real, -(2.0**31))
    whole = whole.astype(np.int64)
    held = np.clip(whole, grid.qmin, grid.qmax) if b.outside == "saturated" else _low_bits(whole, grid)
    integers: Array = held.astype(_byte(dtype))
    return integers


@formula(
    "number-formats/from_integer",
    equation=r"x = c \bmod 2^{bits}\ \text{ in two's complement, or unsigned}",
    basis=Real(),
    source="ml_dtypes: README, int2, int4, uint2 and uint4",
    behaviour=Widening(),
)
def from_integer(b: Widening, codes: Array, dtype: str, to: str = "float32") -> Array:
    """Numbers of the integers that bytes hold in their low bits, exact.

    Args:
        codes: any shape; uint8, one integer each.
        dtype: one of ``SMALL_INTEGERS``.
        to: the dtype of the numbers, a float dtype or an integer one.

    Returns:
        The numbers in the shape of ``codes``, as ``to``.

    Raises:
        TypeError: ``codes`` is not uint8.
        ValueError: no such ``dtype``, or no such dtype ``to``.
    """
    grid = _grid(dtype)
    if codes.dtype != np.uint8:
        msg = f"codes of dtype {codes.dtype} are not accepted: give uint8"
        raise TypeError(msg)
    if to not in (accepted := FLOAT_DTYPES | _INTEGERS):
        msg = f"to={to!r} is not accepted: give one of {', '.join(accepted)}"
        raise ValueError(msg)
    byte = np.asarray(codes)
    whole = byte.view(_byte(dtype)) if b.upper_bits == "read" else _low_bits(byte.astype(np.int64), grid)
    numbers: Array = whole.astype(accepted[to])
    return numbers


def _grid(dtype: str) -> Grid:
    if dtype not in SMALL_INTEGERS:
        msg = f"dtype={dtype!r} is not accepted: give one of {', '.join(SMALL_INTEGERS)}"
        raise ValueError(msg)
    return Grid.from_dtype(getattr(ml_dtypes, dtype))


def _low_bits(whole: Array, grid: Grid) -> Array:
    """The integers of the grid that have the low bits of int64 ones."""
    low = whole & grid.num_steps
    held: Array = np.where(low > grid.qmax, low - (grid.num_steps + 1), low)
    return held


def _byte(dtype: str) -> "np.dtype[Any]":
    """The dtype of a byte that holds the integers."""
    return np.dtype(np.uint8 if dtype.startswith("u") else np.int8)
