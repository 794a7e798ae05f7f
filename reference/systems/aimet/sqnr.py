"""AIMET: calibration by the least quantization error over a histogram. Measured, aimet-torch 2.42."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import choice
from halfeven.reference.blocks import Array, BlockSize, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.sums import Open, least_of, one_of
from halfeven.reference.systems.aimet.encodings import LeastScale, min_scale
from halfeven.reference.systems.aimet.histogram import Batches, Histogram, histogram

__all__ = ["Sqnr", "candidates", "costs", "errors_of", "sqnr_encodings"]


@dataclass(frozen=True)
class Sqnr(LeastScale, Batches):
    """The choices in calibrating by the least quantization error."""

    equal: str = choice({
        "first": "takes the first of several candidates of the least error",
        "last": "takes the last of several candidates of the least error",
    })  # fmt: skip
    error: str = choice({"squared": "sums squared errors", "absolute": "sums absolute errors"})
    clipped: str = choice({
        "gamma": "multiplies the error of clipped values by gamma",
        "alike": "counts the error of clipped values like any other",
    })  # fmt: skip
    deltas: str = choice({
        "beyond": "tries deltas up to more than the range needs",
        "range": "tries deltas up to what the range needs",
    })  # fmt: skip
    observed: str = choice(
        {"tried": "tries the offset of the observed range too", "left-out": "tries evenly spread offsets only"}
    )


def _open_choice(b: Sqnr, *, shape: Shape, **given: Any) -> dict[str, Open]:
    """The candidates whose errors some order of addition makes the least."""
    lows, highs = [], []
    for low, high, errors in _tried(b, shape=shape, **given):
        total = costs(errors)
        kept = least_of(errors, total, errors.dtype) or (_best(b, total),)
        lows.append([float(low[i]) for i in kept])
        highs.append([float(high[i]) for i in kept])
    return {"result[0]": one_of(lows, shape), "result[1]": one_of(highs, shape)}


_ARITHMETIC = AsComputed(dtype="float32, the sum of the errors exact")


@formula(
    "aimet/sqnr_encodings",
    equation=(
        r"(\delta, o) = \arg\min \sum_b h_b\, w_b\, (\hat x_b - x_b)^2, \quad \hat x_b = "
        r"(\mathrm{clamp}(\lceil x_b / \delta - o \rfloor, 0, n) + o)\, \delta, \quad "
        r"w_b = \gamma \text{ where it is clipped, else } 1; \quad (\delta o, \delta o + n \delta)"
    ),
    basis=_ARITHMETIC,
    source="aimet-torch 2.42, measured: SqnrEncodingAnalyzer",
    behaviour=Sqnr(),
    versions={"2.42": (Sqnr(later="in-order"), "aimet-torch 2.42, measured")},
    open=_open_choice,
)
def sqnr_encodings(
    b: Sqnr,
    batches: tuple[Array, ...],
    num_steps: int,
    symmetric: bool,
    shape: Shape,
    num_bins: int = 2048,
    *,
    asymmetric_delta_candidates: int = 17,
    symmetric_delta_candidates: int = 101,
    offset_candidates: int = 21,
    gamma: float = 3.0,
    histogram_growth_limit: float | None = None,
    block_size: BlockSize | None = None,
) -> tuple[Array, Array]:
    """Minimum and maximum of the candidate of least error, the first of several; shape and dtype as the histogram's.

    Values stand at the middles of the bins of ``histogram``. Symmetric candidates are deltas, evenly up to more than
    the greatest magnitude needs; asymmetric ones pair deltas with offsets, inside the observed range.

    The library sums the errors in float32, in an order of its own: which candidates may be the least is proved
    (``halfeven.reference.sums.least_of``).

    A minimum of zero may have either sign in the library, which leaves it to the vector width.

    Args:
        batches: as in ``histogram``.
        num_steps: n, codes less one.
        symmetric: the candidates share the offset of a grid around zero.
        shape: of the parameters, and of both results.
        num_bins: bins per parameter.
        asymmetric_delta_candidates: how many deltas are tried if not symmetric, 2 or more.
        symmetric_delta_candidates: how many deltas are tried if symmetric, 2 or more.
        offset_candidates: at most so many offsets are tried, the observed one among them; 3 or more.
        gamma: what the error of a clipped value is multiplied by.
        histogram_growth_limit: ``growth_limit`` of ``histogram``.
        block_size: elements per block, as in ``histogram``.

    Raises:
        ValueError: ``num_steps`` or ``num_bins`` is below 1; ``histogram``'s.
        RuntimeError: ``histogram_growth_limit`` is below 1; ``histogram``'s.
    """
    given = (num_bins, asymmetric_delta_candidates, symmetric_delta_candidates, offset_candidates, gamma)
    lows, highs = [], []
    for low, high, errors in _tried(
        b, batches, num_steps, symmetric, shape, *given, histogram_growth_limit, block_size
    ):
        best = _best(b, costs(errors))
        lows.append(low[best])
        highs.append(high[best])
    return np.array(lows).reshape(shape), np.array(highs).reshape(shape)


def _tried(
    b: Sqnr,
    batches: tuple[Array, ...],
    num_steps: int,
    symmetric: bool,
    shape: Shape,
    num_bins: int,
    asymmetric_delta_candidates: int,
    symmetric_delta_candidates: int,
    offset_candidates: int,
    gamma: float,
    histogram_growth_limit: float | None,
    block_size: BlockSize | None,
) -> Iterator[tuple[Array, Array, Array]]:
    """For each parameter the minima and maxima of its candidates, and the errors of every bin, a row for each of them.

    Arguments and errors as in ``sqnr_encodings``.
    """
    deltas = symmetric_delta_candidates if symmetric else asymmetric_delta_candidates
    seen = histogram(Histogram(later=b.later), batches, shape, num_bins, histogram_growth_limit, block_size)
    if num_steps < 1:
        msg = f"num_steps={num_steps} is not accepted: give 1 or more"
        raise ValueError(msg)
    for counts, edges, least, most in zip(seen["counts"], seen["edges"], seen["min"], seen["max"], strict=True):
        delta, offset = candidates(b, least, most, num_steps, symmetric, deltas, offset_candidates)
        low = offset * delta
        high = low + np.float32(num_steps) * delta
        errors = errors_of(b, counts, edges, delta, offset, num_steps, gamma)
        yield low.astype(least.dtype), high.astype(most.dtype), errors


def candidates(
    b: Sqnr, low: Array, high: Array, n: int, symmetric: bool, num_deltas: int, num_offsets: int
) -> tuple[Array, Array]:
    """Deltas and offsets of the candidates, in order."""
    f32, dtype = np.float32, low.dtype
    t, least = np.promote_types(dtype, f32), min_scale(b, n)
    low, high = np.where(low < 0, low, dtype.type(0)), np.where(high > 0, high, dtype.type(0))
    high = np.maximum(high, (low.astype(t) + t.type(least * n)).astype(dtype))
    grid, most = np.arange(1, num_deltas + 1).astype(f32), f32(num_deltas - (b.deltas == "beyond"))
    if symmetric:
        widest = f32(2) * np.maximum(high, -low).astype(f32) / f32(n)
        delta = np.maximum(widest * grid / most, f32(least))
        return delta, np.full(len(delta), (-n) // 2, f32)
    widest = (high - low).astype(f32) / f32(n)
    observed = np.rint(low.astype(t) / widest.astype(t))
    left = widest * observed
    right = left + widest * f32(n)
    delta = widest * grid / most
    step = n / (min(n + 2, num_offsets) - 2)
    offset = np.rint((-n + np.arange((step + n) / step) * step).astype(f32))
    if b.observed == "tried":
        offset = np.append(offset, observed)
    delta, offset = (a.ravel() for a in np.meshgrid(delta, offset, indexing="ij"))
    lower = np.maximum(left, delta * offset)
    upper = np.minimum(right, delta * offset + delta * f32(n))
    delta = np.maximum((upper - lower) / f32(n), t.type(f32(least)))
    return delta, np.rint(lower / delta)


def _best(b: Sqnr, cost: Array) -> int:
    return int(np.argmin(cost)) if b.equal == "first" else len(cost) - 1 - int(np.argmin(cost[::-1]))


def costs(errors: Array) -> Array:
    """The error of every candidate: the exact sum of its terms, rounded once to float64."""
    return np.array([math.fsum(terms.tolist()) for terms in errors])


def errors_of(b: Sqnr, counts: Array, edges: Array, delta: Array, offset: Array, n: int, gamma: float) -> Array:
    """What each bin adds to the error of each candidate, in the candidates' dtype."""
    t = delta.dtype
    width = edges[1] - edges[0]
    x = (edges[0] + width / np.float32(2)) + width * np.arange(len(counts)).astype(t)
    delta, offset = delta[:, None], offset[:, None]
    code = np.rint(x / delta - offset)
    clipped = (code < 0) | (code > n)
    real = (np.clip(code, 0, n) + offset) * delta
    error = np.abs(real - x)
    error = (error * error if b.error == "squared" else error) * counts
    if b.clipped == "gamma":
        error = np.where(clipped, error * t.type(gamma), error)
    return np.asarray(error)
