"""AIMET: calibration by the least quantization error over a histogram. Measured, aimet-torch 2.42."""

import math

import numpy as np

from halfeven.reference.blocks import BlockSize, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.aimet.encodings import min_scale
from halfeven.reference.profiles.aimet.histogram import histogram, histogram_2_42
from halfeven.reference.profiles.profile import Array

__all__ = ["candidates", "costs", "sqnr_encodings", "sqnr_encodings_2_42"]

_ARITHMETIC = AsComputed(dtype="float32, the sum of the errors exact")


@formula(
    "aimet.sqnr_encodings",
    equation=(
        r"(\delta, o) = \arg\min \sum_b h_b\, w_b\, (\hat x_b - x_b)^2, \quad \hat x_b = "
        r"(\mathrm{clamp}(\lceil x_b / \delta - o \rfloor, 0, n) + o)\, \delta, \quad "
        r"w_b = \gamma \text{ where it is clipped, else } 1; \quad (\delta o, \delta o + n \delta)"
    ),
    basis=_ARITHMETIC,
    source="aimet-torch 2.42, measured: SqnrEncodingAnalyzer",
)
def sqnr_encodings(
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

    The library sums the errors in float32 and may prefer another candidate whose error is larger by no more than
    2 B u / (1 - B u) of it, with u = 2^-24 and B bins.

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
    _refuse(histogram_growth_limit)
    candidates = symmetric_delta_candidates if symmetric else asymmetric_delta_candidates
    seen = histogram(batches, shape, num_bins, histogram_growth_limit, block_size)
    return _best(seen, num_steps, symmetric, shape, candidates, offset_candidates, gamma)


@formula(
    "aimet.sqnr_encodings@2.42",
    equation=r"\text{histogram of 2.42}",
    basis=_ARITHMETIC,
    source="aimet-torch 2.42, measured",
)
def sqnr_encodings_2_42(
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
    """``sqnr_encodings``, but later batches are counted as if the parameters were along the first dimension."""
    _refuse(histogram_growth_limit)
    candidates = symmetric_delta_candidates if symmetric else asymmetric_delta_candidates
    seen = histogram_2_42(batches, shape, num_bins, histogram_growth_limit, block_size)
    return _best(seen, num_steps, symmetric, shape, candidates, offset_candidates, gamma)


def _refuse(histogram_growth_limit: float | None) -> None:
    if histogram_growth_limit is not None and histogram_growth_limit < 1:
        msg = f"histogram_growth_limit={histogram_growth_limit} is not accepted: give 1 or more"
        raise RuntimeError(msg)


def _best(
    seen: dict[str, Array], n: int, symmetric: bool, shape: Shape, deltas: int, offsets: int, gamma: float
) -> tuple[Array, Array]:
    if n < 1:
        msg = f"num_steps={n} is not accepted: give 1 or more"
        raise ValueError(msg)
    lows, highs = [], []
    for row in zip(seen["counts"], seen["edges"], seen["min"], seen["max"], strict=True):
        delta, offset = candidates(row[2], row[3], n, symmetric, deltas, offsets)
        best = int(np.argmin(costs(row[0], row[1], delta, offset, n, gamma)))  # the first of the least
        low = offset[best] * delta[best]
        lows.append(low.astype(row[2].dtype))
        highs.append((low + np.float32(n) * delta[best]).astype(row[3].dtype))
    return np.array(lows).reshape(shape), np.array(highs).reshape(shape)


def candidates(
    low: Array, high: Array, n: int, symmetric: bool, num_deltas: int, num_offsets: int
) -> tuple[Array, Array]:
    """Deltas and offsets of the candidates, in order."""
    f32, dtype = np.float32, low.dtype
    t, least = np.promote_types(dtype, f32), min_scale(n)
    low, high = np.where(low < 0, low, dtype.type(0)), np.where(high > 0, high, dtype.type(0))
    high = np.maximum(high, (low.astype(t) + t.type(least * n)).astype(dtype))
    grid = np.arange(1, num_deltas + 1).astype(f32)
    if symmetric:
        widest = f32(2) * np.maximum(high, -low).astype(f32) / f32(n)
        delta = np.maximum(widest * grid / f32(num_deltas - 1), f32(least))
        return delta, np.full(len(delta), (-n) // 2, f32)
    widest = (high - low).astype(f32) / f32(n)
    observed = np.rint(low.astype(t) / widest.astype(t))
    left = widest * observed
    right = left + widest * f32(n)
    delta = widest * grid / f32(num_deltas - 1)
    step = n / (min(n + 2, num_offsets) - 2)
    offset = np.rint((-n + np.arange(math.ceil((step + n) / step)) * step).astype(f32))
    delta, offset = (a.ravel() for a in np.meshgrid(delta, np.append(offset, observed), indexing="ij"))
    lower = np.maximum(left, delta * offset)
    upper = np.minimum(right, delta * offset + delta * f32(n))
    delta = np.maximum((upper - lower) / f32(n), t.type(f32(least)))
    return delta, np.rint(lower / delta)


def costs(counts: Array, edges: Array, delta: Array, offset: Array, n: int, gamma: float) -> Array:
    """The error of every candidate: its terms in the candidates' dtype, their sum exact and rounded once to float64."""
    t = delta.dtype
    width = edges[1] - edges[0]
    x = (edges[0] + width / np.float32(2)) + width * np.arange(len(counts)).astype(t)
    delta, offset = delta[:, None], offset[:, None]
    code = np.rint(x / delta - offset)
    clipped = (code < 0) | (code > n)
    real = (np.clip(code, 0, n) + offset) * delta
    error = np.abs(real - x)
    error = error * error * counts
    error = np.where(clipped, error * t.type(gamma), error)
    return np.array([math.fsum(terms.tolist()) for terms in error])
