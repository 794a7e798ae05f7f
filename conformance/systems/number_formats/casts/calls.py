"""Calls for number formats: the numbers of each format, the midpoints between them, and what lies next to those."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Arguments, calls
from halfeven.reference.minifloat import FLOAT_FORMATS, Specials, decode, format_of

__all__: list[str] = []

Array = npt.NDArray[Any]
Calls = Iterator[Arguments]


_ENCODE, _DECODE = "number-formats/encode", "number-formats/decode"
_F32, _F64, _F16, _BF16 = (np.dtype(d) for d in ("float32", "float64", "float16", ml_dtypes.bfloat16))
_SOURCES = (_F64, _F32, _F16, _BF16)
_E8M0 = "float8_e8m0fnu"
_SIGNED = tuple(name for name in FLOAT_FORMATS if name != _E8M0)
_SMALL = tuple(name for name in _SIGNED if FLOAT_FORMATS[name].bits <= 8)  # noqa: PLR2004 - one byte
_WITH_NAN = tuple(name for name, f in FLOAT_FORMATS.items() if f.specials != "finite")
_TUPLES: tuple[tuple[int, int, int, Specials], ...] = (
    (4, 3, 7, "ieee"),
    (3, 4, 3, "ieee"),
    (4, 3, 11, "fnuz"),
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


def _register(formula: str, name: str, build: Callable[[], Calls]) -> None:
    calls(formula, name)(build)


for _name in _SIGNED:
    _register(_ENCODE, _name, partial(_format_numbers, _name))
for _name in FLOAT_FORMATS:
    _register(_DECODE, _name, partial(_format_codes, _name))


@calls(_ENCODE, _E8M0)
def _e8m0() -> Calls:
    """Powers of two, and the neighbours of the midpoints from the second on."""
    yield from _encoded(_around(_numbers(_E8M0)[1:].astype(_F32)), _E8M0)
    midpoints = _midpoints(_E8M0)[1:-1].astype(_F32)
    for n in (-1, 1):
        yield from _encoded(step(midpoints, np.asarray(n)), _E8M0)
    yield from _encoded(np.array([1e-6, 3e-5, 0.7, 1.49, 1.51, 100.0, 60000.0], _F16), _E8M0)
    yield from _encoded(np.array([1e-37, 0.7, 1.49, 1.51, 100.0, 1e38], _BF16), _E8M0)


@calls(_ENCODE, "e8m0-ties")
def _e8m0_ties() -> Calls:
    for dtype in (_F64, _F32, _BF16):
        yield from _encoded(_midpoints(_E8M0)[1:-1].astype(dtype), _E8M0)
    yield from _encoded(np.ldexp(0.75, np.arange(-23, 17)).astype(_F16), _E8M0)


@calls(_ENCODE, "e8m0-smallest")
def _e8m0_smallest() -> Calls:
    """Between 2^-127 and 2^-126, and below."""
    for dtype in (_F64, _F32, _BF16):
        x = np.array([2.0**-127, 1.25 * 2.0**-127, 1.5 * 2.0**-127, 1.75 * 2.0**-127], dtype)
        yield from _encoded(_around(x), _E8M0)
        tiny = np.array([0.0, 2.0**-149, 2.0**-133, 2.0**-129, 2.0**-128, 0.75 * 2.0**-127]).astype(dtype)
        yield from _encoded(tiny[tiny > 0], _E8M0)


@calls(_ENCODE, "e8m0-outside")
def _e8m0_outside() -> Calls:
    """What has no power of two: zero and what is negative."""
    for dtype in _SOURCES:
        yield from _encoded(np.array([0.0, -0.0, -1.0, -0.75, -60000.0, -np.inf, -np.nan], dtype), _E8M0)


@calls(_ENCODE, "one-rounding")
def _one_rounding() -> Calls:
    """A float64 next to a midpoint, so near that float32 takes it for the midpoint."""
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


@calls(_ENCODE, "subnormals-of-float64")
def _subnormals() -> Calls:
    x = np.array([5e-324, 2.0**-1022, 2.0**-1023, 2.0**-150, 3 * 2.0**-151, 2.0**-134, 2.0**-25, 3 * 2.0**-26])
    yield from _encoded(_both(x), *_SIGNED, (11, 2, 1023, "ieee"))


@calls(_ENCODE, "threshold")
def _threshold() -> Calls:
    """Where overflow begins: midway between the largest number and the one that would come next."""
    for name in _SIGNED:
        ends = np.append(_midpoints(name)[-1], [_numbers(name)[-1], 2 * _midpoints(name)[-1] - _numbers(name)[-1]])
        for dtype in (_F32, _F16, _BF16):
            x = ends[ends <= float(ml_dtypes.finfo(dtype).max)].astype(dtype)  # type: ignore[no-untyped-call]
            yield from _encoded(_both(_around(x)), name)
        yield from _encoded(_both(_around(ends[:2].astype(_F32)).astype(_F64)), name)
    largest = 2.0**127
    for dtype in (_F64, _F32, _BF16):
        yield from _encoded(np.array([largest, 1.25 * largest, 1.75 * largest], dtype), _E8M0)


@calls(_ENCODE, "far-beyond")
def _far_beyond() -> Calls:
    """Infinities, and the largest numbers of the source."""
    for dtype in _SOURCES:
        largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
        x = np.array([np.inf, largest], dtype)
        yield from _encoded(_both(x), *_SIGNED)
        yield from _encoded(x, _E8M0)


@calls(_ENCODE, "nan")
def _nan() -> Calls:
    for dtype in _SOURCES:
        yield from _encoded(_both(np.array([np.nan, 1.0], dtype)), *(n for n in _WITH_NAN if n != _E8M0))
        yield from _encoded(_both(np.array([np.nan], dtype)), _E8M0)


@calls(_ENCODE, "refused-nan")
def _nan_without_code() -> Calls:
    for name in (n for n in FLOAT_FORMATS if n not in _WITH_NAN):
        for dtype in _SOURCES:
            yield from _encoded(np.array([1.0, np.nan], dtype), name)
            yield from _encoded(np.array(-np.nan, dtype), name)


@calls(_ENCODE, "zeros")
def _zeros() -> Calls:
    """Zeros of both signs, and what rounds to them: up to half of the smallest number."""
    for name in _SIGNED:
        half = FLOAT_FORMATS[name].smallest / 2
        for dtype in _SOURCES:
            small = np.array([0.0, half, half / 3], dtype)
            yield from _encoded(_both(small), name)


@calls(_ENCODE, "sixteen-bit-sources")
def _sixteen_bits() -> Calls:
    """The ends of each mantissa of float16 and bfloat16, subnormals too; the last exponent is not among them."""
    for dtype, step_, top in ((_F16, 2**8, 0x7C00), (_BF16, 2**6, 0x7F80)):
        bits = (np.arange(0, top, step_)[:, None] + [0, 1, step_ - 1]).ravel().astype(np.uint16)
        for name in _SMALL:
            yield from _encoded(_both(bits.view(dtype)), name)


@calls(_ENCODE, "any-format")
def _any_format() -> Calls:
    for four in _TUPLES:
        for dtype in (_F64, _F32):
            x = _around(np.concatenate([_numbers(four), _midpoints(four)])[:200].astype(_F32))
            yield from _encoded(_both(x).astype(dtype), four)
            yield from _encoded(np.array([0.0, -0.0, np.inf, -np.inf, 1e38, -1e-38], dtype), four)
            if four[3] != "finite":
                yield from _encoded(_both(np.array([np.nan], dtype)), four)


@calls(_ENCODE, "shapes")
def _shapes() -> Calls:
    for dtype in _SOURCES:
        for shape in ((), (0,), (1,), (2, 0), (3, 2), (2, 3, 2)):
            x = np.linspace(-5, 5, int(np.prod(shape)), dtype=_F64).astype(dtype).reshape(shape)
            yield from _encoded(x, "float8_e4m3fn", "float4_e2m1fn", "float16")


@calls(_ENCODE, "refusals")
def _encode_refusals() -> Calls:
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


@calls(_DECODE, "any-format")
def _decode_any() -> Calls:
    for four in _TUPLES:
        f = format_of(four)
        codes = np.arange(2**f.bits, dtype=np.uint16)
        yield {"codes": codes, "format": four, "dtype": "float64"}


@calls(_DECODE, "dtypes")
def _decode_dtypes() -> Calls:
    """Every dtype that holds the format, from codes of every integer dtype."""
    for name in (*_SMALL, _E8M0):
        codes = np.arange(2 ** FLOAT_FORMATS[name].bits)
        for dtype in ("float64", "float32", "bfloat16", *(("float16",) if name != _E8M0 else ())):
            yield {"codes": codes.astype(np.uint8), "format": name, "dtype": dtype}
    codes = np.array([0, 1, 0x3C00, 0x7BFF, 0x7C00, 0x7E00, 0x8000, 0xFC00, 0xFFFF])
    for dtype in ("float64", "float32", "float16"):
        yield {"codes": codes.astype(np.uint16), "format": "float16", "dtype": dtype}
    for dtype in ("float64", "float32", "bfloat16"):
        yield {"codes": codes.astype(np.uint16), "format": "bfloat16", "dtype": dtype}


@calls(_DECODE, "codes-of-any-integer")
def _decode_integers() -> Calls:
    for kind in (np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64, np.uint64):
        for shape in ((), (0,), (2,), (3, 2), (1, 2, 2)):
            codes = np.arange(int(np.prod(shape))).reshape(shape).astype(kind)
            yield {"codes": codes, "format": "float4_e2m1fn"}
            yield {"codes": codes, "format": "float8_e5m2"}


@calls(_DECODE, "refusals")
def _decode_refusals() -> Calls:
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
