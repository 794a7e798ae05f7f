"""What the reference gives for the jobs of the kernels."""

from typing import Any

import numpy as np
import numpy.typing as npt
from core_dtypes import DTYPES

from halfeven.reference import FORMULAS, model
from halfeven.reference.rounding import cast_once
from halfeven.reference.systems import PROFILES
from targets.driver import Job

__all__ = ["differing", "forward", "gradients", "loaded", "saved", "sums_of_columns", "sums_of_rows"]

Array = npt.NDArray[Any]

_MODEL = PROFILES["aimet"].model
_FORMULAS = {
    "Quantize": "aimet/quantize_gradient",
    "Dequantize": "aimet/dequantize_gradient",
    "QuantizeDequantize": "aimet/quantize_dequantize_gradient",
}


def loaded(a: Array, compute: str) -> Array:
    """Elements in the dtype of the arithmetic: to 16 bits through float32, as core/arith.h says."""
    t = DTYPES[compute]
    return a.astype(t) if a.dtype == t or t.itemsize > 2 else a.astype(np.float32).astype(t)


def forward(job: Job) -> Array:
    """The elements of the result."""
    t, to = DTYPES[job.compute], DTYPES[job.out]
    s, o = (np.asarray(p)[None, :] if job.columns else np.asarray(p)[:, None] for p in (job.s, job.o))
    s, o = s.astype(t), o.astype(np.float64)
    with np.errstate(all="ignore"):
        if job.op == "Dequantize":
            return model.reals_of(_MODEL, loaded(job.x, job.compute), s, o, t)
        lo, hi = (np.asarray(end, np.float64) for end in job.grid)
        z = model.zero_of(_MODEL, o)
        v = model.quotients(_MODEL, job.x, s, z, lo, hi, t)
        shift = np.asarray(job.shift, t)
        if job.op == "QuantizeDequantizeShifted":
            v = v - shift
        q = model.codes_of(_MODEL, model.rounded_of(_MODEL, v, z, lo, hi), z, lo, hi)
        if job.op == "Quantize" and to.kind in "iu":
            # NaN, from wherever it comes, has the code of 0; an offset that is NaN counts as 0.
            of_nan = np.clip(np.where(np.isnan(z), 0, z), lo, hi)
            return np.where(np.isnan(q), of_nan, q.astype(np.float64)).astype(to)
        if job.op == "Quantize":
            return cast_once(q, to)
        back = o.astype(t) if job.op == "QuantizeDequantize" else o.astype(t) + shift
        return cast_once((q.astype(t) + back) * s, to)


def gradients(job: Job) -> tuple[Array, Array, Array]:
    """Each element's dx, in memory's dtype, and its terms of the sums for scale and offset."""
    t = DTYPES[job.compute]
    memory = job.x.dtype
    given = memory if memory.itemsize == 2 else t
    shape = job.x.shape
    s, o = (np.asarray(p)[None, :] if job.columns else np.asarray(p)[:, None] for p in (job.s, job.o))
    s, o = (np.ascontiguousarray(np.broadcast_to(p, shape).astype(t)) for p in (s, o))
    x, g = job.x.astype(given), np.asarray(job.g).astype(given)
    function = FORMULAS[_FORMULAS[job.op]].function
    with np.errstate(all="ignore"):
        if job.op == "Dequantize":
            dx, ds, d_o = function(x, s, o, g)
        else:
            ends = {"qmin": int(job.grid[0]), "qmax": int(job.grid[1]), "gradient": g}
            shift = {"zero_point_shift": job.shift} if job.op == "QuantizeDequantize" else {}
            dx, ds, d_o = function(x, s, o, **ends, **shift)
        return dx.astype(memory), ds.astype(np.float64), d_o.astype(np.float64)


def sums_of_rows(terms: Array) -> Array:
    """The sum of each row in the order of cpu/backward/kernels.h: four lanes, sixteen terms at a time."""
    rows, n = terms.shape
    total, i = np.full((rows, 4), -0.0), 0
    with np.errstate(all="ignore"):
        for i in range(0, n // 16 * 16, 16):
            a, b, c, d = (terms[:, i + 4 * k : i + 4 * k + 4] for k in range(4))
            total += (a + b) + (c + d)
        rest = terms[:, n // 16 * 16 :]
        for i in range(0, rest.shape[1], 4):
            four = np.full((rows, 4), -0.0)
            four[:, : rest.shape[1] - i] = rest[:, i : i + 4]
            total += four
        return (total[:, 0] + total[:, 2]) + (total[:, 1] + total[:, 3])


def sums_of_columns(first: Array, terms: Array) -> Array:
    """The sums so far and the terms of each row, one row after the other."""
    total = first.copy()
    with np.errstate(all="ignore"):
        for row in terms:
            total += row
    return total


def saved(a: Array, to: str, compute: str | None = None) -> Array:
    """Numbers in memory's dtype, rounded once; sums are rounded to the dtype of the arithmetic first."""
    with np.errstate(all="ignore"):
        return cast_once(a if compute is None else cast_once(a, DTYPES[compute]), DTYPES[to])


def differing(found: Array, wanted: Array) -> Array:
    """Where the bits differ; NaN is one value."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), (found.dtype, wanted.dtype, wanted.shape)
    kind = f"u{found.itemsize}"
    same = np.ascontiguousarray(found).view(kind) == np.ascontiguousarray(wanted).view(kind)
    if found.dtype.kind not in "iu":
        same |= np.isnan(found) & np.isnan(wanted)
    return np.flatnonzero(~same)
