"""Calls of AIMET's gradients: every side of every end, with sums that are exact in any order."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.conformance.calls.aimet_affine import DTYPES, F32, boundaries, scalar
from halfeven.conformance.calls.registry import Arguments, calls

Array = npt.NDArray[Any]
_Builder = Callable[[str], Iterator[Arguments]]

__all__: list[str] = []

QUANTIZERS = ("aimet.quantize_gradient", "aimet.quantize_dequantize_gradient")


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
        for scale, offset, grid in ((1, 0, (-8, 7)), (0.1, 1, (0, 15)), (3, -7, (-2, 1)), (0.37, 0.5, (-100, 155))):
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


@calls("aimet.dequantize_gradient", "sums")
def dequantized_sums() -> Iterator[Arguments]:
    """The same for dequantize."""
    for dtype in DTYPES:
        yield from _summed(dtype)


@calls("aimet.quantize_gradient", "scalar-scale")
def scalar_scale() -> Iterator[Arguments]:
    """One scale for a tensor of a narrow dtype on a grid that needs a wider one; one element each, so no sum."""
    for dtype in DTYPES:
        for value in (0.7, 1.9, -2.3):
            x, g = np.array([value], dtype), np.array([1], dtype)
            given = {"tensor": x, "scale": scalar(0.3), "offset": scalar(0), "gradient": g}
            yield from ({**given, "qmin": -n, "qmax": n - 1} for n in (8, 128, 512))


@calls("aimet.quantize_dequantize_gradient", "zero-point-shift")
def shifted() -> Iterator[Arguments]:
    """A shift, elements inside and clipped at both ends."""
    for dtype in DTYPES:
        x = boundaries(1, np.arange(-7, 7), dtype)
        s = np.ones(x.shape, dtype)
        given = {"tensor": x, "scale": s, "offset": 0 * s, "gradient": _gradient(x.size, dtype), "qmin": -4, "qmax": 3}
        yield from ({**given, "zero_point_shift": shift} for shift in (0.5, -0.25))


@calls("aimet.dequantize_gradient", "elements")
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


@calls("aimet.range_gradient", "symmetric")
def symmetric_range() -> Iterator[Arguments]:
    """Ordered, swapped and narrow ranges."""
    for qmin, qmax in GRIDS:
        yield _range([-1, -0.3, 2, 0.1], [1, 2.7, -1, 0.7], qmin=qmin, qmax=qmax, symmetric=True)


@calls("aimet.range_gradient", "asymmetric")
def asymmetric_range() -> Iterator[Arguments]:
    """Ranges with zero inside, at an end and outside, where the offset is clamped; swapped ones."""
    for qmin, qmax in GRIDS:
        low, high = [-1, -0.3, 0, -5, 0.1, -3, 1, 2], [1, 2.7, 5, 0, 0.7, -1, -2, 0.5]
        yield _range(low, high, qmin=qmin, qmax=qmax, symmetric=False)


@calls("aimet.range_gradient", "smallest-scale")
def smallest_scale() -> Iterator[Arguments]:
    """Widths just below, at and above n times the smallest scale, and zero."""
    for qmin, qmax in ((0, 255), (-8, 7), (0, 1)):
        smallest = np.float32((qmax - qmin) * 2.0**-23)
        high = [np.nextafter(smallest, F32.type(0)), smallest, np.nextafter(smallest, F32.type(1)), 0, 1e-30]
        for symmetric in (True, False):
            yield _range(np.zeros(5), high, qmin=qmin, qmax=qmax, symmetric=symmetric)
