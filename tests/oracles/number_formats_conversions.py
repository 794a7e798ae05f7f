"""Casts between small floats, and to and from small integers, a code at a time."""

from fractions import Fraction
from math import isfinite, isnan, nan
from typing import Any

import numpy as np

from oracles.exact import round_integer
from oracles.number_formats import Rule, by_ml_dtypes, by_torch, documented, four_of, number_of, packed
from oracles.registry import derives
from oracles.soft import DTYPES, Array

__all__: list[str] = []

_BITS = {"int1": 1, "int2": 2, "int4": 4, "uint1": 1, "uint2": 2, "uint4": 4}
_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


@derives("number-formats/convert")
def _convert(codes: Any, source: Any, target: Any, overflow: str) -> Array:
    return _converted(documented, codes, source, target, overflow)


@derives("number-formats/convert@ml_dtypes-0.6")
def _convert_ml_dtypes(codes: Any, source: Any, target: Any, overflow: str) -> Array:
    return _converted(by_ml_dtypes, codes, source, target, overflow)


@derives("number-formats/convert@torch-2.13")
def _convert_torch(codes: Any, source: Any, target: Any, overflow: str) -> Array:
    return _converted(by_torch, codes, source, target, overflow, fnuz_nan=nan)


def _converted(rule: Rule, codes: Any, source: Any, target: Any, overflow: str, fnuz_nan: float = -nan) -> Array:
    of, to = four_of(source), four_of(target)
    if codes.dtype.kind not in "iu":
        raise TypeError
    whole = codes.ravel().tolist()
    if not all(0 <= c < 2 ** (of[0] + of[1] + (of[3] != "e8m0")) for c in whole):
        raise ValueError
    numbers = [fnuz_nan if of[3] == "fnuz" and isnan(v) else v for v in (number_of(c, of) for c in whole)]
    found = rule(numbers, target, to, overflow)
    return packed(whole if of == to else found, codes.shape, to)


@derives("number-formats/to_integer")
def _to_integer(x: Any, dtype: str) -> Array:
    if dtype not in _BITS:
        raise ValueError
    if x.dtype not in DTYPES.values() and x.dtype.name not in _WHOLE:
        raise TypeError
    whole = [_int32(float(v)) if x.dtype in DTYPES.values() else int(v) for v in x.ravel()]
    kind = np.uint8 if dtype[0] == "u" else np.int8
    return np.array([_held(v, dtype) for v in whole], kind).reshape(x.shape)


@derives("number-formats/from_integer")
def _from_integer(codes: Any, dtype: str, to: str = "float32") -> Array:
    if dtype not in _BITS or to not in (*DTYPES, *_WHOLE):
        raise ValueError
    if codes.dtype != np.uint8:
        raise TypeError
    numbers = [_held(int(c), dtype) % 2**64 if to[0] == "u" else _held(int(c), dtype) for c in codes.ravel()]
    kind = DTYPES.get(to, np.dtype(to) if to in _WHOLE else None)
    return np.array(numbers, np.uint64 if to[0] == "u" else np.int64).astype(kind).reshape(codes.shape)


def _int32(v: float) -> int:
    """The integer part, where an int32 holds it."""
    if isnan(v) or not isfinite(v):
        return -(2**31)
    whole = round_integer(Fraction(v), "toward-zero")
    return whole if -(2**31) <= whole < 2**31 else -(2**31)


def _held(v: int, dtype: str) -> int:
    modulus = 2 ** _BITS[dtype]
    low = v % modulus
    return low if dtype[0] == "u" or low < modulus // 2 else low - modulus
