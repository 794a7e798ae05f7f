"""Calls of the forward operators in all layouts: how elements and parameters lie, and what is asked of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

__all__ = ["KINDS", "Call", "Kind", "calls"]


@dataclass(frozen=True)
class Kind:
    """An operator, the dtypes of x, of the result, and a grid that decides the dtype of the arithmetic."""

    operator: str
    x: torch.dtype
    out: torch.dtype
    grid: tuple[int, int] = (-128, 127)
    shift: float = 0.0

    def __str__(self) -> str:
        return f"{self.operator}-{self.x}-{self.out}{'-shifted' if self.shift else ''}".replace("torch.", "")


KINDS = (
    Kind("quantize", torch.float32, torch.int8),
    Kind("quantize", torch.bfloat16, torch.uint8, (0, 255)),
    Kind("quantize_dequantize", torch.float32, torch.float32),
    Kind("quantize_dequantize", torch.bfloat16, torch.bfloat16),
    Kind("quantize_dequantize", torch.float32, torch.float32, shift=0.5),
    Kind("dequantize", torch.int8, torch.float32),
)


@dataclass(frozen=True)
class Call:
    """One call that writes ``out``, which may be ``x``."""

    kind: Kind
    x: Tensor
    out: Tensor
    scale: Tensor
    zero_point: Tensor | None = None
    block: tuple[int, ...] | None = None
    offset: bool = False

    @property
    def given(self) -> tuple[Any, ...]:
        """As the operator of ``_out`` takes it."""
        kind, grid = self.kind, self.kind.grid
        first = (self.x, self.scale, self.zero_point)
        match kind.operator:
            case "quantize":
                return (*first, *grid, self.block, self.offset, self.out)
            case "dequantize":
                return (*first, self.block, None, self.offset, self.out)
        return (*first, *grid, self.block, kind.shift, self.offset, self.out)


class _Making:
    def __init__(self, kind: Kind) -> None:
        self.kind, self.drawn = kind, torch.Generator().manual_seed(5)

    def x(self, *shape: int) -> Tensor:
        """Elements next to ties of codes for scales of the sixteenths, with specials among them; or codes."""
        kind = self.kind
        if not kind.x.is_floating_point:
            return torch.randint(-128, 128, shape, generator=self.drawn).to(kind.x)
        sixteenths = torch.randint(-900, 900, shape, generator=self.drawn) / 32
        x = (sixteenths * (1 + 2**-23 * torch.randint(-2, 3, shape, generator=self.drawn))).to(kind.x)
        flat = x.view(-1)
        flat[::53] = torch.nan
        flat[1::61] = torch.inf
        flat[2::67] = -0.0
        return x

    def scale(self, *shape: int) -> Tensor:
        s = torch.randint(1, 17, shape, generator=self.drawn) / 16
        return torch.where(torch.rand(shape, generator=self.drawn) < 0.3, s * 1.1, s)

    def zero_point(self, *shape: int) -> Tensor:
        return torch.randint(-5, 6, shape, generator=self.drawn, dtype=torch.int32)

    def call(
        self, shape: tuple[int, ...], parameters: tuple[int, ...] = (), block: tuple[int, ...] | None = None
    ) -> Call:
        x = self.x(*shape)
        return Call(self.kind, x, self.out(*shape), self.scale(*parameters), self.zero_point(*parameters), block)

    def out(self, *shape: int) -> Tensor:
        return torch.full(shape, 7, dtype=self.kind.out)


def calls(kind: Kind) -> Iterator[tuple[str, Call]]:
    """Each with a name."""
    make = _Making(kind)
    yield from _parameters(make)
    yield from _layouts(make)
    yield from _dtypes(make)
    if kind.x == kind.out:
        yield from _in_place(make)


def _parameters(make: _Making) -> Iterator[tuple[str, Call]]:
    yield "0-d", make.call(())
    for n in (0, 1, 15, 17, 4099):
        yield f"{n} elements", make.call((n,))
    for of_x, of_out in ((1, 1), (3, 0), (0, 5), (16, 8)):
        call = make.call((300,))
        x, out = make.x(320)[of_x : of_x + 300], make.out(320)[of_out : of_out + 300]
        yield f"{of_x} and {of_out} elements into memory", replace(call, x=x, out=out)
    yield "no zero point", replace(make.call((5, 33), (5, 1)), zero_point=None)
    yield "channels, the first axis", make.call((5, 33), (5, 1))
    yield "channels in the midst", make.call((3, 5, 48), (5, 1))
    yield "many short channels", make.call((2, 700, 3), (700, 1))
    yield "channels, the last axis", make.call((9, 67), (67,))
    yield "channels, the last axis, of batches", make.call((4, 9, 64), (4, 1, 64))
    yield "parameters of what is outside", make.call((6, 5, 64), (6, 1, 1))
    yield "columns of every other dimension", make.call((4, 9, 32), (9, 32))
    yield "parameters everywhere", make.call((7, 19), (7, 19))
    yield "parameters in turns", make.call((3, 4, 5, 6), (3, 1, 5, 1))
    yield "scale and zero point of other shapes", replace(make.call((6, 40), (6, 1)), zero_point=make.zero_point(40))
    yield "one scale, zero points per row", replace(make.call((6, 40)), zero_point=make.zero_point(6, 1))
    yield (
        "parameters with strides",
        replace(
            make.call((6, 40), (6, 1)), scale=make.scale(40, 6).t()[:, 3:4], zero_point=make.zero_point(12, 1)[::2]
        ),
    )
    yield "blocks", make.call((4, 96), (4, 3), (1, 32))
    yield "blocks of rows and columns", make.call((6, 64), (3, 2), (2, 32))
    yield "blocks of columns", make.call((64, 6), (2, 6), (32, 1))
    yield "short last blocks", make.call((7, 100), (4, 4), (2, 32))
    yield "short last blocks of three", make.call((5, 7, 11), (3, 3, 3), (2, 3, 4))
    yield "a block larger than the tensor", make.call((5, 20), (1, 1), (8, 2**40))


def _layouts(make: _Making) -> Iterator[tuple[str, Call]]:
    call = make.call((12, 20), (12, 1))
    yield "transposed", replace(call, x=make.x(20, 12).t())
    yield "both transposed", replace(call, x=make.x(20, 12).t(), out=make.out(20, 12).t())
    yield "result transposed", replace(call, out=make.out(20, 12).t())
    yield "rows apart", replace(call, x=make.x(12, 48)[:, 7:27], out=make.out(12, 35)[:, 3:23])
    gaps = replace(make.call((5, 3, 4)), x=make.x(5, 4, 8)[:, :3, :4], out=make.out(5, 4, 8)[:, :3, :4])
    yield "rows apart by their length", gaps
    yield "every other", replace(call, x=make.x(12, 40)[:, ::2], out=make.out(24, 20)[1::2])
    yield "every other of the result", replace(call, out=make.out(12, 40)[:, ::2])
    several = make.call((4, 5, 6), (4, 5, 6))
    apart = replace(several, out=make.out(4, 5, 9)[..., :6])
    yield "scales apart", replace(apart, scale=make.scale(4, 8, 6)[:, :5], zero_point=make.zero_point())
    yield "zero points apart", replace(apart, scale=make.scale(), zero_point=make.zero_point(4, 8, 6)[:, :5])
    yield "expanded", replace(call, x=make.x(20).expand(12, 20))
    yield "one element, expanded", replace(call, x=make.x(1, 1).expand(12, 20))
    ten = (2,) * 10
    backwards = tuple(range(9, -1, -1))
    yield "ten dimensions", replace(make.call(ten, ten[:5] + (1,) * 5), x=make.x(*ten).permute(backwards))


def _dtypes(make: _Making) -> Iterator[tuple[str, Call]]:
    yield "offsets", replace(make.call((4, 40), (4, 1)), offset=True)
    for dtype in (torch.int8, torch.int64, torch.uint32, torch.float64):
        call = make.call((4, 40), (4, 1))
        assert call.zero_point is not None
        yield f"zero points of {dtype}", replace(call, zero_point=call.zero_point.abs().to(dtype))
    for dtype in (torch.float64, torch.bfloat16):
        call = make.call((4, 40), (4, 1))
        yield f"scales of {dtype}", replace(call, scale=call.scale.to(dtype))


def _in_place(make: _Making) -> Iterator[tuple[str, Call]]:
    for shape, parameters in (((3, 67), (3, 1)), ((3, 67), (67,))):
        call = make.call(shape, parameters)
        yield f"in place, parameters of {parameters}", replace(call, out=call.x)
    call = make.call((20, 12), (12,))
    turned = call.x.t()
    yield "in place, transposed", replace(call, x=turned, out=turned, scale=make.scale(12, 1), zero_point=None)
