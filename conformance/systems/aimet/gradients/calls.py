"""Calls of AIMET's gradients: every side of every end, sums that are exact in any order, and some that are not."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.requirement import Arguments, calls
from halfeven.conformance.systems.aimet.affine.calls import DTYPES, F32, boundaries, scalar

__all__: list[str] = []


Array = npt.NDArray[Any]
_Builder = Callable[[str], Iterator[Arguments]]


QUANTIZERS = ("aimet/quantize_gradient", "aimet/quantize_dequantize_gradient")


# Scale, offset and grid; two grids without zero.
_GRIDS = (
    (1, 0, (-8, 7)),
    (0.1, 1, (0, 15)),
    (3, -7, (-2, 1)),
    (0.37, 0.5, (-100, 155)),
    (1, 0, (1, 15)),
    (1, 0, (-2, -1)),
)


def _both(name: str) -> Callable[[_Builder], _Builder]:
    def register(build: _Builder) -> _Builder:
        for formula in QUANTIZERS:
            calls(formula, name)(partial(build, formula))
        return build

    return register


def _gradient(n: int, dtype: Any) -> Array:
    quarters: Array = (np.arange(n) % 7 - 3).astype(dtype) / np.asarray(4, dtype)
    return quarters


@_both("elements")
def elements(_: str) -> Iterator[Arguments]:
    """A scale and an offset for each element: nothing is summed, so that every contribution is seen."""
    for dtype in DTYPES:
        for scale, offset, grid in _GRIDS:
            x = boundaries(scale, np.array([*range(-10, 10), -101, 154, 155, 156]), dtype)
            s = np.full(x.shape, scale, F32 if dtype.itemsize < F32.itemsize else dtype)
            given = {"tensor": x, "scale": s, "offset": np.full_like(s, offset), "gradient": _gradient(x.size, dtype)}
            yield {**given, "qmin": grid[0], "qmax": grid[1]}


@_both("not-finite")
def not_finite(_: str) -> Iterator[Arguments]:
    """Infinities and NaN, among the inputs and among the gradients from above, inside the grid and out of it."""
    x, g = np.meshgrid(np.array([0.0, 1, 99, -99, np.inf, -np.inf, np.nan]), np.array([-1.0, 0, np.inf, np.nan]))
    for dtype in DTYPES:
        s = np.full(x.shape, 0.5, dtype)
        given = {"tensor": x.astype(dtype), "scale": s, "offset": np.zeros_like(s), "gradient": g.astype(dtype)}
        yield {**given, "qmin": -8, "qmax": 7}


def _sums() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Any]]:
    """Shapes of tensor and scale, and block sizes; between five and eight elements share a parameter."""
    yield from (((6,), (), None), ((2, 5), (2, 1), None), ((5, 3), (3,), None), ((2, 3, 2), (3, 1), None))
    yield from (((4, 6), (2, 2), (2, 3)), ((2, 12), (2,), (6,)), ((4, 6), (1, 3), (-1, 2)), ((5,), (1,), (-1,)))


def _summed(dtype: "np.dtype[Any]") -> Iterator[Arguments]:
    for shape, scales, block in _sums():
        n, k = int(np.prod(shape)), int(np.prod(scales))
        x = (np.arange(n) * 5 % 23 - 11).reshape(shape).astype(dtype) / np.asarray(2, dtype)
        kept = F32 if dtype.itemsize < F32.itemsize else dtype
        scale = (2.0 ** (np.arange(k) % 2)).reshape(scales).astype(kept)
        offset = (np.arange(k) % 3 - 1).reshape(scales).astype(kept)
        gradient = (np.arange(n) % 3 - 1).reshape(shape).astype(dtype)
        yield {"tensor": x, "scale": scale, "offset": offset, "gradient": gradient, "block_size": block}


@_both("sums")
def sums(_: str) -> Iterator[Arguments]:
    """Small numbers and powers of two, whose sums no order of addition rounds."""
    for dtype in DTYPES:
        yield from ({**c, "qmin": -4, "qmax": 3} for c in _summed(dtype))
    for c in _summed(DTYPES[1]):  # gradients that float32 does not hold, and float64 adds exactly
        yield {**c, "gradient": c["gradient"] * (1 + 2.0**-30), "qmin": -4, "qmax": 3}


@calls("aimet/dequantize_gradient", "sums")
def dequantized_sums() -> Iterator[Arguments]:
    """The same for dequantize."""
    for dtype in DTYPES:
        yield from _summed(dtype)
    yield from ({**c, "gradient": c["gradient"] * (1 + 2.0**-30)} for c in _summed(DTYPES[1]))


def _cancelling(element: float) -> Iterator[Arguments]:
    """One scale for gradients that cancel, overflow on the way, or leave a tie by less than float64 can tell."""
    for dtype in DTYPES:
        info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        large, largest = 2.0 ** int(info.maxexp - 2), float(info.max)
        tie, less = float(info.eps) / 2, max(float(info.smallest_subnormal), 2.0**-140)
        rows = ([large, 1, -large, 1], [largest, largest, -largest, 1], [largest, largest, 1, 0])
        for row in (*rows, [1, tie, less, 0], [1, tie, -less, 0], [-1, -tie, 0, -less]):
            x, s = np.full(4, element, dtype), scalar(1).astype(dtype)
            yield {"tensor": x, "scale": s, "offset": 0 * s, "gradient": np.array(row, dtype)}


@calls("aimet/quantize_gradient", "cancelling-sums")
def cancelling() -> Iterator[Arguments]:
    """Every element inside."""
    yield from ({**c, "qmin": -2, "qmax": 1} for c in _cancelling(1))


@calls("aimet/quantize_dequantize_gradient", "cancelling-sums")
def cancelling_where_clipped() -> Iterator[Arguments]:
    """Every element clipped, so that scale and offset both get the gradient itself."""
    yield from ({**c, "qmin": -2, "qmax": 1} for c in _cancelling(99))


@calls("aimet/dequantize_gradient", "cancelling-sums")
def dequantized_cancelling() -> Iterator[Arguments]:
    """The same for dequantize."""
    yield from _cancelling(1)


@_both("refusals")
def refusals(_: str) -> Iterator[Arguments]:
    """Ends in the other order, and scales that do not fit."""
    for scale, block in ((scalar(1), None), (np.ones(3, F32), None), (np.ones(2, F32), (3,))):
        x = np.ones(4, F32)
        given = {"tensor": x, "scale": scale, "offset": 0 * scale, "gradient": x, "block_size": block}
        yield {**given, "qmin": 0, "qmax": -1 if scale.ndim == 0 else 1}


@calls("aimet/quantize_gradient", "scalar-scale")
def scalar_scale() -> Iterator[Arguments]:
    """One scale for a tensor of a narrow dtype on a grid that needs a wider one; one element each, so no sum."""
    for dtype in DTYPES:
        for value in (0.7, 1.9, -2.3):
            x, g = np.array([value], dtype), np.array([1], dtype)
            given = {"tensor": x, "scale": scalar(0.3), "offset": scalar(0), "gradient": g}
            yield from ({**given, "qmin": -n, "qmax": n - 1} for n in (8, 128, 512))


@calls("aimet/quantize_dequantize_gradient", "zero-point-shift")
def shifted() -> Iterator[Arguments]:
    """A shift, elements inside and clipped at both ends."""
    for dtype in DTYPES:
        x = boundaries(1, np.arange(-7, 7), dtype)
        s = np.ones(x.shape, dtype)
        given = {"tensor": x, "scale": s, "offset": 0 * s, "gradient": _gradient(x.size, dtype), "qmin": -4, "qmax": 3}
        yield from ({**given, "zero_point_shift": shift} for shift in (0.5, -0.25))


@calls("aimet/dequantize_gradient", "elements")
def dequantized_elements() -> Iterator[Arguments]:
    """A scale and an offset for each code."""
    for dtype in DTYPES:
        q = np.array([*range(-4, 5), 127, -128, 0.5, -0.0, np.inf, np.nan]).astype(dtype)
        for scale, offset in ((0.1, 0), (0.3, -257), (-3, 0.5)):
            s = np.full(q.shape, scale, F32)
            given = {"tensor": q, "scale": s, "offset": np.full_like(s, offset)}
            yield {**given, "gradient": _gradient(q.size, dtype)}


def _range(low: Any, high: Any, **given: Any) -> Arguments:
    low, high = np.atleast_1d(np.asarray(low, F32)), np.atleast_1d(np.asarray(high, F32))
    ds, do = (np.resize(np.array(v, F32), low.shape) for v in ((1, -0.3, 0.7), (0.9, 0, -2)))
    return {"min": low, "max": high, "scale_gradient": ds, "offset_gradient": do, **given}


GRIDS = ((0, 255), (-128, 127), (-127, 127), (-8, 7), (0, 1), (-32768, 32767), (0, 5))


@calls("aimet/range_gradient", "symmetric")
def symmetric_range() -> Iterator[Arguments]:
    """Ordered, swapped and narrow ranges."""
    for qmin, qmax in GRIDS:
        yield _range([-1, -0.3, 2, 0.1], [1, 2.7, -1, 0.7], qmin=qmin, qmax=qmax, symmetric=True)


@calls("aimet/range_gradient", "asymmetric")
def asymmetric_range() -> Iterator[Arguments]:
    """Ranges with zero inside, at an end and outside, where the offset is clamped; swapped ones."""
    for qmin, qmax in GRIDS:
        low, high = [-1, -0.3, 0, -5, 0.1, -3, 1, 2], [1, 2.7, 5, 0, 0.7, -1, -2, 0.5]
        yield _range(low, high, qmin=qmin, qmax=qmax, symmetric=False)
        yield _range([-2.87, -1.65, -0.72, -0.3], [3, 2, 1, 0.7], qmin=qmin, qmax=qmax, symmetric=False)


@calls("aimet/range_gradient", "refusals")
def refused_range() -> Iterator[Arguments]:
    """Grids of one code, and of none."""
    for qmin, qmax in ((4, 4), (0, 0), (5, 4)):
        yield from (_range([-1], [1], qmin=qmin, qmax=qmax, symmetric=symmetric) for symmetric in (True, False))


@calls("aimet/range_gradient", "smallest-scale")
def smallest_scale() -> Iterator[Arguments]:
    """Widths just below, at and above n times the smallest scale, and zero."""
    for qmin, qmax in ((0, 255), (-8, 7), (0, 1)):
        smallest = np.float32((qmax - qmin) * 2.0**-23)
        high = [np.nextafter(smallest, F32.type(0)), smallest, np.nextafter(smallest, F32.type(1)), 0, 1e-30]
        for symmetric in (True, False):
            yield _range(np.zeros(5), high, qmin=qmin, qmax=qmax, symmetric=symmetric)
    for half in (2**23, 2**31):  # the smallest scale is a hundredth of a step of one
        yield _range([-0.1, -0.01, -1e-4], [0.2, 0.02, 1e-4], qmin=-half, qmax=half - 1, symmetric=True)
