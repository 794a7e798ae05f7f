"""Gradients, minima and maxima of every target: elements and sums, bit for bit against the reference."""

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from core_dtypes import DTYPES
from targets import expected
from targets.build import MACHINES, built, edited
from targets.driver import END, GRADIENTS, START, Driver, Job

Array = npt.NDArray[Any]
Target = tuple[Driver, str]
# Memory's dtype of the elements, and the dtype of the arithmetic.
_PAIRS = (("F32", "F32"), ("F64", "F64"), ("F32", "F16"), ("F32", "BF16"), ("BF16", "F32"), ("F16", "F32"))
_KINDS = [(op, *pair) for op in GRADIENTS for pair in _PAIRS if op != "Dequantize" or pair[0] not in {"BF16", "F16"}]
_F64 = np.dtype("float64")


def gradient_jobs(op: str, into: str, compute: str) -> Iterator[Job]:
    rng = np.random.default_rng(5)
    t, held = DTYPES[compute], _F64 if compute == "F64" else np.dtype("float32")
    places = itertools.cycle([(END, END, END), (START, START, START), (8, END, 16), (END, 24, 8)])
    # The reference computes in the narrowest dtype that a grid allows: the grid is one that has it compute in t.
    grid = (-8, 7) if t.itemsize == 2 else (-2048, 2047) if into == "F16" else (-128, 127)
    wild = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30 if DTYPES[into].itemsize > 2 and t.itemsize > 2 else 3e4]
    sizes = [(1, n) for n in range(1, 71)] + [(r, n) for r in (2, 4, 5, 9) for n in (1, 3, 16, 32, 33, 64, 100)]
    for (rows, n), columns, sums in itertools.product(sizes, (False, True), (False, True)):
        count = n if columns else rows
        s = rng.choice([0.5, 0.1, 1.7, 2.0, 0.0371], count).astype(t).astype(held)
        o = rng.choice([0.0, -0.0, 3.0, -2.0, 0.5] if n % 5 == 0 else [0.0, 3.0, -2.0], count).astype(t).astype(held)
        ends = max(2 * grid[0], -6000), min(2 * grid[1], 6000)
        codes = rng.integers(*ends, (rows, n)) + rng.choice([0, 0.5, 0.25], (rows, n))
        x = (codes * (s[None, :] if columns else s[:, None])).astype(t)
        # Float64 holds sums of like float32 in any order: of others it shows.
        spread = 2.0 ** rng.integers(-50, 50, (rows, n)) if n % 4 == 1 and into != "F16" and t.itemsize > 2 else 1
        g = (rng.normal(size=(rows, n)) * 3 * spread).astype(t)
        if n % 3 == 0:
            x[rng.integers(0, rows), rng.integers(0, n)] = rng.choice(wild)
            g[rng.integers(0, rows), rng.integers(0, n)] = rng.choice(wild)
        memory = DTYPES[into]
        first = np.stack([rng.normal(size=count), np.full(count, -0.0)]) if sums else np.empty(0)
        yield Job(
            "backward", x.astype(memory), op, into, compute, g=g.astype(memory), s=s, o=o, first=first,
            made=((memory, x.size), (_F64, count * sums), (_F64, count * sums)), columns=columns, sums=sums, grid=grid,
            shift=0.3 if op == "QuantizeDequantize" and n % 7 == 0 else 0.0,
            gaps=(8 * (n % 2), 16 * (n % 3), 8 * (n % 5)), places=next(places),
        )  # fmt: skip


@functools.cache
def asked(op: str, into: str, compute: str) -> tuple[list[Job], list[list[Array]]]:
    """Jobs and what comes of them, once for all targets."""
    given, wanted = list(gradient_jobs(op, into, compute)), []
    for job in given:
        dx, *terms = expected.gradients(job)
        each = [dx.ravel()]
        for k, values in enumerate(terms):
            if not job.sums:
                each.append(np.empty(0))
            elif job.columns:
                each.append(expected.sums_of_columns(np.asarray(job.first)[k], values))
            else:
                each.append(expected.sums_of_rows(values))
        wanted.append(each)
    return given, wanted


def compare(target: Target, given: Sequence[Job], wanted: Sequence[Sequence[Array]]) -> int:
    driver, isa = target
    count = 0
    for job, found, right in zip(given, driver.answers(isa, given), wanted, strict=True):
        assert found is not None
        for name, ours, theirs in zip(("dx", "ds", "d_o"), found, right, strict=True):
            wrong = expected.differing(ours, theirs)
            assert not len(wrong), f"{name}[{wrong[0]}]={ours[wrong[0]]!r}, expected {theirs[wrong[0]]!r}: {job}"
            count += ours.size
    return count


@pytest.mark.parametrize("kind", _KINDS, ids="-".join)
def test_gradients(target: Target, kind: tuple[str, str, str]) -> None:
    assert compare(target, *asked(*kind)) > 10000


def _number(keys: Array, dtype: "np.dtype[Any]") -> Array:
    """What stands for itself in order: see core/keys.h."""
    rest = np.iinfo(keys.dtype).max
    found: Array = np.where(keys < 0, keys ^ rest, keys).astype(keys.dtype).view(dtype)
    return found


def _extreme(values: Array, *, least: bool) -> Any:
    """-0.0 is below +0.0."""
    end = values.min() if least else values.max()
    if end != 0:
        return end
    negative = np.signbit(values[values == 0])
    return np.copysign(end, -1 if (negative.any() if least else negative.all()) else 1)


@pytest.mark.parametrize("dtype", ["F32", "F64", "F16", "BF16"])
@pytest.mark.parametrize("magnitudes", [False, True])
def test_minima_and_maxima(target: Target, dtype: str, magnitudes: bool) -> None:
    compare_ends(target, dtype, magnitudes=magnitudes)


def compare_ends(target: Target, dtype: str, *, magnitudes: bool) -> None:
    rng = np.random.default_rng(3)
    driver, isa = target
    t = DTYPES[dtype]
    key = np.dtype(f"i{t.itemsize}")
    given = []
    for (rows, n), columns in itertools.product([(1, n) for n in range(1, 71)] + [(5, 33), (9, 64), (6, 300)], (0, 1)):
        x = (rng.normal(size=(rows, n)) * 5).astype(t)
        if n % 3:
            x.flat[rng.integers(0, x.size, 2)] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, -np.nan], 2)
        if n % 7 == 0:
            x = np.where(rng.integers(0, 2, x.shape), 0.0, -0.0).astype(t)
        count = n if columns else rows
        info = np.iinfo(key)
        low = np.full(count, info.max, key)
        # Keys of magnitudes have no sign: 0 is the least.
        first = np.stack([low, np.full(count, 0 if magnitudes else info.min, key)])
        given.append(
            Job("reduce", x, into=dtype, first=first, made=((key, count), (key, count)), columns=bool(columns),
                magnitudes=magnitudes, gaps=(t.itemsize * (n % 4), 0, 0), places=(START if n % 2 else END, 0, 0))
        )  # fmt: skip
    for job, found in zip(given, driver.answers(isa, given), strict=True):
        assert found is not None
        low, high = (_number(keys, t) for keys in found)
        x = np.abs(job.x) if magnitudes else job.x
        for i, values in enumerate(x.T if job.columns else x):
            wanted = np.isnan(values).any()
            assert (np.isnan(high[i]) or (not magnitudes and np.isnan(low[i]))) == wanted, str(job)
            if wanted:
                continue
            ends = [(high[i], _extreme(values, least=False))]
            ends += [] if magnitudes else [(low[i], _extreme(values, least=True))]
            for ours, theirs in ends:
                assert (ours, np.signbit(ours)) == (theirs, np.signbit(theirs)), str(job)


_ANY = [0.0, -0.0, 1.0, -2.5, 100.3, 65519.9, 65520.1, 1e-8, 3e-5, np.inf, -np.inf, np.nan, 1 + 2**-8 + 2**-40, 1e38]


@functools.cache
def moves() -> tuple[list[Job], list[Array]]:
    """Elements gathered, scattered and rounded to another dtype, and what they become."""
    given, wanted = [], []
    with np.errstate(all="ignore"):
        values = np.resize(np.array(_ANY), 37)
        for (into, t), compute in itertools.product(DTYPES.items(), ("F32", "F64", "F16", "BF16")):
            integers = np.resize(np.array([0, 1, 100, 2**24 + 1, 2**31 - 1, -77]), 37)
            x = integers.astype(t) if t.kind in "iu" else values.astype(t)
            wide = _F64 if compute == "F64" else np.dtype("float32")
            for gap in (0, t.itemsize, 3):
                given.append(Job("load", x[:, None], into=into, compute=compute, made=((wide, 37),), gaps=(gap, 0, 0)))
                wanted.append(expected.loaded(x, compute).astype(wide))
            if into not in {"F32", "F64", "F16", "BF16"}:
                continue
            reals = values.astype(DTYPES[compute]).astype(wide)
            for gap in (0, 2 * t.itemsize):
                job = Job("save", reals[:, None], compute=compute, out=into, made=((t, 37),), gaps=(0, 0, gap))
                given.append(job)
                wanted.append(expected.saved(reals, into))
            given.append(replace(job, part="save_sums", x=values[:, None], gaps=(0, 0, 0)))
            wanted.append(expected.saved(values, into, compute))
        for item, step in itertools.product((2, 4, 8), (0, 1, 8)):
            x = np.arange(37, dtype=f"u{item}")
            given.append(Job("copy", x[:, None], made=((x.dtype, 37),), gaps=(step, 0, 0)))
            wanted.append(x)
    return given, wanted


def test_loads_and_stores(target: Target) -> None:
    driver, isa = target
    given, wanted = moves()
    for job, found, right in zip(given, driver.answers(isa, given), wanted, strict=True):
        assert found is not None
        wrong = expected.differing(found[0], right)
        assert not len(wrong), f"{job.x.flat[wrong[0]]!r}: {found[0][wrong[0]]!r}, not {right[wrong[0]]!r}: {job}"


_KERNELS, _VECTORS = "cpu/backward/kernels.h", "cpu/backward/quantize_dequantize.h"
_LANES = "(sum[0] + sum[2]) + (sum[1] + sum[3])"
# The room and the target, the file, and what is something else in it.
MUTANTS = {
    "lanes in another order": ("backward/baseline", _KERNELS, _LANES, "(sum[0] + sum[1]) + (sum[2] + sum[3])"),
    "terms in another order": ("backward/baseline", _KERNELS, "(part[0] + part[1]) + (part[2] + part[3])",
                               "(part[0] + part[2]) + (part[1] + part[3])"),
    "the end outside": ("backward/baseline", "core/gradient.h", "(code <= high)", "(code < high)"),
    "the offset's sum of all": ("backward/baseline", "core/gradient.h", "d_o = inside ? C(0) : gs", "d_o = gs"),
    "vectors' lanes in another order": ("backward/avx2", _VECTORS, _LANES, "(sum[0] + sum[1]) + (sum[2] + sum[3])"),
    "vectors' end outside": ("backward/avx2", "cpu/backward/elements.h", "clipped == rounded",
                             "(clipped == rounded) & (rounded < c.high)"),
    "short rows in another order": ("backward/avx2", _VECTORS, "k / 2 * 4 + k % 2 + 2", "k / 2 * 4 + 3 - k % 2"),
    "zeros without their signs": ("reduce/baseline", "core/keys.h", "bits ^ ((bits >> kSign) & kRest)",
                                  "bits == ~kRest ? K(0) : bits ^ ((bits >> kSign) & kRest)"),
    "magnitudes with their signs": ("reduce/baseline", "core/keys.h", "bits & kRest : ", "bits : "),
    "the fourth column left out": ("reduce/baseline", "cpu/reduce/kernels.h", "more(more(ka, kb), more(kc, kd))",
                                   "more(more(ka, kb), kc)"),
}  # fmt: skip


@pytest.mark.skipif(bool(MACHINES["host"].missing), reason=MACHINES["host"].missing)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_seen(name: str, tmp_path: Path) -> None:
    only, *edit = MUTANTS[name]
    driver = Driver(MACHINES["host"], built(MACHINES["host"], edited(tmp_path, tuple(edit)), only=only))
    room, isa = only.split("/")
    if isa not in driver.targets():
        pytest.skip(f"not run: this processor has no {isa}")

    def ask() -> None:
        if room == "backward":
            compare((driver, isa), *asked("QuantizeDequantize", "F32", "F32"))
            return
        for magnitudes in (False, True):
            compare_ends((driver, isa), "F32", magnitudes=magnitudes)

    with pytest.raises(AssertionError):
        ask()
