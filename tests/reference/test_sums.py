"""The bound of a sum: every order of addition stays within it, some reach it, and sums of other terms leave it."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference.blocks import Array
from halfeven.reference.sums import (
    bound,
    exact,
    gamma,
    least_of,
    nearest,
    one_of,
    rounded,
    rounded_each,
    unproved,
    within,
)

F32 = np.dtype(np.float32)
BF16 = np.dtype(ml_dtypes.bfloat16)
F16 = np.dtype(np.float16)


def sequential(x: Array) -> Any:
    return reduce(add, list(x))


def pairwise(x: Array) -> Any:
    return x[0] if x.size == 1 else pairwise(x[: x.size // 2]) + pairwise(x[x.size // 2 :])


def threads(x: Array) -> Any:
    """128 running sums, of every 128th element, and then those."""
    return sequential(np.array([sequential(x[i::128]) for i in range(min(128, x.size))], x.dtype))


def kahan(x: Array) -> Any:
    total, lost = x.dtype.type(0), x.dtype.type(0)
    for term in x:
        own = term - lost
        found = total + own
        lost = (found - total) - own
        total = found
    return total


def in_float64(x: Array) -> Any:
    return x.astype(np.float64).sum().astype(x.dtype)


def mixed(x: Array) -> Any:
    """Partial sums in float64, each rounded, and then sequentially."""
    return sequential(np.array([in_float64(part) for part in np.array_split(x, min(7, x.size))], x.dtype))


ORDERS: dict[str, Callable[[Array], Any]] = {
    "sequential": sequential,
    "reverse": lambda x: sequential(x[::-1]),
    "ascending": lambda x: sequential(x[np.argsort(np.abs(x.astype(np.float64)))]),
    "descending": lambda x: sequential(x[np.argsort(-np.abs(x.astype(np.float64)))]),
    "random": lambda x: sequential(np.random.default_rng(1).permutation(x)),
    "pairwise": pairwise,
    "threads": threads,
    "kahan": kahan,
    "float64": in_float64,
    "mixed": mixed,
}


def _data(kind: str, n: int, dtype: "np.dtype[Any]") -> Array:
    draw = np.random.default_rng(n)
    u = 2.0 ** -(ml_dtypes.finfo(dtype).nmant + 1)
    values: Array = {
        "normal": draw.normal(size=n),
        "uniform": draw.uniform(size=n),
        "activations": np.maximum(draw.normal(size=n), 0) * draw.lognormal(size=n),
        "lost": np.where(np.arange(n) == 0, 1, u),  # sequentially each is a tie, and is lost
        "lost, less than half": np.where(np.arange(n) == 0, 1, u * 0.75),
        "alternating": np.where(np.arange(n) % 2, -1, 1) * draw.lognormal(sigma=3, size=n),
        "subnormal": draw.normal(size=n) * float(ml_dtypes.finfo(dtype).smallest_normal),
    }[kind]
    return values.astype(dtype)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 100, 1000])
@pytest.mark.parametrize("dtype", [F32, BF16, F16, np.dtype(np.float64)], ids=str)
@pytest.mark.parametrize(
    "kind", ["normal", "uniform", "activations", "lost", "lost, less than half", "alternating", "subnormal"]
)
def test_no_order_leaves_the_bound(kind: str, dtype: "np.dtype[Any]", n: int) -> None:
    x = _data(kind, n, dtype)
    if kind == "alternating" and dtype == F16:
        x = (x.astype(np.float64) / 1024).astype(dtype)
    b = bound(x)
    with np.errstate(all="ignore"):
        for name, order in ORDERS.items():
            assert order(x) in b, name
    if n < 1 / float(gamma(1, Fraction(1, 1 << (ml_dtypes.finfo(dtype).nmant + 1)))):
        assert b.proved


@pytest.mark.parametrize("dtype", [F32, BF16, F16], ids=str)
@pytest.mark.parametrize("n", [3, 10, 60])
def test_an_order_reaches_most_of_the_bound(dtype: "np.dtype[Any]", n: int) -> None:
    share = bound(_data("lost", n, dtype)).share(sequential(_data("lost", n, dtype)))
    assert 0.6 < share <= 1  # less than 1 by the terms of second order, 60 / 2^8 of it in bfloat16
    assert dtype != F32 or share > 0.99


@pytest.mark.parametrize("n", [300, 1000, 4096])
def test_a_float32_accumulator_under_16_bit_terms(n: int) -> None:
    x = _data("uniform", n, F16)
    b = bound(x, np.float32, result=F16)
    wide = {name: order(x.astype(np.float32)) for name, order in ORDERS.items()}
    assert all(found.astype(F16) in b for found in wide.values())
    assert b.high - b.low <= 2.0 ** (math.frexp(b.high)[1] - 10)  # next to each other, or the same
    assert sequential(x) not in b


def test_the_height_of_a_tree_makes_the_bound_smaller() -> None:
    x = _data("uniform", 1024, F32)
    high, low = bound(x), bound(x, height=10)
    assert low.radius < high.radius / 100
    assert pairwise(x) in low
    assert sequential(_data("lost", 1024, F32)) not in bound(_data("lost", 1024, F32), height=10)
    with pytest.raises(ValueError, match="height=9 is not accepted for 1024 terms"):
        bound(x, height=9)


WRONG: dict[str, Callable[[Array], Any]] = {
    "drops a block": lambda x: in_float64(x[:-128]),
    "counts a block twice": lambda x: in_float64(np.append(x, x[:128])),
    "loses the last n mod 128": lambda x: in_float64(x[: x.size - x.size % 128 or None]),
    "accumulates in bfloat16": lambda x: sequential(x.astype(BF16)),
    "divides by n": lambda x: in_float64(x) / x.size,
    "divides by n, not n - 1": lambda x: in_float64(x) * (x.size - 1) / x.size,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("n", [500, 4111])
def test_other_sums_leave_the_bound_of_terms_of_one_size(wrong: str, n: int) -> None:
    x = np.full(n, 0.7, np.float32)
    found = WRONG[wrong](x)
    b = bound(x)
    if wrong == "divides by n, not n - 1" and n > 4096:
        assert found in b  # one of n, and n u of the bound: from 1/sqrt(u) on the two cannot be told apart
    else:
        assert found not in b
        assert b.share(found) > 1


@pytest.mark.parametrize("n", [500, 65_537, 1 << 20])
def test_exactly_summable_terms_have_one_sum(n: int) -> None:
    x = (np.arange(n) % 7 - 2).astype(np.float32) / 8
    b = bound(x)
    assert b.radius == 0
    assert b.low == b.high == float(exact(x)) == x.sum()
    assert np.float32(x[:-1].sum() + (x[-1] == 0)) not in b
    assert bound(np.ones(1 << 12, np.float32) * 3, flush=True).radius == 0
    assert bound(np.ones((1 << 8) + 1, BF16)).radius != 0  # the partial sums of which bfloat16 does not hold


def test_an_accumulator_that_does_not_hold_the_terms_is_refused() -> None:
    for own, dtype in ((F32, BF16), (np.dtype(np.float64), F32), (BF16, F16)):
        with pytest.raises(ValueError, match=f"dtype={dtype.name} is not accepted for terms of {own.name}"):
            bound(np.ones(3, own), dtype)


def test_two_terms_have_one_rounding() -> None:
    x = np.array([1, 2.0**-24 + 2.0**-40], F32)
    b = bound(x)
    assert x.sum() in b
    assert np.float32(1) not in b
    assert b.radius < 2.0**-52


def test_operations_and_errors_of_terms() -> None:
    draw = np.random.default_rng(0)
    a, c = (draw.normal(size=300).astype(F32) for _ in range(2))
    products = a * c
    real = (Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a, c, strict=True))
    true = nearest(sum(real, Fraction(0)), F32)
    assert true in bound(products, operations=1)
    assert bound(products[:2], operations=1).radius > bound(products[:2]).radius
    assert bound(products[:1]).radius == 0 < bound(products[:1], operations=1).radius
    assert float(products[0]) + 0.99 in bound(products[:1], errors=1.0)
    assert float(products[0]) + 1.1 not in bound(products[:1], errors=1.0)
    assert not bound(products, operations=1 << 24).proved


def test_flushed_terms_and_sums() -> None:
    tiny = np.full(10, 2.0**-130, F32)
    assert 0.0 not in bound(tiny)
    assert 0.0 in bound(tiny, flush=True)


def test_overflow_is_said() -> None:
    largest = float(np.finfo(F32).max)
    b = bound(np.array([largest, largest, -largest, 1], F32))
    assert not b.proved
    assert np.float32("nan") in b
    assert b.share(3.0) == 0
    one_sign = bound(np.array([largest, largest], F32))
    assert one_sign.proved
    assert math.inf in one_sign
    assert 1e38 not in one_sign
    assert not bound(np.array([largest, largest, -math.inf], F32)).proved  # infinity less infinity, in an order
    to_float16 = bound(np.array([60000, 60000, -60000], F16), F32, result=F16)
    assert to_float16.proved
    assert to_float16.low == to_float16.high == 60000
    assert not bound(_data("normal", 300, BF16)).proved  # more terms than 1/u


def test_numbers_that_no_float64_holds() -> None:
    """A sum or a share of a sum beyond float64 is a number like any other, and an unknown error excludes nothing."""
    tiny = bound(np.array([2.0**-1074, 2.0**-1022]), result=F16)
    assert tiny.share(0.0) == 0
    assert 2.0**-24 not in tiny
    huge = np.array([1.5e308, 1.5e308, -1e308])
    assert not bound(huge, errors=math.inf).proved
    assert not bound(np.ones(3, F32), errors=math.inf).proved
    assert not bound(huge[:2].repeat(2), operations=2**54).proved
    assert np.array_equal(rounded_each(huge[None, :2]), [math.inf])


@pytest.mark.parametrize(("terms", "total"), [([1, math.inf], math.inf), ([math.inf, -math.inf], math.nan)])
def test_what_is_not_finite(terms: list[float], total: float) -> None:
    b = bound(np.array([*terms, 1, 2], F32))
    assert b.proved
    assert total in b
    assert 1.0 not in b
    assert np.array_equal(rounded(np.array(terms, F32)), np.float32(total), equal_nan=True)
    assert -math.inf not in b


@pytest.mark.parametrize("dtype", [F32, F16, BF16, np.dtype(np.float64)], ids=str)
def test_exact_sums_are_rounded_once(dtype: "np.dtype[Any]") -> None:
    draw = np.random.default_rng(3)
    for n in (0, 1, 2, 50):
        x = (draw.normal(size=n) * 2.0 ** draw.integers(-12, 3, n)).astype(dtype)
        total = sum((Fraction(float(v)) for v in x), Fraction(0))
        assert exact(x) == total
        rows = np.stack([x, -x, x * 0])
        assert rounded_each(rows).tolist() == [float(rounded(row)) for row in rows]
        low = nearest(total, dtype)
        assert float(rounded(x)) == low == float(np.asarray(low, dtype))
        if dtype == np.float64:
            assert low == math.fsum(x.tolist())
    for exponent in (-25, -24, -14, 0, 15, 16):
        for more in (0, 1, 2**10 + 1):
            value = Fraction(2) ** exponent * (1 + Fraction(more, 2**11))
            with np.errstate(over="ignore"):
                assert nearest(value, F16) == float(np.float16(float(value)))


def test_several_sums() -> None:
    sets = [np.ones(3, F32), np.full(40, 0.1, F32)]
    found = within(sets, (2, 1), F32)
    assert not found.is_exact
    assert found.counts.tolist() == [[3], [40]]
    near = np.nextafter(F32.type(4), F32.type(5))
    assert found.shares(np.array([[3], [4]], F32)).max() == 0  # of 4 it is the exact sum, rounded
    assert 0 < found.shares(np.array([[3], [near]], F32))[1] <= 1
    assert (found.shares(np.array([[3.1], [4.1]], F32)) > 1).all()
    assert within([], (0,), F32).is_exact
    assert within([np.full(40, 0.7, F32)], (), F32, last=F16).is_exact is False
    narrow = within([np.full(40, 0.7, F32)], (), F32, last=F16).allowed[0][0]
    assert narrow.low == narrow.high == 28
    assert not unproved((2,)).proved.any()


def test_which_sum_is_the_least() -> None:
    one, two = _data("uniform", 1000, F32), _data("uniform", 1000, F32)[::-1].copy()
    two[0] = np.nextafter(two[0], F32.type(2))

    def which(*rows: Array, dtype: Any = F32, errors: Any = None) -> tuple[int, ...]:
        sets = np.stack(rows)
        return least_of(sets, sets.sum(axis=1, dtype=np.float64), dtype, errors)

    assert which(one, two) == (0, 1)
    assert which(one, two + F32.type(1)) == (0,)
    assert which(one, two, dtype=np.float64) == ()  # float64 adds both exactly
    assert which(one, two, dtype=np.float64, errors=np.full((2, 1000), 1e-9)) == (0, 1)
    assert which(one, two * F32.type(np.nan)) == ()
    assert which(np.ones(9, F32), np.ones(9, F32)) == ()  # each exact: which of equal ones is the formula's to say
    either = one_of([[1.0, 2.0], [3.0]], (2,))
    assert (either.shares(np.array([2.0, 3.0])) <= 1).all()
    assert either.shares(np.array([1.5, 4.0])).min() > 1
    assert one_of([[1.0]], ()).is_exact
