"""What is required of torch's HistogramObserver, the calls that decide it, and the library's answers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from halfeven.conformance.requirement import Calls, documented, measured
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS"]

_OBSERVER = "torch/HistogramObserver"
_DOCSTRING = "HistogramObserver: docstring, step 1"
_SEARCH = f"{_OBSERVER}._non_linear_param_search"
_MEASURED = "torch 2.13.0, HistogramObserver"
_BINS = (4, 8, 64)


def _f(values: Any) -> Array:
    return np.asarray(values, np.float32)


@documented(_OBSERVER, _DOCSTRING)
def first_batch() -> Calls:
    """The first batch is counted in bins from its minimum to its maximum, which belongs to the last."""
    for bins in (*_BINS, 10):
        yield {"batches": (_f(np.arange(-16, 17) / 8),), "bins": bins}
        yield {"batches": (_f(np.arange(12) * 0.3 - 1).reshape(3, 4),), "bins": bins}
        yield {"batches": (_f([3.0]),), "bins": bins}
        for width in (0.1, 0.7, 5.3):  # values at the edges, where a quotient by the width falls into another bin
            edges = _f(width) * _f(np.arange(bins + 1)) / _f(bins)
            yield {"batches": (np.concatenate([edges, np.nextafter(edges[1:], _f(0))]),), "bins": bins}


@documented(_OBSERVER, _DOCSTRING)
def same_range() -> Calls:
    """A batch within the range adds its counts."""
    for bins in _BINS:
        yield {"batches": (_f([-1, 0.3, 3]), _f([-0.9, 2.9, 0, 0]), _f([]), _f([[-1], [3]])), "bins": bins}
    yield {"batches": (), "bins": 4}
    yield {"batches": (_f([]),), "bins": 4}


@measured(_OBSERVER, _MEASURED)
def wider_range() -> Calls:
    """A batch that widens the range moves the counts into its bins, in sixteenths of a bin, each by its middle."""
    first = _f(np.arange(-16, 17) / 8)
    for bins in _BINS:
        for ends in ([-2, 6], [-6, 2], [-3, 5], [-4, 4], [-2.5, 2], [-30, 2]):
            yield {"batches": (first, _f(ends)), "bins": bins}
            yield {"batches": (first, _f([0.5]), _f(ends), _f([-62, 2])), "bins": bins}
        yield {"batches": (_f([1, 1, 1]), _f([0, 4])), "bins": bins}
        yield {"batches": (_f([1.0]), _f([1, 1])), "bins": bins}


@measured(_OBSERVER, _MEASURED)
def infinities() -> Calls:
    """Infinities are left out; a batch of them alone changes nothing."""
    yield {"batches": (_f([np.inf, 1, 2, -np.inf, 5]),), "bins": 8}
    yield {"batches": (_f([np.inf, -np.inf]), _f([1, 3]), _f([np.inf, 5]), _f([-np.inf])), "bins": 8}


@measured(_SEARCH, _MEASURED)
def searched_range() -> Calls:
    """Ends with few counts are left out as long as the squared error falls."""
    rows = (
        [1, 0, 0, 30, 80, 60, 9, 0, 0, 0, 0, 2],
        [5, 90, 40, 20, 10, 5, 2, 1, 0, 0, 0, 1],
        [10, 10, 10, 10],
        [1, 0, 0, 0, 0, 0, 0, 200],
        [200, 0, 0, 0, 0, 0, 0, 1],
        [0, 0, 50, 0, 0],
        [3, 9, 27, 81, 40, 13, 6],
    )
    for counts in rows:
        for low, high in ((-1, 1), (-0.3, 7.7)):
            yield {"histogram": _f(counts), "min_val": _f(low), "max_val": _f(high)}
    yield {"histogram": _f(rows[0]), "min_val": _f(2), "max_val": _f(3), "dtype": "qint32"}
    yield {"histogram": _f([0, 10, 100]), "min_val": _f(-1), "max_val": _f(1), "dtype": "qint32"}
    yield {"histogram": _f(rows[1]), "min_val": _f(2), "max_val": _f(3), "dtype": "qint8"}


def _search(histogram: Any, min_val: Any, max_val: Any, dtype: str = "quint8") -> Any:
    import torch
    from torch.ao.quantization.observer import HistogramObserver

    observer = HistogramObserver(bins=len(histogram), dtype=getattr(torch, dtype))
    observer.histogram, observer.min_val, observer.max_val = histogram, min_val, max_val
    return observer._non_linear_param_search()  # noqa: SLF001 - calculate_qparams gives its range away in a scale alone


def _histogram(batches: Sequence[Any], bins: int = 2048) -> Any:
    import warnings

    from torch.ao.quantization.observer import HistogramObserver

    warnings.simplefilter("ignore")
    observer = HistogramObserver(bins=bins)
    for batch in batches:
        observer(batch)
    return observer.histogram, observer.min_val, observer.max_val


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {"torch.observers": {_OBSERVER: _histogram, _SEARCH: _search}}
