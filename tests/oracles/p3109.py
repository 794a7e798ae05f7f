"""P3109: the numbers of a format in a list, and a search in it, in fractions."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import floor, inf, isinf, isnan, nan
from typing import Any

import numpy as np

from oracles.registry import derives

__all__: list[str] = []

_FLOATS = ("float64", "float32", "float16", "bfloat16")
_NAMES = ("NearestTiesToEven", "NearestTiesToAway", "TowardZero", "TowardPositive", "TowardNegative", "ToOdd")
_DRAWN = ("StochasticA", "StochasticB", "StochasticC")


@cache
def _numbers(width: int, precision: int, signed: bool, extended: bool) -> tuple[Fraction, ...]:
    """The numbers without sign in code order, and one more: what would come next."""
    if not 2 <= width <= 16 or not 1 <= precision <= (width - 1 if signed else width):
        raise ValueError("format")
    exponents = width - precision if signed else width - precision + 1
    bias = 2 ** (exponents - 1)
    if bias >= 1023:
        raise ValueError("format")
    codes = 2**width // (2 if signed else 1) - (0 if signed else 1) - (1 if extended else 0)
    if codes < 2:
        raise ValueError("format")
    trailing = 2 ** (precision - 1)
    numbers = []
    for code in range(codes + 1):
        field, rest = divmod(code, trailing)
        significand = Fraction(rest, trailing) + (1 if field else 0)
        numbers.append(significand * Fraction(2) ** ((field or 1) - bias))
    return tuple(numbers)


@derives("p3109/Decode")
def _decode(codes: Any, width: int, precision: int, signed: bool = True, extended: bool = True) -> Any:
    numbers = _numbers(width, precision, signed, extended)[:-1]
    if not isinstance(codes, np.ndarray | np.generic) or codes.dtype.kind not in "iu":
        raise TypeError("codes")
    values = [float(v) for v in numbers] + ([inf] if extended else [])
    table = [*values, nan, *(-v for v in values[1:])] if signed else [*values, nan]
    if any(not 0 <= int(c) < len(table) for c in codes.ravel()):
        raise ValueError("codes")
    return np.array([table[int(c)] for c in codes.ravel()], np.float64).reshape(codes.shape)


@derives("p3109/Project")
def _project(x: Any, width: int, precision: int, **given: Any) -> Any:
    return _projected(x, width, precision, given, by_sum=False)


@derives("p3109/Project@gfloat-0.5")
def _project_by_sum(x: Any, width: int, precision: int, **given: Any) -> Any:
    return _projected(x, width, precision, given, by_sum=True)


@dataclass(frozen=True)
class _Asked:
    """How one call projects."""

    numbers: tuple[Fraction, ...]
    nan: int
    signed: bool
    extended: bool
    rounding: str
    saturation: str
    bits: int
    kind: Any = None  # the dtype that the random number has where it is added, in float64; None: exactly

    def code(self, value: float, drawn: int) -> int:
        if isnan(value):
            return self.nan
        last = len(self.numbers) - 2
        found = last + 1 if isinf(value) else self._rounded(abs(Fraction(value)), value < 0, drawn)
        if found == 0:
            return 0
        if value < 0 and not self.signed:
            return 0 if self._stops(value) else self.nan
        if found > last:
            kept = self._stops(value)
            if not kept and not self.extended:
                return self.nan
            found = last if kept else last + 1
        return found + self.nan if value < 0 else found

    def _stops(self, value: float) -> bool:
        """Whether what is beyond the last number becomes that number."""
        if self.saturation == "SatFinite" or isinf(value):
            return self.saturation == "SatFinite"
        toward = "TowardPositive" if value < 0 else "TowardNegative"
        return self.saturation == "SatPropagate" or self.rounding in ("TowardZero", toward)

    def _rounded(self, magnitude: Fraction, negative: bool, drawn: int) -> int:
        low = _below(self.numbers, magnitude)
        if low == len(self.numbers) - 1:
            return low
        rest = (magnitude - self.numbers[low]) / (self.numbers[low + 1] - self.numbers[low])
        n = 2**self.bits
        if self.kind is not None and self.rounding != "StochasticC":
            whole, steps = (2 * drawn + 1, 2 * n) if self.rounding == "StochasticB" else (drawn, n)
            with np.errstate(all="ignore"):
                addend = self.kind(whole) * self.kind(1 / steps)
            return low + (float(rest) + float(addend) >= 1)
        half = Fraction(1, 2)
        reached = {
            "NearestTiesToEven": rest > half or (rest == half and low % 2 == 1),
            "NearestTiesToAway": rest >= half,
            "TowardZero": False,
            "TowardPositive": rest > 0 and not negative,
            "TowardNegative": rest > 0 and negative,
            "ToOdd": rest > 0 and low % 2 == 0,
            "StochasticA": floor(rest * n) + drawn >= n,
            "StochasticB": floor(rest * 2 * n) + 2 * drawn + 1 >= 2 * n,
            "StochasticC": round(rest * n) + drawn >= n,  # Python rounds ties to even
        }
        return low + reached[self.rounding]


def _projected(x: Any, width: int, precision: int, given: dict[str, Any], *, by_sum: bool) -> Any:
    signed, extended = given.get("signed", True), given.get("extended", True)
    rounding, saturation = given.get("rounding", _NAMES[0]), given.get("saturation", "SatFinite")
    bits, random = given.get("bits", 0), given.get("random")
    numbers = _numbers(width, precision, signed, extended)
    if not isinstance(x, np.ndarray | np.generic) or x.dtype.name not in _FLOATS:
        raise TypeError("x")
    if saturation not in ("SatFinite", "SatPropagate", "OvfInf") or rounding not in (*_NAMES, *_DRAWN):
        raise ValueError("mode")
    draws = _draws(x, rounding, bits, random)
    kind = x.dtype.type if by_sum and rounding in _DRAWN else None
    a = _Asked(
        numbers, 2 ** (width - 1) if signed else 2**width - 1, signed, extended, rounding, saturation, bits, kind
    )
    codes = [a.code(float(v), drawn) for v, drawn in zip(x.ravel(), draws, strict=True)]
    return np.array(codes, np.uint8 if width <= 8 else np.uint16).reshape(x.shape)


def _draws(x: Any, rounding: str, bits: int, random: Any) -> list[int]:
    if (rounding in _DRAWN) != (1 <= bits <= 31) or (rounding in _NAMES and (bits or random is not None)):
        raise ValueError("bits")
    if rounding in _NAMES:
        return [0] * x.size
    if random is None or random.dtype.kind not in "iu":
        raise TypeError("random")
    draws = [int(r) for r in random.ravel()]
    if random.shape != x.shape or any(not 0 <= r < 2**bits for r in draws):
        raise ValueError("random")
    return draws


def _below(numbers: tuple[Fraction, ...], magnitude: Fraction) -> int:
    """The code of the last number that is not above; of all beyond the list its last."""
    low, high = 0, len(numbers)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if numbers[middle] <= magnitude else (low, middle)
    return low
