"""Calls of the forward kernels: boundaries of codes, ragged lengths, odd places in memory, layouts, parameters."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from core_dtypes import DTYPES

from halfeven.reference import Grid
from ptx.forward import Call

__all__ = ["GRIDS", "PROGRAMS", "cases", "every_tie"]

Array = npt.NDArray[Any]

PROGRAMS = (
    ("Quantize", "F32", "F32", "I8"),
    ("Quantize", "BF16", "F32", "U8"),
    ("Quantize", "BF16", "F32", "BF16"),
    ("Quantize", "F16", "F32", "I16"),
    ("Quantize", "F64", "F64", "I32"),
    ("QuantizeDequantize", "F32", "F32", "F32"),
    ("QuantizeDequantize", "BF16", "BF16", "BF16"),
    ("QuantizeDequantize", "F16", "F64", "F16"),
    ("QuantizeDequantizeShifted", "F32", "F32", "F32"),
    ("Dequantize", "I8", "F32", "F32"),
    ("Dequantize", "I64", "F64", "F16"),
)
_BYTE, _BITS12, _INT32 = Grid(-128, 127), Grid(-2048, 2047), Grid(-(2**31), 2**31 - 1)
# The grids for which elements of one dtype are computed in another, or in theirs.
GRIDS = {
    ("F32", "F32"): (_BYTE, Grid(0, 255), Grid(-(2**20), 2**20 - 1), Grid(-8, 7)),
    ("F64", "F64"): (_BYTE, _INT32),
    ("BF16", "F32"): (_BYTE, Grid(0, 255), _BITS12),
    ("F16", "F32"): (_BITS12,),
    ("F16", "F64"): (_INT32,),
    ("BF16", "BF16"): (Grid(-8, 7),),
    ("F16", "F16"): (_BYTE, Grid(3, 3)),
}
# In fours, each with its last an ordinary one: those that a reciprocal in two parts does not serve; extremes; no
# scales; one whose first multiple is beside the middle of two float16, less than float32 tells.
_ODD_SCALES = (
    *map(float.fromhex, ("0x1.dcfffcp+0", "0x1.e9fffcp+0", "0x1.fffffep+0", "0x1.8p-3")),
    *map(float.fromhex, ("0x1.dcfffcp-5", "0x1.55554p+119", "0x1.8p-130", "0x1.4p-4")),
    2.0**-126, 1e30, -0.25, 1 + 2**-23, 0.0, np.inf, np.nan, 1.0, (1 + 2**-11) * (1 + 2**-40), 1e-39, 2.0**-61, 0.3,
)  # fmt: skip


def cases(program: tuple[str, str, str, str]) -> Iterator[tuple[str, Call]]:
    """Calls of a program, each with a name."""
    make = _Making(program)
    for n, at in (
        (1, (0, 0)),
        (15, (0, 0)),
        (16, (0, 0)),
        (17, (1, 1)),
        (33, (0, 1)),
        (64, (15, 15)),
        (67, (7, 0)),
        (301, (3, 3)),
        (301, (0, 0)),
    ):
        yield f"{n} elements at {at}", make.call((1, 1, n), (1, 1, 1), places=at, blocks=(1, 1, 1), threads=(2, 1, 1))
    for length in (5, 16, 32, 37, 128):
        yield f"rows of {length}", make.call((2, 9, length), (2, 9, 1), (2, 9, 1), threads=(2, 4, 1), blocks=(1, 2, 2))
    yield "channels", make.call((3, 5, 48), (1, 5, 1), (1, 1, 1), blocks=(2, 1, 1), threads=(3, 1, 1))
    yield "rows apart", replace(make.call((2, 3, 70), (1, 3, 1), gap=2), gap=1)
    yield "rows apart by packs", replace(make.call((1, 3, 64), (1, 3, 1), gap=32), gap=16)
    odd = len(_ODD_SCALES)
    for grid in make.grids:
        yield f"odd scales, {grid}", make.call((1, odd, 67), (1, odd, 1), (1, 1, 1), odd=True, grid=grid)
        columns = make.call((1, 19, odd), (1, 1, odd), (1, 1, 1), odd=True, grid=grid)
        yield f"odd columns, {grid}", replace(columns, kernel="columns")
    for shape in ((1, 7, 67), (2, 5, 64), (1, 3, 5)):
        yield (
            f"columns of {shape}",
            replace(make.call(shape, (shape[0], 1, shape[2]), (1, 1, shape[2])), kernel="columns"),
        )
    yield (
        "columns, aligned with an end",
        replace(make.call((2, 3, 64), (1, 1, 64), (1, 1, 64), gap=16), gap=16, kernel="columns", offsets=(0, 0)),
    )
    yield "columns at odd places", replace(make.call((1, 4, 96), (1, 1, 96), places=(1, 1)), kernel="columns")
    if program[1] == program[3]:
        yield "in place", replace(make.call((2, 3, 67), (1, 3, 1)), in_place=True)
        yield "columns in place", replace(make.call((2, 3, 67), (1, 1, 67)), in_place=True, kernel="columns")
    strided = {"kernel": "strided", "blocks": (3, 1, 1), "threads": (16, 1, 1)}
    yield "blocks", replace(make.call((3, 10, 21), (2, 3, 4), block=(2, 4, 6)), **strided)
    yield "transposed", replace(make.call((4, 6, 5), (4, 1, 5)), into=(2, 0, 1), **strided)
    call = make.call((4, 3, 5), (1, 3, 1))
    yield "permuted", replace(call, x=np.ascontiguousarray(call.x.transpose(2, 0, 1)).transpose(1, 2, 0), **strided)
    yield "expanded", replace(call, x=np.broadcast_to(call.x[:, :1], (4, 3, 5)), **strided)
    for kind in ("I8", "U8", "I16", "U16", "I32", "U32", "I64", "F32", "F64", "F16", "BF16"):
        yield f"zero points of {kind}", make.call((1, 2, 35), (1, 2, 1), (1, 2, 1), zero_points=kind)
    for kind in ("F64", "F16", "BF16"):
        yield f"scales of {kind}", make.call((1, 2, 35), (1, 2, 1), scales=kind)
    yield (
        "columns, zero points of I64",
        replace(make.call((1, 5, 35), (1, 1, 35), (1, 1, 35), zero_points="I64"), kernel="columns"),
    )
    yield "offsets", replace(make.call((1, 2, 35), (1, 2, 1), (1, 2, 1)), is_offset=True)


class _Making:
    """Calls of one program, with numbers drawn from a seed."""

    def __init__(self, program: tuple[str, str, str, str]) -> None:
        self.operation, self.x, self.compute, self.out = program
        self.rng = np.random.default_rng(list(map(ord, "".join(program))))
        grids = GRIDS.get((self.x, self.compute), (_BYTE,))
        self.grids = [g for g in grids if _held_by(DTYPES[self.out], g, self.operation == "Quantize")]
        self.made = 0

    def call(
        self,
        shape: tuple[int, int, int],
        scales_shape: tuple[int, int, int],
        zero_points_shape: tuple[int, int, int] | None = None,
        *,
        odd: bool = False,
        grid: Grid | None = None,
        scales: str | None = None,
        zero_points: str = "I32",
        block: tuple[int, ...] | None = None,
        places: tuple[int, int] = (0, 0),
        gap: int = 0,
        **launch: tuple[int, int, int],
    ) -> Call:
        """``places`` is in elements after a multiple of 16 bytes."""
        self.made += 1
        grid = grid or self.grids[self.made % len(self.grids)]
        t = DTYPES[self.compute]
        dtype = DTYPES[scales or ("F64" if self.compute == "F64" else "F32")]
        s = np.exp2(self.rng.integers(-6, 3, scales_shape)) * self.rng.uniform(1, 2, scales_shape)
        if odd:
            s = np.resize(_ODD_SCALES, scales_shape)
        with np.errstate(over="ignore"):
            s = s.astype(dtype)
            rounded = s.astype(t)
        z = None
        if zero_points_shape:
            info = np.iinfo(DTYPES[zero_points]) if zero_points[0] in "IU" else None
            low, high = max(info.min if info else -9, -9), min(info.max if info else 9, 9)
            z = self.rng.integers(low, high + 1, zero_points_shape).astype(DTYPES[zero_points])
        x = self._elements(grid, shape if not gap else (*shape[:2], shape[2] + gap), rounded, z, block)
        x = x[..., : shape[2]]
        sizes = DTYPES[self.x].itemsize, DTYPES[self.out].itemsize
        offsets = tuple(n * size for n, size in zip(places, sizes, strict=True))
        shift = 0.5 if self.operation == "QuantizeDequantizeShifted" else 0.0
        return Call(
            self.operation, self.compute, self.out, x, s, z, grid, shift, block=block, offsets=offsets, **launch
        )

    def _elements(
        self, grid: Grid, shape: tuple[int, ...], s: Array, z: Array | None, block: tuple[int, ...] | None
    ) -> Array:
        """Reals next to boundaries of their codes, up to 3 ulp off, with specials among them; or codes."""
        dtype = DTYPES[self.x]
        if self.operation == "Dequantize":
            info = np.iinfo(dtype)
            codes = self.rng.integers(max(info.min, -(2**40)), min(info.max, 2**40), shape, endpoint=True)
            return np.where(self.rng.random(shape) < 0.2, np.abs(codes % 3), codes).astype(dtype)
        if block is not None:
            s = s[np.ix_(*(np.arange(n) // b for n, b in zip(shape, block, strict=True)))]
        elif s.shape[2] not in {1, shape[2]}:
            s = np.resize(s, (*s.shape[:2], shape[2]))
        s = np.broadcast_to(s if s.shape[2] in {1, shape[2]} else s[..., :1], shape).astype(np.float64)
        z_ = 0 if z is None or z.shape[2] not in {1, shape[2]} else z.astype(np.float64)
        codes = self.rng.integers(max(grid.qmin - 2, -(2**33)), min(grid.qmax + 3, 2**33), shape)
        with np.errstate(all="ignore"):
            x = ((codes - z_ + self.rng.choice([0.0, 0.5], shape)) * s).astype(dtype)
            carrier = np.dtype(f"i{dtype.itemsize}")
            x = (x.view(carrier) + self.rng.integers(-3, 4, shape).astype(carrier)).view(dtype)
        info = ml_dtypes.finfo(dtype)
        special = [
            np.nan,
            np.inf,
            -np.inf,
            0.0,
            -0.0,
            float(info.max),
            -float(info.max),
            float(info.smallest_subnormal),
            -1e-30,
        ]
        flat = x.reshape(-1)
        where = self.rng.permutation(flat.size)[: max(flat.size // 16, 1)]
        flat[where] = np.resize(np.asarray(special).astype(dtype), where.size)
        return x


def _held_by(dtype: "np.dtype[Any]", grid: Grid, codes: bool) -> bool:
    if not codes:
        return True
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return bool(info.min <= grid.qmin and grid.qmax <= info.max)
    return grid.qmax - grid.qmin < 2 / float(ml_dtypes.finfo(dtype).eps)


# Those of the scales that the reciprocal does not serve, of powers of two and their neighbours, and others; of the last
# it misses the tie at _FAR, found among some 10^8.
_SIGNIFICANDS = (
    0x6E7FFE,
    0x74FFFE,
    0x7FFFFF,
    0,
    1,
    0x7FFFFE,
    0x6E7FFD,
    0x6E7FFF,
    0x74FFFD,
    0x74FFFF,
    0x2AAAAB,
    0x72084F,
)
_FAR = 835466


def every_tie(program: tuple[str, str, str, str]) -> Iterator[tuple[str, Call]]:
    """The floats at and around every tie up to the bound of the reciprocal, and at some far beyond it.

    A row for each scale: of moderate exponents, and so huge that the second part of the reciprocal is lost.
    """
    operation, x, compute, out = program
    exponents = 127 + np.arange(len(_SIGNIFICANDS)) * 7 % 23 - 11
    bits = np.concatenate([np.array(_SIGNIFICANDS) | e << 23 for e in (exponents, np.full_like(exponents, 127 + 121))])
    scales = bits.astype(np.uint32).view(np.float32)
    for most in (1023, 2**20):
        codes = np.arange(-1026, 1026) if most == 1023 else np.arange(_FAR - 300, _FAR + 300)
        with np.errstate(over="ignore"):
            ties = ((codes + 0.5) * scales.astype(np.float64)[:, None]).astype(DTYPES[x])
        carrier = f"i{ties.itemsize}"
        near = (ties.view(carrier)[:, :, None] + np.arange(-1, 2)).astype(carrier).view(ties.dtype)
        grid = Grid(-most, most)
        yield (
            f"ties of {grid}",
            Call(operation, compute, out, near.reshape(1, len(scales), -1), scales[None, :, None], grid=grid),
        )
