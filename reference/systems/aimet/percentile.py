"""AIMET: calibration by a percentile of the values. Measured, aimet-torch 2.42."""

import math
from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import choice
from halfeven.reference.blocks import Array, BlockSize, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.systems.aimet.analyzers import Range
from halfeven.reference.systems.aimet.encodings import min_scale
from halfeven.reference.systems.aimet.histogram import Batches, Histogram, histogram

__all__ = ["percentile_encodings"]


@dataclass(frozen=True)
class Percentile(Range, Batches):
    """The choices in calibrating by a percentile."""

    reached: str = choice({
        "at": "takes the first bin at which the summed counts reach the share",
        "above": "takes the first bin at which the summed counts exceed the share",
    })  # fmt: skip
    edge: str = choice({"left": "takes the left edge of a bin", "right": "takes the right edge of a bin"})


_ARITHMETIC = AsComputed(dtype="float32")
_LEAST, _MOST = 50, 100


@formula(
    "aimet/percentile_encodings",
    equation=(
        r"m = e_i,\ i = \min\{i : H_i \ge H_B (1 - p/100)\}; \quad M = e_j,\ j = \min\{j : H_j \ge H_B p / 100\}; "
        r"\quad p = 100: e_0, e_B"
    ),
    basis=_ARITHMETIC,
    source="aimet-torch 2.42, measured: PercentileEncodingAnalyzer",
    behaviour=Percentile(),
    versions={"2.42": (Percentile(later="in-order", no_steps="divided"), "aimet-torch 2.42, measured")},
)
def percentile_encodings(
    b: Percentile,
    batches: tuple[Array, ...],
    num_steps: int,
    symmetric: bool,
    shape: Shape,
    num_bins: int = 2048,
    percentile: float = 100.0,
    block_size: BlockSize | None = None,
) -> tuple[Array, Array]:
    """Minimum and maximum of a grid of ``num_steps`` steps that leave out (100 - ``percentile``) % at either end.

    Both are left edges of bins of ``histogram``, whose counts summed up are H; shape and dtype as its range's. Zero is
    in the range, and a range below ``min_scale`` per step is widened by it. A symmetric side without steps has no say.

    Args:
        batches: as in ``histogram``.
        num_steps: codes less one.
        symmetric: the range is that of a grid around zero.
        shape: of the parameters, and of both results.
        num_bins: bins per parameter.
        percentile: in per cent.
        block_size: elements per block, as in ``histogram``.

    Raises:
        ValueError: ``num_steps`` or ``num_bins`` is below 1, or ``percentile`` outside [50, 100]; ``histogram``'s.
        RuntimeError: ``histogram``'s.
    """
    if num_steps < 1:
        msg = f"num_steps={num_steps} is not accepted: give 1 or more"
        raise ValueError(msg)
    if not _LEAST <= percentile <= _MOST:
        msg = f"percentile={percentile} is not accepted: give {_LEAST} to {_MOST}"
        raise ValueError(msg)
    seen = histogram(Histogram(later=b.later), batches, shape, num_bins, None, block_size)
    counts, edges, least, most = seen.values()
    with np.errstate(all="ignore"):
        found = [_ends(b, *row, num_steps, symmetric, percentile) for row in zip(counts, edges, strict=True)]
    low, high = (np.array(ends) for ends in zip(*found, strict=True))
    return low.astype(least.dtype).reshape(shape), high.astype(most.dtype).reshape(shape)


def _ends(
    b: Percentile, counts: Array, edges: Array, n: int, symmetric: bool, percentile: float
) -> tuple[np.float32, np.float32]:
    """Minimum and maximum of one parameter."""
    f32 = np.float32
    below, above, least = math.ceil(n / 2), math.floor(n / 2), min_scale(b, n)
    low, high = edges[0], edges[-1]
    if percentile != _MOST:
        low, high = (edges[_bin(b, counts, share)] for share in _shares(counts, percentile))
    if b.zero == "extended":
        low, high = (low if low < 0 else f32(0)), (high if high > 0 else f32(0))
    if b.narrow == "widened" and (high - low) / f32(n) < f32(least):
        low = low - f32(least * below) if symmetric else low
        high = high + f32(least * (above if symmetric else n))
    if symmetric:
        delta = -low / f32(below)
        if above or b.no_steps == "divided":
            delta = np.maximum(high / f32(above), delta)
        low, high = f32(-below) * delta, f32(above) * delta
    return low, high


def _shares(counts: Array, percentile: float) -> tuple[np.float32, np.float32]:
    """The counts to leave out below, and to leave out above."""
    total = np.cumsum(counts)[-1]
    return total * np.float32(1 - percentile / 100), total * np.float32(percentile) / np.float32(100)


def _bin(b: Percentile, counts: Array, share: np.float32) -> int:
    """The bin whose left edge is taken; its right edge is the next one's left."""
    found = int(np.searchsorted(np.cumsum(counts), share, side="left" if b.reached == "at" else "right"))
    return min(found + (b.edge == "right"), len(counts))
