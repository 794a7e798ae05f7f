"""Minima, maxima and magnitudes: every path against Python's own, and the errors of the public functions."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from halfeven.optimized import calibration, kernels
from halfeven.optimized.kernels import chunked
from halfeven.optimized.operators.schemas import OPS

REALS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
Run = Callable[..., Any]
PATHS = (*kernels.available(), "torch")


@pytest.fixture(params=PATHS)
def run(request: pytest.FixtureRequest) -> Run:
    """An operator by name, on one path."""
    if request.param == "torch":
        return lambda name, *given: chunked.IMPLEMENTATIONS[name](*given)
    kernels.choose(request.param)
    return lambda name, *given: getattr(OPS, name).default(*given)


def bits(t: Tensor) -> list[int]:
    return t.contiguous().view(INTEGERS[t.element_size()]).flatten().tolist()


def order(value: float) -> tuple[float, float]:
    return value, math.copysign(1, value)


def expected(x: Tensor, block_size: list[int] | None) -> tuple[Tensor, Tensor, Tensor]:
    """By Python's floats, which have every value of the four dtypes, and the block of each element."""
    sizes = list(x.shape) if block_size is None else block_size
    blocks = [-(-n // max(b, 1)) for n, b in zip(x.shape, sizes, strict=True)]
    members: dict[tuple[int, ...], list[float]] = {}
    for index in itertools.product(*map(range, x.shape)):
        members.setdefault(tuple(i // b for i, b in zip(index, sizes, strict=True)), []).append(x[index].item())
    found = []
    for each in itertools.product(*map(range, blocks)):
        values = members[each]
        nan = any(map(math.isnan, values))
        ends = (min(values, key=order), max(values, key=order), max(map(abs, values)))
        found.append([math.nan] * 3 if nan else ends)
    shape = () if block_size is None else blocks
    return tuple(torch.tensor(column, dtype=x.dtype).reshape(shape) for column in zip(*found, strict=True))  # type: ignore[return-value]


def compare(run: Run, x: Tensor, block_size: list[int] | None) -> None:
    low, high, magnitude = expected(x.detach().contiguous(), block_size)
    found = (*run("aminmax", x, block_size), run("amax", x, block_size))
    for name, a, b in zip(("min", "max", "amax"), found, (low, high, magnitude), strict=True):
        assert (a.dtype, a.shape, a.is_contiguous()) == (b.dtype, b.shape, True)
        # NaN has one representation, torch's own.
        assert bits(a) == bits(b), (name, x, block_size, a, b)


def sample(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Small multiples of both signs, with zeros of both."""
    n = math.prod(shape)
    return ((torch.arange(n) * 7 % 23 - 11) * 0.25 * (1 - 2 * (torch.arange(n) % 2))).to(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize(
    ("shape", "block_size"),
    [
        ((), None),
        ((), []),
        ((1,), [9]),
        ((37,), None),
        ((37,), [5]),
        ((70,), [32]),
        ((6, 40), [1, 40]),
        ((40, 6), [40, 1]),
        ((9, 40), [9, 1]),
        ((9, 40), [4, 16]),
        ((3, 5, 7), [1, 5, 1]),
        ((3, 5, 7), [2, 3, 4]),
        ((3, 5, 7), [1, 1, 1]),
        ((2, 3, 4, 5), [2, 1, 4, 5]),
        ((2, 3, 4, 5), [1, 2, 3, 4]),
    ],
)
def test_blocks(run: Run, dtype: torch.dtype, shape: tuple[int, ...], block_size: list[int] | None) -> None:
    compare(run, sample(shape, dtype), block_size)


@pytest.mark.parametrize("dtype", REALS)
def test_specials(run: Run, dtype: torch.dtype) -> None:
    info = torch.finfo(dtype)
    least = info.smallest_normal * info.eps  # the least subnormal
    special = [0.0, -0.0, least, -least, info.max, info.min, math.inf, -math.inf, math.nan]
    for pair in itertools.product(special, repeat=2):
        for at in ((0, 20), (39, 3), (15, 16)):  # in whole vectors and in what is left over
            x = torch.full((40,), pair[0], dtype=dtype)
            x[at[0]] = pair[1]
            compare(run, x, None)
    grid = torch.tensor(special, dtype=dtype)
    compare(run, grid[:, None].expand(9, 9).contiguous(), [1, 9])
    compare(run, grid[None].expand(9, 9), [9, 1])
    compare(run, torch.tensor([special] * 5, dtype=dtype), [5, 2])


@pytest.mark.parametrize("dtype", REALS)
def test_nan_of_any_bits(run: Run, dtype: torch.dtype) -> None:
    kind = INTEGERS[dtype.itemsize]
    sign = torch.iinfo(kind).min
    infinity = torch.tensor(math.inf, dtype=dtype).view(kind).item()
    nans = [infinity + 1, -1, sign | (infinity + 1), torch.iinfo(kind).max]
    for nan in nans:
        x = torch.ones(50, dtype=dtype)
        x.view(kind)[17] = nan
        compare(run, x, None)
        compare(run, x, [8])


@pytest.mark.parametrize("block_size", [None, [1, 9, 5], [4, 9, 5], [2, 4, 3]])
def test_strides(run: Run, block_size: list[int] | None) -> None:
    x = sample((4, 9, 5), torch.float32)
    big = torch.full((9, 19, 11), math.nan)
    odd = big[1::2, 1::2, 1::2]
    odd.copy_(x)
    layouts = [
        x.permute(2, 0, 1).contiguous().permute(1, 2, 0),
        odd,
        x[:, :1].expand(4, 9, 5),
        x[:1, :, :1].expand(4, 9, 5),
    ]
    for view in layouts:
        compare(run, view, block_size)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize(
    ("shape", "block_size"),
    [
        ((300, 1000), None),
        ((5, 70000), [1, 70000]),
        ((3000, 70), [3000, 1]),
        ((500, 300), [500, 1]),
        ((900, 96), [7, 32]),
    ],
)
def test_large(run: Run, dtype: torch.dtype, shape: tuple[int, int], block_size: list[int] | None) -> None:
    # Every value once, far from each other: whatever is left out or counted twice shows in some result.
    n = math.prod(shape)
    x = ((torch.arange(n, dtype=torch.int64) * 7919 % n) - n // 3).double().mul(2.0**-7).to(dtype).reshape(shape)
    found = {}
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found[threads] = [*run("aminmax", x, block_size), run("amax", x, block_size)]
    rows, cols = block_size or shape
    parts = [list(row.split(cols, 1)) for row in x.split(rows)]
    for name, value in zip(("min", "max", "amax"), found[1], strict=True):
        function = {"min": Tensor.amin, "max": Tensor.amax, "amax": lambda t: t.abs().amax()}[name]
        want = torch.stack([torch.stack([function(part) for part in row]) for row in parts])
        assert bits(value) == bits(want.reshape(value.shape)), name
    assert [[bits(t) for t in found[threads]] for threads in (2, 3)] == [[bits(t) for t in found[1]]] * 2


def test_no_blocks_give_no_results(run: Run) -> None:
    low, high = run("aminmax", torch.ones(0, 3), [2, 2])
    assert low.shape == high.shape == run("amax", torch.ones(0, 3), [2, 2]).shape == (0, 2)
    with pytest.raises((RuntimeError, ValueError), match=r"x .*not accepted: give at least one"):
        run("amax", torch.ones(0, 3), None)


def test_axes() -> None:
    x = sample((3, 4, 5), torch.float32)
    x[1, 2, 3] = -9.0
    for axis in range(-3, 3):
        low, high = calibration.aminmax(x, axis=axis)
        others = [d for d in range(3) if d != axis % 3]
        assert torch.equal(low, x.amin(others, keepdim=True))
        assert torch.equal(high, x.amax(others, keepdim=True))
        assert torch.equal(calibration.amax(x, axis=axis), x.abs().amax(others, keepdim=True))
    assert calibration.amax(x).shape == ()
    assert calibration.amax(x) == 9
    assert calibration.amax(x, block_size=(3, 2, 5)).shape == (1, 2, 1)


def test_no_gradient_is_recorded() -> None:
    x = torch.ones(3, requires_grad=True)
    assert not any(t.requires_grad for t in (*calibration.aminmax(x), calibration.amax(x, axis=0)))


@pytest.mark.parametrize("function", [calibration.aminmax, calibration.amax])
@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda f: f([1.0]), TypeError, r"x=\[1.0\] .*give a torch.Tensor"),
        (lambda f: f(torch.ones(2, dtype=torch.int8)), TypeError, "x of dtype torch.int8"),
        (lambda f: f(torch.ones(2, 0)), ValueError, r"x of shape \(2, 0\) .*at least one element"),
        (lambda f: f(torch.ones(2), axis=1), ValueError, r"axis=1 .*\(2,\): give one from -1 to 0"),
        (lambda f: f(torch.ones(()), axis=0), ValueError, "axis=0 "),
        (lambda f: f(torch.ones(2), axis=True), TypeError, "axis=True .*give None or an int"),
        (lambda f: f(torch.ones(2), axis=0.0), TypeError, "axis=0.0 "),
        (lambda f: f(torch.ones(2), axis=0, block_size=[1]), ValueError, r"axis=0 and block_size=\[1\]"),
        (lambda f: f(torch.ones(2), block_size=[1, 1]), ValueError, r"block_size=\(1, 1\)"),
        (lambda f: f(torch.ones(2), block_size=[0]), ValueError, r"block_size=\(0,\)"),
        (lambda f: f(torch.ones(2), block_size=[1.0]), TypeError, r"block_size=\[1.0\]"),
    ],
)
def test_errors(function: Run, call: Run, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        partial(call, function)()
