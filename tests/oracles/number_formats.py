"""Codes of small floats by search in the list of all numbers of the format."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from math import copysign, inf, isinf, isnan, nan
from typing import Any

import numpy as np

from oracles.codes import nearest, values
from oracles.exact import FORMATS, round_to, round_value
from oracles.registry import derives
from oracles.soft import DTYPES, Array, array

__all__ = ["Rule", "by_ml_dtypes", "by_torch", "documented", "four_of", "number_of", "packed"]

Four = tuple[int, int, int, str]
Rule = Callable[[list[float], Any, Four, str], list[int]]

_NAMES: dict[str, Four] = {
    "float8_e4m3fn": (4, 3, 7, "fn"),
    "float8_e4m3": (4, 3, 7, "ieee"),
    "float8_e4m3b11fnuz": (4, 3, 11, "fnuz"),
    "float8_e4m3fnuz": (4, 3, 8, "fnuz"),
    "float8_e3m4": (3, 4, 3, "ieee"),
    "float8_e5m2": (5, 2, 15, "ieee"),
    "float8_e5m2fnuz": (5, 2, 16, "fnuz"),
    "float8_e8m0fnu": (8, 0, 127, "e8m0"),
    "float6_e3m2fn": (3, 2, 3, "finite"),
    "float6_e2m3fn": (2, 3, 1, "finite"),
    "float4_e2m1fn": (2, 1, 1, "finite"),
    "bfloat16": (8, 7, 127, "ieee"),
    "float16": (5, 10, 15, "ieee"),
}


@cache
def _finite(four: Four) -> tuple[Fraction, ...]:
    """The numbers without sign, in code order, and one more: what would come next."""
    e, m, bias, specials = four
    if specials == "e8m0":
        return tuple(Fraction(2) ** (field - bias) for field in range(2**e))
    binades = 2**e - 1 if specials == "ieee" else 2**e
    return tuple(values(e, m, bias, binades * 2**m - (specials == "fn") + 1))


def _nan_magnitude(four: Four) -> int:
    count = len(_finite(four)) - 1
    return count + 2 ** (four[1] - 1) if four[3] == "ieee" else count


def _bits(four: Four) -> int:
    return four[0] + four[1] + (four[3] != "e8m0")


@derives("number-formats/encode")
def _encode(x: Any, format: Any, overflow: str) -> Array:  # noqa: A002 - the formula's own word
    return _encoded(documented, x, format, overflow)


@derives("number-formats/encode@ml_dtypes-0.6")
def _encode_ml_dtypes(x: Any, format: Any, overflow: str) -> Array:  # noqa: A002 - the formula's own word
    return _encoded(by_ml_dtypes, x, format, overflow)


@derives("number-formats/encode@torch-2.13")
def _encode_torch(x: Any, format: Any, overflow: str) -> Array:  # noqa: A002 - the formula's own word
    return _encoded(by_torch, x, format, overflow)


def _encoded(rule: Rule, x: Any, format: Any, overflow: str) -> Array:  # noqa: A002 - the formula's own word
    four = four_of(format)
    if x.dtype not in DTYPES.values():
        raise TypeError
    return packed(rule([float(v) for v in x.ravel()], format, four, overflow), x.shape, four)


def documented(reals: list[float], format: Any, four: Four, overflow: str) -> list[int]:  # noqa: A002 - as above
    """The codes of numbers, as the documents say."""
    del format
    _refused(reals, four, overflow)
    return [_code(v, four, overflow) for v in reals]


def by_ml_dtypes(reals: list[float], format: Any, four: Four, overflow: str) -> list[int]:  # noqa: A002 - as above
    """The codes of numbers, as ml_dtypes makes them."""
    _refused([], four, overflow)
    found = []
    for given in reals:
        v = given if format == "float16" else round_value(given, FORMATS["float32"])
        if four[3] == "finite" and isnan(v):
            found.append(0 if copysign(1, v) < 0 else 2 ** (_bits(four) - 1))
        elif format == "float8_e8m0fnu":
            found.append(_power(v, overflow))
        else:
            found.append(_code(v, four, overflow))
    return found


def by_torch(reals: list[float], format: Any, four: Four, overflow: str) -> list[int]:  # noqa: A002 - as above
    """The codes of numbers, as torch makes them."""
    _refused(reals, four, overflow)
    found = []
    for given in reals:
        v = round_value(given, FORMATS["float32"])
        if format == "float8_e8m0fnu":
            found.append(0 if v == 0 else _power(abs(v), overflow))
        elif four[3] == "ieee" and isnan(v):
            found.append(2 ** (_bits(four) - 1) * (2 if copysign(1, v) < 0 else 1) - 1)
        else:
            found.append(_code(v, four, overflow))
    return found


@derives("number-formats/decode")
def _decode(codes: Any, format: Any, dtype: str = "float32") -> Array:  # noqa: A002 - the formula's own word
    four = four_of(format)
    if codes.dtype.kind not in "iu":
        raise TypeError
    whole = [int(c) for c in np.asarray(codes).ravel()]
    if dtype not in DTYPES or not _holds(dtype, four) or not all(0 <= c < 2 ** _bits(four) for c in whole):
        raise ValueError
    return array([number_of(c, four) for c in whole], codes.shape, DTYPES[dtype])


def _refused(reals: list[float], four: Four, overflow: str) -> None:
    finite = four[3] == "finite"
    if overflow not in {"saturate"} | ({"special"} if not finite else set()):
        raise ValueError
    if finite and any(isnan(v) for v in reals):
        raise ValueError


def _code(x: float, four: Four, overflow: str) -> int:
    numbers, sign = _finite(four), 2 ** (_bits(four) - 1)
    count, negative = len(numbers) - 1, copysign(1, x) < 0
    if isnan(x):
        magnitude = _nan_magnitude(four)
    elif four[3] == "e8m0" and x <= 0:
        return count
    else:
        magnitude = count if isinf(x) else _nearest(abs(x), four)
        if magnitude == count and overflow == "saturate":
            magnitude -= 1
    match four[3]:
        case "e8m0":
            return magnitude
        case "fnuz":
            return sign if magnitude == count else magnitude + sign if negative and magnitude else magnitude
        case _:
            return magnitude + sign if negative else magnitude


@cache
def _nearest(magnitude: float, four: Four) -> int:
    return nearest(Fraction(magnitude), _finite(four))


def _power(x: float, overflow: str) -> int:
    """The e8m0 code as the libraries have it: 2^k begins at 3/4 of it, but the second power right above the first."""
    if isnan(x) or x <= 0:
        return 255
    code = 0 if x <= 2.0**-127 else 1 + bisect_right(_starts(), inf if isinf(x) else Fraction(x))
    return 254 if code == 255 and overflow == "saturate" else code


@cache
def _starts() -> tuple[Fraction, ...]:
    return tuple(Fraction(3, 4) * Fraction(2) ** (code - 127) for code in range(2, 256))


def number_of(code: int, four: Four) -> float:
    """The number of one code."""
    numbers, sign = _finite(four)[:-1], 2 ** (_bits(four) - 1)
    if four[3] == "e8m0":
        return float(numbers[code]) if code < len(numbers) else nan
    if four[3] == "fnuz" and code == sign:
        return -nan
    magnitude = code % sign
    if magnitude < len(numbers):
        number = float(numbers[magnitude])
    else:
        number = inf if four[3] == "ieee" and magnitude == len(numbers) else nan
    return -number if code >= sign else number


@cache
def _holds(dtype: str, four: Four) -> bool:
    """Whether the numbers at both ends of the format, full mantissas among them, are numbers of ``dtype``."""
    numbers = _finite(four)[:-1]
    return all(round_to(v, FORMATS[dtype]) == v for v in (*numbers[:4], *numbers[-4:]))


def packed(codes: Sequence[int], shape: tuple[int, ...], four: Four) -> Array:
    """The codes as an array: uint8, or uint16 for more than 8 bits."""
    return np.array(codes, np.uint16 if _bits(four) > 8 else np.uint8).reshape(shape)


def four_of(format: Any) -> Four:  # noqa: A002 - the formula's own word
    """The widths, bias and specials of a format; its errors where it is none."""
    if isinstance(format, str):
        if format not in _NAMES:
            raise ValueError
        return _NAMES[format]
    if not isinstance(format, tuple) or len(format) != 4 or any(type(v) is not int for v in format[:3]):
        raise TypeError
    e, m, _, specials = format
    accepted = {"ieee": m >= 1, "fn": e + m >= 2, "fnuz": True, "finite": True, "e8m0": m == 0}.get(specials, False)
    if e < 1 or m < 0 or not accepted or _bits(format) > 16:
        raise ValueError
    numbers = _finite(format)[:-1]
    if any(v >= Fraction(2) ** 1024 or (v * Fraction(2) ** 1074).denominator > 1 for v in (*numbers[:3], numbers[-1])):
        raise ValueError
    return format
