"""AIMET's calibration by a percentile: what is required, the calls that decide it, and the library's answers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, expected, measured
from halfeven.conformance.systems.aimet.analyzers import lattice, values

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

_F32 = np.float32


@measured("aimet/percentile_encodings", "aimet-torch 2.42")
def percentiles() -> Calls:
    """Minimum and maximum are the left edges of the bins where the counts, summed up, reach the two percentiles."""
    for percentile, symmetric in product((50.0, 75.0, 80.0, 90.0, 99.0, 99.9), (False, True)):
        for x, bins in ((values((100,), 50), 16), (lattice(200, 51), 64), (values((7,), 52), 5)):
            call: Arguments = {"batches": (x,), "num_steps": 255, "symmetric": symmetric, "shape": ()}
            yield {**call, "num_bins": bins, "percentile": percentile}
    # Shares that float32 makes a whole count, or a little more, of: 81 of 125 and 161 of 250.
    for percentile, count in ((64.8, 125), (64.4, 250)):
        call = {"batches": (np.arange(count, dtype=_F32),), "num_steps": 255, "symmetric": False, "shape": ()}
        yield {**call, "num_bins": count, "percentile": percentile}


@measured("aimet/percentile_encodings", "aimet-torch 2.42", aspect="all-values")
def _all() -> Calls:
    """The percentile of 100 leaves nothing out: the first and the last edge; two bits have no rule of their own."""
    for n, symmetric in product((2, 3, 4, 15, 255, 65535), (False, True)):
        for x in (values((20,), 53), np.array([-1, 1], _F32), np.full(2, 3.0, _F32), np.zeros(2, _F32)):
            yield {"batches": (x,), "num_steps": n, "symmetric": symmetric, "shape": (), "num_bins": 7}
    call: Arguments = {"batches": (values((20,), 54),), "num_steps": 255, "symmetric": False, "shape": ()}
    yield call  # the default bins
    yield {**call, "percentile": 90.0}


@measured("aimet/percentile_encodings", "aimet-torch 2.42")
def zero_and_width() -> Calls:
    """The range has zero in it, and is widened by the least scale per step where it is narrower."""
    tight = np.array([0.0, 1e-9, 2e-9, 1e-7], _F32)
    for x, symmetric, n in product(
        (tight, -tight - _F32(1e-9), tight + _F32(5), -tight - _F32(5)), (False, True), (3, 255)
    ):
        for percentile in (60.0, 100.0):
            call: Arguments = {"batches": (x,), "num_steps": n, "symmetric": symmetric, "shape": ()}
            yield {**call, "num_bins": 8, "percentile": percentile}
    for n, symmetric in product((4, 256), (False, True)):  # a range of just the least scale per step
        x = np.array([-n / 2, n / 2], _F32) * _F32(2.0**-23)
        yield {"batches": (x,), "num_steps": n, "symmetric": symmetric, "shape": (), "num_bins": 8}


@measured("aimet/percentile_encodings", "aimet-torch 2.42")
def least_scale() -> Calls:
    """Of more than 83,886 steps the least scale is a hundredth over the steps, less than float32's machine epsilon."""
    for n, symmetric in product((83886, 83887, 2**24 - 1), (False, True)):
        x = np.array([-1e-9, 2e-9], _F32)
        yield {"batches": (x,), "num_steps": n, "symmetric": symmetric, "shape": (), "num_bins": 4}


@expected(
    "aimet/percentile_encodings", "QuantizeDequantize: parameters bitwidth and symmetric, no exception for one bit"
)
def one_symmetric_bit() -> Calls:
    """Finite values give a finite minimum and maximum for one symmetric bit."""
    for x in (np.array([-1, 2], _F32), np.array([-3, -1], _F32), np.array([1, 2], _F32)):
        yield {"batches": (x,), "num_steps": 1, "symmetric": True, "shape": (), "num_bins": 4}


@expected("aimet/percentile_encodings", "QuantizeDequantize: parameter shape", aspect="channels-over-batches")
def channels() -> Calls:
    """A channel's percentile is that of its own values, however many batches there are."""
    shift = np.array([-20, 0, 20], _F32)
    given = (values((30, 3), 55) + shift, values((30, 3), 56, scale=1.5) + shift)
    for symmetric, percentile in product((False, True), (80.0, 99.0)):
        call: Arguments = {"num_steps": 255, "symmetric": symmetric, "num_bins": 12, "percentile": percentile}
        yield {**call, "batches": given, "shape": (3,)}
        yield {**call, "batches": tuple(x.T.copy() for x in given), "shape": (3, 1)}


@measured("aimet/percentile_encodings", "aimet-torch 2.42")
def blocks() -> Calls:
    """With a block size the elements of a block share a minimum and a maximum, of their own percentiles."""
    x = values((4, 6), 66) * np.array([[1], [2], [3], [5]], _F32)
    for symmetric, (shape, size) in product((False, True), (((4, 2), (1, 3)), ((2, 3), (2, -1)))):
        given = x if size[1] > 0 else x.reshape(4, 3, 2)[:, :, 0]
        call: Arguments = {"num_steps": 15, "symmetric": symmetric, "num_bins": 8, "percentile": 80.0}
        yield {**call, "batches": (given,), "shape": shape, "block_size": size}


@measured("aimet/percentile_encodings", "aimet-torch 2.42")
def dtypes() -> Calls:
    """The ends are edges of float32 bins, rounded to the dtype of the histogram's range."""
    for dtype, symmetric in product((np.float16, ml_dtypes.bfloat16, np.float64), (False, True)):
        call: Arguments = {"num_steps": 255, "symmetric": symmetric, "shape": (), "num_bins": 12, "percentile": 90.0}
        yield {**call, "batches": (values((40,), 57, dtype),)}
        if dtype is not np.float64:
            yield {**call, "batches": (values((40,), 57, dtype), values((40,), 58, dtype, 2.0))}


@measured("aimet/percentile_encodings", "aimet-torch 2.42")
def refusals() -> Calls:
    """A percentile outside 50 to 100, no step, no bin, no batch, and shapes that do not meet are errors."""
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
