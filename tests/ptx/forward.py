"""Calls of the forward kernels as their launcher lays them out, and what the reference gives for them."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from core_dtypes import DTYPES

from halfeven.reference import FORMULAS, Grid, model
from halfeven.reference.blocks import per_element
from halfeven.reference.systems import PROFILES
from ptx.emulate import Memory, Module, placed

__all__ = ["Call", "answer", "differing", "expected", "laid_out"]

Array = npt.NDArray[Any]

_NUMBER = {dtype: i for i, dtype in enumerate(DTYPES.values())}
_AIMET = PROFILES["aimet"]
_MOST_DIMENSIONS = 8
_BYTE = Grid(-128, 127)


class _Parameters(ctypes.Structure):
    _fields_ = (
        ("s", ctypes.c_uint64), ("o", ctypes.c_uint64),
        ("low", ctypes.c_double), ("high", ctypes.c_double), ("shift", ctypes.c_double),
        ("s_dtype", ctypes.c_int8), ("o_dtype", ctypes.c_int8), ("is_offset", ctypes.c_int8),
    )  # fmt: skip


class _Rows(ctypes.Structure):
    _fields_ = (
        ("x", ctypes.c_uint64), ("out", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in (
            "outer", "rows", "len", "x_outer", "x_row", "out_outer", "out_row", "s_outer", "s_step", "o_outer", "o_step"
        )),
        ("parameters", _Parameters),
    )  # fmt: skip


class _Strided(ctypes.Structure):
    _fields_ = (
        ("x", ctypes.c_uint64), ("out", ctypes.c_uint64), ("numel", ctypes.c_int64), ("ndim", ctypes.c_int64),
        *((name, ctypes.c_int64 * _MOST_DIMENSIONS) for name in (
            "size", "x_step", "out_step", "block", "s_step", "o_step"
        )),
        ("parameters", _Parameters),
    )  # fmt: skip


@dataclass(frozen=True)
class Call:
    """One call: ``x`` of any layout; parameters that broadcast to it, or with one entry per block.

    ``offsets`` says how many bytes after a multiple of 16 x and the result begin; a result over ``x`` itself is
    ``in_place``. The result's memory has the dimensions in the order of ``into``, with a ``gap`` after each row.
    """

    operation: str
    compute: str
    out: str
    x: Array
    scale: Array
    zero_point: Array | None = None
    grid: Grid = _BYTE
    shift: float = 0.0
    is_offset: bool = False
    block: tuple[int, ...] | None = None
    offsets: tuple[int, int] = (0, 0)
    in_place: bool = False
    into: tuple[int, ...] = (0, 1, 2)
    gap: int = 0
    kernel: str = "rows"
    blocks: tuple[int, int, int] = (2, 2, 1)
    threads: tuple[int, int, int] = (8, 2, 1)

    @property
    def program(self) -> tuple[str, str, str, str]:
        """What ``programs.forward`` takes."""
        return self.operation, next(name for name, d in DTYPES.items() if d == self.x.dtype), self.compute, self.out


def laid_out(call: Call, x: Array, out: Array, s: Array, o: Array | None) -> bytes:
    """The argument of the kernel, for arrays that are in memory as it finds them."""
    parameters = _Parameters(
        s.ctypes.data, 0 if o is None else o.ctypes.data, call.grid.qmin, call.grid.qmax, call.shift,
        _NUMBER[s.dtype], -1 if o is None else _NUMBER[o.dtype], call.is_offset,
    )  # fmt: skip
    if call.kernel == "strided":
        blocks = call.block or (1,) * x.ndim
        shape = x.shape if call.block is None else tuple(-(-n // b) for n, b in zip(x.shape, blocks, strict=True))
        job = _Strided(x.ctypes.data, out.ctypes.data, x.size, x.ndim, parameters=parameters)
        for name, values in (
            ("size", x.shape), ("x_step", _steps(x)), ("out_step", _steps(out)), ("block", blocks),
            ("s_step", _steps(np.broadcast_to(s, shape))), ("o_step", _steps(_spread(o, shape))),
        ):  # fmt: skip
            getattr(job, name)[: x.ndim] = values[::-1]
        return bytes(job)
    x_, out_ = _steps(x), _steps(out)
    at = 2 if call.kernel == "columns" else 1
    s_, o_ = (_steps(_spread(p, x.shape)) for p in (s, o))
    sizes = (*x.shape, x_[0], x_[1], out_[0], out_[1], s_[0], s_[at], o_[0], o_[at])
    return bytes(_Rows(x.ctypes.data, out.ctypes.data, *sizes, parameters))


def _spread(parameter: Array | None, shape: Sequence[int]) -> Array:
    return np.broadcast_to(np.zeros(()) if parameter is None else parameter, shape)


def _steps(a: Array) -> tuple[int, ...]:
    """In elements. A dimension of one element has none."""
    return tuple(0 if n == 1 else step // a.itemsize for n, step in zip(a.shape, a.strides, strict=True))


def _held(shape: Sequence[int], steps: Sequence[int], dtype: "np.dtype[Any]", offset: int) -> tuple[Array, Array]:
    """An array with these steps at a place in memory, and all that lies between its first element and its last."""
    span = 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    memory = placed(np.full(span, 77, dtype), offset)
    return np.lib.stride_tricks.as_strided(memory, shape, [step * dtype.itemsize for step in steps]), memory


def answer(module: Module, call: Call) -> tuple[Array, dict[str, int]]:
    """What the kernel writes, and its faults."""
    x, x_memory = _held(call.x.shape, _steps(call.x), call.x.dtype, call.offsets[0])
    x[...] = call.x
    if call.in_place:
        out, out_memory = x, x_memory
        memory = [Memory(x_memory, written=True)]
    else:
        like = np.empty([call.x.shape[d] + (call.gap if d == len(call.into) - 1 else 0) for d in call.into], np.int8)
        steps = _steps(like.transpose(*np.argsort(call.into))[..., : call.x.shape[-1]])
        out, out_memory = _held(call.x.shape, steps, DTYPES[call.out], call.offsets[1])
        memory = [Memory(x_memory), Memory(out_memory, written=True)]
    parameters = [None if p is None else placed(np.ascontiguousarray(p)) for p in (call.scale, call.zero_point)]
    memory += [Memory(p) for p in parameters if p is not None]
    s, o = parameters
    assert s is not None
    before = out_memory.copy()
    faults = module.launch(call.kernel, call.blocks, call.threads, laid_out(call, x, out, s, o), memory)
    found = out.copy()
    out[...] = np.lib.stride_tricks.as_strided(before, out.shape, out.strides)
    beside = int((out_memory.view(np.uint8) != before.view(np.uint8)).sum())
    return found, faults | ({"bytes beside the result": beside} if beside else {})


def expected(call: Call) -> Array:
    """What the reference gives."""
    none = np.zeros(call.scale.shape if call.block else (), np.int64)
    zero = none if call.zero_point is None else call.zero_point
    offset = zero if call.is_offset else -zero.astype(np.float64 if zero.dtype.kind not in "iu" else np.int64)
    dtype, x = DTYPES[call.out], call.x
    with np.errstate(all="ignore"):
        match call.operation:
            case "Dequantize":
                t = DTYPES[call.compute]
                real = _AIMET.dequantize(x.astype(np.float64), call.scale, offset, call.grid, t, call.block)
                return real.astype(dtype)
            case "Quantize" if dtype.kind in "iu":
                to_zero_point = replace(_AIMET.model, nan="zero-point")
                codes = model.quantize(to_zero_point, x, call.scale, offset, call.grid, call.block)
                return codes.astype(dtype)
            case "Quantize":
                wide = DTYPES[call.compute]
                return _AIMET.quantize(
                    x.astype(wide), call.scale.astype(wide), offset, call.grid, call.block
                ).astype(dtype)  # fmt: skip
            case _:
                formula = FORMULAS["aimet/affine.quantize_dequantize"].function
                ends = {"qmin": call.grid.qmin, "qmax": call.grid.qmax, "zero_point_shift": call.shift}
                s, o = (per_element(p, x.shape, call.block) for p in (call.scale, offset))
                return formula(x, s, o, **ends)


def differing(found: Array, wanted: Array) -> int:
    """How many elements have other bits; NaN is one value."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    kind = f"u{found.itemsize}"
    same = np.ascontiguousarray(found).view(kind) == np.ascontiguousarray(wanted).view(kind)
    if found.dtype.kind not in "iu":
        same |= np.isnan(found) & np.isnan(wanted)
    return int((~same).sum())
