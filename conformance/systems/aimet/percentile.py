"""AIMET's calibration by a percentile: what is required, the calls that decide it, and the library's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, calls, expected, measured, of
from halfeven.conformance.systems.aimet.analyzers.calls import lattice, values

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS", "REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "aimet/percentile_encodings",
        measured(
            "percentiles",
            "Minimum and maximum are the left edges of the bins where the counts, summed up, reach the two "
            "percentiles.",
            "aimet-torch 2.42",
        ),
        measured(
            "all-values",
            "The percentile of 100 leaves nothing out: the first and the last edge; two bits have no rule of "
            "their own.",
            "aimet-torch 2.42",
            calls=("all",),
        ),
        measured(
            "zero-and-width",
            "The range has zero in it, and is widened by the least scale per step where it is narrower.",
            "aimet-torch 2.42",
        ),
        measured(
            "least-scale",
            "Of more than 83,886 steps the least scale is a hundredth over the steps, less than float32's "
            "machine epsilon.",
            "aimet-torch 2.42",
        ),
        expected(
            "one-symmetric-bit",
            "Finite values give a finite minimum and maximum for one symmetric bit.",
            "QuantizeDequantize: parameters bitwidth and symmetric, no exception for one bit",
        ),
        expected(
            "channels-over-batches",
            "A channel's percentile is that of its own values, however many batches there are.",
            "QuantizeDequantize: parameter shape",
            calls=("channels",),
        ),
        measured(
            "dtypes",
            "The ends are edges of float32 bins, rounded to the dtype of the histogram's range.",
            "aimet-torch 2.42",
        ),
        measured(
            "refusals",
            "A percentile outside 50 to 100, no step, no bin, no batch, and shapes that do not meet are errors.",
            "aimet-torch 2.42",
        ),
    ),
)

_F32 = np.float32


@calls("aimet/percentile_encodings", "percentiles")
def _percentiles() -> Iterator[Arguments]:
    for percentile, symmetric in product((50.0, 75.0, 80.0, 90.0, 99.0, 99.9), (False, True)):
        for x, bins in ((values((100,), 50), 16), (lattice(200, 51), 64), (values((7,), 52), 5)):
            call: Arguments = {"batches": (x,), "num_steps": 255, "symmetric": symmetric, "shape": ()}
            yield {**call, "num_bins": bins, "percentile": percentile}


@calls("aimet/percentile_encodings", "all")
def _all() -> Iterator[Arguments]:
    for n, symmetric in product((2, 3, 4, 15, 255, 65535), (False, True)):
        for x in (values((20,), 53), np.array([-1, 1], _F32), np.full(2, 3.0, _F32), np.zeros(2, _F32)):
            yield {"batches": (x,), "num_steps": n, "symmetric": symmetric, "shape": (), "num_bins": 7}
    yield {"batches": (values((20,), 54),), "num_steps": 255, "symmetric": False, "shape": ()}  # the default bins


@calls("aimet/percentile_encodings", "zero-and-width")
def _zero_and_width() -> Iterator[Arguments]:
    tight = np.array([0.0, 1e-9, 2e-9, 1e-7], _F32)
    for x, symmetric, n in product(
        (tight, -tight - _F32(1e-9), tight + _F32(5), -tight - _F32(5)), (False, True), (3, 255)
    ):
        for percentile in (60.0, 100.0):
            call: Arguments = {"batches": (x,), "num_steps": n, "symmetric": symmetric, "shape": ()}
            yield {**call, "num_bins": 8, "percentile": percentile}


@calls("aimet/percentile_encodings", "least-scale")
def _least_scale() -> Iterator[Arguments]:
    for n, symmetric in product((83886, 83887, 2**24 - 1), (False, True)):
        x = np.array([-1e-9, 2e-9], _F32)
        yield {"batches": (x,), "num_steps": n, "symmetric": symmetric, "shape": (), "num_bins": 4}


@calls("aimet/percentile_encodings", "one-symmetric-bit")
def _one_symmetric_bit() -> Iterator[Arguments]:
    for x in (np.array([-1, 2], _F32), np.array([-3, -1], _F32), np.array([1, 2], _F32)):
        yield {"batches": (x,), "num_steps": 1, "symmetric": True, "shape": (), "num_bins": 4}


@calls("aimet/percentile_encodings", "channels")
def _percentile_channels() -> Iterator[Arguments]:
    shift = np.array([-20, 0, 20], _F32)
    given = (values((30, 3), 55) + shift, values((30, 3), 56, scale=1.5) + shift)
    for symmetric, percentile in product((False, True), (80.0, 99.0)):
        call: Arguments = {"num_steps": 255, "symmetric": symmetric, "num_bins": 12, "percentile": percentile}
        yield {**call, "batches": given, "shape": (3,)}
        yield {**call, "batches": tuple(x.T.copy() for x in given), "shape": (3, 1)}


@calls("aimet/percentile_encodings", "dtypes")
def _percentile_dtypes() -> Iterator[Arguments]:
    for dtype, symmetric in product((np.float16, ml_dtypes.bfloat16, np.float64), (False, True)):
        call: Arguments = {"num_steps": 255, "symmetric": symmetric, "shape": (), "num_bins": 12, "percentile": 90.0}
        yield {**call, "batches": (values((40,), 57, dtype),)}
        if dtype is not np.float64:
            yield {**call, "batches": (values((40,), 57, dtype), values((40,), 58, dtype, 2.0))}


@calls("aimet/percentile_encodings", "refusals")
def _percentile_refusals() -> Iterator[Arguments]:
    call: Arguments = {"batches": (values((6,), 59),), "num_steps": 15, "symmetric": False, "shape": (), "num_bins": 4}
    yield {**call, "num_steps": 0}
    yield {**call, "num_bins": 0}
    yield {**call, "percentile": 49.9}
    yield {**call, "percentile": 100.1}
    yield {**call, "batches": ()}
    yield {**call, "shape": (4,)}


def percentile_encodings(
    batches: tuple[Tensor, ...],
    num_steps: int,
    symmetric: bool,
    shape: tuple[int, ...],
    num_bins: int = 2048,
    percentile: float = 100.0,
    block_size: Any = None,
) -> tuple[Tensor, Tensor]:
    """The percentile analyzer, fed the batches."""
    from aimet_torch.quantization.encoding_analyzer import PercentileEncodingAnalyzer

    analyzer = PercentileEncodingAnalyzer(shape, num_bins, percentile, block_size)
    for x in batches:
        analyzer.update_stats(x)
    low, high = analyzer.compute_encodings(num_steps, symmetric)
    return low, high


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {"aimet/percentile_encodings": percentile_encodings}
}
