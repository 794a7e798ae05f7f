"""What mutants of the bounds of sums are asked: terms at the ends of every dtype, trees of every height, ties."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import inf, nan
from typing import Any

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.reference import sums
from mutants.asked import Row

__all__ = ["KINDS"]

_TERMS: tuple[tuple[float, ...], ...] = (
    (),
    (0.0, -0.0),
    (-0.0, -0.0),
    (0.0, 2.0**30, 2.0**50),
    (1 + 2.0**-52, -1.0),
    (-3e38, -3e38),
    (3e38, 3e38, -inf),
    (65472.0, -32.0),
    (0.1,),
    (-0.1, 0.0),
    (0.1, 0.3),
    (0.1,) * 5,
    (-0.7, 0.3, 0.1, -2.4, 1e-3),
    (1.0, 2.0**-24, 2.0**-24),
    (1.0, 2.0**-53, 2.0**-53, 2.0**-54),
    (0.5, 3.0, 64.0),
    (0.5, 3.0, 2.0**22),
    (0.5, 3.0, 2.0**24),
    (0.5, 2.0**24 - 1),
    (0.5, 2.0**23 - 0.5, 1.0),
    (0.5, 2.0**51),
    (0.5, 2.0**52),
    (2.0**-20, 1023.0),
    (1.0, 2047.0),
    (1.0, 2048.0),
    (1.0, 255.0),
    (1.0, 256.0),
    (3.0, -3.0),
    (1.0, -1.0, 2.0**-30),
    (65504.0, 65504.0),
    (65504.0, 65504.0, -65504.0),
    (3e38, 3e38),
    (3e38, 3e38, -3e38),
    (1.5e308, 1.5e308, -1e308),
    (inf, 1.0),
    (inf, -inf),
    (-inf, 2.0, 3.0),
    (nan, 1.0),
    (nan, inf),
    (1e300, inf),
    (1e-40, 1e-40, 1e-40),
    (2.0**-149, 2.0**-126),
    (2.0**-24, 2.0**-14),
    (2.0**-14, 2.0**-14),
    (2.0**-126, 2.0**-126),
    (2.0**-1074, 2.0**-1022),
    tuple(1 / k for k in range(1, 40)),
    tuple((-1) ** k / k for k in range(1, 40)),
)
_FRACTIONS = tuple(
    Fraction(sign * n, d)
    for n, d in ((1, 1), (1, 3), (2, 3), (5, 7), (2049, 1), (4097, 2), (65519, 1), (65520, 1), (255, 256), (1, 2**150),
                 (3, 2**150), (2**24 + 1, 1), (2**25 + 3, 2**60), (2**128 - 2**103, 1), (10**310, 1), (7, 2**1074))
    for sign in (1, -1)
)  # fmt: skip


def _cast(terms: tuple[float, ...], dtype: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array(terms, np.float64).astype(dtype)


def _told(b: sums.Bound) -> tuple[str, ...]:
    """A bound, and what it says of numbers at its ends and beside them."""
    near = {b.low, b.high, 0.0, 1.0, inf, -inf, nan}
    for value in (b.low, b.high, float(b.exact) if b.exact == b.exact and abs(b.exact) < 1e308 else 0.0):
        with np.errstate(over="ignore"):
            near |= {float(np.nextafter(np.float32(value), np.float32(to))) for to in (inf, -inf)}
            near |= {float(np.nextafter(value, to)) for to in (inf, -inf)}
    said = [f"{v!r}: {v in b}, {b.share(v)!r}" for v in sorted(near, key=repr)]
    return (repr(b), str(b.proved), *said)


def _bound(terms: np.ndarray, **given: Any) -> tuple[str, ...]:
    return _told(sums.bound(terms, **given))


def bounds() -> Iterator[Row]:
    """Bounds of sums, with every argument."""
    for terms, (name, dtype) in product(_TERMS, DTYPES.items()):
        x = _cast(terms, dtype)
        for to in (None, *DTYPES):
            yield Row(f"bound in {name}", _bound, {"terms": x, "dtype": to})
        for result in ("float16", "float64"):
            yield Row(f"bound of {name}", _bound, {"terms": x, "result": result})
        for height in (0, 2, 6):
            yield Row(f"bound of {name}, high", _bound, {"terms": x, "height": height})
        each = np.resize([0.0, 1e-5, 2.0**-30], len(terms))
        for given in ({"operations": 1}, {"operations": 3}, {"flush": True}, {"errors": 1e-6}, {"errors": each},
                      {"errors": inf}, {"operations": 2, "flush": True}, {"errors": 1e-3, "height": 6}):  # fmt: skip
            yield Row(f"bound of {name}, loose", _bound, {"terms": x, **given})
        yield Row("exact", lambda x: repr(sums.exact(x[np.isfinite(x)])), {"x": x})
        for to in (None, "float32", "float16"):
            yield Row("rounded", sums.rounded, {"terms": x, "dtype": to})
    yield from _special_bounds()


def _special_bounds() -> Iterator[Row]:
    yield Row("loose beyond float64", _bound, {"terms": np.full(4, 1.5e308), "operations": 2**54})
    many = np.full(2**12, 1.0 + 2.0**-10, np.float16)
    for count in (2**10, 2**11, 2**11 + 1, 2**12):
        yield Row("as many as 1/u", _bound, {"terms": many[:count]})
    for size, to in product((2**24 + 2, 2**25), (1.0, -1.0)):  # two halves of which one is at an end
        yield Row("beside the largest", _bound, {"terms": np.float32([3.4028235e38, to * size * 2.0**79, -1.0])})
    low = np.array([65000.0, -3.0, 2.0**-10, 1.0], np.float16)
    for errors in (0.0, 1.0, 2.9, 4.0, 100.0):
        yield Row("beside the largest", _bound, {"terms": low, "errors": errors})
    for to in ("float16", "bfloat16", "float32"):  # of a range, and of as many digits
        yield Row("does not hold", _bound, {"terms": _cast((1.0,), DTYPES["bfloat16"]), "dtype": to})
    for some in ((-inf, nan), (nan, nan, inf), (inf, inf), (1e308, -inf)):
        yield Row("special", _bound, {"terms": np.array(some)})
    long = np.arange(1, 2**13, dtype=np.float64) * (2.0**60 + 2.0**8)
    yield Row("exact, long", lambda x: repr(sums.exact(x)), {"x": long})


def tools() -> Iterator[Row]:
    """Real numbers rounded, the constants, and whether an order matters."""
    for value, dtype in product(_FRACTIONS, DTYPES):
        yield Row("nearest", sums.nearest, {"value": value, "dtype": dtype})
    for count, unit in product((0, 1, 2, 7, 8, 9), (Fraction(1, 8), Fraction(1, 3), Fraction(1, 2**24))):
        yield Row("gamma", lambda count, unit: repr(sums.gamma(count, unit)), {"count": count, "unit": unit})
    for terms, dtype, flush in product(_TERMS, DTYPES.values(), (False, True)):
        x = _cast(terms, dtype)
        for to in (None, *DTYPES):
            yield Row("in any order", sums.in_any_order, {"terms": x, "dtype": to, "flush": flush})
        yield Row("in any order by default", sums.in_any_order, {"terms": x})
        both = np.stack([x, x[::-1] * x.dtype.type(0.5)])
        yield Row("rows in any order", sums.in_any_order, {"terms": both, "flush": flush})
    for terms, dtype in product(_TERMS, DTYPES.values()):
        x = _cast(terms, dtype)
        with np.errstate(all="ignore"):
            sets = np.stack([x, -x, x[::-1] * x.dtype.type(3)])
        for to in (None, "float32", "float16"):
            yield Row("rounded each", sums.rounded_each, {"sets": sets, "dtype": to})


def arrays() -> Iterator[Row]:
    """Arrays of open sums: what each element may be, and the least of several."""
    for terms, (name, dtype) in product(_TERMS, DTYPES.items()):
        x = _cast(terms, dtype)
        others = [x, x[:1], np.concatenate([x, x])]
        for to, last in product((None, "float32", "float16"), (None, "bfloat16")):
            given = {"sets": others, "shape": (3,), "dtype": name, "result": to, "last": last}
            yield Row(f"within, {name}", _within, given)
            given |= {"sets": np.stack([x, x]).reshape(2, 1, -1), "shape": (2, 1)}
            yield Row(f"within, {name}, of an array", _within, given)
        with np.errstate(all="ignore"):
            sets = np.stack([x, x * dtype.type(1.0009765625), x[::-1], x * dtype.type(2)])
            totals = sets.sum(axis=1, dtype=np.float64)
        for errors in (None, np.full(sets.shape, 1e-4), np.full(sets.shape, 3e-1)):
            for own in (totals, totals[::-1], np.full(4, nan)):
                given = {"sets": sets, "totals": own, "dtype": name, "errors": errors}
                yield Row(f"least, {name}", sums.least_of, given)
    one: dict[str, Any] = {"shape": (2,), "dtype": "float64"}
    yield Row("least of none", sums.least_of, {"sets": np.zeros((0, 2)), "totals": np.zeros(0), "dtype": "float32"})
    for choices, shape in (
        ([[1.0, 2.0]], (1,)),
        ([[1.0], [2.5]], (2, 1)),
        ([[1.0, 1.0]], ()),
        ([[inf, nan, -3.0]], (1,)),
    ):
        yield Row(
            "one of", lambda choices, shape: _open(sums.one_of(choices, shape)), {"choices": choices, "shape": shape}
        )
    mixed = sums.Open(((sums.bound(np.ones(3)), *sums.unproved((1,)).allowed[0]),) * 2, (2,))
    yield Row("partly unproved", _open, {"found": mixed})
    beside = np.array([[1.0, 1.0, 1.0], [1.0, 2.0**-53, 2.0**-53]])
    yield Row("exact of two rows", lambda x: repr(sums.exact(x)), {"x": beside})
    yield Row(
        "rounded each of matrices",
        sums.rounded_each,
        {"sets": np.stack([beside, beside.T[:2].repeat(3)[:6].reshape(2, 3)])},
    )
    yield Row("an exact row and another", _within, {**one, "sets": beside})
    yield Row("an exact one and another", _within, {**one, "sets": [np.ones(3), np.array([1.0, 2.0**-53, 2.0**-53])]})
    yield Row("tensors", _within, {**one, "sets": np.array([[[0.1, 0.3], [0.2, 0.7]]] * 2), "result": "float16"})
    for shape in ((), (0,), (2, 3)):
        yield Row("unproved", lambda shape: _open(sums.unproved(shape)), {"shape": shape})


def _within(**given: Any) -> tuple[Any, ...]:
    return _open(sums.within(**given))


def _open(found: sums.Open) -> tuple[Any, ...]:
    """Everything that an open array says."""
    if not found.allowed:
        return (found.is_exact, str(found.shape))
    seen = [found.shares(np.full(found.shape, value)) for value in (0.0, 1.0, 0.1 + 2.0**-40, inf)]
    seen.append(found.shares(np.full(found.shape, -1.0, np.float32)))
    lows = np.array([b[0].low for b in found.allowed]).reshape(found.shape)
    said = tuple(repr(b) for bounds in found.allowed for b in bounds)
    return (found.is_exact, found.proved, found.counts, *seen, found.shares(lows), *said)


KINDS = (bounds, tools, arrays)
