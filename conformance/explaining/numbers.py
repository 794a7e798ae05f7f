"""Numbers as a person types and reads them: decimals, fractions, bit patterns, and how far apart."""

import math
import re
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import signed_bits
from halfeven.conformance.configuration import DTYPES
from halfeven.reference.blocks import Array
from halfeven.reference.rounding import cast_once

__all__ = ["bits", "decimal", "exactly", "integer", "near", "overflowed", "real", "whole"]

_POWER, _DIGITS = re.compile(r"e[+-]?(\d+)$"), 4
_ENOUGH = 9  # digits of a fraction, or more where these would show another number
_MOST = 40
_SMALL = 0.1
_HUGE = 1e15  # above it digits say less than a power of ten


def real(name: str, given: Any, dtype: str) -> Array:
    """A number of a dtype, rounded once, as an array of no dimension.

    Args:
        name: what the number is, for errors.
        given: a number; or as text a decimal, a fraction such as ``1/3``, ``nan``, ``inf``, or the bit pattern in hex.
        dtype: one of ``DTYPES``.

    Raises:
        ValueError: it is none of these, or more bits than the dtype has.

    >>> real("x", "0x3e800000", "float32").item(), real("x", "1/3", "float16").item()
    (0.25, 0.333251953125)
    """
    t = DTYPES[dtype]
    if isinstance(given, str) and given.lower().startswith("0x"):
        return _of_bits(name, given, t)
    if isinstance(given, str):
        exact = _parsed(name, given)
    elif isinstance(given, np.ndarray | np.generic) and given.dtype == t:
        return np.asarray(given).reshape(())
    else:
        exact = float(given) if not isinstance(given, int | Fraction) else Fraction(given)
    if isinstance(exact, float):
        return cast_once(np.asarray(exact), t)
    return cast_once(_odd(exact), t) if t != np.float64 else np.asarray(_nearest(exact))


def integer(name: str, given: Any) -> int:
    """A whole number, from text in decimal or hex too.

    Raises:
        ValueError: it is none.
    """
    try:
        found = int(given, 0) if isinstance(given, str) else int(given)
        if isinstance(given, str) or found == given:
            return found
    except (ValueError, TypeError, OverflowError):
        pass
    msg = f"{name}={given!r} is not accepted: give a whole number"
    raise ValueError(msg)


def overflowed(name: str, given: Any, held: Array) -> str | None:
    """What a number became that its dtype does not reach, in words; None where it is held, if rounded.

    >>> overflowed("x", "1e400", real("x", "1e400", "float32"))
    'x=1e400 is inf in float32, which ends at 3.40282347e+38'
    >>> overflowed("s", "1e-9", real("s", "1e-9", "float16"))
    's=1e-9 is 0 in float16, which begins at 5.96046448e-08'
    """
    wide = float(np.asarray(held).reshape(()))
    if not (math.isinf(wide) or wide == 0) or "0x" in str(given).lower():
        return None
    exact = _parsed(name, given) if isinstance(given, str) else Fraction(given) if isinstance(given, int) else given
    if exact == wide or (wide and not isinstance(exact, Fraction) and not np.isfinite(exact)):
        return None
    info = ml_dtypes.finfo(held.dtype)  # type: ignore[no-untyped-call]
    end = f"ends at {float(info.max):.9g}" if wide else f"begins at {float(info.smallest_subnormal):.9g}"
    return f"{name}={given} is {wide:g} in {held.dtype.name}, which {end}"


def bits(a: Array) -> str:
    """The bit pattern of one number.

    >>> bits(np.float16(1))
    '0x3c00'
    """
    a = np.asarray(a)
    width = a.dtype.itemsize
    unsigned = int(signed_bits(a.reshape(1))[0]) % (1 << (8 * width))
    return f"0x{unsigned:0{2 * width}x}"


def decimal(a: Any) -> str:
    """The shortest decimal that gives the number back in its dtype; whole ones without a point.

    >>> decimal(np.float32(0.1)), decimal(np.float64(3.0)), decimal(np.float32("nan")), decimal(np.float32(-0.0))
    ('0.1', '3', 'NaN', '-0')
    """
    a = np.asarray(a).reshape(())
    if a.dtype.kind in "iub":
        return str(int(a))
    wide = float(a)
    if math.isnan(wide):
        return "NaN"
    if math.isinf(wide):
        return str(wide)
    return _plain(Decimal(str(a[()])))


def whole(a: Any) -> str:
    """A code that is held as a float, as the whole number that it is.

    >>> whole(np.float32(2**31)), whole(np.float32("nan"))
    ('2147483648', 'NaN')
    """
    wide = float(np.asarray(a).reshape(()))
    return str(int(wide)) if abs(wide) < _HUGE and wide.is_integer() else decimal(a)


def exactly(value: Fraction, *apart_from: Fraction) -> str:
    """A fraction in decimal, with as many digits as tell it from the numbers ``apart_from``.

    >>> exactly(Fraction(33554432, 13421773), Fraction(5, 2)), exactly(Fraction(1, 4))
    ('2.49999996', '0.25')
    """
    for digits in range(_ENOUGH, _MOST):
        context = Context(prec=digits)
        shown = context.divide(Decimal(value.numerator), Decimal(value.denominator))
        if Fraction(shown) == value or Fraction(shown) not in apart_from:
            return _plain(shown)
    return f"{value.numerator}/{value.denominator}"


def near(distance: Fraction) -> str:
    """A distance: two digits, or three where it is not small.

    >>> near(Fraction(-1, 26843546))
    '3.7e-08'
    """
    size = abs(float(distance))
    return f"{size:.3g}" if size > _SMALL else f"{size:.2g}"


def _of_bits(name: str, given: str, t: np.dtype[Any]) -> Array:
    try:
        pattern = int(given, 16)
    except ValueError:
        msg = f"{name}={given!r} is not accepted: give a bit pattern such as 0x3e800000"
        raise ValueError(msg) from None
    if pattern >= 1 << (8 * t.itemsize):
        msg = f"{name}={given!r} is not accepted: {t.name} has {8 * t.itemsize} bits"
        raise ValueError(msg)
    return np.asarray(pattern, f"u{t.itemsize}").view(t)


def _parsed(name: str, given: str) -> Fraction | float:
    text = given.strip().lower().replace("infinity", "inf")
    if text.lstrip("+-") in {"nan", "inf"}:
        return float(text)
    if (power := _POWER.search(text)) and len(power[1].lstrip("0")) > _DIGITS:  # a fraction of it would fill the memory
        msg = f"{name}={given!r} is not accepted: give an exponent of at most {_DIGITS} digits"
        raise ValueError(msg)
    try:
        exact = Fraction(text)
    except (ValueError, ZeroDivisionError):
        msg = f"{name}={given!r} is not accepted: give a number, a bit pattern such as 0x3e800000, nan or inf"
        raise ValueError(msg) from None
    return -0.0 if not exact and text.startswith("-") else exact


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _odd(exact: Fraction) -> Array:
    """The float64 neighbour of a fraction that has the last bit set where it is no float64, so that it rounds once."""
    wide = _nearest(exact)
    if math.isinf(wide) or Fraction(wide) == exact or np.float64(wide).view(np.int64) & 1:
        return np.asarray(wide)
    return np.asarray(math.nextafter(wide, math.inf if Fraction(wide) < exact else -math.inf))


def _plain(shown: Decimal) -> str:
    small = Decimal("1e-5")
    text = f"{shown:f}" if not shown or small <= abs(shown) < Decimal("1e15") else f"{shown:e}"
    mantissa, e, exponent = text.partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + e + exponent
