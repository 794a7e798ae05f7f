"""Calls of the gradients in all layouts, whose sums are exact, and of any numbers where no sum is asked for."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

__all__ = ["KINDS", "PROGRAMS", "Call", "Kind", "calls"]


@dataclass(frozen=True)
class Kind:
    """An operator and dtypes, and what else decides what is computed."""

    operator: str
    x: torch.dtype
    grad: torch.dtype
    grid: tuple[int, int] = (-8, 7)
    shift: float = 0.0
    compute: torch.dtype | None = None

    def __str__(self) -> str:
        words = (self.operator, self.x, self.grad, self.grid, *("shifted",) * bool(self.shift))
        return "-".join(map(str, words)).replace("torch.", "")

    @property
    def program(self) -> tuple[str, str, str, str]:
        """What ``programs.backward`` takes."""
        return next(program for program, kind in PROGRAMS.items() if kind is self)


_F32, _BF16, _F16 = torch.float32, torch.bfloat16, torch.float16
PROGRAMS = {
    ("QuantizeDequantize", "F32", "F32", "F32"): Kind("quantize_dequantize", _F32, _F32),
    ("QuantizeDequantize", "BF16", "BF16", "F32"): Kind("quantize_dequantize", _BF16, _BF16, (-128, 127), 0.5),
    ("Quantize", "F16", "F16", "F16"): Kind("quantize", _F16, _F16),
    ("Dequantize", "I8", "F32", "F32"): Kind("dequantize", torch.int8, _F32),
    ("Dequantize", "BF16", "F32", "F64"): Kind("dequantize", _BF16, _F32, compute=torch.float64),
}
KINDS = tuple(PROGRAMS.values())


@dataclass(frozen=True)
class Call:
    """The tensors of a call."""

    kind: Kind
    grad: Tensor
    x: Tensor
    scale: Tensor
    zero_point: Tensor | None
    block: tuple[int, ...] | None = None
    offset: bool = False
    needs: tuple[bool, bool, bool] = (True, True, True)

    @property
    def given(self) -> tuple[Any, ...]:
        """As the operator takes it."""
        kind = self.kind
        tensors = (self.grad, self.x, self.scale, self.zero_point)
        needs = (self.needs[0] and kind.x.is_floating_point, *self.needs[1:])
        if kind.operator == "dequantize":
            return (*tensors, self.block, kind.compute, self.offset, *needs)
        shift = (kind.shift,) if kind.operator == "quantize_dequantize" else ()
        return (*tensors, *kind.grid, self.block, *shift, self.offset, *needs)


class _Making:
    """Elements and gradients on a coarse grid and scales that are powers of two, so that all sums are exact."""

    def __init__(self, kind: Kind, *, exact: bool = True) -> None:
        self.kind, self.exact, self.drawn = kind, exact, torch.Generator().manual_seed(11)

    def x(self, *shape: int) -> Tensor:
        most = 40 if self.kind.x.is_floating_point else 100
        x = torch.randint(-most, most, shape, generator=self.drawn) / (4 if self.kind.x.is_floating_point else 1)
        return (x if self.exact else x * 1.01).to(self.kind.x)

    def grad(self, *shape: int) -> Tensor:
        g = torch.randint(-16, 17, shape, generator=self.drawn) / 8
        return (g if self.exact else g * 1.3).to(self.kind.grad)

    def scale(self, *shape: int) -> Tensor:
        s = torch.exp2(torch.randint(-2, 1, shape, generator=self.drawn).float())
        return s if self.exact else s * 1.1

    def zero_point(self, *shape: int) -> Tensor:
        return torch.randint(-3, 4, shape, generator=self.drawn).float()

    def call(
        self, shape: tuple[int, ...], parameters: tuple[int, ...] = (), block: tuple[int, ...] | None = None
    ) -> Call:
        scale, zero_point = self.scale(*parameters), self.zero_point(*parameters)
        return Call(self.kind, self.grad(*shape), self.x(*shape), scale, zero_point, block)


def calls(kind: Kind) -> Iterator[tuple[str, Call]]:
    """Each with a name."""
    make = _Making(kind)
    yield "0-d", make.call(())
    for n in (0, 1, 9, 300, 17001):
        yield f"{n} elements", make.call((n,))
    for of_x, of_g in ((1, 1), (3, 0), (0, 3), (8, 8)):
        call = make.call((300,))
        moved = replace(call, x=make.x(320)[of_x : of_x + 300], grad=make.grad(320)[of_g : of_g + 300])
        yield f"{of_x} and {of_g} elements into memory", moved
    yield "channels, the first axis", make.call((5, 700), (5, 1))
    yield "long rows", make.call((2, 20000), (2, 1))
    yield "channels in the midst", make.call((3, 5, 48), (5, 1))
    yield "channels, the last axis", make.call((90, 37), (37,))
    yield "channels, the last axis, of batches", make.call((4, 90, 7), (4, 1, 7))
    yield "long columns", make.call((6000, 3), (3,))
    yield "an entry for each element", make.call((6, 9), (6, 9))
    yield "in turns", make.call((3, 4, 5, 6), (3, 1, 5, 1))
    other = replace(make.call((6, 40), (6, 1)), zero_point=make.zero_point(40))
    yield "scale and zero point of other shapes", other
    yield "a zero point per row", replace(make.call((6, 40)), zero_point=make.zero_point(6, 1))
    yield "blocks", make.call((4, 96), (4, 3), (1, 32))
    yield "short last blocks", make.call((7, 100), (4, 4), (2, 32))
    yield "short last blocks of three", make.call((5, 7, 11), (3, 3, 3), (2, 3, 4))
    call = make.call((12, 20), (12, 1))
    yield "transposed", replace(call, x=make.x(20, 12).t())
    yield "both transposed", replace(call, x=make.x(20, 12).t(), grad=make.grad(20, 12).t())
    yield "rows apart", replace(call, x=make.x(12, 48)[:, 7:27], grad=make.grad(12, 35)[:, 3:23])
    columns = replace(call, scale=make.scale(20), zero_point=make.zero_point(20))
    yield "rows apart, of columns", replace(columns, x=make.x(12, 48)[:, 7:27], grad=make.grad(12, 35)[:, 3:23])
    yield "gradient expanded", replace(call, grad=make.grad().expand(12, 20))
    yield "twenty loops", make.call((3,) * 6, (2,) * 6, (2,) * 6)
    yield "offset", replace(call, offset=True)
    integers = torch.arange(12, dtype=torch.int32)[:, None] - 5
    yield "integers", replace(call, zero_point=integers, needs=(True, True, False))
    yield "no zero point", replace(call, zero_point=None)
    yield "other dtypes", replace(call, scale=call.scale.double(), zero_point=make.zero_point(12, 1).to(_BF16))
    for needs in itertools.product((True, False), repeat=3):
        yield f"needs {needs}", replace(call, needs=needs)
    rough = _Making(kind, exact=False)
    one_by_one = rough.call((40, 70), (40, 70))
    one_by_one.x.view(-1)[::9] = torch.nan if kind.x.is_floating_point else 0
    one_by_one.grad.view(-1)[1::7] = -0.0
    yield "any numbers, no sums", replace(rough.call((40, 70), (40, 1)), needs=(True, False, False))
    yield "any numbers, each its own sum", one_by_one
