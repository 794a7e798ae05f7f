"""Number formats: a number to its code and back, as the documents say and as the casts of libraries do."""

from dataclasses import dataclass

import numpy as np

from halfeven.reference import minifloat
from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import Real, formula
from halfeven.reference.minifloat import FloatFormat, Named, Overflow, format_of

__all__ = ["Decoding", "Encoding", "decode", "encode"]


@dataclass(frozen=True)
class Encoding(Behaviour):
    """The choices in making a code of a number."""

    rounding: str = roundings("to a number of the format")
    float64: str = choice({
        "once": "rounds a float64 once",
        "by-float32": "rounds a float64 to float32 first",
        "by-float32-but-float16": "rounds a float64 to float32 first, except for a float16",
    })  # fmt: skip
    overflow: str = choice({
        "rounded": "overflows where a number would round beyond the largest one",
        "beyond-largest": "overflows above the largest number, however near to it",
    })  # fmt: skip
    subnormals: str = choice({
        "kept": "keeps subnormal numbers of the format",
        "flushed": "takes subnormal numbers of the format for zero",
    })  # fmt: skip
    zeros: str = choice({
        "signed": "keeps the sign of zero",
        "positive": "drops the sign of zero",
    })  # fmt: skip
    nan: str = choice({
        "first-bit": "gives NaN its sign and, in an IEEE format, the first mantissa bit alone",
        "every-bit": "gives NaN its sign and every mantissa bit",
        "positive": "drops the sign of NaN",
    })  # fmt: skip
    nan_without_code: str = choice({
        "refused": "refuses NaN where the format has no code for it",
        "zero": "gives NaN, where the format has no code for it, the zero of the other sign",
    })  # fmt: skip
    e8m0_ties: str = choice({
        "even": "rounds a tie of e8m0 to the even code, and what lies between its first two numbers to the nearer one",
        "up": "rounds a tie of e8m0, and all between its first two numbers, up",
    })  # fmt: skip
    e8m0_outside: str = choice({
        "nan": "gives zero and negative numbers the NaN of e8m0",
        "magnitude": "drops the sign for e8m0, and takes zero for its least number",
    })  # fmt: skip


@dataclass(frozen=True)
class Decoding(Behaviour):
    """The choices in making a number of a code."""

    subnormals: str = choice({
        "kept": "keeps subnormal numbers of the format",
        "flushed": "takes subnormal numbers of the format for zero",
    })  # fmt: skip
    last_exponent: str = choice({
        "format": "reads the last exponent as the format says",
        "ieee": "reads the last exponent of e4m3fn and its like as infinity and NaN",
    })  # fmt: skip


_E8M0 = "float8_e8m0fnu"  # no library casts to another format of its kind
_ML_DTYPES = Encoding(float64="by-float32-but-float16", nan_without_code="zero", e8m0_ties="up")
_TORCH = Encoding(float64="by-float32", nan="every-bit", e8m0_ties="up", e8m0_outside="magnitude")


@formula(
    "number-formats/encode",
    equation=r"c = \mathrm{sign}(x)\ |\ \arg\min_{k}\ \bigl| |x| - v_k \bigr|,\quad \text{ties to even } k",
    basis=Real(),
    source="OCP OFP8 1.0: conversion; OCP MX 1.0: element and scale data types; IEEE 754-2019: 4.3.1, 7.4",
    behaviour=Encoding(),
    versions={
        "ml_dtypes-0.6": (_ML_DTYPES, "ml_dtypes 0.6.0 and numpy 2.4.6: astype, measured on the CPU"),
        "torch-2.13": (_TORCH, "torch 2.13.0: Tensor.to, measured on the CPU"),
    },
)
def encode(
    b: Encoding,
    x: Array,
    format: Named,  # noqa: A002 - the documents' own word
    *,
    overflow: Overflow,
) -> Array:
    """Codes of ``x``: the nearest number of ``format``, one rounding, ties to the even code.

    Arguments, result and errors as in ``halfeven.reference.minifloat.encode``.
    """
    f = format_of(format)
    x = _taken(b, x, f)
    codes = minifloat.encode(x, f, overflow=overflow, rounding=b.rounding)
    return codes if f.specials == "e8m0" else _special(b, codes, x, f)


@formula(
    "number-formats/decode",
    equation=(
        r"x = (-1)^S \cdot 2^{E - b} \cdot (1 + 2^{-m} M)\ \text{ if } E > 0,"
        r"\quad (-1)^S \cdot 2^{1 - b} \cdot 2^{-m} M\ \text{ if } E = 0"
    ),
    basis=Real(),
    source="OCP OFP8 1.0: value encodings; OCP MX 1.0: element and scale data types; ml_dtypes: README, specifications",
    behaviour=Decoding(),
)
def decode(
    b: Decoding,
    codes: Array,
    format: Named,  # noqa: A002 - the documents' own word
    dtype: str = "float32",
) -> Array:
    """Numbers of ``codes``, exact.

    Arguments, result and errors as in ``halfeven.reference.minifloat.decode``.
    """
    f = format_of(format)
    numbers = minifloat.decode(codes, f, dtype)
    magnitude = np.abs(numbers)
    if b.subnormals == "flushed":
        numbers = np.where(magnitude < f.smallest_normal, np.copysign(0, numbers), numbers)
    if b.last_exponent == "ieee" and f.specials == "fn":
        last = np.ldexp(1.0, 2**f.exponent_bits - 1 - f.bias)
        beyond = np.where(magnitude == last, np.copysign(np.inf, numbers), np.nan).astype(numbers.dtype)
        numbers = np.where(magnitude >= last, beyond, numbers)
    return numbers


def _taken(b: Encoding, x: Array, f: FloatFormat) -> Array:
    """The numbers of ``x`` that are rounded to the format."""
    if np.asarray(x).dtype.kind in "biu":
        msg = f"x of dtype {x.dtype} is not accepted: give a float dtype"
        raise TypeError(msg)
    with np.errstate(all="ignore"):
        if b.float64 == "by-float32" or (b.float64 == "by-float32-but-float16" and f.name != "float16"):
            x = x.astype(np.float32)
        if f.name == _E8M0 and b.e8m0_outside == "magnitude":
            x = np.maximum(np.abs(x), np.float64(f.smallest))
        if f.name == _E8M0 and b.e8m0_ties == "up":
            x = _upwards(x, f)
        if f.nan_code is None and b.nan_without_code == "zero":
            x = np.where(np.isnan(x), np.where(np.signbit(x), 0.0, -0.0), x)
        if b.overflow == "beyond-largest":
            x = np.where(np.abs(x) > f.max, np.copysign(np.inf, x), x)
    return x


def _special(b: Encoding, codes: Array, x: Array, f: FloatFormat) -> Array:
    """The codes of ``x`` with NaN, subnormals and zeros as ``b`` has them."""
    with np.errstate(invalid="ignore"):
        is_nan = np.isnan(x)
    sign = codes & (1 << (f.bits - 1))
    if b.nan == "every-bit" and f.specials == "ieee":
        codes = np.where(is_nan, codes | (2**f.mantissa_bits - 1), codes)
    if f.specials == "fnuz":  # neither NaN nor zero has a sign
        sign = np.zeros_like(sign)
    if b.nan == "positive":
        codes = np.where(is_nan, codes ^ sign, codes)
    if b.subnormals == "flushed":
        magnitude = codes & ((1 << (f.bits - 1)) - 1)
        codes = np.where((magnitude > 0) & (magnitude < 2**f.mantissa_bits), sign, codes)
    if b.zeros == "positive":
        codes = np.where(codes == sign, 0, codes)
    return codes


def _upwards(x: Array, f: FloatFormat) -> Array:
    """``x``, but what lies on a tie of e8m0, or between its first two numbers, moved to where it rounds up."""
    tie = np.frexp(x)[0] == 0.75  # noqa: PLR2004 - three quarters of a power of two lie midway between two
    up = np.where(tie, np.nextafter(x, np.asarray(np.inf, x.dtype)), x)
    return np.where((x > f.smallest) & (x < 2 * f.smallest), 2 * f.smallest, up)
