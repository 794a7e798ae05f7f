"""pytorch-quantization's ``HistogramCalibrator``: requirements, calls, answers."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from halfeven.conformance.requirement import Arguments, calls, measured, of

__all__ = ["ANSWERS", "REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "pytorch-quantization/histogram",
        measured(
            "one-batch",
            "The bins of the first batch are equal parts from 0 to its largest magnitude, which the last bin "
            "holds; the bin is the floor of magnitude * bins / maximum.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "growth",
            "A later value beyond the last edge adds bins of the same width until it is held, and every count is kept.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "skip-zeros",
            "skip_zeros leaves zeros of both signs out; otherwise they count.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "default-num-bins",
            "Left out, the number of bins is 2048.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "not-finite",
            "A NaN after the first batch is left out, and then so are negative values beside it.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "refusals",
            "An empty batch, one of zeros that are skipped, a value above a first batch of zeros, NaN in the first "
            "batch, and an infinity in any is refused.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
    ),
    *of(
        "pytorch-quantization/percentile_amax",
        measured(
            "shares",
            "amax is the left edge of the first bin in which the shares, added up in order, reach the percentile.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "defaults",
            "Left out, the percentile is 99.99.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "refusals",
            "A percentile below 0 or above 100 is refused.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "not-a-number",
            "A percentile of NaN gives the last edge; counts of nothing give the first one.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
    ),
    *of(
        "pytorch-quantization/mse_amax",
        measured(
            "least-error",
            "amax is the bin centre at which the squared errors of all fake quantized centres, times their counts, "
            "sum up to least.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "e4m3",
            "With num_bits (4, 3) the centres go through float8_e4m3fn.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "equal-errors",
            "Of equal errors the first wins.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "defaults",
            "Left out, the search starts at bin 128, in steps of 1, for 8 bits, signed.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "refusals",
            "Without a candidate, and for a width that is neither a positive integer nor (4, 3), it is refused.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
    ),
    *of(
        "pytorch-quantization/entropy_amax",
        measured(
            "least-divergence",
            "amax is the edge up to which the counts, all beyond added to the last, diverge least from their means "
            "over 2^(b-1+unsigned) groups, empty bins left out.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "empty-bins",
            "A group's mean is that of its bins that hold something, also where others decide which edge is taken.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "first-bin",
            "The count of the first bin is replaced by the second one's.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "equal-divergences",
            "Of equal divergences the last wins; one that is NaN wins over all.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "defaults",
            "Left out, the search starts at bin 128, in steps of 1, for 8 bits, signed.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
        measured(
            "refusals",
            "Without a candidate, and for a width that is no integer, it is refused.",
            "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator",
        ),
    ),
)

P = "pytorch-quantization/"
HISTOGRAM, PERCENTILE, MSE, ENTROPY = (P + n for n in ("histogram", "percentile_amax", "mse_amax", "entropy_amax"))
F32 = np.dtype(np.float32)


def _f32(*values: float) -> np.ndarray:
    return np.array(values, F32)


@calls(HISTOGRAM, "one-batch")
def one_batch() -> Iterator[Arguments]:
    """Values at and beside edges, widths of many bits, every sign, one bin and many, the same value only."""
    for top, bins in ((8.0, 8), (1.0, 10), (0.7, 7), (3.3, 33), (1e-30, 5), (1e30, 3), (5.0, 1)):
        edges = (np.arange(bins + 1) * (top / bins)).astype(F32)
        near = [edges, np.nextafter(edges, np.float32(0)), np.nextafter(edges, np.float32(np.inf))[:-1], _f32(top)]
        yield {"batches": (np.concatenate(near),), "num_bins": bins}
    yield {"batches": (_f32(-4, 1, 2, -3, 0),), "num_bins": 4}
    yield {"batches": (_f32(-0.6, 1, 2, -0.4, 0),), "num_bins": 4}
    yield {"batches": (_f32(-1e-45, 1, 2),), "num_bins": 4}
    yield {"batches": (_f32(5, 5, 5),), "num_bins": 3}
    yield {"batches": (_f32(0, 0, -0.0),), "num_bins": 5}
    yield {"batches": (np.arange(12, dtype=F32).reshape(2, 2, 3),), "num_bins": 6}
    yield {"batches": (np.arange(6, dtype=np.float16),), "num_bins": 3}
    yield {"batches": (), "num_bins": 3}


@calls(HISTOGRAM, "growth")
def growth() -> Iterator[Arguments]:
    """Later values within the edges, at the last one, a bin beyond, many; widths that are powers of two."""
    first = _f32(0, 1, 2, 3.5, 4)
    for later in ((1, 2), (4,), (4.5,), (5,), (5.001, 0.2), (-31, 30), (4, 9), (0, 0)):
        yield {"batches": (first, _f32(*later)), "num_bins": 8}
    yield {"batches": (first, _f32(4)), "num_bins": 3}  # three widths of 4 / 3
    yield {"batches": (first, _f32(6), _f32(1, 2), _f32(-7, 8.25), _f32(8.5)), "num_bins": 4}
    yield {"batches": (_f32(0.25), _f32(2)), "num_bins": 4}


@calls(HISTOGRAM, "skip-zeros")
def skip_zeros() -> Iterator[Arguments]:
    """Zeros of both signs, in either batch."""
    yield {"batches": (_f32(0, 1, -0.0, 4, 0), _f32(0, 5)), "num_bins": 4, "skip_zeros": True}
    yield {"batches": (_f32(0, 1, -0.0, 4, 0), _f32(0, 5)), "num_bins": 4}


@calls(HISTOGRAM, "default-num-bins")
def default_bins() -> Iterator[Arguments]:
    """2048 of them."""
    yield {"batches": (_f32(0, 1, 2047, 2048),)}


@calls(HISTOGRAM, "not-finite")
def not_finite() -> Iterator[Arguments]:
    """A later NaN is left out, with the negatives beside it."""
    yield {"batches": (_f32(1, 4), _f32(np.nan, 2)), "num_bins": 4}
    yield {"batches": (_f32(1, 4), _f32(np.nan, 2, -1)), "num_bins": 4}


@calls(HISTOGRAM, "refusals")
def refusals() -> Iterator[Arguments]:
    """Empty batches, zeros that are skipped, a value above a first batch of zeros; NaN at first, infinities ever."""
    for odd in (np.nan, np.inf, -np.inf):
        yield {"batches": (_f32(odd, 1),), "num_bins": 4}
    for odd in (np.inf, -np.inf):
        yield {"batches": (_f32(1, 4), _f32(odd, 2)), "num_bins": 4}
    yield {"batches": (np.zeros(0, F32),), "num_bins": 4}
    yield {"batches": (_f32(0, 0),), "num_bins": 4, "skip_zeros": True}
    yield {"batches": (_f32(0, 0), _f32(1)), "num_bins": 4}


def _edges(n: int, width: float = 0.5) -> np.ndarray:
    return (np.arange(n + 1) * width).astype(F32)


@calls(PERCENTILE, "shares")
def shares() -> Iterator[Arguments]:
    """A share that is reached exactly, a float beside it, one that rounding keeps from reaching 1."""
    for counts in ((1, 1, 1, 1), (1, 1, 1, 1, 1, 1), (0, 3, 0, 0, 1), (5,), (1, 0, 0, 0, 999), (7, 1, 1, 1, 0, 0)):
        hist = _f32(*counts)
        for percentile in (0, 10, 25, 50, 70, 75, 83.3, 99, 99.9, 99.99, 100, np.nextafter(50.0, 51)):
            yield {"hist": hist, "edges": _edges(hist.size, 0.3), "percentile": float(percentile)}


@calls(PERCENTILE, "defaults")
def percentile_default() -> Iterator[Arguments]:
    """99.99."""
    for counts in ((99990, 10), (9999, 1, 0), (9998, 1, 1), (1, 99998, 1)):
        yield {"hist": _f32(*counts), "edges": _edges(len(counts))}


@calls(PERCENTILE, "refusals")
def percentile_refusals() -> Iterator[Arguments]:
    """Below 0, above 100."""
    for percentile in (-0.001, 100.001, -np.inf, np.inf):
        yield {"hist": _f32(1, 2), "edges": _edges(2), "percentile": float(percentile)}


@calls(PERCENTILE, "not-a-number")
def percentile_nan() -> Iterator[Arguments]:
    """NaN is neither below 0 nor above 100, and no counts have no shares."""
    yield {"hist": _f32(1, 2), "edges": _edges(2), "percentile": float("nan")}
    yield {"hist": _f32(0, 0), "edges": _edges(2), "percentile": 50.0}


def _bell(n: int) -> np.ndarray:
    return np.array([1000 * (n - j) ** 2 // n**2 + (13 * j) % 7 for j in range(n)], F32)


def _tailed(n: int) -> np.ndarray:
    return np.array([1000 >> min(j, 9) if j < n // 2 else int(j % 5 == 0) for j in range(n)], F32)


@calls(MSE, "least-error")
def least_error() -> Iterator[Arguments]:
    """Bell and tail, several widths, signs and strides."""
    for hist in (_bell(15), _tailed(14), np.ones(10, F32)):
        for bits, unsigned in ((3, False), (3, True), (8, False)):
            for stride, start in ((1, 4), (3, 2)):
                at = {"num_bits": bits, "unsigned": unsigned, "stride": stride, "start_bin": start}
                yield {"hist": hist, "edges": _edges(hist.size), **at}


@calls(MSE, "e4m3")
def mse_e4m3() -> Iterator[Arguments]:
    """num_bits (4, 3)."""
    for hist in (_bell(13), _tailed(13)):
        yield {"hist": hist, "edges": _edges(13, 0.3), "num_bits": (4, 3), "start_bin": 5}


@calls(MSE, "equal-errors")
def mse_equal() -> Iterator[Arguments]:
    """No counts: every error is 0."""
    yield {"hist": np.zeros(12, F32), "edges": _edges(12), "start_bin": 3}


@calls(MSE, "defaults")
def mse_defaults() -> Iterator[Arguments]:
    """start_bin 128, stride 1, 8 bits, signed."""
    yield {"hist": np.array([10] * 4 + [0] * 129, F32), "edges": _edges(133, 0.3)}


@calls(MSE, "refusals")
def mse_refusals() -> Iterator[Arguments]:
    """No candidate; a width that is none."""
    yield {"hist": np.ones(8, F32), "edges": _edges(8)}
    for bits in (-1, (5, 2), "8"):
        yield {"hist": np.ones(8, F32), "edges": _edges(8), "num_bits": bits, "start_bin": 2}


@calls(ENTROPY, "least-divergence")
def least_divergence() -> Iterator[Arguments]:
    """Bell and tail, a bin without counts in a group and at a candidate, several widths and strides."""
    gapped = np.array([40 - j if j % 3 else 0 for j in range(20)], F32)
    for hist in (_bell(24), _tailed(24), _bell(19), gapped):
        for bits, unsigned in ((3, False), (2, True), (3, True)):
            for stride, start in ((1, 8), (3, 9)):
                at = {"num_bits": bits, "unsigned": unsigned, "stride": stride, "start_bin": start}
                yield {"hist": hist, "edges": _edges(hist.size, 0.3), **at}


@calls(ENTROPY, "empty-bins")
def empty_bins() -> Iterator[Arguments]:
    """Counts far apart, of which the means over all bins of a group would take another edge."""
    yield {"hist": _f32(0, 0, 10, 0, 0, 0, 0, 0, 0, 16, 0, 18), "edges": _edges(12), "num_bits": 3, "start_bin": 5}


@calls(ENTROPY, "first-bin")
def first_bin() -> Iterator[Arguments]:
    """The count of the first bin is not looked at: it takes the second one's."""
    for first in (0, 7, 100000):
        hist = _bell(16)
        hist[0] = first
        yield {"hist": hist, "edges": _edges(16), "num_bits": 3, "start_bin": 6}


@calls(ENTROPY, "equal-divergences")
def entropy_equal() -> Iterator[Arguments]:
    """The last of equal ones: nothing lost by several, infinite for all, no data before a candidate."""
    yield {"hist": _f32(4, 4, 4, 4, 4, 4, 4, 4), "edges": _edges(8), "num_bits": 2, "start_bin": 2}
    yield {"hist": _f32(4, 4, 0, 0, 0, 0, 0, 9), "edges": _edges(8), "num_bits": 2, "start_bin": 3}
    yield {"hist": _f32(0, 0, 0, 0, 0, 0, 0, 9), "edges": _edges(8), "num_bits": 2, "start_bin": 3, "stride": 2}
    yield {"hist": np.zeros(8, F32), "edges": _edges(8), "num_bits": 2, "start_bin": 3}


@calls(ENTROPY, "defaults")
def entropy_defaults() -> Iterator[Arguments]:
    """start_bin 128, stride 1, 8 bits, signed."""
    counts = [1 + (7 * j) % 13 for j in range(127)] + [0, 0, 0, 1]
    counts[1] = 10000  # beside bin 2 in the one search that is open: bins 127 to 129 hold nothing
    counts[43], counts[44] = 10000, 1
    yield {"hist": np.array(counts, F32), "edges": _edges(131)}


@calls(ENTROPY, "refusals")
def entropy_refusals() -> Iterator[Arguments]:
    """No candidate; a width that is none."""
    yield {"hist": np.ones(8, F32), "edges": _edges(8)}
    yield {"hist": np.ones(8, F32), "edges": _edges(8), "num_bits": (4, 3), "start_bin": 2}


# ruff: noqa: SLF001 - a calibrator gives its counts and edges out, and takes them, in no other way


def histogram(batches: Any, num_bins: int = 2048, skip_zeros: bool = False) -> Any:
    """Every batch collected, then counts and edges."""
    from modelopt.torch.quantization.calib import HistogramCalibrator

    calibrator = HistogramCalibrator(8, None, False, num_bins=num_bins, skip_zeros=skip_zeros)
    for batch in batches:
        calibrator.collect(batch)
    if calibrator._calib_hist is None:
        return None
    return calibrator._calib_hist, calibrator._calib_bin_edges


def percentile_amax(hist: Any, edges: Any, percentile: float = 99.99) -> Any:
    """compute_amax of a calibrator that holds the counts and edges."""
    from modelopt.torch.quantization.calib import HistogramCalibrator

    calibrator = HistogramCalibrator(8, None, False)
    calibrator._calib_hist, calibrator._calib_bin_edges = hist, edges
    return calibrator.compute_amax("percentile", percentile=percentile)


def mse_amax(
    hist: Any, edges: Any, num_bits: Any = 8, unsigned: bool = False, stride: int = 1, start_bin: int = 128
) -> Any:
    """compute_amax of a calibrator that holds the counts and edges."""
    from modelopt.torch.quantization.calib import HistogramCalibrator

    calibrator = HistogramCalibrator(num_bits, None, unsigned)
    calibrator._calib_hist, calibrator._calib_bin_edges = hist, edges
    return calibrator.compute_amax("mse", stride=stride, start_bin=start_bin)


def entropy_amax(
    hist: Any, edges: Any, num_bits: Any = 8, unsigned: bool = False, stride: int = 1, start_bin: int = 128
) -> Any:
    """compute_amax of a calibrator that holds the counts and edges."""
    from modelopt.torch.quantization.calib import HistogramCalibrator

    calibrator = HistogramCalibrator(num_bits, None, unsigned)
    calibrator._calib_hist, calibrator._calib_bin_edges = hist, edges
    return calibrator.compute_amax("entropy", stride=stride, start_bin=start_bin)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt": {
        "pytorch-quantization/histogram": histogram,
        "pytorch-quantization/percentile_amax": percentile_amax,
        "pytorch-quantization/mse_amax": mse_amax,
        "pytorch-quantization/entropy_amax": entropy_amax,
    },
}
