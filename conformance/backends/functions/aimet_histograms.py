"""AIMET: calibration by histogram, by the installed library."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

__all__ = ["FUNCTIONS"]

Batches = tuple[Tensor, ...]


def histogram(
    batches: Batches, shape: tuple[int, ...], num_bins: int, growth_limit: Any = None, block_size: Any = None
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


def percentile_encodings(
    batches: Batches,
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


def sqnr_encodings(
    batches: Batches, num_steps: int, symmetric: bool, shape: tuple[int, ...], num_bins: int = 2048, **settings: Any
) -> tuple[Tensor, Tensor]:
    """The SQNR analyzer, fed the batches."""
    from aimet_torch.quantization.encoding_analyzer import SqnrEncodingAnalyzer

    analyzer = SqnrEncodingAnalyzer(shape, num_bins, **settings)
    for x in batches:
        analyzer.update_stats(x)
    low, high = analyzer.compute_encodings(num_steps, symmetric)
    return low, high


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "aimet.histogram": histogram,
    "aimet.percentile_encodings": percentile_encodings,
    "aimet.sqnr_encodings": sqnr_encodings,
}
