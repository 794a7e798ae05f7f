"""pytorch-quantization's ``MaxCalibrator``: what is required, the calls that decide it, and the library's answers."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, documented, expected, measured

__all__ = ["ANSWERS", "collected"]

BOTH = ("pytorch-quantization/max_calibrator", "pytorch-quantization/max_calibrator_amaxs")
F32 = np.dtype(np.float32)


def _batch(shape: tuple[int, ...], start: int, dtype: Any = F32) -> np.ndarray:
    values = (np.arange(int(np.prod(shape))) * 7 + start) % 23 - 11
    return (values / 4.0).astype(dtype).reshape(shape)


@documented(
    "pytorch-quantization/max_calibrator", "ScaledQuantDescriptor: calib_method, the simple max calibration; axis"
)
@expected(
    "pytorch-quantization/max_calibrator_amaxs",
    "MaxCalibrator, track_amax",
    text="The amax of each batch is kept as it was when the batch came, in whatever order they come.",
)
def batches() -> Calls:
    """The amax is the largest magnitude of all batches, in whatever order they come."""
    # The largest first, in the middle, last; one batch, none; ranks 0 to 3; zeros of both signs.
    parts = [np.array(v, F32) for v in ([1, -2], [-5, 3], [4, 0.5])]
    for order in ((0, 1, 2), (1, 0, 2), (2, 0, 1), (0, 2, 1)):
        yield {"batches": tuple(parts[i] for i in order)}
    yield {"batches": (parts[0],)}
    yield {"batches": ()}
    for shape in ((), (3,), (2, 3), (2, 3, 2)):
        yield {"batches": (_batch(shape, 0), _batch(shape, 5))}
    yield {"batches": (np.array([-0.0], F32), np.array([0.0], F32))}
    yield {"batches": (np.array([1, 2], F32), np.array([[0.5], [-9]], F32))}


@documented(BOTH, "ScaledQuantDescriptor: axis", aspect="axis")
def axes() -> Calls:
    """Each entry along the given axis or axes has its own amax, other dimensions have size 1; a negative axis counts
    from the end; one number has no dimension."""
    # Every axis of a batch of rank 3, counted from either end, pairs of them, and axes of size 1.
    given = (_batch((2, 3, 4), 0), _batch((2, 3, 4), 3), _batch((2, 3, 4), 11))
    for axis in (0, 1, 2, -1, -2, -3, (0,), (0, 1), (2, 0), (-1, 0), [1]):
        yield {"batches": given, "axis": axis}
    for axis in (0, 1):
        yield {"batches": (_batch((1, 3), 0), _batch((1, 3), 4)), "axis": axis}


@documented(BOTH, "ScaledQuantDescriptor: axis")
def all_axes() -> Calls:
    """Where every axis is given each element has its own amax."""
    # No dimension is left to reduce.
    yield {"batches": (_batch((2, 3), 0), _batch((2, 3), 4)), "axis": (0, 1)}
    yield {"batches": (_batch((3,), 0),), "axis": 0}


@measured(BOTH, "MaxCalibrator; the document does not speak of it")
def dtypes() -> Calls:
    """The amax has the dtype of the batches."""
    # Each float dtype stays.
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        for axis in (None, 0):
            yield {"batches": (_batch((2, 2), 1, dtype), _batch((2, 2), 6, dtype)), "axis": axis}


@measured(BOTH, "MaxCalibrator; the document does not speak of them")
def not_finite() -> Calls:
    """NaN stays once it was seen, and an infinity is an amax."""
    # NaN and infinities, in the first batch and in a later one.
    plain = np.array([1, -2], F32)
    for odd in (np.nan, np.inf, -np.inf):
        strange = np.array([odd, 3], F32)
        yield {"batches": (strange, plain)}
        yield {"batches": (plain, strange, plain)}
        yield {"batches": (plain, strange), "axis": 0}
        yield {"batches": (np.stack([plain, strange]),), "axis": 0}


@documented(BOTH, "ScaledQuantDescriptor: axis, which must be in that range", aspect="axis-out-of-range")
def refused_axis() -> Calls:
    """An axis outside [-rank, rank) is refused."""
    # An axis that the batch has not.
    for axis in (2, -3, (0, 2)):
        yield {"batches": (_batch((2, 3), 0),), "axis": axis}


@measured(BOTH, "MaxCalibrator")
def refusals() -> Calls:
    """A batch whose amax has another shape, and an empty batch, is refused."""
    yield {"batches": (_batch((2, 3), 0), _batch((3, 3), 0)), "axis": 0}
    yield {"batches": (_batch((2, 3), 0), _batch((2, 2, 3), 0)), "axis": 0}
    yield {"batches": (np.zeros((0, 2), F32),)}


def collected(calibrator: Any, batches: Any) -> Any:
    """The calibrator, of either library, that has collected every batch."""
    for batch in batches:
        calibrator.collect(batch)
    return calibrator


def max_calibrator(batches: Any, axis: Any = None) -> Any:
    """Every batch collected, then the amax."""
    from modelopt.torch.quantization.calib import MaxCalibrator

    return collected(MaxCalibrator(8, axis, False), batches).compute_amax()


def max_calibrator_amaxs(batches: Any, axis: Any = None) -> Any:
    """Every batch collected, then the amax of each."""
    from modelopt.torch.quantization.calib import MaxCalibrator

    return tuple(collected(MaxCalibrator(8, axis, False, track_amax=True), batches).amaxs)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt": {
        "pytorch-quantization/max_calibrator": max_calibrator,
        "pytorch-quantization/max_calibrator_amaxs": max_calibrator_amaxs,
    },
}
