"""AIMET's histogram, which the percentile and SQNR analyzers keep: requirements, calls, answers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, documented, expected, measured
from halfeven.conformance.systems.aimet.analyzers import BLOCKS, SHAPES, lattice, values

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

_F32 = np.float32


@measured("aimet/histogram", "aimet-torch 2.42")
def one_batch() -> Calls:
    """The bins are even from the least to the greatest value, a value belongs to the bin at its distance over the range
    times the bins, rounded down, and the greatest value to the last bin."""
    for bins in (1, 2, 7, 10, 16, 33):
        for x in (
            values((40,), 20),
            values((9,), 21, scale=1e-3),
            lattice(60, 22),
            np.linspace(-1, 3, 41, dtype=_F32),
        ):
            yield {"batches": (x,), "shape": (), "num_bins": bins}
        for low, high in ((-0.3, 1.7), (-1 / 3, 2 / 3), (0.0, 1.0)):  # values on the edges themselves
            step = (_F32(high) - _F32(low)) / _F32(bins)
            edges = np.arange(bins + 1, dtype=_F32) * step + _F32(low)
            yield {"batches": (edges,), "shape": (), "num_bins": bins}


@measured("aimet/histogram", "aimet-torch 2.42")
def constant() -> Calls:
    """The bins of one value alone reach half a unit to either side of it; where that vanishes next to the value, it is
    placed between the two float32 next to it."""
    for value, bins in product((0.0, 1.0, -3.25, 1e-3, 2.0**23 + 1, 2.0**24, -(2.0**24) - 2, -1e10), (1, 2, 7, 16)):
        yield {"batches": (np.full(3, value, _F32),), "shape": (), "num_bins": bins}


@measured("aimet/histogram", "aimet-torch 2.42")
def non_finite() -> Calls:
    """Infinities do not widen the range and count in the bins at the ends; NaN does not count."""
    inf, nan = float("inf"), float("nan")
    for extra in ((inf,), (-inf, -inf), (nan,), (inf, -inf, nan)):
        x = np.concatenate([values((12,), 23), np.array(extra, _F32)])
        yield {"batches": (x,), "shape": (), "num_bins": 8}
        yield {"batches": (values((12,), 24), x), "shape": (), "num_bins": 8}


@measured("aimet/histogram", "aimet-torch 2.42")
def beyond_float32() -> Calls:
    """A value whose distance from the least, times the bins, is beyond float32 is counted in the first bin."""
    # Ranges that are finite, and are not when multiplied by the bins.
    for numbers, bins in (((-1e37, 1e37, 0, 3e36), 33), ((-1.6e38, 1.6e38, 0, 1e38, -1e38), 3), ((0, 3e38), 2)):
        yield {"batches": (np.array(numbers, _F32),), "shape": (), "num_bins": bins}
    for bins in (24, 25):  # the last of 25 edges, but for its rounding the largest number, is beyond it
        yield {"batches": (np.array([0, np.finfo(_F32).max], _F32),), "shape": (), "num_bins": bins}


@documented("aimet/histogram", "QuantizeDequantize: parameters shape and block_size")
def shapes() -> Calls:
    """Every parameter has the histogram of the elements that share it, by shape and by block."""
    for shape, given in SHAPES:
        yield {"batches": (values(given, 25),), "shape": shape, "num_bins": 5}
    for shape, blocks, given in BLOCKS:
        yield {"batches": (values(given, 26),), "shape": shape, "num_bins": 4, "block_size": blocks}


@measured("aimet/histogram", "aimet-torch 2.42")
def _batches() -> Calls:
    """A later batch widens the range, and old counts move to the new bins, those of a bin that is cut in proportion,
    rounded half to even."""
    for bins in (4, 10, 16):
        for scales in ((1, 1), (1, 3), (3, 1), (1, 1, 2, 4), (1, 100)):
            given = tuple(values((30,), 27 + i, scale=s) for i, s in enumerate(scales))
            yield {"batches": given, "shape": (), "num_bins": bins}
        yield {
            "batches": (lattice(40, 31), lattice(40, 32) * _F32(2), lattice(9, 33)),
            "shape": (),
            "num_bins": bins,
        }
        yield {"batches": (np.full(3, 2.0, _F32), values((9,), 34)), "shape": (), "num_bins": bins}
        yield {"batches": (values((3, 8), 35), values((3, 8), 36, scale=2)), "shape": (3, 1), "num_bins": bins}
    # The last bin begins where the new range ends.
    narrow = np.array([1, 1 + 2.0**-21], _F32)
    yield {"batches": (narrow, np.array([-1, 1], _F32)), "shape": (), "num_bins": 4}
    # Quotients and shares of counts that one float32 operation more or less moves past a tie.
    for low, high, bins in ((-0.1, 1.7, 3), (-0.1, 1.4, 5), (-0.3, 1.7, 5)):
        yield {"batches": (np.array([0, 0.5, 1], _F32), np.array([low, high], _F32)), "shape": (), "num_bins": bins}


@measured("aimet/histogram", "aimet-torch 2.42")
def _growth_limit() -> Calls:
    """With a growth limit g the range widens by g / 2 times the first one at either end, and what lies beyond counts in
    the bins at the ends."""
    for limit, scale in product((1.0, 3.0), (1.5, 10.0)):
        given = (values((30,), 37), values((30,), 38, scale=scale), values((30,), 39, scale=scale))
        yield {"batches": given, "shape": (), "num_bins": 10, "growth_limit": limit}


@expected(
    "aimet/histogram",
    "QuantizeDequantize: parameters shape and block_size, the equation of blocks",
    aspect="channels-over-batches",
)
def channels() -> Calls:
    """A parameter's histogram counts its own elements alone, however many batches there are and wherever its channel or
    block lies."""
    # Several batches where the parameters are not along the first dimension.
    offsets = np.array([-20, 0, 20], _F32)
    for shape, batch in (((3,), (8, 3)), ((1, 3, 1), (2, 3, 4))):
        shift = offsets.reshape(shape)
        given = (values(batch, 40) + shift, values(batch, 41, scale=1.5) + shift)
        yield {"batches": given, "shape": shape, "num_bins": 6}
    given = (values((4, 6), 42), values((4, 6), 43, scale=2))
    yield {"batches": given, "shape": (4, 2), "num_bins": 6, "block_size": (1, 3)}
    yield {"batches": given, "shape": (2, 3), "num_bins": 6, "block_size": (2, 2)}


@measured("aimet/histogram", "aimet-torch 2.42")
def dtypes() -> Calls:
    """The bins are float32 for every input dtype, and the range of one batch has the input's."""
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        yield {"batches": (values((30,), 44, dtype),), "shape": (), "num_bins": 10}
        yield {"batches": (np.full(3, 1.5).astype(dtype),), "shape": (), "num_bins": 10}
        yield {"batches": (values((12,), 244, dtype),), "shape": (), "num_bins": 7}  # the last edge below the maximum
        if dtype is not np.float64:
            given = (values((30,), 45, dtype), values((30,), 46, dtype, 2.0))
            yield {"batches": given, "shape": (), "num_bins": 10}


@expected("aimet/histogram", "aimet-torch 2.42 takes the first")
def float64_batches() -> Calls:
    """A second batch of float64 is taken like one of any other float dtype."""
    for scale in (2.0, 0.5):
        given = (values((30,), 45, np.float64), values((30,), 46, np.float64, scale))
        yield {"batches": given, "shape": (), "num_bins": 10}


@measured("aimet/histogram", "aimet-torch 2.42")
def refusals() -> Calls:
    """No bin, no batch, no finite value, a range beyond float32, a growth limit below 1, and shapes that do not meet
    are errors."""
    call: Arguments = {"batches": (values((6,), 47),), "shape": (), "num_bins": 4}
    yield {**call, "num_bins": 0}
    yield {**call, "growth_limit": 0.5}
    yield {**call, "batches": ()}
    yield {**call, "batches": (np.full(3, np.nan, _F32),)}
    yield {**call, "batches": (np.full(3, np.inf, _F32),)}
    yield {**call, "batches": (np.array([-3e38, 3e38], _F32),)}
    yield {**call, "batches": (np.array([-1e300, 1e300]),)}
    yield {**call, "shape": (4,)}


def histogram(
    batches: tuple[Tensor, ...], shape: tuple[int, ...], num_bins: int, growth_limit: Any = None, block_size: Any = None
) -> dict[str, Tensor]:
    """What the observer of an analyzer keeps."""
    import torch
    from aimet_torch.quantization.encoding_analyzer import SqnrEncodingAnalyzer

    analyzer = SqnrEncodingAnalyzer(shape, num_bins, histogram_growth_limit=growth_limit, block_size=block_size)
    for x in batches:
        analyzer.update_stats(x)
    kept = analyzer.observer.get_stats()
    if kept[0].histogram is None:
        analyzer.compute_encodings(15, False)
    fields = {"counts": "histogram", "edges": "bin_edges", "min": "min", "max": "max"}
    return {name: torch.stack([getattr(h, field) for h in kept]) for name, field in fields.items()}


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {"aimet.functional": {"aimet/histogram": histogram}}
