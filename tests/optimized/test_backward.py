"""The gradients on every path: each element against the formula in plain torch operations, sums against exact ones."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from halfeven.optimized import kernels
from halfeven.optimized.arguments import dtypes
from halfeven.optimized.kernels import chunked
from halfeven.optimized.operators.schemas import OPS

REALS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
PATHS = (*kernels.available(), "torch")
# The last is 32 bits wide: in float64 whatever x is.
GRIDS = ((-1, 0), (-8, 7), (0, 15), (-128, 127), (0, 255), (-(2**15), 2**15 - 1), (-(2**31), 2**31 - 1))
Run = Callable[..., tuple[Tensor, Tensor, Tensor]]


def compiled(name: str, *given: Any) -> Any:
    return getattr(OPS, name + "_backward").default(*given)


def in_torch(name: str, *given: Any) -> Any:
    return chunked.IMPLEMENTATIONS[name + "_backward"](*given)


@pytest.fixture(params=PATHS)
def run(request: pytest.FixtureRequest) -> Run:
    """A backward operator by name, on one path."""
    if request.param == "torch":
        return in_torch
    kernels.choose(request.param)
    return compiled


@dataclass(frozen=True, eq=False)
class Case:
    """Arguments of a backward operator: ``x`` are the codes of ``dequantize``, ``t`` is the dtype of the arithmetic."""

    name: str
    grad: Tensor
    x: Tensor
    scale: Tensor
    zero_point: Tensor | None
    t: torch.dtype
    grid: tuple[int, int] = (-8, 7)
    shift: float = 0.0
    block_size: Sequence[int] | None = None
    offset: bool = False
    needs: tuple[bool, bool, bool] = field(default=(True, True, True))

    def given(self) -> tuple[Any, ...]:
        tensors = (self.grad, self.x, self.scale, self.zero_point)
        settings: tuple[Any, ...] = (*self.grid, self.block_size)
        if self.name == "dequantize":
            settings = (self.block_size, self.t)
        if self.name == "quantize_dequantize":
            settings = (*settings, self.shift)
        return (*tensors, *settings, self.offset, *self.needs)


def owners(shape: Sequence[int], parameter: Tensor, block_size: Sequence[int] | None) -> Tensor:
    """For each element, which entry of the parameter is its."""
    entries = torch.arange(parameter.numel()).reshape(parameter.shape)
    if block_size is not None and parameter.ndim:
        for d, (n, b) in enumerate(zip(shape, block_size, strict=True)):
            entries = entries.index_select(d, torch.arange(n) // b)
    return entries.expand(shape)


def terms(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    """Each element's dx, ds and do, in the dtype of the arithmetic: one torch operation for each of the formula."""
    g, x = case.grad.to(case.t), case.x.to(case.t)
    s = case.scale.flatten()[owners(x.shape, case.scale, case.block_size)].to(case.t)
    o = torch.zeros_like(s)
    if case.zero_point is not None:
        o = case.zero_point.flatten()[owners(x.shape, case.zero_point, case.block_size)].to(case.t)
        if not case.offset:
            o = -o if case.zero_point.is_floating_point() else 0 - o
    if case.name == "dequantize":
        return g * s, g * (x + o), g * s
    lo, hi = (torch.tensor(end, dtype=case.t) for end in case.grid)
    u = x / s
    if case.shift:
        u = u - case.shift
    rounded = u.round()
    m = (rounded - o >= lo) & (rounded - o <= hi)
    if case.name == "quantize":
        t = g * m.to(case.t) / s
        return t, -t * u, -(g * m.to(case.t))
    below, above = o + lo, o + hi
    clipped = torch.where(rounded < below, below, torch.where(rounded > above, above, rounded))
    clipped = torch.where(o.isnan(), o, clipped)
    if case.shift:
        clipped = clipped + case.shift
    return torch.where(m, g, 0), g * torch.where(m, rounded - u, clipped), torch.where(m, 0, g * s)


def sums(each: Tensor, parameter: Tensor, block_size: Sequence[int] | None) -> list[float]:
    """The exact sums of the terms that share an entry, rounded to float64."""
    found: list[list[float]] = [[] for _ in range(parameter.numel())]
    for owner, value in zip(
        owners(each.shape, parameter, block_size).flatten().tolist(), each.flatten().tolist(), strict=True
    ):
        found[owner].append(value)
    return [math.fsum(values) if all(map(math.isfinite, values)) else sum(values) for values in found]


def bits(t: Tensor) -> Tensor:
    """As integers; NaN is one of them, whatever its sign and payload."""
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]
    return torch.where(t.isnan(), math.nan, t).to(t.dtype).contiguous().view(kind)


def compare(run: Run, case: Case) -> None:
    """Elements bit for bit; so are sums, whose terms have to be such that no order rounds (see ``exact``)."""
    dx, ds, do = terms(case)
    found = run(case.name, *case.given())
    for needed, value in zip(case.needs, found, strict=True):
        assert needed or value.shape == (0,)
    if case.needs[0]:
        assert found[0].dtype == case.x.dtype
        assert torch.equal(bits(found[0]), bits(dx.to(case.x.dtype))), witness(found[0], dx.to(case.x.dtype), case)
    dz = do if case.offset else -do
    for needed, value, each, parameter in zip(
        case.needs[1:], found[1:], (ds, dz), (case.scale, case.zero_point), strict=True
    ):
        if not needed or parameter is None:
            continue
        assert (value.shape, value.dtype) == (parameter.shape, parameter.dtype)
        if parameter.shape == case.x.shape and parameter.ndim and case.block_size is None:
            total, ours = each.to(parameter.dtype), value
        else:
            total = torch.tensor(sums(each, parameter, case.block_size), dtype=torch.float64).reshape(parameter.shape)
            # A sum of zeros has no sign that the formula gives.
            total, ours = total.to(case.t).to(parameter.dtype) + 0.0, value + 0.0
        assert torch.equal(bits(ours), bits(total)), witness(ours, total, case)


def witness(found: Tensor, expected: Tensor, case: Case) -> str:
    at = tuple((bits(found) != bits(expected)).nonzero()[0].tolist())
    return f"at {at}: {found[at]!r}, expected {expected[at]!r} of {case}"


def exact(shape: Sequence[int], dtype: torch.dtype, denominator: float, seed: int) -> Tensor:
    """Multiples of 1 / denominator below 8 in magnitude."""
    generator = torch.Generator().manual_seed(seed)
    top = round(8 * denominator)
    return (torch.randint(-top, top + 1, tuple(shape), generator=generator) / denominator).to(dtype)


def working(dtype: torch.dtype, grid: tuple[int, int]) -> torch.dtype:
    return dtypes.compute_dtype(dtype, *grid)


def boundaries(dtype: torch.dtype, s: float, grid: tuple[int, int], z: float, shift: float) -> Tensor:
    """The ties at the ends of the grid and around zero with their neighbours, and the specials."""
    codes = [k + h for k in (grid[0] - z, grid[1] - z, 0.0) for h in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
    t = torch.tensor([(c + shift) * s for c in codes], dtype=torch.float64).to(dtype)
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    around = [(t.view(kind) + step).view(dtype) for step in (-1, 0, 1)]
    info = torch.finfo(dtype)
    special = [0.0, -0.0, info.tiny, -info.tiny * info.eps, info.max, info.min, math.inf, -math.inf, math.nan]
    return torch.cat([*around, torch.tensor(special, dtype=dtype)])


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("name", ["quantize", "quantize_dequantize"])
def test_elements(run: Run, name: str, dtype: torch.dtype) -> None:
    # Every element has parameters of its own, so that each gradient is the term itself.
    specials = [1.0, -0.375, 0.0, -0.0, math.inf, -math.inf, math.nan, torch.finfo(dtype).max]
    for grid, s, z, shift in itertools.product(GRIDS, (0.1, 0.25, 3.0, -0.5), (0.0, 3.0, 0.5), (0.0, 0.5)):
        if shift and name == "quantize":
            continue
        x = boundaries(dtype, s, grid, z, shift).repeat_interleave(len(specials))
        g = torch.tensor(specials, dtype=dtype).repeat(len(x) // len(specials))
        scale, zero_point = torch.full_like(x, s), torch.full_like(x, z)
        t = working(dtype, grid)
        compare(run, Case(name, g, x, scale, zero_point, t, grid, shift))
        compare(run, Case(name, g, x, torch.tensor(s), torch.tensor(z), t, grid, shift, needs=(True, False, False)))


@pytest.mark.parametrize("name", ["quantize", "quantize_dequantize"])
def test_odd_parameters(run: Run, name: str) -> None:
    x = boundaries(torch.float32, 1.0, (-8, 7), 0.0, 0.0)
    g = torch.where(torch.arange(len(x)) % 3 == 0, -0.75, 1.5)
    scales = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, 3e-39, 1e30]
    points = [0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**24, 0.1]
    for s, z, offset in itertools.product(scales, points, (True, False)):
        pair = torch.full_like(x, s), torch.full_like(x, z)
        compare(run, Case(name, g, x, *pair, torch.float32, offset=offset))
    for point in (torch.int8, torch.uint8, torch.int64):
        case = Case(name, g, x, torch.full_like(x, -1.0), torch.zeros(len(x), dtype=point), torch.float32)
        compare(run, Case(**{**case.__dict__, "needs": (True, True, False)}))


@pytest.mark.parametrize("t", REALS)
@pytest.mark.parametrize(
    "q", [*REALS, torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.int64], ids=str
)
def test_elements_of_dequantize(run: Run, q: torch.dtype, t: torch.dtype) -> None:
    codes = torch.tensor([0, 1, 3, 100, 126] * 7).to(q)
    if q.is_floating_point:
        codes[:5] = torch.tensor([math.nan, math.inf, -0.0, 0.5, -3.0])
    for result, offset in itertools.product(REALS, (False, True)):
        g = torch.tensor([1.0, -0.1, 3.0, math.inf, -0.0, 1e-7, math.nan] * 5).to(result)
        scale, zero_point = (torch.full((35,), v, dtype=t) for v in (0.1, 3.3))
        needs = (q.is_floating_point, True, True)
        compare(run, Case("dequantize", g, codes, scale, zero_point, t, offset=offset, needs=needs))
        # The offset of the integer 0 is +0.0, of the float 0.0 it is -0.0.
        for zero in (torch.zeros(35, dtype=torch.int8), torch.zeros(35)):
            compare(run, Case("dequantize", g, codes, scale, zero, t, offset=offset, needs=(needs[0], True, False)))


SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...] | None], ...] = (
    # shape, of scale, of zero point, blocks
    ((), (), (), None),
    ((0, 3), (3,), (), None),
    ((70,), (), (1,), None),
    ((9, 40), (9, 1), (9, 1), None),
    ((40, 9), (9,), (1, 9), None),
    ((50, 40), (40,), (40,), None),
    ((9, 40), (9, 1), (), None),
    ((9, 40), (), (40,), None),
    ((9, 40), (9, 40), (9, 1), None),
    ((3, 5, 7), (5, 1), (5, 1), None),
    ((3, 5, 7), (3, 1, 7), (7,), None),
    ((3, 20, 2), (3, 1, 2), (20, 1), None),
    ((1, 3, 4), (3, 4), (3, 1), None),
    ((64,), (2,), (2,), (32,)),
    ((70,), (3,), (3,), (32,)),
    ((6, 64), (6, 2), (6, 2), (1, 32)),
    ((40, 6), (2, 6), (2, 6), (32, 1)),
    ((9, 40), (3, 3), (3, 3), (4, 16)),
    ((9, 40), (), (1, 1), (9, 99)),
    ((3, 5, 7), (2, 2, 2), (2, 2, 2), (2, 3, 4)),
    ((4, 3), (4, 3), (4, 3), (1, 1)),
)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["quantize", "dequantize", "quantize_dequantize"])
def test_sums(run: Run, name: str, shapes: Any) -> None:
    shape, of_scale, of_point, block_size = shapes
    for dtype, grid in itertools.product(REALS, ((-8, 7), (-2, 1))):
        # Quotients of powers of two, and few enough bits: no operation and no sum in any order rounds.
        t = working(dtype, grid) if name != "dequantize" else torch.float32
        count = math.prod(of_scale)
        scale = torch.tensor([0.5, 1.0, 2.0])[torch.arange(count) % 3].reshape(of_scale).to(dtype)
        points = exact(of_point, torch.float32, 1, 1) / 2
        few = t in (torch.float16, torch.bfloat16)
        grad, x = exact(shape, dtype, 0.25 if few else 8, 2), exact(shape, dtype, 1 if few else 4, 3)
        zero_point = points.round().to(dtype)
        for offset in (False, True):
            compare(run, Case(name, grad, x, scale, zero_point, t, grid, 0.0, block_size, offset=offset))
    integers = zero_point.to(torch.int32)
    compare(run, Case(name, grad, x, scale, integers, t, grid, 0.0, block_size, needs=(True, True, False)))
    compare(run, Case(name, grad, x, scale, None, t, grid, 0.0, block_size, needs=(False, True, False)))


@pytest.mark.parametrize("name", ["quantize", "dequantize", "quantize_dequantize"])
def test_what_is_not_needed_is_empty(run: Run, name: str) -> None:
    grad, x = exact((5, 40), torch.float32, 8, 1), exact((5, 40), torch.float32, 4, 2)
    scale, zero_point = torch.full((5, 1), 0.5), torch.ones(40)
    for needs in itertools.product((False, True), repeat=3):
        compare(run, Case(name, grad, x, scale, zero_point, torch.float32, needs=needs))  # type: ignore[arg-type]


def layouts(t: Tensor) -> Iterator[Tensor]:
    """The same numbers in other places."""
    yield t
    yield t.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    yield t.transpose(0, 2).contiguous().transpose(0, 2)
    big = t.new_full([2 * n + 1 for n in t.shape], math.nan)
    odd = big[1::2, 1::2, 1::2]
    odd.copy_(t)
    yield odd


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_strides(run: Run, dtype: torch.dtype) -> None:
    shape = (3, 20, 5)
    grads = [*layouts(exact(shape, dtype, 8, 1)), torch.tensor(1.5, dtype=dtype).expand(shape)]
    grads += [torch.tensor([0.5, -1, 2], dtype=dtype)[:, None, None].expand(shape)]
    xs = [*layouts(exact(shape, dtype, 4, 2)), exact((1, 20, 1), dtype, 4, 3).expand(shape)]
    for grad, x in itertools.product(grads, xs):
        for of_scale, block_size in (((), None), ((20, 1), None), ((5,), None), ((2, 3, 2), (2, 8, 3))):
            scale = torch.full(of_scale, 0.5).repeat_interleave(2)[::2].reshape(of_scale)
            case = Case("quantize_dequantize", grad, x, scale, torch.ones(of_scale), working(dtype, (-8, 7)))
            compare(run, Case(**{**case.__dict__, "block_size": block_size}))


def test_strided_parameters(run: Run) -> None:
    grad, x = exact((6, 40), torch.float32, 8, 1), exact((6, 40), torch.float32, 4, 2)
    wide = torch.full((6, 80), math.nan)
    scale, zero_point = wide[:, ::2], torch.tensor([1.0, -2, 3, 0, 5, -6])[:, None].expand(6, 40)
    scale.copy_(torch.tensor([0.5, 1, 2, 4])[torch.arange(240) % 4].reshape(6, 40))
    compare(run, Case("quantize_dequantize", grad, x, scale, zero_point, torch.float32))
    compare(run, Case("quantize", grad, x, scale[:, 3:4], zero_point[:1], torch.float32))


# More than one item of work each, in every way that items are cut.
LARGE: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None], ...] = (
    ((70_001,), (), None),
    ((300, 250), (300, 1), None),
    ((2, 40_000), (2, 1), None),
    ((1500, 50), (50,), None),
    ((25_000, 3), (3,), None),
    ((15, 5000), (5000,), None),
    ((4, 16, 1100), (16, 1), None),
    ((500, 150), (500, 5), (1, 32)),
    ((501, 150), (4, 150), (128, 1)),
)


@functools.cache
def large(at: int, dtype: torch.dtype) -> tuple[Case, Tensor, list[tuple[Tensor, Tensor]]]:
    """A case, its dx, and for scale and zero point the ends between which the sum lies."""
    shape, of_scale, block_size = LARGE[at]
    generator = torch.Generator().manual_seed(at)
    grad, x = (torch.randn(shape, generator=generator).to(dtype) for _ in range(2))
    scale = 0.02 + 0.01 * torch.rand(of_scale, generator=generator)
    points = torch.full(of_scale, 3.0)
    case = Case("quantize_dequantize", grad, x, scale, points, torch.float32, (-128, 127), 0.0, block_size)
    dx, ds, do = terms(case)
    ends = []
    for each in (ds, -do):
        # In any order, n terms are off by n roundings to float64 of at most the sum of their magnitudes.
        total, magnitude = (torch.tensor(sums(t, scale, block_size), dtype=torch.float64) for t in (each, each.abs()))
        error = magnitude * (math.prod(shape) / scale.numel() * 2.0**-53)
        # Where float64 counts the sums in units in the last place of the least term, no order rounds.
        error[magnitude < 2.0 ** (53 - 24) * each[each != 0].abs().min()] = 0
        low, high = ((total + e).float().reshape(of_scale) for e in (-error, error))
        assert (low == high).double().mean().item() > 0.9  # they leave no choice, mostly
        ends.append((low, high))
    return case, dx.to(dtype), ends


@pytest.mark.parametrize(
    ("at", "dtype"), [*((at, torch.float32) for at in range(len(LARGE))), *((at, torch.bfloat16) for at in (0, 3, 8))]
)
def test_large(run: Run, at: int, dtype: torch.dtype) -> None:
    case, dx, ends = large(at, dtype)
    found = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found.append(run(case.name, *case.given()))
    for other in found[1:] if run is compiled else ():
        assert all(torch.equal(bits(a), bits(b)) for a, b in zip(found[0], other, strict=True))
    assert torch.equal(bits(found[0][0]), bits(dx))
    for value, (low, high) in zip(found[0][1:], ends, strict=True):
        assert bool(((low <= value) & (value <= high)).all()), (low, value, high)


def test_sums_are_in_float64(run: Run) -> None:
    # In float32 the ones would be lost beside the first term.
    grad, q, none = torch.ones(2**13), torch.ones(2**13), (None, None, None, False, False, True, False)
    grad[:2] = torch.tensor([2.0**30, -(2.0**30)])
    assert run("dequantize", grad, q, torch.tensor(1.0), *none)[1].item() == 2**13 - 2


X, S = torch.ones(3, 4), torch.ones(())
GOOD: dict[str, tuple[Any, ...]] = {
    "quantize": (X, X, S, None, 0, 15, None, False, True, True, True),
    "dequantize": (X, X, S, None, None, None, False, True, True, True),
    "quantize_dequantize": (X, X, S, None, 0, 15, None, 0.0, False, True, True, True),
}
BAD = (
    (0, X.half(), "grad of dtype"),
    (0, X[:2], "grad .*not accepted: give it in the shape"),
    (0, X.int(), "grad of dtype"),
    (1, X.bool(), "[xq] of dtype"),
    (2, torch.ones(5), r"scale of shape \(5,\)"),
    (2, S.int(), "scale of dtype"),
    (3, torch.ones(2, 1), r"zero_point of shape \(2, 1\)"),
    (3, S.bool(), "zero_point of dtype"),
    (3, S.int(), "need_zero_point=True is not accepted for zero_point of dtype int32"),
)


@pytest.mark.parametrize("name", GOOD)
def test_errors(run: Run, name: str) -> None:
    run(name, *GOOD[name])
    block_size = GOOD[name].index(None, 4)
    bad = [*BAD, (block_size, [1], r"block_size=\(1,\)"), (block_size, [0, 1], r"block_size=\(0, 1\)")]
    if name == "dequantize":
        bad = [*bad[1:], (5, torch.int8, "compute"), (1, X.int(), "need_q=True is not accepted for q of dtype int32")]
    else:
        bad += [(4, 16, "qmin=16, qmax=15 is not accepted"), (5, 2**60 - 1, "qmin=0, qmax=")]
    for at, value, message in bad:
        given = [*GOOD[name]]
        given[at] = value
        with pytest.raises((RuntimeError, TypeError, ValueError), match=message):
            run(name, *given)
