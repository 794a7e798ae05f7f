"""Every input there is: all 2^32 float32 (opt-in), and all 2^16 float16 and bfloat16, quantized per tensor.

A code never falls where its input rises, so that 2^32 expected codes are a few hundred runs. Where each begins is found
by bisection over the oracle in fractions; what an implementation gives is compared with the runs, chunk by chunk.

``HALFEVEN_EXHAUSTIVE=1`` runs the float32 part: some seconds per case with compiled kernels, a minute without. It says
how far it is, and goes on where it was interrupted (pytest's cache has the chunks done, as long as no source changes).
"""

import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import torch

from halfeven import optimized
from halfeven.optimized import affine
from halfeven.reference import Grid, model
from halfeven.reference.systems import PROFILES
from oracles import exact
from oracles.exact import FORMATS

Array = npt.NDArray[Any]
Quantize = Callable[[torch.Tensor, float, int, Grid], torch.Tensor]

AIMET = PROFILES["aimet"]
NAN_TO_ZERO_POINT = replace(AIMET.model, nan="zero-point")  # of integer codes, which have no NaN
CHUNK, STEP = 2**26, 2**18  # of what is remembered as done, and of what is compared at once, in the cache
SIGNED, UNSIGNED = Grid(-128, 127), Grid(0, 255)
OFFSETS = np.arange(STEP, dtype=np.uint32)
LOWEST, HIGHEST = 0x007FFFFF, 0xFF800000  # the indices of the infinities; beyond are the NaNs


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """A step is some tenths of a millisecond: on a busy machine threads that wait for one another take far longer."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@dataclass(frozen=True)
class Case:
    """A grid, a scale that float32 holds, and a zero point."""

    grid: Grid
    scale: float
    zero_point: int

    def __str__(self) -> str:
        return f"{self.grid.qmin}..{self.grid.qmax} scale {self.scale.hex()} zero point {self.zero_point}"


CASES = (
    Case(SIGNED, float(np.float32(0.0371)), 0),
    Case(SIGNED, 1.0, 37),  # ties are representable, and an odd zero point makes odd codes of them
    Case(SIGNED, 1 - 2.0**-24, -1),
    Case(SIGNED, float(np.float32(1e-40)), 3),  # subnormal
    Case(SIGNED, 3e38 // 2.0**110 * 2.0**110, -77),
    Case(UNSIGNED, float(np.float32(1 / 255)), 128),
    Case(UNSIGNED, 0.5, 113),
    Case(UNSIGNED, 2.0**-149, 1),  # the least number
    Case(UNSIGNED, 2.0**-126, 255),
    Case(UNSIGNED, float(np.float32(3e30)), 300),  # a zero point beyond the grid
)


def at(index: int) -> float:
    """The float32 at a place of the total order: 0 is the negative NaN of most bits, 2^31 is +0.0."""
    bits = index ^ 0x80000000 if index >= 2**31 else index ^ 0xFFFFFFFF
    return float(np.uint32(bits).view(np.float32))


@cache
def runs(case: Case) -> tuple[list[int], list[int]]:
    """Where runs of one code begin in the total order of float32, and the codes; NaNs are the first and the last."""
    form = FORMATS["float32"]

    def code(x: float) -> int:
        return int(exact.quantize(NAN_TO_ZERO_POINT, x, case.scale, -case.zero_point, case.grid, form, form))

    starts, codes = [0, LOWEST], [code(float("nan")), code(float("-inf"))]
    while codes[-1] < code(float("inf")):
        low, high = starts[-1], HIGHEST  # at low the last code found, at high a greater one
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if code(at(middle)) == codes[-1] else (low, middle)
        starts.append(high)
        codes.append(code(at(high)))
    return [*starts, HIGHEST + 1], [*codes, code(float("nan"))]


def inputs(start: int) -> torch.Tensor:
    """``STEP`` neighbours in the total order, of one sign."""
    bits = OFFSETS + np.uint32(start ^ 0x80000000) if start >= 2**31 else np.uint32(start ^ 0xFFFFFFFF) - OFFSETS
    return torch.from_numpy(bits.view(np.float32))


def expected(case: Case, start: int) -> Array:
    starts, codes = runs(case)
    first, last = bisect_right(starts, start) - 1, bisect_right(starts, start + STEP - 1)
    ends = [*starts[first + 1 : last], start + STEP]
    lengths = np.diff([start, *ends])
    return np.repeat(np.array(codes[first:last], np.int8 if case.grid.qmin < 0 else np.uint8), lengths)


def differing(quantize: Quantize, case: Case, start: int) -> list[tuple[str, int, int]]:
    """The first few inputs of a step whose code is not the expected one: input, code, code expected."""
    x = inputs(start)
    found = quantize(x, case.scale, case.zero_point, case.grid).numpy()
    wanted = expected(case, start)
    assert found.dtype == wanted.dtype
    if np.array_equal(found.view(np.uint64), wanted.view(np.uint64)):
        return []
    where = np.flatnonzero(found != wanted)[:5]
    return [(float(x[i]).hex(), int(found[i]), int(wanted[i])) for i in where]


def ours(x: torch.Tensor, scale: float, zero_point: int, grid: Grid) -> torch.Tensor:
    dtype = torch.int8 if grid.qmin < 0 else torch.uint8
    return affine.quantize(x, torch.tensor(scale), zero_point, qmin=grid.qmin, qmax=grid.qmax, dtype=dtype)


def by_reciprocal(x: torch.Tensor, scale: float, zero_point: int, grid: Grid) -> torch.Tensor:
    reciprocal = 1 / torch.tensor(scale)
    codes = ((x * reciprocal).round() + zero_point).nan_to_num(zero_point).clamp(grid.qmin, grid.qmax)
    return codes.to(torch.int8 if grid.qmin < 0 else torch.uint8)


def steps_of_thresholds(case: Case) -> Iterator[int]:
    """The steps in which codes change, from the least in magnitude on."""
    yield from sorted({start // STEP * STEP for start in runs(case)[0]}, key=lambda s: abs(s - 2**31))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_inputs_around_some_thresholds(case: Case) -> None:
    steps = [*steps_of_thresholds(case)]
    lengths = np.diff([*runs(case)[0], 2**32])
    assert (lengths.sum(), lengths.min() > 0) == (2**32, True)
    for start in [*steps[:6], *steps[-6:]]:
        assert differing(ours, case, start) == []


def test_another_arithmetic_is_found_out() -> None:
    case = CASES[0]
    assert any(differing(by_reciprocal, case, start) for start in steps_of_thresholds(case))
    moved = replace(case, zero_point=1)
    assert all(differing(lambda x, *_: ours(x, moved.scale, 1, case.grid), case, s) for s in [2**31, 2**31 - STEP])


def sources() -> str:
    """Of the implementation: what was found out about another one is forgotten."""
    files = sorted(p for p in Path(optimized.__path__[0]).rglob("*") if p.suffix in {".py", ".h", ".cpp", ".so"})
    return hashlib.sha256(b"".join(p.read_bytes() for p in files)).hexdigest()[:16]


@pytest.mark.exhaustive
@pytest.mark.skipif(
    os.environ.get("HALFEVEN_EXHAUSTIVE") != "1",
    reason="opt-in: HALFEVEN_EXHAUSTIVE=1 tries all 2^32 inputs of ten cases, for some minutes",
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_float32_inputs(case: Case, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    memory = getattr(request.config, "cache", None)
    key = f"halfeven/exhaustive/{sources()}/{case}"
    begin = memory.get(key, 0) if memory else 0
    for chunk in range(begin, 2**32, CHUNK):
        with capsys.disabled():
            print(f"\r{case}: {chunk / 2**32:4.0%} ", end="", flush=True)
        for start in range(chunk, chunk + CHUNK, STEP):
            assert differing(ours, case, start) == []
        if memory:
            memory.set(key, chunk + CHUNK)
    with capsys.disabled():
        print(f"\r{case}: 100% ", flush=True)


def scales(dtype: "np.dtype[Any]") -> Array:
    """300 positive scales of a 16-bit dtype over all its exponents, subnormal ones too, with changing significands."""
    highest = int(np.asarray(ml_dtypes.finfo(dtype).max, dtype).view(np.uint16))
    bits = np.unique(np.concatenate([[1, 2, 3, highest - 1, highest], np.linspace(1, highest, 295).astype(np.uint16)]))
    return bits.astype(np.uint16).view(dtype)


@pytest.mark.parametrize("grid", [SIGNED, UNSIGNED, Grid(-8, 7)], ids=str)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_all_16_bit_inputs_for_hundreds_of_scales(name: str, grid: Grid) -> None:
    dtype = np.dtype(np.float16 if name == "float16" else ml_dtypes.bfloat16)
    bits = np.arange(2**16, dtype=np.uint16)
    x, tensor = bits.view(dtype), torch.from_numpy(bits).view(getattr(torch, name))
    assert len(scales(dtype)) > 290
    for i, scale in enumerate(scales(dtype)):
        zero_point = (0, grid.qmin + 3, grid.qmax, 1)[i % 4]
        step = torch.from_numpy(scale.reshape(1).view(np.uint16)).view(getattr(torch, name)).reshape(())
        with np.errstate(all="ignore"):
            s, o = np.asarray(scale), np.asarray(-zero_point)
            codes = model.quantize(NAN_TO_ZERO_POINT, x, s, o, grid, None)
            reals = AIMET.fake_quantize(x, s, o, grid) if i % 4 == 1 else None
        code_dtype = torch.int8 if grid.qmin < 0 else torch.uint8
        given = {"qmin": grid.qmin, "qmax": grid.qmax}
        found = affine.quantize(tensor, step, zero_point, **given, dtype=code_dtype).numpy()
        assert np.array_equal(found, codes), (name, float(scale), x[found != codes][:5])
        if reals is not None:
            fake = affine.quantize_dequantize(tensor, step, zero_point, **given)
            got = fake.view(torch.uint16).numpy()
            wanted = reals.view(np.uint16)
            both = (got == wanted) | (np.isnan(reals) & fake.isnan().numpy())
            assert both.all(), (name, float(scale), x[~both][:5])
