"""Each rounding rule against integers and fractions: every value of the toy and 16-bit formats."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference.rounding import ROUNDINGS, cast_once
from oracles import exact

FORMATS = {
    "float8_e3m4": ml_dtypes.float8_e3m4,
    "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}


def by_hand(value: Fraction, rule: str) -> int:
    """The nearest integers, and which of two equally near: a third way, by the candidates."""
    return int(on_integers(np.array([value.numerator], object), value.denominator, rule)[0])


def on_integers(n: np.ndarray, d: int, rule: str) -> np.ndarray:
    """N / d rounded, in integers alone."""
    below, rest = n // d, n % d
    above = below + (rest != 0)
    directed = {"floor": below, "ceil": above, "toward-zero": np.where(n > 0, below, above)}
    if rule in directed:
        return directed[rule]
    tie = {
        "half-even": np.where(below % 2 == 0, below, above),
        "half-away": np.where(n > 0, above, below),
        "half-to-zero": np.where(n > 0, below, above),
        "half-up": above,
        "half-down": below,
    }
    return np.where(2 * rest == d, tie[rule], np.where(2 * rest < d, below, above))


@pytest.mark.parametrize("rule", ROUNDINGS)
@pytest.mark.parametrize("name", FORMATS)
def test_every_value(rule: str, name: str) -> None:
    dtype, precision = np.dtype(FORMATS[name]), exact.FORMATS[name].precision
    bits = 8 * dtype.itemsize
    x = np.arange(2**bits, dtype=f"uint{bits}").view(dtype)
    got = ROUNDINGS[rule](x)
    assert got.dtype == dtype
    with np.errstate(invalid="ignore"):
        wide, result = x.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(wide)
    assert (np.isnan(wide) == np.isnan(result)).all()
    assert (result[np.isinf(wide)] == wide[np.isinf(wide)]).all()
    assert (np.signbit(result[finite]) == np.signbit(wide[finite])).all()
    # From 2^precision on, every value is an integer and stays; below 2^-24 every value rounds as 2^-24 of its sign.
    large = finite & (np.abs(wide) >= 2.0**precision)
    assert (result[large] == wide[large]).all()
    rest = finite & ~large
    asked = wide[rest]
    units = np.where(asked == 0, 0, np.copysign(np.maximum(np.abs(asked), 2.0**-24), asked)) * 2.0**40
    expected = on_integers(units.astype(np.int64), 2**40, rule).astype(np.float64)
    # 15.5, the largest value of float8_e3m4, has no 16 above it.
    expected = np.where(np.abs(expected) > wide[finite].max(), np.copysign(np.inf, expected), expected)
    assert rest.sum() > 2 ** (bits - 2)
    assert (result[rest] == expected).all()


@pytest.mark.parametrize("rule", ROUNDINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_at_which_adding_a_half_goes_astray(rule: str, dtype: type) -> None:
    below_half = np.nextafter(dtype(0.5), dtype(0))
    odd = dtype(2.0 ** np.finfo(dtype).nmant + 1)  # x + 0.5 is a tie there and rounds to even
    ties = [dtype(k + 0.5) for k in range(-6, 6)]
    x = [below_half, dtype(0.5), odd, odd / 2, *ties, dtype(2.0**-149), *(np.nextafter(t, dtype(9)) for t in ties)]
    for value in (*x, *(-v for v in x)):
        got = ROUNDINGS[rule](np.asarray(value))
        expected = by_hand(Fraction(float(value)), rule)
        assert got == expected, (rule, value)
        assert np.signbit(got) == np.signbit(value)


@pytest.mark.parametrize("rule", ROUNDINGS)
def test_the_oracle_rounds_the_same(rule: str) -> None:
    for n in range(-60, 61):
        for d in (1, 2, 3, 4, 7, 2**40):
            value = Fraction(n, d)
            assert exact.round_integer(value, rule) == by_hand(value, rule), (rule, value)


def test_the_rules_differ_from_one_another() -> None:
    x = np.array([0.5, 1.5, -0.5, -1.5, 0.25, -0.25, 0.75])
    assert len({tuple(f(x).tolist()) for f in ROUNDINGS.values()}) == len(ROUNDINGS)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_cast_from_float64_rounds_once(name: str) -> None:
    """At every tie of the format, and beside it by less than float32 can tell."""
    infinity = int(np.array(np.inf, FORMATS[name]).view(np.uint16))
    ends = np.arange(infinity, dtype=np.uint16).view(FORMATS[name]).astype(np.float64)
    middle = np.append((ends[1:] + ends[:-1]) / 2, ends[-1] + (ends[-1] - ends[-2]) / 2)
    x = np.concatenate([middle, middle * (1 + 2.0**-40), middle * (1 - 2.0**-40), [0.0, np.inf, 1e300]])
    for v in (x, -x):
        expected = [exact.round_value(float(w), exact.FORMATS[name]) for w in v]
        found = cast_once(v, FORMATS[name])
        assert found.dtype == FORMATS[name]
        np.testing.assert_array_equal(found.astype(np.float64), expected)
    assert np.isnan(cast_once(np.array([np.nan]), FORMATS[name]).astype(np.float64)).all()
    with np.errstate(over="ignore"):
        twice = x.astype(np.float32).astype(FORMATS[name]).astype(np.float64)
    assert (cast_once(x, FORMATS[name]).astype(np.float64) != twice).any()
