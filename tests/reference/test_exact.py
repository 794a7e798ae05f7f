"""Exact quotients; and the oracle itself, against the machine's float64 and ml_dtypes' casts."""

from fractions import Fraction
from math import inf, nan

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference.exact import distance_to_tie, quotient
from oracles import exact

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
    assert quotient(0.25, float(np.float32(0.1))) == Fraction(0.25) / Fraction(float(np.float32(0.1)))
    assert distance_to_tie(5, 2) == 0
    assert distance_to_tie(-5, 2) == 0
    assert distance_to_tie(Fraction(11, 4), 1) == Fraction(1, 4)
    assert distance_to_tie(Fraction(9, 4), 1) == Fraction(-1, 4)
    assert distance_to_tie(3, 1) == Fraction(1, 2)  # of two the lower, 2.5
    assert 0 < distance_to_tie(float(np.nextafter(2.5, 3)), 1) < Fraction(1, 2**50)
    with pytest.raises(ZeroDivisionError):
        quotient(1.0, 0.0)
