"""Calls of AIMET's analyzers that keep a histogram: the histogram itself, percentile, SQNR."""

from collections.abc import Iterator
from itertools import product

import ml_dtypes
import numpy as np

from halfeven.conformance.calls.aimet_analyzers import BLOCKS, SHAPES, values
from halfeven.conformance.calls.registry import Arguments, calls
from halfeven.reference.blocks import Array

__all__: list[str] = []

_F32 = np.float32


def _lattice(count: int, seed: int) -> Array:
    """Multiples of 1/8, many of which stand on the edges of bins."""
    return (np.random.default_rng(seed).integers(-24, 40, count) / 8).astype(_F32)


@calls("aimet.histogram", "one-batch")
def _one_batch() -> Iterator[Arguments]:
    for bins in (1, 2, 7, 10, 16, 33):
        for x in (
            values((40,), 20),
            values((9,), 21, scale=1e-3),
            _lattice(60, 22),
            np.linspace(-1, 3, 41, dtype=_F32),
        ):
            yield {"batches": (x,), "shape": (), "num_bins": bins}
        for low, high in ((-0.3, 1.7), (-1 / 3, 2 / 3), (0.0, 1.0)):  # values on the edges themselves
            step = (_F32(high) - _F32(low)) / _F32(bins)
            edges = np.arange(bins + 1, dtype=_F32) * step + _F32(low)
            yield {"batches": (edges,), "shape": (), "num_bins": bins}


@calls("aimet.histogram", "constant")
def _constant() -> Iterator[Arguments]:
    for value, bins in product((0.0, 1.0, -3.25, 1e-3, 2.0**23 + 1, 2.0**24, -(2.0**24) - 2, -1e10), (1, 2, 7, 16)):
        yield {"batches": (np.full(3, value, _F32),), "shape": (), "num_bins": bins}


@calls("aimet.histogram", "non-finite")
def _non_finite() -> Iterator[Arguments]:
    inf, nan = float("inf"), float("nan")
    for extra in ((inf,), (-inf, -inf), (nan,), (inf, -inf, nan)):
        x = np.concatenate([values((12,), 23), np.array(extra, _F32)])
        yield {"batches": (x,), "shape": (), "num_bins": 8}
        yield {"batches": (values((12,), 24), x), "shape": (), "num_bins": 8}


@calls("aimet.histogram", "beyond-float32")
def _beyond_float32() -> Iterator[Arguments]:
    """Ranges that are finite, and are not when multiplied by the bins."""
    for numbers, bins in (((-1e37, 1e37, 0, 3e36), 33), ((-1.6e38, 1.6e38, 0, 1e38, -1e38), 3), ((0, 3e38), 2)):
        yield {"batches": (np.array(numbers, _F32),), "shape": (), "num_bins": bins}


@calls("aimet.histogram", "shapes")
def _shapes() -> Iterator[Arguments]:
    for shape, given in SHAPES:
        yield {"batches": (values(given, 25),), "shape": shape, "num_bins": 5}
    for shape, blocks, given in BLOCKS:
        yield {"batches": (values(given, 26),), "shape": shape, "num_bins": 4, "block_size": blocks}


@calls("aimet.histogram", "batches")
def _batches() -> Iterator[Arguments]:
    for bins in (4, 10, 16):
        for scales in ((1, 1), (1, 3), (3, 1), (1, 1, 2, 4), (1, 100)):
            given = tuple(values((30,), 27 + i, scale=s) for i, s in enumerate(scales))
            yield {"batches": given, "shape": (), "num_bins": bins}
        yield {
            "batches": (_lattice(40, 31), _lattice(40, 32) * _F32(2), _lattice(9, 33)),
            "shape": (),
            "num_bins": bins,
        }
        yield {"batches": (np.full(3, 2.0, _F32), values((9,), 34)), "shape": (), "num_bins": bins}
        yield {"batches": (values((3, 8), 35), values((3, 8), 36, scale=2)), "shape": (3, 1), "num_bins": bins}


@calls("aimet.histogram", "growth-limit")
def _growth_limit() -> Iterator[Arguments]:
    for limit, scale in product((1.0, 3.0), (1.5, 10.0)):
        given = (values((30,), 37), values((30,), 38, scale=scale), values((30,), 39, scale=scale))
        yield {"batches": given, "shape": (), "num_bins": 10, "growth_limit": limit}


@calls("aimet.histogram", "channels")
def _channels() -> Iterator[Arguments]:
    """Several batches where the parameters are not along the first dimension."""
    offsets = np.array([-20, 0, 20], _F32)
    for shape, batch in (((3,), (8, 3)), ((1, 3, 1), (2, 3, 4))):
        shift = offsets.reshape(shape)
        given = (values(batch, 40) + shift, values(batch, 41, scale=1.5) + shift)
        yield {"batches": given, "shape": shape, "num_bins": 6}
    given = (values((4, 6), 42), values((4, 6), 43, scale=2))
    yield {"batches": given, "shape": (4, 2), "num_bins": 6, "block_size": (1, 3)}
    yield {"batches": given, "shape": (2, 3), "num_bins": 6, "block_size": (2, 2)}


@calls("aimet.histogram", "dtypes")
def _dtypes() -> Iterator[Arguments]:
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        yield {"batches": (values((30,), 44, dtype),), "shape": (), "num_bins": 10}
        yield {"batches": (np.full(3, 1.5).astype(dtype),), "shape": (), "num_bins": 10}
        yield {"batches": (values((12,), 244, dtype),), "shape": (), "num_bins": 7}  # the last edge below the maximum
        if dtype is not np.float64:
            given = (values((30,), 45, dtype), values((30,), 46, dtype, 2.0))
            yield {"batches": given, "shape": (), "num_bins": 10}


@calls("aimet.histogram", "float64-batches")
def _float64_batches() -> Iterator[Arguments]:
    for scale in (2.0, 0.5):
        given = (values((30,), 45, np.float64), values((30,), 46, np.float64, scale))
        yield {"batches": given, "shape": (), "num_bins": 10}


@calls("aimet.histogram", "refusals")
def _refusals() -> Iterator[Arguments]:
    call: Arguments = {"batches": (values((6,), 47),), "shape": (), "num_bins": 4}
    yield {**call, "num_bins": 0}
    yield {**call, "growth_limit": 0.5}
    yield {**call, "batches": ()}
    yield {**call, "batches": (np.full(3, np.nan, _F32),)}
    yield {**call, "batches": (np.full(3, np.inf, _F32),)}
    yield {**call, "batches": (np.array([-3e38, 3e38], _F32),)}
    yield {**call, "batches": (np.array([-1e300, 1e300]),)}
    yield {**call, "shape": (4,)}


@calls("aimet.percentile_encodings", "percentiles")
def _percentiles() -> Iterator[Arguments]:
    for percentile, symmetric in product((50.0, 75.0, 80.0, 90.0, 99.0, 99.9), (False, True)):
        for x, bins in ((values((100,), 50), 16), (_lattice(200, 51), 64), (values((7,), 52), 5)):
            call: Arguments = {"batches": (x,), "num_steps": 255, "symmetric": symmetric, "shape": ()}
            yield {**call, "num_bins": bins, "percentile": percentile}


@calls("aimet.percentile_encodings", "all")
def _all() -> Iterator[Arguments]:
    for n, symmetric in product((2, 3, 4, 15, 255, 65535), (False, True)):
        for x in (values((20,), 53), np.array([-1, 1], _F32), np.full(2, 3.0, _F32), np.zeros(2, _F32)):
            yield {"batches": (x,), "num_steps": n, "symmetric": symmetric, "shape": (), "num_bins": 7}
    yield {"batches": (values((20,), 54),), "num_steps": 255, "symmetric": False, "shape": ()}  # the default bins


@calls("aimet.percentile_encodings", "zero-and-width")
def _zero_and_width() -> Iterator[Arguments]:
    tight = np.array([0.0, 1e-9, 2e-9, 1e-7], _F32)
    for x, symmetric, n in product(
        (tight, -tight - _F32(1e-9), tight + _F32(5), -tight - _F32(5)), (False, True), (3, 255)
    ):
        for percentile in (60.0, 100.0):
            call: Arguments = {"batches": (x,), "num_steps": n, "symmetric": symmetric, "shape": ()}
            yield {**call, "num_bins": 8, "percentile": percentile}


@calls("aimet.percentile_encodings", "one-symmetric-bit")
def _one_symmetric_bit() -> Iterator[Arguments]:
    for x in (np.array([-1, 2], _F32), np.array([-3, -1], _F32), np.array([1, 2], _F32)):
        yield {"batches": (x,), "num_steps": 1, "symmetric": True, "shape": (), "num_bins": 4}


@calls("aimet.percentile_encodings", "channels")
def _percentile_channels() -> Iterator[Arguments]:
    shift = np.array([-20, 0, 20], _F32)
    given = (values((30, 3), 55) + shift, values((30, 3), 56, scale=1.5) + shift)
    for symmetric, percentile in product((False, True), (80.0, 99.0)):
        call: Arguments = {"num_steps": 255, "symmetric": symmetric, "num_bins": 12, "percentile": percentile}
        yield {**call, "batches": given, "shape": (3,)}
        yield {**call, "batches": tuple(x.T.copy() for x in given), "shape": (3, 1)}


@calls("aimet.percentile_encodings", "dtypes")
def _percentile_dtypes() -> Iterator[Arguments]:
    for dtype, symmetric in product((np.float16, ml_dtypes.bfloat16, np.float64), (False, True)):
        call: Arguments = {"num_steps": 255, "symmetric": symmetric, "shape": (), "num_bins": 12, "percentile": 90.0}
        yield {**call, "batches": (values((40,), 57, dtype),)}
        if dtype is not np.float64:
            yield {**call, "batches": (values((40,), 57, dtype), values((40,), 58, dtype, 2.0))}


@calls("aimet.percentile_encodings", "refusals")
def _percentile_refusals() -> Iterator[Arguments]:
    call: Arguments = {"batches": (values((6,), 59),), "num_steps": 15, "symmetric": False, "shape": (), "num_bins": 4}
    yield {**call, "num_steps": 0}
    yield {**call, "num_bins": 0}
    yield {**call, "percentile": 49.9}
    yield {**call, "percentile": 100.1}
    yield {**call, "batches": ()}
    yield {**call, "shape": (4,)}


def _few(symmetric: bool) -> Arguments:
    """Fewer candidates than by default."""
    if symmetric:
        return {"symmetric": True, "symmetric_delta_candidates": 13}
    return {"symmetric": False, "asymmetric_delta_candidates": 6, "offset_candidates": 7}


@calls("aimet.sqnr_encodings", "symmetric")
def _sqnr_symmetric() -> Iterator[Arguments]:
    for n, x in product((2, 3, 15, 255), (values((60,), 60), values((30,), 61, scale=100) + _F32(50))):
        yield {"batches": (x,), "num_steps": n, "shape": (), "num_bins": 12, **_few(symmetric=True)}
    # All values at 1, which four deltas of the form k / 16 meet without an error.
    call: Arguments = {"num_steps": 16, "symmetric": True, "symmetric_delta_candidates": 17}
    yield {**call, "batches": (np.array([-6, 8], _F32),), "shape": (), "num_bins": 1}


@calls("aimet.sqnr_encodings", "asymmetric")
def _sqnr_asymmetric() -> Iterator[Arguments]:
    for n, x in product((2, 3, 15, 255), (values((60,), 62), values((30,), 63, scale=100) + _F32(50))):
        yield {"batches": (x,), "num_steps": n, "shape": (), "num_bins": 12, **_few(symmetric=False)}
    # Only the offset of the observed range clips nothing: no other, with any delta, covers it.
    even = np.linspace(-4, 11, 31, dtype=_F32)
    yield {"batches": (even,), "num_steps": 15, "shape": (), "num_bins": 12, "gamma": 100.0, **_few(symmetric=False)}


@calls("aimet.sqnr_encodings", "defaults")
def _sqnr_defaults() -> Iterator[Arguments]:
    for symmetric in (False, True):
        yield {"batches": (values((60,), 64),), "num_steps": 15, "symmetric": symmetric, "shape": (), "num_bins": 6}


@calls("aimet.sqnr_encodings", "gamma")
def _sqnr_gamma() -> Iterator[Arguments]:
    x = np.concatenate([values((60,), 65), np.array([9.0, -7.0], _F32)])
    for gamma, symmetric in product((1.0, 3.0, 50.0), (False, True)):
        yield {"batches": (x,), "num_steps": 7, "shape": (), "num_bins": 14, "gamma": gamma, **_few(symmetric)}


@calls("aimet.sqnr_encodings", "channels")
def _sqnr_channels() -> Iterator[Arguments]:
    # Every channel has numbers of both signs: the library leaves the sign of a minimum of zero to the vector width.
    widths = np.array([0.1, 1, 10], _F32)
    given = (values((12, 3), 66) * widths, values((12, 3), 67, scale=1.5) * widths)
    blocks = (_F32(1) + np.abs(values((4, 6), 68)) / _F32(4)) * np.array([-1, 1, -1, 1, -1, 1], _F32)
    for symmetric in (False, True):
        call: Arguments = {"num_steps": 15, "num_bins": 8, **_few(symmetric)}
        yield {**call, "batches": given, "shape": (3,)}
        yield {**call, "batches": tuple(x.T.copy() for x in given), "shape": (3, 1)}
        yield {**call, "batches": (blocks,), "shape": (4, 2), "block_size": (1, 3)}


@calls("aimet.sqnr_encodings", "growth-limit")
def _sqnr_growth() -> Iterator[Arguments]:
    for symmetric in (False, True):
        given = (values((30,), 69), values((30,), 70, scale=5))
        call: Arguments = {"num_steps": 15, "shape": (), "num_bins": 12, **_few(symmetric)}
        yield {**call, "batches": given, "histogram_growth_limit": 1.0}


@calls("aimet.sqnr_encodings", "narrow")
def _sqnr_narrow() -> Iterator[Arguments]:
    for symmetric, n in product((False, True), (15, 255)):
        given = (values((9,), 71, scale=1e-7),)
        yield {"batches": given, "num_steps": n, "shape": (), "num_bins": 6, **_few(symmetric)}


@calls("aimet.sqnr_encodings", "zero-included")
def _sqnr_zero_included() -> Iterator[Arguments]:
    """Batches on one side of zero, and of zeros alone; not where float32 sums leave open which candidate is best."""
    one_side = np.linspace(1, 1.5, 11, dtype=_F32)
    for n, x in product((2, 15), (one_side, -one_side)):
        yield {"batches": (x,), "num_steps": n, "shape": (), "num_bins": 8, **_few(symmetric=False)}
    for n, symmetric in ((2, False), (15, False), (15, True)):
        yield {"batches": (np.zeros(5, _F32),), "num_steps": n, "shape": (), "num_bins": 8, **_few(symmetric)}


@calls("aimet.sqnr_encodings", "offsets")
def _sqnr_offsets() -> Iterator[Arguments]:
    """Offsets halfway between integers: observed, candidate and last; and more of them allowed than there are."""
    for n, most, low, high in ((5, 4, -1.5, 1.5), (7, 4, -1.5, 1.5), (3, 8, -1.5, 5.5)):
        x = np.linspace(low, high, 13, dtype=_F32)
        call: Arguments = {"num_steps": n, "symmetric": False, "shape": (), "num_bins": 4, "offset_candidates": most}
        yield {**call, "batches": (x,), "asymmetric_delta_candidates": 6}


@calls("aimet.sqnr_encodings", "dtypes")
def _sqnr_dtypes() -> Iterator[Arguments]:
    for dtype, symmetric in product((np.float16, ml_dtypes.bfloat16, np.float64), (False, True)):
        yield {"batches": (values((30,), 72, dtype),), "num_steps": 15, "shape": (), "num_bins": 10, **_few(symmetric)}


@calls("aimet.sqnr_encodings", "refusals")
def _sqnr_refusals() -> Iterator[Arguments]:
    call: Arguments = {"batches": (values((6,), 73),), "num_steps": 15, "symmetric": False, "shape": (), "num_bins": 4}
    yield {**call, "num_steps": 0}
    yield {**call, "num_bins": 0}
    yield {**call, "batches": ()}
    yield {**call, "histogram_growth_limit": 0.9}
