"""What the documents say of numbers and their codes."""

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.inputs.nans import nans
from halfeven.conformance.requirement import Calls, documented, expected, measured
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FLOAT_FORMATS, Specials, decode, format_of

__all__: list[str] = []

_ENCODE, _DECODE = "number-formats/encode", "number-formats/decode"
_F32, _F64, _F16, _BF16 = (np.dtype(d) for d in ("float32", "float64", "float16", ml_dtypes.bfloat16))
_SOURCES = (_F64, _F32, _F16, _BF16)
_E8M0 = "float8_e8m0fnu"
_SIGNED = tuple(name for name in FLOAT_FORMATS if name != _E8M0)
_SMALL = tuple(name for name in _SIGNED if FLOAT_FORMATS[name].bits <= 8)  # noqa: PLR2004 - one byte
_WITH_NAN = tuple(name for name, f in FLOAT_FORMATS.items() if f.specials != "finite")
_TUPLES: tuple[tuple[int, int, int, Specials], ...] = (
    (4, 3, 9, "ieee"),
    (3, 4, 5, "fn"),
    (4, 3, 13, "fnuz"),
    (1, 2, 0, "finite"),
    (2, 0, 1, "finite"),
    (3, 0, 3, "fn"),
    (1, 1, 0, "ieee"),
    (5, 3, 20, "fn"),
    (6, 0, 31, "fnuz"),
    (4, 0, 3, "e8m0"),
    (2, 2, -30, "finite"),
    (8, 1, 127, "ieee"),
)


def _numbers(format: Any) -> Array:  # noqa: A002 - the formula's own word
    """The finite numbers without sign, ascending, as float64; of a 16-bit format those at the ends of its binades."""
    f = format_of(format)
    codes = np.arange(f.max_code + 1)
    if f.bits > 9:  # noqa: PLR2004 - more codes than a slow derivation should search
        starts = np.arange(0, f.max_code + 1, 2**f.mantissa_bits)
        starts = starts[[*range(3), len(starts) // 2, *range(-2, 0)]]
        codes = (starts[:, None] + [0, 1, 2, 2**f.mantissa_bits - 2, 2**f.mantissa_bits - 1]).ravel()
    return decode(codes, f, "float64")


def _midpoints(format: Any) -> Array:  # noqa: A002 - the formula's own word
    """Midway to the next number, for each of ``_numbers``; after the largest as if the format went on."""
    f, low = format_of(format), _numbers(format)
    exponent = np.maximum(np.frexp(low)[1] - 1, np.frexp(f.smallest_normal)[1] - 1)
    gap = np.ldexp(1.0, np.where(low == 0, np.frexp(f.smallest_normal)[1] - 1, exponent) - f.mantissa_bits)
    halfway: Array = low + gap / 2
    return halfway


def _around(a: Array) -> Array:
    """Each value, and its neighbours on both sides."""
    return np.concatenate([step(a, np.asarray(n)) for n in (-1, 0, 1)])


def _both(a: Array) -> Array:
    return np.concatenate([a, -a])


def _overflows(format: Any) -> tuple[str, ...]:  # noqa: A002 - the formula's own word
    return ("saturate",) if format_of(format).specials == "finite" else ("saturate", "special")


def _encoded(x: Array, *formats: Any) -> Calls:
    for name in formats:
        for overflow in _overflows(name):
            yield {"x": x, "format": name, "overflow": overflow}


def _format_numbers(name: str) -> Calls:
    within = _midpoints(name)[:-1].astype(_F32)
    for a in (_numbers(name).astype(_F32), within, step(within, np.asarray(-1)), step(within, np.asarray(1))):
        yield from _encoded(_both(a), name)


def _format_codes(name: str) -> Calls:
    f = FLOAT_FORMATS[name]
    codes = np.arange(2**f.bits)
    if f.bits > 8:  # noqa: PLR2004 - one byte
        codes = (np.arange(0, 65536, 128)[:, None] + [0, 1, 127]).ravel()
    yield {"codes": codes.astype(np.uint8 if f.bits <= 8 else np.uint16), "format": name}  # noqa: PLR2004


_OCP = "OCP 8-bit Floating Point Specification (OFP8) 1.0"
_MX = "OCP Microscaling Formats (MX) 1.0: element data types"
_ML = "ml_dtypes: README, specifications of implemented floating point formats"
_IEEE = "IEEE 754-2019: 4.3.1"
#: Of each format where its conversion and where its codes are documented, and what its codes are.
_FORMATS = {
    "float8_e4m3fn": (
        f"{_OCP}: conversion; {_IEEE}",
        f"{_OCP}: value encodings, E4M3",
        (
            "Of e4m3fn (bias 7) only the two codes whose exponent and mantissa bits are all ones are NaN; there is no "
            "infinity, and 448 is the largest number."
        ),
    ),
    "float8_e4m3fnuz": (
        f"{_ML}; {_IEEE}",
        _ML,
        "Of e4m3fnuz (bias 8) the code 0x80 is NaN; there is neither infinity nor -0, and 240 is the largest number.",
    ),
    "float8_e4m3": (
        f"{_ML}; {_IEEE}",
        _ML,
        "Of e4m3 (bias 7) the last exponent holds infinity and NaN, as in IEEE 754; 240 is the largest number.",
    ),
    "float8_e4m3b11fnuz": (
        f"{_ML}; {_IEEE}",
        _ML,
        (
            "Of e4m3b11fnuz (bias 11) the code 0x80 is NaN; there is neither infinity nor -0, and 30 is the largest "
            "number."
        ),
    ),
    "float8_e3m4": (
        f"{_ML}; {_IEEE}",
        _ML,
        "Of e3m4 (bias 3) the last exponent holds infinity and NaN, as in IEEE 754; 15.5 is the largest number.",
    ),
    "float8_e5m2": (
        f"{_OCP}: conversion; {_IEEE}",
        f"{_OCP}: value encodings, E5M2",
        "Of e5m2 (bias 15) the last exponent holds infinity and NaN, as in IEEE 754; 57344 is the largest number.",
    ),
    "float8_e5m2fnuz": (
        f"{_ML}; {_IEEE}",
        _ML,
        (
            "Of e5m2fnuz (bias 16) the code 0x80 is NaN; there is neither infinity nor -0, and 57344 is the largest "
            "number."
        ),
    ),
    "float8_e8m0fnu": (
        "",
        "OCP Microscaling Formats (MX) 1.0: scale data type E8M0",
        "A code f of e8m0 is 2^(f - 127) from 0 to 254, without sign and zero, and 255 is NaN.",
    ),
    "float6_e3m2fn": (
        f"{_MX}, FP6; conversion",
        f"{_MX}, FP6",
        "Every code of e3m2 (bias 3) is a number: no infinity, no NaN, and 28 is the largest.",
    ),
    "float6_e2m3fn": (
        f"{_MX}, FP6; conversion",
        f"{_MX}, FP6",
        "Every code of e2m3 (bias 1) is a number: no infinity, no NaN, and 7.5 is the largest.",
    ),
    "float4_e2m1fn": (
        f"{_MX}, FP4; conversion",
        f"{_MX}, FP4",
        "The codes of e2m1 (bias 1) are 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.",
    ),
    "bfloat16": (
        f"{_ML}; {_IEEE}",
        _ML,
        "A bfloat16 is the upper half of a float32: 8 exponent bits, 7 mantissa bits, bias 127.",
    ),
    "float16": (
        _IEEE,
        "IEEE 754-2019: 3.6, binary16",
        "A float16 has 5 exponent bits, 10 mantissa bits, bias 15, infinities and NaN.",
    ),
}
_SHORT = {_E8M0: "e8m0", "float6_e3m2fn": "e3m2", "float6_e2m3fn": "e2m3", "float4_e2m1fn": "e2m1"}
for _name, (_to, _from, _said) in _FORMATS.items():
    _short = _SHORT.get(_name, _name.rpartition("_")[2])
    if _name != _E8M0:
        _nearest = (
            f"A number becomes the nearest number of {_short}, subnormals among them; midway between two, the one "
        )
        documented(_ENCODE, _to, aspect=_short, text=f"{_nearest}with the even code.")(partial(_format_numbers, _name))
    documented(_DECODE, _from, aspect=_short, text=_said)(partial(_format_codes, _name))


@expected(_ENCODE, "no document says how a number becomes an E8M0", aspect="e8m0")
def float8_e8m0fnu() -> Calls:
    """A positive number becomes the nearest power of two."""
    # Powers of two, and the neighbours of the midpoints from the second on.
    yield from _encoded(_around(_numbers(_E8M0)[1:].astype(_F32)), _E8M0)
    midpoints = _midpoints(_E8M0)[1:-1].astype(_F32)
    for n in (-1, 1):
        yield from _encoded(step(midpoints, np.asarray(n)), _E8M0)
    yield from _encoded(np.array([1e-6, 3e-5, 0.7, 1.49, 1.51, 100.0, 60000.0], _F16), _E8M0)
    yield from _encoded(np.array([1e-37, 0.7, 1.49, 1.51, 100.0, 1e38], _BF16), _E8M0)


@expected(_ENCODE, "no document says how a number becomes an E8M0; IEEE 754-2019: 4.3.1, for other formats")
def e8m0_ties() -> Calls:
    """Midway between two powers of two, a number becomes the one with the even code."""
    for dtype in (_F64, _F32, _BF16):
        yield from _encoded(_midpoints(_E8M0)[1:-1].astype(dtype), _E8M0)
    yield from _encoded(np.ldexp(0.75, np.arange(-23, 17)).astype(_F16), _E8M0)


@expected(_ENCODE, "no document says how a number becomes an E8M0")
def e8m0_smallest() -> Calls:
    """The nearest power of two is taken between the first two as well, and the first for every smaller positive
    number."""
    # Between 2^-127 and 2^-126, and below.
    for dtype in (_F64, _F32, _BF16):
        x = np.array([2.0**-127, 1.25 * 2.0**-127, 1.5 * 2.0**-127, 1.75 * 2.0**-127], dtype)
        yield from _encoded(_around(x), _E8M0)
        tiny = np.array([0.0, 2.0**-149, 2.0**-133, 2.0**-129, 2.0**-128, 0.75 * 2.0**-127]).astype(dtype)
        yield from _encoded(tiny[tiny > 0], _E8M0)


@measured(_ENCODE, "ml_dtypes 0.6.0; the format has neither zero nor sign (OCP MX 1.0: scale data type E8M0)")
def e8m0_outside() -> Calls:
    """Zero, negative numbers and -inf have no power of two: they become NaN under either policy."""
    for dtype in _SOURCES:
        yield from _encoded(np.array([0.0, -0.0, -1.0, -0.75, -60000.0, -np.inf, -np.nan], dtype), _E8M0)


@documented(_ENCODE, "IEEE 754-2019: 4.3, one rounding of the infinitely precise value")
def one_rounding() -> Calls:
    """A float64 is rounded once: next to a midpoint it goes to its own side, although a float32 could not tell it from
    the midpoint."""
    for name in (*_SMALL, "bfloat16", "float16"):
        midpoints = _midpoints(name)
        midpoints = midpoints[:: -(-len(midpoints) // 64)] if len(midpoints) > 64 else midpoints  # noqa: PLR2004 - a sample
        midpoints = np.append(midpoints, _midpoints(name)[-1])
        half_ulp = np.ldexp(1.0, np.maximum(np.frexp(midpoints)[1] - 24, -149) - 1)
        for sign in (-1, 1):
            for x in (step(midpoints, np.asarray(sign)), midpoints + sign * half_ulp / 2):
                yield from _encoded(_both(x), name)
    powers = np.ldexp(1.5, np.arange(-120, 127, 13))
    for sign in (-1, 1):
        yield from _encoded(step(powers, np.asarray(sign)), _E8M0)


@expected(_ENCODE, "IEEE 754-2019: 4.3.1 and 6.3, for every format")
def subnormals_of_float64() -> Calls:
    """A float64 too small for float32 or a subnormal of float64 rounds as any other number, with its sign."""
    x = np.array([5e-324, 2.0**-1022, 2.0**-1023, 2.0**-150, 3 * 2.0**-151, 2.0**-134, 2.0**-25, 3 * 2.0**-26])
    yield from _encoded(_both(x), *_SIGNED, (11, 2, 1023, "ieee"))


@documented(
    _ENCODE,
    "IEEE 754-2019: 7.4; OCP 8-bit Floating Point Specification (OFP8) 1.0: conversion",
    aspect="overflow-after-rounding",
)
def threshold() -> Calls:
    """A number overflows where it would round beyond the largest number, as if the exponent had no end: below half a
    gap above the largest it rounds to the largest."""
    # Where overflow begins: midway between the largest number and the one that would come next.
    for name in _SIGNED:
        ends = np.append(_midpoints(name)[-1], [_numbers(name)[-1], 2 * _midpoints(name)[-1] - _numbers(name)[-1]])
        for dtype in (_F32, _F16, _BF16):
            x = ends[ends <= float(ml_dtypes.finfo(dtype).max)].astype(dtype)  # type: ignore[no-untyped-call]
            yield from _encoded(_both(_around(x)), name)
        yield from _encoded(_both(_around(ends[:2].astype(_F32)).astype(_F64)), name)
    largest = 2.0**127
    for dtype in (_F64, _F32, _BF16):
        yield from _encoded(np.array([largest, 1.25 * largest, 1.75 * largest], dtype), _E8M0)


@documented(
    _ENCODE,
    "OCP 8-bit Floating Point Specification (OFP8) 1.0: conversion, saturating and not; MX 1.0: conversion of finite "
    "elements",
    aspect="overflow-policy",
)
def far_beyond() -> Calls:
    """What overflows, infinities too, becomes the largest number under "saturate"; under "special" an infinity, or NaN
    where the format has none."""
    for dtype in _SOURCES:
        largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
        x = np.array([np.inf, largest], dtype)
        yield from _encoded(_both(x), *_SIGNED)
        yield from _encoded(x, _E8M0)


@measured(_ENCODE, "ml_dtypes 0.6.0; OFP8 1.0 demands a NaN and leaves its code open", aspect="nan-code")
def nan() -> Calls:
    """NaN of any bits becomes NaN under either policy; its code has the sign of the input where there is one, and of
    the mantissa bits of an IEEE format the first alone."""
    for dtype in _SOURCES:
        # A float16, and a bfloat16 of a bfloat16, may keep more of the bits.
        yield from _encoded(nans(dtype), *(n for n in _SMALL if n in _WITH_NAN), *["bfloat16"] * (dtype != _BF16))
        yield from _encoded(_both(np.array([np.nan, 1.0], dtype)), *(n for n in _WITH_NAN if n != _E8M0))
        yield from _encoded(_both(np.array([np.nan], dtype)), _E8M0)


@expected(_ENCODE, "ml_dtypes: README, says that it is undefined", aspect="nan-without-code")
def refused_nan() -> Calls:
    """NaN is refused by a format that has no code for it."""
    for name in (n for n in FLOAT_FORMATS if n not in _WITH_NAN):
        for dtype in _SOURCES:
            yield from _encoded(np.array([1.0, np.nan], dtype), name)
            yield from _encoded(np.array(-np.nan, dtype), name)


@documented(_ENCODE, "IEEE 754-2019: 6.3; ml_dtypes: README, specifications of implemented floating point formats")
def zeros() -> Calls:
    """Zero and what rounds to it keep their sign; in an fnuz format the code of -0 is NaN, so they are +0."""
    # Zeros of both signs, and what rounds to them: up to half of the smallest number.
    for name in _SIGNED:
        half = FLOAT_FORMATS[name].smallest / 2
        for dtype in _SOURCES:
            small = np.array([0.0, half, half / 3], dtype)
            yield from _encoded(_both(small), name)


@expected(_ENCODE, "IEEE 754-2019: 4.3.1, for every format")
def sixteen_bit_sources() -> Calls:
    """float16 and bfloat16 are rounded to the small formats as any number is, their subnormals too."""
    # The ends of each mantissa of float16 and bfloat16, subnormals too; the last exponent is not among them.
    for dtype, step_, top in ((_F16, 2**8, 0x7C00), (_BF16, 2**6, 0x7F80)):
        bits = (np.arange(0, top, step_)[:, None] + [0, 1, step_ - 1]).ravel().astype(np.uint16)
        for name in _SMALL:
            yield from _encoded(_both(bits.view(dtype)), name)


@expected(_ENCODE, "IEEE 754-2019: 4.3.1, for every format")
def every_sixteen_bit_number() -> Calls:
    """Every number of float16 and of bfloat16, infinities too, becomes the nearest number of each signed small
    format, ties to the even code."""
    # By the policy that casts have: infinity or NaN, and of a finite format the largest number.
    for dtype in (_F16, _BF16):
        x = np.arange(2**16, dtype=np.uint16).view(dtype)
        for name in _SMALL:
            yield {"x": x[~np.isnan(x)], "format": name, "overflow": _overflows(name)[-1]}


@expected(_ENCODE, "IEEE 754-2019: 4.3.1, for formats of any widths")
def any_format() -> Calls:
    """Any widths, bias and specials are rounded to by the same rules."""
    for four in _TUPLES:
        for dtype in (_F64, _F32):
            x = _around(np.concatenate([_numbers(four), _midpoints(four)])[:200].astype(_F32))
            yield from _encoded(_both(x).astype(dtype), four)
            yield from _encoded(np.array([0.0, -0.0, np.inf, -np.inf, 1e38, -1e-38], dtype), four)
            if four[3] != "finite":
                yield from _encoded(_both(np.array([np.nan], dtype)), four)


@expected(_ENCODE, "of any function of arrays")
def shapes() -> Calls:
    """The codes have the shape of the input, empty ones too."""
    for dtype in _SOURCES:
        for shape in ((), (0,), (1,), (2, 0), (3, 2), (2, 3, 2)):
            x = np.linspace(-5, 5, int(np.prod(shape)), dtype=_F64).astype(dtype).reshape(shape)
            yield from _encoded(x, "float8_e4m3fn", "float4_e2m1fn", "float16")


@expected(_ENCODE, "of any strict function: nothing is guessed")
def refusals() -> Calls:
    """A policy or a format that does not exist, "special" for a format without infinity and NaN, and an input that is
    not float are refused."""
    x = np.array([1.0, 2.0], _F32)
    for overflow in ("wrap", "SATURATE", ""):
        yield {"x": x, "format": "float8_e5m2", "overflow": overflow}
    for name in ("float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn", (3, 2, 3, "finite")):
        yield {"x": x, "format": name, "overflow": "special"}
    for dtype in (np.int32, np.uint8, np.bool_):
        yield {"x": x.astype(dtype), "format": "float8_e5m2", "overflow": "saturate"}
    for bad in _NO_FORMATS:
        yield {"x": x, "format": bad, "overflow": "saturate"}


_NO_FORMATS: tuple[Any, ...] = (
    "float8_e4m3b",
    "e4m3fn",
    "",
    4,
    None,
    (4, 3, 7),
    (4, 3, 7, "inf"),
    (4.0, 3, 7, "fn"),
    (4, 3, None, "fn"),
    (True, 3, 7, "fn"),
    (0, 3, 7, "fn"),
    (4, -1, 7, "fn"),
    (8, 8, 127, "ieee"),
    (5, 0, 15, "ieee"),
    (8, 1, 127, "e8m0"),
    (1, 0, 0, "fn"),
    (11, 4, 1100, "ieee"),
    (5, 2, -1100, "finite"),
)


@documented(
    _DECODE, "OCP 8-bit Floating Point Specification (OFP8) 1.0: formats; IEEE 754-2019: 3.4", aspect="any-format"
)
def decode_any() -> Calls:
    """A code of any widths, bias and specials is the number that sign, exponent field and mantissa field spell:
    subnormals where the field is zero, a hidden one elsewhere."""
    for four in _TUPLES:
        f = format_of(four)
        codes = np.arange(2**f.bits, dtype=np.uint16)
        yield {"codes": codes, "format": four, "dtype": "float64"}


@expected(_DECODE, "IEEE 754-2019: 5.4.2, to a wider format", aspect="exact-in-every-dtype")
def dtypes() -> Calls:
    """Decoding into any dtype that holds the format rounds nothing."""
    # Every dtype that holds the format, from codes of every integer dtype.
    for name in (*_SMALL, _E8M0):
        codes = np.arange(2 ** FLOAT_FORMATS[name].bits)
        for dtype in ("float64", "float32", "bfloat16", *(("float16",) if name != _E8M0 else ())):
            yield {"codes": codes.astype(np.uint8), "format": name, "dtype": dtype}
    codes = np.array([0, 1, 0x3C00, 0x7BFF, 0x7C00, 0x7E00, 0x8000, 0xFC00, 0xFFFF])
    for dtype in ("float64", "float32", "float16"):
        yield {"codes": codes.astype(np.uint16), "format": "float16", "dtype": dtype}
    for dtype in ("float64", "float32", "bfloat16"):
        yield {"codes": codes.astype(np.uint16), "format": "bfloat16", "dtype": dtype}


@expected(_DECODE, "of any function of arrays")
def codes_of_any_integer() -> Calls:
    """Codes may come in any integer dtype and any shape; the numbers have their shape."""
    for kind in (np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64, np.uint64):
        for shape in ((), (0,), (2,), (3, 2), (1, 2, 2)):
            codes = np.arange(int(np.prod(shape))).reshape(shape).astype(kind)
            yield {"codes": codes, "format": "float4_e2m1fn"}
            yield {"codes": codes, "format": "float8_e5m2"}


@expected(_DECODE, "of any strict function: nothing is guessed", aspect="refusals")
def decode_refusals() -> Calls:
    """A code that the format does not have, codes that are no integers, a dtype too narrow and a format that does not
    exist are refused."""
    codes = np.array([0, 1], np.uint8)
    for bad in (16, 255):
        yield {"codes": np.array([0, bad], np.uint8), "format": "float4_e2m1fn"}
    yield {"codes": np.array([64], np.uint8), "format": "float6_e3m2fn"}
    for bad in (-1, 256):
        yield {"codes": np.array(bad, np.int16), "format": "float8_e4m3fn"}
    yield {"codes": codes.astype(_F32), "format": "float8_e4m3fn"}
    yield {"codes": codes.astype(np.bool_), "format": "float8_e4m3fn"}
    for dtype in ("int8", "float8_e5m2", "", "Float32"):
        yield {"codes": codes, "format": "float8_e5m2", "dtype": dtype}
    narrow = (
        (_E8M0, "float16"),
        ("bfloat16", "float16"),
        ("float16", "bfloat16"),
        ((4, 8, 7, "finite"), "bfloat16"),
        ((6, 2, 31, "fn"), "float16"),
        ((4, 3, 30, "finite"), "float16"),
        ((4, 3, -10, "finite"), "float16"),
        ((9, 2, 255, "ieee"), "float32"),
    )
    for name, dtype in narrow:
        yield {"codes": codes, "format": name, "dtype": dtype}
    for bad_format in _NO_FORMATS:
        yield {"codes": codes, "format": bad_format}
