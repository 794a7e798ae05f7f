"""What is measured, as data: operations, dtypes, layouts and sizes; and the tensors of one case.

Inputs are N(0, 1) with scales about 0.0123, so that some codes clip and nothing is subnormal.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["COLUMNS", "LAYOUTS", "QMAX", "QMIN", "SCALE", "TABLES", "ZERO_POINT", "Case", "Column", "Table", "columns"]

QMIN, QMAX = -128, 127
SCALE, ZERO_POINT = float(torch.tensor(0.0123)), 3

# The length of a block along the last dimension, or the axis whose every index has a scale of its own.
LAYOUTS: dict[str, dict[str, int]] = {
    "tensor": {},
    "axis 0": {"axis": 0},
    "axis -1": {"axis": 1},
    "blocks of 32": {"block": 32},
    "blocks of 128": {"block": 128},
}
_SOME = ("tensor",)
_PLAN: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("quantize", "float32", tuple(LAYOUTS)),
    ("quantize", "bfloat16", tuple(LAYOUTS)),
    ("fake quantize", "float32", tuple(LAYOUTS)),
    ("fake quantize", "bfloat16", tuple(LAYOUTS)),
    ("dequantize", "float32", tuple(LAYOUTS)),
    ("backward, x", "float32", _SOME),
    ("backward, x", "bfloat16", _SOME),
    ("backward, x and parameters", "float32", tuple(LAYOUTS)),
    ("backward, x and parameters", "bfloat16", _SOME),
    ("aminmax", "float32", tuple(LAYOUTS)),
    ("aminmax", "bfloat16", _SOME),
    ("amax", "float32", tuple(LAYOUTS)),
    ("amax", "bfloat16", _SOME),
)


class Table(NamedTuple):
    """One operation; ``dtype`` is that of the reals."""

    operation: str
    dtype: str
    layout: str

    def __str__(self) -> str:
        return f"{self.operation}, {self.dtype}, per {self.layout}".replace("per blocks", "blocks")


TABLES = tuple(Table(o, d, layout) for o, d, layouts in _PLAN for layout in layouts)


class Column(NamedTuple):
    """A size and a number of threads; ``kept``: with freed pages kept, so that a fresh result costs no faults."""

    size: str
    shape: tuple[int, int]
    threads: int
    kept: bool = False

    def __str__(self) -> str:
        kept = ", pages kept" if self.kept else ""
        return f"{self.size}{kept}, {self.threads} thread{'s'[: self.threads - 1]}"


COLUMNS = (
    Column("call", (8, 128), 1),
    Column("cache", (1024, 1024), 1),
    Column("cache", (1024, 1024), 2),
    Column("memory", (4096, 4096), 1),
    Column("memory", (4096, 4096), 2),
    Column("memory", (4096, 4096), 1, kept=True),
    Column("memory", (4096, 4096), 2, kept=True),
)


def columns(table: Table) -> Iterator[Column]:
    """The columns of a table. A gradient has no ``out=``, so only it is also measured with pages kept."""
    return (c for c in COLUMNS if not c.kept or table.operation.startswith("backward"))


@dataclass(frozen=True)
class Case:
    """The tensors of one table at one size. All of them are read only, save ``out``."""

    table: Table
    shape: tuple[int, int]
    device: str = "cpu"

    @cached_property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = getattr(torch, self.table.dtype)
        return dtype

    @property
    def axis(self) -> int | None:
        return LAYOUTS[self.table.layout].get("axis")

    @property
    def block(self) -> int | None:
        return LAYOUTS[self.table.layout].get("block")

    @property
    def block_size(self) -> tuple[int, int] | None:
        """One entry per dimension; None where the parameters broadcast."""
        return (1, self.block) if self.block else None

    @property
    def per_tensor(self) -> bool:
        return self.table.layout == "tensor"

    @cached_property
    def x(self) -> Tensor:
        return self._there(torch.randn(self.shape, generator=_generator(1)).to(self.dtype))

    @cached_property
    def grad(self) -> Tensor:
        return self._there(torch.randn(self.shape, generator=_generator(2)).to(self.dtype))

    @cached_property
    def codes(self) -> Tensor:
        return self._there(torch.randint(QMIN, QMAX + 1, self.shape, generator=_generator(3), dtype=torch.int8))

    @cached_property
    def scale(self) -> Tensor:
        """float32: 0-d, (n, 1), (n,), or one per block."""
        if self.per_tensor:
            return self._there(torch.tensor(SCALE))
        return self._there(SCALE * (0.5 + torch.rand(self._parameter_shape, generator=_generator(4))))

    @cached_property
    def zero_point(self) -> Tensor:
        """int32, of the scale's shape."""
        if self.per_tensor:
            return self._there(torch.tensor(ZERO_POINT, dtype=torch.int32))
        drawn = torch.randint(-5, 6, self._parameter_shape, generator=_generator(5), dtype=torch.int32)
        return self._there(drawn)

    @property
    def _parameter_shape(self) -> tuple[int, ...]:
        rows, row = self.shape
        if self.block:
            return rows, row // self.block
        return (rows, 1) if self.axis == 0 else (row,)

    @cached_property
    def out(self) -> Tensor:
        """Where implementations with ``out=`` write. It stays mapped, so its pages cost nothing."""
        dtype = torch.int8 if self.table.operation == "quantize" else self.dtype
        return torch.zeros(self.shape, dtype=dtype, device=self.device)

    def _there(self, t: Tensor) -> Tensor:
        return t.to(self.device)

    @cached_property
    def elements(self) -> int:
        return self.shape[0] * self.shape[1]

    @cached_property
    def bytes(self) -> int:
        """What the operation must at least move, its parameters aside."""
        per_element = {"quantize": self.dtype.itemsize + 1, "dequantize": 1 + self.dtype.itemsize}
        reals = {"fake quantize": 2, "aminmax": 1, "amax": 1}.get(self.table.operation, 3)
        return self.elements * per_element.get(self.table.operation, reals * self.dtype.itemsize)

    @cached_property
    def limit(self) -> Callable[[], object]:
        """``copy_`` that moves these bytes: of the operation's dtypes where it has one tensor in and one out.

        For a call what counts is how torch gets there: gradients stand beside autograd's pass through a negation. On
        another device than the CPU it is of bytes alone, since there a copy that converts may be the slower one.
        """
        if self.device == "cpu" and self.table.operation in {"quantize", "fake quantize", "dequantize"}:
            source = self.codes if self.table.operation == "dequantize" else self.x
            return _copy(source, torch.zeros_like(self.out))
        if self.table.operation.startswith("backward") and self.elements < 2**12:
            x = self.x.detach().requires_grad_()
            negated, grad = x.neg(), self.grad
            return lambda: torch.autograd.grad(negated, x, grad, retain_graph=True)
        source = torch.zeros(self.bytes // (2 * self.dtype.itemsize), dtype=self.dtype, device=self.device)
        return _copy(source, torch.zeros_like(source))


def _copy(source: Tensor, target: Tensor) -> Callable[[], object]:
    return lambda: target.copy_(source)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
