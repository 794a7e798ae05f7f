"""The shortcuts of the vector kernels, where they could differ from the division: see reals.h and codes.h."""

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from halfeven.optimized import kernels
from halfeven.optimized.kernels import chunked
from halfeven.optimized.operators.schemas import OPS

pytestmark = pytest.mark.skipif(
    kernels.path() not in ("C++ avx2", "C++ avx512", "C++ neon"), reason="no vector kernels are those that run"
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """On a busy machine the torch operations that are compared with wait for one another."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


BFLOAT16 = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
NEXT = 2**16  # from one bfloat16 to the next, in units of float32
# Where float32 words, of 16 and of 32 bits, end; beyond all of them; and what is no number.
BEYOND = (2.0**15 - 0.5, 2.0**15, 2.0**16, 2.0**31 - 128, 2.0**31, 2.0**32, 3e38, math.inf, math.nan)


def differing(operator: str, x: Tensor, *given: object) -> list[float]:
    """The elements for which the kernel and the torch operations give other bits; NaN is one value."""
    found, expected = getattr(OPS, operator).default(x, *given), chunked.IMPLEMENTATIONS[operator](x, *given)
    assert found.dtype == expected.dtype
    same = found == expected
    if found.dtype.is_floating_point:
        same = same & (found.signbit() == expected.signbit()) | found.isnan() & expected.isnan()
    elements: list[float] = x[~same].tolist()
    return elements


def ulps(value: float, steps: range) -> Iterator[float]:
    """The float32 beside a value."""
    bits = torch.tensor(value).view(torch.int32)
    for step in steps:
        yield float((bits + step).view(torch.float32))


@pytest.mark.parametrize("code", [0, 1, 2, 3, 63, 77, 127, 130, 254])
def test_bfloat16_of_scales_that_nearly_tie(code: int) -> None:
    """Edges between codes at a bfloat16, and reals in the middle of two, save a few units of float32."""
    number = torch.tensor(0x3FA5 << 16, dtype=torch.int32)  # an odd one, and not short
    middle = float((number + NEXT // 2).view(torch.float32)) / max(code, 1)
    edge = float(number.view(torch.float32)) / (code + 0.5)
    for s in (*ulps(edge, range(-9, 10)), *ulps(middle, range(-9, 10))):
        for zero_point, qmin in ((None, -128), (torch.tensor(3), -128), (None, 0)):
            given = (torch.tensor(s), zero_point, qmin, qmin + 255, None)
            assert differing("quantize_dequantize", BFLOAT16, *given, 0.0, False) == [], s.hex()
            assert differing("quantize", BFLOAT16, *given, (torch.uint8, torch.int8)[qmin < 0], False) == [], s.hex()


def test_bfloat16_of_scales_as_they_come() -> None:
    scales = torch.rand(300, generator=torch.Generator().manual_seed(0)) * 0.1 + 1e-4
    for s in (*scales, *(scales.bfloat16().float() / 127.5)[:100]):
        assert differing("quantize_dequantize", BFLOAT16, s, torch.tensor(-7), -128, 127, None, 0.0, False) == [], s


def test_every_significand_is_rounded_to_bfloat16() -> None:
    """The code 1 of a scale per column is the scale itself."""
    for first in range(0, 2**23, 2**18):
        s = (torch.arange(first, first + 2**18, dtype=torch.int32) + 0x3F800000).view(torch.float32)
        x = s.bfloat16().expand(4, -1)  # what the kernel of columns takes at once
        found = OPS.quantize_dequantize.default(x.contiguous(), s, None, -128, 127, None, 0.0, False)
        assert torch.equal(found, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("length", [1, 15, 16, 31, 32, 33, 64, 100])
def test_codes_of_what_no_integer_holds(dtype: torch.dtype, length: int) -> None:
    """At every place of a row: of rows with one scale for all, with a scale each, and with a scale per column."""
    per_row, per_column = 0.02 + torch.arange(length + 4)[:, None] / 1024, 0.02 + torch.arange(length) / 1024
    for value in (sign * v for v in BEYOND for sign in (1, -1)):
        for scale in (torch.tensor(0.02), per_row, per_column):
            x = torch.full((length + 4, length), 0.05)
            x[:length].fill_diagonal_(value * 0.02)
            for grid in ((-128, 127), (-8, 7), (0, 255)):
                codes = (torch.uint8, torch.int8)[grid[0] < 0]
                for zero_point in (None, torch.tensor(5), torch.tensor(-100)):
                    given = (scale, zero_point, *grid, None, codes, False)
                    assert differing("quantize", x.to(dtype), *given) == [], (value, grid)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "layout", ["tensor", "rows", "columns", "blocks of 32", "blocks of 128", "odd rows", "odd columns"]
)
def test_more_than_the_caches_hold(dtype: torch.dtype, layout: str) -> None:
    """Several places in turns, and stores past the caches, where they are aligned."""
    kernels.past_caches(2**21)
    rows, columns = 187, 4099 if layout.startswith("odd") else 4096  # 2 MiB of bfloat16 and codes, and some
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(0)).to(dtype)
    x.view(-1)[:: 2**16 + 1] = math.nan
    x.view(-1)[5 :: 2**16 + 1] = -math.inf
    length = {"blocks of 32": 32, "blocks of 128": 128}.get(layout)
    block = (1, length) if length else None
    shape = (
        (rows, columns // length)
        if length
        else {"rows": (rows, 1), "columns": (columns,)}.get(layout.removeprefix("odd "), ())
    )
    scale = torch.rand(shape, generator=torch.Generator().manual_seed(1)) * 0.02 + 0.01
    given = (scale, torch.tensor(3).expand(shape), -128, 127, block)
    assert differing("quantize", x, *given, torch.int8, False) == []
    assert differing("quantize_dequantize", x, *given, 0.0, False) == []
