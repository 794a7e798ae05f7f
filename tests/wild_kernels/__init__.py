"""Quantizers as people write them, and what each of them does: in NumPy, torch, C and plain Python."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.configuration import DTYPES, Case, Configuration
from halfeven.conformance.engine.call import CallShape
from halfeven.conformance.engine.fitting.elements import Observed
from halfeven.conformance.inputs import boundaries
from halfeven.reference import Grid

Array = np.ndarray
F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
INT8, BYTE, INT4, NIBBLE = Grid(-128, 127), Grid(0, 255), Grid(-8, 7), Grid(0, 15)
INT32, INT31 = Grid.from_dtype(np.int32), Grid.from_bitwidth(31, signed=True)


@dataclass(frozen=True, eq=False)
class Kernel:
    """One quantizer.

    Attributes:
        name: what it is, as people call it.
        function: of x (or codes), scale, zero point, qmin and qmax; gives codes or reals.
        does: the choices other than the textbook's that it makes, each with the values that say so.
        where: the choices that it makes in one region, and the start of the region's words.
        operation, dtype, grids: what it can do.
        zeros: whether it takes zero points other than the usual one.
        one: whether all calls have one dimension and one scale, else they have rows with scales.
    """

    name: str
    function: Callable[..., Array]
    does: Mapping[str, Any] = field(default_factory=dict)
    where: tuple[str, Mapping[str, Any]] | None = None
    operation: str = "quantize"
    dtype: str = "float32"
    grids: tuple[Grid, ...] = (INT8, BYTE)
    zeros: bool = True
    one: bool = True
    specials: bool = True
    large: bool = False


def calls(kernel: Kernel, seed: int = 0, scales: int = 12) -> Iterator[Case]:
    """The calls: boundaries of many scales and zero points, what no grid holds, and tensors of many sizes."""
    rng, t = np.random.default_rng([seed, 7]), DTYPES[kernel.dtype]
    for grid in kernel.grids:
        for i in range(scales):
            s = np.asarray([0.1, 0.5, 0.02][i] if i < 3 and not seed else 2.0 ** rng.uniform(-7, 3), F32)
            s = s.astype([F32, F16, BF16][i % 3]).astype(t)  # ties of a scale that is rounded, too
            z = (
                int(rng.integers(grid.qmin, grid.qmax + 1))
                if kernel.zeros
                else max(0, grid.qmin + 8 * (grid == NIBBLE))
            )
            usual = [0, 3, grid.qmax, -5 if grid.qmin < 0 else 128]
            z = usual[i] if kernel.zeros and i < 4 and usual[i] in grid else z
            yield _case(kernel, grid, _hard(kernel, grid, s, z, rng), s, z, i)
        for n in (1, 2, 3, 5, 6, 7, 11, 13, 14, 22, 30, 46, 94, 95, 126, 254, 251):
            s, z = np.asarray(0.1 if n % 3 else 0.75, t), 0 if grid.qmin < 0 or kernel.zeros else 8 * (grid == NIBBLE)
            x = _hard(kernel, grid, s, z, rng) if n % 2 or kernel.operation == "dequantize" else _ties(grid, s, z, rng)
            yield _case(kernel, grid, x[:n], s, z, 0)
    if kernel.large:
        s = np.asarray(0.1, t)
        yield _case(kernel, kernel.grids[0], np.resize(_hard(kernel, kernel.grids[0], s, 0, rng), 70_001), s, 0, 0)


def _hard(kernel: Kernel, grid: Grid, s: Array, z: int, rng: np.random.Generator) -> Array:
    t = DTYPES[kernel.dtype]
    if kernel.operation == "dequantize":
        codes = np.arange(grid.qmin, grid.qmax + 1)
        return rng.permutation(np.resize(codes, max(600, codes.size))).astype("int16")
    wide, point = np.asarray([float(s)]), np.array([z])
    x = [boundaries.boundaries(wide, point, grid, t)[0], boundaries.edges(wide, point, grid, t)[0]]
    x.append((rng.normal(0, 40, 100) * float(s)).astype(t))
    if kernel.specials:
        x.append(boundaries.huge(wide, t)[0])
        x.append(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, np.nan], t))
    return rng.permutation(np.concatenate(x))


def _ties(grid: Grid, s: Array, z: int, rng: np.random.Generator) -> Array:
    codes = rng.integers(grid.qmin, grid.qmax, 300) - z + 0.5
    return (codes * float(s)).astype(s.dtype)


def _case(kernel: Kernel, grid: Grid, x: Array, s: Array, z: int, i: int) -> Case:
    rows = not kernel.one and i % 2 == 1
    if rows:
        x = x[: x.size // 4 * 4].reshape(4, -1)
        scale = (np.asarray(s) * np.array([1, 3, 0.7, 0.11])).astype(s.dtype)[:, None]
        c = Configuration(kernel.operation, kernel.dtype, grid, x.shape, "channel", (1, x.shape[1]))
        return Case(c, x, scale, np.full((4, 1), z, np.int32))
    return Case(Configuration(kernel.operation, kernel.dtype, grid, x.shape), x, s, np.asarray(z, np.int32))


def answered(kernel: Kernel, case: Case) -> Observed:
    """What the kernel answers to a call."""
    c = case.configuration
    with np.errstate(all="ignore"):
        scale, zero = np.atleast_1d(np.squeeze(case.scale)), np.atleast_1d(np.squeeze(case.zero))
        rows = case.x.reshape(len(scale), -1)
        found = [
            kernel.function(x, s, int(z), c.grid.qmin, c.grid.qmax) for x, s, z in zip(rows, scale, zero, strict=True)
        ]
    value = np.stack(found).reshape(case.x.shape)
    return Observed(case, value if c.operation == "quantize" else value.astype(DTYPES[c.dtype]), shape=CallShape())
