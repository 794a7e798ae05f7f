"""Calls of minima and maxima in all layouts, of any bits."""

from collections.abc import Iterator

import torch

__all__ = ["DTYPES", "cases"]

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "F64": torch.float64}


def elements(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Any bits, most of them finite; both zeros among them, NaN now and then."""
    drawn = torch.Generator().manual_seed(len(shape))
    x = torch.randn(shape, generator=drawn, dtype=torch.float64).mul(3).round().div(2).to(dtype)
    flat = x.view(-1)
    flat[::7] = -0.0
    flat[100::301] = torch.nan
    flat[101::301] = -torch.nan
    flat[50::311] = -torch.inf
    return x


def cases(dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor, tuple[int, ...] | None]]:
    """Each a name, elements, and a size of blocks."""
    x = elements(dtype, 40000)
    for n in (1, 7, 8, 100, 260, 40000):
        yield f"{n} elements", x[:n], None
    for at in (1, 3, 9):
        yield f"{at} elements into memory", x[at : at + 90], None
    for value in (0.0, -0.0, torch.inf, -torch.inf, torch.nan, -1.5):
        yield f"all of {value}", torch.full((70,), value, dtype=dtype), None
    zeros = torch.zeros(70, dtype=dtype)
    zeros[30:] = -0.0
    yield "both zeros", zeros, None
    yield "-NaN alone", torch.full((9,), -torch.nan, dtype=dtype).copysign(torch.tensor(-1.0)), None
    yield "0-d", x[5], None
    yield "none in blocks", x[:0].view(0, 3), (2, 2)
    square = x[:3840].view(60, 64)
    yield "rows", square, (1, 64)
    yield "columns", square, (60, 1)
    yield "long rows", x.view(2, 20000), (1, 20000)
    yield "long columns", x.view(20000, 2), (20000, 1)
    yield "one by one", square, (1, 1)
    yield "blocks", square, (1, 16)
    yield "blocks of rows and columns", square, (4, 32)
    yield "short last blocks", square, (7, 30)
    cube = x[:3600].view(10, 12, 30)
    yield "the midst", cube, (10, 1, 30)
    yield "around the midst", cube, (1, 12, 1)
    yield "short last blocks of three", cube, (3, 5, 7)
    yield "long reduced rows of channels", x.view(4, 2, 5000), (4, 1, 5000)
    yield "transposed", square.t(), (1, 60)
    yield "rows apart", square[:, 3:40], (1, 37)
    yield "every other", square[:, ::2], (60, 1)
    yield "every other, of all", square[:, ::2], None
    yield "expanded", x[:30].expand(9, 30), (9, 1)
    ten = x[:1024].view((2,) * 10)
    yield "twenty loops", ten, (2,) * 10
    yield "ten dimensions in turns", ten, (1, 2) * 5
    yield "ten dimensions", ten.permute(*range(9, -1, -1)), (1,) * 5 + (2,) * 5
