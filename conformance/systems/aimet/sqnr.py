"""AIMET's calibration by the least quantization error: requirements, calls, answers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, expected, measured
from halfeven.conformance.systems.aimet.analyzers import values

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

_F32 = np.float32


def _few(symmetric: bool) -> Arguments:
    """Fewer candidates than by default."""
    if symmetric:
        return {"symmetric": True, "symmetric_delta_candidates": 13}
    return {"symmetric": False, "asymmetric_delta_candidates": 6, "offset_candidates": 7}


@measured("aimet/sqnr_encodings", "aimet-torch 2.42", aspect="symmetric")
def sqnr_symmetric() -> Calls:
    """Of evenly spaced symmetric deltas the one of least error over the histogram is taken."""
    for n, x in product((2, 3, 15, 255), (values((60,), 60), values((30,), 61, scale=100) + _F32(50))):
        yield {"batches": (x,), "num_steps": n, "shape": (), "num_bins": 12, **_few(symmetric=True)}
    # All values at 1, which four deltas of the form k / 16 meet without an error.
    call: Arguments = {"num_steps": 16, "symmetric": True, "symmetric_delta_candidates": 17}
    yield {**call, "batches": (np.array([-6, 8], _F32),), "shape": (), "num_bins": 1}


@measured("aimet/sqnr_encodings", "aimet-torch 2.42")
def asymmetric() -> Calls:
    """Of pairs of deltas and offsets inside the observed range the one of least error is taken."""
    for n, x in product((2, 3, 15, 255), (values((60,), 62), values((30,), 63, scale=100) + _F32(50))):
        yield {"batches": (x,), "num_steps": n, "shape": (), "num_bins": 12, **_few(symmetric=False)}
    # Only the offset of the observed range clips nothing: no other, with any delta, covers it.
    even = np.linspace(-4, 11, 31, dtype=_F32)
    yield {"batches": (even,), "num_steps": 15, "shape": (), "num_bins": 12, "gamma": 100.0, **_few(symmetric=False)}


@measured("aimet/sqnr_encodings", "aimet-torch 2.42")
def defaults() -> Calls:
    """Unless told otherwise there are 101 symmetric deltas, or 17 deltas by 21 offsets, and clipped values weigh
    threefold."""
    for symmetric in (False, True):
        yield {"batches": (values((60,), 64),), "num_steps": 15, "symmetric": symmetric, "shape": (), "num_bins": 6}
    # More steps than offsets by default.
    ramp: Arguments = {"batches": (np.linspace(-2, 3, 41, dtype=_F32),), "shape": ()}
    yield {**ramp, "num_steps": 255, "symmetric": False, "num_bins": 6}


@measured("aimet/sqnr_encodings", "aimet-torch 2.42", aspect="gamma")
def sqnr_gamma() -> Calls:
    """The error of a clipped value is weighed by gamma."""
    x = np.concatenate([values((60,), 65), np.array([9.0, -7.0], _F32)])
    for gamma, symmetric in product((0.0, 1.0, 3.0, 50.0), (False, True)):  # of 0 the least delta is the best
        yield {"batches": (x,), "num_steps": 7, "shape": (), "num_bins": 14, "gamma": gamma, **_few(symmetric)}


@expected("aimet/sqnr_encodings", "QuantizeDequantize: parameters shape and block_size", aspect="channels-over-batches")
def channels() -> Calls:
    # Every channel has numbers of both signs: the library leaves the sign of a minimum of zero to the vector width.
    """A channel's candidates are judged by its own values, however many batches there are."""
    widths = np.array([0.1, 1, 10], _F32)
    given = (values((12, 3), 66) * widths, values((12, 3), 67, scale=1.5) * widths)
    blocks = (_F32(1) + np.abs(values((4, 6), 68)) / _F32(4)) * np.array([-1, 1, -1, 1, -1, 1], _F32)
    for symmetric in (False, True):
        call: Arguments = {"num_steps": 15, "num_bins": 8, **_few(symmetric)}
        yield {**call, "batches": given, "shape": (3,)}
        yield {**call, "batches": tuple(x.T.copy() for x in given), "shape": (3, 1)}
        yield {**call, "batches": (blocks,), "shape": (4, 2), "block_size": (1, 3)}


@measured("aimet/sqnr_encodings", "aimet-torch 2.42")
def growth_limit() -> Calls:
    """The limit on the histogram's growth holds for what is judged."""
    for symmetric in (False, True):
        given = (values((30,), 69), values((30,), 70, scale=5))
        call: Arguments = {"num_steps": 15, "shape": (), "num_bins": 12, **_few(symmetric)}
        yield {**call, "batches": given, "histogram_growth_limit": 1.0}


@measured("aimet/sqnr_encodings", "aimet-torch 2.42")
def narrow() -> Calls:
    """No delta is below the least scale."""
    for symmetric, n in product((False, True), (15, 255)):
        given = (values((9,), 71, scale=1e-7),)
        yield {"batches": given, "num_steps": n, "shape": (), "num_bins": 6, **_few(symmetric)}


@measured("aimet/sqnr_encodings", "aimet-torch 2.42")
def least_scale() -> Calls:
    """Of more than 83,886 steps the least scale is a hundredth over the steps, less than float32's machine epsilon."""
    for n in (83886, 83887, 2**24 - 1):
        yield {"batches": (np.zeros(5, _F32),), "num_steps": n, "shape": (), "num_bins": 8, **_few(symmetric=False)}


@measured("aimet/sqnr_encodings", "aimet-torch 2.42")
def zero_included() -> Calls:
    """The range of the candidates has zero in it, and is at least the steps times the least scale wide."""
    # Batches on one side of zero, and of zeros alone; not where float32 sums leave open which candidate is best.
    one_side = np.linspace(1, 1.5, 11, dtype=_F32)
    below_one = np.linspace(0.25, 0.5, 11, dtype=_F32)
    for n, x in product((1, 2, 15), (one_side, -one_side, below_one)):
        yield {"batches": (x,), "num_steps": n, "shape": (), "num_bins": 8, **_few(symmetric=False)}
    for n, symmetric in ((2, False), (15, False), (15, True)):
        yield {"batches": (np.zeros(5, _F32),), "num_steps": n, "shape": (), "num_bins": 8, **_few(symmetric)}


@measured("aimet/sqnr_encodings", "aimet-torch 2.42")
def offsets() -> Calls:
    """Every offset is rounded half to even, and there are no more of them than codes and one."""
    # Offsets halfway between integers: observed, candidate and last; and more of them allowed than there are.
    for n, most, low, high in ((5, 4, -1.5, 1.5), (7, 4, -1.5, 1.5), (3, 8, -1.5, 5.5)):
        x = np.linspace(low, high, 13, dtype=_F32)
        call: Arguments = {"num_steps": n, "symmetric": False, "shape": (), "num_bins": 4, "offset_candidates": most}
        yield {**call, "batches": (x,), "asymmetric_delta_candidates": 6}


@measured("aimet/sqnr_encodings", "aimet-torch 2.42")
def dtypes() -> Calls:
    """The ends are computed in float32, in float64 for asymmetric float64 inputs, and rounded to the dtype of the
    histogram's range."""
    for dtype, symmetric in product((np.float16, ml_dtypes.bfloat16, np.float64), (False, True)):
        yield {"batches": (values((30,), 72, dtype),), "num_steps": 15, "shape": (), "num_bins": 10, **_few(symmetric)}
    tight = np.array([-0.000879, -0.00044, 0], np.float16)  # less than n least scales
    yield {"batches": (tight,), "num_steps": 65535, "shape": (), "num_bins": 4, **_few(symmetric=True)}


@measured("aimet/sqnr_encodings", "aimet-torch 2.42")
def refusals() -> Calls:
    """No step, no bin, no batch, and a growth limit below 1 are errors."""
    call: Arguments = {"batches": (values((6,), 73),), "num_steps": 15, "symmetric": False, "shape": (), "num_bins": 4}
    yield {**call, "num_steps": 0}
    yield {**call, "num_bins": 0}
    yield {**call, "batches": ()}
    yield {**call, "histogram_growth_limit": 0.9}


def sqnr_encodings(
    batches: tuple[Tensor, ...],
    num_steps: int,
    symmetric: bool,
    shape: tuple[int, ...],
    num_bins: int = 2048,
    **settings: Any,
) -> tuple[Tensor, Tensor]:
    """The SQNR analyzer, fed the batches."""
    from aimet_torch.quantization.encoding_analyzer import SqnrEncodingAnalyzer

    analyzer = SqnrEncodingAnalyzer(shape, num_bins, **settings)
    for x in batches:
        analyzer.update_stats(x)
    low, high = analyzer.compute_encodings(num_steps, symmetric)
    return low, high


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {"aimet.functional": {"aimet/sqnr_encodings": sqnr_encodings}}
