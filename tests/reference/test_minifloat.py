"""Number formats on all codes, all 16-bit inputs, and every midpoint: against thresholds, and against ml_dtypes."""

import warnings
from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference import FORMULAS
from halfeven.reference.minifloat import FLOAT_FORMATS, FloatFormat, cast, decode, encode, floatx
from oracles.codes import nearest, values

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's casts of NaN; ml_dtypes' isnan

ENCODE_ML_DTYPES = FORMULAS["number-formats/encode@ml_dtypes-0.6"].function
F16, F32, F64, BF16 = (np.dtype(d) for d in ("float16", "float32", "float64", ml_dtypes.bfloat16))
BITS = np.arange(65536, dtype=np.uint16)
SIXTEEN = [BITS.view(dtype) for dtype in (F16, BF16)]
NAMES = pytest.mark.parametrize("name", FLOAT_FORMATS)
SOURCES = pytest.mark.parametrize("x", SIXTEEN, ids=["float16", "bfloat16"])
SIGNED = [name for name in FLOAT_FORMATS if name != "float8_e8m0fnu"]
# Largest number, smallest normal, smallest: as the documents print them.
PRINTED = {
    "float8_e4m3fn": (448.0, 2.0**-6, 2.0**-9),
    "float8_e4m3": (240.0, 2.0**-6, 2.0**-9),
    "float8_e4m3b11fnuz": (30.0, 2.0**-10, 2.0**-13),
    "float8_e4m3fnuz": (240.0, 2.0**-7, 2.0**-10),
    "float8_e3m4": (15.5, 2.0**-2, 2.0**-6),
    "float8_e5m2": (57344.0, 2.0**-14, 2.0**-16),
    "float8_e5m2fnuz": (57344.0, 2.0**-15, 2.0**-17),
    "float8_e8m0fnu": (2.0**127, 2.0**-127, 2.0**-127),
    "float6_e3m2fn": (28.0, 0.25, 0.0625),
    "float6_e2m3fn": (7.5, 1.0, 0.125),
    "float4_e2m1fn": (6.0, 1.0, 0.5),
    "bfloat16": (float.fromhex("0x1.fep127"), 2.0**-126, 2.0**-133),
    "float16": (65504.0, 2.0**-14, 2.0**-24),
}


def ml_dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def policies(name):
    return ["saturate"] if FLOAT_FORMATS[name].specials == "finite" else ["saturate", "special"]


def numbers(name):
    """What each code without sign is up to the largest, and what would come next, as float64: exact."""
    f = FLOAT_FORMATS[name]
    if f.specials == "e8m0":
        return np.ldexp(1.0, np.arange(-127, 129))
    return np.array([float(v) for v in values(f.exponent_bits, f.mantissa_bits, f.bias, f.max_code + 2)])


def by_thresholds(x, name, overflow):
    """Codes by counting the midpoints that a magnitude has passed; every midpoint is a float64."""
    f, known = FLOAT_FORMATS[name], numbers(name)
    midpoints = (known[1:] + known[:-1]) / 2
    real = x.astype(np.float64)
    passed, reached = (np.searchsorted(midpoints, np.abs(real), side=side) for side in ("left", "right"))
    code = np.where(passed % 2 == 0, passed, reached)  # they differ on a midpoint alone
    last = len(known) - 2
    beyond = last if overflow == "saturate" else last + 1
    code = np.where(code > last, beyond, code)
    sign = np.where(np.signbit(real), 1 << (f.bits - 1), 0)
    nan = {"ieee": last + 1 + (1 << max(f.mantissa_bits - 1, 0)), "finite": -1}.get(f.specials, last + 1)
    code = np.where(np.isnan(real), nan, code)
    if f.specials == "e8m0":
        return np.where(np.isnan(real) | (real <= 0), 255, code)
    if f.specials == "fnuz":
        return np.where(code == last + 1, 1 << (f.bits - 1), code + np.where(code == 0, 0, sign))
    return code + sign


def around(a):
    return np.concatenate([np.nextafter(a, a.dtype.type(-np.inf)), a, np.nextafter(a, a.dtype.type(np.inf))])


def both(a):
    return np.concatenate([a, -a])


def traps(name):
    """float64 values beside each midpoint, by so little that a float32 does not see it."""
    known = numbers(name)
    midpoints = (known[1:] + known[:-1]) / 2
    quarter = np.ldexp(1.0, np.maximum(np.frexp(midpoints)[1] - 24, -149) - 2)
    return np.concatenate([around(midpoints), midpoints - quarter, midpoints + quarter])


def same(a, b):
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a), np.signbit(b))


@NAMES
def test_every_code_is_its_number(name):
    f, known = FLOAT_FORMATS[name], numbers(name)[:-1]
    found = decode(np.arange(2**f.bits), name, "float64")
    assert np.array_equal(found[: len(known)], known)
    assert same(found, np.arange(2**f.bits).astype(f"u{ml_dtype(name).itemsize}").view(ml_dtype(name)).astype(F64))


@NAMES
def test_every_number_is_its_code(name):
    codes = np.arange(2 ** FLOAT_FORMATS[name].bits)
    real = decode(codes, name, "float64")
    kept = ~np.isnan(real)
    assert kept.sum() > len(codes) * 0.85
    for overflow in policies(name):
        back = encode(real[kept], name, overflow=overflow)
        finite = np.isfinite(real[kept])
        assert np.array_equal(back[finite], codes[kept][finite])


@SOURCES
@NAMES
def test_every_16_bit_input_by_thresholds(name, x):
    if FLOAT_FORMATS[name].specials == "finite":
        x = x[~np.isnan(x)]
    for overflow in policies(name):
        assert np.array_equal(encode(x, name, overflow=overflow), by_thresholds(x, name, overflow))


@SOURCES
@NAMES
def test_every_16_bit_input_as_ml_dtypes(name, x):
    x = x[~np.isnan(x)]  # NaN with a payload keeps it there; the calls have those without
    special = policies(name)[-1]
    cast_to = x.astype(ml_dtype(name))
    theirs = cast_to.view(f"u{cast_to.itemsize}")
    assert np.array_equal(ENCODE_ML_DTYPES(x, name, overflow=special), theirs)
    if name in SIGNED:
        assert np.array_equal(encode(x, name, overflow=special), theirs)


@NAMES
def test_every_midpoint_of_wide_sources(name):
    known = numbers(name)
    narrow = around(((known[1:] + known[:-1]) / 2).astype(F32))
    for x in (both(narrow), both(narrow.astype(F64)), both(traps(name)), both(around(known[:-1]))):
        for overflow in policies(name):
            assert np.array_equal(encode(x, name, overflow=overflow), by_thresholds(x, name, overflow))


@NAMES
def test_every_midpoint_as_ml_dtypes(name):
    special = policies(name)[-1]
    known = numbers(name)
    for x in (both(around(((known[1:] + known[:-1]) / 2).astype(F32))), both(traps(name))):
        theirs = x.astype(ml_dtype(name))
        assert np.array_equal(ENCODE_ML_DTYPES(x, name, overflow=special), theirs.view(f"u{theirs.itemsize}"))


@SOURCES
def test_nothing_is_warned_of(x):
    numbers = x[~np.isnan(x)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in FLOAT_FORMATS:
            kept = numbers if policies(name) == ["saturate"] else x
            codes = encode(kept, name, overflow="saturate")
            theirs = ENCODE_ML_DTYPES(kept, name, overflow="saturate")
            assert np.array_equal(codes, theirs) == (name in SIGNED)
            assert decode(codes, name).dtype == F32
        assert np.isnan(decode(np.arange(2**14), (11, 2, 1023, "ieee"), "float64")).sum() == 6


def test_midpoints_are_seen_by_one_rounding_alone():
    x = np.nextafter(np.float64(1.0625), 2)  # midway between the e4m3fn numbers 1 and 1.125, and a little more
    assert decode(encode(np.array([x]), "float8_e4m3fn", overflow="special"), "float8_e4m3fn")[0] == 1.125
    assert decode(ENCODE_ML_DTYPES(np.array([x]), "float8_e4m3fn", overflow="special"), "float8_e4m3fn")[0] == 1.0


@NAMES
def test_ranges_as_printed(name):
    f = FLOAT_FORMATS[name]
    assert (f.max, f.smallest_normal, f.smallest) == PRINTED[name]
    assert f.bits == ml_dtypes.finfo(ml_dtype(name)).bits


def test_e2m1_as_printed():
    assert decode(np.arange(8), "float4_e2m1fn").tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def test_floatx_is_the_finite_format_of_its_widths():
    for e, m, name in ((3, 2, "float6_e3m2fn"), (2, 3, "float6_e2m3fn"), (2, 1, "float4_e2m1fn")):
        f = FLOAT_FORMATS[name]
        assert floatx(e, m) == FloatFormat(f"float{1 + e + m}_e{e}m{m}", e, m, f.bias, "finite")


def test_cast_is_idempotent_and_keeps_the_dtype():
    for x in (SIXTEEN[0], SIXTEEN[1], traps("float8_e5m2")):
        finite = x[np.isfinite(x)]
        once = cast(finite, "float8_e5m2", overflow="saturate")
        assert once.dtype == x.dtype
        assert same(cast(once, "float8_e5m2", overflow="saturate").astype(F64), once.astype(F64))
        assert not same(once.astype(F64), finite.astype(F64))


@pytest.mark.parametrize("four", [(1, 2, 0, "finite"), (2, 0, 1, "fn"), (3, 3, 3, "ieee"), (2, 2, 5, "fnuz")])
def test_small_formats_by_search(four):
    """Numbers on a fine grid, each compared with the nearest in the list by its distance."""
    f = FloatFormat("toy", *four)
    known = values(*four[:3], f.max_code + 2)
    assert all(low < high for low, high in pairwise(known))
    grid = [known[-1] * Fraction(k, 640) for k in range(640)]
    codes = encode(np.array([float(v) for v in grid]), f, overflow="saturate")
    for v, code in zip(grid, codes.tolist(), strict=True):
        exact = Fraction(float(v))
        index = nearest(exact, known)
        distance = min(abs(exact - n) for n in known)
        assert abs(exact - known[index]) == distance
        assert code == min(index, f.max_code)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: encode(np.ones(1), "e4m3", overflow="saturate"), ValueError, r"format='e4m3'.*float8_e4m3fn"),
        (lambda: encode(np.ones(1), "float8_e5m2", overflow="wrap"), ValueError, r"overflow='wrap'.*'saturate'"),
        (lambda: encode(np.ones(1), "float4_e2m1fn", overflow="special"), ValueError, "overflow='special'"),
        (lambda: encode(np.array([np.nan]), "float4_e2m1fn", overflow="saturate"), ValueError, "x=nan.*has no NaN"),
        (lambda: encode(np.ones(1, int), "float8_e5m2", overflow="saturate"), TypeError, "x of dtype int64.*float32"),
        (lambda: encode([1.0], "float8_e5m2", overflow="saturate"), TypeError, "x of dtype list"),
        (lambda: decode(np.array([16]), "float4_e2m1fn"), ValueError, "codes=16.*0 to 15"),
        (lambda: decode(np.ones(1), "float4_e2m1fn"), TypeError, "codes of dtype float64"),
        (lambda: decode(np.ones(1, int), "float8_e8m0fnu", "float16"), ValueError, "dtype='float16'.*e8m0"),
        (lambda: decode(np.ones(1, int), 8), TypeError, "format=8"),
        (lambda: FloatFormat("f", 9, 7, 255, "ieee"), ValueError, "exponent_bits=9, mantissa_bits=7.*16 bits"),
        (lambda: FloatFormat("f", 4, 3, 7, "inf"), ValueError, "specials='inf'.*'ieee'"),
        (lambda: FloatFormat("f", 4.0, 3, 7, "fn"), TypeError, r"exponent_bits=4.0.*int"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
