"""Jobs of the kernels: boundaries of codes, hard scales, ragged lengths, odd places in memory, all 16-bit inputs."""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from core_dtypes import DTYPES

from targets.driver import END, OPERATIONS, START, Job

__all__ = ["FORWARD", "combination", "elements", "layouts", "patterns"]

Array = npt.NDArray[Any]
_REALS, _CODES = ("F32", "F64", "F16", "BF16"), ("I8", "U8", "I16", "U16", "I32")
_FROM = {"F32": ("F32", "F64"), "F64": ("F64",), "F16": ("F16", "F32", "F64"), "BF16": ("BF16", "F32", "F64")}


def _combinations() -> Iterator[tuple[str, str, str, str]]:
    for op, into in itertools.product(OPERATIONS[:3], _REALS):
        for compute in _FROM[into]:
            for out in (*_CODES, into) if op == "Quantize" else (into,):
                yield op, into, compute, out
    for into, compute in itertools.product((*_REALS, *_CODES, "I64"), _REALS):
        yield "Dequantize", into, compute, compute


#: Every combination of dtypes that a forward kernel is for.
FORWARD = tuple(_combinations())

# Significands that a reciprocal in two parts does not serve, and ordinary ones; ends of the exponents that it serves,
# and beyond; subnormal and huge ones; none.
_SCALES = (
    *map(float.fromhex, ("0x1.dcfffcp+0", "0x1.e9fffcp+0", "0x1.fffffep+0", "0x1.dcfffcp-7", "0x1.e9fffcp+3")),
    *(float.fromhex(f"0x1.{m}p{e}") for m, e in (("fffffe", -9), ("dcfffa", -2), ("e9fffe", 1), ("fffffc", 0))),
    1.0, 0.1, 1 / 3, 0.0371, 0.75, 3.0, 7e-5, 1 + 2**-23, 2.0**-7, 1.7, 255.0, 1 / 127, 2 / 255, 1e-3, 11.3,
    2.0**-60, 2.0**60, 2.0**-61, 1.5 * 2.0**60, 1.3e-20, 2.0**-126, 2.0**-126 * (1 + 2**-23), 1e-39, 1e-45, 1e30, 3e38,
    0.0, -0.0, -0.25, np.inf, -np.inf, np.nan,
)  # fmt: skip
_OFFSETS = (0.0, -0.0, 3.0, -128.0, 127.0, -5.0, 0.5, 3.3, 300.0, -1000.0, 2.0**24, 1e30, np.inf, np.nan)


def combination(op: str, into: str, compute: str, out: str) -> Job:
    """A job without elements, on a grid that the dtypes hold."""
    low, high = {
        "I8": (-128, 127),
        "U8": (0, 255),
        "U16": (0, 255),
        "I16": (-256, 255),
    }.get(out, (-8, 7) if compute in {"F16", "BF16"} else (-128, 127))
    if out in {"I16", "I32"} and compute in {"F32", "F64"}:
        low, high = (-(2**15), 2**15 - 1) if out == "I16" else (-(2**20), 2**20 - 1)
    if out == "I32" and compute == "F64":
        low, high = -(2**31), 2**31 - 1
    shift = 0.3 if op == "QuantizeDequantizeShifted" else 0.0  # which 16 bits round
    return Job("forward", np.empty((0, 0), DTYPES[into]), op, into, compute, out, grid=(low, high), shift=shift)


def _held(values: Array, compute: str) -> Array:
    """Parameters as kernels get them: rounded to the arithmetic's dtype, in float32 or float64."""
    with np.errstate(all="ignore"):
        return values.astype(DTYPES[compute]).astype(np.float64 if compute == "F64" else np.float32)


def _complete(job: Job, x: Array, s: Array, o: Array, **more: Any) -> Job:
    made = ((DTYPES[job.out], x.size),)
    s, o = _held(s, job.compute), _held(o, job.compute)
    return replace(job, x=np.ascontiguousarray(x), s=s, o=o, made=made, **more)


def _specials(dtype: "np.dtype[Any]") -> Array:
    info = ml_dtypes.finfo(dtype)
    least = [float(info.smallest_subnormal), float(info.tiny)]
    values = [0.0, np.nan, np.inf, float(info.max), *least, 0.5, 1.5, 3e9 if dtype.itemsize > 2 else 60000.0]
    return np.array([sign * v for v in values for sign in (1, -1)]).astype(dtype)


@functools.cache
def _ties(into: str, scale: float, offset: float, low: int, high: int, shift: float) -> Array:
    """What lies up to 2 ulp from the boundaries between codes, or the specials' places where there are none."""
    dtype = DTYPES[into]
    codes = np.arange(max(low - 2, -130), min(high + 2, 257) + 1)
    if high > 256:
        codes = np.unique(np.concatenate([np.arange(-20, 20), low + np.arange(-2, 3), high + np.arange(-2, 3)]))
    finite = offset if np.isfinite(offset) and abs(offset) < 2**20 else 0.0
    with np.errstate(all="ignore"):
        x = ((codes + 0.5 + np.rint(finite) + shift) * scale).astype(dtype)
        carrier = f"i{dtype.itemsize}"
        moved = x.view(carrier) + np.arange(-2, 3, dtype=carrier)[:, None]
    return np.concatenate([moved.view(dtype).ravel(), _specials(dtype)])


def _row(job: Job, scale: float, offset: float) -> Array:
    if job.op != "Dequantize":
        held, shift = float(_held(np.array([scale]), job.compute)[0]), job.shift
        return _ties(job.into, held, offset, int(job.grid[0]), int(job.grid[1]), shift)
    dtype = DTYPES[job.into]
    if dtype.kind not in "iu":
        return np.concatenate([_specials(dtype), np.arange(-260, 260).astype(dtype)])
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max - 1, info.max, info.max // 3]
    return np.unique(
        np.concatenate([np.array(ends, dtype), np.arange(max(info.min, -128), min(info.max, 256), dtype=dtype)])
    )


def elements(job: Job) -> Iterator[Job]:
    """Boundaries and specials for hard scales and offsets: each a row, and each a column of its own beside others."""
    pairs = [(s, 0.0) for s in _SCALES] + [(s, o) for s in (0.1, 1.7, float.fromhex("0x1.fffffep+0")) for o in _OFFSETS]
    rows = [_row(job, s, o) for s, o in pairs]
    for (s, o), x in zip(pairs, rows, strict=True):
        yield _complete(job, x[None], np.array([s]), np.array([o]))
    # Scales that all qualify, then all of them; the columns are one after the other in a row, 48 of the elements each.
    size = max(map(len, rows))
    for chosen in (range(24), range(len(pairs))):
        x = np.stack([np.resize(rows[i], size) for i in chosen], 1)
        s, o = (np.array([pairs[i][k] for i in chosen]) for k in (0, 1))
        times = -(-64 // len(s))
        yield _complete(job, np.tile(x, (1, times)), np.tile(s, times), np.tile(o, times), columns=True)
    whole = [i for i, o in enumerate(_OFFSETS) if np.isfinite(o) and o == round(o) and abs(o) < 200]
    x = np.stack([np.resize(_row(job, 0.3, _OFFSETS[i]), size) for i in whole * 9], 1)
    o = np.array([_OFFSETS[i] for i in whole * 9])
    yield _complete(job, x, np.full(len(o), 0.3), o, columns=True)


def layouts(job: Job) -> Iterator[Job]:
    """Ragged lengths at the end and the beginning of a page, and at places between, in one row and in several."""
    rng = np.random.default_rng(7)
    item, to = DTYPES[job.into].itemsize, DTYPES[job.out].itemsize
    flags = itertools.cycle([(False, False), (True, True), (True, False)])
    places = itertools.cycle(
        [(END, END, END), (START, END, START), (item, END, 0), (0, END, to), (END, END, 7 * to), (3 * item, END, START)]
    )

    def numbers(rows: int, length: int) -> Array:
        if DTYPES[job.into].kind in "iu":
            return rng.integers(0, 100, (rows, length)).astype(DTYPES[job.into])
        x = (rng.normal(size=(rows, length)) * 4).astype(DTYPES[job.into])
        x.flat[rng.integers(0, x.size)] = _specials(x.dtype)[rng.integers(0, 18)]
        return x

    sizes = [(1, n) for n in range(1, 71)] + [(5, n) for n in (1, 7, 16, 31, 32, 33, 64, 65, 100)]
    sizes += [(3, 1000), (1, 4099), (7, 1024), (4, 128), (33, 16), (9, 64)]
    for (rows, length), columns in itertools.product(sizes, (False, True)):
        rows_ = rows if not columns or rows > 1 or length % 3 else 6
        far, stream = next(flags)
        n = length if columns else rows_
        s, o = rng.uniform(0.01, 0.5, n), rng.integers(-3, 4, n).astype(np.float64)
        in_place = job.into == job.out and length % 5 == 1
        gap = 64 * (length % 2) if length % 4 < 2 else max(item, to) * (length % 7)
        gaps = (gap // item * item, 0, gap // to * to)
        yield _complete(
            job, numbers(rows_, length), s, o, columns=columns, far=far, stream=stream and not in_place,
            in_place=in_place, places=next(places), gaps=gaps,
        )  # fmt: skip


def patterns(job: Job) -> Iterator[Job]:
    """All inputs of 16 bits."""
    x = np.arange(2**16, dtype=np.uint16).view(DTYPES[job.into])[None]
    for s, o in ((0.0371, 3.0), (float.fromhex("0x1.dcfffcp-5"), 0.0), (1.7, 0.5)):
        yield _complete(job, x, np.array([s]), np.array([o]))
