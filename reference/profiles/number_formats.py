"""Number formats: what the libraries' casts give where they part from ``reference/minifloat.py``."""

import numpy as np

from halfeven.reference.catalogue import Real, formula
from halfeven.reference.minifloat import Named, Overflow, encode, format_of
from halfeven.reference.profiles.profile import Array

__all__ = ["encode_ml_dtypes", "encode_torch"]


@formula(
    "number-formats.encode@ml_dtypes-0.6",
    equation=r"c = \mathrm{encode}(\mathrm{float32}(x))",
    basis=Real(),
    source="ml_dtypes 0.6.0 and numpy 2.4.6, measured on the CPU",
)
def encode_ml_dtypes(x: Array, format: Named, *, overflow: Overflow) -> Array:  # noqa: A002 - the documents' own word
    """A float64 is rounded to float32 first, NaN to a finite format is a zero of the other sign, e8m0 ties go up.

    What ``astype`` gives. float16 is cast by NumPy itself, once. To e8m0 all above 2^-127 goes up.
    Arguments and errors as in ``encode``, but for NaN.
    """
    f = format_of(format)
    if f.name == "float16":
        return encode(x, f, overflow=overflow)
    wide = _by_float32(x)
    if f.name == "float8_e8m0fnu":
        wide = _upwards(wide)
    if f.specials == "finite":
        wide = np.where(np.isnan(wide), np.where(np.signbit(wide), 0.0, -0.0), wide)
    return encode(wide, f, overflow=overflow)


@formula(
    "number-formats.encode@torch-2.13",
    equation=r"c = \mathrm{encode}(\mathrm{float32}(x))",
    basis=Real(),
    source="torch 2.13.0, measured on the CPU",
)
def encode_torch(x: Array, format: Named, *, overflow: Overflow) -> Array:  # noqa: A002 - the documents' own word
    """A float64 is rounded to float32 first, NaN has all mantissa bits set, e8m0 ties go up and drop the sign.

    What ``to`` gives. e8m0 drops the sign, takes zero for 2^-127, and rounds as in ``encode_ml_dtypes``.
    Arguments and errors as in ``encode``.
    """
    f = format_of(format)
    wide = _by_float32(x)
    if f.name == "float8_e8m0fnu":
        return encode(_upwards(np.maximum(np.abs(wide), 2.0**-127)), f, overflow=overflow)
    codes = encode(wide, f, overflow=overflow)
    return np.where(np.isnan(wide), codes | (2**f.mantissa_bits - 1), codes) if f.specials == "ieee" else codes


def _by_float32(x: Array) -> Array:
    """``x`` rounded to float32, as float64."""
    if x.dtype.kind in "biu":
        msg = f"x of dtype {x.dtype} is not accepted: give a float dtype"
        raise TypeError(msg)
    with np.errstate(all="ignore"):
        return x.astype(np.float32).astype(np.float64)


def _upwards(x: Array) -> Array:
    """``x``, but what lies on a tie of e8m0, or between its first two numbers, moved to where it rounds up."""
    tie = np.frexp(x)[0] == 0.75  # noqa: PLR2004 - three quarters of a power of two lie midway between two
    up = np.where(tie, np.nextafter(x, np.inf), x)
    return np.where((x > 2.0**-127) & (x < 2.0**-126), 2.0**-126, up)
