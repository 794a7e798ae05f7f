"""nvidia-modelopt's calibrators, collecting on a CPU; a histogram is torch's."""

# ruff: noqa: SLF001 - a calibrator gives its counts and edges out, and takes them, in no other way

from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS"]


def max_calibrator(batches: Any, axis: Any = None) -> Any:
    """Every batch collected, then the amax."""
    from modelopt.torch.quantization.calib import MaxCalibrator

    calibrator = MaxCalibrator(8, axis, False)
    for batch in batches:
        calibrator.collect(batch)
    return calibrator.compute_amax()


def max_calibrator_amaxs(batches: Any, axis: Any = None) -> Any:
    """Every batch collected, then the amax of each."""
    from modelopt.torch.quantization.calib import MaxCalibrator

    calibrator = MaxCalibrator(8, axis, False, track_amax=True)
    for batch in batches:
        calibrator.collect(batch)
    return tuple(calibrator.amaxs)


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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pytorch_quantization.max_calibrator": max_calibrator,
    "pytorch_quantization.max_calibrator_amaxs": max_calibrator_amaxs,
    "pytorch_quantization.histogram": histogram,
    "pytorch_quantization.percentile_amax": percentile_amax,
    "pytorch_quantization.mse_amax": mse_amax,
    "pytorch_quantization.entropy_amax": entropy_amax,
}
