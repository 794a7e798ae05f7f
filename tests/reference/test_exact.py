"""The oracle itself, against the machine's float64 and ml_dtypes' casts, which share nothing with it."""

from fractions import Fraction
from math import inf, nan

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference import Grid, exact

F32, F64 = exact.FORMATS["float32"], exact.FORMATS["float64"]


@pytest.mark.parametrize("name", exact.FORMATS)
def test_round_to_is_the_format_s_own_cast(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    form = exact.FORMATS[name]
    rng = np.random.default_rng(3)
    exponents = rng.integers(form.emin - form.precision - 2, form.emax + 3, 1500)
    x = np.ldexp(rng.integers(2**52, 2**53, 1500).astype(np.float64), np.minimum(exponents - 52, 970))
    x[:500] = np.ldexp(np.round(np.ldexp(x[:500], 52 - exponents[:500]) / 2**40) * 2**40, exponents[:500] - 52)
    x = x[np.isfinite(x) & (x != 0)]
    x[::2] *= -1
    with np.errstate(all="ignore"):
        expected = x.astype(dtype).astype(np.float64)
    got = np.array([exact.round_to(Fraction(float(v)), form) for v in x])
    assert len(x) > 1000
    assert (got == expected).all()
    assert (np.signbit(got) == np.signbit(expected)).all()


def test_float64_operations_are_the_machine_s() -> None:
    rng = np.random.default_rng(4)
    values = [
        *(np.ldexp(rng.uniform(-2, 2, 40), rng.integers(-500, 500, 40)).tolist()),
        0.0,
        -0.0,
        inf,
        -inf,
        nan,
        5e-324,
    ]
    with np.errstate(all="ignore"):
        for a in values:
            for b in values:
                for ours, theirs in (
                    (exact.add(a, b, F64), np.add(a, b)),
                    (exact.multiply(a, b, F64), np.multiply(a, b)),
                    (exact.divide(a, b, F64), np.divide(a, b)),
                ):
                    assert np.isnan(ours) == np.isnan(theirs)
                    assert np.isnan(ours) or (ours == theirs and np.signbit(ours) == np.signbit(theirs)), (a, b)


def test_quotient_and_distance_to_the_nearest_tie() -> None:
    assert exact.quotient(0.25, float(np.float32(0.1))) == Fraction(0.25) / Fraction(float(np.float32(0.1)))
    assert exact.distance_to_tie(5, 2) == 0
    assert exact.distance_to_tie(-5, 2) == 0
    assert exact.distance_to_tie(Fraction(11, 4), 1) == Fraction(1, 4)
    assert exact.distance_to_tie(Fraction(9, 4), 1) == Fraction(-1, 4)
    assert exact.distance_to_tie(3, 1) == Fraction(1, 2)  # of two the lower, 2.5
    assert 0 < exact.distance_to_tie(float(np.nextafter(2.5, 3)), 1) < Fraction(1, 2**50)
    with pytest.raises(ZeroDivisionError):
        exact.quotient(1.0, 0.0)


def test_real_and_as_computed_part_near_ties() -> None:
    """0x1.4cccccp-2 / 0x1.99999ap-4 rounds to the tie 3.25 -> as computed; the real quotient lies beside it."""
    parted = 0
    s = np.float32(0.1)
    for k in range(256):
        x = np.float32((k + 0.5) * np.float64(s))
        real = exact.quantize_real(float(x), float(s), 0, Grid(0, 255))
        parted += real != int(np.clip(np.rint(x / s), 0, 255))
        assert exact.distance_to_tie(float(x), float(s)) == Fraction(float(x)) / Fraction(float(s)) - k - Fraction(1, 2)
    assert parted > 20


def test_dequantize_real_rounds_once() -> None:
    s = np.float32(0.1)
    assert exact.dequantize_real(3, float(s), 0, F32) == float(np.float32(3 * np.float64(s)))
    assert exact.dequantize_real(2**24 + 1, 1.0, 2**24, F32) == 1.0
