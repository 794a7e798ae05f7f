"""pytorch-quantization's ``HistogramCalibrator``: requirements, calls, answers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from halfeven.conformance.requirement import Calls, measured
from halfeven.conformance.systems.pytorch_quantization.calibrators import collected

__all__ = ["ANSWERS", "counted", "holding"]

P = "pytorch-quantization/"
HISTOGRAM, PERCENTILE, MSE, ENTROPY = (P + n for n in ("histogram", "percentile_amax", "mse_amax", "entropy_amax"))
F32 = np.dtype(np.float32)


def _f32(*values: float) -> np.ndarray:
    return np.array(values, F32)


@measured(HISTOGRAM, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def one_batch() -> Calls:
    """The bins of the first batch are equal parts from 0 to its largest magnitude, which the last bin holds; the bin is
    the floor of magnitude * bins / maximum."""
    # Values at and next to edges, widths of many bits, every sign, one bin and many, the same value only.
    for top, bins in ((8.0, 8), (1.0, 10), (0.7, 7), (3.3, 33), (1e-30, 5), (1e30, 3), (5.0, 1)):
        edges = (np.arange(bins + 1) * (top / bins)).astype(F32)
        near = [edges, np.nextafter(edges, np.float32(0)), np.nextafter(edges, np.float32(np.inf))[:-1], _f32(top)]
        yield {"batches": (np.concatenate(near),), "num_bins": bins}
    yield {"batches": (_f32(-4, 1, 2, -3, 0),), "num_bins": 4}
    yield {"batches": (_f32(-0.6, 1, 2, -0.4, 0),), "num_bins": 4}
    yield {"batches": (_f32(-1e-45, 1, 2),), "num_bins": 4}
    yield {"batches": (_f32(5, 5, 5),), "num_bins": 3}
    yield {"batches": (_f32(1, 3) / F32.type(7),), "num_bins": 6}  # the middle edge, from either end
    yield {"batches": (_f32(0, 0, -0.0),), "num_bins": 5}
    yield {"batches": (np.arange(12, dtype=F32).reshape(2, 2, 3),), "num_bins": 6}
    yield {"batches": (np.arange(6, dtype=np.float16),), "num_bins": 3}
    yield {"batches": (np.array([0, 1 - 1e-12, 2 + 1e-12, 3]),), "num_bins": 3}  # float64
    yield {"batches": (), "num_bins": 3}


@measured(HISTOGRAM, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def growth() -> Calls:
    """A later value beyond the last edge adds bins of the same width until it is held, and every count is kept."""
    # Later values within the edges, at the last one, a bin beyond, many; widths that are powers of two.
    first = _f32(0, 1, 2, 3.5, 4)
    for later in ((1, 2), (4,), (4.5,), (5,), (5.001, 0.2), (-31, 30), (4, 9), (0, 0)):
        yield {"batches": (first, _f32(*later)), "num_bins": 8}
    yield {"batches": (first, _f32(4)), "num_bins": 3}  # three widths of 4 / 3
    yield {"batches": (first, _f32(6), _f32(1, 2), _f32(-7, 8.25), _f32(8.5)), "num_bins": 4}
    yield {"batches": (_f32(0.25), _f32(2)), "num_bins": 4}


@measured(HISTOGRAM, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def skip_zeros() -> Calls:
    """skip_zeros leaves zeros of both signs out; otherwise they count."""
    # Zeros of both signs, in either batch.
    yield {"batches": (_f32(0, 1, -0.0, 4, 0), _f32(0, 5)), "num_bins": 4, "skip_zeros": True}
    yield {"batches": (_f32(0, 1, -0.0, 4, 0), _f32(0, 5)), "num_bins": 4}


@measured(HISTOGRAM, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def default_num_bins() -> Calls:
    """Left out, the number of bins is 2048."""
    yield {"batches": (_f32(0, 1, 2047, 2048),)}


@measured(HISTOGRAM, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def not_finite() -> Calls:
    """A NaN after the first batch is left out, and then so are negative values next to it."""
    yield {"batches": (_f32(1, 4), _f32(np.nan, 2)), "num_bins": 4}
    yield {"batches": (_f32(1, 4), _f32(np.nan, 2, -1)), "num_bins": 4}


@measured(HISTOGRAM, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def refusals() -> Calls:
    """An empty batch, one of zeros that are skipped, a value above a first batch of zeros, NaN in the first batch, and
    an infinity in any is refused."""
    for odd in (np.nan, np.inf, -np.inf):
        yield {"batches": (_f32(odd, 1),), "num_bins": 4}
    for odd in (np.inf, -np.inf):
        yield {"batches": (_f32(1, 4), _f32(odd, 2)), "num_bins": 4}
    yield {"batches": (np.zeros(0, F32),), "num_bins": 4}
    yield {"batches": (_f32(0, 0),), "num_bins": 4, "skip_zeros": True}
    yield {"batches": (_f32(0, 0), _f32(1)), "num_bins": 4}


def _edges(n: int, width: float = 0.5) -> np.ndarray:
    return (np.arange(n + 1) * width).astype(F32)


@measured(PERCENTILE, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def shares() -> Calls:
    """amax is the left edge of the first bin in which the shares, added up in order, reach the percentile."""
    # A share that is reached exactly, a float next to it, one that rounding keeps from reaching 1.
    for counts in ((1, 1, 1, 1), (1, 1, 1, 1, 1, 1), (0, 3, 0, 0, 1), (5,), (1, 0, 0, 0, 999), (7, 1, 1, 1, 0, 0)):
        hist = _f32(*counts)
        for percentile in (0, 10, 25, 50, 70, 75, 83.3, 99, 99.9, 99.99, 100, np.nextafter(50.0, 51)):
            yield {"hist": hist, "edges": _edges(hist.size, 0.3), "percentile": float(percentile)}


@measured(PERCENTILE, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def defaults() -> Calls:
    """Left out, the percentile is 99.99."""
    for counts in ((99990, 10), (9999, 1, 0), (9998, 1, 1), (1, 99998, 1)):
        yield {"hist": _f32(*counts), "edges": _edges(len(counts))}


@measured(PERCENTILE, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator", aspect="refusals")
def percentile_refusals() -> Calls:
    """A percentile below 0 or above 100 is refused."""
    for percentile in (-0.001, 100.001, -np.inf, np.inf):
        yield {"hist": _f32(1, 2), "edges": _edges(2), "percentile": float(percentile)}


@measured(PERCENTILE, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def not_a_number() -> Calls:
    """A percentile of NaN gives the last edge; counts of nothing give the first one."""
    # NaN is neither below 0 nor above 100, and no counts have no shares.
    yield {"hist": _f32(1, 2), "edges": _edges(2), "percentile": float("nan")}
    yield {"hist": _f32(0, 0), "edges": _edges(2), "percentile": 50.0}


def _bell(n: int) -> np.ndarray:
    return np.array([1000 * (n - j) ** 2 // n**2 + (13 * j) % 7 for j in range(n)], F32)


def _tailed(n: int) -> np.ndarray:
    return np.array([1000 >> min(j, 9) if j < n // 2 else int(j % 5 == 0) for j in range(n)], F32)


@measured(MSE, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def least_error() -> Calls:
    """amax is the bin centre at which the squared errors of all fake quantized centres, times their counts, sum up to
    least."""
    # Bell and tail, several widths, signs and strides.
    for hist in (_bell(15), _tailed(14), np.ones(10, F32)):
        for bits, unsigned in ((3, False), (3, True), (8, False)):
            for stride, start in ((1, 4), (3, 2)):
                at = {"num_bits": bits, "unsigned": unsigned, "stride": stride, "start_bin": start}
                yield {"hist": hist, "edges": _edges(hist.size), **at}


@measured(MSE, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def e4m3() -> Calls:
    """With num_bits (4, 3) the centres go through float8_e4m3fn."""
    for hist in (_bell(13), _tailed(13)):
        yield {"hist": hist, "edges": _edges(13, 0.3), "num_bits": (4, 3), "start_bin": 5}


@measured(MSE, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def equal_errors() -> Calls:
    """Of equal errors the first wins."""
    # No counts: every error is 0.
    yield {"hist": np.zeros(12, F32), "edges": _edges(12), "start_bin": 3}


@measured(MSE, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator", aspect="defaults")
def mse_defaults() -> Calls:
    """Left out, the search starts at bin 128, in steps of 1, for 8 bits, signed."""
    yield {"hist": np.array([10] * 4 + [0] * 129, F32), "edges": _edges(133, 0.3)}


@measured(MSE, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator", aspect="refusals")
def mse_refusals() -> Calls:
    """Without a candidate, and for a width that is neither a positive integer nor (4, 3), it is refused."""
    yield {"hist": np.ones(8, F32), "edges": _edges(8)}
    for bits in (-1, 0, (5, 2), "8"):
        yield {"hist": _f32(9, 1, 1, 1, 1, 1, 1, 1), "edges": _edges(8), "num_bits": bits, "start_bin": 2}


@measured(ENTROPY, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def least_divergence() -> Calls:
    """amax is the edge up to which the counts, all beyond added to the last, diverge least from their means over
    2^(b-1+unsigned) groups, empty bins left out."""
    # Bell and tail, a bin without counts in a group and at a candidate, several widths and strides.
    gapped = np.array([40 - j if j % 3 else 0 for j in range(20)], F32)
    cut = _tailed(24) + np.resize(_f32(0, 0.9, 0.3), 24)  # to integers
    for hist in (_bell(24), _tailed(24), _bell(19), gapped, cut):
        for bits, unsigned in ((3, False), (2, True), (3, True)):
            for stride, start in ((1, 8), (3, 9)):
                at = {"num_bits": bits, "unsigned": unsigned, "stride": stride, "start_bin": start}
                yield {"hist": hist, "edges": _edges(hist.size, 0.3), **at}


@measured(ENTROPY, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def empty_bins() -> Calls:
    """A group's mean is that of its bins that hold something, also where others decide which edge is taken."""
    # Counts far apart, of which the means over all bins of a group would take another edge.
    yield {"hist": _f32(0, 0, 10, 0, 0, 0, 0, 0, 0, 16, 0, 18), "edges": _edges(12), "num_bits": 3, "start_bin": 5}


@measured(ENTROPY, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def first_bin() -> Calls:
    """The count of the first bin is replaced by the second one's."""
    for first in (0, 7, 100000):
        hist = _bell(16)
        hist[0] = first
        yield {"hist": hist, "edges": _edges(16), "num_bits": 3, "start_bin": 6}


@measured(ENTROPY, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator")
def equal_divergences() -> Calls:
    """Of equal divergences the last wins; one that is NaN wins over all."""
    # The last of equal ones: nothing lost by several, infinite for all, no data before a candidate.
    yield {"hist": _f32(4, 4, 4, 4, 4, 4, 4, 4), "edges": _edges(8), "num_bits": 2, "start_bin": 2}
    yield {"hist": _f32(4, 4, 0, 0, 0, 0, 0, 9), "edges": _edges(8), "num_bits": 2, "start_bin": 3}
    yield {"hist": _f32(0, 0, 0, 0, 0, 0, 0, 9), "edges": _edges(8), "num_bits": 2, "start_bin": 3, "stride": 2}
    yield {"hist": np.zeros(8, F32), "edges": _edges(8), "num_bits": 2, "start_bin": 3}


@measured(ENTROPY, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator", aspect="defaults")
def entropy_defaults() -> Calls:
    """Left out, the search starts at bin 128, in steps of 1, for 8 bits, signed."""
    counts = [1 + (7 * j) % 13 for j in range(127)] + [0, 0, 0, 1]
    counts[1] = 10000  # next to bin 2 in the one search that is open: bins 127 to 129 hold nothing
    counts[43], counts[44] = 10000, 1
    yield {"hist": np.array(counts, F32), "edges": _edges(131)}


@measured(ENTROPY, "ScaledQuantDescriptor: calib_method, histogram; HistogramCalibrator", aspect="refusals")
def entropy_refusals() -> Calls:
    """Without a candidate, and for a width that is no integer, it is refused."""
    yield {"hist": np.ones(8, F32), "edges": _edges(8)}
    yield {"hist": np.ones(8, F32), "edges": _edges(8), "num_bits": (4, 3), "start_bin": 2}


# ruff: noqa: SLF001 - a calibrator gives its counts and edges out, and takes them, in no other way


def counted(calibrator: Any) -> Any:
    """Counts and edges of a calibrator of either library; None where it has collected nothing."""
    return None if calibrator._calib_hist is None else (calibrator._calib_hist, calibrator._calib_bin_edges)


def holding(calibrator: Any, hist: Any, edges: Any) -> Any:
    """The calibrator with these counts and edges."""
    calibrator._calib_hist, calibrator._calib_bin_edges = hist, edges
    return calibrator


def histogram(batches: Any, num_bins: int = 2048, skip_zeros: bool = False) -> Any:
    """Every batch collected, then counts and edges."""
    from modelopt.torch.quantization.calib import HistogramCalibrator

    return counted(collected(HistogramCalibrator(8, None, False, num_bins=num_bins, skip_zeros=skip_zeros), batches))


def percentile_amax(hist: Any, edges: Any, percentile: float = 99.99) -> Any:
    """compute_amax of a calibrator that holds the counts and edges."""
    from modelopt.torch.quantization.calib import HistogramCalibrator

    return holding(HistogramCalibrator(8, None, False), hist, edges).compute_amax("percentile", percentile=percentile)


def mse_amax(
    hist: Any, edges: Any, num_bits: Any = 8, unsigned: bool = False, stride: int = 1, start_bin: int = 128
) -> Any:
    """compute_amax of a calibrator that holds the counts and edges."""
    from modelopt.torch.quantization.calib import HistogramCalibrator

    return holding(HistogramCalibrator(num_bits, None, unsigned), hist, edges).compute_amax(
        "mse", stride=stride, start_bin=start_bin
    )


def entropy_amax(
    hist: Any, edges: Any, num_bits: Any = 8, unsigned: bool = False, stride: int = 1, start_bin: int = 128
) -> Any:
    """compute_amax of a calibrator that holds the counts and edges."""
    from modelopt.torch.quantization.calib import HistogramCalibrator

    return holding(HistogramCalibrator(num_bits, None, unsigned), hist, edges).compute_amax(
        "entropy", stride=stride, start_bin=start_bin
    )


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt": {
        "pytorch-quantization/histogram": histogram,
        "pytorch-quantization/percentile_amax": percentile_amax,
        "pytorch-quantization/mse_amax": mse_amax,
        "pytorch-quantization/entropy_amax": entropy_amax,
    },
}
